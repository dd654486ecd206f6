"""Agreement of criteria with a known truth by the share of words that they remove or keep, from a run's tables."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from plumbline.config.variants import PLAIN
from plumbline.protocols.scorecard.trust import EVERY, common_difference, common_rows

# The name of random importances, which take no part in rankings.
RANDOM = "random"
AXIS = "share of words masked, removed or kept, in percent (logarithmic)"
# The tables that are read, if a run has them.
READ = ("scorecard", "roar", "faithfulness", "erasure")
# Which values of the criteria that remove words are better.
ERASURE = {"comprehensiveness": "higher", "sufficiency": "lower"}


def equal_terms(tables: Mapping[str, pd.DataFrame], without: tuple[str, ...] = ()) -> pd.DataFrame:
    """Rows of the table `trust_common`, also for each share of words that Recursive ROAR and comprehensiveness remove
    and sufficiency keeps, such as the criterion `sufficiency, 20 %`; without some measures."""
    card = _card(tables)
    return common_rows(card[~card["measure"].isin(without)], RANDOM, _kinds(card))


def by_share(tables: Mapping[str, pd.DataFrame], without: tuple[str, ...] = ()) -> pd.DataFrame:
    """Rows of `equal_terms` for each share of words: `along` is the share in percent, `name` the criterion without it,
    `value` τ and `axis` the title of an axis of shares."""
    rows = equal_terms(tables, without)
    rows = rows[rows["criterion"].str.endswith(" %")]
    parts = rows["criterion"].str.removesuffix(" %").str.rsplit(", ", n=1)
    rows = rows.assign(name=parts.str[0], along=parts.str[1].astype(float), value=rows["tau"], axis=AXIS)
    return rows.sort_values(["name", "along"], kind="stable", ignore_index=True)


def difference(
    tables: Mapping[str, pd.DataFrame], pair: tuple[str, str], without: tuple[str, ...] = (), model: str = ""
) -> dict[str, Any]:
    """How much higher τ with the truth is on equal terms by the first criterion of a pair than by the second, of every
    model or of one."""
    card = _card(tables)
    card = card[~card["measure"].isin(without) & card["model"].isin([model] if model else card["model"])]
    return common_difference(card, RANDOM, _kinds(card), pair, EVERY)


def _card(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The scorecard of a run, with each share of words as a criterion of its own."""
    parts = [tables["scorecard"]]
    if "roar" in tables and "faithfulness" in tables:
        curves = tables["roar"].query("strategy == 'recursive' and unit == 'relative' and trained_on == 'words'")
        headline = tables["faithfulness"][["dataset", "metric"]].drop_duplicates()
        levels = curves.merge(headline).query("0 < level < 100")
        # The better measure finds the words without which retrained models do worst.
        parts.append(_criterion_by_share(levels, "Recursive ROAR", "lower", "level", "value"))
    if "erasure" in tables:
        plain = tables["erasure"].query("variant == @PLAIN").dropna(subset="ratio")
        for criterion, direction in ERASURE.items():
            rows = plain[plain["metric"] == criterion]
            parts.append(_criterion_by_share(rows, criterion, direction, "ratio", "mean"))
    card = pd.concat([part for part in parts if len(part)], ignore_index=True)
    return card[card["status"] == "ok"]


def _criterion_by_share(rows: pd.DataFrame, criterion: str, direction: str, share: str, value: str) -> pd.DataFrame:
    """Rows of a scorecard of plain texts: each share of words in percent as a criterion, from values of each seed."""
    rows = rows[rows["status"] == "ok"].sort_values("seed")
    rows = rows.assign(criterion=rows[share].map(lambda percent: f"{criterion}, {percent:g} %"))
    keys = ["criterion", "dataset", "model", "measure"]
    found = rows.groupby(keys, observed=True)[value].agg(list).reset_index(name="per_seed")
    found = found.assign(variant=PLAIN, direction=direction, faithfulness=True, status="ok")
    found = found.assign(value=found["per_seed"].map(np.mean), n_seeds=found["per_seed"].map(len))
    return found.assign(twin_of=None, degraded_of=None)


def _kinds(card: pd.DataFrame) -> dict[str, str]:
    """Each variant as a kind of truth of its own."""
    return {variant: variant for variant in card["variant"].unique()}
