"""Every published number with our value for it. The tables under `published/` are copied from the papers."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from plumbline.papers import attefa, jain_wallace, recursive_roar, song, zhou
from plumbline.papers.paper import NOT_JUDGED, Names, OurValues, Paper, StudyResults
from plumbline.papers.schemas import REPRODUCTION
from plumbline.protocols.adversary.schemas import ADVERSARY
from plumbline.protocols.agreement.schemas import AGREEMENT
from plumbline.protocols.ground_truth.schemas import GROUND_TRUTH
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.protocols.roar.schemas import FAITHFULNESS
from plumbline.protocols.timings.table import timing_rows
from plumbline.registry import table
from plumbline.store import TableSchema, read_json, read_record
from plumbline.tables.sources import Sources

# Options that change the precision of an importance, not its definition.
PRECISION = ("tolerance",)
PAPERS = (jain_wallace.PAPER, attefa.PAPER, song.PAPER, recursive_roar.PAPER, zhou.PAPER)


def reproduction(results: StudyResults) -> pd.DataFrame:
    """Rows of the table `reproduction`: every published number that has a counterpart in the study."""
    rows = [row for paper in PAPERS for row in _rows(paper, results)]
    # As floats, large seeds would be rounded when written as text.
    return pd.DataFrame(rows, columns=REPRODUCTION.schema.names).astype({"seed": "Int64", "n_seeds": "Int64"})


def _rows(paper: Paper, results: StudyResults) -> Iterator[dict[str, Any]]:
    published, names = paper.published(), results.names
    for dataset, kind in sorted(names.datasets.items()):
        options, expected = names.dataset_options.get(dataset, {}), paper.data.get(kind, {})
        changed = {name: options[name] for name in expected.keys() & options if options[name] != expected[name]}
        for _, row in published[published["dataset"] == kind].iterrows():
            for model in _models(row, names):
                for ours in paper.our_values(row, dataset, model, results):
                    ours = ours.not_judged(
                        *paper.unjudged(row, dataset, model, results),
                        _difference("data", changed),
                        _difference("a measure", _changed_measure_options(paper, row, ours, names)),
                        _difference("a model", _changed_model_options(paper, model, names)),
                    )
                    yield _row(paper, row, dataset, model, ours, results)


def _changed_measure_options(paper: Paper, row: pd.Series, ours: OurValues, names: Names) -> dict[str, Any]:
    """The options of a row's measures that differ from the published ones."""
    kinds = [row.get("measure_a"), row.get("measure_b")]
    # The first entry of a measure is compared, unless `ours` names another.
    first = {kind: name for name, kind in reversed([*names.measures.items()]) if kind in kinds}
    changed: dict[str, Any] = {}
    for name in ours.measures or first.values():
        options = {key: value for key, value in names.measure_options.get(name, {}).items() if key not in PRECISION}
        published = paper.measures.get((row["model"], names.measures[name]), {})
        changed |= {key: value for key, value in options.items() if key not in published}
        changed |= {key: f"not {value}" for key, value in published.items() if options.get(key) != value}
    return changed


def _changed_model_options(paper: Paper, model: str | None, names: Names) -> dict[str, Any]:
    """The options of a model that the config sets to other than published values."""
    if model is None:
        return {}
    published = paper.models.get(names.models[model], {})
    return {key: value for key, value in names.model_options.get(model, {}).items() if published.get(key) != value}


def _difference(what: str, changed: Mapping[str, Any]) -> str:
    options = ", ".join(f"{option} {value}" for option, value in sorted(changed.items()))
    return f"{what} other than published, {NOT_JUDGED}: {options}" if changed else ""


def _models(row: pd.Series, names: Names) -> list[str | None]:
    """The study's models that a published number is about; [None] for a number about the data alone."""
    if pd.isna(row["model"]):
        return [None]
    return [model for model, kind in names.models.items() if kind == row["model"]]


def _row(
    paper: Paper, row: pd.Series, dataset: str, model: str | None, ours: OurValues, results: StudyResults
) -> dict[str, Any]:
    mean = float(np.mean(ours.values)) if ours.values else np.nan
    basis = "" if ours.tolerance is None else ours.basis
    notes = [basis, ours.note, _or_none(row["note"]), _partial_note(results.summary(dataset))]
    if model and paper.select_on == "test" and ours.selected_on is None and results.select_on[dataset][model] == "dev":
        notes.append("published epochs were selected on test data, ours on dev")
    within = None
    if ours.tolerance is not None and not np.isnan(mean):
        within = abs(mean - row["value"]) <= ours.tolerance + 1e-9
    return {
        "study": paper.name,
        "table": row["table"],
        "dataset": dataset,
        "variant": ours.variant,
        "model": model,
        **{key: _or_none(row.get(key)) for key in ("measure_a", "measure_b", "predicted_class", "seed")},
        "selected_on": ours.selected_on,
        "metric": row["metric"],
        "published": row["value"],
        "published_spread": row.get("std", np.nan),
        "published_low": row.get("ci_low", np.nan),
        "published_high": row.get("ci_high", np.nan),
        "published_later": row.get("later", np.nan),
        "ours": mean,
        "ours_spread": float(np.std(ours.values)) if model and ours.values else np.nan,
        "n_seeds": len(ours.values) if model else None,
        "tolerance": ours.tolerance,
        "within": within,
        "note": "; ".join(filter(None, notes)),
    }


def _partial_note(summary: Mapping[str, Any]) -> str:
    """A note on splits with fewer texts than published."""
    parts = [f"{counts['texts']} of {counts['published']} in {split}" for split, counts in summary["partial"].items()]
    return f"partial data: {', '.join(parts)}" if parts else ""


def _or_none(value: Any) -> Any:
    return None if pd.isna(value) else value


COMPARED = (PERFORMANCE, AGREEMENT, ADVERSARY, FAITHFULNESS, GROUND_TRUTH)


@table(
    "reproduction",
    reads=["datasets", "manifests:models", "performance", "agreement?", "adversary?", "faithfulness?", "ground_truth?"],
    params=["names", "published", "select_on"],
)
def reproduction_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """The study's results and the published ones."""
    results = StudyResults(
        Names(**sources.facts["names"]),
        [read_record(file.path) for file in sources["datasets"]],
        sources.facts["select_on"],
        training=timing_rows(read_json(file.path) for file in sources["manifests:models"]),
        **{kind.name: sources.frame(kind) for kind in COMPARED if kind.name in sources},
    )
    return REPRODUCTION, reproduction(results)
