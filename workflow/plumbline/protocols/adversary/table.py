"""How faithful attention is in the eyes of AtteFa: how much of the output an adversary's other attention costs it."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import xlogy

from plumbline.protocols.adversary.schemas import ADVERSARY
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.registry import metric, table
from plumbline.store import TableSchema, read_table
from plumbline.tables.chance import COLLAPSED, at_chance, mark_at_chance
from plumbline.tables.sources import Sources
from plumbline.training.epochs import select_epoch
from plumbline.training.schemas import HISTORY

FloatArray = npt.NDArray[np.float64]

# The largest distance of outputs on the study's scale, and the largest divergence of attention.
LARGEST_TVD = 0.5
LARGEST_JSD = float(np.log(2))
# Attention that differs by less is the same: weights are float32, whose rounding alone gives up to about 1e-7.
SMALLEST_JSD = 1e-6


@metric("tvd", direction="lower", range=[0, 0.5], unit="distance", equation="¼ Σ_c |p_c - q_c|; 0 is identical")
def output_distance(one: npt.ArrayLike, other: npt.ArrayLike) -> FloatArray:
    """Distance of two models' outputs [..., C] on AtteFa's scale, half the usual one; ½ |p - q| for two classes."""
    return np.abs(np.subtract(one, other)).sum(-1) / 4


@metric(
    "jsd",
    direction="lower",
    range=[0, 0.6931],
    unit="nats",
    equation="½ KL(a‖m) + ½ KL(b‖m), m = (a + b)/2; 0 is identical, ln 2 disjoint",
)
def attention_divergence(one: npt.ArrayLike, other: npt.ArrayLike) -> FloatArray:
    """Jensen-Shannon divergence of two models' attention weights [..., L]."""
    a, b = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    m = (a + b) / 2
    return (xlogy(a, a) / 2 + xlogy(b, b) / 2 - xlogy(m, m)).sum(-1)


@metric(
    "attefa",
    direction="higher",
    range=[0, 1],
    unit="score",
    equation="min((TVD / 0.5) / (JSD / ln 2), 1), of means over texts; 1 where JSD is 0",
)
def attefa_score(tvd: npt.ArrayLike, jsd: npt.ArrayLike) -> FloatArray | np.float64:
    """AtteFa's score from an adversary's mean TVD and mean JSD: 0 if all attention can change and no output does."""
    distance, divergence = np.asarray(tvd, dtype=np.float64), np.asarray(jsd, dtype=np.float64)
    same = divergence < SMALLEST_JSD
    share = (distance / LARGEST_TVD) / (np.where(same, LARGEST_JSD, divergence) / LARGEST_JSD)
    return np.where(same, 1.0, np.minimum(share, 1.0))[()]


def scored(adversary: pd.DataFrame) -> pd.DataFrame:
    """The rows of the table that say how faithful attention is: of the objective `attefa`, and if epochs were chosen on
    dev and on test those of dev. Adversaries that collapsed count, as in the study: they failed to give the output."""
    rows = adversary[(adversary["objective"] == "attefa") & adversary["status"].isin(("ok", COLLAPSED))]
    return rows[rows["selected_on"] == ("dev" if (rows["selected_on"] == "dev").any() else "test")]


# An adversary that is not asked for other attention keeps it or not by chance, which says nothing of faithfulness.
NOT_ATTACKED = "of strength 0, so that it was not asked for other attention and has no score"
# One that says the same of every text has lost the task, and with it the output, whatever its attention.
CONSTANT = "the adversary gives every test text the same answer"
# What a cell of adversaries tells of itself in the table.
KEYS = ("dataset", "variant", "model", "adversary", "objective", "strength", "base_seed")


def adversary_rows(history: pd.DataFrame, cell: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of the table `adversary`: for each seed and each split that chooses an epoch by its loss, the adversary's
    test scores at that epoch.

    `cell` has KEYS, `selected_on`, and the `first` eligible epoch and the `patience` of the choice.
    """
    keys = {key: cell[key] for key in KEYS}
    for seed, told in history.groupby("seed"):
        scores = told.set_index(["epoch", "split", "metric"])["value"].unstack(["split", "metric"])
        for split in cell["selected_on"]:
            row = {**keys, "seed": seed, "selected_on": split, "epochs": len(scores)}
            losses = scores[split, "loss"].tolist()
            epoch, _ = select_epoch(losses, cell["first"], cell["patience"], larger=False)
            chosen = {metric: float(scores["test", metric].get(epoch, np.nan)) for metric in ("f1", "tvd", "jsd")}
            diverged = not np.isfinite(list(chosen.values())).all()
            imitates = cell["strength"] == 0
            constant = not diverged and scores["test", "answers"].get(epoch) == 1
            # A divergence before all else, and then what keeps a row out of means.
            reasons = {"training diverged": diverged, CONSTANT: constant, NOT_ATTACKED: imitates}
            yield (
                row
                | chosen
                | {
                    "epoch": epoch or None,
                    "attefa": np.nan if diverged or imitates else float(attefa_score(chosen["tvd"], chosen["jsd"])),
                    "status": "undefined" if diverged else COLLAPSED if constant else "ok",
                    "reason": next((reason for reason, holds in reasons.items() if holds), None),
                }
            )


@table("adversary", reads=["histories:adversaries", "performance"])
def adversary_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """What the adversaries reached, by each split that chooses their epoch."""
    rows = [
        row
        for cell, path in sources["histories:adversaries"]
        for row in adversary_rows(read_table(path, HISTORY).to_pandas(), cell)
    ]
    return ADVERSARY, mark_at_chance(pd.DataFrame(rows), at_chance(sources.frame(PERFORMANCE)), seed="base_seed")
