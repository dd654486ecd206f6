"""The published tables of A Song of (Dis)agreement and ours; agreement pooled over seeds."""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

from plumbline.papers.paper import PUBLISHED, Names, StudyResults
from plumbline.papers.reproduction import reproduction
from plumbline.papers.song import ANOTHER, CORRECTED, FAULTY, published_rows
from plumbline.protocols.agreement.latex import latex_matrices
from plumbline.protocols.agreement.schemas import AGREEMENT
from plumbline.protocols.agreement.selections import fewest_tokens, overall_taus, pool_seeds, triangles
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.registry import Registry
from plumbline.tables.export import latex

DATASETS = {"sst-2", "imdb-240", "mnli", "snli-cased", "quora"}
# The study's own measures, as the BiLSTM for pairs has them, and the correct ones.
PUBLISHED_FORMS = ["attention", "lime-published", "integrated-gradient-pad", "grad-x-diff", "grad-shap"]
PUBLISHED_FORMS += ["deep-shap-published"]
MEASURES = [*PUBLISHED_FORMS, "lime", "deep-lift", "deep-shap", "rollout", "attention-flow"]
SEEDS = (87, 2134, 5555)
OPTIONS = {"sst-2": {"leaves_over": 0, "tokens": "raw"}, "snli-cased": {"tokens": "cased"}}


def agreed(
    values: dict[tuple[str, str], float], tokens: str = "texts", step: float = 0.02, **more: Any
) -> pd.DataFrame:
    """Rows of the table `agreement`: the value of each pair for each seed, moved by -1, 0 and 1 steps."""
    rows = [
        {"dataset": "mine", "variant": "plain", "model": "net", "seed": seed, "measure_a": a, "measure_b": b}
        | {"statistic": "kendall", "tokens": tokens, "predicted_class": "all", "n": 500, "dropped": 0}
        | {"mean": value + step * (index - 1), "std": 0.15, "status": "ok"}
        | more
        for (a, b), value in values.items()
        for index, seed in enumerate(SEEDS)
    ]
    return pd.DataFrame(rows, columns=AGREEMENT.schema.names)


def table(
    agreement: pd.DataFrame | None = None,
    kind: str = "snli-cased",
    model: str = "bilstm-shared",
    scores: dict[str, list[float]] | None = None,
    measures: dict[str, str] | None = None,
    texts: dict[str, int] | None = None,
    dropped: dict[str, dict[str, int]] | None = None,
    training: pd.DataFrame | None = None,
    options: dict[str, Any] | None = None,
    **more: Any,
) -> pd.DataFrame:
    """The reproduction of this paper by a study with one dataset and model; `more` are fields of its names."""
    counts = texts or {"train": 100, "dev": 10, "test": 20}
    splits = {
        split: {"texts": n, "instances": n, "mean_length": 9.0, "texts_per_class": {}, "instances_per_class": {}}
        for split, n in counts.items()
    }
    summary = {"dataset": "mine", "classes": [], "vocabulary_size": 9, "partial": {}}
    summary |= {"dropped": dropped or {}, "splits": splits}
    performance = [
        {"dataset": "mine", "variant": "plain", "model": "net", "seed": seed, "split": split}
        | {"metric": "accuracy", "value": value}
        for split, values in (scores or {}).items()
        for seed, value in zip(SEEDS, values, strict=False)
    ]
    names = Names(
        {"mine": kind},
        {"net": model},
        measures or {measure: measure for measure in MEASURES},
        {"mine": OPTIONS.get(kind, {}) | (options or {})},
        **more,
    )
    rows = reproduction(
        StudyResults(
            names,
            [summary],
            {"mine": {"net": "dev"}},
            pd.DataFrame(performance, columns=PERFORMANCE.schema.names),
            agreement,
            training=training,
        )
    )
    return rows[rows["study"] == "A Song of (Dis)agreement"]


def only(rows: pd.DataFrame, metric: str, *pair: str) -> pd.Series:
    """The only row of this kind."""
    here = rows["metric"] == metric
    if pair:
        here &= rows["measure_a"].isin(pair) & rows["measure_b"].isin(pair)
    (index,) = rows[here].index
    return rows.loc[index]


# Published numbers.


