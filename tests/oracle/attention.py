"""What replaces attention: permutations, adversaries of one text, other seeds, and adversarial models."""

from collections.abc import Callable, Sequence
from itertools import permutations
from math import inf, log, nan

import torch

from tests.oracle.check import Checks, grouped
from tests.oracle.importances import PROBABILITY, attention_of, models, spread
from tests.oracle.models import Model, jsd, total_variation
from tests.oracle.statistics import deviation, mean, performance, quantile
from tests.oracle.store import Cell, Results, Row, Text, read

EXACT = 1e-9
# Divergences of weights in single precision.
DIVERGENCE = 1e-5
MOST_WORDS = 6
AtChance = dict[tuple, str]
BINS = ("[0.00, 0.25)", "[0.25, 0.50)", "[0.50, 0.75)", "[0.75, 1.00]")


def bin_of(largest: float) -> str:
    """The quarter that a largest weight lies in."""
    return BINS[sum(largest >= edge for edge in (0.25, 0.5, 0.75))]


def of_cell(results: Results, protocol: str, cell: Cell, seeds: Sequence[int]) -> list[Row]:
    """The rows of a protocol's table that are about a cell."""
    rows = results.table(protocol) or []
    return [row for row in rows if (row["dataset"], row["variant"], row["model"]) == cell[:3] and row["seed"] in seeds]


def status_of(cell: Cell, seed: int, at_chance: AtChance) -> str:
    """The status of a row that has a value."""
    return "at chance" if (*cell[:3], seed) in at_chance else "ok"


def quartiles(name: str, values: list[float]) -> Row:
    """The three quartiles by the names of the tables."""
    return {f"{name}_q{percent}": quantile(values, percent / 100) for percent in (25, 50, 75)}


def by_class_and_bin(
    rows: list[Row], keys: list[str], cell: Cell, at_chance: AtChance, statistics: Callable[[list[Row]], Row]
) -> list[Row]:
    """Summaries by predicted class, if there are three or fewer, and by bin of the largest weight, and over all."""
    by_class = len({row["predicted_class"] for row in rows}) <= 3
    spread_out = []
    for row in rows:
        for class_ in {"all", str(row["predicted_class"]) if by_class else "all"}:
            for bin_ in ("all", bin_of(row["max_attention"])):
                spread_out.append({**row, "predicted_class": class_, "max_attention_bin": bin_})
    names = [*keys, "predicted_class", "max_attention_bin"]
    return [
        dict(zip(names, key, strict=True))
        | statistics(group)
        | {"n": len(group), "status": status_of(cell, key[0], at_chance)}
        for key, group in grouped(spread_out, lambda row: tuple(row[name] for name in names)).items()
    ]


def check_permutation(results: Results, checks: Checks, at_chance: AtChance, limit: int) -> None:
    """The largest weight; medians of changes, which lie between the least and the largest change; and the table."""
    for protocol, cell, asked, rows in results.scores("Permutation"):
        found = models(results, cell, checks)
        for seed in found:
            own = [row for row in rows if row["seed"] == seed]
            for row in spread(own, limit):
                text = results.text(cell, seed, row["split"], row["instance"])
                largest = max(attention_of(found[seed], text))
                where = (*cell, seed, row["instance"])
                checks.same("permutation: largest weight", [largest], [row["max_attention"]], PROBABILITY, where)
            shortest = min(own, key=lambda row: row["length"])
            if shortest["length"] <= MOST_WORDS:
                text = results.text(cell, seed, shortest["split"], shortest["instance"])
                low, high = changes(found[seed], text)
                beyond = max(0.0, low - shortest["median_change"], shortest["median_change"] - high)
                checks.note("permutation: within all changes", beyond, PROBABILITY, (*cell, seed, shortest["instance"]))
        for row in rows:
            beyond = max(0.0, -row["median_change"], row["median_change"] - 1)
            checks.note("permutation: within [0, 1]", beyond, 0, (*cell, row["seed"], row["instance"]))

        def statistics(group: list[Row]) -> Row:
            values = [row["median_change"] for row in group]
            return {"median_change_mean": mean(values)} | quartiles("median_change", values)

        expected = by_class_and_bin(rows, ["seed"], cell, at_chance, statistics)
        columns = ["n", "median_change_mean", *(f"median_change_q{q}" for q in (25, 50, 75)), "status"]
        stored = of_cell(results, protocol, cell, asked["seeds"])
        checks.tables(
            "table permutation", expected, stored, ["seed", "predicted_class", "max_attention_bin"], EXACT, columns
        )


