"""Distances between the outputs and between the attention weights of two models."""

from functools import cache
from itertools import permutations

import torch

from plumbline.errors import PlumblineError

# Keeps logarithms finite, as in the studies' code.
TINY = 1e-10
# Heads are matched by trying all permutations.
MOST_HEADS = 7


def total_variation(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """½ Σ |p - q| of distributions [..., C]; |p - q| of class 1 for two classes."""
    return (p - q).abs().sum(-1) / 2


def negative_entropy(weights: torch.Tensor) -> torch.Tensor:
    """Σ a log(a + tiny) over the last dimension."""
    return (weights * (weights + TINY).log()).sum(-1)


def entropy_slope(weights: torch.Tensor) -> torch.Tensor:
    """The derivative of the negative entropy with respect to each weight."""
    shifted = weights + TINY
    return shifted.log() + weights / shifted


def jensen_shannon(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Jensen-Shannon divergence of weights [..., L], natural logarithm, from 0 to ln 2.

    ½ KL(a‖m) + ½ KL(b‖m) with m = (a + b)/2, in terms of the negative entropies of a, b and m.
    """
    mean = negative_entropy((a + b) / 2)
    return (negative_entropy(a) + negative_entropy(b)) / 2 - mean


def kullback_leibler(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """KL(a‖b) of weights [..., L]; b that underflowed to 0 counts as tiny, and the term is 0 where a is 0."""
    return negative_entropy(a) - (a * (b + TINY).log()).sum(-1)


@cache
def _permutations(heads: int, device: torch.device) -> torch.Tensor:
    return torch.tensor(list(permutations(range(heads)))).to(device)


def match_heads(distances: torch.Tensor) -> torch.Tensor:
    """The permutation [K] of the second model's heads that is nearest to the first model's.

    distances: [K, K] between each head of the first model (rows) and each of the second (columns).
    """
    heads = len(distances)
    if heads > MOST_HEADS:
        raise PlumblineError(f"The model has {heads} heads; at most {MOST_HEADS} can be compared, in all their orders.")
    orders = _permutations(heads, distances.device)
    totals = distances[torch.arange(heads, device=distances.device), orders].sum(-1)
    # Indexed by a tensor of one element, so that the host does not wait for the device.
    return orders[totals.argmin()[None]][0]


def matched_mean(pairs: torch.Tensor, distances: torch.Tensor) -> torch.Tensor:
    """The mean [B] of values [B, K, K] of pairs of heads over the pairs that are matched by the distances [K, K]."""
    heads = len(distances)
    if heads == 1:
        return pairs[:, 0, 0]
    order = match_heads(distances.detach())
    return pairs[:, torch.arange(heads, device=pairs.device), order].mean(-1)
