"""Sensitivity: whether a criterion of the scorecard finds a measure worse once a share of its scores is permuted, and
from how many seeds."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pandas as pd

from plumbline.protocols.bootstrap import FEWEST
from plumbline.protocols.scorecard.meta import RESOLUTION, tau_of_signs
from plumbline.protocols.scorecard.schemas import SCORECARD
from plumbline.protocols.sensitivity.schemas import LADDER, SENSITIVITY
from plumbline.registry import metric, table
from plumbline.store import TableSchema
from plumbline.tables.sources import Sources

# The level of the test, the power from which a share counts as seen, the numbers of seeds in addition to all, and the
# most subsets of seeds that are tested.
LEVEL, ENOUGH = 0.05, 0.8
SEEDS, SUBSETS = (3, 5, 9), 1000


def seed_subsets(seeds: int, count: int) -> np.ndarray:
    """All subsets of `count` of the seeds [subsets, count]; if they are more than SUBSETS, that many random ones."""
    if comb(seeds, count) <= SUBSETS:
        return np.array(list(combinations(range(seeds), count)))
    return np.random.default_rng(0).permuted(np.tile(np.arange(seeds), (SUBSETS, 1)), axis=1)[:, :count]


@metric(
    "power",
    direction="higher",
    range=[0, 1],
    unit="share",
    equation="|{S: √n d̄_S / s_S > t_0.95,n−1}| / |{S}| over sets S of n seeds, d how much worse the value is",
)
def power(worse: np.ndarray, count: int) -> float:
    """The share of subsets of `count` seeds in which a one-sided paired Student test at 5 % finds the value worse.

    worse: by how much, for each seed. NaN for fewer than FEWEST seeds.
    """
    if count < FEWEST:
        return float("nan")
    from scipy.special import stdtrit

    samples = worse[seed_subsets(len(worse), count)]
    bounds = stdtrit(count - 1, 1 - LEVEL) * samples.std(1, ddof=1) / np.sqrt(count)
    return float((samples.mean(1) > np.maximum(bounds, RESOLUTION)).mean())


@metric(
    "ladder_tau",
    direction="higher",
    range=[-1, 1],
    unit="correlation",
    equation="kendall(share, how much worse the mean value is)",
)
def ladder_tau(worse: Sequence[float]) -> float:
    """Kendall's τ-b between the permuted share and how much worse the mean value is, by ascending share: 1 if it is
    worse with each larger share. NaN if all values are equal."""
    gaps = np.array([high - low for low, high in combinations(worse, 2)])
    signs = np.where(np.abs(gaps) > RESOLUTION, np.sign(gaps), 0.0)
    return float(tau_of_signs(signs, np.ones_like(signs)))


def sensitivity_rows(card: pd.DataFrame, degraded: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Rows of the table `sensitivity`, from the scorecard and the base `of` and `share` of each degraded measure.

    A criterion without a value for a degraded measure has no row.
    """
    rungs = {rung["of"]: {"of": rung["of"], "share": 0.0} for rung in degraded.values()} | dict(degraded)
    rows = card[(card["status"] == "ok") & card["measure"].isin(list(rungs))]
    named = [rungs[name] for name in rows["measure"].astype(str)]
    rows = rows.assign(measure=[rung["of"] for rung in named], share=[rung["share"] for rung in named])
    found = []
    for key, ladder in rows.groupby(list(LADDER), observed=True, sort=False):
        steps = ladder.sort_values("share", kind="stable").drop_duplicates("share").to_dict("records")
        if len(steps) > 1:
            found += [dict(zip(LADDER, key, strict=True)) | row for row in _ladder(steps)]
    return pd.DataFrame(found, columns=SENSITIVITY.schema.names)


def _ladder(steps: Sequence[Mapping[Any, Any]]) -> Iterator[dict[str, Any]]:
    """The rows of the shares of one measure, ascending, from rows of the scorecard."""
    start, sign = steps[0], -1 if steps[0]["direction"] == "higher" else 1
    tau = ladder_tau([sign * step["value"] for step in steps])
    for step in steps:
        shown = {key: step[key] for key in ("share", "value", "ci_low", "ci_high")}
        if start["share"] or step["n_seeds"] != start["n_seeds"]:
            reason = "the measure itself has other seeds" if not start["share"] else "the measure itself has no value"
            yield shown | {"n_seeds": step["n_seeds"], "status": "missing", "reason": reason}
            continue
        worse = sign * (np.asarray(step["per_seed"], np.float64) - np.asarray(start["per_seed"], np.float64))
        for count in sorted({count for count in (*SEEDS, len(worse)) if count <= len(worse)}):
            share = power(worse, count)
            yield shown | {
                "n_seeds": count,
                "difference": float(worse.mean()),
                "power": share,
                "seen": None if np.isnan(share) else share >= ENOUGH,
                "tau": tau,
                "in_order": tau == 1,
                "status": "ok",
            }


def smallest_seen(rows: pd.DataFrame, keys: Sequence[str]) -> pd.Series:
    """The smallest share that is seen, as are all larger ones, by `keys` and the number of seeds; NaN if none is. If
    several rows have the same keys, their mean power decides."""
    tested = rows[rows["share"] > 0].dropna(subset="power").sort_values("share", ascending=False, kind="stable")
    means = tested.groupby([*keys, "n_seeds", "share"], observed=True, sort=False)["power"].mean().reset_index()
    least = means.groupby([*keys, "n_seeds"], observed=True)["power"].cummin()
    seen = means.assign(smallest=means["share"].where(least >= ENOUGH))
    return seen.groupby([*keys, "n_seeds"], observed=True, sort=False)["smallest"].min()


@table("sensitivity", reads=["scorecard"], params=["degraded"], of="degraded")
def sensitivity_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """Which permuted shares of a measure's scores each criterion sees."""
    return SENSITIVITY, sensitivity_rows(sources.frame(SCORECARD), sources.facts["degraded"])
