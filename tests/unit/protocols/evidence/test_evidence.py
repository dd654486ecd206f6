"""Importance against marked evidence: by hand, over all orders of words, and against scikit-learn."""

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, f1_score, jaccard_score

from plumbline import store
from plumbline.attribution.files import write_importances
from plumbline.config.resolve import resolve
from plumbline.config.runs import list_runs
from plumbline.conformance import check
from plumbline.data.schemas import INSTANCES
from plumbline.errors import PlumblineError
from plumbline.protocols.evidence.figures import SOURCES, evidence_by_measure
from plumbline.protocols.evidence.metrics import above_random, average_precision, top_k_overlap
from plumbline.protocols.evidence.page import evidence_overview
from plumbline.protocols.evidence.schemas import EVIDENCE, EVIDENCE_SCORES
from plumbline.protocols.evidence.score import ALL_EVIDENCE, NO_EVIDENCE, NOT_FINITE, Evidence, overlap
from plumbline.protocols.explained import Explained
from plumbline.registry import Registry
from plumbline.tables.export import latex
from plumbline.training.schemas import PREDICTIONS


def flags(*values: int) -> np.ndarray:
    return np.array(values, dtype=bool)


# One map.


def test_average_precision_by_hand():
    # Ranks 1 and 3: (1/1 + 2/3) / 2.
    assert average_precision(np.array([4.0, 3.0, 2.0, 1.0]), flags(1, 0, 1, 0)) == pytest.approx(5 / 6)
    # Tied with one other, it is first or second.
    assert average_precision(np.array([1.0, 1.0, 0.0]), flags(1, 0, 0)) == pytest.approx((1 + 1 / 2) / 2)
    assert average_precision(np.array([3.0, 2.0, 1.0]), flags(1, 1, 0)) == 1


