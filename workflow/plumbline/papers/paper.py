"""What published numbers are compared with: the study that ran, and our values of one number."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

PUBLISHED = Path(__file__).parent / "published"

# The studies give no spread for their test scores; this is our own margin.
SCORE_TOLERANCE = 0.03
OUR_MARGIN = "the tolerance is ours"
# Mean lengths are printed as whole numbers.
LENGTH_TOLERANCE = 1.0
WHOLE_NUMBER = "printed as a whole number, rounded or cut"


@dataclass(frozen=True)
class Names:
    """The registered name behind each name of the study that ran, and the options of its datasets."""

    datasets: Mapping[str, str]
    models: Mapping[str, str]
    measures: Mapping[str, str]
    dataset_options: Mapping[str, Mapping[str, Any]]
    # The options of each model that the config changed.
    model_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # Those of each measure, likewise.
    measure_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # The class that masking explains.
    masking_target: str = "gold"


@dataclass(frozen=True)
class StudyResults:
    """The study that ran: what it calls things, the summaries of its datasets, how its models chose their epoch
    (`select_on`, by dataset and model), and its tables; of `timings` the rows about training."""

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
        """Scores of a model by one metric, one per seed; of all seeds, or of some."""
        table = self.performance
        here = (table["dataset"] == dataset) & (table["variant"] == variant) & (table["model"] == model)
        here &= (table["split"] == split) & (table["metric"] == metric)
        if seeds is not None:
            here &= table["seed"].isin(seeds)
        return table[here]["value"].tolist()


@dataclass(frozen=True)
class OurValues:
    """Our values of a published number, one per seed. They are judged if there is a tolerance; `basis` says what that
    rests on. `selected_on` is the split that chose the epoch of an adversary; `measures` are the study's names of the
    measures compared, if they are not the first of their kind; `variant` is the dataset's, if it was manipulated."""

    values: list[float]
    tolerance: float | None = None
    basis: str = ""
    note: str = ""
    selected_on: str | None = None
    measures: tuple[str, ...] = ()
    variant: str | None = None


@dataclass(frozen=True)
class Paper:
    """A published study. `published` gives its numbers in our words: registered names of datasets and models, and no
    model for a number about the data alone. `ours` gives our values of such a line for a dataset and model of the study
    that ran; none if it has no counterpart, more than one if it has several. `chose_on` is the split that chose the
    epochs of the published models."""

    name: str
    published: Callable[[], pd.DataFrame]
    ours: Callable[[pd.Series, str, str | None, StudyResults], Iterator[OurValues]]
    chose_on: str = "test"
    # The options with which a dataset's texts are the published ones, where that says more than the dataset itself.
    data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # The options with which a measure explains a model as published, by model and measure, where they are not its own.
    measures: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    # The options with which a model is the published one, by its kind, where they are not its own.
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def sample_size(summary: Mapping[str, Any]) -> str:
    """How many of a dataset's texts the study that ran has taken, if it has not taken all."""
    left_out = summary["dropped"].get("limit", {})
    kept = {split: summary["splits"][split]["instances"] for split in left_out}
    told = [f"{kept[split]} of {kept[split] + count} in {split}" for split, count in left_out.items()]
    return f"a sample: {', '.join(told)}" if told else ""
