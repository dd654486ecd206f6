"""What work has cost: the manifests and tables of earlier runs, and the rates that come with the package."""

import csv
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.errors import DamagedError, PlumblineError
from plumbline.planning.sizes import Size, in_folder, shipped
from plumbline.planning.work import HEAVY, family, length_for, pairs, work_of
from plumbline.protocols.timings.schemas import TIMINGS
from plumbline.registry import Kind, Registry
from plumbline.store import read_json, read_table

RATES = Path(__file__).with_name("measured.csv")
# Where a run's manifests lie below its results.
PLACES = ("data", "models", "attributions", "scores", "benchmarks")
# The work that stands for what Snakemake spends on every job beside the job's own time.
AROUND = "snakemake"
# Rows of this rule divide the start-up of their job.
TOGETHER = "attribute_together"


@dataclass(frozen=True)
class Measured:
    """A piece of work that was measured, or the mean of `jobs` alike. `names` are those of its study, empty if they are
    not known; the other columns are those of `Work`. Seconds are of the work, start-up apart."""

    work: str
    kinds: tuple[str, str, str]
    family: str
    device: str
    seconds: float
    startup_seconds: float
    rows: float
    length: float
    names: tuple[str, str, str] = ("", "", "")
    jobs: int = 1


def rates() -> list[Measured]:
    """The rates that come with the package."""
    with RATES.open(encoding="utf-8", newline="") as file:
        return [
            Measured(
                row["work"],
                (row["dataset"], row["model"], row["measure"]),
                row["family"],
                row["device"],
                float(row["seconds"]),
                float(row["startup_seconds"]),
                float(row["rows"]),
                float(row["length"]),
                jobs=int(row["jobs"]),
            )
            for row in csv.DictReader(file)
        ]


def kind_of(registry: Registry, kind: Kind, name: str, pointer: str, options: Mapping[str, Any]) -> str:
    """The registered name of an object: its own, or that of the declaration most like it; a stranger's is its own."""
    # An adversary is a model like its base, after which it is named.
    for own in (name, name.partition(".")[0]):
        if own in registry.names(kind):
            return own
    alike = [declaration for declaration in registry.all(kind) if declaration.pointer == pointer]

    def shared(declaration: Any) -> int:
        return sum(options.get(option) == usual.default for option, usual in declaration.options.items())

    return max(alike, key=shared).name if alike else name


