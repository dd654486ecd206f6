"""The protocol my-protocol with its table, figure, page and scorecard column. It works unchanged; replace it."""

import pandas as pd
import pyarrow as pa

from plumbline import store
from plumbline.figures.drawing import Drawing
from plumbline.protocols.criteria import VALUES, Measures
from plumbline.protocols.explained import Explained
from plumbline.registry import criterion, figure, page, protocol
from plumbline.report.content import Content
from plumbline.report.page import Page, Section
from plumbline.report.tables import any_table

COLUMNS = {**store.CELL, "seed": pa.int64(), "measure": store.WORD, "mean": pa.float64(), "n": pa.int32()}
TABLE = store.declare("my-protocol", 1, COLUMNS, required=["seed", "measure", "n"])


@protocol("my-protocol", equation="max_t |s_t| / Σ_t |s_t|")
class MyProtocol:
    """The share of a text's importance on its most important word."""

    table = TABLE

    def score(self, explained: Explained) -> dict[str, list]:
        """Columns of the table `scores`: a row for each seed, measure and text."""
        rows = [
            {"seed": seed.seed, "split": seed.split[i], "instance": seed.instance[i], "measure_a": measure}
            | {"statistic": "largest share", "value": abs(text).max() / max(abs(text).sum(), 1e-9), "status": "ok"}
            for seed in explained.by_seed()
            for measure, texts in sorted(seed.scores.items())
            for i, text in enumerate(texts)
        ]
        return {column: [row[column] for row in rows] for column in rows[0]}

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of its own table: means over texts and their number."""
        groups = scores.to_pandas().rename(columns={"measure_a": "measure"}).groupby(["seed", "measure"], observed=True)
        return groups["value"].agg(mean="mean", n="count").reset_index()


@criterion("my-protocol", table="my-protocol", direction="higher", range=[0, 1])
def to_scorecard(table: pd.DataFrame, measures: Measures) -> pd.DataFrame:
    """The column of the scorecard: a value for each seed."""
    return table.assign(value=table["mean"])[VALUES]


@figure("my-protocol", reads=["my-protocol"], page="my-protocol", experiment="mine")
def draw(drawing: Drawing) -> object:
    """Mean by measure."""
    import seaborn as sns

    return sns.catplot(drawing.frame(TABLE), x="mean", y="measure", kind="bar", errorbar="sd").figure


@page("my-protocol", title="My protocol", tables=["my-protocol"])
def show(content: Content) -> Page:
    """How peaked are importances?"""
    return Page([Section("all", "All means", tables={"means": any_table(TABLE.name, content.tables[TABLE.name])})])
