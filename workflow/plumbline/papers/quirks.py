"""Published numbers that rest on a quirk of the code or the print, each with ours as published and as it should be."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from plumbline.papers import attefa, jain_wallace, recursive_roar, song
from plumbline.papers.paper import PUBLISHED, Names
from plumbline.papers.schemas import QUIRKS, REPRODUCTION
from plumbline.protocols.agreement.schemas import AGREEMENT
from plumbline.protocols.agreement.table import fewest_tokens, overall_taus
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.protocols.roar.schemas import SPARSITY
from plumbline.registry import table
from plumbline.store import TableSchema
from plumbline.tables.sources import Sources

CELL = ["study", "table", "dataset", "kind", "measure_a", "measure_b", "predicted_class", "metric", "published"]
OURS = ["ours", "ours_spread", "n_seeds"]
# Of the shares of importance that a figure shows, those that are listed.
TOPS = (10, 50)


class Quirk(NamedTuple):
    """A quirk: the study and the place where it shows, what it is, and the settings with and without it."""

    name: str
    study: str
    where: str
    what: str
    as_published: str
    corrected: str


def _of_measures(name: str, study: str, where: str, what: str, wrong: str, right: str) -> Quirk:
    return Quirk(name, study, where, what, f"measure `{wrong}`", f"measure `{right}`")


SONG, ROAR = song.STUDY.name, recursive_roar.STUDY.name
# By the measure as it was published.
OF_MEASURES = {
    "grad-x-diff": _of_measures(
        "DeepLIFT without rules",
        SONG,
        "Tables 1, 2, 5 and 6",
        "No rule of DeepLIFT's was attached to the models, which leaves the gradient times the difference of inputs.",
        "grad-x-diff",
        "deep-lift",
    ),
    "deep-shap-published": _of_measures(
        "Deep-SHAP of mixed texts",
        SONG,
        "Tables 1, 2, 5 and 6",
        "Captum 0.2.0 laid out further arguments wrongly: each text also runs with the mask and label of another.",
        "deep-shap-published",
        "deep-shap",
    ),
    "lime-published": _of_measures(
        "LIME with shared features",
        SONG,
        "Tables 2 and 6, the BiLSTM",
        "Words at the same place of the two texts of a pair are one feature, on or off together.",
        "lime-published",
        "lime",
    ),
    "integrated-gradient-published": _of_measures(
        "a factor in integrated gradients",
        ROAR,
        "Table 2",
        "The gradient of each step is multiplied by the step's own share i/k once too often.",
        "integrated-gradient-published",
        "integrated-gradient",
    ),
}
FORMS = {**song.CORRECT, "integrated-gradient-published": "integrated-gradient"}
UNTRANSPOSED = Quirk(
    "weights after attention untransposed",
    SONG,
    "DistilBERT in Tables 1, 2, 3, 5 and 6",
    "Every layer multiplies the values by the output weights untransposed, and before the heads are parted.",
    "a model with `after_attention: untransposed`",
    "the same with `after_attention: correct`",
)
CHOSEN_ON_TEST = Quirk(
    "adversaries chosen on test",
    attefa.STUDY.name,
    "Tables 3 to 5",
    "The epoch of an adversary is the one that does best on the test split, on which it is then scored.",
    "`selected_on` test",
    "`selected_on` dev",
)
SWAPPED_FIGURES = Quirk(
    "labels of Figures 3 and 4 swapped",
    jain_wallace.STUDY.name,
    "captions of Figures 3 and 4",
    "The plotting code takes correlations with the gradient for those with leave-one-out, and the other way round.",
    "the difference to the other pair",
    "the difference that the label names",
)
ONE_WORD_MORE = Quirk(
    "one word more in Figure 6",
    ROAR,
    "Figure 6",
    "The top Q percent of n words are taken as ⌊Qn/100⌋ + 1 of them.",
    "⌊Qn/100⌋ + 1 words",
    "⌊Qn/100⌋ words",
)
SWAPPED_COLUMN = Quirk(
    "IMDB and SNLI swapped",
    ROAR,
    "Table 3, the column of Jain & Wallace",
    "What is printed beside IMDB is the score of SNLI, and the other way round.",
    "the dataset that it is printed beside",
    "the dataset that it is of",
)
LISTED = [*OF_MEASURES.values(), UNTRANSPOSED, CHOSEN_ON_TEST, SWAPPED_FIGURES, ONE_WORD_MORE, SWAPPED_COLUMN]


def quirk_rows(
    reproduction: pd.DataFrame,
    names: Names,
    performance: pd.DataFrame,
    agreement: pd.DataFrame | None = None,
    sparsity: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Rows of the table `quirks`: a row for each published number that the study that ran has in at least one setting,
    and one with a reason for each quirk that it has nothing of."""
    told = reproduction.assign(kind=reproduction["model"].astype(object).map(dict(names.models)))
    found = pd.concat(
        [
            _measures(told),
            _models(told, names),
            _chosen(told),
            _figures(agreement, names),
            _sparsity(sparsity),
            _column(performance, names),
        ]
    )
    reasons = {
        quirk.name: f"the study that ran has neither {quirk.as_published} nor {quirk.corrected} of a published number"
        for quirk in LISTED
        if quirk.name not in set(found.get("quirk", []))
    }
    missing = [
        {"quirk": name, "status": "missing", "reason": f"{reason[0].upper()}{reason[1:]}."}
        for name, reason in reasons.items()
    ]
    found = pd.concat([found.assign(status="ok", reason=None), pd.DataFrame(missing)], ignore_index=True)
    facts = pd.DataFrame(LISTED).rename(columns={"name": "quirk", "as_published": "with", "corrected": "without"})
    found = found.drop(columns=["study"], errors="ignore").merge(facts, how="left", on="quirk")
    place = found["quirk"].map({quirk.name: place for place, quirk in enumerate(LISTED)})
    found = found.iloc[place.argsort(kind="stable")]
    return found.reindex(columns=QUIRKS.schema.names)