def test_the_first_two_tables_are_the_fifth_and_sixth_without_spread():
    frame = pd.read_csv(PUBLISHED / "song_of_disagreement.csv")
    keys = ["dataset", "model", "method_a", "method_b"]
    for short, long in (("T1", "T5"), ("T2", "T6")):
        ours, theirs = (frame[frame["table"] == name].set_index(keys) for name in (short, long))
        assert len(ours) == len(theirs) == 75
        assert ours["value"].equals(theirs["value"]) and ours["std"].isna().all() and theirs["std"].notna().all()
    rows = published_rows()
    assert set(rows["table"]) == {"T1", "T2", "T3", "T4", "T7", "T8", "T9"}
    assert rows[rows["table"].isin(["T1", "T2"])]["std"].notna().all()


def test_every_name_is_registered():
    rows, registry = published_rows(), Registry()
    assert set(rows["dataset"]) == DATASETS <= set(registry.names("dataset"))
    assert set(rows["model"].dropna()) <= set(registry.names("model"))
    assert {*rows["measure_a"].dropna(), *rows["measure_b"].dropna()} == set(MEASURES) <= set(registry.names("measure"))


def test_cells_by_hand():
    rows = published_rows().set_index(["table", "dataset", "model", "measure_a", "measure_b"])["value"]
    assert rows["T1", "sst-2", "distilbert", "rollout", "lime"] == 0.1359
    assert rows["T1", "quora", "minilm-song", "lime", "grad-x-diff"] == 0.0032
    assert rows["T2", "imdb-240", "bilstm-song", "integrated-gradient-pad", "grad-shap"] == 0.9409
    assert rows["T2", "snli-cased", "bilstm-shared", "lime-published", "integrated-gradient-pad"] == 0.2673
    assert rows["T2", "mnli", "bilstm-shared", "grad-x-diff", "deep-shap-published"] == 0.6208
    assert rows["T2", "mnli", "bilstm-shared", "deep-lift", "deep-shap"] == 0.6208
    assert rows["T4", "snli-cased", "distilbert", "attention-flow", "deep-shap-published"] == 0.2149


@pytest.mark.parametrize(
    ("table", "dataset", "model", "expected"),
    [
        # 15 pairs as published; 9 of them have DeepLIFT or Deep-SHAP, and so a correct form too.
        ("T2", "sst-2", "bilstm-song", 15 + 9),
        # In pairs LIME has two forms as well: only the three pairs of the other measures have one.
        ("T2", "quora", "bilstm-shared", 15 + 12),
        ("T1", "mnli", "distilbert", 15 + 9),
        ("T1", "mnli", "minilm-song", 15 + 9),
        ("T4", "mnli", "distilbert", 5 + 2),
        ("T4", "imdb-240", "distilbert", 0),
    ],
)
def test_every_pair_has_one_published_and_one_corrected_row(table, dataset, model, expected):
    rows = published_rows()
    here = rows[(rows["table"] == table) & (rows["dataset"] == dataset) & (rows["model"] == model)]
    assert len(here) == expected and not here.duplicated(["measure_a", "measure_b"]).any()
    corrected = here[here["corrected"].notna()]
    right = {"deep-lift", "deep-shap", *(["lime"] if model == "bilstm-shared" else [])}
    assert all({line.measure_a, line.measure_b} & right for line in corrected.itertuples())
    assert not {*here[here["corrected"].isna()]["measure_a"], *here[here["corrected"].isna()]["measure_b"]} & right


def test_accuracies_of_softmax_and_uniform_attention():
    rows = published_rows().query("table == 'T3'").set_index(["dataset", "model"])[["value", "std"]]
    assert rows.loc[("sst-2", "bilstm-song-uniform")].tolist() == [0.823, 0.008]
    assert rows.loc[("quora", "bilstm-shared")].tolist() == [0.83, 0.001]
    assert rows.loc[("mnli", "distilbert-uniform")].tolist() == rows.loc[("mnli", "minilm-song-uniform")].tolist()
    validation = published_rows().query("table == 'T9'").set_index(["dataset", "model"])
    assert validation.loc[("imdb-240", "bilstm-song"), "value"] == pytest.approx(0.87975)
    assert validation.loc[("imdb-240", "bilstm-song"), "std"] == pytest.approx(0.01375)


