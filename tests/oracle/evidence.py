"""Evidence: scores of each text, and their table."""

from itertools import combinations
from math import isfinite, isnan, nan

from tests.oracle.agreement import importances
from tests.oracle.attention import EXACT, AtChance, of_cell, status_of
from tests.oracle.check import Checks, grouped
from tests.oracle.masking import outside
from tests.oracle.statistics import mean
from tests.oracle.store import Cell, Results, Row

COLUMNS = ["auprc", "auprc_chance", "token_f1", "iou", "evidence_share"]
# More choices than this among tied words are not enumerated.
MOST_CHOICES = 20_000


def expected_precision(weights: list[float], marked: list[bool]) -> float:
    """Average precision, each word of evidence at each of the places of its ties with equal probability."""
    found = []
    for own in (w for w, mark in zip(weights, marked, strict=True) if mark):
        above = [mark for w, mark in zip(weights, marked, strict=True) if w > own]
        tied = [mark for w, mark in zip(weights, marked, strict=True) if w == own]
        others = (sum(tied) - 1) / (len(tied) - 1) if len(tied) > 1 else 0.0
        places = range(len(tied))
        found.append(mean([(sum(above) + 1 + place * others) / (len(above) + 1 + place) for place in places]))
    return mean(found)


def expected_overlap(weights: list[float], marked: list[bool]) -> list[float] | None:
    """F1 and IOU of as many top words as the evidence has, the mean over all choices among tied ones."""
    k = sum(marked)
    least = sorted(weights, reverse=True)[k - 1]
    sure = [mark for w, mark in zip(weights, marked, strict=True) if w > least]
    tied = [mark for w, mark in zip(weights, marked, strict=True) if w == least]
    hits = []
    for chosen in combinations(tied, k - len(sure)):
        hits.append(sum(sure) + sum(chosen))
        if len(hits) > MOST_CHOICES:
            return None
    return [mean([h / k for h in hits]), mean([h / (2 * k - h) for h in hits])]


def check_evidence(results: Results, checks: Checks, at_chance: AtChance) -> None:
    """The agreement of each map with the evidence, and the table."""
    for protocol, cell, asked, rows in results.scores("Evidence"):
        instances = results.instances(cell.dataset, cell.variant)
        source = results.summary(cell.dataset, cell.variant)["evidence"]
        importances_of = {measure: importances(results, cell, measure) for measure in asked["measures"]}
        for row in rows:
            text = instances[row["split"], row["instance"]]
            marked = [bool(m) for m, word in zip(text["evidence"], text["maskable"], strict=True) if word]
            scores = importances_of[row["measure"]][row["seed"], row["split"], row["instance"]]["scores"]
            weights = [abs(score) for score in scores]
            where = (*cell, *(row[key] for key in ("seed", "split", "instance", "measure")))
            expected: list[float] = [nan] * len(COLUMNS)
            if any(marked) and not all(marked) and all(map(isfinite, weights)):
                overlap = expected_overlap(weights, marked)
                if overlap is None:
                    checks.skip("evidence of texts with many tied words")
                    continue
                chance = expected_precision([0.0] * len(marked), marked)
                expected = [expected_precision(weights, marked), chance, *overlap, mean(list(map(float, marked)))]
            checks.same("evidence: scores", expected, [row[name] for name in COLUMNS], EXACT, where)
            correct = row["predicted_class"] == text["label"]
            checks.same("evidence: source and class", [source, correct], [row["source"], row["correct"]], 0, where)
        table = of_cell(results, protocol, cell, asked["seeds"])
        only_correct = asked["options"]["predictions"] == "correct"
        counted = [row for row in rows if row["correct"] or not only_correct]
        columns = ["n", "undefined", *COLUMNS, "above_random", "status"]
        expected_rows = _table(counted, cell, at_chance)
        checks.tables("table evidence", expected_rows, table, ["seed", "measure"], EXACT, columns)
        for row in table:
            held = outside({**row, "n_seeds": row["n"]}, "auprc", "ci_low", "ci_high")
            checks.note("evidence: interval holds the mean", held, EXACT, (*cell, row["seed"], row["measure"]))


def _table(rows: list[Row], cell: Cell, at_chance: AtChance) -> list[Row]:
    found = []
    for (seed, measure), group in grouped(rows, lambda r: (r["seed"], r["measure"])).items():
        known = [r for r in group if r["auprc"] is not None and not isnan(r["auprc"])]
        means = {name: mean([r[name] for r in known]) for name in COLUMNS}
        found.append(
            {"seed": seed, "measure": measure, "n": len(known), "undefined": len(group) - len(known), **means}
            | {"above_random": (means["auprc"] - means["auprc_chance"]) / (1 - means["auprc_chance"])}
            | {"status": status_of(cell, seed, at_chance) if known else "undefined"}
        )
    return found
