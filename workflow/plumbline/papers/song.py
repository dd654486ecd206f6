"""Published numbers of A Song of (Dis)agreement (Neely et al. 2022), Tables 1 to 9, and our values for them."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from plumbline.papers.paper import (
    NOT_JUDGED,
    PUBLISHED,
    SCORE_TOLERANCE,
    SINGLE_SEED,
    SIZES,
    OurValues,
    Paper,
    StudyResults,
    percent_to_fraction,
    rows_with,
    sample_size,
)
from plumbline.protocols.agreement.selections import fewest_tokens, pool_seeds

# The paper's names and the registered ones.
DATASETS = {"SST-2": "sst-2", "IMDb": "imdb-240", "MNLI": "mnli", "SNLI": "snli-cased", "Quora": "quora"}
SINGLE = ("sst-2", "imdb-240")
TRANSFORMERS = ("distilbert", "minilm-song")
UNIFORM = "-uniform"
MEASURES = {
    "attention_weights": "attention",
    "attention_rollout": "rollout",
    "attention_flow": "attention-flow",
    "LIME": "lime",
    "IntegratedGradients": "integrated-gradient-pad",
    "DeepLIFT": "grad-x-diff",
    "GradSHAP": "grad-shap",
    "DeepSHAP": "deep-shap-published",
}
# For BiLSTMs on text pairs, the published LIME takes two words as one feature.
LIME_OF_PAIRS = "lime-published"
# The correct form of each measure that differs from its published name.
CORRECT = {"grad-x-diff": "deep-lift", "deep-shap-published": "deep-shap", LIME_OF_PAIRS: "lime"}
CORRECTED = {
    "deep-lift": "DeepLIFT with its rules: the published one applies none and is `grad-x-diff`",
    "deep-shap": "correct Deep-SHAP: the published one also runs each text with another text's mask and label",
    "lime": "one feature per word: in the published one the two texts share features",
}
METRICS = {"mean_kendall_tau": "kendall_tau", "validation_accuracy_pct": "validation_accuracy"}
SCORED = {"test_accuracy": "test", "validation_accuracy": "dev"}
# Reasons for which a reader leaves out texts that the published sizes count.
COUNTED = ("neutral", "no agreed label")
# Tables 5 and 6 are Tables 1 and 2 with the spread over texts.
WITH_SPREAD = {"T5": "T1", "T6": "T2"}

SEEDS, TEXTS = 3, 1500
# With hundreds of cells, a tolerance of two standard errors would leave several outside by chance.
STANDARD_ERRORS = 3
FAULT = {"after_attention": "untransposed"}
FAULTY = f"the published model multiplies by untransposed weights after attention in every layer, {NOT_JUDGED}"
ANOTHER = f"another model, for comparing magnitudes, {NOT_JUDGED}"
SPREADS = "the published spread is over texts, ours over seeds"
HEAD = "the published model has three outputs for two classes"


def published_rows() -> pd.DataFrame:
    """The paper's tables under registered names, percentages as fractions: a row for each of our models and each form
    (published or corrected) of the measures."""
    frame = pd.read_csv(PUBLISHED / "song_of_disagreement.csv")
    frame = frame[~frame["table"].isin(list(WITH_SPREAD.values()))].replace({"table": WITH_SPREAD})
    frame = percent_to_fraction(frame.sort_values("table", kind="stable"))
    frame["dataset"] = frame["dataset"].map(DATASETS)
    frame["metric"] = frame["metric"].replace(METRICS)
    frame = frame.assign(forms=frame.apply(_forms, axis=1), model=frame.apply(_kinds, axis=1))
    frame = frame.explode("forms").explode("model", ignore_index=True)
    forms = pd.DataFrame(frame["forms"].tolist(), columns=["measure_a", "measure_b", "corrected"])
    return pd.concat([frame.drop(columns="forms"), forms], axis=1).assign(note=None)


def _forms(row: pd.Series) -> list[tuple[str | None, str | None, str | None]]:
    """The measures of a row as published and, if those are faulty, corrected, with a note on the difference."""
    if pd.isna(row["method_a"]):
        return [(None, None, None)]
    shared = {"LIME": LIME_OF_PAIRS} if row["model"] == "BiLSTM" and row["dataset"] not in SINGLE else {}
    a, b = ({**MEASURES, **shared}[row[column]] for column in ("method_a", "method_b"))
    right = {measure: CORRECT[measure] for measure in (a, b) if measure in CORRECT}
    note = "; ".join(CORRECTED[measure] for measure in right.values())
    return [(a, b, None), *([(right.get(a, a), right.get(b, b), note)] if right else [])]


def _kinds(row: pd.Series) -> list[str | None]:
    """Our models of a row; [None] for a row about the data alone."""
    if pd.isna(row["model"]):
        return [None]
    bilstm = "bilstm-song" if row["dataset"] in SINGLE else "bilstm-shared"
    kinds = TRANSFORMERS if row["model"] == "DistilBERT" else (bilstm,)
    return [f"{kind}{UNIFORM}" if row["attention"] == "uniform" else kind for kind in kinds]


def unjudged(row: pd.Series, dataset: str, model: str | None, results: StudyResults) -> Iterator[str]:
    """How the model, measure or data differ from the published ones."""
    if model is None:
        return
    faulty = FAULT.items() <= results.names.model_options.get(model, {}).items()
    if row["model"].startswith("minilm"):
        yield ANOTHER
    elif row["model"].startswith("distilbert") and row["metric"] != "train_minutes" and not faulty:
        yield FAULTY
    if pd.notna(row["corrected"]):
        yield f"{row['corrected']}, {NOT_JUDGED}"
    yield sample_size(results.summary(dataset))


def our_values(row: pd.Series, dataset: str, model: str | None, results: StudyResults) -> Iterator[OurValues]:
    """Our values for a published number."""
    if model is None:
        yield _count(row, results.summary(dataset))
    elif row["metric"] == "train_minutes":
        yield from _minutes(dataset, model, results)
    elif row["metric"] in SCORED:
        if values := results.scores(dataset, model, "accuracy", split=SCORED[row["metric"]]):
            basis = f"tolerance: three published standard deviations, at least {SCORE_TOLERANCE:g}"
            yield OurValues(values, max(3 * row["std"], SCORE_TOLERANCE), basis, _head(row))
    elif results.agreement is not None:
        keys = {"statistic": "kendall", "predicted_class": "all"}
        yield from _agreement(row, rows_with(results.agreement, dataset=dataset, model=model, **keys), results)


def _head(row: pd.Series) -> str:
    return HEAD if row["dataset"] == "quora" else ""


def _agreement(row: pd.Series, taus: pd.DataFrame, results: StudyResults) -> Iterator[OurValues]:
    taus = taus[taus["n"] > 0]
    for pair in product(*(results.names.entries(row[column]) for column in ("measure_a", "measure_b"))):
        rows = taus[taus["measure_a"].isin(pair) & taus["measure_b"].isin(pair)]
        if not rows.empty:
            break
    else:
        return
    rows, token_note = _published_tokens(row, rows)
    values = rows["mean"].tolist()
    alone = SINGLE_SEED if len(values) < 2 else ""
    notes = "; ".join(filter(None, [SPREADS if pd.notna(row["std"]) else "", _head(row), token_note, alone]))
    basis = (
        f"tolerance: {STANDARD_ERRORS} standard errors of the difference, from our spread over seeds for both sides or "
        "from both spreads over texts, whichever is larger"
    )
    yield OurValues(values, None if token_note or alone else _tolerance(row, rows), basis, notes, measures=pair)


def _published_tokens(row: pd.Series, rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The rows that rank the same tokens as the paper, or else those that rank the fewest tokens, with a note.

    Transformers rank special tokens too. BiLSTMs have none and rank both texts of a pair in one list.
    """
    published = ["all"] if row["model"] in TRANSFORMERS else ["texts", *(["text"] if row["dataset"] in SINGLE else [])]
    for tokens in published:
        if tokens in set(rows["tokens"]):
            return rows[rows["tokens"] == tokens], ""
    return fewest_tokens(rows), f"ranks other tokens than published (`{published[0]}`), {NOT_JUDGED}"


