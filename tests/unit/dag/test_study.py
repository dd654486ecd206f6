"""Paths, params and targets of the default study and of small ones."""

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plumbline.config.resolve import read_config, resolve
from plumbline.dag.checks import faults
from plumbline.dag.study import StudyDag
from plumbline.errors import PlumblineError
from plumbline.registry import PARTS, Registry

PROJECT = Path(__file__).parents[3]
LIBRARY = PROJECT / "workflow"


def dag(config: dict) -> StudyDag:
    return StudyDag(resolve(config), [Path()], LIBRARY / "scripts")


SMALL = {
    "name": "small",
    "datasets": ["mock-2"],
    "models": {"average-tanh": {}},
    "measures": ["attention", "gradient", "leave-one-out", "random"],
    "protocols": ["agreement"],
    "seeds": ["0-1"],
}


@pytest.fixture(scope="module")
def default() -> StudyDag:
    return dag(read_config(PROJECT / "config.yaml"))


@pytest.fixture(scope="module")
def small() -> StudyDag:
    return dag(SMALL)


def test_a_study_has_the_tables_of_its_sections(default: StudyDag, small: StudyDag):
    always = {"performance", "timings", "reproduction", "quirks"}
    assert set(small.parts.tables) == {*always, "agreement", "scorecard", "meta_evaluation"}
    masking = {"roar", "faithfulness", "sparsity", "synthetic_roar"}
    assert {*always, *masking, "adversary", "trace", "ground_truth", "erasure"} <= set(default.parts.tables)
    assert set(dag({**SMALL, "protocols": []}).parts.tables) == always


def test_the_best_constant_output_is_that_of_each_base_model():
    adversaries = {
        name: {"objective": "attefa", "of": ["average-tanh"], "base_seed": seed}
        for name, seed in (("first", 0), ("again", 0), ("other", 3))
    }
    parts = dag({**SMALL, "seeds": ["0-1", "2-3"], "adversaries": adversaries}).parts
    (files,) = parts.table_reads("constant_output").values()
    folder = "results/models/mock-2/plain/average-tanh"
    cell = {"dataset": "mock-2", "variant": "plain", "model": "average-tanh"}
    assert [(file.keys, file.path) for file in files] == [
        (cell | {"base_seed": seed}, f"{folder}/{block}/predictions.parquet")
        for seed, block in ((0, "0-1"), (3, "2-3"))
    ]
    assert "constant_output" not in dag(SMALL).parts.tables


def test_figures_are_drawn_for_the_cells_of_their_protocols(small: StudyDag):
    plots = small.parts.plots(small.parts.figures)
    assert {plot.stem for plot in plots} == {
        "scorecard",
        "scorecard/mock-2/average-tanh",
        "meta-evaluation",
        "tau-histogram/mock-2/average-tanh",
        "tau-matrix/mock-2/average-tanh",
        "correlation-matrices/average-tanh",
    }
    assert plots[0].files == [f"results/figures/{plots[0].stem}.{suffix}" for suffix in ("svg", "pdf", "png")]
    assert set(small.parts.figure_groups) == {"agreement", "scorecard"}


def test_a_study_of_the_scale_of_vectors_has_its_figure(small):
    def embedding(scale: float) -> dict:
        return {"kind": "mock-2", "preparation": {"embedding": {"kind": "random", "scale": scale}}}

    scaled = dag(SMALL | {"datasets": {"short": embedding(0.5), "long": embedding(2), "mock-5": {}}})
    assert "vector-scale" in {plot.stem for plot in scaled.parts.plots(scaled.parts.figures)}
    assert scaled.facts.vectors()["long"] == {"kind": "mock-2", "vectors": "random", "scale": 2}
    assert "vector-scale" not in {plot.stem for plot in small.parts.plots(small.parts.figures)}
    same = dag(SMALL | {"datasets": {"short": embedding(0.5), "long": embedding(0.5)}})
    assert "vector-scale" not in {plot.stem for plot in same.parts.plots(same.parts.figures)}


@pytest.mark.parametrize(
    ("changes", "drawn"),
    [
        ({}, False),
        ({"models": ["bilstm-tanh"]}, True),
        # Entries may have names of their own.
        ({"models": {"mine": {"kind": "bilstm-tanh"}}}, True),
        ({"models": ["bilstm-tanh"], "measures": ["attention", "leave-one-out", "random"]}, False),
        ({"models": ["bilstm-tanh", "average-tanh"], "measures": ["attention", "leave-one-out"]}, True),
        ({"models": ["bilstm-tanh", "average-tanh"], "measures": ["gradient", "leave-one-out"]}, False),
        ({"models": {"bilstm-tanh": {"measures": ["gradient", "random"]}, "average-tanh": {}}}, False),
        (
            {
                "datasets": ["mock-1", "mock-2"],
                "models": {"bilstm-tanh": {"datasets": ["mock-1"]}, "average-tanh": {"datasets": ["mock-2"]}},
                "measures": ["attention", "leave-one-out"],
            },
            False,
        ),
    ],
)
def test_mean_differences_are_drawn_only_if_there_is_a_bar(changes, drawn):
    changed = dag(SMALL | changes)
    assert ("mean-differences" in {plot.stem for plot in changed.parts.plots(changed.parts.figures)}) == drawn


