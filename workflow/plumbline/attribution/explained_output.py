"""The output that a measure explains: the probability or the logit of a class."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch

from plumbline.errors import PlumblineError

Target = Literal["predicted", "gold"] | int
Function = Literal["probability", "logit"]


@dataclass(frozen=True)
class ExplainedOutput:
    """The explained output of each row. classes: [B], which stay the same when the row is perturbed."""

    classes: torch.Tensor
    function: Function

    @classmethod
    def of(cls, target: Target, function: Function, logits: torch.Tensor, labels: np.ndarray) -> "ExplainedOutput":
        """The output that the options `target` and `function` choose. logits: [B, C], unperturbed; labels: [B]."""
        return cls(_target_classes(target, logits, labels), function)

    def value(self, logits: torch.Tensor) -> torch.Tensor:
        """The explained outputs [..., B] of logits [..., B, C].

        A class that cannot be the answer has no logit, whatever the row is; its value is 0.
        """
        if self.function == "probability":
            return _of_classes(logits.softmax(dim=-1), self.classes)
        values = _of_classes(logits, self.classes)
        return values.masked_fill(values.isneginf(), 0)

    def take(self, rows: torch.Tensor) -> "ExplainedOutput":
        """The outputs of some of the rows [n]."""
        return replace(self, classes=self.classes[rows])


def _target_classes(target: Target, logits: torch.Tensor, labels: np.ndarray) -> torch.Tensor:
    """The class to explain in each row, [B]."""
    if target == "predicted":
        return logits.argmax(dim=-1)
    if target == "gold":
        return torch.from_numpy(labels).long().to(logits.device)
    if not 0 <= int(target) < logits.shape[1]:
        raise PlumblineError(f"`target` is {target}, but the classes are 0 to {logits.shape[1] - 1}.")
    return torch.full((len(logits),), int(target), device=logits.device)


def _of_classes(outputs: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """The outputs [..., B] of the rows' classes [B], from those of all classes [..., B, C]."""
    return outputs.gather(-1, classes.expand(outputs.shape[:-1])[..., None]).squeeze(-1)