def _tolerance(row: pd.Series, rows: pd.DataFrame) -> float:
    """The largest difference allowed between the two means. Each seed redraws the texts, so that its mean varies with
    both."""
    seeds = rows["mean"].var(ddof=1) * (1 / SEEDS + 1 / len(rows))
    together = pool_seeds(rows, ["tokens"]).iloc[0]
    texts = row["std"] ** 2 / TEXTS + together["std"] ** 2 / together["n"]
    return STANDARD_ERRORS * float(np.sqrt(np.nanmax([seeds, texts])))


def _minutes(dataset: str, model: str, results: StudyResults) -> Iterator[OurValues]:
    """Training minutes per seed: the seeds of a block train in one job and share its minutes."""
    seeds = len(results.scores(dataset, model, "accuracy"))
    if results.training is not None and seeds:
        seconds = rows_with(results.training, dataset=dataset, model=model)["seconds"].sum()
        note = "not judged: another machine, and seeds of one job share its minutes"
        yield OurValues([float(seconds / 60 / seeds)] * seeds, note=note)


def _count(row: pd.Series, summary: Mapping[str, Any]) -> OurValues:
    """Texts before any were left out."""
    split = SIZES[row["metric"]]
    left_out = [summary["dropped"].get(reason, {}).get(split, 0) for reason in COUNTED]
    count = [float(summary["splits"][split]["texts"] + sum(left_out))]
    if row["dataset"] == "quora":
        note = "not judged: the published splits are drawn differently and omit four pairs of the file"
        return OurValues(count, note=note)
    if (row["dataset"], split) == ("mnli", "test"):
        return OurValues(count, 10.0, "printed as a round number")
    note = "counts neutral sentences, which no model is trained on" if row["dataset"] == "sst-2" else ""
    return OurValues(count, 0.0, note=note)


PAPER = Paper(
    "A Song of (Dis)agreement",
    published_rows,
    our_values,
    unjudged,
    select_on="dev",
    data={"sst-2": {"leaves_over": 0, "tokens": "raw"}, "snli-cased": {"tokens": "cased"}},
    measures={("bilstm-song", "deep-shap-published"): {"mixed": "texts"}},
    models={"distilbert": FAULT, "distilbert-uniform": FAULT},
)