# Ours. Published for the BiLSTM on SNLI: attention and integrated gradients 0.2566 ± 0.1748.

PAIR = ("attention", "integrated-gradient-pad")


def test_means_are_judged_by_three_standard_errors_of_their_seeds():
    row = only(table(agreed({PAIR: 0.30})), "kendall_tau", *PAIR)
    assert row[["published", "published_spread"]].tolist() == [0.2566, 0.1748]
    assert row["ours"] == pytest.approx(0.30) and row["n_seeds"] == 3
    assert row["ours_spread"] == pytest.approx(0.02 * np.sqrt(2 / 3))
    # Seeds at 0.28, 0.30 and 0.32 have the variance 0.02²; both means are of three.
    assert row["tolerance"] == pytest.approx(3 * 0.02 * np.sqrt(2 / 3))
    assert row["within"] and "3 standard errors" in row["note"] and "over texts, ours over seeds" in row["note"]
    beyond = only(table(agreed({PAIR: 0.31})), "kendall_tau", *PAIR)
    assert beyond["within"] is not None and not beyond["within"]


def test_seeds_that_agree_are_judged_by_the_spread_over_texts():
    row = only(table(agreed({PAIR: 0.26}, step=0.0)), "kendall_tau", *PAIR)
    spread = 0.15**2 * 1500 / 1499
    assert row["tolerance"] == pytest.approx(3 * np.sqrt(0.1748**2 / 1500 + spread / 1500)) and row["within"]


def test_one_seed_is_shown_but_not_judged():
    row = only(table(agreed({PAIR: 0.26})[:1]), "kendall_tau", *PAIR)
    assert row["ours"] == pytest.approx(0.24) and row["within"] is None and "no spread over seeds" in row["note"]


def test_the_order_of_a_pair_and_the_names_of_entries_do_not_matter():
    frame = agreed({("ig", "att"): 0.3})
    rows = table(frame, measures={"att": "attention", "ig": "integrated-gradient-pad"})
    assert only(rows, "kendall_tau", *PAIR)["ours"] == pytest.approx(0.3)


def test_corrected_measures_are_compared_and_not_judged():
    everything = {pair: 0.2 for pair in combinations(MEASURES[:-2], 2)}
    rows = table(agreed(everything)).query("metric == 'kendall_tau'")
    assert len(rows) == 15 + 12
    right = rows["measure_a"].isin(CORRECTED) | rows["measure_b"].isin(CORRECTED)
    assert rows[~right]["within"].notna().all() and rows[right]["within"].isna().all()
    note = only(rows, "kendall_tau", "lime", "deep-lift")["note"]
    assert CORRECTED["lime"] in note and CORRECTED["deep-lift"] in note and "not judged" in note


def test_lime_of_single_texts_is_the_published_one():
    row = only(table(agreed({("attention", "lime"): 0.13}), "sst-2", "bilstm-song"), "kendall_tau", "attention", "lime")
    assert row["published"] == 0.1326 and row["within"]


@pytest.mark.parametrize(
    ("kind", "model", "tokens", "judged"),
    [
        ("snli-cased", "bilstm-shared", "texts", True),
        ("snli-cased", "bilstm-shared", "text", False),
        ("snli-cased", "bilstm-shared", "all", False),
        ("sst-2", "bilstm-song", "texts", True),
        ("sst-2", "bilstm-song", "text", True),
        ("sst-2", "bilstm-song", "all", False),
    ],
)
def test_the_published_tokens_are_judged(kind, model, tokens, judged):
    row = only(table(agreed({PAIR: 0.2}, tokens), kind, model), "kendall_tau", *PAIR)
    assert (row["within"] is not None) == judged
    assert ("ranks other tokens than published (`texts`)" in row["note"]) != judged


def test_of_several_sets_of_tokens_the_published_one_is_compared():
    both = pd.concat([agreed({PAIR: 0.9}, "all"), agreed({PAIR: 0.2}, "texts"), agreed({PAIR: 0.7}, "text")])
    assert only(table(both), "kendall_tau", *PAIR)["ours"] == pytest.approx(0.2)
    pair = ("rollout", "lime")
    both = pd.concat([agreed({pair: 0.9}, "all"), agreed({pair: 0.2}, "texts")])
    row = only(table(both, "sst-2", "distilbert"), "kendall_tau", *pair)
    assert row["ours"] == pytest.approx(0.9) and "other tokens" not in row["note"]


