"""Which epoch a training keeps, told from what each epoch scored."""

from collections.abc import Sequence
from math import inf, isfinite


def chosen_epoch(
    values: Sequence[float], first: int = 1, patience: int | None = None, larger: bool = True
) -> tuple[int, bool]:
    """The epoch, counted from 1, with the best value from `first` on, and whether patience has run out.

    Once that many epochs after it brought nothing better, later ones do not count. 0 if none was eligible.
    """
    best, chosen = -inf, 0
    for epoch, value in enumerate(values, 1):
        signed = value if larger else -value
        if epoch < first:
            continue
        if not chosen or signed > best:
            best, chosen = (signed if isfinite(signed) else best), epoch
        elif patience and epoch - chosen >= patience:
            return chosen, True
    return chosen, False
