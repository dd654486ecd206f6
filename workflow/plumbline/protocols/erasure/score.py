"""Erasure: does the output fall without the words that matter, and stay with them alone? (DeYoung et al. 2020)

Hard erasure takes the highest words of a text away, or all others; soft erasure thins out the vectors of all words,
each by its importance (Zhao & Aletras 2023).
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import torch

from plumbline.attribution.importances import explained_output
from plumbline.attribution.inputs import baseline_of, input_vectors, read
from plumbline.data.instances import Instances, Texts
from plumbline.data.masking import highest
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.erasure.schemas import ERASURE, ERASURE_SCORES
from plumbline.protocols.explained import Explained, Explanations, instance_columns
from plumbline.registry import metric, protocol
from plumbline.runtime.progress import shown
from plumbline.store import TableSchema

ONE_WORD = "no text has two words"
NO_FALL = "no output falls when all words are erased"
HARD = ("comprehensiveness", "sufficiency")
Removal = Literal["delete", "pad", "zero"]
FloatArray = npt.NDArray[np.float64]


@metric(
    "comprehensiveness",
    direction="higher",
    range=[-1, 1],
    unit="probability",
    equation="Σ_k (p(x) - p(x without its top k %)) / (|K| + 1)",
)
@metric(
    "sufficiency",
    direction="lower",
    range=[-1, 1],
    unit="probability",
    equation="Σ_k (p(x) - p(top k % of x)) / (|K| + 1)",
)
def aopc(falls: FloatArray) -> FloatArray:
    """The area over the perturbation curve, from the falls [..., K] at each share of words: with none it is 0."""
    return falls.sum(-1) / (falls.shape[-1] + 1)


@metric(
    "soft_comprehensiveness",
    direction="higher",
    range=[0, None],
    unit="share",
    equation="Σ_x max(0, p(x) - p(x')) / Σ_x (p(x) - p(0)), x'_i = x_i ⊙ e, e ~ Bernoulli(1 - a_i)",
)
def soft_comprehensiveness(fall: FloatArray, whole: FloatArray) -> float:
    """How much of the fall to nothing is there once important words are thinned out, of all texts [N] together.

    Not a mean of each text's share: where the output hardly falls, a share of the fall is noise without bound. Texts
    whose output does not fall, `whole` being 0 or less, do not count; NaN if there are no others.
    """
    counted = whole > 0
    total = whole[counted].sum()
    return float(np.maximum(fall[counted], 0).sum() / total) if total > 0 else float("nan")


@metric(
    "soft_sufficiency",
    direction="higher",
    range=[None, 1],
    unit="share",
    equation="1 - Σ_x max(0, p(x) - p(x')) / Σ_x (p(x) - p(0)), x'_i = x_i ⊙ e, e ~ Bernoulli(a_i)",
)
def soft_sufficiency(fall: FloatArray, whole: FloatArray) -> float:
    """How much of the fall to nothing is spared when unimportant words are thinned out, of all texts [N] together."""
    return 1 - soft_comprehensiveness(fall, whole)


# Each soft metric with the column of falls that it is about.
SOFT = {
    "soft_comprehensiveness": (soft_comprehensiveness, "soft_fall_without"),
    "soft_sufficiency": (soft_sufficiency, "soft_fall_alone"),
}


def count_erased(words: np.ndarray, ratio: float) -> np.ndarray:
    """How many of a text's words [N] are its top `ratio` percent: one at least, and never all. 0 if it has only one."""
    return np.minimum(np.maximum(np.ceil(words * ratio / 100 - 1e-9), 1), words - 1).astype(np.int64)


def rescaled(scores: np.ndarray) -> np.ndarray:
    """Importances [words] between 0 and 1, the lowest and the highest of the text; ½ if all are equal."""
    known = np.nan_to_num(scores.astype(np.float64), nan=-np.inf)
    known = np.where(np.isneginf(known), known[np.isfinite(known)].min(initial=0.0), known)
    spread = np.ptp(known) if len(known) else 0.0
    return (known - known.min()) / spread if spread > 0 else np.full(len(known), 0.5)


