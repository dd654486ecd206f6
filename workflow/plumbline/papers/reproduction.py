"""Published numbers beside ours, cell by cell. Published tables lie under `published/`, as they stand in print."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from plumbline.papers import attefa, jain_wallace, recursive_roar, song, zhou
from plumbline.papers.paper import Names, OurValues, Paper, StudyResults
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

# Options that make an importance more exact and no other one.
PRECISION = ("tolerance",)
STUDIES = (jain_wallace.STUDY, attefa.STUDY, song.STUDY, recursive_roar.STUDY, zhou.STUDY)


def reproduction(ran: StudyResults) -> pd.DataFrame:
    """Rows of the table `reproduction`: every published number that the study that ran has a counterpart for."""
    rows = [row for study in STUDIES for row in _rows(study, ran)]
    # As floats, large seeds would be rounded when written as text.
    return pd.DataFrame(rows, columns=REPRODUCTION.schema.names).astype({"seed": "Int64", "n_seeds": "Int64"})


def _rows(study: Paper, ran: StudyResults) -> Iterator[dict[str, Any]]:
    published = study.published()
    for dataset, kind in sorted(ran.names.datasets.items()):
        for _, line in published[published["dataset"] == kind].iterrows():
            for model in _models(line, ran.names):
                for ours in study.ours(line, dataset, model, ran):
                    options = ran.names.dataset_options.get(dataset, {})
                    wanted = study.data.get(kind, {})
                    ours = _unless(
                        ours,
                        "data",
                        {name: options[name] for name in wanted.keys() & options if options[name] != wanted[name]},
                    )
                    ours = _unless(ours, "a measure", _measure_options(study, line, ours, ran.names))
                    ours = _unless(ours, "a model", _model_options(study, model, ran.names))
                    yield _row(study, line, dataset, model, ours, ran)


def _measure_options(study: Paper, line: pd.Series, ours: OurValues, names: Names) -> dict[str, Any]:
    """The options of a line's measures that are not as published."""
    kinds = [line.get("measure_a"), line.get("measure_b")]
    # Of several entries of one measure the first is compared, unless it is said which.
    first = {kind: name for name, kind in reversed([*names.measures.items()]) if kind in kinds}
    other: dict[str, Any] = {}
    for name in ours.measures or first.values():
        changed = names.measure_options.get(name, {})
        options = {option: value for option, value in changed.items() if option not in PRECISION}
        wanted = study.measures.get((line["model"], names.measures[name]), {})
        other |= {key: value for key, value in options.items() if key not in wanted}
        other |= {key: f"not {value}" for key, value in wanted.items() if options.get(key) != value}
    return other


def _model_options(study: Paper, model: str | None, names: Names) -> dict[str, Any]:
    """The options of a model that the config changed to something else than published."""
    if model is None:
        return {}
    wanted = study.models.get(names.models[model], {})
    return {key: value for key, value in names.model_options.get(model, {}).items() if wanted.get(key) != value}


def _unless(ours: OurValues, what: str, changed: Mapping[str, Any]) -> OurValues:
    """Our values, not judged if options were changed."""
    if not changed:
        return ours
    told = ", ".join(f"{option} {value}" for option, value in sorted(changed.items()))
    told = f"{what} other than published, and so not judged: {told}"
    return replace(ours, tolerance=None, note="; ".join(filter(None, [ours.note, told])))


def _models(line: pd.Series, names: Names) -> list[str | None]:
    """The models of the study that ran that a published line is about; [None] for a line about the data alone."""
    if pd.isna(line["model"]):
        return [None]
    return [model for model, kind in names.models.items() if kind == line["model"]]


def _row(
    study: Paper, line: pd.Series, dataset: str, model: str | None, ours: OurValues, ran: StudyResults
) -> dict[str, Any]:
    mean = float(np.mean(ours.values)) if ours.values else np.nan
    basis = "" if ours.tolerance is None else ours.basis
    notes = [basis, ours.note, _or_none(line["note"]), _partial_note(ran.summary(dataset))]
    if model and study.chose_on == "test" and ours.selected_on is None and ran.select_on[dataset][model] == "dev":
        notes.append("the published runs chose their epoch on test data, ours on dev")
    return {
        "study": study.name,
        "table": line["table"],
        "dataset": dataset,
        "variant": ours.variant,
        "model": model,
        **{key: _or_none(line.get(key)) for key in ("measure_a", "measure_b", "predicted_class", "seed")},
        "selected_on": ours.selected_on,
        "metric": line["metric"],
        "published": line["value"],
        "published_spread": line.get("std", np.nan),
        "published_low": line.get("ci_low", np.nan),
        "published_high": line.get("ci_high", np.nan),
        "published_later": line.get("later", np.nan),
        "ours": mean,
        "ours_spread": float(np.std(ours.values)) if model and ours.values else np.nan,
        "n_seeds": len(ours.values) if model else None,
        "tolerance": ours.tolerance,
        "within": None
        if ours.tolerance is None or np.isnan(mean)
        else abs(mean - line["value"]) <= ours.tolerance + 1e-9,
        "note": "; ".join(filter(None, notes)),
    }


def _partial_note(summary: Mapping[str, Any]) -> str:
    """Which splits hold fewer texts than were published."""
    told = [f"{counts['texts']} of {counts['published']} in {split}" for split, counts in summary["partial"].items()]
    return f"partial data: {', '.join(told)}" if told else ""


def _or_none(value: Any) -> Any:
    return None if pd.isna(value) else value


COMPARED = (PERFORMANCE, AGREEMENT, ADVERSARY, FAITHFULNESS, GROUND_TRUTH)


@table(
    "reproduction",
    reads=[
        "datasets",
        "manifests:models",
        "performance",
        "agreement?",
        "adversary?",
        "faithfulness?",
        "ground_truth?",
    ],
    params=["names", "published", "select_on"],
)
def reproduction_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """The study's results beside the published ones."""
    ran = StudyResults(
        Names(**sources.facts["names"]),
        [read_record(file.path) for file in sources["datasets"]],
        sources.facts["select_on"],
        training=timing_rows(read_json(file.path) for file in sources["manifests:models"]),
        **{kind.name: sources.frame(kind) for kind in COMPARED if kind.name in sources},
    )
    return REPRODUCTION, reproduction(ran)
