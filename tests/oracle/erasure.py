"""Erasure: scores of each text, and their table."""

from collections.abc import Iterable
from itertools import permutations
from math import ceil, inf, isnan, nan
from zlib import crc32

import numpy as np
import torch

from tests.oracle.agreement import importances
from tests.oracle.attention import EXACT, AtChance, of_cell, status_of
from tests.oracle.check import Checks, grouped
from tests.oracle.importances import models, spread
from tests.oracle.models import Model
from tests.oracle.statistics import deviation, mean
from tests.oracle.store import MASK, Cell, Results, Row, Text

# Falls of probabilities in single precision, some of which are stored so.
FALL = 1e-4
# The longest text whose permutations are all tried.
MOST_PERMUTED = 6


def output_without(model: Model, text: Text, gone: set[int], removal: str) -> torch.Tensor:
    """Class probabilities of a text without the words at these places."""
    if removal == "mask":
        return model.probabilities(text._replace(ids=[MASK if i in gone else id_ for i, id_ in enumerate(text.ids)]))[0]
    if removal == "delete":
        return model.probabilities(text.without(gone))[0]
    vectors = model.vectors(text).clone()
    for place in gone:
        vectors[0, place] = model.vectors(text, padding=True)[0, place] if removal == "pad" else 0.0
    return model.probabilities(text, vectors=vectors)[0]


def check_erasure(results: Results, checks: Checks, at_chance: AtChance, limit: int) -> None:
    """The falls of the output without the highest words and with them alone, word by word, and of soft erasure, the
    fall to nothing, and the table."""
    for protocol, cell, asked, rows in results.scores("Erasure"):
        removal = {"auto": "delete" if asked["masking"] == "none" else "mask"}
        options = asked["options"] | {"removal": removal.get(asked["options"]["removal"], asked["options"]["removal"])}
        importances_of = {measure: importances(results, cell, measure) for measure in asked["measures"]}
        found = models(results, cell, checks)
        erased: dict[tuple, dict[frozenset[int], float]] = {}
        for (seed, measure), own in grouped(rows, lambda row: (row["seed"], row["measure"])).items():
            for row in spread(own, limit) if found else []:
                key = seed, row["split"], row["instance"]
                text = results.text(cell, *key)
                scores = [-inf if isnan(score) else score for score in importances_of[measure][key]["scores"]]
                where = (*cell, seed, measure, row["instance"])
                _check_falls(checks, found[seed], text, scores, row, options, where)
                _check_soft(checks, found[seed], text, scores, row, options, where)
                outputs = erased.setdefault(key, {})
                _check_orders(checks, found[seed], text, scores, row, options, outputs, where)
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
    checks: Checks, model: Model, text: Text, known: list[float], row: Row, options: Row, where: tuple
) -> None:
    before = model.probabilities(text)[0]
    predicted = int(before.argmax())
    checks.same("erasure: predicted class", [predicted], [row["predicted_class"]], 0, where)
    if options["draws"]:
        vectors = model.vectors(text).clone()
        vectors[0, text.places] = 0.0
        fall = float(before[predicted] - model.probabilities(text, vectors=vectors)[0, predicted])
        checks.same("erasure: fall to nothing", [fall], [row["fall_to_nothing"]], FALL, where)
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


def kept_shares(scores: list[float], retention: float) -> list[float]:
    """The chance of each word to be kept: uᵞ, with midranks u = (rank - 1/2) / n and the γ with which the mean is the
    retention, found by bisection."""
    n = len(scores)
    ranks = [sum(a < b for a in scores) + (sum(a == b for a in scores) + 1) / 2 for b in scores]
    shares = [(rank - 0.5) / n for rank in ranks]
    low, high = 0.0, 1.0
    while mean([share**high for share in shares]) > retention:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if mean([share**middle for share in shares]) > retention else (low, middle)
    return [share**low for share in shares]


def published_shares(scores: list[float]) -> list[float]:
    """Scores from 0 at the lowest to 1 at the highest of a text; a half if all are equal."""
    finite = [score for score in scores if score > -inf] or [0.0]
    low, high = min(finite), max(finite)
    return [(max(score, low) - low) / (high - low) if high > low else 0.5 for score in scores]


