"""The report's tables from small handmade ones: the text of each cell."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plumbline.figures.style import save
from plumbline.papers import comparison as published
from plumbline.papers import quirks_page as quirks
from plumbline.protocols.adversary import page as adversary
from plumbline.protocols.agreement import page as agreement
from plumbline.protocols.agreement.differences import mean_differences
from plumbline.protocols.agreement.schemas import AGREEMENT
from plumbline.protocols.attention import page as counterfactual
from plumbline.protocols.attention.bins import BINS
from plumbline.protocols.erasure import page as erasure
from plumbline.protocols.ground_truth.page import rationales_overview, truth_overview
from plumbline.protocols.overview import about
from plumbline.protocols.roar import page as roar
from plumbline.protocols.scorecard import page as scorecard
from plumbline.registry import Registry
from plumbline.report import tables
from plumbline.report.inputs import read_figures, read_tables
from plumbline.store import write_table
from plumbline.tables.chance import COLLAPSED
from tests.reports import (
    CELL,
    CLASSES,
    SVG,
    adversarial_frame,
    adversary_frame,
    agreement_frame,
    erasure_frame,
    faithfulness_frame,
    meta_frame,
    performance_frame,
    permutation_frame,
    quirks_frame,
    rationales_frame,
    reproduction_frame,
    roar_frame,
    scorecard_frame,
    seed_variance_frame,
    summary,
    table,
    timings_frame,
    truth_frame,
)
from tests.unit.protocols.agreement.test_figures import taus


def texts(cells: list[tables.TableCell]) -> list[str]:
    return [cell.text for cell in cells]


def test_reproduction_marks_what_is_within_and_what_is_not() -> None:
    shown = published.reproduction_overview(reproduction_frame(), {"sst": CLASSES})
    rows = [dict(zip(shown.columns, row, strict=True)) for row in shown.rows]
    assert [row["verdict"].mark for row in rows] == ["good", "bad", "faint"]
    assert [row["about"].text for row in rows] == ["results", "results", "data"]
    assert rows[0]["quantity"].text == "mean τ, attention and gradient" and rows[0]["class"].text == CLASSES[1]
    assert (rows[0]["ours"].text, rows[0]["difference"].text) == ("0.30 ± 0.10", "−0.100")
    # A tenth below by a tolerance of .11; far above is put at the end of the axis.
    assert rows[0]["difference"].at == pytest.approx(0.5 - 0.1 / 0.11 / 6) and rows[1]["difference"].at == 1.0
    assert rows[2]["published"].text == "13\u202f686" and rows[2]["ours"].text == "–"


def test_what_the_authors_published_later_is_a_column_if_there_is_any() -> None:
    shown = published.reproduction_overview(reproduction_frame(), {})
    assert "later run" not in shown.columns and "later run" not in shown.caption
    later = published.reproduction_overview(reproduction_frame().assign(published_later=[0.35, None, None]), {})
    assert [row[later.columns.index("later run")].text for row in later.rows] == ["0.35", "–", "–"]
    assert later.columns.index("later run") in later.numbers and "later run" in later.caption
    nothing = published.reproduction_overview(reproduction_frame().iloc[:0], {})
    assert nothing.rows == []


def two_studies() -> pd.DataFrame:
    line = {"study": "AtteFa", "table": "T3", "dataset": "sst", "model": "bilstm-tanh", "metric": "AtteFa"}
    line |= {"published": 0.0764, "published_spread": 0.01, "ours": 0.08, "ours_spread": 0.02, "n_seeds": 9}
    rows = [line | {"selected_on": "test", "tolerance": 0.03, "within": True}, line | {"selected_on": "dev"}]
    rows += [line | {"table": "T5", "seed": seed, "selected_on": "test"} for seed in (10, 90754789)]
    size = {"metric": "train_size", "published": 4000.0, "published_spread": None, "tolerance": 0.0, "within": True}
    rows += [line | size, line | size | {"metric": "test_avg_length", "within": False}]
    return pd.concat([reproduction_frame(), table("reproduction", rows).to_pandas()], ignore_index=True)


def test_reproduction_keeps_two_studies_apart_and_leaves_single_seeds_out() -> None:
    shown = published.reproduction_overview(two_studies(), {"sst": CLASSES})
    assert shown.columns[min(shown.numbers)] == "published" and shown.columns[max(shown.numbers)] == "tolerance"
    assert texts([row[0] for row in shown.rows]) == ["J&W"] * 3 + ["AtteFa"] * 4
    assert texts([row[4] for row in shown.rows[3:5]]) == ["AtteFa, selected on test", "AtteFa, selected on dev"]
    assert shown.rows[3][6].text == "0.076 ± 0.010" and "2 numbers of single seeds" in shown.caption


def test_intervals_are_shown_where_there_is_no_spread() -> None:
    frame = reproduction_frame().assign(published_low=0.3, published_high=0.5)
    assert published.reproduction_overview(frame, {}).rows[0][6].text == "0.40 [0.30, 0.50]"


def test_sizes_of_datasets_are_no_results() -> None:
    assert published.verdict(two_studies()) == (
        "Published results: 2 of 3 within tolerance, 1 not judged. "
        "Published sizes of datasets: 1 of 2 within tolerance, 1 not judged."
    )
    assert [texts(row) for row in published.paper_overview(two_studies()).rows] == [
        ["J&W", "2", "1", "50 %", "0", "–"],
        ["AtteFa", "1", "1", "100 %", "1", "1 of 2"],
    ]
    unjudged = reproduction_frame().assign(within=None)
    (row,) = published.paper_overview(unjudged).rows
    assert texts(row) == ["J&W", "0", "0", "–", "2", "–"] and row[3].tint is None


def test_quirks_are_shown_with_and_without() -> None:
    known, lost = quirks.quirks_overview(quirks_frame()).rows
    assert texts(known) == ["<u>padding</u>", "AtteFa", "Table 3", "It counts.", "a", "b", "numbers: 2"]
    assert (lost[6].text, lost[6].mark) == ("The study has <neither>.", "faint")
    rows = quirks.quirk_numbers_overview(quirks_frame()).rows
    assert [texts(row[4:]) for row in rows] == [
        ["TVD of outputs", "0.500", "0.510 ± 0.020", "0.750"],
        ["TVD of outputs", "0.500", "0.510 ± 0.020", "–"],
    ]


def test_agreement_is_gathered_over_seeds() -> None:
    data = agreement.filter_table_data(agreement_frame(), {"sst": CLASSES})
    assert data["words"]["predicted_class"] == [CLASSES[1], "all", CLASSES[0]]
    row = data["rows"][0]
    assert row[6:] == pytest.approx([0.3, 0.1, 0.1, 0.5, 6, 2])
    overview = agreement.agreement_overview(agreement_frame())
    assert overview is not None and overview.rows[0][2].text == "0.30 ± 0.10"
    assert agreement.agreement_overview(agreement_frame().assign(measure_a="random")) is None


def ranked_twice() -> pd.DataFrame:
    """Agreement over all tokens too, where it is .1 higher."""
    frame = agreement_frame()
    wider = frame.assign(tokens="all", mean=frame["mean"] + 0.1)
    return pd.concat([wider, frame], ignore_index=True)


def test_ranked_tokens_are_shown_where_there_is_a_choice() -> None:
    data = agreement.filter_table_data(ranked_twice(), {"sst": CLASSES})
    # From the fewest to the most, whatever the order of the rows.
    assert data["words"]["tokens"] == ["words of the text", "all tokens"] and list(data["titles"])[-1] == "tokens"
    means = {(row[5], row[6]): row[7] for row in data["rows"]}
    assert means == pytest.approx({(label, tokens): 0.3 + 0.1 * tokens for label in range(3) for tokens in range(2)})
    shown = agreement.agreement_overview(ranked_twice())
    assert shown is not None and shown.rows[0][2].text == "0.30 ± 0.10"
    assert "The ranked tokens are the words of the text." in shown.caption
    one = agreement.agreement_overview(agreement_frame())
    assert one is not None and "Ranked" not in one.caption
    assert "tokens" not in agreement.filter_table_data(agreement_frame(), {"sst": CLASSES})["words"]


def test_formatted_numbers() -> None:
    assert [tables.number(v) for v in (1234.5, -0.001, -0.5, None, float("nan"))] == [
        "1\u202f234.50",
        "0.00",
        "−0.50",
        "–",
        "–",
    ]


def test_only_long_tables_are_filtered_and_by_columns_that_differ() -> None:
    shown = tables.performance_overview(performance_frame())
    assert shown.long and shown.filters == [0, 1]
    here = tables.performance_overview(performance_frame()[lambda frame: frame["dataset"] == "sst"])
    assert here.long and here.filters == [], "there is one dataset, and every row has a model of its own"
    short = replace(shown, rows=shown.rows[: tables.LONG])
    assert not short.long and short.filters == []


def test_every_measure_and_metric_is_explained() -> None:
    registry = Registry()
    rows = about.measures_table(registry, {"measures": {"mine": {"kind": "gradient"}}}).rows
    assert {row[0].text for row in rows} == set(registry.names("measure"))
    assert (rows[0][0].text, rows[0][1].text) == ("gradient", "mine")
    assert [row[0].text for row in about.metrics_table(registry).rows] == registry.names("metric")


def test_a_table_of_an_unknown_kind_is_shown_as_it_is() -> None:
    own = pd.DataFrame({"measure": ["<b>lime</b>"], "share": [0.25], "n": [3], "empty": [None]})
    shown = tables.any_table("my_own", own)
    assert shown.columns == ["measure", "share", "n"] and texts(shown.rows[0]) == ["<b>lime</b>", "0.250", "3"]
    assert shown.numbers == {1, 2} and shown.caption == "The table my_own."
    long = pd.concat([own] * 3)
    assert len(tables.any_table("my_own", long, 2).rows) == 2
    assert "its first 2 of 3 rows" in tables.any_table("my_own", long, 2).caption


def test_replaced_attention_is_summed_up() -> None:
    (row,) = counterfactual.permutation_overview(permutation_frame()).rows
    # Seeds count by their texts: one of .1 and three of .5.
    assert texts(row[2:]) == ["4", "0.400 ± 0.100", "0.400", "–", "–", "0.900"]
    assert (row[3].at, row[3].half) == pytest.approx((0.4, 0.1))
    rows = counterfactual.adversarial_overview(adversarial_frame()).rows
    assert [texts(row[2:]) for row in rows] == [
        ["0.01", "4", "55.0 %", "0.350 ± 0.050", "50 %"],
        ["0.05", "4", "75.0 %", "0.350 ± 0.050", "50 %"],
    ]
    assert rows[0][5].at == pytest.approx(0.35 / np.log(2))


def test_what_adversaries_reached_is_summed_up() -> None:
    shown = adversary.adversary_overview(adversary_frame())
    swept, diverged, dev, test = shown.rows
    assert [row[3].text for row in (dev, test, swept)] == ["dev", "test", "train"]
    assert [row[2].text.replace("\u00a0", " ") for row in shown.rows] == [
        "<sweep> (wiegreffe-pinter), λ = 0.001",
        "<sweep> (wiegreffe-pinter), λ = 0.1",
        "attefa",
        "attefa",
    ]
    reached = ["0.400 ± 0.200", "0.100 ± 0.050", "0.500 ± 0.100", "0.750 ± 0.050", "4.5 ± 0.5"]
    assert texts(test[4:]) == ["2", *reached]
    assert texts(dev[4:]) == ["3, 1 diverged", *reached] and dev[4].mark == "bad"
    assert texts(swept[4:]) == ["1", "0.200", "0.050", "0.400", "0.700", "4.0"]
    assert texts(diverged[4:]) == ["1, 1 diverged", *["undefined"] * 5] and diverged[5].at is None
    assert [cell.at for cell in test[5:9]] == pytest.approx([0.4, 0.2, 0.5 / np.log(2), 0.75])
    assert [cell.half for cell in test[5:9]] == pytest.approx([0.2, 0.1, 0.1 / np.log(2), 0.05])
    assert "favours the adversary" in shown.caption and "diverged" in shown.caption
    ran = adversary_frame()[lambda frame: frame["status"] == "ok"]
    assert "diverged" not in adversary.adversary_overview(ran).caption
    frame = adversary_frame().astype({"status": object})
    frame.loc[(frame["seed"] == 1) & (frame["status"] == "ok"), "status"] = COLLAPSED
    table = adversary.adversary_overview(frame)
    assert "collapsed" in table.caption and "3, 1 diverged, 1 collapsed" in [row[4].text for row in table.rows]
    assert texts(table.rows[3][5:]) == texts(shown.rows[3][5:]), "those that collapsed count"


def elsewhere(row: dict[str, object]) -> list[dict[str, object]]:
    """The row, and rows of another dataset, variant, model and base model that are much further away."""
    far = row | {"tvd": 0.49, "tvd_mean": 0.49, "jsd": 0.6, "jsd_mean": 0.6, "f1": 0.01}
    others = [{"dataset": "imdb"}, {"variant": "masked"}, {"model": "cnn-tanh"}, {"base_seed": 11}]
    return [row, *(far | other for other in others)]


def compared() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Three adversaries, of which one is as far away as a seed; what they are compared with; and what they are not."""
    line = CELL | {"base_seed": 10, "status": "ok", "f1": 0.5}
    attack = line | {"objective": "attefa", "adversary": "attefa", "selected_on": "dev"}
    half = np.log(2) / 2
    rows = [
        attack | {"seed": seed, "tvd": tvd, "jsd": jsd, "attefa": attefa}
        for seed, tvd, jsd, attefa in ((1, 0.1, half, 0.4), (2, 0.2, half, 0.8), (3, 0.3, 2 * half, 0.6))
    ]
    rows.append(attack | {"seed": 1, "selected_on": "test", "tvd": 0.0, "jsd": 0.0})
    free = line | {"objective": "wiegreffe-pinter", "adversary": "sweep", "selected_on": "dev", "strength": 0.0}
    free |= {"seed": 1, "f1": 0.9, "jsd": 0.5}
    rows += elsewhere(free | {"tvd": 0.05})
    # The same run, as another split selects its epoch, and another objective and strength.
    rows += [free | {"tvd": 0.4} | more for more in ({"selected_on": "train"}, {"strength": 0.1})]
    seeds = [
        CELL | {"base_seed": 10, "seed": seed, "max_attention_bin": bin_, "tvd_mean": 0.1 * seed + (bin_ != "all")}
        | {"jsd_mean": 0.2 * seed, "status": "ok"}
        for seed in (1, 2) for bin_ in ("all", BINS[0])
    ]  # fmt: skip
    seeds += elsewhere(seeds[0])[1:]
    score = CELL | {"split": "test", "metric": "f1", "status": "ok", "seed": 10, "value": 0.9}
    scores = [score, score | {"seed": 1, "value": 0.8}, score | {"seed": 2, "value": 0.6}]
    scores += [score | {"split": "dev", "value": 0.2}, score | {"metric": "accuracy", "value": 0.3}]
    scores += [score | {"value": 0.1} | other for other in ({"dataset": "imdb"}, {"model": "cnn-tanh"}, {"seed": 11})]
    frames = (("adversary", rows), ("seed_variance", seeds), ("performance", scores))
    adversaries, variance, performance = (table(name, rows).to_pandas() for name, rows in frames)
    return adversaries, variance, performance


