"""The published numbers of AtteFa, Tables 1 to 5, and ours."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from plumbline.papers.paper import (
    LENGTH_TOLERANCE,
    OUR_MARGIN,
    PUBLISHED,
    SCORE_TOLERANCE,
    WHOLE_NUMBER,
    OurValues,
    Paper,
    StudyResults,
    sample_size,
)

# How the mock sets were generated, each and all.
MOCK = {f"mock-{n}": {"informative": n, "share": 0.0} for n in (1, 2, 5, 10)}
MOCK |= {f"mock-{n}q": {"informative": 0, "share": n / 4} for n in (1, 2, 3, 4)}
GENERATED = {"train": 8000, "test": 1000, "shortest": 50, "longest": 100, "words": "opinion-lexicon"}
GENERATED |= {"position": "any", "strength": "any"}

# The study's words for things, and the registered names here.
DATASETS = {"Mock-*": list(MOCK)} | {name.capitalize(): [name] for name in MOCK}
DATASETS |= {"SST": ["sst"], "IMDB": ["imdb"], "20News": ["20news-sports"], "AgNews": ["agnews"]}
DATASETS |= {"Diabetes": ["diabetes"], "Anemia": ["anemia"]}
MODELS = {"LSTM": "bilstm-tanh", "MLP": "average-tanh"}
NOTES = {"base_model": "the study's own base model", "reported_by_Wiegreffe_Pinter": "as Wiegreffe & Pinter report it"}
SCORES = {"epoch": "epoch", "adv_F1": "f1", "TVD": "tvd", "JSD": "jsd", "AtteFa": "attefa"}

# A mean over seeds may be three of its published standard deviations away, or this much where they are small.
LEAST_TOLERANCE = {"adv_F1": 0.03, "TVD": 0.015, "JSD": 0.015, "AtteFa": 0.03}


def published_rows() -> pd.DataFrame:
    """The study's tables in our words. Those of single seeds, 4 and 5, have a `seed`."""
    frame = pd.read_csv(PUBLISHED / "attefa.csv", dtype={"class": str})
    return frame.assign(
        dataset=frame["dataset"].map(DATASETS),
        model=frame["model"].map(MODELS),
        predicted_class=frame["class"],
        # Means say of how many seeds they are, in words.
        seed=pd.to_numeric(frame["seed"], errors="coerce").astype("Int64"),
        note=frame["note"].map(NOTES),
    ).explode("dataset", ignore_index=True)


def ours(line: pd.Series, dataset: str, model: str | None, ran: StudyResults) -> Iterator[OurValues]:
    """Our values of a published line; those of other data than published are not judged."""
    other = _other_data(line["dataset"], ran.names.dataset_options[dataset], ran.summary(dataset))
    for found in _ours(line, dataset, model, ran):
        yield replace(found, tolerance=None, note="; ".join(filter(None, [found.note, other]))) if other else found


def _ours(line: pd.Series, dataset: str, model: str | None, ran: StudyResults) -> Iterator[OurValues]:
    if model is None:
        yield _count(line, ran.summary(dataset))
        return
    attacks = _attacks(dataset, model, ran)
    if line["metric"] != "base_F1":
        yield from _adversaries(line, attacks)
    elif values := ran.scores(dataset, model, "f1", None if attacks.empty else attacks["base_seed"]):
        yield OurValues(values, SCORE_TOLERANCE, OUR_MARGIN)


def _other_data(kind: str, options: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """In what the data differ from the published ones by the study's own choice."""
    notes = []
    wanted = {**GENERATED, **MOCK[kind]} if kind in MOCK else {}
    if changed := [f"{name} {options[name]}" for name, value in sorted(wanted.items()) if options[name] != value]:
        notes.append(f"generated otherwise than published: {', '.join(changed)}")
    return "; ".join(filter(None, [*notes, sample_size(summary)]))


def _attacks(dataset: str, model: str, ran: StudyResults) -> pd.DataFrame:
    """The rows of the table `adversary` of the study's objective that are about a base model."""
    if ran.adversary is None:
        return pd.DataFrame()
    here = (ran.adversary["dataset"] == dataset) & (ran.adversary["model"] == model)
    return ran.adversary[here & (ran.adversary["objective"] == "attefa")]


def _adversaries(line: pd.Series, attacks: pd.DataFrame) -> Iterator[OurValues]:
    """Each adversary's scores, once for each way to choose its epoch; a single seed's as it was published alone."""
    if not attacks.empty and not pd.isna(line["seed"]):
        attacks = attacks[(attacks["seed"] == line["seed"]) & (attacks["selected_on"] == "test")]
    if attacks.empty:
        return
    several = attacks["adversary"].nunique() > 1
    for keys, group in attacks.groupby(["adversary", "selected_on"], observed=True):
        adversary, selected_on = map(str, keys)
        unjudged = _unjudged(line, selected_on)
        notes = [f"adversary '{adversary}'" if several else "", unjudged, _left_out(group)]
        values = group[group["status"] != "undefined"][SCORES[line["metric"]]].tolist()
        found = OurValues(values, note="; ".join(filter(None, notes)), selected_on=selected_on)
        if not unjudged:
            least = LEAST_TOLERANCE[line["metric"]]
            basis = f"tolerance: three published standard deviations, at least {least:g}"
            found = replace(found, tolerance=max(3 * line["std"], least), basis=basis)
        yield found


def _unjudged(line: pd.Series, selected_on: str) -> str:
    """Why a score of adversaries is not judged, if so."""
    if not pd.isna(line["seed"]):
        return "one seed, not judged: a seed's draws differ between programs"
    if selected_on != "test":
        return f"a clean choice of the epoch, on {selected_on}, and so not judged"
    judged = line["metric"] in LEAST_TOLERANCE
    return "" if judged else "not judged: epochs depend on the order of batches"


def _left_out(group: pd.DataFrame) -> str:
    failed = group[group["status"] == "undefined"]
    reasons = ", ".join(sorted(set(failed["reason"].dropna())))
    return "" if failed.empty else f"{len(failed)} of {len(group)} seeds left out: {reasons}"


def _count(line: pd.Series, summary: Mapping[str, Any]) -> OurValues:
    """Counts are of the texts before the length filter, and dev is not among them."""
    split, _, what = line["metric"].partition("_")
    counts = summary["splits"][split]
    if what == "avg_length":
        if counts["texts"] == counts["instances"]:
            return OurValues([float(counts["mean_length"])], LENGTH_TOLERANCE, WHOLE_NUMBER)
        return OurValues([float(counts["mean_length"])], note="not comparable: ours is of the texts that filters left")
    note = "the published splits were drawn without the empty posts" if line["dataset"] == "20news-sports" else ""
    class_ = summary["classes"][int(line["predicted_class"])]
    return OurValues([float(counts["texts_per_class"][class_])], 0.0, note=note)


STUDY = Paper("AtteFa", published_rows, ours, data={"sst": {"leaves_over": 0, "tokens": "cleaned"}})
