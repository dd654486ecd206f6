"""Classifiers of a text, or of a text and a question, whose parts can be called one by one: encode, attend, decode."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import nn
from torch.nn.functional import pad

from plumbline.errors import PlumblineError
from plumbline.models.attention import DotAttention, TanhAttention, TanhHeads, UniformAttention, masked_softmax
from plumbline.models.batch import Batch
from plumbline.models.deletion import states_without
from plumbline.models.distances import MOST_HEADS
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
    """logits: [B, C]; attention: [B, L], or None if the model has none; heads: [B, K, L], of whose K rows the attention
    is the mean, or None if it is one row from the start; pair_attention: [B, M], of models that attend to the second
    text too."""

    logits: torch.Tensor
    attention: torch.Tensor | None = None
    heads: torch.Tensor | None = None
    pair_attention: torch.Tensor | None = None


class Encoded(NamedTuple):
    """hidden: [B, L, H]; barred: [B, C] the classes that cannot be the answer; query: [B, H] of the second text;
    pair_attention: [B, M] by which it was gathered, where it was."""

    hidden: torch.Tensor
    barred: torch.Tensor | None = None
    query: torch.Tensor | None = None
    pair_attention: torch.Tensor | None = None


class Head(nn.Module):
    """A linear layer to C class logits.

    For two classes it is the studies' single output z with a sigmoid, written as the logits (-z/2, z/2): their softmax
    is (1 - sigmoid(z), sigmoid(z)) and their cross entropy the binary one, so nothing after it need know. Unless
    `single`, two classes have an output each, as Recursive ROAR's have.
    """

    def __init__(self, size: int, classes: int, single: bool = True) -> None:
        super().__init__()
        self.linear = nn.Linear(size, 1 if single and classes == 2 else classes)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        logits = self.linear(features)
        return torch.cat([-logits / 2, logits / 2], dim=-1) if logits.shape[-1] == 1 else logits


class MixedHead(nn.Module):
    """The output for two texts: a linear layer over tanh(A c + B q), of context c and query q; A and B: H → H/2.

    With several heads c is that of all of them, [K * H].
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
    limits={"hidden": [1, None], "temperature": [0.001, None]},
    provides=["attention", "gradient"],
    tasks=["classification", "question answering", "inference", "paraphrase"],
    encoder="bilstm",
    attention="tanh",
    hidden=128,
)
class AttentionClassifier(nn.Module):
    """Embedding, encoder, attention and output, as in Jain & Wallace 2019 (spec of their code, not paper).

    With `pair`, the initial vectors [V, d] of second texts, it reads a question or hypothesis by an encoder and vectors
    of their own, and its summary takes part in the attention and in the output. `gru`, `transformer` and `uniform` are
    not of that study, nor is `temperature`, which divides the scores of words before the softmax: the higher, the more
    even the attention. `softmax` is Recursive ROAR's and Zhou et al.'s output of two classes, one number each instead
    of one for both.
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

        def made() -> Encoder:
            if encoder == "average":
                return Average(embedding.shape[1], hidden, activation)
            return ENCODERS[encoder](embedding.shape[1], hidden)

        self.embedding = nn.Embedding.from_pretrained(embedding.clone(), freeze=False, padding_idx=0)
        self.encoder = made()
        size, queried = self.encoder.size, pair is not None
        self.attention: nn.Module = ATTENTIONS[attention](size, queried)
        self.head: nn.Module = MixedHead(size, classes) if queried else Head(size, classes, output == "sigmoid")
        self.classes, self.temperature = classes, temperature
        if pair is not None:
            self.pair_embedding = nn.Embedding.from_pretrained(pair.clone(), freeze=False, padding_idx=0)
            self.pair_encoder = made()

    def encode(self, embedded: torch.Tensor, batch: Batch, pair_embedded: torch.Tensor | None = None) -> Encoded:
        """Hidden states of embedded tokens [B, L, d], and what the second text and the answers contribute.

        pair_embedded: [B, M, d], in the place of the second text's own vectors.
        """
        return Encoded(self.encoder(embedded, batch), *self._beside(batch, pair_embedded))

    def _beside(self, batch: Batch, pair_embedded: torch.Tensor | None = None) -> tuple[torch.Tensor | None, ...]:
        """All of `Encoded` but the hidden states: what is the same whatever is done to the text."""
        barred = batch.barred(self.classes)
        if batch.pair is None:
            return (barred,)
        embedded = self.pair_embedding(batch.pair.ids) if pair_embedded is None else pair_embedded
        return barred, *self._summed_up(embedded, batch.pair)

    def _summed_up(self, embedded: torch.Tensor, second: Batch) -> tuple[torch.Tensor, ...]:
        """The query [B, H] that a second text is, and the attention by which it was gathered if it was by one."""
        return (self.pair_encoder.summary(self.pair_encoder(embedded, second), second),)

    def encode_without(self, batch: Batch, places: torch.Tensor) -> tuple[Encoded, Batch] | None:
        """One text without the word at each of the places [P], as P rows, and the batch that they stand for; None if
        the encoder knows no faster way than to read each shortened text."""
        if not isinstance(self.encoder, BiLSTM):
            return None
        hidden = states_without(self.encoder, self.embedding(batch.ids)[0], places)
        beside = (None if part is None else part.expand(len(places), -1) for part in self._beside(batch))
        attendable = batch.attendable.repeat(len(places), 1)
        attendable[torch.arange(len(places)), places] = False
        rows = Batch(batch.ids.expand_as(attendable), batch.present.expand_as(attendable), attendable)
        return Encoded(hidden, *beside), rows

    def attend(self, encoded: Encoded, batch: Batch) -> torch.Tensor:
        """Attention weights [B, L] over hidden states."""
        return masked_softmax(self.attention(encoded.hidden, encoded.query) / self.temperature, batch.attendable)

    def decode(self, encoded: Encoded, attention: torch.Tensor) -> torch.Tensor:
        """Logits [..., B, C] from hidden states and any attention weights [..., B, L], one set of them or many."""
        context = self._context(encoded.hidden, attention)
        logits = self.head(context) if encoded.query is None else self.head(context, encoded.query)
        return logits if encoded.barred is None else logits.masked_fill(encoded.barred, float("-inf"))

    def _context(self, hidden: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        return torch.einsum("...bl,blh->...bh", attention, hidden)

    def forward(
        self, batch: Batch, embedded: torch.Tensor | None = None, pair_embedded: torch.Tensor | None = None
    ) -> Output:
        encoded = self.encode(self.embedding(batch.ids) if embedded is None else embedded, batch, pair_embedded)
        attention = self.attend(encoded, batch)
        return Output(self.decode(encoded, attention), attention, pair_attention=encoded.pair_attention)

    def layers(self, batch: Batch) -> torch.Tensor:
        """The self-attention [B, layers, heads, T, T] of an encoder that is a transformer; T is L, or L + M with second
        texts, none of whose tokens attends to the other text."""
        own = _self_attention(self.encoder, self.embedding, batch)
        if batch.pair is None:
            return own
        seconds = _self_attention(self.pair_encoder, self.pair_embedding, batch.pair)
        first, second = own.shape[-1], seconds.shape[-1]
        return pad(own, (0, second, 0, second)) + pad(seconds, (first, 0, first, 0))

    def readout(self, batch: Batch) -> torch.Tensor:
        """The weights [B, T] with which the output reads the last of the layers: the attention; with second texts, of
        which it reads the mean, half of it and half of that."""
        attention = self(batch).attention
        if batch.pair is None:
            return attention
        seconds = batch.pair.present.to(attention.dtype)
        return torch.cat([attention, seconds / seconds.sum(1, keepdim=True)], dim=1) / 2


def _self_attention(encoder: Encoder, embedding: nn.Embedding, batch: Batch) -> torch.Tensor:
    if not isinstance(encoder, Transformer):
        raise PlumblineError(
            f"The encoder {type(encoder).__name__} has no layers of self-attention; set `encoder` to transformer."
        )
    return torch.stack(encoder.attending(embedding(batch.ids), batch)[1], dim=1)


@model("bilstm-song-uniform", attention="uniform")
@model(
    "bilstm-song",
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
    """The BiLSTM with attention of Neely et al. 2022 for single texts: Jain & Wallace's, trained otherwise."""

    def __init__(
        self,
        embedding: torch.Tensor,
        classes: int,
        *,
        attention: Literal["tanh", "uniform"] = "tanh",
        hidden: int = 128,
    ) -> None:
        super().__init__(embedding, classes, attention=attention, hidden=hidden)