OWN = ["AtteFa", "3", "0.200 ± 0.082", "0.462 ± 0.163", "0.500 ± 0.000", "0.600 ± 0.163", "–"]
# AtteFa of a TVD t with each adversary's JSD: 4 t, 4 t and 2 t, each at most 1.
FREE = ["no reward", "1", "0.050", "0.500", "0.900", "0.167", "3 of 3"]
SEEDS = ["other seeds", "2", "0.150 ± 0.050", "0.300 ± 0.100", "0.700 ± 0.100", "0.500", "1 of 3"]
BASE = ["base model", "–", "–", "–", "0.900", "–", "–"]


def test_adversaries_are_compared_with_models_that_owe_nothing_to_other_attention() -> None:
    frames = compared()
    rows = adversary.comparison_overview(*frames).rows
    assert {tuple(texts(row[:2])) for row in rows} == {("sst", "bilstm-tanh")}
    assert [texts(row[2:]) for row in rows] == [OWN, FREE, SEEDS, BASE]


def test_several_adversaries_and_base_seeds_are_told_apart() -> None:
    frame, seeds, performance = compared()
    other = frame[frame["objective"] == "attefa"].assign(adversary="mine", base_seed=11, tvd=0.4)
    also = frame[frame["strength"] == 0].assign(adversary="also")
    shown = adversary.comparison_overview(pd.concat([frame, other, also]), seeds, performance)
    assert shown.columns[2:5] == ["adversary", "base seed", "compared"] and {3, 4} & shown.numbers == {3}
    first, second = ([row for row in shown.rows if row[2].text == name] for name in ("attefa", "mine"))
    frees = [[f"no reward ({name})", *FREE[1:]] for name in ("also", "sweep")]
    assert [texts(row[4:]) for row in first] == [OWN, *frees, SEEDS, BASE]
    # What is elsewhere in `compared` is of the base seed 11.
    assert {row[3].text for row in second} == {"11"} and [row[6].text for row in second[1:4]] == ["0.490"] * 3


