"""The progress of an evaluation: a bar in a terminal or a notebook, else a line for each finished stage."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from plumbline.runtime.progress import State, showing

# Called when a stage begins, with its name and the number of measures and protocols that it computes.
Begin = Callable[[str, int], None]
UNIT = "measures and protocols"
# Neither a rate nor a remaining time: measures and protocols differ too much in their costs.
BAR = "{desc} |{bar:20}| {n_fmt} of {total_fmt} " + UNIT + ", {elapsed}{postfix}"


@contextmanager
def show_progress(enabled: bool, total: int) -> Iterator[Begin]:
    """Show how many of all measures and protocols are computed, and the current stage."""
    if not enabled:
        yield lambda stage, count: None
        return
    with _bar(total) if _is_live() else _lines(total) as begin:
        yield begin


def _is_live() -> bool:
    """Whether a line can be overwritten: in a terminal or a notebook."""
    from plumbline.runtime.display import supports_display

    return "ipykernel" in sys.modules or supports_display(sys.stderr)


@contextmanager
def _bar(total: int) -> Iterator[Begin]:
    """A bar with the progress of the current stage behind it; it is removed at the end."""
    from tqdm import tqdm

    with tqdm(total=total, leave=False, bar_format=BAR) as bar:
        running = 0

        def begin(stage: str, count: int) -> None:
            nonlocal running
            bar.update(running)
            running = count
            bar.set_description_str(stage)

        def show(state: State) -> None:
            of = "" if state.total is None else f" of {state.total}"
            bar.set_postfix_str(f"{state.doing}: {state.done}{of} {state.unit}s" if state.doing else "")

        with showing(show, "plumbline"):
            yield begin
        bar.update(running)


@contextmanager
def _lines(total: int) -> Iterator[Begin]:
    """A line for each stage when it ends, with its seconds."""
    stage, running, done, began = "", 0, 0, time.perf_counter()

    def begin(name: str, count: int) -> None:
        nonlocal stage, running, done, began
        done += running
        if stage:
            seconds = time.perf_counter() - began
            print(f"plumbline: {stage}: {seconds:.1f} s ({done} of {total} {UNIT})", file=sys.stderr, flush=True)
        stage, running, began = name, count, time.perf_counter()

    yield begin
    begin("", 0)
