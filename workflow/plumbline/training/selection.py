"""Metrics that select an epoch, computed on the model's device without synchronisation.

The same numbers as `plumbline.training.performance`, which the tables report; and the number of distinct predicted
classes, which reveals an adversary that predicts one class for every text.
"""

import torch

SELECTION_METRICS = ("accuracy", "f1", "macro_f1", "roc_auc", "answers")


def selection_metrics(probabilities: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """All SELECTION_METRICS, in their order, as doubles [5]. probabilities: [N, C]; labels: [N]."""
    classes = probabilities.shape[1]
    codes = torch.arange(classes, device=labels.device)
    truth = labels[:, None] == codes
    predicted = probabilities.argmax(1)[:, None] == codes
    accuracy = (truth & predicted).any(1).double().mean()
    f1 = 2 * (truth & predicted).sum(0) / (truth.sum(0) + predicted.sum(0)).clamp(min=1).double()
    # Classes that are neither a label nor predicted are left out of the mean.
    present = (truth | predicted).any(0)
    macro = (f1 * present).sum() / present.sum()
    answers = predicted.any(0).sum().double()
    return torch.stack([accuracy, f1[1] if classes == 2 else macro, macro, _roc_auc(probabilities, truth), answers])


def _roc_auc(probabilities: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Mean over classes of the share of (positive, negative) pairs that the probability orders correctly.

    NaN if a class is missing or a probability is not finite.
    """
    if probabilities.shape[1] == 2:
        probabilities, truth = probabilities[:, 1:], truth[:, 1:]
    columns = probabilities.T.contiguous()
    ordered = columns.sort(dim=1).values
    # Midranks, from 1.
    first = torch.searchsorted(ordered, columns)
    last = torch.searchsorted(ordered, columns, right=True)
    ranks = (first + last + 1).double() / 2
    positive = truth.sum(0).double()
    area = ((ranks * truth.T).sum(1) - positive * (positive + 1) / 2) / (positive * (len(truth) - positive))
    return torch.where(probabilities.isfinite().all(), area.mean(), torch.nan)