def test_only_what_a_study_has_is_compared() -> None:
    frame, seeds, performance = compared()
    attacks = frame[frame["objective"] == "attefa"]
    assert [texts(row[2:]) for row in adversary.comparison_overview(frame).rows] == [OWN, FREE]
    shown = adversary.comparison_overview(attacks, seeds).rows
    assert [texts(row[2:]) for row in shown] == [OWN, [*SEEDS[:4], "undefined", *SEEDS[5:]]]
    assert not adversary.comparison_overview(attacks, None, performance).rows
    assert not adversary.comparison_overview(frame[frame["objective"] != "attefa"], seeds, performance).rows


def test_the_best_constant_output_is_compared() -> None:
    frame, _, performance = compared()
    constant = CELL | {"base_seed": 10, "n": 4, "tvd": 0.15, "status": "ok"}
    constants = table("constant_output", [constant, constant | {"base_seed": 11, "tvd": 0.4}]).to_pandas()
    attacks = frame[frame["objective"] == "attefa"]
    rows = adversary.comparison_overview(attacks, None, performance, constants).rows
    shown = ["best constant", "–", "0.150", "–", "–", "0.500", "2 of 3"]
    assert [texts(row[2:]) for row in rows] == [OWN, shown, BASE]


def test_failed_searches_are_marked_and_not_compared() -> None:
    frame, seeds, _ = compared()
    frame = frame.astype({"status": object})
    frame.loc[(frame["objective"] == "attefa") & (frame["seed"] == 3), "status"] = COLLAPSED
    free = frame[frame["strength"] == 0].iloc[:1]
    collapsed = free.assign(seed=2, status=COLLAPSED, tvd=0.45)
    diverged = free.assign(seed=3, status="undefined", tvd=np.nan, jsd=np.nan, f1=np.nan)
    own, unrewarded, others = adversary.comparison_overview(pd.concat([frame, collapsed, diverged]), seeds).rows
    assert texts(own[2:]) == ["AtteFa", "3, 1 collapsed", *OWN[2:]] and own[3].mark == "bad"
    assert texts(unrewarded[2:]) == [FREE[0], "3, 1 diverged, 1 collapsed", *FREE[2:6], "2 of 2"]
    assert others[-1].text == "0 of 2", "the one that was further away collapsed"
    only = pd.concat([frame[frame["objective"] == "attefa"], collapsed])
    (_, failed) = adversary.comparison_overview(only).rows
    assert texts(failed[2:]) == [FREE[0], "1, 1 collapsed", *["–"] * 5]