def _beside(name: str, wrong: pd.DataFrame, right: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Our values with and without a quirk, of the same published number."""
    sides = [
        rows[[*by, *OURS]].rename(columns={"ours": side, "ours_spread": f"{side}_spread", "n_seeds": f"{side}_seeds"})
        for side, rows in (("as_published", wrong), ("corrected", right))
    ]
    # Missing keys are equal to each other.
    filled = [
        rows.assign(**{key: rows[key].astype(object).where(rows[key].notna(), "") for key in by}) for rows in sides
    ]
    both = filled[0].merge(filled[1], how="outer", on=by, sort=False)
    for key in by:
        both[key] = both[key].where(both[key] != "", None)
    return both.assign(quirk=name).rename(columns={"kind": "model"}).dropna(subset=["published"])


def _measures(told: pd.DataFrame) -> pd.DataFrame:
    """Numbers of measures that were something else than their name says. Of two such measures the first counts."""
    found = []
    told = told[told["study"].isin([SONG, ROAR])].astype({"measure_a": object, "measure_b": object})
    for wrong, quirk in OF_MEASURES.items():
        # What the published name stands for, in both forms.
        columns = {key: told[key].replace(FORMS) for key in ("measure_a", "measure_b")}
        has = told[["measure_a", "measure_b"]]
        earlier = list(OF_MEASURES)[: list(OF_MEASURES).index(wrong)]
        faulty = has.isin([wrong]).any(axis=1) & ~has.isin(earlier).any(axis=1)
        both = told.assign(**columns)
        keys = both[faulty][CELL].astype(object).fillna("").apply(tuple, axis=1)
        right = ~has.isin(list(FORMS)).any(axis=1) & both[CELL].astype(object).fillna("").apply(tuple, axis=1).isin(
            keys
        )
        found.append(_beside(quirk.name, both[faulty], both[right], CELL))
    return pd.concat(found)


def _models(told: pd.DataFrame, names: Names) -> pd.DataFrame:
    faulty = [name for name, of in names.model_options.items() if song.FAULT.items() <= of.items()]
    rows = told[(told["study"] == SONG) & told["kind"].astype(object).isin(["distilbert", "distilbert-uniform"])]
    rows = rows[rows["metric"] != "train_minutes"]
    wrong = rows["model"].isin(faulty)
    return _beside(UNTRANSPOSED.name, rows[wrong], rows[~wrong], CELL)


def _chosen(told: pd.DataFrame) -> pd.DataFrame:
    rows = told[(told["study"] == attefa.STUDY.name) & told["seed"].isna() & told["selected_on"].notna()]
    chosen = rows["selected_on"].astype(object)
    return _beside(CHOSEN_ON_TEST.name, rows[chosen == "test"], rows[chosen == "dev"], CELL)


def _figures(agreement: pd.DataFrame | None, names: Names) -> pd.DataFrame:
    """The differences of Figures 3 and 4, means over datasets of a BiLSTM with tanh attention, and each other's."""
    if agreement is None:
        return pd.DataFrame()
    taus = fewest_tokens(overall_taus(agreement)).astype({"model": object, "measure_a": object, "measure_b": object})
    taus = taus[taus["model"].map(dict(names.models)) == "bilstm-tanh"]
    kinds = taus[["measure_a", "measure_b"]].replace(dict(names.measures))
    pairs = kinds.apply(lambda pair: " ".join(sorted(pair)), axis=1) if len(kinds) else pd.Series(dtype=str)
    by_dataset = taus.assign(pair=pairs).pivot_table(index="dataset", columns="pair", values="mean", observed=True)
    wanted = {"loo": "gradient leave-one-out", "ag": "attention gradient", "al": "attention leave-one-out"}
    if not set(wanted.values()) <= set(by_dataset):
        return pd.DataFrame()
    loo, ag, al = (by_dataset[pair] for pair in wanted.values())
    published = pd.read_csv(PUBLISHED / "jain_wallace.csv").set_index("metric")["value"]
    rows = []
    for metric, wrong, right in (
        ("fig3_mean_diff_LOOvsGrad_minus_AttnvsLOO", loo - ag, loo - al),
        ("fig4_mean_diff_LOOvsGrad_minus_AttnvsGrad", loo - al, loo - ag),
    ):
        rows.append(
            {
                "quirk": SWAPPED_FIGURES.name,
                "model": "bilstm-tanh",
                "table": "captions",
                "metric": metric,
                "published": published[metric],
                "as_published": float(wrong.mean()),
                "corrected": float(right.mean()),
            }
        )
    return pd.DataFrame(rows)


def _sparsity(sparsity: pd.DataFrame | None) -> pd.DataFrame:
    """The figure has no printed numbers."""
    if sparsity is None:
        return pd.DataFrame()
    rows = sparsity[sparsity["top"].isin(TOPS) & sparsity["unit"].isin(["relative", "relative-published"])]
    keys = ["dataset", "model", "measure", "top"]
    groups = rows.groupby([*keys, "unit"], observed=True)["share"]
    summary = groups.agg(["mean", "size"])
    # As in every table, the deviation of these seeds; of one there is none.
    means = summary.assign(std=groups.std(ddof=0).where(summary["size"] > 1)).unstack("unit")
    if not {"relative", "relative-published"} <= set(means.columns.get_level_values(1)):
        return pd.DataFrame()
    told = pd.DataFrame(
        {
            f"{side}{suffix}": means[statistic][unit]
            for side, unit in (("as_published", "relative-published"), ("corrected", "relative"))
            for suffix, statistic in (("", "mean"), ("_spread", "std"), ("_seeds", "size"))
        }
    ).reset_index()
    metric = "importance of the top " + told["top"].astype(str) + " %"
    told = told.assign(quirk=ONE_WORD_MORE.name, table="F6", metric=metric, published=np.nan)
    return told.rename(columns={"measure": "measure_a"}).drop(columns="top")


def _column(performance: pd.DataFrame, names: Names) -> pd.DataFrame:
    """What is printed as Jain & Wallace's score of a dataset, beside ours of it and of the dataset that it is of."""
    printed = pd.read_csv(PUBLISHED / "recursive_roar.csv", dtype={"note": str})
    printed = printed[printed["note"].str.contains("swapped", na=False)]
    ours = _scores(performance, names)
    rows = []
    for line in printed.to_dict("records"):
        dataset = recursive_roar.DATASETS[line["dataset"]]
        wrong, right = ours.get(dataset), ours.get({"imdb": "snli", "snli": "imdb"}[dataset])
        if wrong is not None or right is not None:
            rows.append(
                {
                    "quirk": SWAPPED_COLUMN.name,
                    "table": line["table"],
                    "dataset": dataset,
                    "model": "bilstm-softmax",
                    "metric": recursive_roar.SCORES[line["metric"]],
                    "published": line["value"] / 100,
                    "as_published": wrong,
                    "corrected": right,
                }
            )
    return pd.DataFrame(rows)


def _scores(performance: pd.DataFrame, names: Names) -> Mapping[str, float]:
    """Our test scores of IMDB (macro F1) and SNLI (accuracy) with the study's BiLSTM."""
    metrics = {"imdb": "macro_f1", "snli": "accuracy"}
    here = (performance["split"] == "test") & (performance["variant"] == "plain")
    rows = performance[here & (performance["model"].astype(object).map(dict(names.models)) == "bilstm-softmax")]
    kinds = rows["dataset"].astype(object).map(dict(names.datasets))
    rows = rows.assign(kind=kinds)[(kinds.map(metrics) == rows["metric"].astype(object)).to_numpy()]
    return {str(kind): float(mean) for kind, mean in rows.groupby("kind")["value"].mean().items()}


@table("quirks", reads=["reproduction", "performance", "agreement?", "sparsity?"], params=["names", "published"])
def quirks_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """The published numbers that rest on quirks, with ours under both settings."""
    kinds = (REPRODUCTION, PERFORMANCE, AGREEMENT, SPARSITY)
    tables = {kind.name: sources.frame(kind) for kind in kinds if kind.name in sources}
    return QUIRKS, quirk_rows(names=Names(**sources.facts["names"]), **tables)
