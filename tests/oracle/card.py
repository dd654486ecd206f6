"""Performance and the chance gate, twins, the scorecard and the meta-evaluation."""

from itertools import combinations
from math import inf, isfinite, isnan, log, nan
from pathlib import Path

from tests.oracle.check import Checks, grouped
from tests.oracle.masking import outside
from tests.oracle.statistics import interval, kendall, long_kendall, mean, performance
from tests.oracle.store import Cell as Block
from tests.oracle.store import Results, Row, read, record

EXACT = 1e-9
LEAST_ABOVE_CHANCE = 0.2
TWINS, FIRST_ROWS, LONG = 0.99, 100, 100
FEWEST_RANKED, RESOLUTION = 3, 1e-6
# The criteria in their order: which is better, what they are bounded by, the variants and the measure they are about.
CRITERIA: dict[str, tuple[str, float, float, str, str]] = {
    "agreement": ("higher", -1, 1, "plain", ""),
    "permutation": ("higher", 0, 1, "plain", "attention"),
    "adversarial attention": ("lower", 0, log(2), "plain", "attention"),
    "AtteFa": ("higher", 0, 1, "plain", "attention"),
    "ROAR": ("higher", -1, 1, "plain", ""),
    "Recursive ROAR": ("higher", -1, 1, "plain", ""),
    "ground truth": ("higher", -inf, 1, "manipulated", ""),
    "truth found": ("higher", 0, 1, "manipulated", ""),
    "evidence": ("higher", -inf, 1, "plain", ""),
    "rationale precision": ("higher", 0, 1, "manipulated", "selection"),
    "comprehensiveness": ("higher", -1, 1, "every", ""),
    "sufficiency": ("lower", -1, 1, "every", ""),
    "soft comprehensiveness": ("higher", 0, inf, "every", ""),
    "soft sufficiency": ("higher", -inf, 1, "every", ""),
    "plausibility": ("higher", -inf, 1, "plain", ""),
    "normalised AOPC": ("higher", 0, 1, "every", ""),
    "LeRF minus MoRF": ("higher", -1, 1, "every", ""),
}
# Criteria that are not about faithfulness.
OTHER = ("plausibility", "reliability", "randomised weights")
Cell = tuple[str, str, str]
Values = dict[tuple[str, str, str, str, str], list[float]]


def kinds(results: Results) -> dict[str, str]:
    """The function behind each measure that was computed."""
    found = {}
    for path in sorted((results.folder / "attributions").rglob("*.json")):
        for name, asked in record(path)["config"]["measures"].items():
            found[name] = asked["object"].split(":")[1]
    return found


def check_performance(results: Results, checks: Checks) -> tuple[dict[tuple, float], dict[tuple, str]]:
    """The scores of all predictions, which are returned, with the models at chance and why they are."""
    scored: dict[tuple, float] = {}
    for cell, path in results.cells("models", "predictions.parquet"):
        for (seed, split), rows in grouped(read(path), lambda row: (row["seed"], row["split"])).items():
            probabilities = [row["probabilities"] for row in rows]
            if split == "train" and len(rows) > 1000:
                continue
            if all(isfinite(p) for row in probabilities for p in row):
                for metric, value in performance(probabilities, [row["label"] for row in rows]).items():
                    scored[*cell[:3], seed, split, metric] = value
    at_chance = {}
    table = results.table("performance") or []
    told_least = {float(row["reason"].rsplit(" ", 1)[1]) for row in table if row["status"] == "at chance"}
    least = told_least.pop() if len(told_least) == 1 else LEAST_ABOVE_CHANCE
    for row in table:
        key = tuple(row[name] for name in ("dataset", "variant", "model", "seed", "split", "metric"))
        if row["split"] == "train" and key not in scored:
            checks.skip("scores of long training splits, whose area takes all pairs of texts")
            continue
        value = scored.get(key, nan)
        gated = row["metric"] == "above_chance" and value < least
        status = "at chance" if gated else "undefined" if isnan(value) else "ok"
        checks.same("table performance", [value, status], [row["value"], row["status"]], EXACT, key)
        if gated and row["split"] == "test":
            at_chance[key[:4]] = row["reason"]
    return scored, at_chance