def test_other_rows_of_the_table_are_not_taken():
    others = [{"predicted_class": "1"}, {"statistic": "spearman"}, {"dataset": "other"}, {"model": "other"}]
    others += [{"n": 0, "mean": np.nan}]
    frame = pd.concat([agreed({PAIR: 0.9}, **other) for other in others])
    assert not (table(frame)["metric"] == "kendall_tau").any()
    assert not (table()["metric"] == "kendall_tau").any()


def test_numbers_of_the_faulty_model_and_of_another_are_not_judged():
    pair = ("rollout", "lime")
    scores = {"test": [0.84, 0.85, 0.83], "dev": [0.83, 0.83, 0.84]}
    for model, note in (("distilbert", FAULTY), ("minilm-song", ANOTHER)):
        rows = table(agreed({pair: 0.1359}, "all"), "sst-2", model, scores)
        rows = rows[rows["model"].notna()]
        assert sorted(rows["metric"]) == ["kendall_tau", "test_accuracy", "validation_accuracy"]
        assert rows["within"].isna().all() and rows["note"].str.contains(note, regex=False).all()
    uniform = table(None, "sst-2", "distilbert-uniform", scores)
    assert FAULTY in only(uniform, "test_accuracy")["note"]


def test_a_model_with_the_published_fault_is_judged():
    scores = {"test": [0.84, 0.85, 0.83], "dev": [0.83, 0.83, 0.84]}
    fault = {"model_options": {"net": {"after_attention": "untransposed"}}}
    rows = table(agreed({("rollout", "lime"): 0.1359}, "all"), "sst-2", "distilbert", scores, **fault)
    rows = rows[rows["model"].notna()]
    assert rows["within"].notna().all() and not rows["note"].str.contains("other than published").any()
    other = {"model_options": {"net": {**fault["model_options"]["net"], "dropout": 0.5}}}
    rows = table(None, "sst-2", "distilbert", scores, **other)
    assert "dropout 0.5" in only(rows, "test_accuracy")["note"] and only(rows, "test_accuracy")["within"] is None


def test_accuracies_are_judged_by_three_standard_deviations_or_three_points():
    scores = {"test": [0.80, 0.81, 0.82], "dev": [0.79, 0.80, 0.81]}
    rows = table(None, "sst-2", "bilstm-song", scores)
    test, validation = only(rows, "test_accuracy"), only(rows, "validation_accuracy")
    assert (test["published"], test["ours"], test["within"]) == (0.826, pytest.approx(0.81), True)
    assert test["tolerance"] == pytest.approx(0.033) and validation["tolerance"] == 0.03
    assert (validation["published"], validation["ours"]) == pytest.approx((0.80696, 0.80))
    uniform = only(table(None, "sst-2", "bilstm-song-uniform", scores), "test_accuracy")
    assert uniform["published"] == 0.823 and uniform["tolerance"] == 0.03
    assert (
        "three outputs for two classes" in only(table(None, "quora", "bilstm-shared", scores), "test_accuracy")["note"]
    )


def test_minutes_are_shared_among_the_seeds_and_not_judged():
    cost = {"rule": "train", "dataset": "mine", "variant": "plain", "model": "net"}
    jobs = [{"seeds": "87,2134", "seconds": 240.0}, {"seeds": "5555", "seconds": 120.0}]
    jobs += [{"seeds": "5555", "seconds": np.nan, "event": "halved"}, {"model": "other", "seconds": 9e9}]
    training = pd.DataFrame([cost | job for job in jobs])
    scores = {"test": [0.8, 0.8, 0.8]}
    row = only(table(None, "sst-2", "bilstm-song", scores, training=training), "train_minutes")
    assert (row["published"], row["ours"], row["n_seeds"]) == (0.216, pytest.approx(2.0), 3)
    assert row["within"] is None and "another machine" in row["note"]
    assert not (table(None, "sst-2", "bilstm-song", scores)["metric"] == "train_minutes").any()


