"""Selections of the table `agreement` and its statistics over seeds."""

import numpy as np
import pandas as pd

# The sets of tokens, from the smallest to the largest, with their labels in figures.
TOKEN_LABELS = {"text": "words of the text", "texts": "all words", "all": "all tokens"}
# Two measures whose mean Kendall τ is at least this are twins; the margin allows for rounding.
TWIN_TAU = 0.99


def fewest_tokens(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the smallest ranked set of tokens."""
    ranked = set(rows["tokens"].dropna())
    return rows[rows["tokens"] == next((tokens for tokens in TOKEN_LABELS if tokens in ranked), None)]


def pool_seeds(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Number, mean and standard deviation (ddof 1) over the texts of all seeds, by `keys`."""
    rows = rows[rows["n"] > 0]
    rows = rows.assign(sum=rows["n"] * rows["mean"], squares=rows["n"] * (rows["std"] ** 2 + rows["mean"] ** 2))
    sums = rows.groupby(keys, observed=True)[["n", "sum", "squares"]].sum()
    mean = sums["sum"] / sums["n"]
    # Rounding may give a small negative value.
    deviations = (sums["squares"] - sums["n"] * mean**2).clip(lower=0)
    std = np.sqrt(deviations / (sums["n"] - 1).where(sums["n"] > 1))
    return pd.DataFrame({"n": sums["n"], "mean": mean, "std": std})


def overall_taus(agreement: pd.DataFrame) -> pd.DataFrame:
    """The rows with a mean Kendall τ over all predicted classes, without models at chance."""
    overall = (agreement["statistic"] == "kendall") & (agreement["predicted_class"] == "all")
    return agreement[overall & (agreement["status"] == "ok")]


def drop_twins(taus: pd.DataFrame) -> pd.DataFrame:
    """Rows of mean τ in which measures that rank alike within a cell are represented by one of them."""
    keys = ["dataset", "variant", "model", "measure_a", "measure_b"]
    means = taus.groupby(keys, observed=True)["mean"].mean()
    twins = {(*cell, max(a, b)) for *cell, a, b in means[means >= TWIN_TAU].index}
    pairs = taus[keys].itertuples(index=False, name=None)
    distinct = [(*cell, a) not in twins and (*cell, b) not in twins for *cell, a, b in pairs]
    return taus[np.array(distinct, dtype=bool)]


def triangles(taus: pd.DataFrame, measures: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mean τ of every pair of M measures over the texts of all seeds, and its standard deviation over them.

    Both are [M - 1, M - 1] lower triangles without the diagonal: the first measure has no row, the last no column.
    """
    mean = pd.DataFrame(np.nan, index=measures[1:], columns=measures[:-1])
    std = mean.copy()
    for pair in pool_seeds(taus, ["measure_a", "measure_b"]).reset_index().to_dict("records"):
        column, row = sorted((pair["measure_a"], pair["measure_b"]), key=measures.index)
        mean.loc[row, column], std.loc[row, column] = pair["mean"], pair["std"]
    return mean, std
