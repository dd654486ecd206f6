"""Published numbers of AtteFa (Amini & Kosseim 2022), Tables 1 to 5, and our values for them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from plumbline.papers.paper import (
    LENGTH_TOLERANCE,
    NOT_JUDGED,
    OUR_MARGIN,
    PUBLISHED,
    SCORE_TOLERANCE,
    WHOLE_NUMBER,
    OurValues,
    Paper,
    StudyResults,
    rows_with,
    sample_size,
)

# Options that generated each mock set, and those common to all.
MOCK = {f"mock-{n}": {"informative": n, "share": 0.0} for n in (1, 2, 5, 10)}
MOCK |= {f"mock-{n}q": {"informative": 0, "share": n / 4} for n in (1, 2, 3, 4)}
GENERATED = {"train": 8000, "test": 1000, "shortest": 50, "longest": 100, "words": "opinion-lexicon"}
GENERATED |= {"position": "any", "strength": "any"}

# The paper's names and the registered ones.
DATASETS = {"Mock-*": list(MOCK)} | {name.capitalize(): [name] for name in MOCK}
DATASETS |= {"SST": ["sst"], "IMDB": ["imdb"], "20News": ["20news-sports"], "AgNews": ["agnews"]}
DATASETS |= {"Diabetes": ["diabetes"], "Anemia": ["anemia"]}
MODELS = {"LSTM": "bilstm-tanh", "MLP": "average-tanh"}
NOTES = {"base_model": "the paper's own base model", "reported_by_Wiegreffe_Pinter": "as Wiegreffe & Pinter report it"}
SCORES = {"epoch": "epoch", "adv_F1": "f1", "TVD": "tvd", "JSD": "jsd", "AtteFa": "attefa"}

# A mean over seeds may differ by three published standard deviations, or by this much where they are small.
LEAST_TOLERANCE = {"adv_F1": 0.03, "TVD": 0.015, "JSD": 0.015, "AtteFa": 0.03}


def published_rows() -> pd.DataFrame:
    """The paper's tables under registered names. Rows of single seeds (Tables 4 and 5) have a `seed`."""
    frame = pd.read_csv(PUBLISHED / "attefa.csv", dtype={"class": str})
    return frame.assign(
        dataset=frame["dataset"].map(DATASETS),
        model=frame["model"].map(MODELS),
        predicted_class=frame["class"],
        # For means the column holds the number of seeds, in words.
        seed=pd.to_numeric(frame["seed"], errors="coerce").astype("Int64"),
        note=frame["note"].map(NOTES),
    ).explode("dataset", ignore_index=True)


def our_values(row: pd.Series, dataset: str, model: str | None, results: StudyResults) -> Iterator[OurValues]:
    """Our values for a published number."""
    if model is None:
        yield _count(row, results.summary(dataset))
        return
    attacks = pd.DataFrame()
    if results.adversary is not None:
        attacks = rows_with(results.adversary, dataset=dataset, model=model, objective="attefa")
    if row["metric"] != "base_F1":
        yield from _adversaries(row, attacks)
    elif values := results.scores(dataset, model, "f1", None if attacks.empty else attacks["base_seed"]):
        yield OurValues(values, SCORE_TOLERANCE, OUR_MARGIN)


def data_difference(row: pd.Series, dataset: str, model: str | None, results: StudyResults) -> Iterator[str]:
    """How the config makes the data differ from the published ones."""
    options, kind = results.names.dataset_options[dataset], row["dataset"]
    published = {**GENERATED, **MOCK[kind]} if kind in MOCK else {}
    changed = [f"{name} {options[name]}" for name, value in sorted(published.items()) if options[name] != value]
    if changed:
        yield f"generated with other options than published: {', '.join(changed)}"
    yield sample_size(results.summary(dataset))


def _adversaries(row: pd.Series, attacks: pd.DataFrame) -> Iterator[OurValues]:
    """Each adversary's scores, per split that selects the epoch; of a single seed only those selected as published."""
    if not attacks.empty and not pd.isna(row["seed"]):
        attacks = attacks[(attacks["seed"] == row["seed"]) & (attacks["selected_on"] == "test")]
    if attacks.empty:
        return
    several = attacks["adversary"].nunique() > 1
    for keys, group in attacks.groupby(["adversary", "selected_on"], observed=True):
        adversary, selected_on = map(str, keys)
        unjudged = _unjudged(row, selected_on)
        notes = [f"adversary '{adversary}'" if several else "", unjudged, _left_out(group)]
        values = group[group["status"] != "undefined"][SCORES[row["metric"]]].tolist()
        ours = OurValues(values, note="; ".join(filter(None, notes)), selected_on=selected_on)
        if not unjudged:
            least = LEAST_TOLERANCE[row["metric"]]
            basis = f"tolerance: three published standard deviations, at least {least:g}"
            ours = replace(ours, tolerance=max(3 * row["std"], least), basis=basis)
        yield ours


def _unjudged(row: pd.Series, selected_on: str) -> str:
    """The reason why an adversary's score is not judged; empty if it is."""
    if not pd.isna(row["seed"]):
        return "not judged: a single seed, whose random numbers differ between programs"
    if selected_on != "test":
        return f"the epoch is selected on {selected_on}, without test data, {NOT_JUDGED}"
    return "" if row["metric"] in LEAST_TOLERANCE else "not judged: epochs depend on the order of batches"


def _left_out(group: pd.DataFrame) -> str:
    failed = group[group["status"] == "undefined"]
    reasons = ", ".join(sorted(set(failed["reason"].dropna())))
    return "" if failed.empty else f"{len(failed)} of {len(group)} seeds left out: {reasons}"


def _count(row: pd.Series, summary: Mapping[str, Any]) -> OurValues:
    """Published counts precede the length filter, and there are none for dev."""
    split, _, what = row["metric"].partition("_")
    counts = summary["splits"][split]
    if what == "avg_length":
        if counts["texts"] == counts["instances"]:
            return OurValues([float(counts["mean_length"])], LENGTH_TOLERANCE, WHOLE_NUMBER)
        return OurValues([float(counts["mean_length"])], note="not comparable: ours is the mean after filters")
    note = "the published splits were drawn without the empty posts" if row["dataset"] == "20news-sports" else ""
    class_ = summary["classes"][int(row["predicted_class"])]
    return OurValues([float(counts["texts_per_class"][class_])], 0.0, note=note)


PUBLISHED_DATA = {"sst": {"leaves_over": 0, "tokens": "cleaned"}}
PAPER = Paper("AtteFa", published_rows, our_values, data_difference, data=PUBLISHED_DATA)
