"""Functions of fixed shapes on a GPU, recorded once as a CUDA graph and replayed afterwards.

A training step of a small model is hundreds of kernels of a few microseconds; launched one by one, the host is the
bottleneck. A graph launches them all in one call. Recorded calls on different streams also run concurrently.
"""

import gc
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from plumbline.models.budget import out_of_memory


class Recorded:
    """A function of hashable arguments, recorded as one graph for each of them.

    All tensors it uses must keep their memory between calls, and it must not read a result on the host. The first call
    is not recorded, so that it can set up state. Random draws, such as dropout, come from a separate generator, so that
    work on other streams neither changes them nor races with them.
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
        """Announce the arguments of later calls, which are all recorded with the first recording.

        They are recorded in descending order, since smaller shapes fit into the memory of larger ones.
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
        # Recording executes nothing, so work that cannot be recorded can be run afterwards.
        try:
            self.graphs[shape] = self._record(*shape)
        except RuntimeError as error:
            if out_of_memory(error):
                raise
            self._recordable = False
            reason = str(error).splitlines()[0]
            warnings.warn(
                f"plumbline: training steps cannot be captured as a CUDA graph, so training is slower: {reason}",
                stacklevel=4,
            )

    def _record(self, *shape: Hashable) -> torch.cuda.CUDAGraph:
        # Not `torch.cuda.graph`, which first waits for all streams. The garbage collector must not run during capture:
        # freeing another graph or GPU tensor would break the recording.
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
