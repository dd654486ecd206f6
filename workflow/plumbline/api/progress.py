"""The progress bar of the Python API."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from plumbline.runtime.progress import State, showing

# Called with the name of a stage when it begins.
Begin = Callable[[str], None]


@contextmanager
def progress_bar(enabled: bool, stages: int) -> Iterator[Begin]:
    """A bar over the stages of an evaluation, with the progress of the current one; it is removed at the end."""
    if not enabled:
        yield lambda stage: None
        return
    from tqdm import tqdm

    with tqdm(total=stages, leave=False, unit="stage") as bar:
        started = False

        def begin(stage: str) -> None:
            nonlocal started
            bar.update(started)
            started = True
            bar.set_description(stage)

        def show(state: State) -> None:
            of = "" if state.total is None else f"/{state.total}"
            bar.set_postfix_str(f"{state.doing}: {state.done}{of} {state.unit}" if state.doing else "")

        with showing(show, "plumbline"):
            yield begin
        bar.update(started)