def twins(results: Results) -> dict[Cell, dict[str, str]]:
    """In each cell, the first measure that each other one ranks like, by the first block of seeds."""
    found: dict[Cell, dict[str, str]] = {}
    orders = measure_orders(results)
    folders = sorted({path.parent for path in (results.folder / "attributions").rglob("*.parquet")}, key=first_seed)
    for folder in folders:
        dataset, *variant, model, _ = folder.relative_to(results.folder / "attributions").parts
        cell = dataset, "/".join(variant), model
        if cell in found or variant[0] in ("unmasked", "roar", "recursive"):
            continue
        block = Block(*cell, folder.name)
        measures = orders.get(cell) or sorted(results.files(block))
        scores = {measure: scores_of(results.importances(block, measure, FIRST_ROWS)) for measure in measures}
        common = [key for key in scores[measures[0]] if all(key in own for own in scores.values())]
        found[cell] = {}
        for place, measure in enumerate(measures):
            for before in measures[:place]:
                if before not in found[cell] and alike(scores[measure], scores[before], common):
                    found[cell][measure] = before
                    break
    return found


def first_seed(folder: Path) -> tuple:
    """By which folders of one cell are put in the order of their seeds."""
    return folder.parent, int(folder.name.replace(",", "-").split("-")[0])


def measure_orders(results: Results) -> dict[Cell, list[str]]:
    """The measures of each cell in the study's order, from what protocols were asked."""
    found: dict[Cell, list[str]] = {}
    root = results.folder / "scores"
    for path in sorted(root.rglob("*.json")):
        _, dataset, *variant, model, _ = path.relative_to(root).parts
        cell, measures = (dataset, "/".join(variant), model), record(path)["config"]["measures"]
        if len(measures) > len(found.get(cell, [])):
            found[cell] = measures
    return found


def scores_of(rows: list[Row]) -> dict[tuple, list[float]]:
    """The scores of a measure by seed, split and instance."""
    return {(row["seed"], row["split"], row["instance"]): row["scores"] for row in rows}


def alike(one: dict[tuple, list[float]], other: dict[tuple, list[float]], common: list[tuple]) -> bool:
    """Whether two measures rank the words of these instances alike, in the mean of those that both put in an order."""
    found = []
    for key in common:
        a, b = one[key], other[key]
        if len(a) == len(b) >= 2 and all(map(isfinite, [*a, *b])):
            found.append(long_kendall(a, b) if len(a) > LONG else kendall(a, b))
    known = [tau for tau in found if not isnan(tau)]
    return bool(known) and mean(known) >= TWINS


