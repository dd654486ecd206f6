"""Erasure on the scorecard."""

import pandas as pd

from plumbline.protocols.criteria import VALUES, Measures
from plumbline.registry import criterion


@criterion("LeRF minus MoRF", metric="morf_lerf", order=85)
@criterion("normalised AOPC", range=[0, 1], metric="normalised_aopc", order=84)
@criterion("soft sufficiency", range=[None, 1], metric="soft_sufficiency", order=83)
@criterion("soft comprehensiveness", range=[0, None], metric="soft_comprehensiveness", order=82)
@criterion("sufficiency", direction="lower", metric="sufficiency", order=81)
@criterion("comprehensiveness", table="erasure", direction="higher", range=[-1, 1], variants="every", order=80)
def erasure_metric(table: pd.DataFrame, measures: Measures, *, metric: str = "comprehensiveness") -> pd.DataFrame:
    """An area over or between the curves of hard erasure, or a soft metric."""
    rows = table[(table["metric"] == metric) & table["ratio"].isna() & (table["status"] == "ok")]
    return rows.assign(value=rows["mean"])[VALUES]
