"""A published paper, the results of the study that ran, and our values for one published number."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

PUBLISHED = Path(__file__).parent / "published"

# The papers report no spread for their test scores; this is our own margin.
SCORE_TOLERANCE = 0.03
OUR_MARGIN = "the tolerance is ours"
# Mean lengths are printed as whole numbers.
LENGTH_TOLERANCE = 1.0
WHOLE_NUMBER = "printed as a whole number, rounded or truncated"
# The split that a published size counts.
SIZES = {"train_size": "train", "validation_size": "dev", "test_size": "test"}
NOT_JUDGED = "and so not judged"
SINGLE_SEED = f"a single seed has no spread over seeds, {NOT_JUDGED}"


@dataclass(frozen=True)
class Names:
    """The registered name of each dataset, model and measure of the study, and the options that its config sets."""

    datasets: Mapping[str, str]
    models: Mapping[str, str]
    measures: Mapping[str, str]
    dataset_options: Mapping[str, Mapping[str, Any]]
    # Only options that the config changed.
    model_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    measure_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # The class that masking explains.
    masking_target: str = "gold"

    def entries(self, measure: str) -> list[str]:
        """The study's names for a registered measure."""
        return [name for name, registered in self.measures.items() if registered == measure]


def rows_with(table: pd.DataFrame, **values: str) -> pd.DataFrame:
    """The rows of a table with these values of the named columns."""
    return table[np.logical_and.reduce([table[column] == value for column, value in values.items()])]


@dataclass(frozen=True)
class StudyResults:
    """Results of the study that ran: its names, dataset summaries, the split that selects epochs (`select_on`, by
    dataset and model), and its tables; `training` holds the rows of `timings` about training."""

    names: Names
    datasets: list[dict[str, Any]]
    select_on: Mapping[str, Mapping[str, str]]
    performance: pd.DataFrame
    agreement: pd.DataFrame | None = None
    adversary: pd.DataFrame | None = None
    faithfulness: pd.DataFrame | None = None
    training: pd.DataFrame | None = None
    ground_truth: pd.DataFrame | None = None

    def summary(self, dataset: str) -> dict[str, Any]:
        """The summary of a dataset."""
        return next(summary for summary in self.datasets if summary["dataset"] == dataset)

    def scores(
        self,
        dataset: str,
        model: str,
        metric: str,
        seeds: pd.Series | None = None,
        split: str = "test",
        variant: str = "plain",
    ) -> list[float]:
        """A model's scores by one metric, one per seed, of all seeds or of `seeds`."""
        keys = {"dataset": dataset, "variant": variant, "model": model, "split": split, "metric": metric}
        rows = rows_with(self.performance, **keys)
        return (rows if seeds is None else rows[rows["seed"].isin(seeds)])["value"].tolist()


@dataclass(frozen=True)
class OurValues:
    """Our values for a published number, one per seed. With a tolerance they are judged; `basis` explains it.

    `selected_on` is the split that selected an adversary's epoch; `measures` are the study's names of the compared
    measures, if they are not the first entries; `variant` is that of a manipulated dataset.
    """

    values: list[float]
    tolerance: float | None = None
    basis: str = ""
    note: str = ""
    selected_on: str | None = None
    measures: tuple[str, ...] = ()
    variant: str | None = None

    def not_judged(self, *reasons: str) -> "OurValues":
        """The values without a tolerance and with the reasons in the note; unchanged if no reason applies."""
        if not any(reasons):
            return self
        return replace(self, tolerance=None, note="; ".join(filter(None, [self.note, *reasons])))


@dataclass(frozen=True)
class Paper:
    """A published paper. `published` returns its numbers under registered names of datasets and models, with no model
    for a number about the data alone. `our_values` yields our values for such a row, given a dataset and model of the
    study that ran: none, one, or one per counterpart. `unjudged` yields reasons why these are not judged; empty ones do
    not count. `select_on` is the split that selected the published epochs."""

    name: str
    published: Callable[[], pd.DataFrame]
    our_values: Callable[[pd.Series, str, str | None, StudyResults], Iterator[OurValues]]
    unjudged: Callable[[pd.Series, str, str | None, StudyResults], Iterable[str]] = lambda *_: ()
    select_on: str = "test"
    # Dataset options of the published data, where the dataset's name does not determine them.
    data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # Published options of a measure, by model and measure, where they differ from its defaults.
    measures: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    # Published options of a model, by registered name, where they differ from its defaults.
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def percent_to_fraction(frame: pd.DataFrame) -> pd.DataFrame:
    """Published numbers whose metric is in percent (`pct` in its name) as fractions, with spreads and intervals."""
    columns = frame.columns.intersection(["value", "std", "ci_low", "ci_high"])
    percent = frame["metric"].str.contains("pct")
    return frame.assign(**{column: frame[column].where(~percent, frame[column] / 100) for column in columns})


def sample_size(summary: Mapping[str, Any]) -> str:
    """A note on the number of texts per split that the study sampled from a dataset; empty if it used all."""
    left_out = summary["dropped"].get("limit", {})
    kept = {split: summary["splits"][split]["instances"] for split in left_out}
    parts = [f"{kept[split]} of {kept[split] + count} in {split}" for split, count in left_out.items()]
    return f"a sample: {', '.join(parts)}" if parts else ""
