"""Findings of the report in words."""

import pandas as pd

from plumbline.report.tables import number

# Of more measures the first are told.
MOST = 4


def by_measure(values: pd.Series, measures: pd.Series) -> str:
    """The mean value of each measure, the highest first, in words."""
    means = values.groupby(measures).mean().dropna().sort_values(ascending=False, kind="stable")
    told = [f"{measure} {number(mean)}" for measure, mean in means.head(MOST).items()]
    more = len(means) - MOST
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")