@model("average-heads", encoder="average", hidden=128)
@model(
    "bilstm-heads",
    limits={"hidden": [1, None], "heads": [1, 7]},
    provides=["gradient", "heads"],
    tasks=["classification", "question answering", "inference", "paraphrase"],
    encoder="bilstm",
    hidden=128,
)
class MultiHeadClassifier(AttentionClassifier):
    """Embedding, encoder, several tanh attentions over the same hidden states and output over all that they gather.

    Weights, which have one row a text [B, L] where there is one attention, have one for each head here, [B, K, L].
    """

    def __init__(
        self,
        embedding: torch.Tensor,
        classes: int,
        pair: torch.Tensor | None = None,
        *,
        encoder: Literal["bilstm", "cnn", "average", "gru", "transformer"] = "bilstm",
        hidden: int = 128,
        activation: Literal["tanh", "relu"] = "tanh",
        temperature: float = 1.0,
        heads: int = 4,
    ) -> None:
        if not 1 <= heads <= MOST_HEADS:
            raise PlumblineError(f"`heads` is {heads}; it must be from 1 to {MOST_HEADS}.")
        super().__init__(
            embedding, classes, pair, encoder=encoder, hidden=hidden, activation=activation, temperature=temperature
        )
        size, queried = self.encoder.size, pair is not None
        self.attention = TanhHeads(heads, size, queried)
        self.head = MixedHead(size, classes, heads) if queried else Head(heads * size, classes)

    def attend(self, encoded: Encoded, batch: Batch) -> torch.Tensor:
        """Attention weights [B, K, L] of all heads."""
        return super().attend(encoded, batch).transpose(0, 1)

    def _context(self, hidden: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        return torch.einsum("...bkl,blh->...bkh", attention, hidden).flatten(-2)

    def forward(
        self, batch: Batch, embedded: torch.Tensor | None = None, pair_embedded: torch.Tensor | None = None
    ) -> Output:
        encoded = self.encode(self.embedding(batch.ids) if embedded is None else embedded, batch, pair_embedded)
        heads = self.attend(encoded, batch)
        return Output(self.decode(encoded, heads), heads.mean(1), heads)