def test_distinct_weights_give_scikit_learns_metrics():
    random = np.random.default_rng(0)
    for n in (2, 5, 60):
        evidence = random.permutation(np.arange(n) < max(1, n // 4))
        weights = random.random(n)
        assert average_precision(weights, evidence) == pytest.approx(average_precision_score(evidence, weights))
        top = np.zeros(n, dtype=bool)
        top[np.argsort(-weights)[: evidence.sum()]] = True
        expected = f1_score(evidence, top), jaccard_score(evidence, top)
        assert top_k_overlap(weights, evidence) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("weights", "evidence"),
    [
        ([1, 1, 1, 1, 1], [1, 0, 0, 1, 0]),
        ([2, 1, 1, 1, 0], [0, 1, 1, 0, 0]),
        ([2, 2, 2, 1, 1], [1, 0, 1, 1, 0]),
        ([0, 0, 3, 3, 3], [1, 1, 1, 0, 0]),
        ([5, 4, 4, 1, 1], [0, 1, 0, 0, 1]),
    ],
)
def test_ties_are_the_mean_over_all_their_orders(weights: list[int], evidence: list[int]):
    own, marked = np.array(weights, dtype=float), np.array(evidence, dtype=bool)
    found = []
    for order in permutations(range(len(own))):
        broken = own + 1e-3 * np.array(order)
        found.append((average_precision_score(marked, broken), *top_k_overlap(broken, marked)))
    expected = np.mean(found, axis=0)
    assert (average_precision(own, marked), *top_k_overlap(own, marked)) == pytest.approx(tuple(expected))


@pytest.mark.parametrize(("n", "k"), [(2, 1), (6, 1), (6, 3), (7, 5)])
def test_chance_is_the_mean_of_all_orders(n: int, k: int):
    """Exactly that of equal importances and, for AUPRC, of the equation; more than the share of evidence."""
    evidence = np.arange(n) < k
    orders = [overlap(np.array(order, dtype=float) + 1, evidence) for order in permutations(range(n))]
    same = overlap(np.ones(n), evidence)
    harmonic = sum(1 / i for i in range(1, n + 1))
    assert same.auprc_chance == pytest.approx((harmonic + (k - 1) * (n - harmonic) / (n - 1)) / n)
    assert same.auprc_chance == same.auprc > same.evidence_share == k / n
    means = pd.DataFrame(orders)[["auprc", "auprc_chance", "token_f1", "iou"]].mean()
    assert (means["auprc"], means["token_f1"]) == pytest.approx((same.auprc_chance, k / n))
    assert (same.token_f1, same.iou) == pytest.approx((k / n, means["iou"]))
    assert above_random(means["auprc"], same.auprc_chance) == pytest.approx(0)
    # Chance approaches the share in long texts.
    assert overlap(np.ones(5000), np.arange(5000) < 500).auprc_chance == pytest.approx(0.1, abs=0.002)


def test_an_oracle_scores_one_and_signs_do_not_matter():
    evidence = flags(0, 1, 0, 1, 0, 0)
    for scores in (evidence.astype(float), -3.0 * evidence, evidence * [0, 1, 0, -9, 0, 0]):
        own = overlap(np.asarray(scores), evidence)
        assert (own.auprc, own.token_f1, own.iou) == (1, 1, 1) and above_random(own.auprc, own.auprc_chance) == 1
    assert overlap(np.array([1.0, -2, 3]), flags(0, 1, 0)) == overlap(np.array([1.0, 2, -3]), flags(0, 1, 0))


def test_undefined_maps_have_a_reason():
    assert overlap(np.ones(3), flags(0, 0, 0)).reason == NO_EVIDENCE
    assert overlap(np.ones(3), flags(1, 1, 1)).reason == ALL_EVIDENCE
    broken = overlap(np.array([1, np.nan, 2]), flags(1, 0, 0))
    assert broken.reason == NOT_FINITE and np.isnan(broken[:5]).all()


# A cell.


def cell(
    folder: Path, evidence: list[list[int]], maps: dict[str, list[list[float]]], source: str = "rule"
) -> Explained:
    """Texts of two seeds with a special token at either end; the second one is classified wrongly."""
    count = len(evidence)
    keys: dict[str, Any] = {"split": ["test"] * count, "instance": list(range(10, 10 + count))}
    free = [[False, *[True] * len(own), False] for own in evidence]
    texts = {**keys, "label": [0] * count, "tokens": [[] for _ in free], "maskable": free}
    texts |= {
        "ids": [list(range(len(own))) for own in free],
        "evidence": [[False, *map(bool, e), False] for e in evidence],
    }
    store.write_table(folder / "instances.parquet", INSTANCES, texts)
    store.write_json(folder / "dataset.json", {"evidence": source})
    keys = {name: values * 2 for name, values in keys.items()} | {"seed": np.repeat([3, 4], count)}
    sure = [np.eye(2, dtype=np.float32)[int(i == 1)] for i in range(count)] * 2
    store.write_table(
        folder / "predictions.parquet", PREDICTIONS, {**keys, "label": [0] * 2 * count, "probabilities": sure}
    )
    for measure, scores in maps.items():
        columns = {**keys, "scores": [np.asarray(own, dtype=np.float32) for own in scores] * 2}
        write_importances(folder / f"{measure}.parquet", {measure: columns})
    paths = {measure: folder / f"{measure}.parquet" for measure in maps}
    return Explained(
        folder / "predictions.parquet", paths, [3, 4], ["test"], folder / "instances.parquet",
        summary=folder / "dataset.json",
    )  # fmt: skip


def scored(explained: Explained, folder: Path, protocol: Evidence) -> tuple[pd.DataFrame, pd.DataFrame]:
    store.write_table(folder / "scores.parquet", EVIDENCE_SCORES, protocol.score(explained))
    table = store.read_table(folder / "scores.parquet", EVIDENCE_SCORES)
    summary = protocol.summarise(table).assign(dataset="d", variant="plain", model="m")
    store.write_table(folder / "summary.parquet", EVIDENCE, {name: summary[name] for name in summary})
    return table.to_pandas(), store.read_table(folder / "summary.parquet", EVIDENCE).to_pandas()


EVIDENCE_OF = [[1, 0, 0], [0, 1], [0, 0], [1, 1, 0, 0]]
MAPS = {
    "mine": [[3, 2, 1], [1, 0], [1, 2], [2, 1, 1, 0]],
    "random": [[1, 1, 1], [1, 1], [1, 1], [1, 1, 1, 1]],
}


def test_a_cell_by_hand(tmp_path: Path):
    scores, summary = scored(cell(tmp_path, EVIDENCE_OF, MAPS), tmp_path, Evidence())
    assert len(scores) == 2 * 2 * 4 and set(scores["source"]) == {"rule"}
    own = scores[(scores["seed"] == 3) & (scores["measure"] == "mine")].set_index("instance")
    assert own["length"].tolist() == [3, 2, 2, 4] and own["correct"].tolist() == [True, False, True, True]
    # The last: the first is first, and the second is second or third: ½ (1 + ½ (1 + 2/3)).
    assert own["auprc"].tolist() == pytest.approx([1, 1 / 2, np.nan, (1 + 5 / 6) / 2], nan_ok=True)
    assert own["token_f1"].tolist() == pytest.approx([1, 0, np.nan, 3 / 4], nan_ok=True)
    assert own["iou"].tolist() == pytest.approx([1, 0, np.nan, (1 + 1 / 3) / 2], nan_ok=True)
    assert own["evidence_share"].tolist() == pytest.approx([1 / 3, 1 / 2, np.nan, 1 / 2], nan_ok=True)
    assert own["reason"].tolist()[2] == NO_EVIDENCE and own["status"].tolist()[2] == "undefined"
    rows = summary.set_index(["seed", "measure"])
    mine, random = rows.loc[(4, "mine")], rows.loc[(4, "random")]
    assert (mine["n"], mine["undefined"], mine["status"]) == (3, 1, "ok")
    assert mine["auprc"] == pytest.approx((1 + 1 / 2 + 11 / 12) / 3)
    assert mine["ci_low"] <= mine["auprc"] <= mine["ci_high"]
    assert mine["above_random"] == pytest.approx(above_random(mine["auprc"], mine["auprc_chance"]))
    assert random["auprc"] == pytest.approx(random["auprc_chance"]) and random["above_random"] == pytest.approx(0)


def test_only_correct_predictions_if_asked_for(tmp_path: Path):
    explained = cell(tmp_path, EVIDENCE_OF, MAPS)
    _, summary = scored(explained, tmp_path, Evidence(predictions="correct"))
    mine = summary.set_index(["seed", "measure"]).loc[(3, "mine")]
    assert (mine["n"], mine["undefined"]) == (2, 1) and mine["auprc"] == pytest.approx((1 + 11 / 12) / 2)


def test_a_cell_without_any_score_has_the_reason(tmp_path: Path):
    _, summary = scored(cell(tmp_path, [[0, 0]], {"mine": [[1, 2]]}), tmp_path, Evidence())
    assert summary["status"].eq("undefined").all() and summary["reason"].str.contains(NO_EVIDENCE).all()
    assert "no text has words that are evidence" in evidence_by_measure(summary, "d").texts[0].get_text()


def test_it_conforms():
    assert check("protocol", "evidence", Registry()) == []


# A study.


def study(protocols: dict[str, Any], **datasets: Any) -> dict[str, Any]:
    return {
        "name": "test",
        "datasets": datasets,
        "models": {"average-tanh": {}},
        "measures": {"random": {}},
        "seeds": ["0"],
        "protocols": protocols,
    }


def test_datasets_without_evidence_are_left_out_with_a_reason():
    runs = list_runs(resolve(study({"evidence": {}, "erasure": {}}, stories={}, movie={})))
    assert {one.dataset for one in runs.scored["evidence"]} == {"stories"}
    assert {one.dataset for one in runs.scored["erasure"]} == {"stories", "movie"}
    reasons = [one.reason for one in runs.excluded if one.dataset == "movie"]
    assert reasons == ["protocol 'evidence' needs marked evidence, which dataset 'movie' does not have"]


def test_a_study_without_evidence_is_refused():
    with pytest.raises(PlumblineError, match="cannot score any model of this study: protocol 'evidence' needs marked"):
        list_runs(resolve(study({"evidence": {}}, movie={})))
    with pytest.raises(PlumblineError, match=r"`protocols.evidence.datasets`: .*'movie' does not have; remove it"):
        list_runs(resolve(study({"evidence": {"datasets": ["movie"]}}, stories={}, movie={})))


def test_the_source_of_each_datasets_evidence():
    found = {one.name: one.evidence for one in Registry().all("dataset") if one.evidence}
    rules = {"babi-1", "babi-2", "babi-3", "stories"}
    assert found == dict.fromkeys(rules, "rule") | dict.fromkeys(("sst", "sst-2"), "human")


# The report.


def table(models: tuple[str, ...] = ("bilstm", "cnn"), seeds: int = 3, source: str = "rule") -> pd.DataFrame:
    """Attention is better than gradient, and random has chance."""
    rows = []
    for model in models:
        for measure, mean in {"gradient": 0.6, "random": 0.3, "attention": 0.8}.items():
            for seed in range(seeds):
                value = mean + 0.02 * seed
                rows.append(
                    {"dataset": "stories", "variant": "plain", "model": model, "seed": seed, "measure": measure}
                    | {"source": source, "n": 50, "undefined": 1, "auprc": value, "auprc_chance": 0.3, "token_f1": 0.5}
                    | {"iou": 0.4, "evidence_share": 0.25, "ci_low": value - 0.1, "ci_high": value + 0.1}
                    | {"above_random": (value - 0.3) / 0.7, "status": "ok", "reason": None}
                )
    return pd.DataFrame(rows)


def test_the_figure_has_a_panel_for_each_model_and_the_best_measure_first():
    figure = evidence_by_measure(table(), "stories")
    panels = [panel for panel in figure.axes if panel.get_visible()]
    assert [panel.get_title(loc="left") for panel in panels] == ["bilstm", "cnn"]
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["attention", "gradient", "random"]
    dots = sorted(
        (float(line.get_ydata()[0]), float(line.get_xdata()[0])) for line in panels[0].lines if line.get_marker() == "o"
    )
    assert dots == [(0, pytest.approx(0.82)), (1, pytest.approx(0.62)), (2, pytest.approx(0.32))]
    assert panels[0].lines[0].get_xdata()[0] == pytest.approx(0.3)
    assert SOURCES["rule"].split()[0] in figure.get_supxlabel()
    assert "plausible" in evidence_by_measure(table(source="human"), "sst").get_supxlabel().replace("\n", " ")


def test_intervals_are_over_texts_with_few_seeds():
    figure = evidence_by_measure(table(("net",), seeds=1), "stories")
    whiskers = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 2 and line.get_ydata()[0] == 0]
    assert next(line.get_xdata() for line in whiskers if line.get_linestyle() == "-") == pytest.approx((0.7, 0.9))


def test_the_page_has_a_row_for_each_measure_and_latex_the_measures_in_columns():
    rows = evidence_overview(table())
    assert len(rows.rows) == 6 and [cell.text for cell in rows.rows[0][:4]] == [
        "stories",
        "rule",
        "bilstm",
        "attention",
    ]
    printed = latex(EVIDENCE, table())
    assert "attention" in printed and r"0.82 $\pm$ 0.02" in printed
