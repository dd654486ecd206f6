"""Reliability: measures with draws and without, against correlations computed by hand."""

from pathlib import Path

import numpy as np

from plumbline import store
from plumbline.attribution.run import attribute, load_calls
from plumbline.config.resolve import resolve
from plumbline.config.runs import list_runs
from plumbline.conformance.examples import example_explained
from plumbline.dag.groups import MeasureGroups
from plumbline.dag.params import Params
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.agreement.rank_statistics import kendall_tau
from plumbline.protocols.criteria import Measures
from plumbline.protocols.reliability.criteria import reliability
from plumbline.protocols.reliability.page import reliability_overview
from plumbline.protocols.reliability.schemas import RELIABILITY, RELIABILITY_SCORES
from plumbline.protocols.reliability.score import DRAW_SEEDS, Reliability
from plumbline.tables.export import latex
from tests.unit.protocols.cells import make_cell, params, table_of

NAMES = {"gradient": {}, "lime": {"samples": 20}, "random": {}}
MEASURES = {name: params(name, **options) for name, options in NAMES.items()}


def test_measures_without_draws_have_reliability_1_and_random_has_none():
    rows = table_of(Reliability(texts=30), make_cell(MEASURES, imported=["theirs"])).set_index("measure")
    assert rows["stochastic"].to_dict() == {"gradient": False, "lime": True, "random": True, "theirs": False}
    assert rows.loc[["gradient", "theirs"], "kendall"].tolist() == [1, 1]
    assert abs(rows.loc["random", "kendall"]) < 0.15 and 0.1 < rows.loc["lime", "kendall"] < 0.95
    assert rows["n"].tolist() == [60] * 4 and (rows["status"] == "ok").all()
    values = reliability(rows.reset_index(), Measures({}, "random", {})).set_index("measure")["value"]
    assert values.to_dict() == rows["kendall"].to_dict()


def test_more_samples_are_more_reliable_and_repetitions_are_averaged():
    measures = {"few": params("lime", samples=20), "many": params("lime", samples=400)}
    once, thrice = (table_of(Reliability(texts=12, repeats=count), make_cell(measures)) for count in (1, 3))
    assert once.set_index("measure")["kendall"]["many"] > once.set_index("measure")["kendall"]["few"] + 0.1
    assert (thrice["n"] == 3 * once["n"]).all()
    again = table_of(Reliability(texts=12), make_cell(measures))
    assert again.equals(once)


def test_a_retest_is_the_same_model_with_other_draws():
    cell = make_cell({"lime": MEASURES["lime"]}, count=8, seeds=(3,))
    columns = Reliability().score(cell)
    (evaluator,) = cell.models()
    runs = []
    for seed in (3, 3 + DRAW_SEEDS):
        again = Evaluator(evaluator.model, seed, 10_000)
        tables, _ = attribute([again], cell.instances(), load_calls(cell.recomputed))
        runs.append(tables["lime"]["scores"])
    taus = [kendall_tau(np.array([pair]))[0][0, 0, 1] for pair in zip(*runs, strict=True)]
    np.testing.assert_allclose(columns["kendall"], taus)
    assert set(columns["seed"]) == {3} and evaluator.seed == 3


def test_tables_page_and_latex(tmp_path: Path):
    protocol = Reliability()
    store.write_table(tmp_path / "s.parquet", RELIABILITY_SCORES, protocol.score(example_explained(tmp_path)))
    summary = protocol.summarise(store.read_table(tmp_path / "s.parquet", RELIABILITY_SCORES))
    assert not summary["stochastic"].any() and (summary["kendall"] == 1).all()
    rows = table_of(protocol, make_cell(MEASURES, count=12, seeds=(0, 1)))
    store.write_table(tmp_path / "t.parquet", RELIABILITY, rows.to_dict("list"))
    frame = store.read_table(tmp_path / "t.parquet", RELIABILITY).to_pandas()
    overview = reliability_overview(frame)
    assert [row[2].text for row in overview.rows] == ["lime", "random"]
    assert overview.caption.endswith("which have τ = 1: gradient.")
    text = latex(RELIABILITY, frame)
    assert "lime" in text and "gradient" not in text


def test_a_job_knows_which_measures_draw():
    measures = {"gradient": {}, "lime": {}}
    study = {"datasets": {"movie": {}}, "models": {"bilstm-tanh": {}}, "measures": measures}
    resolved = resolve({**study, "protocols": {"reliability": {}, "agreement": {}}})
    runs = list_runs(resolved)
    own = Params(resolved, runs, MeasureGroups(resolved, runs), None, Path())  # type: ignore[arg-type]
    (cell,) = runs.scored["reliability"]
    recomputed = own.recomputed("reliability", cell)
    assert {name: measure["stochastic"] for name, measure in recomputed.items()} == {"gradient": False, "lime": True}
    assert own.recomputed("agreement", cell) == {}