def _check_soft(
    checks: Checks, model: Model, text: Text, scores: list[float], row: Row, options: Row, where: tuple
) -> None:
    """The mean falls with the elements of each word's vector kept at random, drawn for the seed and the instance."""
    if not options["draws"]:
        return
    if options["soft"] == "equal-retention":
        alone = kept_shares(scores, options["retention"])
        without = kept_shares([-score for score in scores], options["retention"])
    else:
        alone = published_shares(scores)
        without = [1 - share for share in alone]
    before = float(model.probabilities(text)[0, row["predicted_class"]])
    vectors = model.vectors(text)
    random = np.random.default_rng([row["seed"], crc32(row["split"].encode()), row["instance"]])
    falls: dict[str, list[float]] = {"soft_fall_without": [], "soft_fall_alone": []}
    for _ in range(options["draws"]):
        uniform = torch.from_numpy(random.random((len(text.places), vectors.shape[-1]), dtype=np.float32))
        for name, shares in (("soft_fall_without", without), ("soft_fall_alone", alone)):
            thinned = vectors.clone()
            thinned[0, text.places] *= uniform < torch.tensor(shares, dtype=torch.float32)[:, None]
            after = model.probabilities(text, vectors=thinned)[0, row["predicted_class"]]
            falls[name].append(before - float(after))
    for name, values in falls.items():
        checks.same("erasure: soft falls", [mean(values)], [row[name]], FALL, (*where, name))


def _check_orders(
    checks: Checks,
    model: Model,
    text: Text,
    scores: list[float],
    row: Row,
    options: Row,
    outputs: dict[frozenset[int], float],
    where: tuple,
) -> None:
    """Words erased one after another: the area between curves, and the area over the curve of short texts among those
    of all permutations. `outputs` are those already known of this text."""
    n, longest = len(scores), options["longest"]
    if row["normalised_aopc"] is not None and not isnan(row["normalised_aopc"]):
        beyond = max(0.0, -row["normalised_aopc"], row["normalised_aopc"] - 1)
        checks.note("erasure: normalised AOPC is a share", beyond, EXACT, where)
    if longest < 2 or n < 2 or len(set(scores)) < n:
        return

    def output(words: Iterable[int]) -> float:
        gone = frozenset(words)
        if gone not in outputs:
            after = output_without(model, text, {text.places[i] for i in gone}, options["removal"])
            outputs[gone] = float(after[row["predicted_class"]])
        return outputs[gone]

    order = sorted(range(n), key=lambda i: -scores[i])
    steps = min(n, longest)
    counts = [ceil(step * n / steps) for step in range(1, steps)]
    gaps = [output(order[n - count :]) - output(order[:count]) for count in counts]
    checks.same("erasure: area between curves", [sum(gaps) / steps], [row["morf_lerf"]], FALL, where)
    if n <= min(longest, MOST_PERMUTED):
        areas = [-sum(output(one[:count]) for count in range(1, n)) for one in permutations(range(n))]
        own, low, high = -sum(output(order[:count]) for count in range(1, n)), min(areas), max(areas)
        # In a narrower range rounding in single precision shows.
        if high - low > 1e-2:
            checks.same("erasure: normalised AOPC", [(own - low) / (high - low)], [row["normalised_aopc"]], 1e-3, where)


def _erasure_table(rows: list[Row], cell: Cell, options: Row, at_chance: AtChance) -> list[Row]:
    found = []
    for (seed, measure), group in grouped(rows, lambda row: (row["seed"], row["measure"])).items():
        status = status_of(cell, seed, at_chance)
        words = ("normalised_aopc", "morf_lerf") if options["longest"] > 1 else ()
        for metric in ("comprehensiveness", "sufficiency", *words):
            columns = [(None, [row[metric] for row in group])]
            ratios = [] if metric in words else options["ratios"]
            columns += [(ratio, [row[f"{metric}_at"][i] for row in group]) for i, ratio in enumerate(ratios)]
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
