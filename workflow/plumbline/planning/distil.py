"""Makes the package's tables of rates: `python -m plumbline.planning.distil RESULTS ... > measured.csv`.

Each folder of results gives what its manifests tell, the mean of jobs that did the same; of runs on a single GPU, which
jobs may have shared. Snakemake's own records of the run, beside the results, give what light jobs took, which write no
manifest, and what every job takes beside its work.
"""

import ast
import csv
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import TextIO

from plumbline.planning.measured import AROUND, Measured, manifests, read_timings
from plumbline.planning.work import HEAVY, work_of
from plumbline.registry import PACKAGE
from plumbline.store import read_json

COLUMNS = ["work", "dataset", "model", "measure", "family", "device", "jobs"]
COLUMNS += ["seconds", "startup_seconds", "rows", "length"]
NOTHING = ("", "", "")
SCRIPTS = PACKAGE.parent / "scripts"


def together(found: Iterable[Measured]) -> list[Measured]:
    """The mean of those that did the same."""
    alike: dict[tuple, list[Measured]] = defaultdict(list)
    for one in found:
        alike[one.work, one.kinds, one.family, one.device].append(one)
    return [
        replace(
            some[0],
            seconds=fmean(one.seconds for one in some),
            startup_seconds=median(one.startup_seconds for one in some),
            rows=fmean(one.rows for one in some),
            length=fmean(one.length for one in some),
            jobs=len(some),
        )
        for _, some in sorted(alike.items())
    ]


def gpu_shares(runs: Sequence[Sequence[tuple[float, float]]]) -> list[float]:
    """The part of the one GPU that the jobs of each run had on average, from the starts and ends of all: jobs that
    share a GPU do no more together than one of them would."""
    every = sorted(span for spans in runs for span in spans)
    edges = sorted({edge for span in every for edge in span})
    # Seconds of a GPU that a job had up to each edge, if it had begun before all of them.
    had, sums, now = 0.0, {edge: 0.0 for edge in edges[:1]}, 0
    changes = Counter(start for start, _ in every)
    changes.subtract(Counter(end for _, end in every))
    for edge, following in pairwise(edges):
        now += changes[edge]
        had += (following - edge) / now if now else 0.0
        sums[following] = had
    shares = []
    for spans in runs:
        whole = sum(end - start for start, end in spans)
        shares.append(sum(sums[end] - sums[start] for start, end in spans) / whole if whole else 1.0)
    return shares


def spans_of(results: Path) -> list[tuple[float, float]]:
    """When the jobs of a run had a GPU."""
    found = []
    for _, told in manifests(results):
        if told["device"].startswith("cuda") and "finished" in told:
            end = datetime.fromisoformat(told["finished"]).timestamp()
            found.append((end - told["seconds"], end))
    return found


def alone(paths: Sequence[Path]) -> Iterator[Measured]:
    """What the work of runs would have cost with the GPU to itself: training takes the longer the more share a GPU, as
    it is bound by the order of its small steps; explaining takes what it takes, as it fills the GPU by itself."""
    for path, share in zip(paths, gpu_shares([spans_of(path) for path in paths]), strict=True):
        # Work on texts of unknown length stands for no other.
        for one in (one for one in read_timings(path) if one.length or one.work not in HEAVY):
            shared = one.device == "cuda" and one.work == "train"
            yield replace(one, seconds=one.seconds * share) if shared else one


@dataclass(frozen=True)
class Record:
    """What Snakemake recorded of a job: its rule and script, its seconds, and the files that it read and wrote."""

    rule: str
    script: str
    log: str
    seconds: float
    files: int


def records(project: Path) -> list[Record]:
    """The jobs that Snakemake recorded in a project; it records each of their outputs."""
    jobs: dict[tuple[str, str], list[dict]] = defaultdict(list)
    for path in sorted((project / ".snakemake" / "metadata").rglob("*")):
        told = read_json(path) if path.is_file() else {}
        if told.get("endtime") and told.get("log"):
            jobs[told["rule"], told["log"][0]].append(told)
    found = []
    for (rule, log), outputs in jobs.items():
        seconds = max(told["endtime"] for told in outputs) - min(told["starttime"] for told in outputs)
        script = re.search(r"scripts/(\w+\.py)", outputs[0]["code"] or "")
        files = len(outputs) + len(outputs[0]["input"] or [])
        found.append(Record(rule, script[1] if script else "", log, seconds, files))
    return found


@cache
def import_seconds(script: str) -> float:
    """Seconds that a script takes to start: a new Python with its imports, the faster of two."""
    tree = ast.parse((SCRIPTS / script).read_text(encoding="utf-8"))
    needed = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    spent = []
    for _ in range(2):
        start = time.monotonic()
        subprocess.run([sys.executable, "-c", "\n".join(needed)], check=True)
        spent.append(time.monotonic() - start)
    return min(spent)


def light(results: Iterable[Path]) -> list[Measured]:
    """What light jobs took by the files that they read and write, and what Snakemake spends on every job."""
    jobs: dict[str, list[Record]] = defaultdict(list)
    around: list[float] = []
    told: set[str] = set()
    for folder in results:
        costs: dict[str, float] = {}
        for _, manifest in manifests(folder):
            keys, rule = manifest["keys"], manifest["rule"]
            told.add(work_of(rule))
            if rule in ("train", "attend"):
                log = "results/logs/{}/{dataset}/{variant}/{model}/{seeds}.log".format(rule, **keys)
                costs[log] = manifest["seconds"] + manifest["startup_seconds"]
        for record in records(folder.parent):
            jobs[work_of(record.rule)].append(record)
            around += [record.seconds - costs[record.log]] if record.log in costs else []
    usual = max(median(around), 0.0) if around else 0.0
    found = []
    for work, some in sorted(jobs.items()):
        if work not in told and some[0].script:
            files, seconds = fmean(one.files for one in some), fmean(one.seconds for one in some)
            own = max(seconds - usual, 0.0)
            start = min(import_seconds(some[0].script), own)
            found.append(Measured(work, NOTHING, "", "cpu", own - start, start, files, 0.0, jobs=len(some)))
    return [*found, Measured(AROUND, NOTHING, "", "cpu", 0.0, usual, 0.0, 0.0, jobs=len(around))]


def write(found: Iterable[Measured], file: TextIO) -> None:
    """The table as CSV."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in found:
        numbers = [f"{number:.6g}" for number in (one.seconds, one.startup_seconds, one.rows, one.length)]
        writer.writerow([one.work, *one.kinds, one.family, one.device, one.jobs, *numbers])


def main(folders: Sequence[str]) -> None:
    """Entry point."""
    paths = [Path(folder) for folder in folders]
    write([*together(alone(paths)), *light(paths)], sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
