"""The studies' small models written down by hand, for one text at a time.

Vectors are [N, T, d]: N ways to read the same text, whose T tokens are those of the text and then of a second text.
"""

from math import cos, inf, log, sin
from typing import Any

import torch
from torch import Tensor

from tests.oracle.store import PAD, Text

Weights = dict[str, Tensor]
ENCODERS = ("average", "bilstm", "cnn", "transformer")
ATTENTIONS = ("tanh", "dot", "uniform")
LAYER_NORM = 1e-5


def known(config: dict[str, Any]) -> bool:
    """Whether this is a model that is written down here."""
    options = config["options"]
    name = config["object"].split(":")[1]
    return name == "BagOfWords" or (
        name == "AttentionClassifier" and options["encoder"] in ENCODERS and options["attention"] in ATTENTIONS
    )


def linear(weights: Weights, name: str, vector: Tensor) -> Tensor:
    """W x + b of the last dimension."""
    found = vector @ weights[f"{name}.weight"].T
    return found + weights[f"{name}.bias"] if f"{name}.bias" in weights else found


def norm(weights: Weights, name: str, vector: Tensor) -> Tensor:
    """(x - mean) / √(variance + ε), scaled and shifted."""
    centred = vector - vector.mean(-1, keepdim=True)
    variance = (centred * centred).mean(-1, keepdim=True)
    return centred / (variance + LAYER_NORM).sqrt() * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def averaged(weights: Weights, part: str, vectors: Tensor, options: dict[str, Any]) -> Tensor:
    """Each token by itself: a linear map and a nonlinearity."""
    activation = {"tanh": torch.tanh, "relu": torch.relu}[options["activation"]]
    states = [activation(linear(weights, f"{part}.linear", vectors[:, t])) for t in range(vectors.shape[1])]
    return torch.stack(states, 1)


def one_way(weights: Weights, part: str, vectors: Tensor, order: list[int]) -> list[Tensor]:
    """The states of an LSTM that reads the tokens in this order, each at its token's place."""
    size = weights[f"{part}.weight_hh_l0"].shape[1]
    hidden = cell = vectors.new_zeros(len(vectors), size)
    states = [hidden] * len(order)
    for t in order:
        gates = vectors[:, t] @ weights[f"{part}.weight_ih_l0"].T + weights[f"{part}.bias_ih_l0"]
        gates = gates + hidden @ weights[f"{part}.weight_hh_l0"].T + weights[f"{part}.bias_hh_l0"]
        enter, keep, new, tell = gates.split(size, -1)
        cell = torch.sigmoid(keep) * cell + torch.sigmoid(enter) * torch.tanh(new)
        hidden = torch.sigmoid(tell) * torch.tanh(cell)
        states[t] = hidden
    return states


def bilstm(weights: Weights, part: str, vectors: Tensor, options: dict[str, Any]) -> Tensor:
    """The states of both directions side by side."""
    order = list(range(vectors.shape[1]))
    ahead = one_way(weights, f"{part}.forwards", vectors, order)
    back = one_way(weights, f"{part}.backwards", vectors, order[::-1])
    return torch.stack([torch.cat(both, -1) for both in zip(ahead, back, strict=True)], 1)


def cnn(weights: Weights, part: str, vectors: Tensor, options: dict[str, Any]) -> Tensor:
    """Filters of widths 1, 3, 5 and 7 around each token, of which none goes below 0."""
    states = []
    for t in range(vectors.shape[1]):
        features = []
        for number, width in enumerate((1, 3, 5, 7)):
            name = f"{part}.convolutions.{number}"
            total = weights[f"{name}.bias"].expand(len(vectors), -1)
            for offset in range(width):
                place = t + offset - width // 2
                if 0 <= place < vectors.shape[1]:
                    total = total + vectors[:, place] @ weights[f"{name}.weight"][:, :, offset].T
            features.append(torch.relu(total))
        states.append(torch.cat(features, -1))
    return torch.stack(states, 1)


