"""The start and end of a run, called by the Snakefile with Snakemake's workflow."""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from plumbline.errors import PlumblineError
from plumbline.runtime.corruption import ASIDE, set_aside_noted
from plumbline.runtime.fork_server import FEWEST_JOBS, ForkServer
from plumbline.runtime.gpus import crowding, installed_gpus, visible_gpus
from plumbline.runtime.merged_jobs import MERGE, write_jobs
from plumbline.runtime.orphans import mark_processes, slurm_comment, stop_leftovers
from plumbline.runtime.progress import remove_states
from plumbline.runtime.scheduling import do_not_retry_user_errors, remove_default_rate_limit

RESULTS = Path("results")


class Run:
    """The run of this process. Imports for the main process alone are lazy, as every job parses the Snakefile."""

    def __init__(self) -> None:
        self.forks = ForkServer()

    def begin(self, workflow: Any) -> None:
        """Before the first job: stop the jobs of an earlier run, and start the display."""
        from snakemake.exceptions import WorkflowError

        jobs = list(workflow.dag.needrun_jobs())
        if workflow.touch and MERGE in os.environ:
            write_jobs(Path(os.environ[MERGE]), jobs)
        try:
            message = stop_leftovers(Path.cwd(), {slurm_comment(job.rule.name, job.wildcards) for job in jobs})
        except PlumblineError as error:
            raise WorkflowError(str(error)) from None
        if message:
            print(f"plumbline: {message}", file=sys.stderr)
        if workflow.local_exec and (crowded := crowding_of(jobs, workflow.global_resources)):
            print(f"plumbline: {crowded}", file=sys.stderr)
        mark_processes()
        remove_states(RESULTS)
        remove_default_rate_limit(workflow.scheduler)
        do_not_retry_user_errors(workflow.scheduler)
        if workflow.local_exec and not workflow.touch and len(jobs) >= FEWEST_JOBS:
            self.forks.start()
        self._follow(workflow.output_settings, count_jobs(jobs))

    def _follow(self, settings: Any, jobs: Mapping[str, int]) -> None:
        """Print the run's events. With --verbose Snakemake prints them itself."""
        import atexit

        from snakemake.logging import logger
        from snakemake.shell import shell

        from plumbline.runtime.display import Display
        from plumbline.runtime.events import LogHandler

        self.events = LogHandler(settings, None)
        stream = sys.stdout if settings.stdout else sys.stderr
        self.display = Display(stream, RESULTS, self.events.running)
        if settings.verbose:
            logger.addHandler(self.events)
            return
        self.events.attach(logger, jobs, self.display.print, starts=not self.display.live)
        if self.display.live:
            self.display.start()
            atexit.register(self.display.stop)
            shell.prefix(f"set -euo pipefail; {self.display.redirection}")

    def end(
        self, workflow: Any, left_out: Iterable[str] = (), findings: Iterable[str] = (), failed: bool = False
    ) -> None:
        """After the last job: print what ran, what failed, what was left out and why, and the findings."""
        from plumbline.runtime.summary import summary

        self.display.stop()
        self.forks.stop()
        if workflow.touch:
            return
        done = count_jobs(job for job in workflow.dag.jobs if not workflow.dag.needrun(job)).total()
        lines = summary(self.events, done, left_out, findings, RESULTS, failed)
        # Jobs found these to be damaged; the next run regenerates them.
        aside = [f"plumbline: '{path}' is damaged and set aside as '{path}{ASIDE}'." for path in set_aside_noted()]
        print("", *lines, *aside, "", sep="\n", file=sys.stderr)


def crowding_of(jobs: Iterable[Any], resources: Any) -> str:
    """What to tell a user about jobs that will wait for a GPU of this machine; empty if none will."""
    needed = [job.rule.resources for job in jobs]
    slots = [_amount(one, "slots_per_gpu", 1) for one in needed if _amount(one, "gpu", 0)]
    # Without `--resources gpu=...` any number may start, as the reference says, and none is announced.
    asked = _amount(resources, "gpu", 0)
    at_once = min(len(slots), asked, _amount(resources, "_cores", asked))
    return crowding(at_once, len(visible_gpus(os.environ, installed_gpus())), max(slots)) if at_once > 1 else ""


def _amount(resources: Any, name: str, default: int) -> int:
    """A number among Snakemake's resources, a mapping or, in newer versions, one of objects with a value."""
    amount = resources.get(name) if name in resources else None
    amount = getattr(amount, "value", amount)
    return amount if isinstance(amount, int) else default


def count_jobs(jobs: Iterable[Any]) -> Counter[str]:
    """The number of Snakemake's jobs by rule, without those that only collect targets."""
    from plumbline.runtime.events import TARGETS

    return Counter(job.rule.name for job in jobs if job.rule.name not in TARGETS)
