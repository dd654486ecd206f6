"""Do two measures rank words alike: scores of each text, and the table of their means."""

from math import isfinite, nan

from tests.oracle.check import Checks, grouped, indexed
from tests.oracle.statistics import (
    deviation,
    kendall,
    long_kendall,
    mean,
    pearson,
    ranks,
    top_k_fagin,
    top_k_jain_wallace,
)
from tests.oracle.store import Cell, Results, Row

EXACT = 1e-9
LONG = 100
KNOWN = ("kendall", "spearman", "pearson", "top-k-fagin", "top-k-jain-wallace")
KEYS = ["seed", "split", "instance", "measure_a", "measure_b", "statistic", "tokens"]


def importances(results: Results, cell: Cell, measure: str) -> dict[tuple[int, str, int], Row]:
    """The stored importances of a measure by seed, split and instance."""
    return {(row["seed"], row["split"], row["instance"]): row for row in results.importances(cell, measure)}


def ranked(row: Row, tokens: str) -> list[float]:
    """The scores that are ranked: of words, of those of both texts, or of all tokens."""
    parts = {"text": ["scores"], "texts": ["scores", "pair"], "all": ["scores", "pair", "specials"]}[tokens]
    return [score for part in parts for score in row[part] or []]


def value_of(statistic: str, one: list[float], other: list[float], k: int) -> float:
    """A statistic of two rankings; none if one of them is no ranking."""
    if len(one) < 2 or not all(map(isfinite, [*one, *other])):
        return nan
    if statistic.startswith("top-k"):
        return {"top-k-fagin": top_k_fagin, "top-k-jain-wallace": top_k_jain_wallace}[statistic](one, other, k)
    if statistic == "pearson":
        return pearson(one, other)
    if statistic == "spearman":
        return nan if len({*one}) == 1 or len({*other}) == 1 else pearson(ranks(one), ranks(other))
    return long_kendall(one, other) if len(one) > LONG else kendall(one, other)


def check_agreement(results: Results, checks: Checks, at_chance: dict[tuple, str]) -> None:
    """Kendall's τ and Fagin's top k of every two measures on every text, and their means."""
    for protocol, cell, asked, rows in results.scores("Agreement"):
        options = asked["options"]
        if options["subwords"] == "summed":
            checks.skip(f"agreement {protocol} joins subwords")
            continue
        found = {measure: importances(results, cell, measure) for measure in asked["measures"]}
        for (seed, tokens), of_seed in grouped(rows, lambda row: (row["seed"], row["tokens"])).items():
            lengths = {(row["split"], row["instance"]): row["length"] for row in of_seed}
            k = max(options["top_k_minimum"], int(options["top_k_share"] * mean(list(lengths.values()))))
            for row in of_seed:
                if row["statistic"] not in KNOWN:
                    checks.skip(f"the statistic {row['statistic']} of agreement is not recomputed")
                    continue
                key = seed, row["split"], row["instance"]
                one, other = (ranked(found[row[side]][key], tokens) for side in ("measure_a", "measure_b"))
                value = value_of(row["statistic"], one, other, k)
                where = (*cell, *key, row["measure_a"], row["measure_b"])
                checks.same(
                    f"agreement: {row['statistic']}", [value, len(one)], [row["value"], row["length"]], EXACT, where
                )
                checks.same("agreement: status", ["ok" if value == value else "dropped"], [row["status"]], 0, where)
        measures, statistics = sorted(asked["measures"]), len(options["statistics"]) * len(options["tokens"])
        texts = len({(row["seed"], row["split"], row["instance"]) for row in rows})
        expected = texts * len(measures) * (len(measures) - 1) // 2 * statistics
        checks.same("agreement: every pair is there", [expected], [len(indexed(rows, KEYS))], 0, cell)
        table = [row for row in results.table(protocol) or [] if _of(row, cell, asked["seeds"])]
        keys = ["seed", "measure_a", "measure_b", "statistic", "tokens", "predicted_class"]
        columns = ["n", "dropped", "mean", "std", "significant_fraction", "status"]
        checks.tables("table agreement", _means(rows, cell, at_chance), table, keys, EXACT, columns)


def _of(row: Row, cell: Cell, seeds: list[int]) -> bool:
    return (row["dataset"], row["variant"], row["model"]) == cell[:3] and row["seed"] in seeds


def _means(rows: list[Row], cell: Cell, at_chance: dict[tuple, str]) -> list[Row]:
    """The rows of the table: by predicted class, if there are three or fewer, and over all."""
    by_class = len({row["predicted_class"] for row in rows}) <= 3
    expanded = [{**row, "predicted_class": "all"} for row in rows]
    expanded += [{**row, "predicted_class": str(row["predicted_class"])} for row in rows] if by_class else []
    keys = ("seed", "measure_a", "measure_b", "statistic", "tokens", "predicted_class")
    found = []
    for key, group in grouped(expanded, lambda row: tuple(row[name] for name in keys)).items():
        values = [row["value"] for row in group if row["status"] == "ok"]
        tested = [row["p_value"] for row in group if row["p_value"] is not None and row["p_value"] == row["p_value"]]
        status = "at chance" if (*cell[:3], key[0]) in at_chance else "ok"
        found.append(
            dict(zip(keys, key, strict=True))
            | {
                "n": len(values),
                "dropped": len(group) - len(values),
                "mean": mean(values),
                "std": deviation(values),
                "significant_fraction": sum(p <= 0.05 for p in tested) / len(tested) if tested else nan,
                "status": status if values else "undefined",
            }
        )
    return found