def test_without_examples_the_explorer_reads_nothing(default: StudyDag):
    empty = dag({**read_config(PROJECT / "config.yaml"), "report": {"examples": 0}})
    assert all(default.explorer.inputs()[kind] for kind in ("instances", "importances", "masks", "adversaries"))
    assert {*map(tuple, empty.explorer.inputs().values())} == {()} and empty.explorer.params()["cells"] == []
    assert empty.explorer.params()["masked"] == [] and empty.page_files() == default.page_files()


def test_pages_follow_from_tables_and_measures(small: StudyDag):
    usual = ["index", "scorecard", "reproduction", "explorer", "timings", "about"]
    assert [page.name for page in small.parts.pages] == [*usual[:2], "attention", "disagreement", *usual[2:]]
    without = dag({**SMALL, "measures": ["gradient", "leave-one-out", "random"]})
    assert "attention" not in [page.name for page in without.parts.pages]


def test_a_protocol_under_another_name_keeps_its_figures_and_criterion():
    renamed = dag({**SMALL, "protocols": {"mine": {"kind": "agreement"}}})
    assert "mine" in renamed.parts.tables and "agreement" not in renamed.parts.tables
    (criteria,) = renamed.parts.files("criteria")
    assert criteria.keys == {"kind": "agreement"} and criteria.path == "results/tables/mine.parquet"
    (scores,) = renamed.parts.files("scores:agreement")
    assert scores.path == "results/scores/mine/mock-2/plain/average-tanh/0-1.parquet"


def test_cheap_measures_share_a_file_and_masked_ones_do_not(small: StudyDag):
    (cell,) = small.runs.cells
    paths = small.paths.all_importances(cell)
    folder = "results/attributions/mock-2/plain/average-tanh/0-1"
    assert paths["attention"] == paths["gradient"] == f"{folder}/cheap.parquet"
    assert paths["leave-one-out"] == f"{folder}/leave-one-out.parquet"
    assert small.groups.of("gradient", masked=True) == "gradient"
    assert list(small.params.measures(cell, "cheap")) == ["attention", "gradient", "random"]


def test_costly_measures_that_explain_each_text_by_itself_may_be_split(tmp_path):
    external = str(tmp_path / "own.parquet")
    pq.write_table(pa.table({"split": ["train"], "instance": [0], "scores": [[1.0]]}), external)
    degraded = {"kind": "degraded", "of": ["leave-one-out", "gradient"], "share": [0.5]}
    measures = {name: {} for name in ("random", "gradient", "leave-one-out", "mutual-information", "deep-shap")}
    config = {
        **SMALL,
        "datasets": ["mock-1", "mock-2"],
        "explain": ["train"],
        "measures": measures | {"ladder": degraded, "own": {"kind": "imported", "path": external}},
        "roar": {"relative": {"levels": [10, 20], "datasets": ["mock-2"], "measures": ["leave-one-out"]}},
    }
    study = dag(config | {"compute": {"jobs": {"mock-2": {"attribution_parts": 2}}}})
    # Counting, pairing and reading need all texts; a cheap measure is not worth it, not even where it masks.
    assert study.groups.splittable == ["leave-one-out", "leave-one-out.ladder.0.5"]
    assert study.split_wildcards["dataset"] == "mock\\-2"
    other, cell = study.runs.cells
    folder = "results/attributions/mock-2/plain/average-tanh/0-1"
    halves = [f"{folder}/leave-one-out.{k}-of-2" for k in (1, 2)]
    assert study.paths.parts(cell, "leave-one-out") == [f"{half}.parquet" for half in halves]
    assert study.paths.parts(cell, "cheap") == study.paths.parts(other, "leave-one-out") == []
    assert all(re.fullmatch(study.wildcards["part"], half.rpartition(".")[2]) for half in halves)
    manifests = [file.path for file in study.sources.files("manifests")]
    assert len(set(manifests)) == len(manifests)
    assert {f"{half}.json" for half in halves} < set(manifests) and f"{folder}/cheap.json" in manifests
    assert not {f"{folder}/leave-one-out.json"} & set(manifests)
    masking = folder.replace("plain", "unmasked")
    assert {f"{masking}/leave-one-out.1-of-2.json", f"{masking}/random.json"} < set(manifests)
    # The files that everything else reads, and those of a study without jobs of other sizes, stay the same.
    assert study.paths.importances(cell, "leave-one-out") == f"{folder}/leave-one-out.parquet"
    assert not dag(config).split_wildcards and f"{folder}/leave-one-out.json" in [
        file.path for file in dag(config).sources.files("manifests")
    ]


def test_wildcards_match_only_the_names_of_the_study(default: StudyDag):
    for name, values in (("dataset", default.study.datasets), ("protocol", default.study.protocols)):
        pattern = re.compile(default.wildcards[name])
        assert all(pattern.fullmatch(value) for value in values) and not pattern.fullmatch("other")
    explained = re.compile(default.explained_pattern)
    assert explained.fullmatch("unmasked") and explained.fullmatch("plain")
    assert all(
        explained.fullmatch(cell.variant) for cell, masked in default.runs.masked.items() if not masked.positions
    )


