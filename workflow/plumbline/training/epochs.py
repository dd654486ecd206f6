"""Selection of epochs from the values of their selection metric."""

from collections.abc import Sequence
from math import inf, isfinite

# A metric such as 0.97 differs in its last digit on some devices.
ROUNDING = 1e-9


def select_epoch(
    values: Sequence[float],
    first: int = 1,
    patience: int | None = None,
    larger: bool = True,
    stop_at: float | None = None,
) -> tuple[int, bool]:
    """The epoch, counted from 1, with the best value from epoch `first` on, and whether training is over.

    Training is over once an epoch reaches `stop_at`, or `patience` epochs after the best one brought no improvement;
    later epochs are ignored. 0 if none was eligible.
    """
    best, selected = -inf, 0
    for epoch, value in enumerate(values, 1):
        signed = value if larger else -value
        if epoch < first:
            continue
        if not selected or signed > best:
            best, selected = (signed if isfinite(signed) else best), epoch
            if stop_at is not None and value >= stop_at - ROUNDING:
                return selected, True
        elif patience and epoch - selected >= patience:
            return selected, True
    return selected, False


def checkpoint_epochs(values: Sequence[float], gain: float) -> list[int]:
    """Epoch 1, and each epoch whose value exceeds that of the checkpoint before it by more than `gain`."""
    epochs: list[int] = []
    for epoch, value in enumerate(values, 1):
        if not epochs or value - values[epochs[-1] - 1] > gain + ROUNDING:
            epochs.append(epoch)
    return epochs
