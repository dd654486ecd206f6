"""Erasure: does the output fall without the important words, and stay with them alone? (DeYoung et al. 2020)

Hard erasure removes the most important words of a text, or all others, or one word after another (Edin et al. 2024);
soft erasure zeroes random elements of the embeddings of all words with a probability given by their importance (Zhao &
Aletras 2023).
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from plumbline.data.masking import top_scored
from plumbline.errors import PlumblineError
from plumbline.protocols.erasure import metrics
from plumbline.protocols.erasure.erased import Removal, WholeTexts, whole_texts
from plumbline.protocols.erasure.metrics import FloatArray
from plumbline.protocols.erasure.orders import order_metrics
from plumbline.protocols.erasure.schemas import ERASURE, ERASURE_SCORES
from plumbline.protocols.erasure.soft import keep_probabilities, rescaled, soft_falls
from plumbline.protocols.explained import Explained, instance_columns, join_columns, list_column
from plumbline.registry import protocol
from plumbline.runtime.progress import shown
from plumbline.store import TableSchema

ONE_WORD = "no text has two words"
NO_FALL = "no output falls when all words are erased"
SAME_ORDERS = "no text of at most {} words has orders of its words that differ"
HARD = ("comprehensiveness", "sufficiency")
ORDERS = ("normalised_aopc", "morf_lerf")
# Each soft metric with its column of falls.
SOFT = {
    "soft_comprehensiveness": (metrics.soft_comprehensiveness, "soft_fall_without"),
    "soft_sufficiency": (metrics.soft_sufficiency, "soft_fall_alone"),
}


@protocol(
    "erasure",
    needs=["gradient"],
    variants="every",
    pixels=False,
    gpu=True,
    equation="Σ_k (p(x) - p(x without top k %)) / (|K| + 1) and Σ_k (p(x) - p(top k %)) / (|K| + 1)",
    cost="Per text and measure, two forward passes for each of `ratios`, `draws` and, word by word, each word up to "
    "`longest`; for all measures together, about `beam` · n² for n words (2ⁿ up to 8).",
    misleads="Erased texts are out of the training distribution, so a drop may be the model's reaction to that, and "
    "what is left may reveal the class: compare with `random`. Redundant words lower comprehensiveness under every "
    "measure. A model can be made for these metrics.",
    citation=[
        "DeYoung et al. (2020), ERASER: A Benchmark to Evaluate Rationalized NLP Models. ACL.",
        "Samek, Binder, Montavon, Lapuschkin & Müller (2017), Evaluating the Visualization of What a Deep Neural "
        "Network Has Learned. IEEE Transactions on Neural Networks and Learning Systems.",
        "Zhao & Aletras (2023), Incorporating Attribution Importance for Improving Faithfulness Metrics. ACL.",
        "Edin et al. (2024), Normalized AOPC: Fixing Misleading Faithfulness Metrics for Feature Attribution "
        "Explainability. arXiv:2408.08137.",
        "Hsia, Pruthi, Singh & Lipton (2023), Goodhart's Law Applies to NLP's Explanation Benchmarks. "
        "arXiv:2308.14272.",
    ],
    metrics=[
        "comprehensiveness",
        "sufficiency",
        "normalised_aopc",
        "morf_lerf",
        "soft_comprehensiveness",
        "soft_sufficiency",
    ],
    limits={"draws": [0, None], "retention": [0.001, 0.999], "longest": [0, None], "beam": [1, None]},
)
class Erasure:
    """Comprehensiveness, sufficiency and their areas over the perturbation curve, hard and soft, and the areas of
    erasing word by word.

    The output is the probability of the predicted class. Soft draws are the same for every measure. Only the first text
    of a pair is erased.

    Options:
        ratios: Percentages of a text's words that count as important, ascending, each between 0 and 100.
        removal: How words are erased: deleted, replaced by the mask token, or their vectors by padding's or zeros;
            `auto` masks if the model was trained with masks, and deletes otherwise.
        draws: Random draws per text of the soft metrics; more are slower and less noisy, and 0 disables these metrics.
        soft: Share that soft erasure keeps: the same for every measure (`equal-retention`), or as published dependent
            on how flat its scores are (`min-max`).
        retention: Share of the elements of word vectors that `equal-retention` keeps in expectation, 0.001 to 0.999.
        longest: Longest texts, in words, with `normalised_aopc`; `morf_lerf` takes at most as many steps, and 0
            disables both.
        beam: Width of the search for the best and the worst order of more than 8 words; higher is slower and more
            exact.
    """

    table: ClassVar[TableSchema] = ERASURE
    scores: ClassVar[TableSchema] = ERASURE_SCORES

    def __init__(
        self,
        *,
        ratios: list[float] = [1, 5, 10, 20, 50],  # noqa: B006
        removal: Literal["auto", "delete", "mask", "pad", "zero"] = "auto",
        draws: int = 5,
        soft: Literal["equal-retention", "min-max"] = "equal-retention",
        retention: float = 0.5,
        longest: int = 24,
        beam: int = 5,
    ) -> None:
        if not ratios or not all(0 < ratio < 100 for ratio in ratios) or sorted(set(ratios)) != ratios:
            raise PlumblineError(f"`ratios` is {ratios}; write distinct percentages between 0 and 100, ascending.")
        self.ratios, self.removal, self.draws = ratios, removal, draws
        self.soft, self.retention, self.longest, self.beam = soft, retention, longest, beam

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `erasure_scores`: one row per seed, measure and instance."""
        instances = explained.instances()
        parts: list[dict[str, np.ndarray]] = []
        trained: Removal = "delete" if explained.masking == "none" else "mask"
        removal = trained if self.removal == "auto" else self.removal
        for explanations, evaluator in zip(explained.by_seed(), explained.models(), strict=True):
            texts = instances.at(explanations.keys)
            whole = whole_texts(evaluator, texts, removal, explained.mask_id)
            parts += self._seed(whole, explanations.scores)
        return join_columns(parts)

    def _seed(self, whole: WholeTexts, measures: dict[str, list[np.ndarray]]) -> Iterator[dict[str, np.ndarray]]:
        seed, instances = whole.evaluator.seed, whole.instances
        fall_to_nothing, falls_of_soft = self._soft(whole, measures)
        orders = order_metrics(whole, measures, self.longest, self.beam)
        for measure, scores in shown(measures.items(), f"hard, seed {seed}", "measure"):
            hard_falls = dict(zip(HARD, self._hard(whole, scores), strict=True))
            yield {
                **instance_columns(seed, instances, whole.predicted),
                "measure": np.full(len(instances), measure, dtype=object),
                **{name: metrics.aopc(falls) for name, falls in hard_falls.items()},
                **{f"{name}_at": list_column(falls) for name, falls in hard_falls.items()},
                **dict(zip(ORDERS, orders[measure], strict=True)),
                "fall_to_nothing": fall_to_nothing,
                **{column: falls for (_, column), falls in zip(SOFT.values(), falls_of_soft[measure], strict=True)},
            }

    def _hard(self, whole: WholeTexts, scores: Sequence[np.ndarray]) -> FloatArray:
        """The falls [2, N, ratios] of the output without the top words and with them alone; NaN for single words."""
        words = np.array([len(row) for row in scores])
        several = np.flatnonzero(words > 1)
        falls = np.full((2, len(words), len(self.ratios)), np.nan)
        if not len(several):
            return falls
        texts, rows = whole.take(several), [row for row in scores if len(row) > 1]
        ties = texts.instances.ties(whole.evaluator.seed)
        for column, ratio in enumerate(self.ratios):
            top = top_scored(rows, metrics.count_erased(words[several], ratio), ties)
            for way, erased in enumerate((top, [~flags for flags in top])):
                falls[way, several, column] = texts.output - texts.without(erased)
        return falls

    def _soft(
        self, whole: WholeTexts, measures: dict[str, list[np.ndarray]]
    ) -> tuple[FloatArray, dict[str, FloatArray]]:
        """The fall [N] of the output without any word, and by measure the mean falls [2, N] with important words
        perturbed and with all others perturbed."""
        if not self.draws:
            nothing = np.full((2, len(whole.instances)), np.nan)
            return nothing[0], dict.fromkeys(measures, nothing)
        equal = partial(keep_probabilities, retention=self.retention)
        keep = equal if self.soft == "equal-retention" else rescaled
        return soft_falls(whole, {name: [keep(row) for row in scores] for name, scores in measures.items()}, self.draws)

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `erasure`: one per seed, measure and metric, and one per ratio of hard metrics."""
        rows = []
        for (seed, measure), group in scores.to_pandas().groupby(["seed", "measure"], sort=True, observed=True):
            summaries: list[tuple[str, float | None, dict[str, Any]]] = []
            for name in HARD:
                by_ratio = np.stack(group[f"{name}_at"].to_numpy()).T
                summaries.append((name, None, _hard_summary(group[name].to_numpy())))
                summaries += [(name, *pair) for pair in zip(self.ratios, map(_hard_summary, by_ratio), strict=True)]
            if self.longest > 1:
                reasons = zip(ORDERS, (SAME_ORDERS.format(self.longest), ONE_WORD), strict=True)
                summaries += [(name, None, _hard_summary(group[name].to_numpy(), reason)) for name, reason in reasons]
            if self.draws:
                summaries += [(name, None, _soft_summary(name, group)) for name in SOFT]
            rows += [
                {"seed": seed, "measure": measure, "metric": name, "ratio": ratio, **summary}
                for name, ratio, summary in summaries
            ]
        return pd.DataFrame(rows)


def _hard_summary(values: np.ndarray, reason: str = ONE_WORD) -> dict[str, Any]:
    """Mean and standard deviation over the texts with a value."""
    defined = values[~np.isnan(values)]
    counts = {"n": len(defined), "dropped": len(values) - len(defined)}
    if not len(defined):
        return counts | {"mean": None, "std": None, "status": "undefined", "reason": reason}
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
