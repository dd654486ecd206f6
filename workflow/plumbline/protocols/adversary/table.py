"""AtteFa's faithfulness score of attention: the change in output that an adversary's different attention costs."""

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

# The maximum TVD of outputs on the study's scale, and the maximum JSD of attention.
LARGEST_TVD = 0.5
LARGEST_JSD = float(np.log(2))
# Attention that differs by less counts as equal: the rounding of float32 weights alone gives up to about 1e-7.
SMALLEST_JSD = 1e-6


@metric("tvd", direction="lower", range=[0, 0.5], unit="distance", equation="¼ Σ_c |p_c - q_c|; 0 is identical")
def output_distance(p: npt.ArrayLike, q: npt.ArrayLike) -> FloatArray:
    """TVD of two models' outputs [..., C] on AtteFa's scale, half the usual one; ½ |p - q| for two classes."""
    return np.abs(np.subtract(p, q)).sum(-1) / 4


@metric(
    "jsd",
    direction="lower",
    range=[0, 0.6931],
    unit="nats",
    equation="½ KL(a‖m) + ½ KL(b‖m), m = (a + b)/2; 0 is identical, ln 2 disjoint",
)
def attention_divergence(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    """Jensen-Shannon divergence of two models' attention weights [..., L]."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
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
    """The AtteFa score of an adversary's mean TVD and JSD: 0 if all attention can change with the same output."""
    distance, divergence = np.asarray(tvd, dtype=np.float64), np.asarray(jsd, dtype=np.float64)
    equal = divergence < SMALLEST_JSD
    ratio = (distance / LARGEST_TVD) / (np.where(equal, LARGEST_JSD, divergence) / LARGEST_JSD)
    return np.where(equal, 1.0, np.minimum(ratio, 1.0))[()]


def attefa_rows(adversary: pd.DataFrame) -> pd.DataFrame:
    """The rows of the table with AtteFa scores: of the objective `attefa`, with epochs chosen on dev if there are any,
    else on test. Collapsed adversaries count, as in the study: they failed to reproduce the output."""
    rows = adversary[(adversary["objective"] == "attefa") & adversary["status"].isin(("ok", COLLAPSED))]
    return rows[rows["selected_on"] == ("dev" if (rows["selected_on"] == "dev").any() else "test")]


def one_selection(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per run: at the epoch chosen on the dev split or, without one, on the first split."""
    splits = sorted(runs["selected_on"].unique(), key=lambda split: split != "dev")
    return runs[runs["selected_on"].isin(splits[:1])]


# At strength 0 the objective does not reward different attention; whether it differs is chance, not faithfulness.
NOT_ATTACKED = "of strength 0: the objective does not reward different attention, so there is no score"
# A constant classifier has failed the task and cannot reproduce the output, whatever its attention.
CONSTANT = "the adversary predicts the same class for every test text"
# The columns that identify a cell of adversaries in the table.
ADVERSARY_KEYS = ("dataset", "variant", "model", "adversary", "objective", "strength", "base_seed")


def adversary_rows(history: pd.DataFrame, cell: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of the table `adversary`: the adversary's test scores for each seed and each split whose loss chooses the
    epoch.

    `cell` has ADVERSARY_KEYS, `selected_on`, the `first` eligible epoch and the `patience` of early stopping.
    """
    keys = {key: cell[key] for key in ADVERSARY_KEYS}
    for seed, rows in history.groupby("seed"):
        scores = rows.set_index(["epoch", "split", "metric"])["value"].unstack(["split", "metric"])
        for split in cell["selected_on"]:
            row = {**keys, "seed": seed, "selected_on": split, "epochs": len(scores)}
            losses = scores[split, "loss"].tolist()
            epoch, _ = select_epoch(losses, cell["first"], cell["patience"], larger=False)
            chosen = {metric: float(scores["test", metric].get(epoch, np.nan)) for metric in ("f1", "tvd", "jsd")}
            diverged = not np.isfinite(list(chosen.values())).all()
            not_attacked = cell["strength"] == 0
            constant = not diverged and scores["test", "answers"].get(epoch) == 1
            # In order of precedence.
            reasons = {"training diverged": diverged, CONSTANT: constant, NOT_ATTACKED: not_attacked}
            row |= chosen | {
                "epoch": epoch or None,
                "attefa": np.nan if diverged or not_attacked else float(attefa_score(chosen["tvd"], chosen["jsd"])),
                "status": "undefined" if diverged else COLLAPSED if constant else "ok",
                "reason": next((reason for reason, holds in reasons.items() if holds), None),
            }
            yield row


@table(
    "adversary",
    equation="TVD / 0.5 - JSD(α, α_base) / ln 2 (`attefa`) or TVD - λ KL(α‖α_base) (`wiegreffe-pinter`), minimised "
    "by training",
    cost="One model per adversary, strength and seed, trained for up to 80 epochs, and one forward pass of the "
    "base model per text.",
    misleads="A score near 1 may be a failed search: read JSD, and the status `collapsed`. Where attention hardly "
    "changed, the score is 1 or noise. Of a base model at chance it means nothing.",
    citation=[
        "Wiegreffe & Pinter (2019), Attention is not not Explanation. EMNLP.",
        "Amini & Kosseim (2022), How (Un)Faithful is Attention? BlackboxNLP.",
    ],
    metrics=["attefa"],
    reads=["histories:adversaries", "performance"],
)
def adversary_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """The adversaries' test scores, by the split that their epoch is chosen on."""
    rows = [
        row
        for cell, path in sources["histories:adversaries"]
        for row in adversary_rows(read_table(path, HISTORY).to_pandas(), cell)
    ]
    return ADVERSARY, mark_at_chance(pd.DataFrame(rows), at_chance(sources.frame(PERFORMANCE)), seed="base_seed")
