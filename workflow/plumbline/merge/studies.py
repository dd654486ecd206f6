"""The study that several runs are parts of: the union of their configs, refused if shared keys differ."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from plumbline.config.schema import Study
from plumbline.config.seeds import parse_seeds
from plumbline.errors import PlumblineError
from plumbline.merge.differences import first_difference
from plumbline.merge.runs import FinishedRun
from plumbline.runtime.provenance import code_hash

# The lists of an entry that select datasets, models and seeds; runs may have different ones. Those of other sections
# and all other keys of an entry must be equal.
SELECTIONS = {
    "datasets": (),
    "manipulations": ("datasets",),
    "models": ("datasets", "seeds"),
    "adversaries": ("datasets", "of", "seeds"),
    "roar": ("datasets", "models"),
    "measures": (),
    "protocols": ("datasets",),
}
# Keys outside these sections that results depend on.
EQUAL = ("explain", "sample", "least_above_chance")


def merge_studies(runs: Sequence[FinishedRun], partial: bool = False, explorer: bool = True) -> dict[str, Any]:
    """The config of the merged study.

    With `partial`, models and protocols are limited to the datasets and seeds that the runs have. Without `explorer`,
    the report shows no instances.
    """
    first = runs[0].study
    for run in runs[1:]:
        for key in EQUAL:
            _refuse_difference(key, getattr(first, key), getattr(run.study, key), runs[0], run)
    config: dict[str, Any] = {
        "name": first.name,
        "raw": next((run.study.raw for run in runs if Path(run.study.raw).is_absolute()), first.raw),
        "plugins": _plugins(runs),
        "seeds": _blocks(runs, "seeds", lambda run: run.study.seeds),
        **{key: getattr(first, key) for key in EQUAL},
        "report": {**first.report.model_dump(), **({} if explorer else {"examples": 0})},
        "compute": _compute(runs),
    }
    entries = {section: _entries(runs, section) for section in SELECTIONS}
    for section, keys in SELECTIONS.items():
        for name, entry in entries[section].items():
            for key in keys:
                entry[key] = _selection(runs, config | entries, section, name, key, partial)
    return Study(**config, **entries).model_dump(exclude_defaults=True) | {"name": first.name}


def _refuse_difference(where: str, one: Any, other: Any, first: FinishedRun, second: FinishedRun) -> None:
    if found := first_difference(one, other, where):
        raise PlumblineError(
            f"`{found.key}` is {_shown(found.one)} in '{first.name}' and {_shown(found.other)} in '{second.name}'; "
            "runs of one study must have the same options."
        )


def _shown(value: Any) -> str:
    return "not set" if value is None else repr(value)


def _having(runs: Sequence[FinishedRun], section: str, name: str) -> list[FinishedRun]:
    """The runs with an entry."""
    return [run for run in runs if name in getattr(run.study, section)]


def _entries(runs: Sequence[FinishedRun], section: str) -> dict[str, dict[str, Any]]:
    """The entries of all runs, without their selections; shared ones must be equal."""
    entries: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(name for run in runs for name in getattr(run.study, section)):
        having = _having(runs, section, name)
        excluded = set(SELECTIONS[section])
        dumps = [getattr(run.study, section)[name].model_dump(exclude=excluded) for run in having]
        for run, dump in zip(having[1:], dumps[1:], strict=True):
            _refuse_difference(f"{section}.{name}", dumps[0], dump, having[0], run)
        entries[name] = dumps[0]
    return entries


def _selection(
    runs: Sequence[FinishedRun], config: dict[str, Any], section: str, name: str, key: str, partial: bool
) -> list[str] | None:
    """The list of an entry: None, which selects everything, unless one of the runs has a list or `partial` is set."""
    having = _having(runs, section, name)
    listed = any(getattr(getattr(run.study, section)[name], key) is not None for run in having)
    if not (listed or partial):
        return None
    if key == "seeds":
        selected = _blocks(having, f"{section}.{name}.seeds", lambda run: _seeds_of(run, section, name))
        return None if selected == config["seeds"] and not listed else selected
    found = {value for run in having for value in _selected(run, section, name, key)}
    everything = config["datasets" if key == "datasets" else "models"]
    return None if not listed and found == set(everything) else [value for value in everything if value in found]


def _seeds_of(run: FinishedRun, section: str, name: str) -> list[str]:
    return getattr(run.study, section)[name].seeds or (
        run.study.blocks(name) if section == "models" else run.study.seeds
    )


def _selected(run: FinishedRun, section: str, name: str, key: str) -> list[str]:
    """The datasets or models of the cells that an entry applies to."""
    cells, derived = run.cells(section, name), run.resolved.derived
    if key == "datasets":
        return [cell.dataset for cell in cells]
    return [derived[cell.model].base if cell.model in derived else cell.model for cell in cells]


def _blocks(runs: Iterable[FinishedRun], key: str, blocks_of: Callable[[FinishedRun], list[str]]) -> list[str]:
    """The blocks of seeds of all runs; a seed may not be in two different blocks."""
    owner: dict[int, tuple[str, FinishedRun]] = {}
    for run in runs:
        for block in blocks_of(run):
            for seed in parse_seeds(block):
                other, first = owner.setdefault(seed, (block, run))
                if other != block:
                    raise PlumblineError(
                        f"`{key}` has seed {seed} in block '{other}' in '{first.name}' and in block '{block}' in "
                        f"'{run.name}'; blocks must be equal or have no seed in common."
                    )
    return list(dict.fromkeys(block for block, _ in owner.values()))


def _compute(runs: Sequence[FinishedRun]) -> dict[str, Any]:
    """The section `compute` of the first run, with the job sizes of all datasets."""
    jobs: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(name for run in runs for name in run.study.datasets):
        having = _having(runs, "datasets", name)
        sizes = [run.study.compute.job(name).model_dump() for run in having]
        factor = max(size.pop("time_factor") for size in sizes)
        for run, size in zip(having[1:], sizes[1:], strict=True):
            _refuse_difference(f"compute.jobs.{name}", sizes[0], size, having[0], run)
        if any(run.study.compute.jobs.get(name) for run in having):
            jobs[name] = {**sizes[0], "time_factor": factor}
    kept = {key: all(getattr(run.study.compute, key) for run in runs) for key in ("keep_retrained", "keep_variants")}
    return {**runs[0].study.compute.model_dump(), **kept, "jobs": jobs}


def _plugins(runs: Sequence[FinishedRun]) -> list[str]:
    """The plug-ins of all runs; copies of one file count once."""
    plugins: dict[str, tuple[str, FinishedRun]] = {}
    for run in runs:
        for path in run.study.plugins:
            other, first = plugins.setdefault(Path(path).name, (path, run))
            if code_hash(Path(other)) != code_hash(Path(path)):
                raise PlumblineError(
                    f"The plug-in '{Path(path).name}' of '{first.name}' and that of '{run.name}' have different code; "
                    "runs of one study must have the same plug-ins."
                )
    return [path for path, _ in plugins.values()]
