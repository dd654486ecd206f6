"""Simulated schedule of jobs on a machine: list scheduling over the DAG, limited by cores and GPUs."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from itertools import count


@dataclass(frozen=True)
class Task:
    """A job of the schedule: its seconds, the cores and GPUs that it holds, and the jobs that it depends on."""

    seconds: float
    cores: int = 1
    gpus: int = 0
    after: Sequence[int] = ()


def longest_chain(tasks: Sequence[Task]) -> list[int]:
    """The indices of the jobs on the critical path, from first to last."""
    ends: dict[int, float] = {}
    before: dict[int, int] = {}
    # All jobs are added first, so that independent ones stay in order.
    sorter = TopologicalSorter[int](dict.fromkeys(range(len(tasks)), ()))
    for number, task in enumerate(tasks):
        sorter.add(number, *task.after)
    for number in sorter.static_order():
        previous = max(tasks[number].after, key=ends.__getitem__, default=None)
        ends[number] = tasks[number].seconds + (0.0 if previous is None else ends[previous])
        if previous is not None:
            before[number] = previous
    if not ends:
        return []
    chain = [max(ends, key=ends.__getitem__)]
    while chain[-1] in before:
        chain.append(before[chain[-1]])
    return chain[::-1]


def finish_times(tasks: Sequence[Task], cores: int, gpus: int | None) -> list[float]:
    """The end time of each job. A job starts as soon as its dependencies are done and its cores and GPUs are free;
    jobs that were ready first start first, without lookahead, as in Snakemake. A job that requests more cores or GPUs
    than the machine has gets all of them. `gpus` is None where they are no limit.
    """
    needs = [(min(task.cores, cores), 0 if gpus is None else min(task.gpus, gpus)) for task in tasks]
    waiting = [len(set(task.after)) for task in tasks]
    followers: list[list[int]] = [[] for _ in tasks]
    for number, task in enumerate(tasks):
        for previous in set(task.after):
            followers[previous].append(number)
    free_cores, free_gpus, now = cores, gpus or 0, 0.0
    # A queue for each combination of cores and GPUs: if its first job does not fit, none of them does.
    queues: dict[tuple[int, int], deque[tuple[int, int]]] = {need: deque() for need in needs}
    arrivals = count()
    for number, need in enumerate(needs):
        if not waiting[number]:
            queues[need].append((next(arrivals), number))
    running: list[tuple[float, int]] = []
    ends = [0.0] * len(tasks)
    while True:
        while True:
            fitting = [
                need for need, queue in queues.items() if queue and need[0] <= free_cores and need[1] <= free_gpus
            ]
            if not fitting:
                break
            need = min(fitting, key=lambda fit: queues[fit][0])
            _, number = queues[need].popleft()
            free_cores, free_gpus = free_cores - need[0], free_gpus - need[1]
            ends[number] = now + tasks[number].seconds
            heappush(running, (ends[number], number))
        if not running:
            return ends
        now, number = heappop(running)
        free_cores, free_gpus = free_cores + needs[number][0], free_gpus + needs[number][1]
        for follower in followers[number]:
            waiting[follower] -= 1
            if not waiting[follower]:
                queues[needs[follower]].append((next(arrivals), follower))