def changes(model: Model, text: Text) -> tuple[float, float]:
    """The least and the largest change of the output over all permutations of the attention."""
    attention = model.run(text)[1]
    assert attention is not None
    before = model.probabilities(text)[0]
    orders = list(permutations(text.places))
    shuffled = attention.repeat(len(orders), 1)
    shuffled[:, text.places] = torch.stack([attention[0, list(order)] for order in orders])
    after = model.probabilities(text, attention=shuffled, vectors=model.vectors(text).expand(len(orders), -1, -1))
    change = (after - before).abs().sum(-1) / 2
    return float(change.min()), float(change.max())


def with_attention(model: Model, text: Text, weights: list[float]) -> list[float]:
    """The output with these weights of words in the place of the model's own."""
    attention = torch.zeros(1, len(text.ids), dtype=torch.float64)
    attention[0, text.places] = torch.tensor(weights, dtype=torch.float64)
    return model.probabilities(text, attention=attention)[0].tolist()


def check_adversaries(results: Results, checks: Checks, at_chance: AtChance, limit: int) -> None:
    """What each stored adversary changes and how far off it is, that it keeps its bound, and the table."""
    for protocol, cell, asked, rows in results.scores("AdversarialAttention"):
        found = models(results, cell, checks)
        for row in rows:
            where = (*cell, row["seed"], row["instance"], row["epsilon"])
            checks.note("adversaries: change within ε", max(0.0, row["change"] - row["epsilon"]), 0, where)
            checks.note("adversaries: sum to 1", abs(sum(row["adversary"]) - 1), DIVERGENCE, where)
            # Rounding of single precision must not make a divergence of what hardly differs.
            expected = jsd(row["attention"], row["adversary"])
            checks.same("adversaries: JSD of stored weights", [expected], [row["jsd"]], DIVERGENCE, where)
        for seed, model in found.items():
            for row in spread([row for row in rows if row["seed"] == seed], limit * len(asked["options"]["epsilon"])):
                text = results.text(cell, seed, row["split"], row["instance"])
                where = (*cell, seed, row["instance"], row["epsilon"])
                checks.same("adversaries: attention", attention_of(model, text), row["attention"], PROBABILITY, where)
                before, after = model.probabilities(text)[0].tolist(), with_attention(model, text, row["adversary"])
                checks.same("adversaries: output", after, row["adversary_probabilities"], PROBABILITY, where)
                checks.same(
                    "adversaries: change", [total_variation(before, after)], [row["change"]], PROBABILITY, where
                )

        def statistics(group: list[Row]) -> Row:
            values = [row["jsd"] for row in group]
            feasible = sum(row["feasible"] > 0 for row in group) / len(group)
            return {"jsd_mean": mean(values), "jsd_std": deviation(values), "feasible_fraction": feasible} | quartiles(
                "jsd", values
            )

        expected_rows = by_class_and_bin(rows, ["seed", "epsilon"], cell, at_chance, statistics)
        columns = ["n", "feasible_fraction", "jsd_mean", "jsd_std", *(f"jsd_q{q}" for q in (25, 50, 75)), "status"]
        keys = ["seed", "epsilon", "predicted_class", "max_attention_bin"]
        stored = of_cell(results, protocol, cell, asked["seeds"])
        checks.tables("table adversarial_attention", expected_rows, stored, keys, EXACT, columns)


def check_seed_variance(results: Results, checks: Checks, at_chance: AtChance, limit: int) -> None:
    """Attention and output of each seed against the base seed's, and the table."""
    for protocol, cell, asked, rows in results.scores("SeedVariance"):
        found = models(results, cell, checks)
        base_seed = asked["seeds"][0] if asked["options"]["base_seed"] < 0 else asked["options"]["base_seed"]
        for _, own in grouped(rows, lambda row: (row["seed"],)).items():
            for row in spread(own, limit) if found else []:
                seed, key = row["seed"], (row["split"], row["instance"])
                text = results.text(cell, seed, *key)
                one, other = (attention_of(found[s], text) for s in (seed, base_seed))
                far = total_variation(*(found[s].probabilities(text)[0].tolist() for s in (seed, base_seed))) / 2
                expected = [base_seed, max(other), jsd(one, other), far]
                stored = [row["base_seed"], row["max_attention"], row["jsd"], row["tvd"]]
                checks.same("seed variance", expected, stored, DIVERGENCE, (*cell, seed, *key))
        expected_rows = []
        binned = [{**row, "bin": bin_} for row in rows for bin_ in ("all", bin_of(row["max_attention"]))]
        for (seed, bin_), group in grouped(binned, lambda row: (row["seed"], row["bin"])).items():
            values = [row["jsd"] for row in group]
            expected_rows.append(
                {
                    "seed": seed,
                    "base_seed": base_seed,
                    "max_attention_bin": bin_,
                    "n": len(group),
                    "tvd_mean": mean([row["tvd"] for row in group]),
                    "jsd_mean": mean(values),
                    "status": "at chance" if {(*cell[:3], seed), (*cell[:3], base_seed)} & {*at_chance} else "ok",
                }
                | quartiles("jsd", values)
            )
        columns = ["n", "tvd_mean", "jsd_mean", *(f"jsd_q{q}" for q in (25, 50, 75)), "status"]
        stored_rows = of_cell(results, protocol, cell, asked["seeds"])
        keys = ["base_seed", "seed", "max_attention_bin"]
        checks.tables("table seed_variance", expected_rows, stored_rows, keys, EXACT, columns)


