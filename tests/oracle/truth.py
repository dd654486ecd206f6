"""Ground truth: scores of each text, and their table."""

from math import floor, isfinite, isnan, nan

from tests.oracle.agreement import importances
from tests.oracle.attention import EXACT, AtChance, of_cell, status_of
from tests.oracle.check import Checks, grouped, indexed
from tests.oracle.masking import outside
from tests.oracle.statistics import binomial_tail, mean
from tests.oracle.store import Cell, Results, Row, read

SHARES = ["attributed", "region", "found", "auc"]


def shares(scores: list[float], groups: list[int], group: int, suffices: str = "all") -> dict[str, float]:
    """What a map of importances gives to a group; `found` and `auc` are of the first group alone, or its best word."""
    weights = [abs(score) for score in scores]
    n, total = len(weights), sum(weights)
    region = sum(g == group for g in groups) / n
    if not isfinite(total) or total == 0:
        return {"attributed": nan, "region": region, "found": nan, "auc": nan}
    attributed = sum(w for w, g in zip(weights, groups, strict=True) if g == group) / total
    inside = [w for w, g in zip(weights, groups, strict=True) if g == 1]
    others = [w for w, g in zip(weights, groups, strict=True) if g != 1]
    found = auc = nan
    if group == 1 and inside:
        # Words that tie for the last places have the same chance each.
        k = len(inside)
        least = sorted(weights, reverse=True)[k - 1]
        surely = sum(w > least for w in inside)
        left = k - sum(w > least for w in weights)
        found = (surely + left * sum(w == least for w in inside) / sum(w == least for w in weights)) / k
    if group == 1 and inside and others:
        wins = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a in inside for b in others)
        auc = wins / (len(inside) * len(others))
    if group == 1 and inside and suffices == "any":
        first = [g == 1 for w, g in zip(weights, groups, strict=True) if w == max(weights)]
        found = sum(first) / len(first)
        best = max(inside)
        ties = inside.count(best)
        losses = [0.0 if b < best else 1.0 / (ties + 1) if b == best else 1.0 for b in others]
        auc = 1 - (len(inside) + 1) / 2 * mean(losses) if others else nan
    return {"attributed": attributed, "region": region, "found": found, "auc": auc}


def check_ground_truth(results: Results, checks: Checks, at_chance: AtChance) -> None:
    """The shares of importance on each group of words, the model's accuracy and its bound, and the table."""
    for protocol, cell, asked, rows in results.scores("GroundTruth"):
        made = results.summary(cell.dataset, cell.variant).get("manipulation")
        if made is None:
            checks.skip(f"nothing was manipulated in {cell.folder}")
            continue
        numbers = {name: place + 1 for place, name in enumerate(made["groups"])} | {"other": 0}
        importances_of = {measure: importances(results, cell, measure) for measure in asked["measures"]}
        instances = results.instances(cell.dataset, cell.variant)
        predictions = read(results.folder / "models" / cell.folder / "predictions.parquet")
        keys = ["seed", "split", "instance", "measure", "group"]
        texts = len({(row["seed"], row["split"], row["instance"]) for row in rows})
        count = texts * len(importances_of) * len(numbers)
        checks.same("ground truth: every group is there", [count], [len(indexed(rows, keys))], 0, cell)
        model: dict[int, list[float]] = {}
        for seed in asked["seeds"]:
            own = [p for p in predictions if p["seed"] == seed and p["split"] in asked["splits"]]
            hits = sum(
                max(range(len(p["probabilities"])), key=p["probabilities"].__getitem__) == p["label"] for p in own
            )
            bound = binomial_tail(floor(hits), len(own), made["p_star"])
            model[seed] = [hits / len(own), bound]
        for row in rows:
            source = instances[row["split"], row["instance"]]
            scored = importances_of[row["measure"]][row["seed"], row["split"], row["instance"]]
            groups = [g for g, word in zip(source["groups"], source["maskable"], strict=True) if word]
            scores = list(scored["scores"])
            if scored["pair"] is not None:
                second = source["groups_b"] or [0] * len(source["ids_b"])
                groups += [g for g, word in zip(second, source["maskable_b"], strict=True) if word]
                scores += scored["pair"]
            expected = shares(scores, groups, numbers[row["group"]], made["suffices"])
            where = (*cell, *(row[key] for key in keys))
            checks.same("ground truth: shares", [expected[s] for s in SHARES], [row[s] for s in SHARES], EXACT, where)
            same = [source["label"], numbers[row["group"]] == 1, *model[row["seed"]]]
            stored = [row["label"], row["truth"], row["accuracy"], row["chance_bound"]]
            checks.same("ground truth: label, accuracy and bound", same, stored, EXACT, where)
        table = of_cell(results, protocol, cell, asked["seeds"])
        columns = ["n", "undefined", "attributed_fraction", "region_fraction", "above_region", "found", "auc", "status"]
        expected_rows = _truth_table(rows, cell, at_chance)
        checks.tables("table ground_truth", expected_rows, table, ["seed", "measure", "group", "class"], EXACT, columns)
        for row in table:
            where = (*cell, row["seed"], row["measure"], row["group"], row["class"])
            held = outside({**row, "n_seeds": row["n"]}, "attributed_fraction", "ci_low", "ci_high")
            checks.note("ground truth: interval holds the mean", held, EXACT, where)


def _truth_table(rows: list[Row], cell: Cell, at_chance: AtChance) -> list[Row]:
    expanded = [{**row, "class": class_} for row in rows for class_ in ("all", str(row["label"]))]
    found = []
    for key, group in grouped(expanded, lambda r: (r["seed"], r["measure"], r["group"], r["class"])).items():
        known = {name: [r[name] for r in group if r[name] is not None and not isnan(r[name])] for name in SHARES}
        share, region = mean(known["attributed"]), mean(known["region"])
        found.append(
            dict(zip(("seed", "measure", "group", "class"), key, strict=True))
            | {
                "n": len(known["attributed"]),
                "undefined": len(group) - len(known["attributed"]),
                "attributed_fraction": share,
                "region_fraction": region,
                "above_region": (share - region) / (1 - region) if region < 1 else nan,
                "found": mean(known["found"]),
                "auc": mean(known["auc"]),
                "status": status_of(cell, key[0], at_chance) if known["attributed"] else "undefined",
            }
        )
    return found
