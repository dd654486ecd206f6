"""Scores that choose an epoch, computed where the model is, without waiting for it.

The same numbers as `plumbline.training.performance`, which the tables report; and how many classes were answered at
all, by which an adversary that gives every text the same answer is found.
"""

import torch

METRICS = ("accuracy", "f1", "macro_f1", "roc_auc", "answers")


def scores(probabilities: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """All METRICS, in their order, as doubles [5]. probabilities: [N, C]; labels: [N]."""
    classes = probabilities.shape[1]
    codes = torch.arange(classes, device=labels.device)
    truth = labels[:, None] == codes
    told = probabilities.argmax(1)[:, None] == codes
    accuracy = (truth & told).any(1).double().mean()
    f1 = 2 * (truth & told).sum(0) / (truth.sum(0) + told.sum(0)).clamp(min=1).double()
    # A class that is neither there nor predicted has no part in the mean.
    there = (truth | told).any(0)
    macro = (f1 * there).sum() / there.sum()
    answers = told.any(0).sum().double()
    return torch.stack([accuracy, f1[1] if classes == 2 else macro, macro, _roc_auc(probabilities, truth), answers])


def _roc_auc(probabilities: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Mean over classes of the share of pairs, one of the class and one not, that the probability orders rightly.

    NaN where a class is missing or a probability is not finite.
    """
    if probabilities.shape[1] == 2:
        probabilities, truth = probabilities[:, 1:], truth[:, 1:]
    columns = probabilities.T.contiguous()
    ordered = columns.sort(dim=1).values
    # The mean rank among equals, from 1.
    first = torch.searchsorted(ordered, columns)
    last = torch.searchsorted(ordered, columns, right=True)
    ranks = (first + last + 1).double() / 2
    positive = truth.sum(0).double()
    area = ((ranks * truth.T).sum(1) - positive * (positive + 1) / 2) / (positive * (len(truth) - positive))
    return torch.where(probabilities.isfinite().all(), area.mean(), torch.nan)