def per_seed(results: Results, alike_in: dict[Cell, dict[str, str]], named: dict[str, str]) -> Values:
    """The values of every criterion, cell and measure, seed by seed, from the tables."""
    found: dict[tuple[str, str, str, str, str], dict[int, float]] = {}
    random = next((name for name, kind in named.items() if kind == "random"), "")

    def tell(criterion: str, row: Row, measure: str, seed: int, value: float | None) -> None:
        if value is not None and not isnan(value):
            key = criterion, row["dataset"], row.get("variant") or "plain", row["model"], measure
            assert seed not in found.setdefault(key, {}), key
            found[key][seed] = value

    def ok(table: str, *others: str) -> list[Row]:
        return [row for row in results.table(table) or [] if row["status"] in ("ok", *others)]

    taus = [r for r in ok("agreement") if r["statistic"] == "kendall" and r["predicted_class"] == "all"]
    tokens = next((t for t in ("text", "texts", "all") if any(r["tokens"] == t for r in taus)), None)
    others: dict[tuple, dict[str, list[float]]] = {}
    for row in taus:
        if row["tokens"] != tokens or random in (row["measure_a"], row["measure_b"]):
            continue
        first = alike_in.get((row["dataset"], row["variant"], row["model"]), {})
        for own, other in (("measure_a", "measure_b"), ("measure_b", "measure_a")):
            group, partner = (first.get(row[side], row[side]) for side in (own, other))
            if group != partner:
                key = row["dataset"], row["variant"], row["model"], row[own], row["seed"]
                others.setdefault(key, {}).setdefault(partner, []).append(row["mean"])
    for (dataset, variant, model, measure, seed), groups in others.items():
        row = {"dataset": dataset, "variant": variant, "model": model}
        tell("agreement", row, measure, seed, mean([mean(values) for values in groups.values()]))
    attention = [name for name, kind in named.items() if kind == "attention"] or ["attention"]
    everything = ("permutation", "median_change_mean", "permutation"), (
        "adversarial_attention", "jsd_mean", "adversarial attention",
    )  # fmt: skip
    for table, column, criterion in everything:
        rows = [r for r in ok(table) if r["predicted_class"] == "all" and r["max_attention_bin"] == "all"]
        largest = max((r["epsilon"] for r in rows if "epsilon" in r), default=None)
        for row in rows:
            for name in attention if largest is None or row["epsilon"] == largest else []:
                tell(criterion, row, name, row["seed"], row[column])
    rows = [r for r in ok("adversary", "collapsed") if r["objective"] == "attefa"]
    split = "dev" if any(r["selected_on"] == "dev" for r in rows) else "test"
    for row in rows:
        for name in attention if row["selected_on"] == split else []:
            tell("AtteFa", row, name, row["seed"], row["attefa"])
    for strategy, criterion in (("roar", "ROAR"), ("recursive", "Recursive ROAR")):
        rows = [r for r in ok("faithfulness") if r["strategy"] == strategy]
        unit = "relative" if any(r["unit"] == "relative" for r in rows) else "absolute"
        for row in (r for r in rows if r["unit"] == unit):
            for seed, value in enumerate(row["per_seed"]):
                tell(criterion, row, row["measure"], seed, value)
    for row in ok("ground_truth"):
        if row["truth"] and row["class"] == "all":
            tell("ground truth", row, row["measure"], row["seed"], row["above_region"])
            tell("truth found", row, row["measure"], row["seed"], row["found"])
    for row in ok("evidence"):
        tell(
            {"rule": "evidence", "human": "plausibility"}[row["source"]],
            row,
            row["measure"],
            row["seed"],
            row["above_random"],
        )
    for row in ok("rationales"):
        for name in [n for n, kind in named.items() if kind == "selection"] or ["selection"]:
            tell("rationale precision", row, name, row["seed"], row["precision"])
    for row in ok("erasure"):
        if row["ratio"] is None or isnan(row["ratio"]):
            name = {"normalised_aopc": "normalised AOPC", "morf_lerf": "LeRF minus MoRF"}.get(row["metric"])
            tell(name or row["metric"].replace("_", " "), row, row["measure"], row["seed"], row["mean"])
    return {key: [values[seed] for seed in sorted(values)] for key, values in found.items()}


