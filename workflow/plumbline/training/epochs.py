"""Which epoch a training keeps, told from what each epoch scored."""

from collections.abc import Sequence
from math import inf, isfinite

# A share such as 0.97 is off by its last digit on some devices.
ROUNDING = 1e-9


def chosen_epoch(
    values: Sequence[float],
    first: int = 1,
    patience: int | None = None,
    larger: bool = True,
    stop_at: float | None = None,
) -> tuple[int, bool]:
    """The epoch, counted from 1, with the best value from `first` on, and whether training is over.

    It is once an epoch reached `stop_at`, or once `patience` epochs after the best brought nothing better; later ones
    do not count. 0 if none was eligible.
    """
    best, chosen = -inf, 0
    for epoch, value in enumerate(values, 1):
        signed = value if larger else -value
        if epoch < first:
            continue
        if not chosen or signed > best:
            best, chosen = (signed if isfinite(signed) else best), epoch
            if stop_at is not None and value >= stop_at - ROUNDING:
                return chosen, True
        elif patience and epoch - chosen >= patience:
            return chosen, True
    return chosen, False


def gained(values: Sequence[float], least: float) -> list[int]:
    """The first epoch, which is 1, and each whose value exceeds that of the last one listed by more than `least`."""
    listed: list[int] = []
    for epoch, value in enumerate(values, 1):
        if not listed or value - values[listed[-1] - 1] > least + ROUNDING:
            listed.append(epoch)
    return listed