def test_seed_variance_is_summed_up() -> None:
    (row,) = adversary.seed_variance_overview(seed_variance_frame()).rows
    assert texts(row[2:]) == ["10", "2", "4", "0.150 ± 0.050", "0.300 ± 0.100"]
    assert (row[5].at, row[6].at) == pytest.approx((0.3, 0.3 / np.log(2)))


def test_of_many_classes_only_their_number_is_shown() -> None:
    answers = {f"answer {i}": 1 for i in range(40)}
    many = summary()
    many["splits"] = {"test": many["splits"]["test"] | {"instances_per_class": answers}}
    assert about.datasets_table([many]).rows[0][3].text == "40 classes"
    assert about.datasets_table([many | {"paired": True}]).rows[0][3].text == "40 answers"


def test_images_are_instances_with_a_size_and_no_words() -> None:
    shown = about.datasets_table([summary() | {"side": 64}])
    assert "texts" not in shown.columns and texts(shown.rows[0])[2:] == [
        "6",
        "negative 3, <b>positive</b> 3",
        "–",
        "64 × 64",
        "–",
    ]


def test_partial_data_are_marked_and_have_a_warning() -> None:
    some = summary() | {"partial": {"test": {"texts": 6, "published": 1821}}}
    sentence = "Results on sst are from partial data: 6 of the 1\u202f821 published test texts."
    assert about.partial_data_warnings([some, summary()]) == [sentence]
    marks = {row[1].text: row[1].mark for row in about.datasets_table([some]).rows}
    assert marks == {"train": "", "test, partial": "bad"}


