"""What a measure returns, and which output of the model it explains."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import torch

from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator

Target = Literal["predicted", "gold"] | int
Function = Literal["probability", "logit"]
Measure = TypeVar("Measure", bound=Callable[..., Any])


@dataclass(frozen=True)
class Importances:
    """One score per word of each instance. `target[i]` is the class explained, or None if the measure has none.

    A measure may also tell of the words of second texts, and of the special tokens, those of the text first; and, if
    its scores should sum to a change of the output, by how much they miss it, `residual`.
    """

    scores: list[np.ndarray]
    target: np.ndarray | None = None
    pair: list[np.ndarray] | None = None
    specials: list[np.ndarray] | None = None
    residual: np.ndarray | None = None


# Several sets of options of one measure, computed together.
Together = Callable[[Evaluator, Instances, Sequence[Mapping[str, Any]]], list[Importances]]


def computed_by(together: Together) -> Callable[[Measure], Measure]:
    """Mark a measure whose results for several sets of options come from passes that they share."""

    def mark(measure: Measure) -> Measure:
        measure.together = together  # type: ignore[attr-defined]
        return measure

    return mark


def target_classes(target: Target, logits: torch.Tensor, labels: np.ndarray) -> torch.Tensor:
    """The class to explain in each row. logits: [B, C]; labels: [B]. Returns [B]."""
    if target == "predicted":
        return logits.argmax(dim=-1)
    if target == "gold":
        return torch.from_numpy(labels).long().to(logits.device)
    if not 0 <= int(target) < logits.shape[1]:
        raise PlumblineError(f"`target` is {target}, but the classes are 0 to {logits.shape[1] - 1}.")
    return torch.full((len(logits),), int(target), device=logits.device)


def explained_output(logits: torch.Tensor, classes: torch.Tensor, function: Function) -> torch.Tensor:
    """The number that is explained in each row [B]: a class's probability or its logit."""
    outputs = logits.softmax(dim=-1) if function == "probability" else logits
    return outputs.gather(1, classes[:, None]).squeeze(1)


def per_word(values: torch.Tensor, instances: Instances, index: np.ndarray, into: list[np.ndarray]) -> None:
    """Cut padded values [B, L] to the words of each instance, specials left out."""
    rows = values.detach().cpu().numpy()
    for row, i in zip(rows, index, strict=True):
        free = instances.maskable[i]
        into[i] = row[: len(free)][free]


class ScoreBuffer:
    """Scores of all tokens, put where they belong as batches come in any order.

    `texts` says whether those of second texts are told, `specials` whether those of special tokens are.
    """

    def __init__(self, instances: Instances, texts: Literal["first", "both"] = "both", specials: bool = True) -> None:
        self.instances = instances
        self.scores = empty_scores(instances)
        seconds = instances.pair is not None and texts == "both"
        self.pair = empty_scores(instances) if seconds else None
        self.specials = empty_scores(instances) if specials else None
        self.target = np.empty(len(instances), dtype=np.int32)

    def add(self, index: np.ndarray, batch: Batch, values: torch.Tensor, classes: torch.Tensor | None = None) -> None:
        """Take the values [B, T] of a batch, of which `index` [B] are the positions, and the classes [B] explained."""
        rows = values.detach().cpu().numpy().astype(np.float32)
        width = batch.ids.shape[1]
        for row, i in zip(rows, index, strict=True):
            words = self.instances.maskable[i]
            own = row[: len(words)]
            self.scores[i] = own[words]
            others = [own[~words]]
            if self.pair is not None and self.instances.pair is not None:
                seconds = row[width : width + len(self.instances.pair[i])]
                there = self.instances.pair_words(i)
                self.pair[i] = seconds[there]
                others.append(seconds[~there])
            if self.specials is not None:
                self.specials[i] = np.concatenate(others)
        if classes is not None:
            self.target[index] = classes.cpu().numpy()

    def importances(self, explained: bool = True) -> Importances:
        """All that was gathered; without the class if the measure explains none."""
        return Importances(self.scores, self.target if explained else None, self.pair, self.specials)


def empty_scores(instances: Instances) -> list[np.ndarray]:
    """A place for each instance's scores."""
    return [np.empty(0, dtype=np.float32)] * len(instances)
