"""Ground truth and erasure: scores of each text, and their tables."""

from math import ceil, floor, isfinite, isnan, nan

import torch

from tests.oracle.agreement import importances
from tests.oracle.attention import EXACT, AtChance, of_cell, status_of
from tests.oracle.check import Checks, grouped, indexed
from tests.oracle.importances import models, spread
from tests.oracle.masking import outside
from tests.oracle.models import Model
from tests.oracle.statistics import binomial_tail, deviation, mean
from tests.oracle.store import Cell, Results, Row, Text, read

# Falls of probabilities in single precision, some of which are stored so.
FALL = 1e-4
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


def output_without(model: Model, text: Text, gone: set[int], removal: str) -> torch.Tensor:
    """Class probabilities of a text without the words at these places."""
    if removal == "delete":
        return model.probabilities(text.without(gone))[0]
    vectors = model.vectors(text).clone()
    for place in gone:
        vectors[0, place] = model.vectors(text, padding=True)[0, place] if removal == "pad" else 0.0
    return model.probabilities(text, vectors=vectors)[0]


def check_erasure(results: Results, checks: Checks, at_chance: AtChance, limit: int) -> None:
    """The falls of the output without the highest words and with them alone, the fall to nothing, and the table."""
    for protocol, cell, asked, rows in results.scores("Erasure"):
        options = asked["options"]
        importances_of = {measure: importances(results, cell, measure) for measure in asked["measures"]}
        found = models(results, cell, checks)
        for (seed, measure), own in grouped(rows, lambda row: (row["seed"], row["measure"])).items():
            for row in spread(own, limit) if found else []:
                text = results.text(cell, seed, row["split"], row["instance"])
                scores = importances_of[measure][seed, row["split"], row["instance"]]["scores"]
                _check_falls(checks, found[seed], text, scores, row, options, (*cell, seed, measure, row["instance"]))
        for row in rows:
            for metric in ("comprehensiveness", "sufficiency"):
                falls = row[f"{metric}_at"]
                area = sum(falls) / (len(falls) + 1)
                checks.same("erasure: areas", [area], [row[metric]], 1e-6, (*cell, row["seed"], row["instance"]))
        table = of_cell(results, protocol, cell, asked["seeds"])
        expected = _erasure_table(rows, cell, options, at_chance)
        keys = ["seed", "measure", "metric", "ratio"]
        checks.tables("table erasure", expected, table, keys, 1e-6, ["n", "dropped", "mean", "std", "status"])


def _check_falls(
    checks: Checks, model: Model, text: Text, scores: list[float], row: Row, options: Row, where: tuple
) -> None:
    before = model.probabilities(text)[0]
    predicted = int(before.argmax())
    checks.same("erasure: predicted class", [predicted], [row["predicted_class"]], 0, where)
    if options["draws"]:
        vectors = model.vectors(text).clone()
        vectors[0, text.places] = 0.0
        fall = float(before[predicted] - model.probabilities(text, vectors=vectors)[0, predicted])
        checks.same("erasure: fall to nothing", [fall], [row["fall_to_nothing"]], FALL, where)
    known = [-float("inf") if isnan(score) else score for score in scores]
    order = sorted(range(len(known)), key=lambda i: -known[i])
    for column, ratio in enumerate(options["ratios"]):
        n = len(known)
        count = min(max(ceil(n * ratio / 100 - 1e-9), 1), n - 1)
        if n < 2 or known[order[count - 1]] == known[order[count]]:
            continue
        top = {text.places[i] for i in order[:count]}
        rest = set(text.places) - top
        for metric, gone in (("comprehensiveness", top), ("sufficiency", rest)):
            after = output_without(model, text, gone, options["removal"])
            fall = float(before[predicted] - after[predicted])
            checks.same(f"erasure: {metric}", [fall], [row[f"{metric}_at"][column]], FALL, (*where, ratio))


def _erasure_table(rows: list[Row], cell: Cell, options: Row, at_chance: AtChance) -> list[Row]:
    found = []
    for (seed, measure), group in grouped(rows, lambda row: (row["seed"], row["measure"])).items():
        status = status_of(cell, seed, at_chance)
        for metric in ("comprehensiveness", "sufficiency"):
            columns = [(None, [row[metric] for row in group])]
            columns += [(ratio, [row[f"{metric}_at"][i] for row in group]) for i, ratio in enumerate(options["ratios"])]
            for ratio, values in columns:
                known = [value for value in values if value is not None and not isnan(value)]
                row = {"seed": seed, "measure": measure, "metric": metric, "ratio": ratio, "n": len(known)}
                row |= {"dropped": len(values) - len(known), "mean": mean(known), "std": deviation(known)}
                found.append(row | {"status": status if known else "undefined"})
        for metric, column in (
            ("soft_comprehensiveness", "soft_fall_without"),
            ("soft_sufficiency", "soft_fall_alone"),
        ):
            if not options["draws"]:
                continue
            counted = [row for row in group if row["fall_to_nothing"] > 0]
            row = {"seed": seed, "measure": measure, "metric": metric, "ratio": None, "n": len(counted)}
            row |= {"dropped": len(group) - len(counted), "mean": nan, "std": nan, "status": "undefined"}
            if counted:
                whole = sum(one["fall_to_nothing"] for one in counted)
                share = sum(max(0.0, one[column]) for one in counted) / whole
                parts = [max(0.0, one[column]) - share * one["fall_to_nothing"] for one in counted]
                row |= {"mean": share if metric == "soft_comprehensiveness" else 1 - share, "status": status}
                row |= {"std": deviation(parts) / (whole / len(counted))}
            found.append(row)
    return found