def chosen(losses: list[float], first: int, patience: int | None) -> int:
    """The epoch with the lowest loss, of those before patience ran out; counted from 1."""
    best, found = inf, 0
    for epoch, loss in enumerate(losses, 1):
        if epoch < first:
            continue
        if not found or loss < best:
            best, found = (loss if loss == loss else best), epoch
        elif patience and epoch - found >= patience:
            break
    return found


def attefa(tvd: float, divergence: float) -> float:
    """min((TVD / 0.5) / (JSD / ln 2), 1); 1 where attention did not move."""
    return 1.0 if divergence <= 1e-6 else min((tvd / 0.5) / (divergence / log(2)), 1.0)


def check_adversary_models(results: Results, checks: Checks, at_chance: AtChance) -> None:
    """The table of adversarial models from their histories; and the kept model's scores from its weights."""
    table = results.table("adversary")
    if table is None:
        return
    expected = []
    for cell, path in results.cells("models", "history.parquet"):
        config = results.model(cell)
        against, recipe = config["base"], config["training"]
        if against.get("objective") not in ("attefa", "wiegreffe-pinter"):
            continue
        base, _, name = cell.model.partition(".")
        history = read(path)
        metrics = {(row["seed"], row["epoch"], row["split"], row["metric"]): row["value"] for row in history}
        for seed in config["seeds"]:
            epochs = max(row["epoch"] for row in history if row["seed"] == seed)
            for split in (recipe["select_on"], *recipe["also_select_on"]):
                losses = [metrics[seed, epoch, split, "loss"] for epoch in range(1, epochs + 1)]
                epoch = chosen(losses, recipe["first_eligible_epoch"], recipe["patience"])
                scores = {metric: metrics[seed, epoch, "test", metric] for metric in ("f1", "tvd", "jsd")}
                row = {"dataset": cell.dataset, "variant": cell.variant, "model": base, "seed": seed}
                row |= {"adversary": name if against["strength"] is None else name.split(".")[0], "selected_on": split}
                row |= {"strength": against["strength"], "base_seed": against["base_seed"]}
                row |= {"epoch": epoch, "epochs": epochs, **scores}
                row |= {"attefa": nan if against["strength"] == 0 else attefa(scores["tvd"], scores["jsd"])}
                status = "collapsed" if metrics[seed, epoch, "test", "answers"] == 1 else "ok"
                if (cell.dataset, cell.variant, base, against["base_seed"]) in at_chance:
                    status = "at chance"
                expected.append(row | {"status": status})
                if split == recipe["select_on"]:
                    _kept(results, checks, cell, base, seed, against["base_seed"], scores)
    keys = ["dataset", "variant", "model", "adversary", "strength", "base_seed", "seed", "selected_on"]
    columns = ["epoch", "epochs", "f1", "tvd", "jsd", "attefa", "status"]
    checks.tables("table adversary", expected, table, keys, EXACT, columns)


def _kept(
    results: Results, checks: Checks, cell: Cell, base: str, seed: int, base_seed: int, scores: dict[str, float]
) -> None:
    """The test scores of the kept adversary from its weights and what the base model says and attends to."""
    found = models(results, cell, checks)
    if not found:
        return
    for other, path in results.cells("models", "attention.parquet"):
        if other[:3] != (cell.dataset, cell.variant, base):
            continue
        looks = {r["instance"]: r for r in read(path) if r["split"] == "test" and r["seed"] == base_seed}
        says = read(path.with_name("predictions.parquet"))
        says = [row for row in says if row["split"] == "test" and row["seed"] == base_seed]
        if not says:
            continue
        distances, divergences, outputs = [], [], []
        for row in says:
            text = results.text(cell, seed, "test", row["instance"])
            outputs.append(found[seed].probabilities(text)[0].tolist())
            distances.append(total_variation(outputs[-1], row["probabilities"]) / 2)
            divergences.append(jsd(attention_of(found[seed], text), looks[row["instance"]]["attention"]))
        expected = [mean(distances), mean(divergences), performance(outputs, [row["label"] for row in says])["f1"]]
        stored = [scores["tvd"], scores["jsd"], scores["f1"]]
        checks.same("adversary: TVD, JSD and F1 by weights", expected, stored, DIVERGENCE, (*cell, seed))