@protocol(
    "erasure",
    needs=["gradient"],
    variants="every",
    pixels=False,
    gpu=True,
    equation="Σ_k (p(x) - p(x without top k %)) / (|K| + 1) and Σ_k (p(x) - p(top k %)) / (|K| + 1)",
    limits={"draws": [0, None]},
)
class Erasure:
    """Comprehensiveness, sufficiency and their areas over the perturbation curve, hard and soft.

    The output is the probability of the predicted class. `ratios` are the shares of words, in percent, that count as
    important; they are deleted, or get the vector of padding or zeros. Soft erasure takes the mean fall of `draws`, the
    same for every measure; 0 leaves it out. Of two texts only the first is erased.
    """

    table: ClassVar[TableSchema] = ERASURE
    scores: ClassVar[TableSchema] = ERASURE_SCORES

    def __init__(
        self,
        *,
        ratios: list[float] = [1, 5, 10, 20, 50],  # noqa: B006
        removal: Literal["delete", "pad", "zero"] = "delete",
        draws: int = 5,
    ) -> None:
        if not ratios or not all(0 < ratio < 100 for ratio in ratios) or sorted(set(ratios)) != ratios:
            raise PlumblineError(f"`ratios` is {ratios}; write percentages between 0 and 100, each once and rising.")
        self.ratios, self.removal, self.draws = ratios, removal, draws

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `erasure_scores`: one row per seed, measure and instance."""
        instances = explained.instances()
        numbered = zip(instances.split.tolist(), instances.instance.tolist(), strict=True)
        place = {key: i for i, key in enumerate(numbered)}
        parts: list[dict[str, np.ndarray]] = []
        for explanations, evaluator in zip(explained.by_seed(), explained.models(), strict=True):
            keys = zip(explanations.split.tolist(), explanations.instance.tolist(), strict=True)
            parts += self._seed(evaluator, instances.take([place[key] for key in keys]), explanations)
        return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}

    def _seed(
        self, evaluator: Evaluator, instances: Instances, explanations: Explanations
    ) -> Iterator[dict[str, np.ndarray]]:
        measures = explanations.scores
        before = evaluator.probabilities(instances)
        predicted = before.argmax(1).astype(np.int32)
        output = _of_class(before, predicted)
        whole, soft = self._soft(evaluator, instances, measures, predicted, output)
        for measure, scores in shown(measures.items(), f"hard, seed {evaluator.seed}", "measure"):
            falls = self._hard(evaluator, instances, scores, predicted, output)
            yield {
                **instance_columns(evaluator.seed, instances, predicted),
                "measure": np.full(len(instances), measure, dtype=object),
                **{name: aopc(fall) for name, fall in zip(HARD, falls, strict=True)},
                **{f"{name}_at": _rows(fall) for name, fall in zip(HARD, falls, strict=True)},
                "fall_to_nothing": whole,
                **{column: falls for (_, column), falls in zip(SOFT.values(), soft[measure], strict=True)},
            }

    def _hard(
        self,
        evaluator: Evaluator,
        instances: Instances,
        scores: Sequence[np.ndarray],
        predicted: np.ndarray,
        output: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """The falls [N, ratios] of the output without the highest words and with them alone; NaN for single words."""
        words = np.array([len(row) for row in scores])
        several = np.flatnonzero(words > 1)
        found = np.full((2, len(instances), len(self.ratios)), np.nan)
        if not len(several):
            return found[0], found[1]
        texts, rows = instances.take(several), [row for row in scores if len(row) > 1]
        ties = texts.ties(evaluator.seed)
        for column, ratio in enumerate(self.ratios):
            top = highest(rows, count_erased(words[several], ratio), ties)
            for way, gone in enumerate((top, [~flags for flags in top])):
                after = without(evaluator, texts, gone, self.removal)
                found[way, several, column] = output[several] - _of_class(after, predicted[several])
        return found[0], found[1]

    def _soft(
        self,
        evaluator: Evaluator,
        instances: Instances,
        measures: dict[str, list[np.ndarray]],
        predicted: np.ndarray,
        output: FloatArray,
    ) -> tuple[FloatArray, dict[str, FloatArray]]:
        """The fall [N] of the output without any word, and the mean falls [2, N] of each measure with important words
        thinned out and with all others."""
        whole, found = np.full(len(instances), np.nan), {m: np.full((2, len(instances)), np.nan) for m in measures}
        if not self.draws:
            return whole, found
        kept = {measure: [rescaled(row) for row in scores] for measure, scores in measures.items()}

        def work(index: np.ndarray, batch: Batch) -> None:
            with torch.no_grad():
                vectors = input_vectors(evaluator.model, batch)
                free = torch.nn.functional.pad(batch.attendable, (0, vectors.shape[1] - batch.attendable.shape[1]))
                classes = torch.from_numpy(predicted[index]).long().to(vectors.device)

                def falls(keep: torch.Tensor) -> FloatArray:
                    logits = read(evaluator.model, batch, vectors * keep).logits
                    return output[index] - explained_output(logits, classes, "probability").double().cpu().numpy()

                whole[index] = falls(~free[..., None])
                share = {measure: _spread(free, [rows[i] for i in index]) for measure, rows in kept.items()}
                streams = [instances.generator(int(i), evaluator.seed) for i in index]
                told = {measure: np.zeros((2, len(index))) for measure in measures}
                for _ in range(self.draws):
                    uniform = _uniform(free, streams, vectors)
                    for measure, important in share.items():
                        told[measure] += [falls(uniform < keep[..., None]) for keep in (1 - important, important)]
            for measure, values in told.items():
                found[measure][:, index] = values / self.draws

        evaluator.each(instances, work)
        return whole, found

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `erasure`: one per seed, measure and metric, and of hard ones per ratio too."""
        rows = []
        for (seed, measure), group in scores.to_pandas().groupby(["seed", "measure"], sort=True, observed=True):
            found: list[tuple[str, float | None, dict[str, Any]]] = []
            for name in HARD:
                at = np.stack(group[f"{name}_at"].to_numpy())
                found.append((name, None, _mean(group[name].to_numpy())))
                found += [(name, ratio, _mean(at[:, column])) for column, ratio in enumerate(self.ratios)]
            for name in SOFT if self.draws else ():
                found.append((name, None, _soft_summary(name, group)))
            rows += [
                {"seed": seed, "measure": measure, "metric": name, "ratio": ratio, **summary}
                for name, ratio, summary in found
            ]
        return pd.DataFrame(rows)


