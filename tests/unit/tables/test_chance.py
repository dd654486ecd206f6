"""Models at chance are found and left out of tables and means."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from plumbline.protocols.adversary.table import adversary_rows
from plumbline.protocols.erasure.schemas import ERASURE
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.protocols.performance.table import performance_rows, performance_table, stored_chance_summary
from plumbline.protocols.roar.table import faithfulness_rows
from plumbline.report.tables import performance_overview
from plumbline.store import write_table
from plumbline.tables.chance import AT_CHANCE, above_chance_rows, at_chance, chance_summary, mark_at_chance
from plumbline.tables.export import latex
from plumbline.tables.sources import File, Sources
from plumbline.training.performance import above_chance, chance_level, wilson_low
from plumbline.training.schemas import PREDICTIONS

CELL = {"dataset": "d", "variant": "plain", "model": "m"}


def answers(predicted: np.ndarray, classes: int) -> np.ndarray:
    return np.eye(classes)[predicted]


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (3, 7), (62, 100), (980, 1000), (20, 20)])
def test_the_lower_end_is_wilsons(hits, n):
    expected = binomtest(hits, n).proportion_ci(method="wilson").low
    assert wilson_low(hits, n) == pytest.approx(expected, abs=1e-6)


def test_with_many_texts_it_is_cohens_kappa():
    random = np.random.default_rng(0)
    labels = random.integers(3, size=200_000)
    predicted = np.where(random.random(len(labels)) < 0.4, labels, random.integers(3, size=len(labels)))
    kappa = cohen_kappa_score(labels, predicted)
    assert above_chance(answers(predicted, 3), labels) == pytest.approx(kappa, abs=0.005)


def test_with_answers_of_its_own_chance_is_drawn_from_those_of_each_text():
    random = np.random.default_rng(0)
    n, classes = 20_000, 40
    labels = random.integers(classes, size=n)
    pairs = np.stack([labels, labels ^ 1], axis=1)
    guessed = pairs[np.arange(n), random.integers(2, size=n)]
    # Among all classes a guess between two seems to be good.
    assert above_chance(answers(guessed, classes), labels) > 0.4
    assert chance_level(answers(guessed, classes), labels, list(pairs)) == pytest.approx(0.5, abs=0.01)
    assert above_chance(answers(guessed, classes), labels, list(pairs)) < 0.02
    every = [np.arange(classes)] * n
    assert chance_level(answers(guessed, classes), labels, every) == pytest.approx(
        chance_level(answers(guessed, classes), labels)
    )
    # By hand: "is" is predicted three times of four, so a guess is "is" in 3/4 of the texts.
    found, right = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    assert chance_level(answers(found, 3), right, [np.array([0, 1])] * 4) == pytest.approx((3 + 3 + 1 + 1) / 16)


def test_the_table_reads_the_answers_of_each_text():
    labels = np.arange(400) % 4
    found = np.where(np.arange(400) % 8 < 4, labels, labels ^ 1)
    columns = {"seed": [0] * 400, "split": ["test"] * 400, "instance": range(400), "label": labels,
               "probabilities": list(answers(found, 4).astype(np.float32))}  # fmt: skip
    tables = []
    for own in (None, [[label, label ^ 1] for label in labels]):
        arrays = {**columns, "answers": own or [None] * 400}
        table = pa.table({f.name: pa.array(list(arrays[f.name]), f.type) for f in PREDICTIONS.schema})
        tables.append(performance_rows([CELL], [table], 0.2))
    status = [rows.loc[rows["metric"] == "above_chance", "status"].item() for rows in tables]
    assert status == ["ok", AT_CHANCE]


def test_a_constant_answer_is_at_chance_however_rare_the_other_class_is():
    labels = (np.arange(1000) % 20 == 0).astype(int)
    constant = np.zeros_like(labels)
    assert above_chance(answers(constant, 2), labels) < 0
    # Right in fewer cases, and yet better than guessing.
    finds = np.where(labels == 1, 1, (np.arange(1000) % 9 == 0).astype(int))
    assert np.mean(finds == labels) < np.mean(constant == labels)
    assert above_chance(answers(finds, 2), labels) > 0.2
    assert np.isnan(above_chance(answers(constant, 2), constant))


def predictions(shares: list[float], n: int = 200) -> pa.Table:
    """A test split on which seed i is right in shares[i] of the texts."""
    labels = np.arange(n) % 2
    rows = []
    for seed, share in enumerate(shares):
        right = np.arange(n) < round(share * n)
        right = np.random.default_rng(1).permutation(right)
        rows += [
            {"seed": seed, "split": "test", "instance": i, "label": label, "probabilities": np.eye(2)[answer].tolist()}
            for i, (label, answer) in enumerate(zip(labels, np.where(right, labels, 1 - labels), strict=True))
        ]
    return pa.Table.from_pylist(rows, schema=PREDICTIONS.schema)


def scores_of(shares: list[float], least: float | None = 0.2) -> pd.DataFrame:
    return performance_rows([CELL], [predictions(shares)], least)


def test_seeds_at_chance_are_named_with_a_reason():
    found = at_chance(scores_of([0.49, 0.93, 0.62]))
    assert list(found) == [("d", "plain", "m", 0), ("d", "plain", "m", 2)]
    sentence = "the model hardly does better than guessing: its accuracy is 0.49 on 200 instances and chance 0.50, so "
    assert found["d", "plain", "m", 0].startswith(f"{sentence}above_chance, at the lower end of its interval, is -0.")
    assert found["d", "plain", "m", 2].endswith("below 0.2")
    assert at_chance(scores_of([0.49], None)) == {}
    assert at_chance(scores_of([0.49], -1)) == {}


def test_models_at_chance_are_reported_as_soon_as_the_table_of_performance_is_made(tmp_path):
    write_table(tmp_path / "predictions.parquet", PREDICTIONS, predictions([0.49, 0.93]))
    files = {"predictions": [File(CELL, str(tmp_path / "predictions.parquet"))]}
    with pytest.warns(UserWarning, match="plumbline: Left out of the scorecard and of means: 1 of 2 trained models"):
        _, rows = performance_table(Sources(files, {"least_above_chance": 0.2}))
    assert len(at_chance(rows)) == 1


def test_the_summary_of_a_run_says_how_many_models_are_at_chance(tmp_path):
    performance = scores_of([0.93, 0.49, 0.62])
    (sentence,) = chance_summary(performance)
    assert sentence.startswith(
        "Left out of the scorecard and of means: 2 of 3 trained models, at chance. For m on d, seed"
    )
    assert "seed 1, the model hardly does better than guessing: its accuracy is 0.49 on 200" in sentence
    assert "change `least_above_chance`" in sentence
    assert chance_summary(scores_of([0.93])) == []
    assert stored_chance_summary(tmp_path) == []
    write_table(tmp_path / "tables/performance.parquet", PERFORMANCE, pa.Table.from_pandas(performance))
    assert stored_chance_summary(tmp_path) == [sentence]


def test_models_at_chance_that_are_kept_are_still_counted():
    (sentence,) = chance_summary(scores_of([0.93, 0.49, 0.62, 0.5], None))
    # Seed 2 is below the default limit of 0.2, and yet above chance.
    assert sentence.startswith("Not surely better than guessing: 2 of 4 trained models, which `least_above_chance` in")
    assert "keeps in the scorecard and in means. For m on d, seed 1, above_chance, at the lower end of its" in sentence
    assert "Left out" not in sentence and chance_summary(scores_of([0.93, 0.62], None)) == []
    # A limit below 0 leaves out some of them, and keeps others.
    left_out, kept = chance_summary(scores_of([0.3, 0.49], -0.2))
    assert left_out.startswith("Left out of the scorecard and of means: 1 of 2") and "seed 0" in left_out
    assert kept.startswith("Not surely better than guessing: 1 of 2") and "seed 1" in kept


def test_rows_of_models_at_chance_are_marked_and_left_out_of_means():
    rows = [
        {**CELL, "seed": seed, "measure": "lime", "metric": "sufficiency", "ratio": np.nan, "n": 5, "dropped": 0}
        | {"mean": value, "std": 0.1, "status": status, "reason": None}
        for seed, value, status in ((0, 0.5, "ok"), (1, 0.3, "ok"), (2, None, "undefined"))
    ]
    table = mark_at_chance(pd.DataFrame(rows), at_chance(scores_of([0.49, 0.93])))
    assert table["status"].tolist() == [AT_CHANCE, "ok", "undefined"]
    assert "hardly does better" in table["reason"][0] and pd.isna(table["reason"][1])
    assert above_chance_rows("erasure", table)["seed"].tolist() == [1, 2]
    printed = latex(ERASURE, table)
    assert "0.300" in printed and "0.400" not in printed and "0.500" not in printed
    # Their own performance is kept.
    assert len(above_chance_rows("performance", scores_of([0.49]))) == len(scores_of([0.49]))


def test_adversaries_go_by_the_seed_of_their_base():
    table = pd.DataFrame([{**CELL, "seed": 1, "base_seed": base, "status": "ok", "reason": None} for base in (0, 1)])
    assert mark_at_chance(table, at_chance(scores_of([0.49, 0.93])), "base_seed")["status"].tolist() == [
        AT_CHANCE,
        "ok",
    ]


def test_curves_that_begin_at_chance_do_not_count():
    curve = {"dataset": "d", "model": "m", "strategy": "roar", "unit": "relative", "trained_on": "words"}
    values = {"lime": [0.9, 0.5, 0.5], "random": [0.9, 0.7, 0.5]}
    rows = [
        {**curve, "measure": measure, "level": level, "seed": seed, "metric": "macro_f1", "value": value}
        | {"variant": "v", "status": "ok", "reason": None}
        for measure, numbers in values.items()
        for level, value in zip((0, 50, 100), numbers, strict=True)
        for seed in (0, 1)
    ]
    left_out = at_chance(scores_of([0.49, 0.93]))
    (row,) = faithfulness_rows(pd.DataFrame(rows), {"d": "macro_f1"}, "random", left_out).to_dict("records")
    assert row["n_seeds"] == 1 and row["per_seed"] == [pytest.approx(0.5)]
    assert row["reason"].startswith("1 of 2 seeds left out: the model hardly does better than guessing")


def test_the_report_marks_them():
    table = performance_overview(scores_of([0.49, 0.93]))
    (line,) = table.rows
    cell = line[table.columns.index("above chance")]
    assert cell.mark == "bad" and cell.text.endswith("at chance, 1 of 2 seeds") and "exclude them" in table.caption
    fine = performance_overview(scores_of([0.9, 0.93]))
    assert not any(cell.mark for cell in fine.rows[0]) and "exclude them" not in fine.caption


def test_an_adversary_of_strength_zero_has_no_score():
    history = pd.DataFrame(
        [
            {"seed": 0, "epoch": 1, "split": split, "metric": metric, "value": value}
            for split in ("train", "test")
            for metric, value in {"loss": 0.1, "f1": 0.9, "tvd": 0.01, "jsd": 0.001, "answers": 2}.items()
        ]
    )
    cell = CELL | {"adversary": "a", "objective": "wiegreffe-pinter", "base_seed": 0, "selected_on": ["train"]}
    cell |= {"first": 1, "patience": 5}
    imitates, attacks = (next(adversary_rows(history, cell | {"strength": strength})) for strength in (0.0, 0.1))
    assert np.isnan(imitates["attefa"]) and imitates["reason"].startswith("of strength 0")
    assert attacks["attefa"] == 1.0 and attacks["reason"] is None