def place_vector(place: int, size: int) -> list[float]:
    """Sines, then cosines, of a place for wavelengths from 2π on."""
    angles = [place * 10000.0 ** (-2 * step / size) for step in range(size // 2)]
    return [sin(angle) for angle in angles] + [cos(angle) for angle in angles]


def transformer_layer(weights: Weights, part: str, hidden: Tensor, heads: int = 4) -> tuple[Tensor, Tensor]:
    """A layer's states, and its self-attention [N, heads, T, T]."""
    size = hidden.shape[-1]
    width = size // heads
    query, key, value = linear(weights, f"{part}.project", norm(weights, f"{part}.norm", hidden)).split(size, -1)
    mixed, attentions = [], []
    for head in range(heads):
        own = slice(head * width, (head + 1) * width)
        scores = query[..., own] @ key[..., own].transpose(1, 2) / width**0.5
        attentions.append(scores.softmax(-1))
        mixed.append(attentions[-1] @ value[..., own])
    hidden = hidden + linear(weights, f"{part}.join", torch.cat(mixed, -1))
    inner = torch.relu(linear(weights, f"{part}.feed.1", norm(weights, f"{part}.feed.0", hidden)))
    return hidden + linear(weights, f"{part}.feed.3", inner), torch.stack(attentions, 1)


def transformer(
    weights: Weights, part: str, vectors: Tensor, options: dict[str, Any], attentions: list[Tensor] | None = None
) -> Tensor:
    """A linear map, places added, two layers and a last norm; `attentions` takes the layers' self-attention."""
    hidden = linear(weights, f"{part}.linear", vectors)
    places = [place_vector(t, hidden.shape[-1]) for t in range(hidden.shape[1])]
    hidden = hidden + torch.tensor(places, dtype=hidden.dtype)
    for layer in range(2):
        hidden, attention = transformer_layer(weights, f"{part}.layers.{layer}", hidden)
        if attentions is not None:
            attentions.append(attention)
    return norm(weights, f"{part}.norm", hidden)


ENCODE = {"average": averaged, "bilstm": bilstm, "cnn": cnn, "transformer": transformer}


class Model:
    """A trained model of one seed."""

    def __init__(self, weights: Weights, config: dict[str, Any]) -> None:
        self.weights, self.options = weights, config["options"]
        self.bag = config["object"].endswith(":BagOfWords")

    def vectors(self, text: Text, padding: bool = False) -> Tensor:
        """The vectors [1, T, d] of both texts, or those of as much padding."""
        own = [PAD] * len(text.ids) if padding else text.ids
        found = self.weights["embedding.weight"][own]
        if text.pair is not None:
            second = [PAD] * len(text.pair) if padding else text.pair
            found = torch.cat([found, self.weights["pair_embedding.weight"][second]])
        return found[None]

    def run(
        self, text: Text, vectors: Tensor | None = None, attention: Tensor | None = None, detached: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Logits [N, C] and attention [N, L], from vectors or attention other than its own if they are given."""
        vectors = self.vectors(text) if vectors is None else vectors
        own, second = vectors[:, : len(text.ids)], vectors[:, len(text.ids) :]
        if self.bag:
            return self._told(text, own[:, text.places].sum(1) / max(1, len(text.places)), None), None
        encode = ENCODE[self.options["encoder"]]
        hidden = encode(self.weights, "encoder", own, self.options)
        query = None
        if text.pair is not None:
            query = self._summary(encode(self.weights, "pair_encoder", second, self.options), text)
        if attention is None:
            attention = self._attention(hidden, query, text)
        weights = attention.detach() if detached else attention
        context = 0
        for t in range(len(text.ids)):
            context = context + weights[:, t, None] * hidden[:, t]
        return self._told(text, context, query), attention

    def _summary(self, hidden: Tensor, text: Text) -> Tensor:
        """A second text as one vector [N, H]."""
        encoder = self.options["encoder"]
        if encoder == "bilstm":
            half = hidden.shape[-1] // 2
            return torch.cat([hidden[:, -1, :half], hidden[:, 0, half:]], -1)
        if encoder == "cnn":
            words = torch.tensor(text.pair_words, dtype=hidden.dtype)
            return (hidden * words[:, None]).amax(1)
        return hidden.mean(1)

    def _attention(self, hidden: Tensor, query: Tensor | None, text: Text) -> Tensor:
        scores = hidden.new_zeros(hidden.shape[:2])
        if self.options["attention"] == "tanh":
            inside = linear(self.weights, "attention.project", hidden)
            if query is not None:
                inside = inside + linear(self.weights, "attention.query", query)[:, None]
            scores = linear(self.weights, "attention.score", torch.tanh(inside))[..., 0]
        elif self.options["attention"] == "dot":
            asked = self.weights["attention.score.weight"] if query is None else query
            scores = (hidden * asked[:, None]).sum(-1) / hidden.shape[-1] ** 0.5
        shut = torch.tensor([0.0 if word else -inf for word in text.words], dtype=hidden.dtype)
        return (scores / self.options["temperature"] + shut).softmax(-1)

    def _told(self, text: Text, context: Tensor, query: Tensor | None) -> Tensor:
        if query is not None:
            both = linear(self.weights, "head.context", context) + linear(self.weights, "head.query", query)
            context = torch.tanh(both)
        logits = linear(self.weights, "head.linear", context)
        if logits.shape[-1] == 1:
            logits = torch.cat([-logits / 2, logits / 2], -1)
        if text.answers is not None:
            barred = [c for c in range(logits.shape[-1]) if c not in text.answers]
            logits = logits.index_fill(-1, torch.tensor(barred, dtype=torch.long), -inf)
        return logits

    def probabilities(self, text: Text, **given: Any) -> Tensor:
        """Class probabilities [N, C]."""
        return self.run(text, **given)[0].softmax(-1)

    def layers(self, text: Text) -> list[Tensor]:
        """The self-attention [heads, T, T] of each layer of a transformer for a text without a second."""
        attentions: list[Tensor] = []
        transformer(self.weights, "encoder", self.vectors(text), self.options, attentions)
        return [one[0] for one in attentions]


def entropy(weights: list[float]) -> float:
    """-Σ a log a."""
    return -sum(a * log(a) for a in weights if a > 0)


def jsd(one: list[float], other: list[float]) -> float:
    """Jensen and Shannon's divergence: the entropy of the mean less the mean entropy."""
    middle = [(a + b) / 2 for a, b in zip(one, other, strict=True)]
    return entropy(middle) - (entropy(one) + entropy(other)) / 2


def total_variation(one: list[float], other: list[float]) -> float:
    """½ Σ |p - q|."""
    return sum(abs(p - q) for p, q in zip(one, other, strict=True)) / 2
