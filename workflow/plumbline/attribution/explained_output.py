"""The output that a measure explains: the probability of a class, its logit, or its logit minus that of another class.

The difference of two logits asks why the model chose one class rather than another: a contrastive explanation (Yin &
Neubig 2022).
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch

from plumbline.errors import PlumblineError

Target = Literal["predicted", "gold"] | int
Function = Literal["probability", "logit", "difference"]


@dataclass(frozen=True)
class ExplainedOutput:
    """The explained output of each row.

    classes: [B], the explained classes; against: [B], the classes whose logits are subtracted, if `function` is
    `difference`. Both stay the same when the row is perturbed.
    """

    classes: torch.Tensor
    function: Function
    against: torch.Tensor | None = None

    @classmethod
    def of(cls, target: Target, function: Function, logits: torch.Tensor, labels: np.ndarray) -> "ExplainedOutput":
        """The output that the options `target` and `function` choose. logits: [B, C], unperturbed; labels: [B]."""
        classes = _target_classes(target, logits, labels)
        return cls(classes, function, _runners_up(logits, classes) if function == "difference" else None)

    def value(self, logits: torch.Tensor) -> torch.Tensor:
        """The explained outputs [..., B] of logits [..., B, C].

        A class that cannot be the answer has no logit, whatever the row is; its logit and its difference are 0.
        """
        if self.function == "probability":
            return _of_classes(logits.softmax(dim=-1), self.classes)
        values = _of_classes(logits, self.classes)
        if self.against is not None:
            values = values - _of_classes(logits, self.against)
        return values.masked_fill(values.isneginf(), 0)

    def take(self, rows: torch.Tensor) -> "ExplainedOutput":
        """The outputs of some of the rows [n]."""
        return replace(self, classes=self.classes[rows], against=None if self.against is None else self.against[rows])


def _target_classes(target: Target, logits: torch.Tensor, labels: np.ndarray) -> torch.Tensor:
    """The class to explain in each row, [B]."""
    if target == "predicted":
        return logits.argmax(dim=-1)
    if target == "gold":
        return torch.from_numpy(labels).long().to(logits.device)
    if not 0 <= int(target) < logits.shape[1]:
        raise PlumblineError(f"`target` is {target}, but the classes are 0 to {logits.shape[1] - 1}.")
    return torch.full((len(logits),), int(target), device=logits.device)


def _runners_up(logits: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """The class with the highest logit other than the explained class, [B]."""
    highest, against = logits.detach().scatter(1, classes[:, None], float("-inf")).max(dim=-1)
    if highest.isneginf().any():
        raise PlumblineError(
            "`function` is 'difference', but a text has only one admissible class, so there is no other class to "
            "compare it with; use 'logit' or 'probability'."
        )
    return against


def _of_classes(outputs: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """The outputs [..., B] of the rows' classes [B], from those of all classes [..., B, C]."""
    return outputs.gather(-1, classes.expand(outputs.shape[:-1])[..., None]).squeeze(-1)