@pytest.mark.parametrize(
    ("kind", "texts", "dropped"),
    [
        ("sst-2", {"train": 6920, "dev": 872, "test": 1821}, {"neutral": {"train": 1624, "dev": 229, "test": 389}}),
        (
            "snli-cased",
            {"train": 549_367, "dev": 9842, "test": 9824},
            {"no agreed label": {"train": 785, "dev": 158, "test": 176}},
        ),
        ("imdb-240", {"train": 17_212, "dev": 4304, "test": 4363}, {"length filter": {"test": 881}}),
        ("mnli", {"train": 392_702, "dev": 9815, "test": 5010}, {"no agreed label": {"dev": 185}}),
    ],
)
def test_sizes_are_those_before_texts_were_left_out(kind, texts, dropped):
    rows = table(kind=kind, texts=texts, dropped=dropped)
    assert rows["metric"].tolist() == ["train_size", "validation_size", "test_size"] and rows["within"].all()
    fewer = table(kind=kind, texts={**texts, "train": texts["train"] - 1}, dropped=dropped)
    assert fewer["within"].tolist() == [False, True, True]


def test_sizes_of_splits_that_are_drawn_are_not_judged():
    rows = table(kind="quora", texts={"train": 323_432, "dev": 40_429, "test": 40_429})
    assert rows["within"].isna().all() and rows["ours"].tolist() == [323_432, 40_429, 40_429]


def test_other_data_models_and_samples_are_not_judged():
    scores = {"test": [0.8, 0.81, 0.82]}
    frame = agreed({PAIR: 0.1})
    for more, note in (
        ({"options": {"tokens": "cleaned"}}, "data other than published, and so not judged: tokens cleaned"),
        ({"model_options": {"net": {"hidden": 8}}}, "a model other than published, and so not judged: hidden 8"),
        ({"dropped": {"limit": {"train": 50}}}, "a sample: 100 of 150 in train"),
    ):
        rows = table(frame, "sst-2", "bilstm-song", scores, **more)
        rows = rows[rows["model"].notna()]
        assert len(rows) == 2 and rows["within"].isna().all() and rows["note"].str.contains(note).all()


# Deep-SHAP as published has other options for single texts than for pairs.

SHAP = ("attention", "deep-shap-published")


@pytest.mark.parametrize(
    ("kind", "model", "options", "note"),
    [
        ("sst-2", "bilstm-song", {"mixed": "texts"}, ""),
        ("sst-2", "bilstm-song", {}, "mixed not texts"),
        ("sst-2", "bilstm-song", {"mixed": "texts", "samples": 9}, "samples 9"),
        ("snli-cased", "bilstm-shared", {}, ""),
        ("snli-cased", "bilstm-shared", {"mixed": "texts"}, "mixed texts"),
    ],
)
def test_options_are_those_that_the_model_was_published_with(kind, model, options, note):
    rows = table(agreed({SHAP: 0.2}), kind, model, measure_options={"deep-shap-published": options})
    row = only(rows, "kendall_tau", *SHAP)
    assert (row["within"] is None) == bool(note) and note in row["note"]


def test_of_two_entries_of_a_measure_the_one_that_explains_the_model_counts():
    measures = {"attention": "attention", "shap": "deep-shap-published", "shap-texts": "deep-shap-published"}
    changed = {"shap-texts": {"mixed": "texts"}}
    frame = agreed({("attention", "shap-texts"): 0.14})
    rows = table(frame, "sst-2", "bilstm-song", measures=measures, measure_options=changed)
    row = only(rows, "kendall_tau", *SHAP)
    assert row["ours"] == pytest.approx(0.14) and row["within"]
    # The other entry, if it explains the model too, comes first.
    frame = pd.concat([frame, agreed({("attention", "shap"): 0.9})])
    row = only(table(frame, "sst-2", "bilstm-song", measures=measures, measure_options=changed), "kendall_tau", *SHAP)
    assert row["ours"] == pytest.approx(0.9) and "mixed not texts" in row["note"]


# Pooled over seeds.


