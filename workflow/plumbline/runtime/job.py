"""What every script under workflow/scripts shares: error messages for the user, and a manifest of the work."""

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
    """Snakemake's containers as lists and dictionaries."""
    if hasattr(value, "items"):
        return {str(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain_values(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def versions() -> dict[str, str]:
    """The versions of Python and the packages that a result depends on."""
    installed = {"python": platform.python_version(), "plumbline": plumbline.__version__}
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


def _age() -> float:
    """Seconds since this process started."""
    try:
        started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    except OSError:
        import psutil

        return time.time() - psutil.Process().create_time()
    # psutil would be wrong by up to a second: Linux gives its boot time in whole seconds.
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


class Part(NamedTuple):
    """A part of a job's work: its rows, its seconds and its measure, if any."""

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

        device = choose_device(self.snakemake.resources.slots_per_gpu)
        self._clock = time.perf_counter()
        return device

    def budget(self, kind: Callable[..., Budget]) -> Budget:
        """The token budget of this job's batches; without a configured number it is chosen from the free memory."""
        resources = self.snakemake.resources
        self._budget = kind(resources.token_budget, resources.mem_mb, resources.slots_per_gpu)
        return self._budget

    def manifest(self, rows: int, device: Any = None, measure: str = "") -> None:
        """Write the manifest: rule, options, versions, device and cost."""
        self.manifest_of([Part(rows, time.perf_counter() - self._clock, measure)], device)

    def manifest_of(self, parts: Sequence[Part], device: Any = None) -> None:
        """Write the manifest of a job with several parts, which share its start-up; events belong to the first."""
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


def _format_warning(message: Warning | str, *details: Any, default: Any = warnings.formatwarning) -> str:
    """Format our own warnings without their location in the code."""
    return f"{message}\n" if str(message).startswith("plumbline:") else default(message, *details)


def _user_message(error: Exception, inputs: Sequence[str]) -> str | None:
    """The message of an error that the user can fix. A damaged input is noted, so that the next run regenerates it."""
    if isinstance(error, DamagedError) and str(error.path) in inputs:
        note(error.path)
        return f"'{error.path}' {error.wrong}. Run again, and it is set aside and regenerated."
    if isinstance(error, PlumblineError):
        return str(error)
    # Libraries wrap system errors, each in its own way.
    causes = f"{error} {error.__cause__} {error.__context__}"
    if any(full in causes for full in ("No space left on device", "os error 28", "Disk quota exceeded")):
        return (
            "The disk is full: there is no space for this job's output. Free some and run again; no file is "
            "half-written, and finished files stay."
        )
    return None


@contextmanager
def job(snakemake: Any) -> Iterator[Job]:
    """Run a script's body. An error in the input ends in one message, on the terminal and in the log."""
    log = Path(snakemake.log[0]) if snakemake.log else None
    if log:
        log.unlink(missing_ok=True)  # The log of an earlier attempt.
    inputs = [str(file) for file in snakemake.input]
    warnings.formatwarning = _format_warning  # type: ignore[assignment]
    name = job_name(snakemake.rule, snakemake.wildcards)
    try:
        with reporting(Path("results"), name, [str(file) for file in snakemake.output]):
            yield Job(snakemake)
    except Exception as error:
        message = _user_message(error, inputs)
        with suppress(OSError):  # The disk may be full.
            if log:
                log.write_text(f"plumbline: {message}\n" if message else traceback.format_exc(), encoding="utf-8")
        if message is None:
            raise
        print(f"\nplumbline: {message}\n", file=sys.stderr)
        sys.exit(1)
