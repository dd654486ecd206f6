"""Models that hardly do better than guessing: what explains them says nothing, so means and rankings leave them out."""

from collections.abc import Mapping

import pandas as pd

ABOVE_CHANCE, AT_CHANCE = "above_chance", "at chance"
# Adversaries that give every text the same answer.
COLLAPSED = "collapsed"
# What may be drawn: the numbers of such models are what they are.
DEFINED = ("ok", AT_CHANCE, COLLAPSED)
Model = tuple[str, str, str, int]


def too_close(value: float, least: float) -> str:
    """The reason that such a model is left out for."""
    return f"the model hardly does better than guessing: {ABOVE_CHANCE} is {value:.2f}, below {least:g}"


def at_chance(performance: pd.DataFrame) -> dict[Model, str]:
    """The dataset, variant, model and seed of each such model, with the reason; by the test split."""
    here = (performance["metric"] == ABOVE_CHANCE) & (performance["split"] == "test")
    rows = performance[here & (performance["status"] == AT_CHANCE)]
    keys = zip(*(rows[key] for key in ("dataset", "variant", "model", "seed")), strict=True)
    return dict(zip(keys, rows["reason"], strict=True))


def above_chance_rows(name: str, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table of this name that are not about such models; the table `performance` tells of all."""
    return table if name == "performance" or "status" not in table else table[table["status"] != AT_CHANCE]


def mark_at_chance(table: pd.DataFrame, models: Mapping[Model, str], seed: str = "seed") -> pd.DataFrame:
    """A table with the status and reason of rows about such models; `seed` is the column with their seed.

    An adversary of such a model that collapsed is one too: it may only have said what the model says.
    """
    if not models or "status" not in table:
        return table
    keys = zip(*(table[key] for key in ("dataset", "variant", "model", seed)), strict=True)
    reasons = pd.Series([models.get(key) for key in keys], index=table.index, dtype=object)
    here = reasons.notna() & table["status"].isin(("ok", COLLAPSED))
    return table.assign(
        status=table["status"].astype(object).where(~here, AT_CHANCE),
        reason=table["reason"].astype(object).where(~here, reasons),
    )
