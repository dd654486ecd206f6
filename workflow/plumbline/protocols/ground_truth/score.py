"""Ground truth: how much importance falls on the features that a manipulation made decisive? (Zhou et al. 2022)"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from plumbline.data.instances import ragged
from plumbline.data.manipulation import accuracy_p_value
from plumbline.errors import PlumblineError
from plumbline.protocols.bootstrap import mean_interval
from plumbline.protocols.explained import Explained, Explanations, Key, join_columns
from plumbline.protocols.ground_truth.metrics import above_region, best_found_and_auc, found_and_auc
from plumbline.protocols.ground_truth.schemas import GROUND_TRUTH, GROUND_TRUTH_SCORES
from plumbline.registry import protocol
from plumbline.store import TableSchema, read_table
from plumbline.training.schemas import PREDICTIONS

OTHER = "other"
NOT_MANIPULATED = "nothing was manipulated"
NO_WORDS = "no words"
NOT_FINITE = "importances are not finite"
ALL_ZERO = "all importances are 0"
UNDEFINED = "no instance has a share"
EVERY = "all"
# Whether importance must fall on all words of the truth, or on any of them.
ALL, ANY = "all", "any"
# Enough for two decimals; there is an interval for each seed, measure, group and class.
RESAMPLES = 999

OF_VARIANT = ["manipulation", "kind", "visibility", "level", "draw", "r"]
OF_MODEL = ["accuracy", "chance_bound"]

Region = tuple[np.ndarray, np.ndarray | None]


class GroupShares(NamedTuple):
    """The scores of one importance map. `attributed` and `region` are each group's share of the importance and of the
    words [G]; `found` and `auc` are about the truth. NaN where undefined, with a reason if all of them are."""

    attributed: np.ndarray
    region: np.ndarray
    found: float
    auc: float
    reason: str | None = None


@protocol(
    "ground_truth",
    variants="manipulated",
    least_measures=1,
    equation="Attr%(F) = Σ_{i∈F} |s_i| / Σ_i |s_i|",
    cost="No pass through the model, as stored importances are summed; but each variant of a manipulation has models "
    "of its own to train.",
    misleads="The region is the truth only if the model relies on the inserted change: read `accuracy` and "
    "`chance_bound`. A dense map that ranks the truth first has a low share: read `auc`. To find an inserted feature "
    "need not carry over to natural ones.",
    citation="Zhou, Booth, Ribeiro & Shah (2022), Do Feature Attribution Methods Correctly Attribute Features? AAAI.",
    metrics=["above_region", "found", "auc"],
)
class GroundTruth:
    """The share of importance on each group of words or pixels that a manipulation defines.

    The first group is the truth, which determines the class. An uninformed measure gives each group its share of words.
    """

    table: ClassVar[TableSchema] = GROUND_TRUTH
    scores: ClassVar[TableSchema] = GROUND_TRUTH_SCORES

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `ground_truth_scores`: one row per seed, instance, measure and group."""
        manipulation, regions, predictions = explained.manipulation(), explained.regions(), _predictions(explained)
        of_variant = {name: manipulation.get(name) for name in OF_VARIANT} | {"manipulation": manipulation.get("name")}
        names, seeds = [*manipulation.get("groups", []), OTHER], []
        for explanations in explained.by_seed():
            rows = predictions[predictions["seed"] == explanations.seed]
            accuracy = float((rows["label"] == rows["predicted_class"]).mean())
            bound = accuracy_p_value(accuracy, len(rows), manipulation["p_star"]) if manipulation else None
            labels, suffices = rows.set_index(["split", "instance"])["label"], manipulation.get("suffices", ALL)
            columns = _seed(explanations, regions, names, labels, suffices)
            constant = {**of_variant, "accuracy": accuracy, "chance_bound": bound}
            length = len(columns["seed"])
            seeds.append(columns | {name: np.full(length, value, dtype=object) for name, value in constant.items()})
        return join_columns(seeds)

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `ground_truth`: means over instances by seed, measure, group and class, and over all."""
        frame = scores.to_pandas()
        keys = ["seed", "measure", "group", "class"]
        summaries = [
            dict(zip(keys, key, strict=True)) | _summary(rows)
            for classes in (EVERY, frame["label"].astype(str))
            for key, rows in frame.assign(**{"class": classes}).groupby(keys, observed=True, sort=True)
        ]
        return pd.DataFrame(summaries).sort_values(keys, ignore_index=True)


def group_shares(scores: np.ndarray, groups: np.ndarray, count: int, suffices: str = ALL) -> GroupShares:
    """The shares of `count` groups and, last, of the words in no group. scores, groups: [n]; groups: 0 for none, else
    from 1.

    As many top words are taken as the truth has, so that precision and recall are equal; words tied for the last ranks
    count with equal probability. If `any` word of the truth `suffices`, the best one counts. `found` and `auc` are
    undefined without a word of the truth.
    """
    if len(scores) != len(groups):
        raise PlumblineError(
            f"A measure has {len(scores)} importances for {len(groups)} words or pixels; it must have one for each."
        )
    undefined = np.full(count + 1, np.nan)
    if not len(scores):
        return GroupShares(undefined, undefined, np.nan, np.nan, NO_WORDS)
    weights = np.abs(scores.astype(np.float64))
    region = _by_group(groups, np.ones_like(weights), count) / len(groups)
    total = weights.sum()
    if not np.isfinite(total) or total == 0:
        return GroupShares(undefined, region, np.nan, np.nan, NOT_FINITE if total else ALL_ZERO)
    of_truth = (best_found_and_auc if suffices == ANY else found_and_auc)(weights, groups == 1)
    return GroupShares(_by_group(groups, weights, count) / total, region, *of_truth)


def _by_group(groups: np.ndarray, weights: np.ndarray, count: int) -> np.ndarray:
    """Sums over each group [count + 1]; the words in no group come last."""
    return np.roll(np.bincount(groups, weights, minlength=count + 1), -1)


def _scores_and_groups(
    explanations: Explanations, measure: str, regions: Mapping[Key, Region]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Importances and groups of each instance, including its second text if the measure covers it."""
    pair = explanations.pair.get(measure)
    instances: list[tuple[np.ndarray, np.ndarray]] = []
    for i, (scores, key) in enumerate(zip(explanations.scores[measure], explanations.keys, strict=True)):
        groups, groups_b = regions[key] if regions else (np.zeros(len(scores), dtype=np.int8), None)
        if pair is not None:
            scores = np.concatenate([scores, pair[i]])
            groups = np.concatenate([groups, np.zeros(len(pair[i]), np.int8) if groups_b is None else groups_b])
        instances.append((scores, groups))
    return instances


