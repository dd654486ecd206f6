"""Erasure: does the output fall without the important words, and stay with them alone? (DeYoung et al. 2020)

Hard erasure removes the most important words of a text, or all others; soft erasure zeroes random elements of the
embeddings of all words with a probability given by their importance (Zhao & Aletras 2023).
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

from plumbline.attribution.importances import explained_output
from plumbline.attribution.inputs import baseline_vectors, forward_vectors, input_vectors
from plumbline.data.instances import Instances, Texts
from plumbline.data.masking import top_scored
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.erasure import metrics
from plumbline.protocols.erasure.metrics import FloatArray
from plumbline.protocols.erasure.schemas import ERASURE, ERASURE_SCORES
from plumbline.protocols.explained import Explained, Explanations, instance_columns
from plumbline.registry import protocol
from plumbline.runtime.progress import shown
from plumbline.store import TableSchema

ONE_WORD = "no text has two words"
NO_FALL = "no output falls when all words are erased"
HARD = ("comprehensiveness", "sufficiency")
# Each soft metric with its column of falls.
SOFT = {
    "soft_comprehensiveness": (metrics.soft_comprehensiveness, "soft_fall_without"),
    "soft_sufficiency": (metrics.soft_sufficiency, "soft_fall_alone"),
}
Removal = Literal["delete", "pad", "zero"]


class WholeTexts(NamedTuple):
    """Texts before erasure, with the predicted class [N] and its probability [N]."""

    evaluator: Evaluator
    instances: Instances
    predicted: np.ndarray
    output: FloatArray


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

    The output is the probability of the predicted class. `ratios` are the percentages of words that count as important;
    these are deleted, or their embeddings are replaced by that of padding or by zeros. Soft erasure averages the fall
    over `draws`, which are the same for every measure; 0 disables it. Only the first text of a pair is erased.
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
            raise PlumblineError(f"`ratios` is {ratios}; write distinct percentages between 0 and 100, ascending.")
        self.ratios, self.removal, self.draws = ratios, removal, draws

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `erasure_scores`: one row per seed, measure and instance."""
        instances = explained.instances()
        parts: list[dict[str, np.ndarray]] = []
        for explanations, evaluator in zip(explained.by_seed(), explained.models(), strict=True):
            parts += self._seed(evaluator, instances.at(explanations.keys), explanations)
        return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}

    def _seed(
        self, evaluator: Evaluator, instances: Instances, explanations: Explanations
    ) -> Iterator[dict[str, np.ndarray]]:
        measures = explanations.scores
        probabilities = evaluator.probabilities(instances)
        predicted = probabilities.argmax(1).astype(np.int32)
        whole = WholeTexts(evaluator, instances, predicted, _class_probability(probabilities, predicted))
        fall_to_nothing, soft_falls = self._soft(whole, measures)
        for measure, scores in shown(measures.items(), f"hard, seed {evaluator.seed}", "measure"):
            hard_falls = dict(zip(HARD, self._hard(whole, scores), strict=True))
            yield {
                **instance_columns(evaluator.seed, instances, predicted),
                "measure": np.full(len(instances), measure, dtype=object),
                **{name: metrics.aopc(falls) for name, falls in hard_falls.items()},
                **{f"{name}_at": _list_column(falls) for name, falls in hard_falls.items()},
                "fall_to_nothing": fall_to_nothing,
                **{column: falls for (_, column), falls in zip(SOFT.values(), soft_falls[measure], strict=True)},
            }

    def _hard(self, whole: WholeTexts, scores: Sequence[np.ndarray]) -> FloatArray:
        """The falls [2, N, ratios] of the output without the top words and with them alone; NaN for single words."""
        words = np.array([len(row) for row in scores])
        several = np.flatnonzero(words > 1)
        falls = np.full((2, len(words), len(self.ratios)), np.nan)
        if not len(several):
            return falls
        texts, rows = whole.instances.take(several), [row for row in scores if len(row) > 1]
        predicted, output, ties = whole.predicted[several], whole.output[several], texts.ties(whole.evaluator.seed)
        for column, ratio in enumerate(self.ratios):
            top = top_scored(rows, metrics.count_erased(words[several], ratio), ties)
            for way, erased in enumerate((top, [~flags for flags in top])):
                after = probabilities_without(whole.evaluator, texts, erased, self.removal)
                falls[way, several, column] = output - _class_probability(after, predicted)
        return falls

    def _soft(
        self, whole: WholeTexts, measures: dict[str, list[np.ndarray]]
    ) -> tuple[FloatArray, dict[str, FloatArray]]:
        """The fall [N] of the output without any word, and by measure the mean falls [2, N] with important words
        perturbed and with all others perturbed."""
        evaluator, instances, predicted, output = whole
        fall_to_nothing = np.full(len(instances), np.nan)
        mean_falls = {measure: np.full((2, len(instances)), np.nan) for measure in measures}
        if not self.draws:
            return fall_to_nothing, mean_falls
        rescaled = {measure: [metrics.rescale(row) for row in scores] for measure, scores in measures.items()}

        def work(index: np.ndarray, batch: Batch) -> None:
            with torch.no_grad():
                vectors = input_vectors(evaluator.model, batch)
                free = torch.nn.functional.pad(batch.attendable, (0, vectors.shape[1] - batch.attendable.shape[1]))
                classes = torch.from_numpy(predicted[index]).long().to(vectors.device)

                def falls(keep: torch.Tensor) -> FloatArray:
                    logits = forward_vectors(evaluator.model, batch, vectors * keep).logits
                    return output[index] - explained_output(logits, classes, "probability").double().cpu().numpy()

                fall_to_nothing[index] = falls(~free[..., None])
                importances = {measure: _at_words(free, [rows[i] for i in index]) for measure, rows in rescaled.items()}
                generators = [instances.generator(int(i), evaluator.seed) for i in index]
                sums = {measure: np.zeros((2, len(index))) for measure in measures}
                for _ in range(self.draws):
                    uniform = _uniform(free, generators, vectors)
                    for measure, important in importances.items():
                        sums[measure] += [falls(uniform < keep[..., None]) for keep in (1 - important, important)]
            for measure, values in sums.items():
                mean_falls[measure][:, index] = values / self.draws

        evaluator.each(instances, work)
        return fall_to_nothing, mean_falls

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `erasure`: one per seed, measure and metric, and one per ratio of hard metrics."""
        rows = []
        for (seed, measure), group in scores.to_pandas().groupby(["seed", "measure"], sort=True, observed=True):
            summaries: list[tuple[str, float | None, dict[str, Any]]] = []
            for name in HARD:
                by_ratio = np.stack(group[f"{name}_at"].to_numpy()).T
                summaries.append((name, None, _hard_summary(group[name].to_numpy())))
                summaries += [(name, *pair) for pair in zip(self.ratios, map(_hard_summary, by_ratio), strict=True)]
            if self.draws:
                summaries += [(name, None, _soft_summary(name, group)) for name in SOFT]
            rows += [
                {"seed": seed, "measure": measure, "metric": name, "ratio": ratio, **summary}
                for name, ratio, summary in summaries
            ]
        return pd.DataFrame(rows)


def probabilities_without(
    evaluator: Evaluator, texts: Instances, erased: Sequence[np.ndarray], removal: Removal
) -> np.ndarray:
    """Class probabilities [N, C] of texts without the words flagged in `erased`."""
    kept = [np.ones(len(free), dtype=bool) for free in texts.maskable]
    for keep, free, flags in zip(kept, texts.maskable, erased, strict=True):
        keep[free] = ~flags
    if removal == "delete":
        ids, maskable = (
            [row[keep] for row, keep in zip(column, kept, strict=True)] for column in (texts.ids, texts.maskable)
        )
        return evaluator.probabilities(Texts(ids, maskable, texts.pair, texts.answers, texts.pair_maskable))
    probabilities: list[np.ndarray] = [np.empty(0)] * len(texts)

    def work(index: np.ndarray, batch: Batch) -> None:
        with torch.no_grad():
            vectors, baseline = input_vectors(evaluator.model, batch), baseline_vectors(evaluator.model, batch, removal)
            keep = torch.ones(vectors.shape[:2], dtype=torch.bool)
            for row, i in enumerate(index):
                keep[row, : len(kept[i])] = torch.from_numpy(kept[i])
            replaced = torch.where(keep.to(vectors.device)[..., None], vectors, baseline)
            output = forward_vectors(evaluator.model, batch, replaced).logits.softmax(-1).float().cpu().numpy()
        for row, i in enumerate(index):
            probabilities[i] = output[row]

    evaluator.each(texts, work)
    return np.stack(probabilities)


def _class_probability(probabilities: np.ndarray, classes: np.ndarray) -> FloatArray:
    return probabilities[np.arange(len(classes)), classes].astype(np.float64)


def _at_words(free: torch.Tensor, rows: Sequence[np.ndarray]) -> torch.Tensor:
    """One number per word at the positions of the words, [B, T]; 1 elsewhere."""
    values = torch.ones(free.shape)
    values[free.cpu()] = torch.from_numpy(np.concatenate([*rows]).astype(np.float32))
    return values.to(free.device)


def _uniform(free: torch.Tensor, generators: Sequence[np.random.Generator], vectors: torch.Tensor) -> torch.Tensor:
    """Uniform numbers for the embeddings of words, from one generator per text; -1 elsewhere, which is always kept."""
    drawn = torch.full_like(vectors, -1)
    for row, (generator, words) in enumerate(zip(generators, free, strict=True)):
        numbers = generator.random((int(words.sum()), vectors.shape[-1]), dtype=np.float32)
        drawn[row, words] = torch.from_numpy(numbers).to(vectors.device, vectors.dtype)
    return drawn


def _list_column(values: FloatArray) -> np.ndarray:
    """The rows of a matrix as a column of lists."""
    column = np.empty(len(values), dtype=object)
    column[:] = [*values]
    return column


def _hard_summary(values: np.ndarray) -> dict[str, Any]:
    """Mean and standard deviation over the texts with a value."""
    defined = values[~np.isnan(values)]
    counts = {"n": len(defined), "dropped": len(values) - len(defined)}
    if not len(defined):
        return counts | {"mean": None, "std": None, "status": "undefined", "reason": ONE_WORD}
    return counts | {"mean": defined.mean(), "std": defined.std(), "status": "ok", "reason": None}


def _soft_summary(name: str, rows: pd.DataFrame) -> dict[str, Any]:
    """A soft metric over all texts; its standard deviation is that of the texts' contributions, to first order."""
    metric, column = SOFT[name]
    fall_to_nothing, fall = (rows[key].to_numpy(dtype=np.float64) for key in ("fall_to_nothing", column))
    falling = fall_to_nothing > 0
    counts = {"n": int(falling.sum()), "dropped": int((~falling).sum())}
    if not falling.any():
        return counts | {"mean": None, "std": None, "status": "undefined", "reason": NO_FALL}
    share = metrics.soft_comprehensiveness(fall, fall_to_nothing)
    parts = (np.maximum(fall[falling], 0) - share * fall_to_nothing[falling]) / fall_to_nothing[falling].mean()
    return counts | {"mean": metric(fall, fall_to_nothing), "std": parts.std(), "status": "ok", "reason": None}
