"""Ground truth: how much importance falls where a manipulation has put what decides? (Zhou et al. 2022)"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from plumbline.data.instances import ragged
from plumbline.data.manipulation import chance_of
from plumbline.errors import PlumblineError
from plumbline.protocols.bootstrap import mean_interval
from plumbline.protocols.explained import Explained, Explanations, Key
from plumbline.protocols.ground_truth.schemas import GROUND_TRUTH, GROUND_TRUTH_SCORES
from plumbline.registry import metric, protocol
from plumbline.store import TableSchema, read_table
from plumbline.training.performance import midranks
from plumbline.training.schemas import PREDICTIONS

OTHER = "other"
NOT_MANIPULATED = "nothing was manipulated"
NO_WORDS = "no words"
NOT_FINITE = "importances are not finite"
ALL_ZERO = "all importances are 0"
UNDEFINED = "no instance has a share"
EVERY = "all"
# Enough for two decimals; every seed, measure, group and class has an interval.
RESAMPLES = 999

OF_VARIANT = ["manipulation", "kind", "visibility", "level", "draw", "r"]
OF_MODEL = ["accuracy", "chance_bound"]

Region = tuple[np.ndarray, np.ndarray | None]


class GroupShares(NamedTuple):
    """What one map of importances says. `attributed` and `region` are the shares of each group [G] in the importance
    and in the words; `found` and `auc` are about the truth. NaN where one is not defined, with a reason if none is."""

    attributed: np.ndarray
    region: np.ndarray
    found: float
    auc: float
    reason: str | None = None


@protocol("ground_truth", variants="manipulated", least_measures=1, equation="Attr%(F) = Σ_{i∈F} |s_i| / Σ_i |s_i|")
class GroundTruth:
    """The share of importance that falls on each group of words or pixels that a manipulation tells apart.

    The first group is the truth, which decides the class. A measure that knows nothing gives each its share of words.
    """

    table: ClassVar[TableSchema] = GROUND_TRUTH
    scores: ClassVar[TableSchema] = GROUND_TRUTH_SCORES

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `ground_truth_scores`: one row per seed, instance, measure and group."""
        truth, regions, predictions = explained.truth(), explained.regions(), _predictions(explained)
        of_variant = {name: truth.get(name) for name in OF_VARIANT} | {"manipulation": truth.get("name")}
        names, seeds = [*truth.get("groups", []), OTHER], []
        for explanations in explained.by_seed():
            told = predictions[predictions["seed"] == explanations.seed]
            accuracy = float((told["label"] == told["predicted_class"]).mean())
            bound = chance_of(accuracy, len(told), truth["p_star"]) if truth else None
            columns = _seed(explanations, regions, names, told.set_index(["split", "instance"])["label"])
            same = {**of_variant, "accuracy": accuracy, "chance_bound": bound}
            rows = len(columns["seed"])
            seeds.append(columns | {name: np.full(rows, value, dtype=object) for name, value in same.items()})
        return {column: np.concatenate([columns[column] for columns in seeds]) for column in seeds[0]}

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `ground_truth`: means over instances by seed, measure, group and class, and over all."""
        frame = scores.to_pandas()
        keys = ["seed", "measure", "group", "class"]
        classes = [frame.assign(**{"class": EVERY}), frame.assign(**{"class": frame["label"].astype(str)})]
        parts = [
            dict(zip(keys, key, strict=True)) | _summary(rows)
            for told in classes
            for key, rows in told.groupby(keys, observed=True, sort=True)
        ]
        return pd.DataFrame(parts).sort_values(keys, ignore_index=True)


def group_shares(scores: np.ndarray, groups: np.ndarray, count: int) -> GroupShares:
    """The shares of `count` groups and, last, of what is in none. scores, groups: [n]; groups: 0 for none, else from 1.

    The top words are as many as there are words of the truth, so that precision and recall are one number; of words
    that tie for the last places, each has the same chance. Without a word of the truth nothing can be found.
    """
    if len(scores) != len(groups):
        raise PlumblineError(f"A measure tells {len(scores)} importances of {len(groups)} words or pixels.")
    nothing = np.full(count + 1, np.nan)
    if not len(scores):
        return GroupShares(nothing, nothing, np.nan, np.nan, NO_WORDS)
    weights = np.abs(scores.astype(np.float64))
    region = _by_group(groups, np.ones_like(weights), count) / len(groups)
    total = weights.sum()
    if not np.isfinite(total) or total == 0:
        return GroupShares(nothing, region, np.nan, np.nan, NOT_FINITE if total else ALL_ZERO)
    truth = groups == 1
    return GroupShares(_by_group(groups, weights, count) / total, region, *_found_and_auc(weights, truth))


@metric(
    "above_region",
    direction="higher",
    range=[None, 1],
    unit="share",
    equation="(Attr%(F) - |F| / n) / (1 - |F| / n); 0 is what equal importances give, 1 all on the truth",
)
def above_region(share: float, region: float) -> float:
    """The share of importance on a region relative to the region's own share of the words, so that regions of other
    sizes compare; NaN for a region that is all."""
    return (share - region) / (1 - region) if region < 1 else float("nan")


def _by_group(groups: np.ndarray, weights: np.ndarray, count: int) -> np.ndarray:
    """Sums over each group [count + 1]; that of no group comes last."""
    return np.roll(np.bincount(groups, weights, minlength=count + 1), -1)


def _found_and_auc(weights: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """The share of the truth among as many top words, and the chance that a word of it is above another one."""
    n, k = len(weights), int(truth.sum())
    if k == 0:
        return np.nan, np.nan
    least = np.partition(weights, n - k)[n - k]
    above, tied = weights > least, weights == least
    found = (above & truth).sum() + (k - above.sum()) * (tied & truth).sum() / tied.sum()
    if k == n:
        return float(found / k), np.nan
    ranks = midranks(weights)[truth].sum()
    return float(found / k), float((ranks - k * (k + 1) / 2) / (k * (n - k)))


def _told(
    explanations: Explanations, measure: str, regions: Mapping[Key, Region]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Importances and groups of each instance: those of the second text too, if the measure tells them."""
    pair = explanations.pair.get(measure)
    found: list[tuple[np.ndarray, np.ndarray]] = []
    keys = zip(explanations.split.tolist(), explanations.instance.tolist(), strict=True)
    for place, (scores, key) in enumerate(zip(explanations.scores[measure], keys, strict=True)):
        first, second = regions[key] if regions else (np.zeros(len(scores), dtype=np.int8), None)
        if pair is None:
            found.append((scores, first))
            continue
        beside = np.zeros(len(pair[place]), dtype=np.int8) if second is None else second
        found.append((np.concatenate([scores, pair[place]]), np.concatenate([first, beside])))
    return found


