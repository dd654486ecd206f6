"""How far two models' outputs, and their attention, are from each other."""

from functools import cache
from itertools import permutations

import torch

# Keeps logarithms finite, as in the studies' code.
TINY = 1e-10
# Heads are matched by trying every order of them.
MOST_HEADS = 7


def total_variation(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Half the summed distance of two distributions [..., C]; for two classes |p - q|."""
    return (one - other).abs().sum(-1) / 2


def negative_entropy(weights: torch.Tensor) -> torch.Tensor:
    """Σ a log(a + tiny) over the last dimension."""
    return (weights * (weights + TINY).log()).sum(-1)


def entropy_slope(weights: torch.Tensor) -> torch.Tensor:
    """The derivative of the negative entropy by each weight."""
    above = weights + TINY
    return above.log() + weights / above


def jensen_shannon(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Jensen-Shannon divergence of weights [..., L], natural logarithm, from 0 to ln 2.

    ½ KL(a‖m) + ½ KL(b‖m) with m = (a + b)/2, written with the negative entropies of a, b and m.
    """
    mean = negative_entropy((one + other) / 2)
    return (negative_entropy(one) + negative_entropy(other)) / 2 - mean


def kullback_leibler(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """KL(a‖b) of weights [..., L]; where b underflowed to 0 it counts as tiny, and where a is 0 the term is 0."""
    return negative_entropy(one) - (one * (other + TINY).log()).sum(-1)


@cache
def _orders(heads: int, device: torch.device) -> torch.Tensor:
    return torch.tensor(list(permutations(range(heads)))).to(device)


def matched(distances: torch.Tensor) -> torch.Tensor:
    """The order of the second model's heads that is nearest to the first's, as places [K].

    distances: [K, K] between each head of the first model (rows) and each of the second (columns).
    """
    heads = len(distances)
    orders = _orders(heads, distances.device)
    totals = distances[torch.arange(heads, device=distances.device), orders].sum(-1)
    # As a list of one place, which the device looks up by itself.
    return orders[totals.argmin()[None]][0]