def manifests(results: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The manifests below a folder of results, with their places."""
    for place in PLACES:
        for path in sorted((results / place).rglob("*.json")):
            told = read_json(path)
            if isinstance(told, dict) and "startup_seconds" in told:
                yield path, told


def of_manifest(path: Path, told: Mapping[str, Any], results: Path, registry: Registry) -> Measured:
    """What a manifest tells."""
    keys, config, work = told["keys"], told["config"], work_of(told["rule"])
    dataset, model, measure = (keys.get(key, "") for key in ("dataset", "model", "measure"))
    size = in_folder(results, dataset, keys.get("variant", "plain")) or shipped().get((dataset, False), Size({}))
    rows, startup = float(told["rows"]), told["startup_seconds"]
    seeds = len(config.get("seeds") or [0])
    # Scripts name the model's object and options apart from their own.
    pointer = config.get("model", config.get("object", ""))
    options = config.get("model_options", config.get("options", {}))
    kinds = [dataset, kind_of(registry, "model", model, pointer, options) if model else "", measure]
    if work == "train":
        against = config.get("against") or {}
        measure = kinds[2] = against.get("objective") or ("given" if against else "")
        rows *= _asked(path, config["training"])
    elif work == "attribute":
        asked = config["measures"]
        startup *= len(asked)
        kinds[2] = kind_of(registry, "measure", measure, asked[measure]["object"], asked[measure]["options"])
    elif work == "score":
        measure = keys["protocol"]
        kinds[2] = kind_of(registry, "protocol", measure, config["object"], config["options"])
        sample = None if registry.get("protocol", kinds[2]).gpu else config.get("sample")
        rows = size.instances(config["splits"], sample) * seeds
        rows *= pairs(len(config["measures"])) if kinds[2] == "agreement" else 1
    elif work == "trace":
        rows = size.instances(config["splits"], config.get("sample")) * seeds
    elif work not in HEAVY:
        rows = 0.0  # Light work is counted in files, and what is the same in every study is not counted.
    of_family = family(options, pointer, _reads(registry, kinds[1], options)) if model else ""
    return Measured(
        work,
        (kinds[0], kinds[1], kinds[2]),
        of_family,
        told["device"].partition(":")[0],
        told["seconds"],
        startup,
        rows,
        length_for(of_family, size.length),
        (dataset, model, measure),
    )


def _reads(registry: Registry, kind: str, options: Mapping[str, Any]) -> str:
    """What a model reads; of a stranger's, one that has a checkpoint reads its pieces."""
    if kind in registry.names("model"):
        return str(registry.get("model", kind).reads)
    return "pieces" if options.get("checkpoint") else "words"


def _asked(path: Path, training: Mapping[str, Any]) -> float:
    """Epochs that were asked for by those that were run, which a recipe may make fewer."""
    history = path.with_name("history.parquet")
    if not history.exists() or (training.get("patience") is None and training.get("stop_at") is None):
        return 1.0
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    run = pc.max(pq.read_table(history, columns=["epoch"])["epoch"]).as_py()
    return float(training["epochs"] / run) if run else 1.0


def of_results(results: Path, plugins: Iterable[str | Path] = ()) -> list[Measured]:
    """What the jobs of a run cost that have ended so far: what their manifests tell, and what else its table does."""
    registry = Registry(plugins)
    found, told = [], set()
    for path, manifest in manifests(results):
        try:
            found.append(of_manifest(path, manifest, results, registry))
        except (KeyError, TypeError, PlumblineError):
            continue  # The manifest of another version, or of a plug-in that is gone.
        told.add(_key(manifest["rule"], manifest["keys"]))
    with suppress(PlumblineError):  # No table yet, or one of another version; the manifests tell most.
        found += of_table(results / "tables" / "timings.parquet", results, told, found)
    return found


def _key(rule: str, keys: Mapping[str, Any]) -> tuple[str, ...]:
    """What a row of timings is about."""
    return rule, *(keys.get(key) or "" for key in ("dataset", "variant", "model", "seeds", "measure"))


def of_table(
    path: Path, results: Path = Path(), told: Container[tuple] = (), others: Sequence[Measured] = ()
) -> list[Measured]:
    """The rows of a table `timings` but those that manifests have told; `others` tell what is behind its study's names.

    It has no protocols, so that scores are left out.
    """
    registry, models = Registry(), {one.names[1]: (one.kinds[1], one.family) for one in others}
    table = [
        row for row in read_table(path, TIMINGS).to_pylist() if row["event"] is None and row["seconds"] is not None
    ]
    shared = Counter(_key(row["rule"], row)[:-1] for row in table if row["rule"] == TOGETHER)
    found = []
    for row in table:
        work, key = work_of(row["rule"]), _key(row["rule"], row)
        if key in told or work == "score":
            continue
        dataset, model, measure = (row[name] or "" for name in ("dataset", "model", "measure"))
        size = in_folder(results, dataset, row["variant"] or "") or shipped().get((dataset, False), Size({}))
        kind, of_family = models.get(model) or _registered(registry, model)
        measure = "" if work == "train" else measure
        found.append(
            Measured(
                work,
                (dataset, kind, measure),
                of_family,
                row["device"].partition(":")[0],
                row["seconds"],
                row["startup_seconds"] * shared.get(key[:-1], 1),
                float(row["rows"]),
                length_for(of_family, size.length),
                (dataset, model, measure),
            )
        )
    return found


def _registered(registry: Registry, model: str) -> tuple[str, str]:
    """The kind and family of a model that is known by its name alone."""
    if model not in registry.names("model"):
        return model, ""
    declaration = registry.get("model", model)
    usual = {name: option.default for name, option in declaration.options.items()}
    return model, family(usual, declaration.pointer, declaration.reads)


def read_timings(path: Path) -> list[Measured]:
    """Timings of another run: its table, or the folder of its results."""
    name = "name a run's results/tables/timings.parquet, or its folder of results"
    if not path.is_file():
        found = of_results(path)
        if not found:
            raise PlumblineError(f"There are no timings in '{path}'; {name}.")
        return found
    try:
        return of_table(path, path.resolve().parents[1])
    except DamagedError as error:
        raise PlumblineError(f"'{path}' is no table of timings; {name}.") from error
