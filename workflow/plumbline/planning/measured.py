"""Measured costs of work: manifests and tables of earlier runs, and the rates in the package."""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.errors import DamagedError, PlumblineError
from plumbline.planning.sizes import Size, packaged_sizes, stored_size
from plumbline.planning.work import HEAVY, Work, Works, count_pairs, kind_of_work, length_for
from plumbline.protocols.timings.schemas import TIMINGS
from plumbline.store import read_json, read_table

RATES = Path(__file__).with_name("rates.csv")
NAME_TIMINGS = "give a run's results/tables/timings.parquet, its results folder or a recorded run"
# Folders below a run's results that hold manifests.
MANIFEST_FOLDERS = ("data", "models", "attributions", "scores", "benchmarks")


@dataclass(frozen=True)
class Measurement:
    """A measured unit of work: its seconds, without start-up, and the seconds of start-up."""

    work: Work
    device: str
    seconds: float
    startup_seconds: float


def rates() -> list[Measurement]:
    """The rates in the package: median seconds per unit of each kind of work."""
    measurements = []
    with RATES.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            names = ("", row["model"], row["measure"])
            work = Work(row["work"], names=names, kinds=names, family=row["family"])
            seconds, startup_seconds = float(row["seconds"]), float(row["startup_seconds"])
            measurements.append(Measurement(work, row["device"], seconds, startup_seconds))
    return measurements


def manifests(results: Path) -> Iterator[dict[str, Any]]:
    """The parts of all manifests in a results folder, each with the whole start-up of its job."""
    for folder in MANIFEST_FOLDERS:
        for path in sorted((results / folder).rglob("*.json")):
            manifest = read_json(path)
            parts = manifest.get("parts", []) if isinstance(manifest, dict) else []
            # The manifest divides a job's start-up among its parts.
            yield from (manifest | part | {"startup_seconds": part["startup_seconds"] * len(parts)} for part in parts)


def _measurement(
    manifest: Mapping[str, Any], keys: Mapping[str, Any], measure: str, rows: float, size: Size, works: Works
) -> Measurement:
    work, dataset, model = kind_of_work(manifest["rule"]), keys.get("dataset") or "", keys.get("model") or ""
    family, names = works.family(dataset, model), (dataset, model, measure)
    light, kinds = work not in HEAVY, works.kinds(work, names)
    done = Work(work) if light else Work(work, rows, length_for(family, size.length), names, kinds, family)
    return Measurement(done, manifest["device"].partition(":")[0], manifest["seconds"], manifest["startup_seconds"])


def _size(results: Path, keys: Mapping[str, Any]) -> Size:
    dataset = keys.get("dataset") or ""
    size = stored_size(results, dataset, keys.get("variant") or "plain")
    return size or packaged_sizes().get((dataset, False), Size({}))


def from_manifest(manifest: Mapping[str, Any], results: Path, works: Works) -> Measurement:
    """The measurement in a manifest. Training counts the configured epochs, as a plan does."""
    keys, config, work = manifest["keys"], manifest["config"], kind_of_work(manifest["rule"])
    size, measure, rows = _size(results, keys), keys.get("measure", ""), float(manifest["rows"])
    seeds = len(config.get("seeds") or [0])
    if work == "train":
        adversary = config.get("base") or {}
        measure = adversary.get("objective") or ("given" if adversary else "")
        rows = float(size.instances(["train"]) * seeds * config["training"]["epochs"])
    elif work == "score":
        measure = keys["protocol"]
        declaration = works.resolved.declarations["protocol", measure]
        rows = float(size.instances(config["splits"], None if declaration.gpu else config.get("sample")) * seeds)
        rows *= count_pairs(len(config["measures"])) if declaration.name == "agreement" else 1
    elif work == "trace":
        rows = float(size.instances(config["splits"], config.get("sample")) * seeds)
    return _measurement(manifest, keys, measure, rows, size, works)


def from_results(results: Path, works: Works) -> list[Measurement]:
    """Measurements of the finished jobs of a run, from their manifests."""
    measurements = []
    for manifest in manifests(results):
        try:
            measurements.append(from_manifest(manifest, results, works))
        except (KeyError, TypeError, PlumblineError):
            continue  # The manifest of another version, or of another study's protocol.
    return [measurement for measurement in measurements if measurement.work.amount]


def from_table(path: Path, works: Works) -> list[Measurement]:
    """Measurements in a table `timings`, without scores, as it does not name protocols."""
    table = [row for row in read_table(path, TIMINGS).to_pylist() if row["event"] is None and row["rows"]]
    # The table divides a job's start-up among its measures.
    jobs = Counter(map(_job, table))
    measurements = []
    for row in table:
        if kind_of_work(row["rule"]) != "score":
            startup = {"startup_seconds": row["startup_seconds"] * jobs[_job(row)]}
            size, measure = _size(path.resolve().parents[1], row), row["measure"] or ""
            measurements.append(_measurement(row | startup, row, measure, float(row["rows"]), size, works))
    return measurements


def _job(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values that rows of one job share."""
    return tuple(row[key] for key in ("rule", "dataset", "variant", "model", "seeds", "startup_seconds"))


def read_timings(path: Path, works: Works) -> list[Measurement]:
    """Measurements of another run, from its table, its results folder or its recorded tables."""
    if not path.is_file():
        measurements = from_results(path, works)
        if measurements:
            return measurements
        table = path / "tables/timings.parquet"
        if not table.is_file():
            raise PlumblineError(f"There are no timings in '{path}'; {NAME_TIMINGS}.")
        path = table
    try:
        return from_table(path, works)
    except DamagedError as error:
        raise PlumblineError(f"'{path}' is not a table of timings; {NAME_TIMINGS}.") from error
