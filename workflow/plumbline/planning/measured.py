"""What work has cost: the manifests and tables of earlier runs, and the rates that come with the package."""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.errors import DamagedError, PlumblineError
from plumbline.planning.sizes import Size, in_folder, shipped
from plumbline.planning.work import HEAVY, Work, Works, length_for, pairs, work_of
from plumbline.protocols.timings.schemas import TIMINGS
from plumbline.store import read_json, read_table

RATES = Path(__file__).with_name("rates.csv")
NAME_TIMINGS = "name a run's results/tables/timings.parquet, or its folder of results"
# Where a run's manifests lie below its results.
PLACES = ("data", "models", "attributions", "scores", "benchmarks")


@dataclass(frozen=True)
class Measured:
    """A subword of work that was measured. Seconds are of the work, start-up apart."""

    work: Work
    device: str
    seconds: float
    startup_seconds: float


def rates() -> list[Measured]:
    """The rates that come with the package: medians of a unit of each kind of work."""
    found = []
    with RATES.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            names = ("", row["model"], row["measure"])
            work = Work(row["work"], names=names, kinds=names, family=row["family"])
            found.append(Measured(work, row["device"], float(row["seconds"]), float(row["startup_seconds"])))
    return found


def manifests(results: Path) -> Iterator[dict[str, Any]]:
    """The manifests below a folder of results."""
    for place in PLACES:
        for path in sorted((results / place).rglob("*.json")):
            told = read_json(path)
            parts = told.get("parts", []) if isinstance(told, dict) else []
            # Parts of a job divide its start-up.
            yield from (told | part | {"startup_seconds": part["startup_seconds"] * len(parts)} for part in parts)


def _measured(
    told: Mapping[str, Any], keys: Mapping[str, Any], measure: str, rows: float, size: Size, works: Works
) -> Measured:
    work, dataset, model = work_of(told["rule"]), keys.get("dataset") or "", keys.get("model") or ""
    family, names = works.family(dataset, model), (dataset, model, measure)
    light, kinds = work not in HEAVY, works.kinds(work, names)
    done = Work(work) if light else Work(work, rows, length_for(family, size.length), names, kinds, family)
    return Measured(done, told["device"].partition(":")[0], told["seconds"], told["startup_seconds"])


def _size(results: Path, keys: Mapping[str, Any]) -> Size:
    dataset = keys.get("dataset") or ""
    found = in_folder(results, dataset, keys.get("variant") or "plain")
    return found or shipped().get((dataset, False), Size({}))


def of_manifest(told: Mapping[str, Any], results: Path, works: Works) -> Measured:
    """What a manifest tells. Training counts the epochs that were asked for, as a plan does."""
    keys, config, work = told["keys"], told["config"], work_of(told["rule"])
    size, measure, rows = _size(results, keys), keys.get("measure", ""), float(told["rows"])
    seeds = len(config.get("seeds") or [0])
    if work == "train":
        against = config.get("against") or {}
        measure = against.get("objective") or ("given" if against else "")
        rows = float(size.instances(["train"]) * seeds * config["training"]["epochs"])
    elif work == "score":
        measure = keys["protocol"]
        declaration = works.resolved.declarations["protocol", measure]
        rows = float(size.instances(config["splits"], None if declaration.gpu else config.get("sample")) * seeds)
        rows *= pairs(len(config["measures"])) if declaration.name == "agreement" else 1
    elif work == "trace":
        rows = float(size.instances(config["splits"], config.get("sample")) * seeds)
    return _measured(told, keys, measure, rows, size, works)


def of_results(results: Path, works: Works) -> list[Measured]:
    """What the jobs of a run cost that have ended so far, as their manifests tell."""
    found = []
    for manifest in manifests(results):
        try:
            found.append(of_manifest(manifest, results, works))
        except (KeyError, TypeError, PlumblineError):
            continue  # The manifest of another version, or of another study's protocol.
    return [one for one in found if one.work.amount]


def of_table(path: Path, works: Works) -> list[Measured]:
    """The rows of a table `timings`. It has no protocols, so that scores are left out."""
    table = [row for row in read_table(path, TIMINGS).to_pylist() if row["event"] is None and row["rows"]]
    # Measures that share a job have its start-up in equal parts.
    jobs = Counter(map(_job, table))
    found = []
    for row in table:
        if work_of(row["rule"]) != "score":
            startup = row["startup_seconds"] * jobs[_job(row)]
            size, measure = _size(path.resolve().parents[1], row), row["measure"] or ""
            found.append(_measured(row | {"startup_seconds": startup}, row, measure, float(row["rows"]), size, works))
    return found


def _job(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What rows of one job share."""
    return tuple(row[key] for key in ("rule", "dataset", "variant", "model", "seeds", "startup_seconds"))


def read_timings(path: Path, works: Works) -> list[Measured]:
    """Timings of another run: its table, or the folder of its results."""
    if not path.is_file():
        found = of_results(path, works)
        if not found:
            raise PlumblineError(f"There are no timings in '{path}'; {NAME_TIMINGS}.")
        return found
    try:
        return of_table(path, works)
    except DamagedError as error:
        raise PlumblineError(f"'{path}' is no table of timings; {NAME_TIMINGS}.") from error
