"""Words erased one after another: the curves of a measure's order, and the bounds of the area over all orders.

The last step, without any word, is the same for every order, so it is never run: some models need a word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from plumbline.attribution.leave_one_out import chunks, rounding_error
from plumbline.data.masking import word_ranks
from plumbline.protocols.erasure import metrics
from plumbline.protocols.erasure.erased import WholeTexts
from plumbline.protocols.erasure.metrics import FloatArray

# Up to this many words the bounds are exact: all sets of words are run.
EXACT = 8
# About as many tokens are run in one step of all texts that are searched together; bounds the memory of the host.
TOKENS = 2**20


def order_metrics(
    whole: WholeTexts, measures: Mapping[str, Sequence[np.ndarray]], longest: int, beam: int
) -> dict[str, FloatArray]:
    """By measure the normalised AOPC and the area between curves [2, N]; NaN for texts that have none."""
    found = np.full((len(measures), 2, len(whole.instances)), np.nan)
    several = np.flatnonzero([free.sum() > 1 for free in whole.instances.maskable])
    if longest > 1 and len(several):
        ties = whole.instances.ties(whole.evaluator.seed)
        ranks = [word_ranks(scores, ties) for scores in measures.values()]
        for chunk in chunks(whole.instances.take(several), TOKENS // (2 * max(beam, len(measures)))):
            texts = several[chunk]
            of_texts = [np.array([rows[i] for rows in ranks]) for i in texts]
            found[..., texts] = np.transpose(_chunk_metrics(whole.take(texts), of_texts, longest, beam), (1, 2, 0))
    return dict(zip(measures, found, strict=True))


def _chunk_metrics(whole: WholeTexts, ranks: Sequence[np.ndarray], longest: int, beam: int) -> list[FloatArray]:
    """Both metrics [measures, 2] of each text, from the ranks [measures, words] of its words."""
    outputs = ErasedOutputs(whole)
    sets = [curve_sets(rows, longest) for rows in ranks]
    flat = outputs.of(range(len(sets)), [rows.reshape(-1, rows.shape[-1]) for rows in sets])
    curves = [rows.reshape(own.shape[:-1]) for rows, own in zip(flat, sets, strict=True)]
    short = [i for i, rows in enumerate(ranks) if rows.shape[1] <= longest]
    bounds = dict(zip(short, total_bounds(outputs, short, beam), strict=True))
    # Sums of outputs that differ by less are equal but for rounding.
    rounding = rounding_error(np.stack([whole.output, 1 - whole.output], axis=-1))
    found = []
    for i, curve in enumerate(curves):
        normalised = np.full(len(curve), np.nan)
        if i in bounds:
            totals = curve.sum(-1)
            ends = np.append(totals, bounds[i])
            if np.ptp(ends) > rounding[i] * ranks[i].shape[1]:
                normalised = metrics.normalised_aopc(totals[:, 0], ends.min(), ends.max())
        found.append(np.stack([normalised, metrics.morf_lerf(curve[:, 0], curve[:, 1])], axis=1))
    return found


def curve_sets(ranks: np.ndarray, longest: int) -> np.ndarray:
    """The words [measures, 2, steps, words] that are erased at each step but the last, the most relevant first and the
    least relevant first. ranks: [measures, words]; there are as many steps as words or, in longer texts, `longest`."""
    words = ranks.shape[1]
    steps = min(words, longest)
    counts = np.ceil(np.arange(1, steps) * words / steps).astype(np.int64)[:, None]
    return np.stack([ranks[:, None] < counts, ranks[:, None] >= words - counts], axis=1)


class ErasedOutputs:
    """The output of texts without sets of their words, each of which runs once."""

    def __init__(self, whole: WholeTexts) -> None:
        self._whole = whole
        self._known: dict[tuple[int, bytes], float] = {}
        self.words = [int(free.sum()) for free in whole.instances.maskable]

    def of(self, texts: Sequence[int], sets: Sequence[np.ndarray]) -> list[FloatArray]:
        """The outputs [sets] of texts without each of their sets, flags [sets, words]."""
        keys = [[(i, flags.tobytes()) for flags in rows] for i, rows in zip(texts, sets, strict=True)]
        missing = list(dict.fromkeys(key for rows in keys for key in rows if key not in self._known))
        if missing:
            erased = [np.frombuffer(flags, dtype=bool) for _, flags in missing]
            outputs = self._whole.take([i for i, _ in missing]).without(erased)
            self._known.update(zip(missing, outputs.tolist(), strict=True))
        return [np.array([self._known[key] for key in rows]) for rows in keys]


@dataclass
class Beam:
    """Sets [sets, words] of erased words of a text with the lowest totals [sets] of outputs over all orders that lead
    to them; with `sign` -1, the highest."""

    text: int
    sign: int
    sets: np.ndarray
    totals: FloatArray

    def grow(self) -> None:
        """Add each word to each set; of the ways to the same set the lowest total counts."""
        kept = ~self.sets
        grown = (self.sets[:, None] | np.eye(self.sets.shape[1], dtype=bool))[kept]
        totals = np.repeat(self.totals, kept.sum(1))
        self.sets, place = np.unique(grown, axis=0, return_inverse=True)
        self.totals = np.full(len(self.sets), np.inf)
        np.minimum.at(self.totals, place.reshape(-1), totals)

    def prune(self, outputs: FloatArray, width: int) -> None:
        """Add the outputs [sets] of this step and keep the best sets."""
        self.totals += self.sign * outputs
        best = np.argsort(self.totals, kind="stable")[:width]
        self.sets, self.totals = self.sets[best], self.totals[best]


def total_bounds(outputs: ErasedOutputs, texts: Sequence[int], beam: int) -> list[tuple[float, float]]:
    """The lowest and the highest sum of a text's outputs after each step but the last, over all orders of its words.

    Nothing is pruned in texts of up to EXACT words: the sum over an order's steps is that of its sets, so the best way
    to a set is the best way to one of its subsets and one word more. In longer texts it is a beam search.
    """
    words = outputs.words
    beams = [Beam(i, sign, np.zeros((1, words[i]), dtype=bool), np.zeros(1)) for i in texts for sign in (1, -1)]
    for step in range(1, max((words[i] for i in texts), default=0)):
        growing = [one for one in beams if words[one.text] > step]
        for one in growing:
            one.grow()
        values = outputs.of([one.text for one in growing], [one.sets for one in growing])
        for one, found in zip(growing, values, strict=True):
            one.prune(found, len(found) if words[one.text] <= EXACT else beam)
    ends = [one.sign * float(one.totals.min()) for one in beams]
    return list(zip(ends[::2], ends[1::2], strict=True))