def test_every_file_has_its_keys_in_the_params(default: StudyDag):
    for table in default.parts.tables:
        params, files = default.table_params(table), default.parts.table_reads(table)
        assert {source: len(read) for source, read in files.items()} == {
            source: len(keys) for source, keys in params["files"].items()
        }
    for group in default.parts.figure_groups:
        assert default.figure_params(group)["plots"]


def test_lists_are_cached(default: StudyDag):
    """Files of a source are listed once, however many tables and figures read them."""
    assert default.sources.files("importances") is default.sources.files("importances")
    assert default.parts.tables is default.parts.tables and default.parts.figures is default.parts.figures


def test_rewording_changes_no_code_and_reaches_the_report(default: StudyDag):
    words = default.report_params()["words"]
    assert words["figure tau-matrix"]["summary"].startswith(
        "Kendall τ between every two measures (rows and columns): mean"
    )
    assert words["page masking"]["title"] == "Masking"


def test_the_library_uses_only_known_names():
    registry = Registry()
    assert [fault for kind in PARTS for part in registry.all(kind) for fault in faults(part, registry)] == []


BROKEN = {
    '@figure("f", reads=["predictions:agreement"])': "the figure 'f' reads 'predictions:agreement'",
    '@figure("f", reads=["published"])': "the figure 'f' reads 'published'",
    '@figure("f", reads=["agreement"], per=["dataset"])': "but no cells; add cells=",
    '@table("erasure", reads=["performance"])': "the table 'erasure' has the name of a protocol",
    '@figure("f", reads=["agremeent"])': (
        "the figure 'f' reads 'agremeent', which is not a table; did you mean 'agreement'?"
    ),
    '@figure("f", reads=["scores:nothing"])': "the figure 'f' reads 'scores:nothing'",
    '@figure("f", params=["randon"])': (
        "the figure 'f' states params 'randon', which does not exist; did you mean 'random'?"
    ),
    '@figure("f", per=["datasets"])': (
        "the figure 'f' states per 'datasets', which does not exist; did you mean 'dataset'?"
    ),
    '@figure("f", page="maskin")': "the figure 'f' states page 'maskin', which does not exist; did you mean 'masking'?",
    '@criterion("c", table="erasur", direction="higher")': "the criterion 'c' states table 'erasur'",
    '@criterion("c", table="erasure", direction="up")': (
        "states direction 'up'; it must be 'higher' or 'lower'."
    ),
    '@table("t", reads=["performanc"])': (
        "the table 't' reads 'performanc', which is not a table; did you mean 'performance'?"
    ),
    '@page("p", title="t", tables=["erasuer"])': "the page 'p' states tables 'erasuer'",
}  # fmt: skip


@pytest.mark.parametrize("declaration", BROKEN)
def test_an_unknown_name_is_refused_before_any_job(declaration: str, tmp_path: Path):
    plugin = tmp_path / "plugin.py"
    kind = declaration[1 : declaration.index("(")]
    plugin.write_text(f'from plumbline.registry import {kind}\n\n{declaration}\ndef mine(drawing):\n    """Mine."""\n')
    with pytest.raises(PlumblineError, match=re.escape(BROKEN[declaration])):
        dag({**SMALL, "plugins": [str(plugin)]})


def test_the_overview_is_the_first_page_whatever_the_order_of_a_plug_in(tmp_path: Path):
    plugin = tmp_path / "plugin.py"
    declaration = '@page("aims", title="Aims", order=-1)'
    plugin.write_text(f'from plumbline.registry import page\n\n{declaration}\ndef aims(content):\n    """Aims."""\n')
    assert [page.name for page in dag({**SMALL, "plugins": [str(plugin)]}).parts.pages][:2] == ["index", "aims"]


def test_a_table_may_not_hide_a_protocol_of_the_study(tmp_path: Path):
    plugin = tmp_path / "plugin.py"
    declared = '@table("mine", reads=["performance"])\ndef mine(sources):\n    """Mine."""\n'
    plugin.write_text(f"from plumbline.registry import table\n\n{declared}")
    with pytest.raises(PlumblineError, match=r"`protocols\.mine`: 'mine' is a table of plugin\.py; rename one"):
        dag({**SMALL, "plugins": [str(plugin)], "protocols": {"mine": {"kind": "agreement"}}})


def test_a_cheap_measure_has_no_job_of_its_own(small: StudyDag):
    with pytest.raises(PlumblineError, match="with 'gradient'; its importances are in 'cheap"):
        small.groups.measures("plain", "average-tanh", "gradient")


def test_the_dag_imports_nothing_heavy():
    code = (
        "import sys\nimport plumbline.dag.study, plumbline.runtime.run, plumbline.tables.names, plumbline.data.raw\n"
        "heavy = {'torch', 'pandas', 'spacy', 'transformers', 'snakemake', 'seaborn', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(LIBRARY)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