def _seed(
    explanations: Explanations, regions: Mapping[Key, Region], names: Sequence[str], labels: pd.Series
) -> dict[str, np.ndarray]:
    """The columns of one seed that differ from row to row; `labels` by split and instance."""
    measures = sorted(explanations.scores)
    groups, instances = len(names), len(explanations.instance)
    told = {measure: _told(explanations, measure, regions) for measure in measures}
    each = [group_shares(*told[measure][i], groups - 1) for i in range(instances) for measure in measures]
    lengths = [len(told[measure][i][0]) for i in range(instances) for measure in measures]
    reasons = np.array([one.reason if regions else NOT_MANIPULATED for one in each], dtype=object)
    of_truth = np.tile(np.arange(groups) == 0, len(each)) & (groups > 1)
    key = list(zip(explanations.split.tolist(), explanations.instance.tolist(), strict=True))

    def of_instance(values: Any) -> np.ndarray:
        return np.repeat(np.asarray(values), len(measures) * groups)

    def of_map(values: Any) -> np.ndarray:
        return np.repeat(np.asarray(values), groups)

    attributed = np.concatenate([one.attributed for one in each])
    return {
        "seed": np.full(len(attributed), explanations.seed),
        "split": of_instance(explanations.split),
        "instance": of_instance(explanations.instance),
        "label": of_instance(labels.loc[key].to_numpy()),
        "predicted_class": of_instance(explanations.predicted_class),
        "measure": np.tile(np.repeat(np.array(measures, dtype=object), groups), instances),
        "group": np.tile(np.array(names, dtype=object), len(each)),
        "truth": of_truth,
        # Without groups all importance would fall on what is in none, which says nothing.
        "attributed": attributed if regions else np.full(len(attributed), np.nan),
        "region": np.concatenate([one.region for one in each]),
        "found": np.where(of_truth, of_map([one.found for one in each]), np.nan),
        "auc": np.where(of_truth, of_map([one.auc for one in each]), np.nan),
        "length": of_map(np.array(lengths, dtype=np.int32)),
        "status": of_map(np.where(reasons == None, "ok", "undefined")),  # noqa: E711 - element by element
        "reason": of_map(reasons),
    }