def test_files_are_read_by_what_they_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_table("results/tables/mine.parquet", AGREEMENT, dict(agreement_frame()))
    write_table("results/tables/other.parquet", AGREEMENT, dict(agreement_frame().assign(mean=0.7)))
    read = read_tables(["results/tables/mine.parquet", "results/tables/other.parquet"])
    assert list(read) == ["agreement"] and (read["agreement"]["mean"] != 0.7).all(), "of two the first"
    figure = tmp_path / "results/figures/tau-matrix/sst/v1.5.svg"
    figure.parent.mkdir(parents=True)
    figure.write_text(SVG)
    assert read_figures(["results/figures/tau-matrix/sst/v1.5.svg"]) == {"tau-matrix/sst/v1.5": SVG}


def test_bars_that_compare_nothing_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = "results/figures/mean-differences.svg"
    pair = {("attention", "leave-one-out"): 0.1}
    one = taus(pair, dataset="sst", model="bilstm-tanh")
    for frame, drawn in ((one, False), (pd.concat([one, taus(pair, dataset="sst", model="average-tanh")]), True)):
        save(mean_differences(frame), path)
        assert bool(read_figures([path])) == drawn


def test_the_truth_that_measures_find_is_shown_for_all_variants_of_a_manipulation_together() -> None:
    (line,) = truth_overview(truth_frame()).rows
    assert texts(line[:5]) == ["birds (blur)", "m", "gradient", "0.500 ± 0.100", "0.250"]
    assert (line[3].at, line[5].text, line[8].text, line[10].text) == (0.5, "0.333 ± 0.133", "1 of 2", "2")