def test_pooled_texts_of_all_seeds_have_the_mean_and_spread_of_one_list():
    rng = np.random.default_rng(0)
    lists = [rng.normal(index, 1 + index, size) for index, size in enumerate((40, 60, 50))]
    rows = [{"key": "a", "n": len(taus), "mean": taus.mean(), "std": taus.std()} for taus in lists]
    rows.append({"key": "a", "n": 0, "mean": np.nan, "std": np.nan})
    found = pool_seeds(pd.DataFrame(rows), ["key"]).loc["a"]
    together = np.concatenate(lists)
    assert found["n"] == 150
    assert (found["mean"], found["std"]) == pytest.approx((together.mean(), together.std(ddof=1)))


def test_a_single_text_has_no_spread_and_equal_ones_have_zero_spread():
    rows = pd.DataFrame({"key": ["a", "b", "b"], "n": [1, 2, 2], "mean": [0.3, 0.1, 0.1], "std": [0.0, 0.0, 0.0]})
    std = pool_seeds(rows, ["key"])["std"]
    assert np.isnan(std["a"]) and std["b"] == pytest.approx(0, abs=1e-8)


def test_triangles_hold_each_pair_once_in_either_order():
    frame = agreed({("b", "a"): 0.1, ("a", "c"): -0.3})
    mean, std = triangles(overall_taus(frame), ["a", "b", "c"])
    assert mean.index.tolist() == ["b", "c"] and mean.columns.tolist() == ["a", "b"]
    assert (mean.loc["b", "a"], mean.loc["c", "a"]) == pytest.approx((0.1, -0.3))
    assert np.isnan(mean.loc["b", "b"]) and np.isnan(mean.loc["c", "b"])
    assert std.notna().equals(mean.notna())


def test_the_fewest_tokens_that_were_ranked():
    frame = pd.concat([agreed({PAIR: 0.1}, tokens) for tokens in ("all", "texts")])
    assert set(fewest_tokens(frame)["tokens"]) == {"texts"} and fewest_tokens(frame[:0]).empty


# LaTeX.


def test_matrices_as_latex_have_a_table_for_each_model_and_set_of_tokens():
    pairs = {("attention", "a_b"): 0.96, ("attention", "lime"): -0.004, ("lime", "a_b"): -0.5}
    frame = pd.concat(
        [
            agreed(pairs, dataset=dataset, tokens=tokens, step=0.0)
            for dataset in ("quora", "snli")
            for tokens in ("texts", "all")
        ]
    )
    text = latex_matrices(frame, ["attention", "lime", "a_b", "absent"])
    assert text.count(r"\begin{tabular}{llrr}") == 2 and "absent" not in text
    first, second = text.split(r"\begin{tabular}")[1:]
    assert "% net, all tokens" in text and "% net, all words" in first + text.split(r"\begin{tabular}")[0]
    for part in (first, second):
        lines = part[part.index(r"\toprule") :].splitlines()
        assert lines[1] == r" &  & attention & lime \\"
        assert lines[3].startswith("quora & lime & ") and lines[4].startswith(r" & a\_b & ")
        assert lines[5] == r"\midrule" and lines[6].startswith("snli & lime") and lines[8] == r"\bottomrule"
        # No sign on zero, and white letters on dark grounds.
        assert "0.00" in lines[3] and "-0.00" not in part
        assert lines[4].count(r"\color{white}") == 1 and r"\color{white} 0.96" in lines[4]
    assert r"{\cellcolor[HTML]{91B4DE}} -0.50" in text


def test_an_opposite_pair_is_as_blue_as_an_alike_one_is_red():
    pairs = {("a", "b"): 1.0, ("a", "c"): -1.0, ("b", "c"): 0.0}
    text = latex_matrices(agreed(pairs, step=0.0), ["a", "b", "c"])
    assert "A9373B" in text and "2369BD" in text and "FFFFFF" in text


def test_means_of_several_sets_of_tokens_are_not_mixed_in_latex():
    frame = pd.concat([agreed({PAIR: 0.1}, "texts", step=0.0), agreed({PAIR: 0.5}, "all", step=0.0)])
    text = latex(AGREEMENT, frame)
    assert "& all & attention & integrated-gradient-pad & 0.50" in text
    assert "& texts & attention & integrated-gradient-pad & 0.10" in text
