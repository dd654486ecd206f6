"""Adversarial models on the page: one small table of what they reached, and one of what another seed alone does."""

import numpy as np
import pandas as pd

from plumbline.protocols.adversary.table import LARGEST_JSD, LARGEST_TVD
from plumbline.protocols.attention.bins import EVERY
from plumbline.report.tables import Cell, Table, named, numeric, placed, plain, spread


def adversary_overview(adversary: pd.DataFrame) -> Table:
    """What each base model's adversaries reached, by the split that chose their epoch."""
    keys = ["dataset", "variant", "model", "adversary", "objective", "strength", "selected_on"]
    rows = []
    for cell, group in plain(adversary).groupby(keys, dropna=False):
        dataset, variant, model, name, objective, strength, split = map(str, cell)
        ran = group[group["status"] == "ok"]
        rows.append(
            [
                Cell(named(dataset, variant)),
                Cell(model),
                Cell(title(name, objective, float(strength))),
                Cell(split),
                _seeds(len(group), len(group) - len(ran)),
                placed(ran["attefa"], 1),
                placed(ran["tvd"], LARGEST_TVD),
                placed(ran["jsd"], LARGEST_JSD),
                placed(ran["f1"], 1),
                spread(ran["epoch"], 1),
            ]
        )
    caption = (
        "How far adversaries came from their base model on the test split: mean over texts, ± standard deviation over "
        "their seeds, each on an axis from 0 to its maximum. TVD is how different the output is, ½\u00a0|Δp| for two "
        "classes, from 0 to 0.5; JSD how different the attention is, from 0 to ln 2; AtteFa the ratio of the two, each "
        "as a share of its maximum, and 1 at most. AtteFa near 0: other attention gives the same output, so that "
        "attention is not faithful. Near 1: it does not. The epoch is the one with the lowest loss on the split that "
        "chooses it; choosing on test is how AtteFa was published, and is optimistic for the adversary. An F1 far "
        "below the base model's is of an adversary that failed to say the same, and its score says little."
    )
    if any(row[4].mark for row in rows):
        caption += " Seeds whose training diverged are in no mean."
    columns = ["dataset", "model", "adversary", "chosen on", "seeds", "AtteFa", "TVD", "JSD", "F1", "epoch"]
    return Table(caption, columns, rows, frozenset(range(4, len(columns))))


def title(adversary: str, objective: str, strength: float | None) -> str:
    """The config's name of an adversary with what it does not tell: the objective, if that is another, and λ."""
    told = adversary if adversary == objective else f"{adversary} ({objective})"
    return told if strength is None or np.isnan(strength) else f"{told}, λ\u00a0=\u00a0{strength:g}"


def _seeds(count: int, diverged: int) -> Cell:
    return Cell(f"{count}, {diverged} diverged", count, "bad") if diverged else numeric(count, 0)


def seed_variance_overview(seed_variance: pd.DataFrame) -> Table:
    """How far the other seeds of a block are from its base seed."""
    frame = plain(seed_variance)
    frame = frame[frame["max_attention_bin"] == EVERY]
    rows = []
    for cell, group in frame.groupby(["dataset", "variant", "model", "base_seed"]):
        dataset, variant, model, base = map(str, cell)
        rows.append(
            [
                Cell(named(dataset, variant)),
                Cell(model),
                Cell(base, float(base)),
                numeric(len(group), 0),
                numeric(group["n"].mean(), 0),
                placed(group["tvd_mean"], LARGEST_TVD),
                placed(group["jsd_mean"], LARGEST_JSD),
            ]
        )
    caption = (
        "How far another seed alone moves output and attention: mean over texts of TVD, ½\u00a0|Δp| for two classes, "
        "and of JSD between a base seed and each other one, ± standard deviation over those, on axes from 0 to 0.5 and "
        "from 0 to ln 2. An adversary has found other attention only where its JSD is larger than this."
    )
    columns = ["dataset", "model", "base seed", "other seeds", "texts", "TVD", "JSD"]
    return Table(caption, columns, rows, frozenset(range(2, len(columns))))
