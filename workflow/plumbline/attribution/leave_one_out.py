"""Leave one out: delete a word, run the model again, see how the output moves."""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from plumbline.attribution.importances import Importances
from plumbline.data.instances import Instances, Texts
from plumbline.models.block import predicted_classes
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure
from plumbline.runtime.progress import Progress

# Perturbed texts held at a time, as a multiple of the token budget; enough to fill batches of equal length.
ROOM = 32
# Logits in float32 are good to about this, and which way they are rounded depends on the batch. Scores of a text that
# lie closer than what it makes of probabilities are one score; left as they are, equal words would be ranked by the
# rounding.
RESOLUTION = 1e-6


def chunks(instances: Instances, tokens: int) -> Iterator[np.ndarray]:
    """Positions of instances, sorted by length, cut so that their perturbed texts hold at most `tokens`, or one."""
    order = np.argsort(instances.lengths, kind="stable")
    held, start = 0, 0
    for end, i in enumerate(order):
        cost = len(instances.ids[i]) ** 2
        if held and held + cost > tokens:
            yield order[start:end]
            held, start = 0, end
        held += cost
    if start < len(order):
        yield order[start:]


def all_but_one(maskable: np.ndarray) -> np.ndarray:
    """For each word, the positions that stay when it is deleted. maskable: [L]; returns [words, L - 1]."""
    positions = np.arange(len(maskable) - 1)
    return positions + (positions >= np.flatnonzero(maskable)[:, None])


def rounding(probabilities: np.ndarray) -> np.ndarray:
    """How much of the change of an output [..., C] may be rounding: Σ_c p_c (1 - p_c) for each unit of its logits."""
    return RESOLUTION * (probabilities * (1 - probabilities)).sum(-1)


def without_rounding(scores: np.ndarray, resolution: np.ndarray) -> np.ndarray:
    """Scores [words] in which those that differ by rounding alone are equal.

    From the smallest up, a score and all that lie within its resolution above it get their mean.
    """
    order = np.argsort(scores, kind="stable")
    ascending = scores[order].astype(np.float64)
    settled = np.empty_like(scores)
    start = 0
    while start < len(scores):
        reach = ascending[start] + resolution[order[start]]
        end = max(start + 1, int(np.searchsorted(ascending, reach, side="right")))
        settled[order[start:end]] = ascending[start:end].mean()
        start = end
    return settled


def shortened(evaluator: Evaluator, instances: Instances, chunk: np.ndarray) -> np.ndarray:
    """Class probabilities [words, C] of the chunk's instances without each of their words, one after the other."""
    parts: list[np.ndarray | None] = [None] * len(chunk)
    slow = []
    for at, i in enumerate(chunk):
        # A text of one word leaves nothing to attend to: its only word has no defined score.
        if instances.maskable[i].sum() > 1:
            parts[at] = evaluator.probabilities_without(instances, i)
            slow += [at] if parts[at] is None else []
    beside = (instances.pair, instances.answers, instances.pair_maskable)
    texts = Texts([], [], *(None if column is None else [] for column in beside))
    for at in slow:
        i = chunk[at]
        kept = all_but_one(instances.maskable[i])
        texts.ids.extend(instances.ids[i][kept])
        texts.maskable.extend(instances.maskable[i][kept])
        for column, source in zip(texts[2:], beside, strict=True):
            if column is not None and source is not None:
                column.extend([source[i]] * len(kept))
    if slow:
        told = evaluator.probabilities(texts)
        ends = np.cumsum([instances.maskable[chunk[at]].sum() for at in slow])
        for at, part in zip(slow, np.split(told, ends[:-1]), strict=True):
            parts[at] = part
    classes = next((part.shape[1] for part in parts if part is not None), 1)
    return np.concatenate([np.full((1, classes), np.nan) if part is None else part for part in parts])


@measure("leave-one-out", equation="Σ_c |p_c(x) - p_c(x without t)|", range=[0, 2])
def leave_one_out(
    evaluator: Evaluator,
    instances: Instances,
    *,
    output: Literal["distribution", "predicted", "gold"] = "distribution",
    sign: Literal["absolute", "signed"] = "absolute",
) -> Importances:
    """The change in the output when a word is deleted and everything, attention too, is computed anew.

    `distribution` sums the absolute change over classes; `predicted` and `gold` take the fall of one class's
    probability, which may be `signed`. Scores that differ by rounding alone are made equal.
    """
    before = evaluator.probabilities(instances)
    targets = instances.label.astype(np.int32) if output == "gold" else predicted_classes(before)
    scores: list[np.ndarray] = [np.empty(0, dtype=np.float32)] * len(instances)
    progress = Progress(len(instances), f"seed {evaluator.seed}", "text")
    for chunk in chunks(instances, ROOM * evaluator.token_budget(instances)):
        owners = np.repeat(chunk, [instances.maskable[i].sum() for i in chunk])
        after = shortened(evaluator, instances, chunk)
        fall = before[owners] - after
        resolution = np.maximum(rounding(before[owners]), rounding(after))
        change = np.abs(fall).sum(1) if output == "distribution" else fall[np.arange(len(owners)), targets[owners]]
        change = np.abs(change) if sign == "absolute" else change
        ends = np.flatnonzero(np.diff(owners)) + 1
        for i, values, close in zip(chunk, np.split(change, ends), np.split(resolution, ends), strict=True):
            scores[i] = without_rounding(values, close).astype(np.float32)
        progress.update(len(chunk))
    progress.close()
    return Importances(scores, targets)
