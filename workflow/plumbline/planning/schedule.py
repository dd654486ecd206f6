"""When jobs would run on a machine: list scheduling over the DAG, with GPUs and cores as limits."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush


@dataclass(frozen=True)
class Task:
    """A job to the scheduler: its seconds, the cores and GPUs that it holds, and those that it waits for."""

    seconds: float
    cores: int = 1
    gpus: int = 0
    after: Sequence[int] = ()


def longest_chain(tasks: Sequence[Task]) -> list[int]:
    """The numbers of the jobs on the chain of dependencies that takes longest, from its first to its last job."""
    ends: dict[int, float] = {}
    before: dict[int, int] = {}
    for number in _in_order(tasks):
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


def _in_order(tasks: Sequence[Task]) -> list[int]:
    """The jobs so that each comes after those that it waits for."""
    waiting = [len(set(task.after)) for task in tasks]
    followers = _followers(tasks)
    ready = deque(number for number, count in enumerate(waiting) if not count)
    order = []
    while ready:
        order.append(ready.popleft())
        for follower in followers[order[-1]]:
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    return order


def _followers(tasks: Sequence[Task]) -> list[list[int]]:
    followers: list[list[int]] = [[] for _ in tasks]
    for number, task in enumerate(tasks):
        for previous in set(task.after):
            followers[previous].append(number)
    return followers


def finish_times(tasks: Sequence[Task], cores: int, gpus: int | None) -> list[float]:
    """When each job ends. A job starts as soon as what it waits for is done and there is room for it, those that were
    ready first before the others, without looking ahead, as Snakemake does; one that asks for more gets all there is.

    `gpus` is None where none are counted.
    """
    needs = [(min(task.cores, cores), 0 if gpus is None else min(task.gpus, gpus)) for task in tasks]
    waiting = [len(set(task.after)) for task in tasks]
    followers = _followers(tasks)
    free_cores, free_gpus, now = cores, gpus or 0, 0.0
    # A queue for each kind of need: if the first of a queue has no room, none of the others in it has.
    queues: dict[tuple[int, int], deque[tuple[int, int]]] = {need: deque() for need in needs}
    arrivals = 0
    for number, count in enumerate(waiting):
        if not count:
            queues[needs[number]].append((arrivals, number))
            arrivals += 1
    running: list[tuple[float, int]] = []
    ends = [0.0] * len(tasks)
    while True:
        while True:
            fitting = [
                need for need, queue in queues.items() if queue and need[0] <= free_cores and need[1] <= free_gpus
            ]
            if not fitting:
                break
            need = min(fitting, key=lambda one: queues[one][0])
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
                queues[needs[follower]].append((arrivals, follower))
                arrivals += 1