def without(evaluator: Evaluator, texts: Instances, gone: Sequence[np.ndarray], removal: Removal) -> np.ndarray:
    """Class probabilities [N, C] of texts without some of their words, flagged in `gone`."""
    stay = [free.copy() for free in texts.maskable]
    for kept, free, flags in zip(stay, texts.maskable, gone, strict=True):
        kept[free] = ~flags
        kept[~free] = True
    if removal == "delete":
        ids, maskable = (
            [row[kept] for row, kept in zip(column, stay, strict=True)] for column in (texts.ids, texts.maskable)
        )
        return evaluator.probabilities(Texts(ids, maskable, texts.pair, texts.answers, texts.pair_maskable))
    found: dict[str, np.ndarray] = {}

    def work(index: np.ndarray, batch: Batch) -> None:
        with torch.no_grad():
            vectors, nothing = input_vectors(evaluator.model, batch), baseline_of(evaluator.model, batch, removal)
            kept = torch.ones(vectors.shape[:2], dtype=torch.bool)
            for row, i in enumerate(index):
                kept[row, : len(stay[i])] = torch.from_numpy(stay[i])
            mixed = torch.where(kept.to(vectors.device)[..., None], vectors, nothing)
            told = read(evaluator.model, batch, mixed).logits.softmax(-1).cpu().numpy()
        found.setdefault("rows", np.empty((len(texts), told.shape[1]), dtype=np.float32))[index] = told

    evaluator.each(texts, work)
    return found["rows"]


def _of_class(probabilities: np.ndarray, classes: np.ndarray) -> FloatArray:
    return probabilities[np.arange(len(classes)), classes].astype(np.float64)


def _spread(free: torch.Tensor, rows: Sequence[np.ndarray]) -> torch.Tensor:
    """One number per word laid out where the words are, [B, T]; 1 elsewhere."""
    spread = torch.ones(free.shape)
    spread[free.cpu()] = torch.from_numpy(np.concatenate([*rows]).astype(np.float32))
    return spread.to(free.device)


def _uniform(free: torch.Tensor, streams: Sequence[np.random.Generator], vectors: torch.Tensor) -> torch.Tensor:
    """Numbers between 0 and 1 for those of the words' vectors, each text's from its own stream; below 0 elsewhere."""
    drawn = torch.full_like(vectors, -1)
    for row, (stream, words) in enumerate(zip(streams, free, strict=True)):
        numbers = stream.random((int(words.sum()), vectors.shape[-1]), dtype=np.float32)
        drawn[row, words] = torch.from_numpy(numbers).to(vectors.device, vectors.dtype)
    return drawn


def _rows(values: FloatArray) -> np.ndarray:
    """The rows of a matrix as a column of lists."""
    column = np.empty(len(values), dtype=object)
    column[:] = [*values]
    return column


def _mean(values: np.ndarray) -> dict[str, Any]:
    """Mean and standard deviation over texts that have a value."""
    known = values[~np.isnan(values)]
    if not len(known):
        return {"n": 0, "dropped": len(values), "mean": None, "std": None, "status": "undefined", "reason": ONE_WORD}
    told = {"n": len(known), "dropped": len(values) - len(known), "mean": known.mean(), "std": known.std()}
    return told | {"status": "ok", "reason": None}


def _soft_summary(name: str, rows: pd.DataFrame) -> dict[str, Any]:
    """A soft metric of all texts together; its deviation is that of what each text adds to it, to first order."""
    metric_of, column = SOFT[name]
    whole, fall = (rows[key].to_numpy(dtype=np.float64) for key in ("fall_to_nothing", column))
    counted = whole > 0
    told = {"n": int(counted.sum()), "dropped": int((~counted).sum())}
    if not counted.any():
        return told | {"mean": None, "std": None, "status": "undefined", "reason": NO_FALL}
    share = soft_comprehensiveness(fall, whole)
    parts = (np.maximum(fall[counted], 0) - share * whole[counted]) / whole[counted].mean()
    return told | {"mean": metric_of(fall, whole), "std": parts.std(), "status": "ok", "reason": None}
