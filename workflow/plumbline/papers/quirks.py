"""Published numbers that rest on a quirk of the code or print, each with ours as published and corrected."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from plumbline.papers import attefa, jain_wallace, recursive_roar, song
from plumbline.papers.paper import PUBLISHED, Names
from plumbline.papers.schemas import QUIRKS, REPRODUCTION
from plumbline.protocols.agreement.schemas import AGREEMENT
from plumbline.protocols.agreement.selections import fewest_tokens, overall_taus
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.protocols.roar.schemas import SPARSITY
from plumbline.registry import table
from plumbline.store import TableSchema
from plumbline.tables.sources import Sources

CELL = ["study", "table", "dataset", "kind", "measure_a", "measure_b", "predicted_class", "metric", "published"]
OURS = ["ours", "ours_spread", "n_seeds"]
# The percentages of top words that are listed from the figure's.
TOPS = (10, 50)


class Quirk(NamedTuple):
    """A quirk: the paper and where in it, a description, and the settings with and without it."""

    name: str
    study: str
    where: str
    what: str
    as_published: str
    corrected: str


SONG, ROAR = song.PAPER.name, recursive_roar.PAPER.name
CORRECT_MEASURES = {**song.CORRECT, "integrated-gradient-published": "integrated-gradient"}
MEASURE_QUIRKS = {
    measure: Quirk(*facts, f"measure `{measure}`", f"measure `{CORRECT_MEASURES[measure]}`")
    for measure, facts in {
        "grad-x-diff": (
            "DeepLIFT without rules",
            SONG,
            "Tables 1, 2, 5 and 6",
            "No DeepLIFT rule was applied to the models, which leaves the gradient times the difference of inputs.",
        ),
        "deep-shap-published": (
            "Deep-SHAP of mixed texts",
            SONG,
            "Tables 1, 2, 5 and 6",
            "Captum 0.2.0 expanded additional arguments wrongly: each text also runs with another's mask and label.",
        ),
        "lime-published": (
            "LIME with shared features",
            SONG,
            "Tables 2 and 6, the BiLSTM",
            "Words at the same position in the two texts of a pair are one feature, on or off together.",
        ),
        "integrated-gradient-published": (
            "a factor in integrated gradients",
            ROAR,
            "Table 2",
            "The gradient of each step is multiplied once too often by the step's own fraction i/k.",
        ),
    }.items()
}
UNTRANSPOSED = Quirk(
    "weights after attention untransposed",
    SONG,
    "DistilBERT in Tables 1, 2, 3, 5 and 6",
    "Every layer multiplies the values by the untransposed output weights, before splitting them into heads.",
    "a model with `after_attention: untransposed`",
    "the same with `after_attention: correct`",
)
CHOSEN_ON_TEST = Quirk(
    "adversaries chosen on test",
    attefa.PAPER.name,
    "Tables 3 to 5",
    "The epoch of an adversary is selected on the test split, on which it is then scored.",
    "`selected_on` test",
    "`selected_on` dev",
)
SWAPPED_FIGURES = Quirk(
    "labels of Figures 3 and 4 swapped",
    jain_wallace.PAPER.name,
    "captions of Figures 3 and 4",
    "The plotting code swaps the correlations with the gradient and those with leave-one-out.",
    "the difference to the other pair",
    "the difference that the label names",
)
ONE_WORD_MORE = Quirk(
    "one word more in Figure 6",
    ROAR,
    "Figure 6",
    "The top Q percent of n words are ⌊Qn/100⌋ + 1 words.",
    "⌊Qn/100⌋ + 1 words",
    "⌊Qn/100⌋ words",
)
SWAPPED_COLUMN = Quirk(
    "IMDB and SNLI swapped",
    ROAR,
    "Table 3, the column of Jain & Wallace",
    "The row of IMDB has the score of SNLI, and vice versa.",
    "the dataset of the printed row",
    "the dataset that the score is of",
)
QUIRK_LIST = [*MEASURE_QUIRKS.values(), UNTRANSPOSED, CHOSEN_ON_TEST, SWAPPED_FIGURES, ONE_WORD_MORE, SWAPPED_COLUMN]


def quirk_rows(
    reproduction: pd.DataFrame,
    names: Names,
    performance: pd.DataFrame,
    agreement: pd.DataFrame | None = None,
    sparsity: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Rows of the table `quirks`: one for each published number that the study has in at least one setting, and one
    with a reason for each quirk that it has in neither."""
    reproduction = reproduction.assign(kind=reproduction["model"].astype(object).map(dict(names.models)))
    rows = pd.concat(
        [
            _measure_rows(reproduction),
            _model_rows(reproduction, names),
            _selection_rows(reproduction),
            _figure_rows(agreement, names),
            sparsity_rows(sparsity),
            _column_rows(performance, names),
        ]
    )
    missing = [
        {
            "quirk": quirk.name,
            "status": "missing",
            "reason": f"The study has neither {quirk.as_published} nor {quirk.corrected} for a published number.",
        }
        for quirk in QUIRK_LIST
        if quirk.name not in set(rows.get("quirk", []))
    ]
    rows = pd.concat([rows.assign(status="ok", reason=None), pd.DataFrame(missing)], ignore_index=True)
    facts = pd.DataFrame(QUIRK_LIST).rename(columns={"name": "quirk", "as_published": "with", "corrected": "without"})
    rows = rows.drop(columns=["study"], errors="ignore").merge(facts, how="left", on="quirk")
    order = rows["quirk"].map({quirk.name: index for index, quirk in enumerate(QUIRK_LIST)})
    return rows.iloc[order.argsort(kind="stable")].reindex(columns=QUIRKS.schema.names)


