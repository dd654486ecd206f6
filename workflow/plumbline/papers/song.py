"""The published numbers of A Song of (Dis)agreement (Neely et al. 2022), Tables 1 to 9, and ours."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from plumbline.papers.paper import PUBLISHED, SCORE_TOLERANCE, OurValues, Paper, StudyResults, sample_size
from plumbline.protocols.agreement.table import fewest_tokens, pool_seeds

# The study's words for things, and the registered names here.
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
# In pairs of texts that a BiLSTM reads, the published LIME takes two words for one feature.
LIME_OF_PAIRS = "lime-published"
# What stands beside a measure that is not what its published name says.
CORRECT = {"grad-x-diff": "deep-lift", "deep-shap-published": "deep-shap", LIME_OF_PAIRS: "lime"}
CORRECTED = {
    "deep-lift": "genuine DeepLIFT: no rule was attached in the published one, which is `grad-x-diff`",
    "deep-shap": "correct Deep-SHAP: the published one also runs each text with another's mask and label",
    "lime": "a feature for each word: the published one shares them between the two texts",
}
METRICS = {"mean_kendall_tau": "kendall_tau", "validation_accuracy_pct": "validation_accuracy"}
SCORED = {"test_accuracy": "test", "validation_accuracy": "dev"}
SIZES = {"train_size": "train", "validation_size": "dev", "test_size": "test"}
# Texts that were counted before they were left out, by the reasons that readers give.
COUNTED = ("neutral", "no agreed label")
# Tables 5 and 6 are Tables 1 and 2 with the spread over texts.
WITH_SPREAD = {"T5": "T1", "T6": "T2"}

SEEDS, TEXTS = 3, 1500
# With so many cells, two standard errors would leave several outside by chance.
STANDARD_ERRORS = 3
NOT_JUDGED = "and so not judged"
FAULT = {"after_attention": "untransposed"}
FAULTY = f"the published model takes the weights after attention untransposed, in every layer, {NOT_JUDGED}"
ANOTHER = f"another model, to compare levels by, {NOT_JUDGED}"
SPREADS = "the published spread is over texts, ours over seeds"
HEAD = "the published model has an output too many: three, for two classes"


def published_rows() -> pd.DataFrame:
    """The study's tables in our words, percent as shares: a line for each of our models and forms of measures."""
    frame = pd.read_csv(PUBLISHED / "song_of_disagreement.csv")
    frame = frame[~frame["table"].isin(list(WITH_SPREAD.values()))].replace({"table": WITH_SPREAD})
    frame = frame.sort_values("table", kind="stable")
    percent = frame["metric"].str.endswith("_pct")
    for column in ("value", "std"):
        frame[column] = frame[column].where(~percent, frame[column] / 100)
    frame["dataset"] = frame["dataset"].map(DATASETS)
    frame["metric"] = frame["metric"].replace(METRICS)
    frame = frame.assign(forms=frame.apply(_forms, axis=1), model=frame.apply(_kinds, axis=1))
    frame = frame.explode("forms").explode("model", ignore_index=True)
    forms = pd.DataFrame(frame["forms"].tolist(), columns=["measure_a", "measure_b", "corrected"])
    return pd.concat([frame.drop(columns="forms"), forms], axis=1).assign(note=None)


def _forms(line: pd.Series) -> list[tuple[str | None, str | None, str | None]]:
    """The measures of a line as published and, where that is something else, as they should be, with what differs."""
    if pd.isna(line["method_a"]):
        return [(None, None, None)]
    shared = {"LIME": LIME_OF_PAIRS} if line["model"] == "BiLSTM" and line["dataset"] not in SINGLE else {}
    a, b = ({**MEASURES, **shared}[line[column]] for column in ("method_a", "method_b"))
    right = {measure: CORRECT[measure] for measure in (a, b) if measure in CORRECT}
    told = "; ".join(CORRECTED[measure] for measure in right.values())
    return [(a, b, None), *([(right.get(a, a), right.get(b, b), told)] if right else [])]


def _kinds(line: pd.Series) -> list[str | None]:
    """Our models of a line; [None] for a line about the data alone."""
    if pd.isna(line["model"]):
        return [None]
    bilstm = "bilstm-song" if line["dataset"] in SINGLE else "bilstm-shared"
    kinds = TRANSFORMERS if line["model"] == "DistilBERT" else (bilstm,)
    return [f"{kind}{UNIFORM}" if line["attention"] == "uniform" else kind for kind in kinds]


def ours(line: pd.Series, dataset: str, model: str | None, ran: StudyResults) -> Iterator[OurValues]:
    """Our values of a published line, not judged where the two are not about the same thing."""
    for found in _ours(line, dataset, model, ran):
        unjudged = [*_unjudged(line, ran.names.model_options.get(model or "", {}))]
        if model and (some := sample_size(ran.summary(dataset))):
            unjudged.append(some)
        tolerance = None if unjudged else found.tolerance
        note = "; ".join(filter(None, [found.note, *unjudged]))
        yield replace(found, tolerance=tolerance, note=note)


def _unjudged(line: pd.Series, options: Mapping[str, Any]) -> Iterator[str]:
    if pd.isna(line["model"]):
        return
    faulty = FAULT.items() <= options.items()
    if line["model"].startswith("minilm"):
        yield ANOTHER
    elif line["model"].startswith("distilbert") and line["metric"] != "train_minutes" and not faulty:
        yield FAULTY
    if pd.notna(line["corrected"]):
        yield f"{line['corrected']}, {NOT_JUDGED}"


