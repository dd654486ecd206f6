"""A plan for people, and for machines."""

from collections.abc import Sequence
from typing import Any

from plumbline.planning.plan import Plan


def duration(seconds: float) -> str:
    """Seconds in the unit that people would say."""
    for unit, size in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * size:
            return f"{figures(seconds / size)} {unit}"
    return f"{figures(seconds)} seconds"


def figures(number: float) -> str:
    """A number in three figures, or whole."""
    return f"{number:,.0f}" if number >= 999.5 else f"{number:.3g}"


def percent(share: float) -> str:
    """A share in whole percents."""
    return f"{100 * share:.0f} %"


def _aligned(rows: Sequence[Sequence[str]], words: int) -> list[str]:
    """Columns side by side: the first and those from number `words` on are words, the rest numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if not column or column >= words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def plan_sentence(plan: Plan) -> str:
    """The plan in plain words."""
    if not plan.jobs:
        return "Nothing is left to do."
    shares = plan.shares()
    told = (
        f"{plan.jobs} jobs take about {duration(plan.wall_seconds)} on {plan.machine}; start-up is "
        f"{percent(plan.startup_seconds / plan.seconds if plan.seconds else 0)} of the jobs' time. "
        f"{percent(shares['measured'])} of that time rests on the same work measured before, "
        f"{percent(shares['scaled'])} on measurements scaled to the size and "
        f"{percent(shares['guessed'] + shares['unknown'])} on guesses."
    )
    for kind in plan.kinds:
        if kind.over:
            smaller = "give models that take so long smaller blocks of `seeds`, or " if kind.of_seeds else ""
            told += (
                f" Of {kind.jobs} jobs `{kind.rule}`, {kind.over} may outlast the time that they ask a cluster for, the"
                f" longest with {duration(kind.longest)}: {smaller}give the rule more `runtime` in the profile."
            )
    if plan.untimed:
        told += f" Not counted: {', '.join(plan.untimed)}."
    return told


def together(plans: Sequence[Plan]) -> str:
    """Several studies, one after the other, in plain words."""
    jobs, wall = sum(plan.jobs for plan in plans), sum(plan.wall_seconds for plan in plans)
    return f"{len(plans)} studies, one after the other: {jobs} jobs, about {duration(wall)} on {plans[0].machine}."


def text(plan: Plan) -> str:
    """The plan as a table with its totals and a sentence."""
    lines = [plan.study]
    if plan.jobs:
        head = ["rule", "jobs", "seconds each", "total", "start-up", "basis"]
        rows = [
            [
                kind.rule,
                str(kind.jobs),
                figures(kind.seconds / kind.jobs),
                duration(kind.seconds),
                percent(kind.startup / kind.seconds) if kind.seconds else "",
                kind.basis if kind.rule not in plan.untimed else "not counted",
            ]
            for kind in plan.kinds
        ]
        lines += ["", *_aligned([head, *rows], 5), ""]
        totals = [["GPUs busy", duration(plan.gpu_seconds)]] if plan.machine.gpus else []
        totals += [["cores busy", duration(plan.cpu_seconds)]] if plan.cpu_seconds else []
        totals += [
            ["wall clock", f"{duration(plan.wall_seconds)} on {plan.machine}"],
            ["longest chain", f"{duration(plan.chain_seconds)}, {len(plan.chain)} jobs: {_told(plan.chain)}"],
            ["Snakemake's DAG", f"{duration(plan.dag_seconds)} to build"],
        ]
        lines += [*_aligned(totals, 1), ""]
    return "\n".join([*lines, plan_sentence(plan)])


def _told(chain: Sequence[str]) -> str:
    """A chain of rules, with a pair that comes again and again told once with how often."""
    parts: list[tuple[str, int]] = []
    at = 0
    while at < len(chain):
        pair, times = chain[at : at + 2], 1
        while len(pair) == 2 and chain[at + 2 * times : at + 2 * times + 2] == pair:
            times += 1
        if times > 1:
            parts.append((f"({', '.join(pair)})", times))
            at += 2 * times
        else:
            parts.append((chain[at], 1))
            at += 1
    return ", ".join(f"{what} x {times}" if times > 1 else what for what, times in parts)


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain values; seconds throughout."""
    return {
        "study": plan.study,
        "gpus": plan.machine.gpus,
        "cores": plan.machine.cores,
        "jobs": plan.jobs,
        "wall_seconds": plan.wall_seconds,
        "gpu_seconds": plan.gpu_seconds,
        "cpu_seconds": plan.cpu_seconds,
        "startup_seconds": plan.startup_seconds,
        "chain": plan.chain,
        "chain_seconds": plan.chain_seconds,
        "dag_seconds": plan.dag_seconds,
        "shares": plan.shares(),
        "not_counted": plan.untimed,
        "rules": [
            {
                "rule": kind.rule,
                "jobs": kind.jobs,
                "seconds": kind.seconds,
                "startup_seconds": kind.startup,
                "longest_seconds": kind.longest,
                "over_their_time": kind.over,
                "basis": {basis: seconds for basis, seconds in kind.by_basis.items() if seconds},
            }
            for kind in plan.kinds
        ],
    }