def _both_settings(name: str, faulty: pd.DataFrame, correct: pd.DataFrame) -> pd.DataFrame:
    """Our values with and without a quirk for the same published number."""
    sides = []
    for side, rows in (("as_published", faulty), ("corrected", correct)):
        rows = rows[[*CELL, *OURS]].set_axis([*CELL, side, f"{side}_spread", f"{side}_seeds"], axis=1)
        # Missing keys are equal to each other.
        sides.append(rows.assign(**{key: rows[key].astype(object).where(rows[key].notna(), "") for key in CELL}))
    both = sides[0].merge(sides[1], how="outer", on=CELL, sort=False)
    for key in CELL:
        both[key] = both[key].where(both[key] != "", None)
    return both.assign(quirk=name).rename(columns={"kind": "model"}).dropna(subset=["published"])


def _measure_rows(reproduction: pd.DataFrame) -> pd.DataFrame:
    """Numbers of measures that differ from their published name. A pair of two such measures counts for the first."""
    rows = reproduction[reproduction["study"].isin([SONG, ROAR])].astype({"measure_a": object, "measure_b": object})
    measures = rows[["measure_a", "measure_b"]]
    # Both forms of a number are in the cell of the correct measures.
    cells = rows.assign(**{key: rows[key].replace(CORRECT_MEASURES) for key in ("measure_a", "measure_b")})
    keys = pd.Series([*cells[CELL].astype(object).fillna("").itertuples(index=False, name=None)], rows.index, object)
    correct = ~measures.isin(list(CORRECT_MEASURES)).any(axis=1)
    counted = pd.Series(False, rows.index)
    parts = []
    for measure, quirk in MEASURE_QUIRKS.items():
        faulty = measures.isin([measure]).any(axis=1) & ~counted
        counted |= faulty
        parts.append(_both_settings(quirk.name, cells[faulty], cells[correct & keys.isin(keys[faulty])]))
    return pd.concat(parts)


def _model_rows(reproduction: pd.DataFrame, names: Names) -> pd.DataFrame:
    faulty_models = [name for name, options in names.model_options.items() if song.FAULT.items() <= options.items()]
    here = (reproduction["study"] == SONG) & reproduction["kind"].isin(["distilbert", "distilbert-uniform"])
    rows = reproduction[here & (reproduction["metric"] != "train_minutes")]
    faulty = rows["model"].isin(faulty_models)
    return _both_settings(UNTRANSPOSED.name, rows[faulty], rows[~faulty])


def _selection_rows(reproduction: pd.DataFrame) -> pd.DataFrame:
    rows = reproduction[(reproduction["study"] == attefa.PAPER.name) & reproduction["seed"].isna()]
    return _both_settings(CHOSEN_ON_TEST.name, rows[rows["selected_on"] == "test"], rows[rows["selected_on"] == "dev"])


