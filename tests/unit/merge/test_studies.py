"""The union of the configs of several runs, and which of them are not parts of one study."""

from pathlib import Path

import pytest

from plumbline.config.resolve import read_config, resolve
from plumbline.config.runs import list_runs
from plumbline.errors import PlumblineError
from plumbline.merge.runs import FinishedRun, read_run
from plumbline.merge.studies import merge_studies
from plumbline.project import PROJECT, study_files
from plumbline.runtime import provenance
from tests.unit.merge.conftest import STUDY

MOCK, REVIEWS = {"mock-2": {"train": 96}}, {"reviews": {}}


def same_study(config, expected=None):
    """Whether a merged config means the same as another one, by default the whole study. Where the files are is no part
    of the meaning: it is the project's folder `raw` if there is one."""
    merged, whole = (resolve(some).study.model_dump(exclude={"raw"}) for some in (config, expected or STUDY))
    assert merged == whole


@pytest.mark.parametrize("name", study_files(PROJECT))
@pytest.mark.parametrize("partial", [False, True])
def test_equal_runs_of_a_published_study_are_the_study(name, partial):
    resolved = resolve(read_config(study_files(PROJECT)[name]), external=False)
    runs = [FinishedRun(part, Path(part), resolved) for part in "ab"]
    merged = resolve(merge_studies(runs, partial), external=False)
    assert partial or merged.study == resolved.study
    assert vars(list_runs(merged)) | {"excluded": []} == vars(list_runs(resolved)) | {"excluded": []}


def test_runs_of_one_dataset_each_are_the_whole_study(run):
    same_study(merge_studies([run("a", datasets=MOCK), run("b", datasets=REVIEWS)]))


def test_entries_keep_the_order_of_the_runs(run):
    config = merge_studies([run("a"), run("b", measures=["attention", "leave-one-out", "random"])])
    assert [*config["datasets"]] == ["reviews", "mock-2"]
    assert [*config["measures"]] == ["random", "leave-one-out", "attention"]
    config = merge_studies([run("c", datasets=MOCK), run("d", datasets=REVIEWS)])
    assert [*config["datasets"]] == ["mock-2", "reviews"]


def test_runs_of_one_model_each_are_the_whole_study(run):
    models = [{"average-tanh": {"hidden": 8}}, {"bag-of-words": {}}]
    # The bag of words has no attention.
    measures = [STUDY["measures"], ["leave-one-out", "random"]]
    runs = [run(name, models=m, measures=n) for name, m, n in zip("ab", models, measures, strict=True)]
    same_study(merge_studies(runs))


def test_runs_keep_their_blocks_of_seeds(run):
    config = merge_studies([run("a", seeds=["0-1", "7"]), run("b", seeds=["0-1"]), run("c", seeds=["2-3"])])
    assert config["seeds"] == ["0-1", "7", "2-3"]


def test_runs_of_one_protocol_each_are_the_whole_study(run):
    config = merge_studies([run("a"), run("b", protocols={"erasure": {"draws": 1}})])
    same_study(config, {**STUDY, "protocols": {**STUDY["protocols"], "erasure": {"draws": 1}}})


def test_lists_of_datasets_are_joined(run):
    bag = {"average-tanh": {"hidden": 8}}
    one = run("a", datasets=MOCK, models={**bag, "bag-of-words": {"datasets": ["mock-2"]}})
    config = merge_studies([one, run("b", datasets={**REVIEWS, "mock-5": {}})])
    assert "datasets" not in config["models"]["average-tanh"]
    assert config["models"]["bag-of-words"]["datasets"] == ["mock-2", "reviews", "mock-5"]


def test_the_sizes_of_jobs_are_those_of_each_dataset(run):
    one = run("a", datasets=MOCK, compute={"jobs": {"mock-2": {"seeds": 1, "time_factor": 2}}})
    other = run("b", datasets=REVIEWS, compute={"token_budget": 99, "keep_variants": False})
    compute = merge_studies([one, other])["compute"]
    assert compute == {
        "jobs": {"mock-2": {"seeds": 1, "time_factor": 2}},
        "keep_variants": False,
    }