def _ours(line: pd.Series, dataset: str, model: str | None, ran: StudyResults) -> Iterator[OurValues]:
    if model is None:
        yield _count(line, ran.summary(dataset))
    elif line["metric"] == "train_minutes":
        yield from _minutes(dataset, model, ran)
    elif line["metric"] in SCORED:
        if values := ran.scores(dataset, model, "accuracy", split=SCORED[line["metric"]]):
            basis = f"tolerance: three published standard deviations, at least {SCORE_TOLERANCE:g}"
            yield OurValues(values, max(3 * line["std"], SCORE_TOLERANCE), basis, _head(line))
    elif ran.agreement is not None:
        yield from _agreement(line, dataset, model, ran, ran.agreement)


def _head(line: pd.Series) -> str:
    return HEAD if line["dataset"] == "quora" else ""


def _agreement(
    line: pd.Series, dataset: str, model: str, ran: StudyResults, agreement: pd.DataFrame
) -> Iterator[OurValues]:
    here = (agreement["dataset"] == dataset) & (agreement["model"] == model) & (agreement["n"] > 0)
    here &= (agreement["statistic"] == "kendall") & (agreement["predicted_class"] == "all")
    found = agreement[here]
    for pair in product(*(_entries(line[column], ran) for column in ("measure_a", "measure_b"))):
        rows = found[found["measure_a"].isin(pair) & found["measure_b"].isin(pair)]
        if not rows.empty:
            break
    else:
        return
    rows, other = _published_tokens(line, rows)
    values = rows["mean"].tolist()
    alone = f"the spread over seeds is not known of one, {NOT_JUDGED}" if len(values) < 2 else ""
    notes = "; ".join(filter(None, [SPREADS if pd.notna(line["std"]) else "", _head(line), other, alone]))
    basis = (
        f"tolerance: {STANDARD_ERRORS} standard errors of the difference, from our seeds' spread for both sides or "
        "both spreads over texts, whichever is more"
    )
    yield OurValues(values, None if other or alone else _tolerance(line, rows), basis, notes, measures=pair)


def _entries(kind: str, ran: StudyResults) -> list[str]:
    """The study's names of a registered measure."""
    return [name for name, registered in ran.names.measures.items() if registered == kind]


def _published_tokens(line: pd.Series, rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The rows that rank the tokens that the study ranks, or else those of the fewest and a note.

    Transformers rank special tokens too. BiLSTMs have none, and both texts of a pair in one list.
    """
    wanted = ["all"] if line["model"] in TRANSFORMERS else ["texts", *(["text"] if line["dataset"] in SINGLE else [])]
    for tokens in wanted:
        if tokens in set(rows["tokens"]):
            return rows[rows["tokens"] == tokens], ""
    return fewest_tokens(rows), f"ranks other tokens than published (`{wanted[0]}`), {NOT_JUDGED}"


def _tolerance(line: pd.Series, rows: pd.DataFrame) -> float:
    """How far apart the two means may be. Texts are drawn anew by each seed, so that a seed's mean varies by both."""
    seeds = rows["mean"].var(ddof=1) * (1 / SEEDS + 1 / len(rows))
    together = pool_seeds(rows, ["tokens"]).iloc[0]
    texts = line["std"] ** 2 / TEXTS + together["std"] ** 2 / together["n"]
    return STANDARD_ERRORS * float(np.sqrt(np.nanmax([seeds, texts])))


def _minutes(dataset: str, model: str, ran: StudyResults) -> Iterator[OurValues]:
    """Minutes of training for each seed: a block trains in one job, whose minutes its seeds share."""
    table, seeds = ran.training, len(ran.scores(dataset, model, "accuracy"))
    if table is None or not seeds:
        return
    here = (table["dataset"] == dataset) & (table["model"] == model)
    minutes = float(table[here]["seconds"].sum() / 60 / seeds)
    yield OurValues(
        [minutes] * seeds, note="not judged: another machine, and seeds that train together share its minutes"
    )


def _count(line: pd.Series, summary: Mapping[str, Any]) -> OurValues:
    """Texts before anything was left out."""
    split = SIZES[line["metric"]]
    left_out = [summary["dropped"].get(reason, {}).get(split, 0) for reason in COUNTED]
    count = [float(summary["splits"][split]["texts"] + sum(left_out))]
    if line["dataset"] == "quora":
        note = "not judged: the published splits are drawn otherwise, and four pairs of the file are in none"
        return OurValues(count, note=note)
    if (line["dataset"], split) == ("mnli", "test"):
        return OurValues(count, 10.0, "printed as a round number")
    note = "counts the neutral sentences, on which no model is trained" if line["dataset"] == "sst-2" else ""
    return OurValues(count, 0.0, note=note)


STUDY = Paper(
    "A Song of (Dis)agreement",
    published_rows,
    ours,
    chose_on="dev",
    data={"sst-2": {"leaves_over": 0, "tokens": "raw"}, "snli-cased": {"tokens": "cased"}},
    measures={("bilstm-song", "deep-shap-published"): {"mixed": "texts"}},
    models={"distilbert": FAULT, "distilbert-uniform": FAULT},
)