def _figure_rows(agreement: pd.DataFrame | None, names: Names) -> pd.DataFrame:
    """The differences of Figures 3 and 4, means over datasets of a BiLSTM with tanh attention, and each other's."""
    if agreement is None:
        return pd.DataFrame()
    taus = fewest_tokens(overall_taus(agreement)).astype({"model": object, "measure_a": object, "measure_b": object})
    taus = taus[taus["model"].map(dict(names.models)) == "bilstm-tanh"]
    kinds = taus[["measure_a", "measure_b"]].replace(dict(names.measures))
    pairs = kinds.apply(lambda pair: " ".join(sorted(pair)), axis=1) if len(kinds) else pd.Series(dtype=str)
    by_dataset = taus.assign(pair=pairs).pivot_table(index="dataset", columns="pair", values="mean", observed=True)
    compared = ["gradient leave-one-out", "attention gradient", "attention leave-one-out"]
    if not set(compared) <= set(by_dataset):
        return pd.DataFrame()
    loo, ag, al = (by_dataset[pair] for pair in compared)
    published = pd.read_csv(PUBLISHED / "jain_wallace.csv").set_index("metric")["value"]
    return pd.DataFrame(
        {
            "quirk": SWAPPED_FIGURES.name,
            "model": "bilstm-tanh",
            "table": "captions",
            "metric": metric,
            "published": published[metric],
            "as_published": float(faulty.mean()),
            "corrected": float(correct.mean()),
        }
        for metric, faulty, correct in (
            ("fig3_mean_diff_LOOvsGrad_minus_AttnvsLOO", loo - ag, loo - al),
            ("fig4_mean_diff_LOOvsGrad_minus_AttnvsGrad", loo - al, loo - ag),
        )
    )


def sparsity_rows(sparsity: pd.DataFrame | None) -> pd.DataFrame:
    """Importance of the top words in both settings; the figure has no printed numbers."""
    if sparsity is None:
        return pd.DataFrame()
    rows = sparsity[sparsity["top"].isin(TOPS) & sparsity["unit"].isin(["relative", "relative-published"])]
    groups = rows.groupby(["dataset", "model", "measure", "top", "unit"], observed=True)["share"]
    summary = groups.agg(["mean", "size"])
    # As in every table, the population deviation; one seed has none.
    means = summary.assign(std=groups.std(ddof=0).where(summary["size"] > 1)).unstack("unit")
    if not {"relative", "relative-published"} <= set(means.columns.get_level_values(1)):
        return pd.DataFrame()
    frame = pd.DataFrame(
        {
            f"{side}{suffix}": means[statistic][unit]
            for side, unit in (("as_published", "relative-published"), ("corrected", "relative"))
            for suffix, statistic in (("", "mean"), ("_spread", "std"), ("_seeds", "size"))
        }
    ).reset_index()
    metric = "importance of the top " + frame["top"].astype(str) + " %"
    frame = frame.assign(quirk=ONE_WORD_MORE.name, table="F6", metric=metric, published=np.nan)
    return frame.rename(columns={"measure": "measure_a"}).drop(columns="top")


def _column_rows(performance: pd.DataFrame, names: Names) -> pd.DataFrame:
    """Jain & Wallace's score as printed for a dataset, with ours for it and for the dataset that it belongs to."""
    printed = pd.read_csv(PUBLISHED / "recursive_roar.csv", dtype={"note": str})
    printed = printed[printed["note"].str.contains("swapped", na=False)]
    scores = _mean_scores(performance, names)
    rows = []
    for row in printed.to_dict("records"):
        dataset = recursive_roar.DATASETS[row["dataset"]]
        faulty, correct = scores.get(dataset), scores.get({"imdb": "snli", "snli": "imdb"}[dataset])
        if faulty is not None or correct is not None:
            rows.append(
                {
                    "quirk": SWAPPED_COLUMN.name,
                    "table": row["table"],
                    "dataset": dataset,
                    "model": "bilstm-softmax",
                    "metric": recursive_roar.SCORES[row["metric"]],
                    "published": row["value"] / 100,
                    "as_published": faulty,
                    "corrected": correct,
                }
            )
    return pd.DataFrame(rows)


def _mean_scores(performance: pd.DataFrame, names: Names) -> Mapping[str, float]:
    """Our test scores on IMDB (macro F1) and SNLI (accuracy) with the paper's BiLSTM."""
    metrics = {"imdb": "macro_f1", "snli": "accuracy"}
    here = (performance["split"] == "test") & (performance["variant"] == "plain")
    rows = performance[here & (performance["model"].astype(object).map(dict(names.models)) == "bilstm-softmax")]
    kinds = rows["dataset"].astype(object).map(dict(names.datasets))
    rows = rows.assign(kind=kinds)[(kinds.map(metrics) == rows["metric"].astype(object)).to_numpy()]
    return {str(kind): float(mean) for kind, mean in rows.groupby("kind")["value"].mean().items()}


@table("quirks", reads=["reproduction", "performance", "agreement?", "sparsity?"], params=["names", "published"])
def quirks_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """The published numbers that rest on quirks, with ours in both settings."""
    kinds = (REPRODUCTION, PERFORMANCE, AGREEMENT, SPARSITY)
    tables = {kind.name: sources.frame(kind) for kind in kinds if kind.name in sources}
    return QUIRKS, quirk_rows(names=Names(**sources.facts["names"]), **tables)