def _predictions(explained: Explained) -> pd.DataFrame:
    """Label and predicted class of every instance of the splits, which may be more than were explained."""
    table = read_table(explained.predictions, PREDICTIONS)
    probabilities = ragged(table["probabilities"])
    frame = table.select(["seed", "split", "instance", "label"]).to_pandas()
    frame = frame.assign(predicted_class=[int(row.argmax()) for row in probabilities])
    return frame[frame["split"].isin(explained.splits)].astype({"split": str})


def _summary(rows: pd.DataFrame) -> dict[str, Any]:
    """Means over instances; what is not defined does not count."""
    first, attributed = rows.iloc[0], rows["attributed"].dropna().to_numpy()
    low, high = mean_interval(attributed, resamples=RESAMPLES)
    here = bool(len(attributed))
    region = float(rows["region"].mean())
    share = float(attributed.mean()) if here else np.nan
    return {
        "truth": bool(first["truth"]),
        **{name: first[name] for name in (*OF_VARIANT, *OF_MODEL)},
        "n": len(attributed),
        "undefined": len(rows) - len(attributed),
        "attributed_fraction": share,
        "ci_low": low,
        "ci_high": high,
        "region_fraction": region,
        "above_region": above_region(share, region),
        "found": rows["found"].mean(),
        "auc": rows["auc"].mean(),
        "status": "ok" if here else "undefined",
        "reason": None if here else f"{UNDEFINED}: {first['reason']}",
    }


def trace_rows(
    seed: int,
    epoch: int,
    accuracy: float,
    told: Mapping[str, list[np.ndarray]],
    groups: list[np.ndarray],
    names: list[str],
    dev_accuracy: float | None = None,
) -> list[dict[str, Any]]:
    """Rows of the table `trace_scores` about a model at one epoch: for each measure and group, means over instances.

    `told` has each measure's importances, one array per instance; `groups` the group of each word or pixel likewise,
    and `names` those of the groups, the truth first. `accuracy` is on the instances that are explained.
    """
    rows = []
    for measure, maps in told.items():
        each = [group_shares(scores, of, len(names)) for scores, of in zip(maps, groups, strict=True)]
        attributed = np.array([one.attributed for one in each])
        defined = ~np.isnan(attributed).any(1)
        for place, group in enumerate([*names, OTHER]):
            rows.append(
                {
                    "seed": seed,
                    "epoch": epoch,
                    "measure": measure,
                    "group": group,
                    "truth": place == 0,
                    "n": int(defined.sum()),
                    "undefined": int((~defined).sum()),
                    "attributed_fraction": float(attributed[defined, place].mean()) if defined.any() else None,
                    "region_fraction": float(np.nanmean([one.region[place] for one in each])),
                    "accuracy": accuracy,
                    "dev_accuracy": dev_accuracy,
                }
            )
    return rows