def test_rationales_are_shown_next_to_the_optimum() -> None:
    (line,) = rationales_overview(rationales_frame()).rows
    assert texts(line[2:]) == ["0.100", "0.090", "0.800", "0.900", "0.700", "1.000", "0.980"]


def test_erasure_is_shown_as_a_whole_and_by_ratio() -> None:
    shown = erasure.erasure_overview(erasure_frame())
    assert shown.columns[3:] == ["comprehensiveness ↑", "sufficiency ↓", "texts", "left out"]
    assert texts(shown.rows[0]) == ["sst", "bilstm-tanh", "attention", "0.210 ± 0.010", "−0.040 ± 0.010", "5", "1"]
    curves = erasure.erasure_curve_overview(erasure_frame())
    assert curves.columns[4:] == ["10 %", "50 %"] and len(curves.rows) == 2
    assert texts(curves.rows[1]) == [
        "sst",
        "bilstm-tanh",
        "gradient",
        "comprehensiveness",
        "0.110 ± 0.010",
        "0.310 ± 0.010",
    ]


def test_the_scorecard_shows_directions_and_reasons() -> None:
    shown = scorecard.scorecard_overview(scorecard_frame())
    assert shown.columns[3:] == ["agreement ↑", "sufficiency ↓", "permutation ↑"]
    attention, gradient, random = (row[3:] for row in shown.rows)
    assert texts(gradient) == ["0.100 [0.050, 0.150]", "0.100 [0.050, 0.150]", "– a"]
    assert shown.notes == ["it applies to <attention> only"] and gradient[2].title == shown.notes[0]
    # The better the rank of a measure, the stronger its background.
    assert [[row[column].tint for row in (attention, gradient, random)] for column in (0, 1)] == [
        [0, 0.5, 1],
        [1, 0.5, 0],
    ]
    assert attention[2].tint is None, "there is nothing to stand above"
    assert (gradient[0].title, gradient[1].title) == ("3 seeds", "1 seed")
    assert [scorecard.letter(i) for i in (0, 25, 26, 27, 52)] == ["a", "z", "aa", "ab", "ba"]


