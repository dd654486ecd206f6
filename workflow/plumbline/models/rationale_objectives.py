"""What models that select words learn: the class, and to select about as many words as they are asked to.

Both objectives tell of held-out rows the share of all words that is selected, and a loss without the part that chance
has in training: mean cross entropy + λ |share - rate|, with the share that the penalty counts.
"""

from collections.abc import Mapping
from typing import Any, Literal

import torch

from plumbline.errors import PlumblineError
from plumbline.models.objectives import Classification, Row


class Selecting(Classification):
    """The class, and a penalty of `strength` times the distance of a share of words from `rate`."""

    told = ("selection_rate", "loss")

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

    def reached(self, told: Mapping[Any, float]) -> bool:
        """Whether dev is classified well enough and about as many of its words are selected as asked for."""
        accuracy, rate = (told.get(("dev", metric), float("nan")) for metric in ("accuracy", "selection_rate"))
        return accuracy >= self.stop_accuracy and abs(rate - self.rate) <= self.stop_distance

    def counted(self, output: Any) -> torch.Tensor:
        """How much of each word [B, L] the penalty counts as selected."""
        raise NotImplementedError

    def off(self, share: torch.Tensor) -> torch.Tensor:
        """The cost of a share: λ |share - rate|."""
        return self.strength * (share - self.rate).abs()

    def quantities(self, output: Any, row: Row) -> torch.Tensor:
        """Cross entropy, words, words selected, what the penalty counts, its share in the text, and that one's cost."""
        words, counted = output.words.sum(1), self.counted(output).sum(1)
        share = counted / words
        columns = (super().losses(output, row), words, (output.z > 0).sum(1), counted, share, self.off(share))
        return torch.stack([column.to(share.dtype) for column in columns], dim=1)

    def joined(
        self, entropy: torch.Tensor, ratio: torch.Tensor, share: torch.Tensor, cost: torch.Tensor
    ) -> torch.Tensor:
        """The loss of a split, from its means: cross entropy, what is counted of all words together, a text's share and
        its cost."""
        raise NotImplementedError

    def summary(self, means: torch.Tensor) -> torch.Tensor:
        """The share of all words that is selected, and the loss."""
        entropy, words, selected, counted, share, cost = means
        return torch.stack([selected / words, self.joined(entropy, counted / words, share, cost)])


class Rewarded(Selecting):
    """REINFORCE without a baseline: CE_i + (CE_i + λ |share_i - rate|) Σ_t log p(z_t), the bracket held constant.

    The share is the text's own (`code`), so that each text is rewarded for its own selection, or that of all words of
    the batch (`paper`).
    """

    def counted(self, output: Any) -> torch.Tensor:
        """The words that were drawn."""
        return output.z

    def losses(self, output: Any, row: Row) -> torch.Tensor:
        """The loss [B], whose slope is that of the expected cost in the mean."""
        entropy = super().losses(output, row)
        selected, words = output.z.sum(1), output.words.sum(1)
        share = selected / words if self.penalty == "code" else selected.sum() / words.sum()
        return entropy + (entropy.detach() + self.off(share)) * output.log_probability

    def joined(
        self, entropy: torch.Tensor, ratio: torch.Tensor, share: torch.Tensor, cost: torch.Tensor
    ) -> torch.Tensor:
        """The expected cost without chance."""
        return entropy + (cost if self.penalty == "code" else self.off(ratio))


class Relaxed(Selecting):
    """CE_i + λ |share - rate| with the expected share: the mean of P(z > 0) over all words of the batch (`paper`), or
    over each text's first and then over texts (`code`)."""

    def counted(self, output: Any) -> torch.Tensor:
        """The probability that a word is selected at all."""
        return output.open_probability

    def losses(self, output: Any, row: Row) -> torch.Tensor:
        """The loss [B]; the penalty is of the batch, and so the same in each row."""
        counted, words = output.open_probability.sum(1), output.words.sum(1)
        share = counted.sum() / words.sum() if self.penalty == "paper" else (counted / words).mean()
        return super().losses(output, row) + self.off(share)

    def joined(
        self, entropy: torch.Tensor, ratio: torch.Tensor, share: torch.Tensor, cost: torch.Tensor
    ) -> torch.Tensor:
        """The same of a whole split."""
        return entropy + self.off(ratio if self.penalty == "paper" else share)
