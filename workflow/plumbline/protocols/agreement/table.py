"""The table `agreement` as others read it: for one set of tokens, of which what shows only one shows the smallest, or
with the texts of all seeds together."""

import numpy as np
import pandas as pd

# From the fewest to the most: the words of the text, those of both texts, special tokens too.
TOKENS = ("text", "texts", "all")
# Mean Kendall τ from which two measures are twins; what is missing to 1 is rounding.
LEAST_TAU = 0.99
RANKED = dict(zip(TOKENS, ("words of the text", "all words", "all tokens"), strict=True))


def fewest_tokens(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows about the fewest tokens that were ranked."""
    ranked = set(rows["tokens"].dropna())
    fewest = next((tokens for tokens in TOKENS if tokens in ranked), None)
    return rows[rows["tokens"] == fewest]


def pooled(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Number, mean and standard deviation (ddof 1) over the texts of all seeds, by `keys`, of rows of the table."""
    rows = rows[rows["n"] > 0]
    rows = rows.assign(sum=rows["n"] * rows["mean"], squares=rows["n"] * (rows["std"] ** 2 + rows["mean"] ** 2))
    sums = rows.groupby(keys, observed=True)[["n", "sum", "squares"]].sum()
    mean = sums["sum"] / sums["n"]
    # Rounding may leave a little less than nothing.
    deviations = (sums["squares"] - sums["n"] * mean**2).clip(lower=0)
    std = np.sqrt(deviations / (sums["n"] - 1).where(sums["n"] > 1))
    return pd.DataFrame({"n": sums["n"], "mean": mean, "std": std})


def overall_taus(agreement: pd.DataFrame) -> pd.DataFrame:
    """The rows of the table that hold a mean Kendall τ over all predicted classes, of models that are not at chance."""
    here = (agreement["statistic"] == "kendall") & (agreement["predicted_class"] == "all")
    return agreement[here & (agreement["status"] == "ok")]


def twins_once(taus: pd.DataFrame) -> pd.DataFrame:
    """Rows of mean τ without those about measures that rank like another one of their cell, which has its own rows."""
    cell = ["dataset", "variant", "model"]
    means = taus.groupby([*cell, "measure_a", "measure_b"], observed=True)["mean"].mean()
    twins = {(*key[:3], max(key[3:])) for key in means[means >= LEAST_TAU].index}
    keys = zip(*(taus[key] for key in (*cell, "measure_a", "measure_b")), strict=True)
    once = [not ({(*key[:3], key[3]), (*key[:3], key[4])} & twins) for key in keys]
    return taus[np.array(once, dtype=bool)]


def triangles(taus: pd.DataFrame, measures: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mean τ of every pair of M measures over the texts of all seeds, and its standard deviation over them.

    Each [M - 1, M - 1] below the diagonal, the first measure having no row and the last no column; NaN elsewhere.
    """
    pairs = pooled(taus, ["measure_a", "measure_b"]).reset_index()
    told = {frozenset((pair["measure_a"], pair["measure_b"])): pair for pair in pairs.to_dict("records")}
    mean = pd.DataFrame(np.nan, index=measures[1:], columns=measures[:-1])
    std = mean.copy()
    for place, row in enumerate(measures):
        for column in measures[:place]:
            if pair := told.get(frozenset((row, column))):
                mean.loc[row, column], std.loc[row, column] = pair["mean"], pair["std"]
    return mean, std