def test_what_is_not_about_faithfulness_is_marked() -> None:
    frame = scorecard_frame()
    assert "†" not in scorecard.scorecard_overview(frame).caption
    shown = scorecard.scorecard_overview(frame.assign(faithfulness=frame["criterion"] != "agreement"))
    assert shown.columns[3:] == ["agreement ↑ †", "sufficiency ↓", "permutation ↑"] and "†:" in shown.caption


def test_the_meta_evaluation_is_on_an_axis_from_minus_one_to_one() -> None:
    known, lost = scorecard.meta_evaluation_overview(meta_frame()[::-1]).rows
    assert texts(known) == ["agreement", "sufficiency", "−0.500 [−0.800, 0.100]", "4", "the same texts"]
    tau = known[2]
    assert isinstance(tau, roar.IntervalCell) and (tau.at, tau.low, tau.high) == pytest.approx((0.25, 0.1, 0.55))
    assert texts(lost[2:]) == ["– a", "0", "–"] and lost[2].title == "no <cell> has 3 measures"


def test_faithfulness_is_on_an_axis_from_minus_one_to_one() -> None:
    shown = roar.faithfulness_overview(faithfulness_frame())
    attention, single, gradient, lost = shown.rows
    assert [row[0].text for row in shown.rows] == ["sst"] * 4 and attention[5].text == "macro f1"
    assert [row[2].text for row in shown.rows] == ["attention", "attention", "gradient", "random-<b>"]
    assert texts(attention[6:]) == ["5", "0.300 [0.200, 0.340]", "same", "0.360 [0.350, 0.380]"]
    ours = attention[7]
    assert isinstance(ours, roar.IntervalCell) and (ours.at, ours.low, ours.high) == pytest.approx((0.65, 0.6, 0.67))
    assert gradient[7].at == 0 and gradient[8].text == "−1.400 [−1.900, 0.340]"
    assert (single[7].text, single[6].text) == ("0.300", "1") and single[7].low == single[7].high == single[7].at
    assert (lost[7].text, lost[7].mark, lost[7].at) == ("no <seed> has a floor", "faint", None)
    assert lost[8].text == "–" and "too narrow" in shown.caption


def test_leakage_is_shown_by_the_metric_of_faithfulness() -> None:
    rows = roar.leakage_overview(roar_frame(), faithfulness_frame()).rows
    assert [row[2].text for row in rows] == ["attention", "random"]
    assert texts(rows[0][5:]) == ["macro f1", "2", "0.500 ± 0.000", "0.750 ± 0.050", "50 %", "0.250 ± 0.050"]
    assert rows[1][-1].text == "0.000 ± 0.000"
    assert len(roar.leakage_overview(roar_frame(), None).rows) == 4
    assert not roar.leakage_overview(roar_frame(leakage=False), faithfulness_frame()).rows


def test_a_level_costs_what_all_its_seeds_cost() -> None:
    rows = roar.cost_overview(timings_frame()).rows
    assert [texts(row[2:]) for row in rows] == [["attention", "2", "40.0", "4.0"], ["random", "1", "7.0", "–"]]
    assert not roar.cost_overview(timings_frame()[lambda frame: frame["rule"] == "train"]).rows


def test_a_value_that_is_not_finite_is_a_dash() -> None:
    assert roar.with_interval(np.nan, np.nan, np.nan).text == "–"
    assert roar.with_interval(0.5, np.nan, 0.6).text == "0.500"
