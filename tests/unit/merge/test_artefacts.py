"""The artefacts of a merged study: which run they come from, and which are refused."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plumbline.errors import PlumblineError
from plumbline.merge.artefacts import check_complete, check_equal, check_manifests, find_artefacts
from plumbline.merge.differences import first_difference, same_artefact
from plumbline.merge.jobs import StudyJob, needed_files
from plumbline.store import write_arrays

MOCK, REVIEWS = {"mock-2": {"train": 96}}, {"reviews": {}}
PARAMS = {"raw": "/here/raw", "options": {"hidden": 8, "checkpoint": "/here/tiny"}, "seeds": [0, 1], "code": "c0de"}


def train(dataset: str, seeds: str = "0-1") -> StudyJob:
    """The job that trains a cell; its histories are an input of a table, its weights are not."""
    folder = f"results/models/{dataset}/plain/average-tanh/{seeds}"
    wildcards = {"dataset": dataset, "variant": "plain", "model": "average-tanh", "seeds": seeds}
    outputs = [f"{folder}/{name}" for name in ("weights.safetensors", "history.parquet", "manifest.json")]
    return StudyJob("train", wildcards, [], outputs, outputs[-1], PARAMS)


def prepare(dataset: str) -> StudyJob:
    return StudyJob("prepare", {"dataset": dataset}, [], [f"results/data/{dataset}/dataset.json"], "", {})


def study(*jobs: StudyJob) -> list[StudyJob]:
    """The jobs with those of a table and of the explorer, which reads the data."""
    read = [path for job in jobs for path in job.outputs if not path.endswith(".safetensors")]
    table, explorer = ["results/tables/performance.parquet"], [path for path in read if "/data/" in path]
    read = [path for path in read if path not in explorer]
    return [
        *jobs,
        StudyJob("table", {"table": "performance"}, read, table, "", {}),
        StudyJob("explorer", {}, explorer, ["results/report/explorer"], "", {}),
        StudyJob("report", {}, table, ["results/report/index.html"], "", {}),
    ]


def write(run, *jobs: StudyJob, loss: float = 0.5, seconds: float = 1.0, writer: str = "", **params) -> None:
    """Write the artefacts of jobs into a run, as if it had run them with these values and params."""
    for job in jobs:
        for path in job.outputs:
            file = run.place(path)
            file.parent.mkdir(parents=True, exist_ok=True)
            if file.suffix == ".parquet":
                table = pa.table({"epoch": [1, 2], "value": [loss, float("nan")], "seconds": [seconds, seconds]})
                pq.write_table(table.replace_schema_metadata({"writer": writer}), file)
            elif file.suffix == ".safetensors":
                write_arrays(file, {"w": np.full(2, loss)})
            elif file.name == "manifest.json":
                file.write_text(json.dumps({"config": {**job.params, **params}, "parts": [{"seconds": seconds}]}))
            else:
                file.write_text(json.dumps({"texts": loss}))


def checked(runs, *jobs: StudyJob, partial: bool = False):
    """The artefacts of a merge that passes all checks."""
    artefacts = find_artefacts(study(*jobs), runs)
    check_complete(study(*jobs), runs, artefacts, partial)
    check_manifests(artefacts)
    for artefact in artefacts:
        check_equal(artefact)
    return artefacts


def test_needed_are_the_inputs_of_tables_figures_and_report():
    needed = needed_files(study(train("mock-2"), prepare("mock-2")))
    folder = "results/models/mock-2/plain/average-tanh/0-1"
    assert needed == [f"{folder}/history.parquet", f"{folder}/manifest.json", "results/data/mock-2/dataset.json"]


def test_each_file_comes_from_the_first_run_that_has_it(run):
    a, b = run("a", datasets=MOCK), run("b")
    write(a, train("mock-2"))
    write(b, train("mock-2"), train("reviews"), seconds=2.0, writer="other")
    b.place(train("reviews").outputs[0]).unlink()
    found = {artefact.path: artefact.runs for artefact in checked([a, b], train("mock-2"), train("reviews"))}
    assert found == {
        **{path: [a, b] for path in train("mock-2").outputs}, **{path: [b] for path in train("reviews").outputs[1:]}
    }  # fmt: skip


def test_files_left_over_from_another_study_are_not_taken(run):
    a, b = run("a", datasets=MOCK), run("b", datasets=REVIEWS)
    write(a, train("mock-2"), train("reviews", "0-1"), loss=9.0)
    write(b, train("reviews"))
    found = {artefact.path: artefact.runs for artefact in checked([a, b], train("mock-2"), train("reviews"))}
    assert found[train("reviews").outputs[1]] == [b]


def test_the_folder_of_raw_files_and_paths_may_differ(run):
    a, b = run("a", datasets=MOCK), run("b", datasets=REVIEWS)
    write(a, train("mock-2"), raw="raw", options={"hidden": 8, "checkpoint": "../there/tiny"})
    write(b, train("reviews"))
    assert len(checked([a, b], train("mock-2"), train("reviews"))) == 6


def refusal(runs, *jobs: StudyJob, partial: bool = False) -> str:
    with pytest.raises(PlumblineError) as error:
        checked(runs, *jobs, partial=partial)
    return str(error.value)


def test_other_options_code_and_data_are_refused(run):
    a, b = run("a", datasets=MOCK), run("b", datasets=REVIEWS)
    jobs, manifest = (train("mock-2"), train("reviews")), b.place(train("reviews").manifest)
    write(a, jobs[0])
    write(b, jobs[1], options={"hidden": 9}, code="0ther")
    assert refusal([a, b], *jobs) == (
        f"'{manifest}' was computed with `options.hidden` 9, but it is 8 in the merged study; only parts of one study "
        "can be merged."
    )
    write(b, jobs[1], code="0ther")
    assert refusal([a, b], *jobs) == (
        f"'{manifest}' was computed by another version of the code of rule 'train'; merge with the version of "
        "plumbline that ran all parts, or run this part again with this version."
    )
    owned = StudyJob(**{**vars(jobs[1]), "params": {**PARAMS, "content": "f00d"}})
    write(b, jobs[1], content="beef")
    assert refusal([a, b], jobs[0], owned) == (
        f"'{manifest}' was computed from other data of 'reviews' than the files of the study on this machine; use "
        "the same files."
    )


def test_unequal_results_of_equal_cells_and_unequal_data_are_refused(run):
    a, b = run("a"), run("b")
    write(a, train("mock-2"), prepare("mock-2"))
    write(b, train("mock-2"), loss=0.25)
    assert refusal([a, b], train("mock-2")) == (
        f"'{train('mock-2').outputs[0]}' differs between '{a.name}' and '{b.name}': the runs have different results "
        "for the same cell; leave it out of one of them."
    )
    write(b, prepare("mock-2"), loss=0.25)
    assert refusal([a, b], prepare("mock-2")) == (
        f"'results/data/mock-2/dataset.json' differs between '{a.name}' and '{b.name}': they did not read the same "
        "data of 'mock-2'."
    )


def test_a_truncated_file_is_refused(run):
    a, b = run("a", datasets=MOCK), run("b", datasets=REVIEWS)
    write(a, train("mock-2"))
    write(b, train("reviews"))
    history = b.place(train("reviews").outputs[1])
    history.write_bytes(history.read_bytes()[:-9])
    assert refusal([a, b], train("mock-2"), train("reviews")).startswith(f"'{history}' is damaged. Delete it")


def test_an_incomplete_run_is_refused(run):
    a, b = run("a", datasets=MOCK), run("b", datasets=REVIEWS)
    jobs = train("mock-2"), train("reviews"), prepare("mock-2"), prepare("reviews")
    write(a, *jobs[::2])
    write(b, jobs[3])
    assert refusal([a, b], *jobs) == (
        f"The run in '{b.name}' is incomplete: it has no '{jobs[1].outputs[1]}', which a merge needs."
    )
    write(b, jobs[1])
    b.place(jobs[1].manifest).unlink()
    assert f"it has no '{jobs[1].manifest}'," in refusal([a, b], *jobs)
    write(b, jobs[1])
    a.place(jobs[2].outputs[0]).unlink()
    assert refusal([a, b], *jobs) == (
        f"The run in '{a.name}' is incomplete: it has no 'results/data/mock-2/dataset.json', which a merge needs for "
        "the explorer; add --no-explorer to merge without it."
    )


def test_a_run_that_deleted_its_variants_is_told_how_to_keep_them(run):
    a, b = run("a", datasets=MOCK, compute={"keep_variants": False}), run("b", datasets=REVIEWS)
    variant = StudyJob(
        "manipulate", {"dataset": "mock-2", "variant": "v"}, [], ["results/data/mock-2/v/x.parquet"], "", {}
    )
    assert refusal([a, b], variant) == (
        f"The run in '{a.name}' is incomplete: it has no 'results/data/mock-2/v/x.parquet', which a merge needs; it "
        "was deleted, because `compute.keep_variants` is false: set it to true and run again."
    )


def test_cells_that_no_run_has_are_listed(run):
    a, b = run("a", datasets=MOCK, seeds=["0-1"]), run("b", datasets=REVIEWS, seeds=["2-3"])
    write(a, train("mock-2", "0-1"))
    write(b, train("reviews", "2-3"))
    jobs = [train(dataset, seeds) for dataset in ("mock-2", "reviews") for seeds in ("0-1", "2-3")]
    assert refusal([a, b], *jobs) == (
        "No run has these 2 jobs of the merged study; run them too, or leave them out with --partial:\n"
        "  train mock-2 average-tanh seeds 2-3\n  train reviews average-tanh seeds 0-1"
    )
    assert "; they cannot be left out with --partial:\n" in refusal([a, b], *jobs, partial=True)
    many = [train("mock-2", str(seed)) for seed in range(10, 35)]
    assert refusal([a, b], jobs[0], jobs[3], *many).endswith("average-tanh seeds 29\n  and 5 more")


def test_differences_are_found_by_their_key():
    one, other = {"a": {"b": [1, {"c": 2}]}, "d": "/x/y.py:f"}, {"a": {"b": [1, {"c": 3}]}, "d": "y.py:f"}
    assert first_difference(one, other) == ("a.b.c", 2, 3)
    assert first_difference({"d": "/x/y.py:f"}, {"d": "y.py:f"}) is None
    assert first_difference({"d": "x/y"}, {"d": "z/y"}) == ("d", "x/y", "z/y")
    assert first_difference([1], [1, 2], "k") == ("k", [1], [1, 2])


def test_seconds_and_the_writer_of_a_table_are_no_content(tmp_path):
    def table(name: str, value: float, seconds: float, rows: int = 2):
        columns = {"value": [[value, 1.0]] * rows, "seconds": [seconds] * rows}
        pq.write_table(pa.table(columns).replace_schema_metadata({"writer": name}), tmp_path / name)
        return tmp_path / name

    one = table("a.parquet", float("nan"), 1.0)
    assert same_artefact(one, table("b.parquet", float("nan"), 2.0))
    assert not same_artefact(one, table("c.parquet", 0.0, 1.0))
    assert not same_artefact(one, table("d.parquet", float("nan"), 1.0, rows=3))