def check_scorecard(results: Results, checks: Checks) -> None:
    """Each criterion's values by seed, their mean and interval, and twins, against the stored scorecard."""
    card = results.table("scorecard")
    if card is None:
        return
    same, named = twins(results), kinds(results)
    values = per_seed(results, same, named)
    stored = {(r["criterion"], r["dataset"], r["variant"], r["model"], r["measure"]): r for r in card}
    checks.note("scorecard: every value has its row", len(set(values) - set(stored)), 0, set(values) - set(stored))
    for key, row in stored.items():
        seed_values = values.get(key, [])
        direction, least, most, variants, _ = CRITERIA[row["criterion"]]
        judged = variants == "every" or (variants == "plain") == (row["variant"] == "plain")
        status = "ok" if seed_values else "missing"
        about = row["criterion"] not in OTHER
        expected = [direction, judged, status, about]
        checks.same("scorecard: rows", expected, [row["direction"], True, row["status"], row["faithfulness"]], 0, key)
        checks.same("scorecard: values by seed", seed_values, row["per_seed"], EXACT, key)
        low, high = (max(least, min(most, end)) if not isnan(end) else nan for end in interval(seed_values))
        expected = [len(seed_values), mean(seed_values), low, high]
        # Student's quantile is integrated here by a simple rule.
        checks.same(
            "scorecard: mean and interval",
            expected,
            [row[c] for c in ("n_seeds", "value", "ci_low", "ci_high")],
            1e-5,
            key,
        )
        twin = same.get((row["dataset"], row["variant"], row["model"]), {}).get(row["measure"])
        checks.same("scorecard: twins", [twin or ""], [row["twin_of"] or ""], 0, key)


def check_meta(results: Results, checks: Checks) -> None:
    """Kendall's τ between criteria, in the mean over cells, from the stored scorecard."""
    meta, card = results.table("meta_evaluation"), results.table("scorecard")
    if meta is None or card is None:
        return
    random = next((name for name, kind in kinds(results).items() if kind == "random"), "")
    ranked: dict[str, dict[Cell, dict[str, Row]]] = {}
    for row in card:
        if row["criterion"] in OTHER:
            continue
        if row["status"] == "ok" and row["measure"] != random and row["twin_of"] is None:
            cell = row["dataset"], row["variant"], row["model"]
            ranked.setdefault(row["criterion"], {}).setdefault(cell, {})[row["measure"]] = row
    expected = []
    for one, other in combinations([name for name in CRITERIA if name in ranked], 2):
        found = ranked[one].keys() & ranked[other].keys()
        pairs = [(cell, cell) for cell in sorted(found)]
        matched = "variant" if pairs else "dataset"
        if not pairs:
            pairs = [(a, b) for a in ranked[one] for b in ranked[other] if (a[0], a[2]) == (b[0], b[2])]
        taus, datasets, models, seeds = [], set(), set(), []
        for a, b in pairs:
            first, second = ranked[one][a], ranked[other][b]
            common = [measure for measure in first if measure in second]
            if len(common) < FEWEST_RANKED:
                continue
            signs = [1 if CRITERIA[name][0] == "higher" else -1 for name in (one, other)]
            tau = kendall(
                [signs[0] * first[m]["value"] for m in common],
                [signs[1] * second[m]["value"] for m in common],
                RESOLUTION,
            )
            if not isnan(tau):
                taus.append(tau)
                datasets.add(a[0])
                models.add(a[2])
                counts = [min(row["n_seeds"] for row in side.values()) for side in (first, second)]
                seeds.append(max(counts))
        row = {"criterion_a": one, "criterion_b": other, "matched": matched, "n_cells": len(taus)}
        row |= {"n_datasets": len(datasets), "n_models": len(models), "tau": mean(taus)}
        row["status"] = "ok" if taus else "missing"
        resampled = max(len(datasets), len(models), min(seeds, default=0))
        row["n_seeds"] = 3 if resampled >= 3 else 0
        expected.append(row)
    columns = ["matched", "n_cells", "n_datasets", "n_models", "tau", "status"]
    checks.tables("table meta_evaluation", expected, meta, ["criterion_a", "criterion_b"], EXACT, columns)
    several = {(row["criterion_a"], row["criterion_b"]): row["n_seeds"] for row in expected}
    for row in meta:
        key = row["criterion_a"], row["criterion_b"]
        record = {**row, "n_seeds": several.get(key, 0)}
        checks.note("meta-evaluation: interval", outside(record, "tau", "ci_low", "ci_high"), EXACT, key)
