"""Work of a fixed shape on a GPU, recorded once as a CUDA graph and replayed from then on.

A small model's step is hundreds of kernels of a few microseconds; started one by one, the processor that starts them is
the bottleneck. A graph starts them all in one call. Several recorded calls, each on its own stream, also run
side by side.
"""

import gc
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from plumbline.models.budget import out_of_memory


class Recorded:
    """A function of hashable arguments, its work recorded for each of them.

    All tensors it touches must stay where they are between calls, and it must not read a result on the host. The first
    call runs as it is, and so sets up what must not be recorded. What it draws at random, such as dropout, comes from a
    generator of its own, so that work on other streams neither changes it nor races with it.
    """

    def __init__(self, work: Callable[..., None], stream: torch.cuda.Stream, seed: int) -> None:
        self.work = work
        self.stream = stream
        self._random: Any = torch.Generator(stream.device).manual_seed(seed).graphsafe_get_state()
        self.graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._pool: Any = None
        self._recordable = True
        self._expected: list[tuple[int, ...]] = []

    def expect(self, shapes: Iterable[tuple[int, ...]]) -> None:
        """Say which arguments, numbers that grow with the work, will come; they are recorded at once, when first is.

        The largest comes first, since smaller ones fit into its memory, but not it into theirs.
        """
        self._expected = sorted(set(shapes), reverse=True)

    def __call__(self, *shape: Hashable) -> None:
        with torch.cuda.stream(self.stream):
            if shape in self.graphs:
                self.graphs[shape].replay()
                return
            with self._own_randomness():
                if self._pool is None:
                    self._pool = torch.cuda.graph_pool_handle()
                elif self._recordable:
                    for expected in (*self._expected, shape):
                        if self._recordable and expected not in self.graphs:
                            self._try_to_record(expected)
                    self._expected = []
                if shape in self.graphs:
                    self.graphs[shape].replay()
                else:
                    self.work(*shape)

    @contextmanager
    def _own_randomness(self) -> Iterator[None]:
        generator: Any = torch.cuda.default_generators[self.stream.device.index]
        before = generator.graphsafe_get_state()
        generator.graphsafe_set_state(self._random)
        try:
            yield
        finally:
            generator.graphsafe_set_state(before)

    def _try_to_record(self, shape: tuple[Hashable, ...]) -> None:
        # Recording runs nothing, so work that cannot be recorded has not happened and can simply be run.
        try:
            self.graphs[shape] = self._record(*shape)
        except RuntimeError as error:
            if out_of_memory(error):
                raise
            self._recordable = False
            reason = str(error).splitlines()[0]
            warnings.warn(f"plumbline: steps cannot be recorded, so training is slower: {reason}", stacklevel=4)

    def _record(self, *shape: Hashable) -> torch.cuda.CUDAGraph:
        # Not `torch.cuda.graph`, which first waits for all streams. The garbage collector must not run meanwhile: if it
        # met another graph or tensor of the GPU, its release would break the recording.
        graph = torch.cuda.CUDAGraph()
        collecting = gc.isenabled()
        gc.disable()
        try:
            # The graphs of one stream never run at the same time, so they may share their memory.
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                self.work(*shape)
            finally:
                graph.capture_end()
        finally:
            if collecting:
                gc.enable()
        return graph
