"""Attention classifiers of single texts and pairs, with the separate steps encode, attend and decode."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import nn
from torch.nn.functional import pad

from plumbline.errors import PlumblineError
from plumbline.models.attention import DotAttention, TanhAttention, UniformAttention, masked_softmax
from plumbline.models.batch import Batch
from plumbline.models.deletion import states_without
from plumbline.models.encoders import CNN, GRU, Average, BiLSTM, Encoder, Transformer
from plumbline.registry import model

ENCODERS: dict[str, Callable[[int, int], Encoder]] = {
    "bilstm": BiLSTM,
    "gru": GRU,
    "cnn": CNN,
    "transformer": Transformer,
}
ATTENTIONS = {"tanh": TanhAttention, "dot": DotAttention, "uniform": UniformAttention}


class Output(NamedTuple):
    """logits: [B, C]; attention: [B, L], or None if the model has none; heads: [B, K, L], the K heads whose mean is
    `attention`, or None with a single attention; pair_attention: [B, M] over the second text, if the model has it."""

    logits: torch.Tensor
    attention: torch.Tensor | None = None
    heads: torch.Tensor | None = None
    pair_attention: torch.Tensor | None = None


class Encoded(NamedTuple):
    """hidden: [B, L, H]; excluded: [B, C] mask of inadmissible classes; query: [B, H] summary of the second text;
    pair_attention: [B, M] attention that pools the second text, if any."""

    hidden: torch.Tensor
    excluded: torch.Tensor | None = None
    query: torch.Tensor | None = None
    pair_attention: torch.Tensor | None = None


class Head(nn.Module):
    """A linear layer to C class logits.

    For two classes it is the studies' single output z with a sigmoid, as the logits (-z/2, z/2): their softmax is
    (1 - sigmoid(z), sigmoid(z)) and their cross entropy the binary one, so downstream code is the same. With
    `single=False` two classes have one logit each, as in Recursive ROAR.
    """

    def __init__(self, size: int, classes: int, single: bool = True) -> None:
        super().__init__()
        self.linear = nn.Linear(size, 1 if single and classes == 2 else classes)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        logits = self.linear(features)
        return torch.cat([-logits / 2, logits / 2], dim=-1) if logits.shape[-1] == 1 else logits


class MixedHead(nn.Module):
    """The output for pairs: a linear layer over tanh(A c + B q), with context c and query q; A and B: H → H/2.

    With K heads c is their concatenation, [K * H].
    """

    def __init__(self, size: int, classes: int, heads: int = 1) -> None:
        super().__init__()
        self.context = nn.Linear(heads * size, size // 2)
        self.query = nn.Linear(size, size // 2)
        self.linear = nn.Linear(size // 2, classes)

    def forward(self, context: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
        return self.linear(torch.tanh(self.context(context) + self.query(query)))


@model("average-uniform", encoder="average", attention="uniform", hidden=128)
@model("average-dot", encoder="average", attention="dot", hidden=128)
@model("average-tanh", encoder="average", attention="tanh", hidden=128)
@model("cnn-dot", encoder="cnn", attention="dot", hidden=64)
@model("cnn-tanh", encoder="cnn", attention="tanh", hidden=64)
@model(
    "transformer-tanh",
    provides=["attention", "gradient", "layers"],
    encoder="transformer",
    attention="tanh",
    hidden=128,
)
@model("gru-tanh", encoder="gru", attention="tanh", hidden=128)
@model("bilstm-uniform", encoder="bilstm", attention="uniform", hidden=128)
@model("bilstm-dot", encoder="bilstm", attention="dot", hidden=128)
@model(
    "bilstm-softmax",
    training={"batching": "shuffle", "class_weights": "none", "reduction": "mean", "first_eligible_epoch": 1},
    encoder="bilstm",
    attention="tanh",
    hidden=128,
    output="softmax",
)
@model(
    "bilstm-zhou",
    citation="Zhou, Booth, Ribeiro & Shah (2022), Do Feature Attribution Methods Correctly Attribute Features? AAAI.",
    training={
        "epochs": 100,
        "batch_size": 250,
        "optimiser": "adam",
        "clip_norm": 5.0,
        "no_decay": [],
        "class_weights": "none",
        "reduction": "mean",
        "batching": "shuffle",
        "select_by": "accuracy",
        "stop_at": 0.97,
        "first_eligible_epoch": 1,
    },
    encoder="bilstm",
    attention="tanh",
    hidden=200,
    output="softmax",
)
@model(
    "bilstm-tanh",
    citation="Jain & Wallace (2019), Attention is not Explanation. NAACL.",
    limits={"hidden": [1, None], "temperature": [0.001, None]},
    provides=["attention", "gradient"],
    tasks=["classification", "question answering", "inference", "paraphrase"],
    encoder="bilstm",
    attention="tanh",
    hidden=128,
)
class AttentionClassifier(nn.Module):
    """Embedding, encoder, attention and output, as in Jain & Wallace 2019 (their code, not the paper).

    With `pair`, the initial vectors [V, d] of second texts, a separate embedding and encoder summarise the question or
    hypothesis, and the summary enters the attention and the output. `gru`, `transformer`, `uniform` and `temperature`
    are additions to that study.

    Options:
        output: Logits of two classes: one for both (`sigmoid`), or one each (`softmax`, as in Recursive ROAR and Zhou
            et al.).
    """

    def __init__(
        self,
        embedding: torch.Tensor,
        classes: int,
        pair: torch.Tensor | None = None,
        *,
        encoder: Literal["bilstm", "cnn", "average", "gru", "transformer"] = "bilstm",
        attention: Literal["tanh", "dot", "uniform"] = "tanh",
        hidden: int = 128,
        activation: Literal["tanh", "relu"] = "tanh",
        temperature: float = 1.0,
        output: Literal["sigmoid", "softmax"] = "sigmoid",
    ) -> None:
        super().__init__()
        if not temperature > 0:
            raise PlumblineError(f"`temperature` is {temperature:g}; it must be above 0.")

        def build_encoder() -> Encoder:
            if encoder == "average":
                return Average(embedding.shape[1], hidden, activation)
            return ENCODERS[encoder](embedding.shape[1], hidden)

        self.embedding = nn.Embedding.from_pretrained(embedding.clone(), freeze=False, padding_idx=0)
        self.encoder = build_encoder()
        size, queried = self.encoder.size, pair is not None
        self.attention: nn.Module = ATTENTIONS[attention](size, queried)
        self.head: nn.Module = MixedHead(size, classes) if queried else Head(size, classes, output == "sigmoid")
        self.classes, self.temperature = classes, temperature
        if pair is not None:
            self.pair_embedding = nn.Embedding.from_pretrained(pair.clone(), freeze=False, padding_idx=0)
            self.pair_encoder = build_encoder()

    def stackable(self, device: torch.device, tokens: int) -> bool:
        """Whether `torch.vmap` computes steps of several such models, with so many tokens in all, on this device."""
        # A subclass may do what `torch.vmap` cannot, such as draw at random.
        return type(self) is AttentionClassifier and self.encoder.stackable(device, tokens)

    def encode(self, embedded: torch.Tensor, batch: Batch, pair_embedded: torch.Tensor | None = None) -> Encoded:
        """Encode embedded tokens [B, L, d], the second text and the admissible classes.

        pair_embedded: [B, M, d], replaces the second text's vectors.
        """
        return Encoded(self.encoder(embedded, batch), *self._encode_pair(batch, pair_embedded))

    def _encode_pair(self, batch: Batch, pair_embedded: torch.Tensor | None = None) -> tuple[torch.Tensor | None, ...]:
        """The fields of `Encoded` that do not depend on the first text: all but the hidden states."""
        excluded = batch.excluded(self.classes)
        if batch.pair is None:
            return (excluded,)
        embedded = self.pair_embedding(batch.pair.ids) if pair_embedded is None else pair_embedded
        return excluded, *self._summarise_pair(embedded, batch.pair)

    def _summarise_pair(self, embedded: torch.Tensor, second: Batch) -> tuple[torch.Tensor, ...]:
        """The query [B, H], followed by the attention over the second text if it is pooled by attention."""
        return (self.pair_encoder.summary(self.pair_encoder(embedded, second), second),)

    def encode_without(self, batch: Batch, positions: torch.Tensor) -> tuple[Encoded, Batch] | None:
        """One text with each of the tokens at `positions` [P] deleted, as P encoded rows and their batch; None if the
        encoder cannot do this faster than by reading each shortened text."""
        if not isinstance(self.encoder, BiLSTM):
            return None
        count = len(positions)
        hidden = states_without(self.encoder, self.embedding(batch.ids)[0], positions)
        shared = (None if part is None else part.expand(count, -1) for part in self._encode_pair(batch))
        attendable = batch.attendable.repeat(count, 1)
        attendable[torch.arange(count), positions] = False
        rows = Batch(batch.ids.expand_as(attendable), batch.present.expand_as(attendable), attendable)
        return Encoded(hidden, *shared), rows

    def attend(self, encoded: Encoded, batch: Batch) -> torch.Tensor:
        """Attention weights [B, L] over hidden states."""
        return masked_softmax(self.attention(encoded.hidden, encoded.query) / self.temperature, batch.attendable)

    def decode(self, encoded: Encoded, attention: torch.Tensor) -> torch.Tensor:
        """Logits [..., B, C] from hidden states and one or more sets of attention weights [..., B, L]."""
        context = self._context(encoded.hidden, attention)
        logits = self.head(context) if encoded.query is None else self.head(context, encoded.query)
        return logits if encoded.excluded is None else logits.masked_fill(encoded.excluded, float("-inf"))

    def _context(self, hidden: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        return torch.einsum("...bl,blh->...bh", attention, hidden)

    def forward(
        self, batch: Batch, embedded: torch.Tensor | None = None, pair_embedded: torch.Tensor | None = None
    ) -> Output:
        encoded = self.encode(self.embedding(batch.ids) if embedded is None else embedded, batch, pair_embedded)
        attention = self.attend(encoded, batch)
        return Output(self.decode(encoded, attention), attention, pair_attention=encoded.pair_attention)

    def layers(self, batch: Batch) -> torch.Tensor:
        """The self-attention [B, layers, heads, T, T] of a transformer encoder; T is L, or L + M for pairs, where no
        token attends to the other text."""
        own = _self_attention(self.encoder, self.embedding, batch)
        if batch.pair is None:
            return own
        seconds = _self_attention(self.pair_encoder, self.pair_embedding, batch.pair)
        first, second = own.shape[-1], seconds.shape[-1]
        return pad(own, (0, second, 0, second)) + pad(seconds, (first, 0, first, 0))

    def readout(self, batch: Batch) -> torch.Tensor:
        """The weights [B, T] with which the output reads the last layer: the attention; for pairs, half the attention
        and half the mean over the second text."""
        attention = self(batch).attention
        if batch.pair is None:
            return attention
        seconds = batch.pair.present.to(attention.dtype)
        return torch.cat([attention, seconds / seconds.sum(1, keepdim=True)], dim=1) / 2


def _self_attention(encoder: Encoder, embedding: nn.Embedding, batch: Batch) -> torch.Tensor:
    if not isinstance(encoder, Transformer):
        raise PlumblineError(
            f"The encoder {type(encoder).__name__} has no self-attention layers; set `encoder` to transformer."
        )
    return torch.stack(encoder.forward_with_attention(embedding(batch.ids), batch)[1], dim=1)


@model("bilstm-song-uniform", attention="uniform")
@model(
    "bilstm-song",
    citation="Neely, Schouten, Bleeker & Lucic (2022), A Song of (Dis)agreement: Evaluating the Evaluation of "
    "Explainable Artificial Intelligence in Natural Language Processing. HHAI.",
    provides=["attention", "gradient"],
    training={
        "epochs": 40,
        "patience": 5,
        "first_eligible_epoch": 1,
        "class_weights": "none",
        "reduction": "mean",
        "no_decay": [],
        "select_by": "roc_auc",
    },
)
class SongClassifier(AttentionClassifier):
    """The BiLSTM with attention of Neely et al. 2022 for single texts: Jain & Wallace's with other training options."""

    def __init__(
        self,
        embedding: torch.Tensor,
        classes: int,
        *,
        attention: Literal["tanh", "uniform"] = "tanh",
        hidden: int = 128,
    ) -> None:
        super().__init__(embedding, classes, attention=attention, hidden=hidden)