def test_a_partial_study_has_the_cells_of_its_runs(run):
    one = run("a", datasets=MOCK, models={"average-tanh": {"hidden": 8}})
    other = run("b", datasets=REVIEWS, seeds=["0-1", "2"], protocols={"erasure": {}})
    cells = [{*part.runs.cells} for part in (one, other)]
    whole = merge_studies([one, other])
    assert {*list_runs(resolve(whole)).cells} > cells[0] | cells[1]
    partial = merge_studies([one, other], partial=True)
    assert partial["protocols"] == {
        "agreement": {"statistics": ["kendall"], "datasets": ["mock-2"]}, "erasure": {"datasets": ["reviews"]},
    }  # fmt: skip
    assert partial["models"]["bag-of-words"] == {"datasets": ["reviews"]}
    assert "seeds" not in partial["models"]["average-tanh"]


def test_a_model_of_one_run_keeps_its_seeds_in_a_partial_study(run):
    one = run("a", seeds=["0-1"], models={"average-tanh": {"hidden": 8}})
    other = run("b", seeds=["2-3"], models={"bag-of-words": {}}, measures=["leave-one-out", "random"])
    models = merge_studies([one, other], partial=True)["models"]
    assert {name: entry["seeds"] for name, entry in models.items()} == {
        "average-tanh": ["0-1"],
        "bag-of-words": ["2-3"],
    }
    assert {cell.seeds for cell in list_runs(resolve(merge_studies([one, other]))).cells} == {"0-1", "2-3"}


def test_without_the_explorer_the_report_shows_no_instances(run):
    config = merge_studies([run("a"), run("b")], explorer=False)
    assert config["report"] == {"examples": 0} and "report" not in merge_studies([run("c"), run("d")])


def test_a_plug_in_that_two_runs_copied_counts_once(make, tmp_path, monkeypatch):
    source = (
        "from plumbline.registry import measure\n\n\n@measure('late', equation='t')\n"
        "def late(evaluator, instances):\n    '''Late words.'''\n    return {}\n"
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(source)
    options = {"plugins": ["mine.py"], "measures": [*STUDY["measures"], "late"]}
    runs = []
    for name in "ab":
        folder = make(name, **options)
        (folder / "mine.py").write_text(source if name == "a" else source.replace("'t'", "'2t'"))
        runs.append(read_run(folder))
    assert merge_studies(runs)["plugins"] == [str(tmp_path / "a" / "mine.py")]
    (tmp_path / "b" / "mine.py").write_text(source.replace("{}", "{1: 2}"))
    provenance._read.cache_clear()
    provenance.code_hash.cache_clear()
    with pytest.raises(PlumblineError, match=r"plug-in 'mine.py' of '.*a' and that of '.*b' have different code"):
        merge_studies(runs)


REFUSED = {
    "an option of a model": (
        {"models": {**STUDY["models"], "average-tanh": {"hidden": 9}}},
        "`models.average-tanh.hidden` is 8 in '.*a' and 9 in '.*b'; runs of one study must have the same options.",
    ),
    "an option of a dataset": ({"datasets": {**REVIEWS, "mock-2": {}}}, "`datasets.mock-2.train` is 96 in .* not set"),
    "an option of training": (
        {"models": {"average-tanh": {"hidden": 8, "training": {"epochs": 2}}, "bag-of-words": {}}},
        "`models.average-tanh.training.epochs` is not set in .* and 2 in",
    ),
    "an option of a protocol": (
        {"protocols": {"agreement": {"statistics": ["spearman"]}}},
        r"`protocols.agreement.statistics` is 'kendall' in .* and 'spearman' in",
    ),
    "the sample": ({"sample": 5}, "`sample` is not set in '.*a' and 5 in '.*b'"),
    "the splits": ({"explain": ["dev"]}, "`explain` is 'test' in '.*a' and 'dev' in '.*b'"),
    "blocks that overlap": (
        {"seeds": ["1-2"]},
        "`seeds` has seed 1 in block '0-1' in '.*a' and in block '1-2' in '.*b'; blocks must be equal or",
    ),
    "jobs of other sizes": (
        {"compute": {"jobs": {"mock-2": {"seeds": 1}}}}, "`compute.jobs.mock-2.seeds` is not set in '.*a' and 1 in",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", REFUSED)
def test_what_is_not_one_study_gets_one_sentence(fault, run):
    changed, message = REFUSED[fault]
    with pytest.raises(PlumblineError, match=message):
        merge_studies([run("a"), run("b", **changed)])
