"""What supports what: which measures and protocols a model supports, and which datasets it can learn."""

from collections.abc import Collection

from plumbline.config.masking import baseline
from plumbline.config.resolved import Resolved
from plumbline.registry import Declaration, Kind, lacking, needed

VERBS = {"measure": "explains", "protocol": "scores"}
# The most measures that an error message suggests.
MOST_SUGGESTED = 6


def _provided(resolved: Resolved, model: str) -> set[str]:
    """What a model provides: what it declares, and masked training if words are masked on all datasets it learns."""
    datasets = resolved.study.models[model].datasets or resolved.study.datasets
    masked = all(resolved.trainings[dataset, model].masking != "none" for dataset in datasets)
    return {*resolved.declarations["model", model].provides, *(["masked training"] if masked else [])}


def unsupported(resolved: Resolved, kind: Kind, name: str, model: str) -> str:
    """Why a measure or protocol does not support a model, or an empty string."""
    declaration, declared_model = resolved.declarations[kind, name], resolved.declarations["model", model]
    if declared_model.reads == "pixels" and not declaration.pixels:
        return f"{kind} '{name}' {VERBS[kind]} texts, but model '{model}' reads images"
    missing = lacking(declaration, resolved.options[kind, name], _provided(resolved, model))
    missing = [f"either {part}" if " or " in part else part for part in missing]
    return f"{kind} '{name}' needs {' and '.join(missing)}, which model '{model}' does not provide" if missing else ""


def suggestions(resolved: Resolved, measure: str, models: list[str]) -> str:
    """Other measures that support the models, those with similar needs first."""
    needs = set(needed(resolved.declarations["measure", measure], resolved.options["measure", measure]))

    def supports(candidate: Declaration, model: str) -> bool:
        declared_model = resolved.declarations["model", model]
        reads = candidate.pixels or declared_model.reads != "pixels"
        missing = lacking(candidate, candidate.defaults, _provided(resolved, model))
        return reads and not candidate.required and not missing

    candidates = [
        candidate
        for candidate in resolved.registry.all("measure")
        if all(supports(candidate, model) for model in models)
        and candidate.name not in resolved.study.measures
        and not candidate.name.endswith("-published")
    ]
    similar = sorted(candidates, key=lambda candidate: -len(needs & set(candidate.needs)))
    names = ", ".join(sorted(candidate.name for candidate in similar[:MOST_SUGGESTED]))
    more = len(similar) - MOST_SUGGESTED
    rest = f" and {more} more; `plumbline list measures` describes all measures" if more > 0 else ""
    return f" (supported measures: {names}{rest})" if names else ""


def untrainable(resolved: Resolved, dataset: str, model: str) -> str:
    """Why a model cannot be trained on a dataset, or an empty string."""
    task, tasks = resolved.declarations["dataset", dataset].task, resolved.declarations["model", model].tasks
    derived = resolved.derived.get(model)
    if task in tasks and derived and dataset not in derived.datasets:
        return f"model '{model}' takes its attention from '{derived.base}', which is not trained on dataset '{dataset}'"
    return (
        ""
        if task in tasks
        else (f"model '{model}' supports the task {' and '.join(tasks)}, but dataset '{dataset}' has the task {task}")
    )


def scorecard_needs(resolved: Resolved, measures: Collection[str]) -> tuple[int, dict[str, int]]:
    """How many of the measures are neither random nor degraded, and the protocols that score none of so few, each with
    the number that its first column of the scorecard needs."""
    count = len(set(measures) - {baseline(resolved), *resolved.study.degraded})
    needs = {}
    for protocol in resolved.study.protocols:
        kind = resolved.declarations["protocol", protocol].name
        columns = [column.least_measures for column in resolved.registry.all("criterion") if column.table == kind]
        if columns and min(columns) > count:
            needs[protocol] = min(columns)
    return count, needs
