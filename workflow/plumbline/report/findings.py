"""Findings of the report, one sentence each."""

import pandas as pd

from plumbline.report.tables import number

# The number of measures that a sentence names.
MOST = 4


def by_measure(values: pd.Series, measures: pd.Series) -> str:
    """The mean value of each measure, the highest first."""
    means = values.groupby(measures).mean().dropna().sort_values(ascending=False, kind="stable")
    texts = [f"{measure} {number(mean)}" for measure, mean in means.head(MOST).items()]
    more = len(means) - MOST
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")
