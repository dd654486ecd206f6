"""ROAR and Recursive ROAR: which words are masked, the points of curves and the area between them."""

from collections.abc import Iterable
from itertools import pairwise
from math import inf, isnan, nan

from tests.oracle.check import Checks, apart, grouped
from tests.oracle.statistics import mean
from tests.oracle.store import Cell, Results, Row, read

EXACT = 1e-9
AtChance = dict[tuple, str]


def check_masks(results: Results, checks: Checks) -> None:
    """As many words as there should be are masked: those that were, then a top set of the others."""
    for cell, path in results.cells("models", "masks.parquet"):
        masking = results.model(cell)["masking"]
        below = variant_below(results, cell, masking)
        before = {} if below == "unmasked" else results.masks(cell.dataset, below, cell.model, cell.seeds)
        source, measure = cell._replace(variant=below), masking["measure"]
        if measure not in results.files(source):
            checks.skip(f"importances behind masks are not kept: {cell.folder}")
            continue
        rows = results.importances(source, measure)
        scores = {(row["seed"], row["split"], row["instance"]): row["scores"] for row in rows}
        for row in read(path):
            key = row["seed"], row["split"], row["instance"]
            n, level = len(row["masked"]), masking["level"]
            count = level * n // 100 if masking["unit"] == "relative" else min(level, n)
            wrong = abs(sum(row["masked"]) - count) + misplaced(row["masked"], scores[key], before.get(key))
            checks.note("masks: words that should not be", wrong, 0, (*cell, *key))


def misplaced(masked: list[bool], scores: list[float], before: list[bool] | None) -> int:
    """How many words are left out though they were masked before, or score higher than one that is masked."""
    old = before or [False] * len(masked)
    known = [-inf if isnan(score) else score for score in scores]
    newly = [score for score, now, was in zip(known, masked, old, strict=True) if now and not was]
    lowest = min(newly, default=inf)
    wrong = sum(was and not now for now, was in zip(masked, old, strict=True))
    return wrong + sum(not now and not was and s > lowest for s, now, was in zip(known, masked, old, strict=True))


def variant_below(results: Results, cell: Cell, masking: Row) -> str:
    """The variant whose models' importances choose the words."""
    if cell.variant.startswith("roar/"):
        return "unmasked"
    _, unit, measure, _ = cell.variant.split("/")
    lower = []
    for strategy in ("roar", "recursive"):
        folder = results.folder / "models" / cell.dataset / strategy / unit / measure
        levels = [int(one.name) for one in folder.iterdir()] if folder.is_dir() else []
        lower += [(level, strategy) for level in levels if level < masking["level"]]
    # The first level is ROAR's; of those above it the recursive one is the one that was trained below.
    level = max(level for level, _ in lower)
    strategy = "recursive" if (level, "recursive") in lower else "roar"
    return f"{strategy}/{unit}/{measure}/{level}"


def check_curves(results: Results, checks: Checks, scored: dict[tuple, float], at_chance: AtChance) -> None:
    """Every point of every curve is a score of predictions, and faithfulness the area between curves."""
    roar = results.table("roar")
    if roar is None:
        return
    for row in roar:
        key = row["dataset"], row["variant"], row["model"], row["seed"], "test", row["metric"]
        checks.same("table roar", [scored.get(key, inf)], [row["value"]], EXACT, key)
    faithful = results.table("faithfulness") or []
    random = random_measure(results)
    expected = {(row["dataset"], row["model"], row["strategy"], row["unit"], row["measure"]) for row in roar}
    present = {(row["dataset"], row["model"], row["strategy"], row["unit"], row["measure"]) for row in faithful}
    missing = {key for key in expected if key[-1] != random} ^ present
    checks.note("faithfulness: every curve is there", len(missing), 0, missing)
    for row in faithful:
        paired = results.summary(row["dataset"], "plain")["paired"]
        metric = "accuracy" if paired else "macro_f1"
        points = [r for r in roar if r["trained_on"] == "words" and r["metric"] == metric]
        shares = faithfulness(points, row, random, at_chance)
        clipped = [min(1.0, max(-1.0, share)) for share, _ in shares.values()]
        expected_row = [metric, len(shares), mean(clipped), mean([s for s, _ in shares.values()])]
        expected_row.append(mean([floor for _, floor in shares.values()]))
        stored = [row["metric"], row["n_seeds"], row["faithfulness"], row["unclipped"], row["floor"]]
        where = tuple(row[key] for key in ("dataset", "model", "strategy", "unit", "measure"))
        checks.same("table faithfulness", expected_row, stored, EXACT, where)
        checks.same("faithfulness: each seed", clipped, row["per_seed"], EXACT, where)
        checks.note("faithfulness: interval", outside(row, "faithfulness", "ci_low", "ci_high"), EXACT, where)


def outside(row: Row, value: str, low: str, high: str, fewest: int = 3) -> float:
    """How far a mean lies outside its interval, which must be missing where there are too few seeds."""
    ends = [nan if row[end] is None else row[end] for end in (low, high)]
    if row["n_seeds"] < fewest:
        return 0.0 if all(map(isnan, ends)) else inf
    return max(0.0, ends[0] - row[value], row[value] - ends[1]) if not any(map(isnan, ends)) else inf


def random_measure(results: Results) -> str:
    """The name of the measure that masks at random."""
    from tests.oracle.card import kinds

    return next((name for name, kind in kinds(results).items() if kind == "random"), "random")


def faithfulness(points: Iterable[Row], row: Row, random: str, at_chance: AtChance) -> dict[int, tuple[float, float]]:
    """By seed, the area between the random curve and a measure's, over that between the random curve and the floor;
    and the floor."""
    mine = [p for p in points if (p["dataset"], p["model"]) == (row["dataset"], row["model"])]
    curves = grouped(mine, lambda p: (p["strategy"], p["unit"], p["measure"], p["seed"]))
    floors = {
        p["seed"]: p["value"] for p in mine if p["unit"] == "relative" and p["level"] == 100 and p["measure"] == random
    }
    found = {}
    for seed in sorted({p["seed"] for p in mine}):
        if (row["dataset"], "plain", row["model"], seed) in at_chance:
            continue
        curve, random_curve = (
            {p["level"]: p["value"] for p in curves.get((row["strategy"], row["unit"], measure, seed), [])}
            for measure in (row["measure"], random)
        )
        levels = sorted({*curve, *random_curve})
        if set(curve) != set(random_curve) or seed not in floors:
            continue
        between = whole = 0.0
        for low, high in pairwise(levels):
            between += (high - low) / 2 * ((random_curve[low] - curve[low]) + (random_curve[high] - curve[high]))
            whole += (high - low) / 2 * ((random_curve[low] - floors[seed]) + (random_curve[high] - floors[seed]))
        if whole > 0 and apart(between, between) == 0:
            found[seed] = (between / whole, floors[seed])
    return found
