"""Agreement of criteria with a known truth by the share of words that they remove or keep, from a recorded run."""

import numpy as np
import pandas as pd

from plumbline.config.variants import PLAIN
from plumbline.errors import PlumblineError
from plumbline.protocols.scorecard.trust import EVERY, EVERY_MODEL, common_difference, common_rows
from plumbline.record import RecordedRun, with_interval

# The name of random importances, which take no part in rankings.
RANDOM = "random"
# Which values of the criteria that remove words are better.
ERASURE = {"comprehensiveness": "higher", "sufficiency": "lower"}


def equal_terms(run: RecordedRun, without: tuple[str, ...] = ()) -> pd.DataFrame:
    """Rows of the table `trust_common`, also for each share of words that Recursive ROAR and comprehensiveness remove
    and sufficiency keeps, such as the criterion `sufficiency, 20 %`; without some measures."""
    card = _card(run)
    return common_rows(card[~card["measure"].isin(without)], RANDOM, _kinds(card))


def by_share(run: RecordedRun) -> pd.DataFrame:
    """Rows of `equal_terms` for every model, for each share of words: `along` is the share in percent, `name` the
    criterion without it and `value` τ."""
    rows = equal_terms(run)
    rows = rows[(rows["model"] == EVERY_MODEL) & rows["criterion"].str.endswith(" %")]
    parts = rows["criterion"].str.removesuffix(" %").str.rsplit(", ", n=1)
    rows = rows.assign(name=parts.str[0], along=parts.str[1].astype(float), value=rows["tau"])
    return rows.sort_values(["name", "along"], kind="stable", ignore_index=True)


def difference_on_equal_terms(run: RecordedRun, first: str, second: str, truth: str = EVERY) -> str:
    """How much higher τ with a truth is by one criterion than by another, with its interval."""
    card = _card(run)
    found = common_difference(card, RANDOM, _kinds(card), (first, second), truth)
    if found["status"] != "ok":
        raise PlumblineError(f"'{first}' and '{second}' are not both compared with the truth '{truth}'.")
    return with_interval(found["tau"], found["ci_low"], found["ci_high"], 2)


def _card(run: RecordedRun) -> pd.DataFrame:
    """The scorecard of a run, with each share of words as a criterion of its own."""
    parts = [run.rows("scorecard", status="ok")]
    if run.has("roar") and run.has("faithfulness"):
        curves = run.rows("roar", strategy="recursive", unit="relative", trained_on="words", status="ok")
        headline = run.rows("faithfulness")[["dataset", "metric"]].drop_duplicates()
        levels = curves.merge(headline).query("0 < level < 100")
        # The better measure finds the words without which retrained models do worst.
        parts.append(criterion_by_share(levels, "Recursive ROAR", "lower", levels["level"], levels["value"]))
    if run.has("erasure"):
        for criterion, direction in ERASURE.items():
            rows = run.rows("erasure", variant=PLAIN, metric=criterion, status="ok").dropna(subset="ratio")
            parts.append(criterion_by_share(rows, criterion, direction, rows["ratio"], rows["mean"]))
    return pd.concat(parts, ignore_index=True)


def criterion_by_share(
    rows: pd.DataFrame, criterion: str, direction: str, share: pd.Series, value: pd.Series
) -> pd.DataFrame:
    """Rows of a scorecard of plain texts: each share of words in percent as a criterion, from values of each seed."""
    keys = ["criterion", "dataset", "model", "measure"]
    rows = rows.assign(criterion=share.map(lambda percent: f"{criterion}, {percent:g} %"), value=value)
    per_seed = rows.sort_values("seed").groupby(keys, observed=True)["value"].agg(list)
    found = per_seed.reset_index(name="per_seed").assign(variant=PLAIN, direction=direction, faithfulness=True)
    found = found.assign(value=found["per_seed"].map(np.mean), n_seeds=found["per_seed"].map(len), status="ok")
    return found.assign(twin_of=None, degraded_of=None)


def _kinds(card: pd.DataFrame) -> dict[str, str]:
    """Each variant as a kind of truth of its own."""
    return {variant: variant for variant in card["variant"].unique()}
