"""Objectives of rationale models: cross entropy and a penalty on deviations from the target selection rate.

Both report for held-out rows the share of all words that is selected, and the deterministic loss: mean cross entropy +
λ |share - rate|, with the share that the penalty counts.
"""

from collections.abc import Mapping
from typing import Any, Literal

import torch

from plumbline.errors import PlumblineError
from plumbline.models.objectives import Classification, Columns


class SelectionObjective(Classification):
    """Cross entropy, and a penalty of `strength` times the distance of a share of words from `rate`."""

    metrics = ("selection_rate", "loss")

    def __init__(
        self,
        rate: float,
        strength: float,
        penalty: Literal["paper", "code"],
        stop_accuracy: float,
        stop_distance: float,
    ) -> None:
        if not 0 < rate <= 1:
            raise PlumblineError(f"`rate` is {rate:g}; it must be above 0 and at most 1.")
        if strength < 0:
            raise PlumblineError(f"`strength` is {strength:g}; it must be 0 or more.")
        self.rate, self.strength, self.penalty = rate, strength, penalty
        self.stop_accuracy, self.stop_distance = stop_accuracy, stop_distance

    def reached(self, metrics: Mapping[Any, float]) -> bool:
        """Whether the dev accuracy is high enough and the dev selection rate close enough to `rate`."""
        accuracy, rate = (metrics.get(("dev", metric), float("nan")) for metric in ("accuracy", "selection_rate"))
        return accuracy >= self.stop_accuracy and abs(rate - self.rate) <= self.stop_distance

    def selected(self, output: Any) -> torch.Tensor:
        """The degree [B, L] to which the penalty counts each word as selected."""
        raise NotImplementedError

    def rate_penalty(self, share: torch.Tensor) -> torch.Tensor:
        """λ |share - rate|."""
        return self.strength * (share - self.rate).abs()

    def quantities(self, output: Any, row: Columns) -> torch.Tensor:
        """Cross entropy, words, words with z > 0, words the penalty counts, their share in the text, its penalty."""
        words, selected = output.words.sum(1), self.selected(output).sum(1)
        share = selected / words
        penalty = self.rate_penalty(share)
        columns = (super().losses(output, row), words, (output.z > 0).sum(1), selected, share, penalty)
        return torch.stack([column.to(share.dtype) for column in columns], dim=1)

    def split_penalty(self, ratio: torch.Tensor, share: torch.Tensor, penalty: torch.Tensor) -> torch.Tensor:
        """The penalty of a split, from the share over all its words, the texts' mean share or their mean penalty."""
        raise NotImplementedError

    def summary(self, means: torch.Tensor) -> torch.Tensor:
        """The share of all words that is selected, and the loss."""
        entropy, words, nonzero, selected, share, penalty = means
        return torch.stack([nonzero / words, entropy + self.split_penalty(selected / words, share, penalty)])


class Reinforce(SelectionObjective):
    """REINFORCE without a baseline: CE_i + (CE_i + λ |share_i - rate|) Σ_t log p(z_t), the bracket held constant.

    The share is that of the text (`code`), which rewards each text for its own selection, or that of all words of the
    batch (`paper`).
    """

    def selected(self, output: Any) -> torch.Tensor:
        """The drawn z."""
        return output.z

    def losses(self, output: Any, row: Columns) -> torch.Tensor:
        """The loss [B], whose expected gradient is that of the expected cost."""
        entropy = super().losses(output, row)
        selected, words = output.z.sum(1), output.words.sum(1)
        share = selected / words if self.penalty == "code" else selected.sum() / words.sum()
        return entropy + (entropy.detach() + self.rate_penalty(share)) * output.log_probability

    def split_penalty(self, ratio: torch.Tensor, share: torch.Tensor, penalty: torch.Tensor) -> torch.Tensor:
        """The mean penalty of the texts (`code`), or the penalty of the share over all words (`paper`)."""
        return penalty if self.penalty == "code" else self.rate_penalty(ratio)


class Relaxed(SelectionObjective):
    """CE_i + λ |share - rate| with the expected share: the mean of P(z > 0) over all words of the batch (`paper`), or
    the mean over texts of their means (`code`)."""

    def selected(self, output: Any) -> torch.Tensor:
        """P(z > 0)."""
        return output.open_probability

    def losses(self, output: Any, row: Columns) -> torch.Tensor:
        """The loss [B]; the penalty is that of the batch, the same in each row."""
        selected, words = output.open_probability.sum(1), output.words.sum(1)
        share = selected.sum() / words.sum() if self.penalty == "paper" else (selected / words).mean()
        return super().losses(output, row) + self.rate_penalty(share)

    def split_penalty(self, ratio: torch.Tensor, share: torch.Tensor, penalty: torch.Tensor) -> torch.Tensor:
        """The penalty of the share over all words (`paper`), or of the mean share of the texts (`code`)."""
        return self.rate_penalty(ratio if self.penalty == "paper" else share)
