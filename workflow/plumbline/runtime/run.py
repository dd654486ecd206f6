"""The beginning and the end of a run, which the Snakefile calls with Snakemake's workflow."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plumbline.errors import PlumblineError
from plumbline.runtime.corruption import ASIDE, set_aside_noted
from plumbline.runtime.fork_server import FEWEST_JOBS, ForkServer
from plumbline.runtime.orphans import comment, mark_processes, stop_leftovers
from plumbline.runtime.progress import forget
from plumbline.runtime.scheduling import remove_default_rate_limit, retry_only_what_may_be_cured

RESULTS = Path("results")


class Run:
    """A run of this process. What only its main process needs is imported late, as every job reads the Snakefile."""

    def __init__(self) -> None:
        self.forks = ForkServer()

    def begin(self, workflow: Any) -> None:
        """Before the first job: nothing of an earlier run is left, and from now on running jobs are shown."""
        from snakemake.exceptions import WorkflowError

        jobs = list(workflow.dag.needrun_jobs())
        try:
            told = stop_leftovers(Path.cwd(), {comment(job.rule.name, job.wildcards) for job in jobs})
        except PlumblineError as error:
            raise WorkflowError(str(error)) from None
        if told:
            print(f"plumbline: {told}", file=sys.stderr)
        mark_processes()
        forget(RESULTS)
        remove_default_rate_limit(workflow.scheduler)
        retry_only_what_may_be_cured(workflow.scheduler)
        if workflow.local_exec and len(jobs) >= FEWEST_JOBS:
            self.forks.start()
        self._follow(workflow.output_settings, len(jobs))

    def _follow(self, settings: Any, jobs: int) -> None:
        """Follow the run by its events. With --verbose Snakemake tells of it itself."""
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

    def end(self, workflow: Any, left_out: Iterable[str] = (), found: Iterable[str] = (), failed: bool = False) -> None:
        """After the last job: what ran, what failed, why the study leaves out what it does, and what it found."""
        from plumbline.runtime.summary import summary

        self.display.stop()
        self.forks.stop()
        if workflow.touch:
            return
        done = sum(not workflow.dag.needrun(job) for job in workflow.dag.jobs)
        lines = summary(self.events, done, left_out, found, RESULTS, failed)
        # Jobs found these to be damaged; they are missing from now on, and so the next run makes them anew.
        aside = [f"plumbline: '{path}' is damaged and set aside as '{path}{ASIDE}'." for path in set_aside_noted()]
        print("", *lines, *aside, "", sep="\n", file=sys.stderr)
