"""A plan as text and as JSON."""

import json
from collections.abc import Sequence
from itertools import count
from typing import Any

from plumbline.planning.plan import Plan

# Values of a plan that its JSON holds under the same names.
PLAN_VALUES: tuple[str, ...] = ("jobs", "wall_seconds", "gpu_seconds", "cpu_seconds", "startup_seconds")
PLAN_VALUES += ("chain", "chain_seconds", "dag_seconds")


def duration(seconds: float) -> str:
    """Seconds in a readable unit."""
    for unit, size in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * size:
            return f"{figures(seconds / size)} {unit}"
    return f"{figures(seconds)} seconds"


def figures(number: float) -> str:
    """A number with three significant digits, or rounded to an integer if it is larger."""
    return f"{number:,.0f}" if number >= 999.5 else f"{number:.3g}"


def percent(fraction: float) -> str:
    """A fraction as a whole percentage."""
    return f"{100 * fraction:.0f} %"


def _aligned(rows: Sequence[Sequence[str]], words: int) -> list[str]:
    """Rows with aligned columns: the first and those from index `words` on to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if not column or column >= words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def plan_sentence(plan: Plan) -> str:
    """The plan in a few sentences."""
    if not plan.jobs:
        return "Nothing is left to do."
    fractions = plan.fraction_by_basis()
    sentence = (
        f"{plan.jobs} jobs take about {duration(plan.wall_seconds)} on {plan.machine}; start-up is "
        f"{percent(plan.startup_seconds / plan.seconds if plan.seconds else 0)} of the jobs' time. "
        f"{percent(fractions['measured'])} of that time is based on measurements of the same work, "
        f"{percent(fractions['scaled'])} on measurements scaled to the size and "
        f"{percent(fractions['guessed'] + fractions['unknown'])} on guesses."
    )
    for rule in plan.rules:
        if rule.over:
            smaller = "`plumbline plan --cut` makes smaller jobs, or " if rule.of_seeds else ""
            sentence += (
                f" Of {rule.jobs} jobs `{rule.rule}`, {rule.over} may exceed the time that they request from a cluster,"
                f" the longest with {duration(rule.longest)}: {smaller}give the rule more `runtime` in the profile."
            )
    if plan.untimed:
        sentence += f" Not counted: {', '.join(plan.untimed)}."
    return sentence


def total_sentence(plans: Sequence[Plan]) -> str:
    """The total of several studies that run one after the other."""
    jobs, wall = sum(plan.jobs for plan in plans), sum(plan.wall_seconds for plan in plans)
    return f"{len(plans)} studies, one after the other: {jobs} jobs, about {duration(wall)} on {plans[0].machine}."


def as_text(plan: Plan) -> str:
    """The plan as a table with totals and a summary."""
    lines = [plan.study]
    if plan.jobs:
        head = ["rule", "jobs", "seconds each", "total", "start-up", "basis"]
        rows = [
            [
                rule.rule,
                str(rule.jobs),
                figures(rule.seconds / rule.jobs),
                duration(rule.seconds),
                percent(rule.startup / rule.seconds) if rule.seconds else "",
                rule.basis if rule.rule not in plan.untimed else "not counted",
            ]
            for rule in plan.rules
        ]
        lines += ["", *_aligned([head, *rows], 5), ""]
        totals = [["GPUs busy", duration(plan.gpu_seconds)]] if plan.machine.gpus else []
        totals += [["cores busy", duration(plan.cpu_seconds)]] if plan.cpu_seconds else []
        totals += [
            ["wall clock", f"{duration(plan.wall_seconds)} on {plan.machine}"],
            ["longest chain", f"{duration(plan.chain_seconds)}, {len(plan.chain)} jobs: {_shortened(plan.chain)}"],
            ["Snakemake's DAG", f"{duration(plan.dag_seconds)} to build"],
        ]
        lines += [*_aligned(totals, 1), ""]
    return "\n".join([*lines, plan_sentence(plan), *_size_lines(plan)])


def _size_lines(plan: Plan) -> list[str]:
    """The sizes of jobs that a study's file needs, as YAML."""
    if plan.sizes is None:
        return []
    jobs = {dataset: size.model_dump(exclude_defaults=True) for dataset, size in plan.sizes.items()}
    if not any(jobs.values()):
        return ["", "All jobs fit into the time that they request: `compute.jobs` need not be set."]
    lines = [f"    {dataset}: {json.dumps(size).replace(chr(34), '')}" for dataset, size in jobs.items() if size]
    return ["", "These are the jobs with the following lines in the study:", "", "compute:", "  jobs:", *lines]


def _shortened(chain: Sequence[str]) -> str:
    """A chain of rules, with repetitions of two or three of them written once with their number."""
    parts: list[tuple[str, int]] = []
    at = 0
    while at < len(chain):
        width, times = max(((width, _repetitions(chain[at:], width)) for width in (2, 3)), key=lambda found: found[1])
        width = width if times > 1 else 1
        parts.append((", ".join(chain[at : at + width]), times))
        at += width * times
    return ", ".join(f"({what}) x {times}" if times > 1 else what for what, times in parts)


def _repetitions(chain: Sequence[str], width: int) -> int:
    """How often the first `width` rules of a chain follow each other."""
    return next(n for n in count(1) if chain[n * width : (n + 1) * width] != chain[:width])


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan as JSON values; all times in seconds."""
    return {
        "study": plan.study,
        "gpus": plan.machine.gpus,
        "cores": plan.machine.cores,
        **{name: getattr(plan, name) for name in PLAN_VALUES},
        "shares": plan.fraction_by_basis(),
        "not_counted": plan.untimed,
        **({} if plan.sizes is None else {"sizes": {name: size.model_dump() for name, size in plan.sizes.items()}}),
        "rules": [
            {
                "rule": rule.rule,
                "jobs": rule.jobs,
                "seconds": rule.seconds,
                "startup_seconds": rule.startup,
                "longest_seconds": rule.longest,
                "over_their_time": rule.over,
                "basis": {basis: seconds for basis, seconds in rule.by_basis.items() if seconds},
            }
            for rule in plan.rules
        ],
    }