def _seed(
    explanations: Explanations, regions: Mapping[Key, Region], names: Sequence[str], labels: pd.Series, suffices: str
) -> dict[str, np.ndarray]:
    """The columns of one seed that vary by row; `labels` by split and instance."""
    measures = sorted(explanations.scores)
    groups, instances = len(names), len(explanations.instance)
    by_measure = [_scores_and_groups(explanations, measure, regions) for measure in measures]
    maps = [of_measure[i] for i in range(instances) for of_measure in by_measure]
    shares = [group_shares(*scores_and_groups, groups - 1, suffices) for scores_and_groups in maps]
    reasons = np.array([map_.reason if regions else NOT_MANIPULATED for map_ in shares], dtype=object)
    of_truth = np.tile(np.arange(groups) == 0, len(maps)) & (groups > 1)

    def of_instance(values: Any) -> np.ndarray:
        return np.repeat(np.asarray(values), len(measures) * groups)

    def of_map(values: Any) -> np.ndarray:
        return np.repeat(np.asarray(values), groups)

    attributed = np.concatenate([map_.attributed for map_ in shares])
    return {
        "seed": np.full(len(attributed), explanations.seed),
        "split": of_instance(explanations.split),
        "instance": of_instance(explanations.instance),
        "label": of_instance(labels.loc[explanations.keys].to_numpy()),
        "predicted_class": of_instance(explanations.predicted_class),
        "measure": np.tile(np.repeat(np.array(measures, dtype=object), groups), instances),
        "group": np.tile(np.array(names, dtype=object), len(maps)),
        "truth": of_truth,
        # Without a manipulation all words are in no group, and its share would be a meaningless 1.
        "attributed": attributed if regions else np.full(len(attributed), np.nan),
        "region": np.concatenate([map_.region for map_ in shares]),
        "found": np.where(of_truth, of_map([map_.found for map_ in shares]), np.nan),
        "auc": np.where(of_truth, of_map([map_.auc for map_ in shares]), np.nan),
        "length": of_map(np.array([len(scores) for scores, _ in maps], dtype=np.int32)),
        "status": of_map(np.where(reasons == None, "ok", "undefined")),  # noqa: E711 - element by element
        "reason": of_map(reasons),
    }


def _predictions(explained: Explained) -> pd.DataFrame:
    """Label and predicted class of every instance of the splits, explained or not."""
    table = read_table(explained.predictions, PREDICTIONS)
    probabilities = ragged(table["probabilities"])
    frame = table.select(["seed", "split", "instance", "label"]).to_pandas()
    frame = frame.assign(predicted_class=[int(row.argmax()) for row in probabilities])
    return frame[frame["split"].isin(explained.splits)].astype({"split": str})


def _summary(rows: pd.DataFrame) -> dict[str, Any]:
    """Means over the instances where a score is defined."""
    first, attributed = rows.iloc[0], rows["attributed"].dropna().to_numpy()
    low, high = mean_interval(attributed, resamples=RESAMPLES)
    defined = bool(len(attributed))
    region = float(rows["region"].mean())
    share = float(attributed.mean()) if defined else np.nan
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
        "status": "ok" if defined else "undefined",
        "reason": None if defined else f"{UNDEFINED}: {first['reason']}",
    }


def trace_rows(
    seed: int,
    epoch: int,
    accuracy: float,
    importances: Mapping[str, list[np.ndarray]],
    groups: list[np.ndarray],
    names: list[str],
    dev_accuracy: float | None = None,
) -> list[dict[str, Any]]:
    """Rows of the table `trace_scores` for a model at one epoch: means over instances by measure and group.

    `importances` has one array per instance for each measure; `groups` the group of each word or pixel, and `names` the
    groups' names, the truth first. `accuracy` is on the explained instances.
    """
    rows = []
    for measure, maps in importances.items():
        shares = [group_shares(scores, own, len(names)) for scores, own in zip(maps, groups, strict=True)]
        attributed = np.array([map_.attributed for map_ in shares])
        defined = ~np.isnan(attributed).any(1)
        for i, group in enumerate([*names, OTHER]):
            rows.append(
                {
                    "seed": seed,
                    "epoch": epoch,
                    "measure": measure,
                    "group": group,
                    "truth": i == 0,
                    "n": int(defined.sum()),
                    "undefined": int((~defined).sum()),
                    "attributed_fraction": float(attributed[defined, i].mean()) if defined.any() else None,
                    "region_fraction": float(np.nanmean([map_.region[i] for map_ in shares])),
                    "accuracy": accuracy,
                    "dev_accuracy": dev_accuracy,
                }
            )
    return rows
