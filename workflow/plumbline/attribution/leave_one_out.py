"""Leave one out: the change of the output when a word is deleted."""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from plumbline.attribution.importances import Importances, empty_scores, passes_in
from plumbline.data.instances import Instances, Texts
from plumbline.models.block import predicted_classes
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure
from plumbline.runtime.progress import Progress

# The size of a chunk of perturbed texts as a multiple of the token budget; enough to fill batches of equal length.
CHUNK_FACTOR = 32
# The accuracy of float32 logits, whose rounding depends on the batch. Scores of a text that differ by less than the
# effect on probabilities are set equal; otherwise rounding would rank equal words.
RESOLUTION = 1e-6


def chunks(instances: Instances, tokens: int) -> Iterator[np.ndarray]:
    """Positions of instances by length, in chunks of one text or with at most `tokens` in their perturbed texts."""
    order = np.argsort(instances.lengths, kind="stable")
    total, start = 0, 0
    for end, i in enumerate(order):
        cost = len(instances.ids[i]) ** 2
        if total and total + cost > tokens:
            yield order[start:end]
            total, start = 0, end
        total += cost
    if start < len(order):
        yield order[start:]


def all_but_one(maskable: np.ndarray) -> np.ndarray:
    """For each word, the positions that remain when it is deleted, [words, L - 1]. maskable: [L]."""
    positions = np.arange(len(maskable) - 1)
    return positions + (positions >= np.flatnonzero(maskable)[:, None])


def rounding_error(probabilities: np.ndarray) -> np.ndarray:
    """The rounding error of probabilities [..., C]: Σ_c p_c (1 - p_c) times that of the logits."""
    return RESOLUTION * (probabilities * (1 - probabilities)).sum(-1)


def merge_rounding_ties(scores: np.ndarray, resolution: np.ndarray) -> np.ndarray:
    """Scores [words] with those that differ by rounding alone set equal.

    In ascending order, a score and all scores within its resolution above it are replaced by their mean.
    """
    order = np.argsort(scores, kind="stable")
    ascending = scores[order].astype(np.float64)
    merged = np.empty_like(scores)
    start = 0
    while start < len(scores):
        reach = ascending[start] + resolution[order[start]]
        end = max(start + 1, int(np.searchsorted(ascending, reach, side="right")))
        merged[order[start:end]] = ascending[start:end].mean()
        start = end
    return merged


def deletion_probabilities(evaluator: Evaluator, instances: Instances, chunk: np.ndarray) -> np.ndarray:
    """Class probabilities [words, C] of the chunk's instances after the deletion of each of their words."""
    parts: list[np.ndarray | None] = [None] * len(chunk)
    slow = []
    for at, i in enumerate(chunk):
        # Without its only word a text has nothing to attend to, so the score is undefined.
        if instances.maskable[i].sum() > 1:
            parts[at] = evaluator.probabilities_without(instances, i)
            slow += [at] if parts[at] is None else []
    extra = (instances.pair, instances.answers, instances.pair_maskable)
    texts = Texts([], [], *(None if column is None else [] for column in extra))
    for at in slow:
        i = chunk[at]
        kept = all_but_one(instances.maskable[i])
        texts.ids.extend(instances.ids[i][kept])
        texts.maskable.extend(instances.maskable[i][kept])
        for column, source in zip(texts[2:], extra, strict=True):
            if column is not None and source is not None:
                column.extend([source[i]] * len(kept))
    if slow:
        probabilities = evaluator.probabilities(texts)
        ends = np.cumsum([instances.maskable[chunk[at]].sum() for at in slow])
        for at, part in zip(slow, np.split(probabilities, ends[:-1]), strict=True):
            parts[at] = part
    classes = next((part.shape[1] for part in parts if part is not None), 1)
    return np.concatenate([np.full((1, classes), np.nan) if part is None else part for part in parts])


@measure(
    "leave-one-out",
    equation="Σ_c |p_c(x) - p_c(x without t)|",
    cost="One forward pass per word of a text, so that the work grows at least with the square of its length; "
    "BiLSTMs compute once what the shortened texts share.",
    misleads="With redundant evidence each word alone is dispensable, and all score low. A text without a word may "
    "be ungrammatical, so a high score may be the model's reaction to that. In confident models all changes are "
    "tiny.",
    citation="Li, Monroe & Jurafsky (2016), Understanding Neural Networks through Representation Erasure. "
    "arXiv:1612.08220.",
    range=[0, 2],
)
@passes_in("bf16x3")
def leave_one_out(
    evaluator: Evaluator,
    instances: Instances,
    *,
    output: Literal["distribution", "predicted", "gold"] = "distribution",
    sign: Literal["absolute", "signed"] = "absolute",
) -> Importances:
    """The change of the output when a word is deleted and everything, attention included, is recomputed.

    Scores that differ by rounding alone are set equal.

    Options:
        output: `distribution` sums the absolute change over classes; `predicted` and `gold` take the decrease of that
            class's probability, which may be `signed`.
    """
    before = evaluator.probabilities(instances)
    targets = instances.label.astype(np.int32) if output == "gold" else predicted_classes(before)
    scores = empty_scores(instances)
    progress = Progress(len(instances), f"seed {evaluator.seed}", "text")
    for chunk in chunks(instances, CHUNK_FACTOR * evaluator.token_budget(instances)):
        owners = np.repeat(chunk, [instances.maskable[i].sum() for i in chunk])
        after = deletion_probabilities(evaluator, instances, chunk)
        drop = before[owners] - after
        resolution = np.maximum(rounding_error(before[owners]), rounding_error(after))
        change = np.abs(drop).sum(1) if output == "distribution" else drop[np.arange(len(owners)), targets[owners]]
        change = np.abs(change) if sign == "absolute" else change
        ends = np.flatnonzero(np.diff(owners)) + 1
        for i, values, close in zip(chunk, np.split(change, ends), np.split(resolution, ends), strict=True):
            scores[i] = merge_rounding_ties(values, close).astype(np.float32)
        progress.update(len(chunk))
    progress.close()
    return Importances(scores, targets)
