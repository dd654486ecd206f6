"""What every script under workflow/scripts shares: one sentence for a person's fault, and a manifest of the work."""

import os
import platform
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import plumbline
from plumbline.errors import DamagedError, PlumblineError
from plumbline.runtime.corruption import note
from plumbline.runtime.progress import job_name, reporting
from plumbline.store import write_json

Budget = TypeVar("Budget")
PACKAGES = ["torch", "numpy", "pandas", "scipy", "pyarrow", "spacy", "captum", "transformers", "snakemake"]


def plain_values(value: Any) -> Any:
    """Snakemake's containers as plain lists and dictionaries."""
    if hasattr(value, "items"):
        return {str(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain_values(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    found = {"python": platform.python_version(), "plumbline": plumbline.__version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _age() -> float:
    """Seconds since this process was started."""
    try:
        started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    except OSError:
        import psutil

        return time.time() - psutil.Process().create_time()
    # psutil would be wrong by up to a second here: Linux tells the time of its boot in whole seconds.
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


class Part(NamedTuple):
    """A part of a job's work: the rows it made, its seconds and its measure, if it has one."""

    rows: int
    seconds: float
    measure: str = ""


class Job:
    """A running job: its Snakemake object, its clock and its manifest."""

    def __init__(self, snakemake: Any) -> None:
        self.snakemake = snakemake
        self._startup = _age()
        self._clock = time.perf_counter()
        self._budget: Any = None

    def device(self) -> Any:
        """The device of this job; the wait for a GPU does not count as work."""
        from plumbline.runtime.devices import choose_device

        chosen = choose_device(self.snakemake.resources.slots_per_gpu)
        self._clock = time.perf_counter()
        return chosen

    def budget(self, kind: Callable[..., Budget]) -> Budget:
        """The token budget of this job's passes, of this kind; without a number it is chosen from the free memory."""
        resources = self.snakemake.resources
        self._budget = kind(resources.token_budget, resources.mem_mb, resources.slots_per_gpu)
        return self._budget

    def manifest(self, rows: int, device: Any = None, measure: str = "") -> None:
        """Write what was run, with which options and versions, where, and what it cost."""
        self.manifest_of([Part(rows, time.perf_counter() - self._clock, measure)], device)

    def manifest_of(self, parts: Sequence[Part], device: Any = None) -> None:
        """The same of a job with several parts, which share its start-up; events count for the first."""
        kind = str(device or "cpu")
        peak_gpu, devices = 0.0, [platform.processor() or platform.machine()]
        if kind.startswith("cuda"):
            import torch

            peak_gpu = torch.cuda.max_memory_allocated(device) / 2**20
            devices = [torch.cuda.get_device_name(device)]
        events = self._budget.events if self._budget else []
        write_json(
            self.snakemake.output.manifest,
            {
                "rule": self.snakemake.rule,
                "config": plain_values(self.snakemake.params),
                "versions": versions(),
                "host": platform.node(),
                "devices": devices,
                "device": kind,
                "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                "peak_rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                "peak_gpu": peak_gpu,
                "token_budget": (self._budget.tokens or None) if self._budget else None,
                "parts": [
                    {
                        "keys": plain_values(self.snakemake.wildcards)
                        | ({"measure": part.measure} if part.measure else {}),
                        "seconds": part.seconds,
                        "startup_seconds": self._startup / len(parts),
                        "rows": part.rows,
                        "rows_per_second": part.rows / max(part.seconds, 1e-9),
                        "events": [] if number else events,
                    }
                    for number, part in enumerate(parts)
                ],
            },
        )


def _sentence(message: Warning | str, *details: Any, usual: Any = warnings.formatwarning) -> str:
    """A warning of ours without the place in the code that gave it."""
    told = str(message)
    return f"{told}\n" if told.startswith("plumbline:") else usual(message, *details)


def _told(error: Exception, inputs: Sequence[str]) -> str | None:
    """The sentence of an error that a person can cure. A damaged input is noted, so that the next run makes it anew."""
    if isinstance(error, DamagedError) and str(error.path) in inputs:
        note(error.path)
        return f"'{error.path}' {error.wrong}. Run again, and it is set aside and made anew."
    if isinstance(error, PlumblineError):
        return str(error)
    # Libraries wrap what the system says, each in its own way.
    causes = f"{error} {error.__cause__} {error.__context__}"
    if any(full in causes for full in ("No space left on device", "os error 28", "Disk quota exceeded")):
        return (
            "The disk is full: there is no room for what this job writes. Free some and run again; nothing is "
            "half-written, and what is finished stays."
        )
    return None


@contextmanager
def job(snakemake: Any) -> Iterator[Job]:
    """Run a script's body. A fault of the input ends in one sentence, on the terminal and in the log."""
    log = Path(snakemake.log[0]) if snakemake.log else None
    if log:
        log.unlink(missing_ok=True)  # What an earlier attempt said is not about this one.
    inputs = [str(file) for file in snakemake.input]
    warnings.formatwarning = _sentence  # type: ignore[assignment]
    name = job_name(snakemake.rule, snakemake.wildcards)
    try:
        with reporting(Path("results"), name, [str(file) for file in snakemake.output]):
            yield Job(snakemake)
    except Exception as error:
        told = _told(error, inputs)
        with suppress(OSError):  # There may be no room for it.
            if log:
                log.write_text(f"plumbline: {told}\n" if told else traceback.format_exc(), encoding="utf-8")
        if told is None:
            raise
        print(f"\nplumbline: {told}\n", file=sys.stderr)
        sys.exit(1)
