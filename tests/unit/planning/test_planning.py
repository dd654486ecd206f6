"""Planning: the scheduler by hand, estimates against what was measured, and plans of whole studies."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from plumbline.cli import main
from plumbline.config.resolve import resolve
from plumbline.errors import PlumblineError
from plumbline.planning.absent import absent_files
from plumbline.planning.cost import Costs
from plumbline.planning.distil import gpu_shares, together
from plumbline.planning.jobs import Job, connected
from plumbline.planning.measured import AROUND, Measured, of_results, of_table, rates, read_timings
from plumbline.planning.plan import Machine, planned
from plumbline.planning.schedule import Task, finish_times, longest_chain
from plumbline.planning.show import as_json, duration, sentence, text
from plumbline.planning.sizes import Size, expected, in_folder, shipped
from plumbline.planning.work import Work, Works
from plumbline.protocols.timings.schemas import TIMINGS
from plumbline.store import write_table
from plumbline.training.schemas import HISTORY

# A, then B and C on GPUs, then D.
DIAMOND = [Task(2), Task(3, gpus=1, after=[0]), Task(4, gpus=1, after=[0]), Task(1, after=[1, 2])]
STUDY = {
    "datasets": {"sst": {}, "mock-2": {"train": 96, "dev": 32, "test": 24, "shortest": 4, "longest": 8}},
    "models": {"bilstm-tanh": {"training": {"epochs": 4}}, "small": {"kind": "average-tanh", "hidden": 8}},
    "seeds": ["0-1"],
    "measures": ["attention", "gradient", "leave-one-out"],
    "protocols": {"agreement": {}},
}
TRAINED = Measured("train", ("sst", "bilstm-tanh", ""), "bilstm", "cuda", 10.0, 4.0, 1000, 20.0)


def wall(tasks: list[Task], cores: int, gpus: int | None) -> float:
    return max(finish_times(tasks, cores, gpus))


@pytest.mark.parametrize(
    ("cores", "gpus", "expected"),
    [(8, 1, 2 + 3 + 4 + 1), (8, 2, 2 + 4 + 1), (1, 2, 2 + 3 + 4 + 1), (8, None, 2 + 4 + 1)],
)
def test_the_diamond_by_hand(cores, gpus, expected):
    assert wall(DIAMOND, cores, gpus) == expected


def test_the_longest_chain_of_the_diamond():
    assert longest_chain(DIAMOND) == [0, 2, 3]
    assert longest_chain([]) == []


def test_independent_jobs_fill_the_cores():
    assert finish_times([Task(1)] * 5, 2, None) == [1, 1, 2, 2, 3]


def test_a_job_that_asks_for_more_than_there_is_gets_all_of_it():
    assert finish_times([Task(1, cores=4), Task(1)], 2, None) == [1, 2]


def test_jobs_without_a_gpu_pass_those_that_wait_for_one():
    assert finish_times([Task(5, gpus=1), Task(5, gpus=1), Task(1)], 2, 1) == [5, 10, 1]


def test_recursive_levels_wait_for_each_other_however_many_gpus_there_are():
    """Three measures, ten levels of one second to explain and two to train anew."""
    tasks: list[Task] = []
    for _ in range(3):
        for level in range(10):
            tasks.append(Task(1, gpus=1, after=[len(tasks) - 1] if level else []))
            tasks.append(Task(2, gpus=1, after=[len(tasks) - 1]))
    assert wall(tasks, 64, 1) == 90
    assert wall(tasks, 64, 3) == wall(tasks, 64, 8) == 30
    assert len(longest_chain(tasks)) == 20


def told(rule: str, inputs: list[str], outputs: list[str]) -> dict:
    return {
        "rule": rule,
        "wildcards": {},
        "threads": 1,
        "gpus": 0,
        "minutes": None,
        "inputs": inputs,
        "outputs": outputs,
    }


def test_jobs_wait_for_those_that_make_their_inputs_and_targets_are_none():
    jobs = connected(
        [told("c", ["b", "a"], ["c"]), told("a", ["raw"], ["a"]), told("b", ["a"], ["b"]), told("all", ["c"], [])]
    )
    # Whatever order Snakemake tells them in, a plan is the same.
    assert [job.rule for job in jobs] == ["a", "b", "c"]
    assert [job.after for job in jobs] == [[], [0], [0, 1]]
    assert [job.inputs for job in jobs] == [1, 1, 2]


def work(**changes) -> Work:
    usual = Work("train", 1000, 20.0, ("sst", "net", ""), ("sst", "bilstm-tanh", ""), "bilstm")
    return replace(usual, **changes)


def test_the_same_work_costs_what_it_did():
    assert Costs([], [TRAINED]).work(work(), "cuda") == (10.0, "measured")


def test_work_on_another_device_is_unknown():
    assert Costs([], [TRAINED]).work(work(), "cpu") == (0.0, "unknown")


def test_twice_the_rows_cost_twice_as_much():
    assert Costs([], [TRAINED]).work(work(rows=2000), "cuda") == (20.0, "scaled")


def test_longer_texts_than_were_measured_cost_in_proportion():
    other = work(length=60.0, kinds=("imdb", "bilstm-tanh", ""), names=("imdb", "net", ""))
    assert Costs([], [TRAINED]).work(other, "cuda") == (pytest.approx(30.0), "scaled")


def test_texts_read_once_for_each_word_cost_the_square():
    kinds = ("sst", "bilstm-tanh", "leave-one-out")
    measured = replace(TRAINED, work="attribute", kinds=kinds)
    other = work(work="attribute", kinds=("imdb", *kinds[1:]), length=60.0)
    assert Costs([], [measured]).work(other, "cuda")[0] == pytest.approx(90.0)


def test_between_measured_lengths_the_nearest_counts_with_the_power_that_fits():
    """Seconds that grow with the square root of the length, at lengths 10, 100 and 1000."""
    found = [
        replace(TRAINED, kinds=(f"d{length}", "bilstm-tanh", ""), seconds=length**0.5, length=float(length))
        for length in (10, 100, 1000)
    ]
    costs = Costs([], found)
    assert costs.powers["train", "cuda", ""] == pytest.approx(0.5)
    other = work(kinds=("new", "bilstm-tanh", ""), names=("new", "net", ""), length=64.0)
    assert costs.work(other, "cuda") == (pytest.approx(8.0), "scaled")


def test_texts_of_unknown_length_are_no_near_relatives():
    near = replace(TRAINED, kinds=("d", "bilstm-tanh", ""), length=19.0)
    unknown = replace(TRAINED, kinds=("e", "bilstm-tanh", ""), seconds=99.0, length=0.0)
    other = work(kinds=("new", "bilstm-tanh", ""), names=("new", "net", ""), length=19.0)
    assert Costs([], [unknown, near]).work(other, "cuda") == (10.0, "scaled")
    assert Costs([], [unknown]).work(other, "cuda") == (99.0, "scaled")


def test_the_users_own_timings_count_before_the_packages():
    own = replace(TRAINED, seconds=3.0)
    assert Costs([own], [TRAINED]).work(work(), "cuda")[0] == 3.0


def test_a_name_of_the_study_counts_before_the_kind_behind_it():
    own = [
        replace(TRAINED, seconds=2.0, names=("sst", "net", "")),
        replace(TRAINED, seconds=9.0, names=("sst", "wide", "")),
    ]
    assert Costs(own, []).work(work(), "cuda")[0] == 2.0
    assert Costs(own, []).work(work(names=("sst", "wide", "")), "cuda")[0] == 9.0


def test_another_model_is_a_guess_by_what_it_takes_to_train():
    """An average encoder trains in half of the time, so that the same measure should take half of it."""
    average = replace(TRAINED, kinds=("sst", "average-tanh", ""), family="average", seconds=5.0)
    explained = replace(TRAINED, work="attribute", kinds=("sst", "bilstm-tanh", "lime"), seconds=8.0)
    asked = work(work="attribute", kinds=("sst", "average-tanh", "lime"), family="average")
    assert Costs([], [TRAINED, average, explained]).work(asked, "cuda") == (4.0, "guessed")


def test_a_larger_transformer_is_a_guess_by_its_numbers():
    small = replace(TRAINED, kinds=("sst", "minilm", ""), family="pieces")
    large = work(kinds=("sst", "roberta", ""), family="pieces")
    assert Costs([], [small]).work(large, "cuda") == (10.0 * 12 * 768**2 / (6 * 384**2), "guessed")


def test_a_job_pays_its_start_once_and_rests_on_its_weakest_piece():
    gradient = replace(TRAINED, work="attribute", kinds=("sst", "bilstm-tanh", "gradient"), seconds=1.0)
    around = Measured(AROUND, ("", "", ""), "", "cpu", 0.0, 0.5, 0.0, 0.0)
    one = work(work="attribute", kinds=("sst", "bilstm-tanh", "gradient"))
    cost = Costs([], [gradient, around]).job([one, replace(one, rows=2000)], "cuda")
    assert (cost.startup, cost.seconds, cost.basis) == (4.5, 3.0, "scaled")


def test_light_jobs_go_by_their_files():
    light = Measured("report", ("", "", ""), "", "cpu", 6.0, 2.0, 30, 0.0)
    assert Costs([], [light]).work(Work("report", 60), "cpu") == (12.0, "scaled")


def test_sizes_are_those_of_the_options_and_within_the_limit():
    resolved = resolve(STUDY | {"datasets": STUDY["datasets"] | {"snli": {"preparation": {"limit": 100}}}})
    drawn = expected(resolved, "mock-2", "plain")
    assert drawn.counts == {"train": 96, "dev": 32, "test": 24}
    assert drawn.length == pytest.approx(75 * (4 + 8) / (50 + 100))
    assert expected(resolved, "snli", "plain").counts == {"train": 100, "dev": 100, "test": 100}
    assert expected(resolved, "sst", "plain") == shipped()["sst", False]


def write_summary(results: Path, dataset: str, train: int, test: int, length: float) -> None:
    folder = results / "data" / dataset
    folder.mkdir(parents=True)
    splits = {"train": {"instances": train, "mean_length": length}, "test": {"instances": test, "mean_length": 1.0}}
    (folder / "dataset.json").write_text(json.dumps({"splits": splits}))


def test_what_lies_in_the_working_folder_counts_before_what_is_expected(tmp_path):
    write_summary(tmp_path, "sst", 50, 10, 7.0)
    assert in_folder(tmp_path, "sst", "plain") == Size({"train": 50, "test": 10}, 7.0)
    assert Works(resolve(STUDY), tmp_path).size("sst", "roar/relative/gradient/10").counts["train"] == 50
    assert in_folder(tmp_path, "imdb", "plain") is None


def job(
    rule: str, outputs: list[str], inputs: int = 3, gpus: int = 1, minutes: int | None = None, **wildcards: str
) -> Job:
    return Job(rule, {"variant": "plain", **wildcards}, 1, gpus, minutes, inputs, outputs, [])


def test_the_work_of_jobs(tmp_path):
    write_summary(tmp_path, "sst", 50, 10, 7.0)
    works = Works(resolve(STUDY), tmp_path)
    cell = {"dataset": "sst", "model": "small", "seeds": "0-1"}
    (train,) = works.of(job("train", ["weights.safetensors"], **cell | {"model": "bilstm-tanh"}))
    assert (train.work, train.rows, train.length) == ("train", 50 * 2 * 4, 7.0)
    explained = works.of(job("attribute_together_2", ["a/attention.parquet", "a/gradient.parquet", "a/x.json"], **cell))
    assert [(one.names[2], one.rows) for one in explained] == [("attention", 20), ("gradient", 20)]
    assert {(one.kinds[1], one.family) for one in explained} == {("average-tanh", "average")}
    (masked,) = works.of(job("attribute_masked", ["gradient.parquet"], **cell))
    assert masked.rows == 60 * 2
    (score,) = works.of(job("score", ["s.parquet"], inputs=4 + 3, protocol="agreement", **cell))
    assert (score.work, score.rows, score.kinds[2]) == ("score", 10 * 2 * 3, "agreement")
    assert works.of(job("report", ["index.html"], inputs=5)) == [Work("report", 6)]


def manifest(path: Path, rule: str, keys: dict, config: dict, **costs: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    usual = {"rule": rule, "keys": keys, "config": config, "device": "cpu", "startup_seconds": 1.5}
    path.write_text(json.dumps(usual | costs))


CELL = {"dataset": "sst", "variant": "plain", "model": "mine", "seeds": "0-1"}
AVERAGE = {"encoder": "average", "attention": "tanh", "hidden": 8}
CLASSIFIER = "plumbline.models.classifier:AttentionClassifier"


def test_manifests_of_a_run_tell_its_costs(tmp_path):
    write_summary(tmp_path, "sst", 50, 10, 7.0)
    config = {"object": CLASSIFIER, "options": AVERAGE, "training": {"epochs": 4, "patience": None, "stop_at": None}}
    manifest(tmp_path / "models/m/manifest.json", "train", CELL, config, seconds=8.0, rows=400)
    asked = {name: {"object": "", "options": {}} for name in ("attention", "gradient")}
    config = {"model": CLASSIFIER, "model_options": AVERAGE, "measures": asked}
    keys = CELL | {"measure": "gradient"}
    manifest(tmp_path / "attributions/a/gradient.json", "attribute_together", keys, config, seconds=2.0, rows=20)
    (tmp_path / "models/m/other.json").write_text("{}")
    trained, explained = of_results(tmp_path)
    assert trained == Measured(
        "train", ("sst", "average-tanh", ""), "average", "cpu", 8.0, 1.5, 400, 7.0, ("sst", "mine", "")
    )
    assert (explained.kinds[2], explained.seconds, explained.rows) == ("gradient", 2.0, 20)
    assert explained.startup_seconds == 3.0  # Two measures divide the start of their job.


def test_training_that_ended_early_counts_the_epochs_that_were_asked_for(tmp_path):
    config = {"object": CLASSIFIER, "options": AVERAGE, "training": {"epochs": 8, "patience": 2, "stop_at": None}}
    manifest(tmp_path / "models/m/manifest.json", "train", CELL, config, seconds=8.0, rows=400)
    rows = {"seed": [0, 0], "epoch": [1, 4], "split": ["dev"] * 2, "metric": ["loss"] * 2, "value": [1.0, 1.0]}
    write_table(tmp_path / "models/m/history.parquet", HISTORY, rows | {"seconds": [1.0, 1.0]})
    assert of_results(tmp_path)[0].rows == 400 * 8 / 4


def timings(path: Path, rows: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows, schema=TIMINGS.schema)
    write_table(path, TIMINGS, {name: table[name].to_pylist() for name in table.column_names})
    return path


def test_a_table_of_timings_tells_what_manifests_do_but_for_protocols(tmp_path):
    shared = {
        "rule": "attribute_together",
        "dataset": "sst",
        "variant": "plain",
        "model": "bilstm-tanh",
        "seeds": "0-1",
    }
    costs = {"startup_seconds": 1.5, "device": "cuda:0", "rows": 20}
    rows = [shared | costs | {"measure": name, "seconds": 2.0} for name in ("attention", "gradient")]
    rows.append(shared | costs | {"rule": "score", "seconds": 2.0})
    rows.append(shared | {"measure": "gradient", "device": "cuda", "event": "the token budget was halved"})
    found = of_table(timings(tmp_path / "tables/timings.parquet", rows), tmp_path)
    assert [(one.kinds, one.family, one.device) for one in found] == [
        (("sst", "bilstm-tanh", name), "bilstm", "cuda") for name in ("attention", "gradient")
    ]
    assert [one.startup_seconds for one in found] == [3.0, 3.0]
    asked = work(
        work="attribute", rows=20, length=shipped()["sst", False].length, kinds=found[1].kinds, names=found[1].names
    )
    assert Costs(found, []).work(asked, "cuda") == (2.0, "measured")


def test_no_timings_are_refused_in_one_sentence(tmp_path, monkeypatch):
    for path in (tmp_path / "timings.parquet", tmp_path):
        with pytest.raises(PlumblineError, match="There are no timings in"):
            read_timings(path)
    (tmp_path / "notes.txt").write_text("seconds")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlumblineError, match=r"'notes\.txt' is no table of timings; name a run's"):
        read_timings(Path("notes.txt"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["nowhere.yaml"], "There is no config file 'nowhere.yaml'."),
        (["."], "'.' is a folder; name a config file."),
        (["bad.yaml"], "'bad.yaml', line 2 is not valid YAML: expected ',' or ']', but got ':'."),
        (["--json", "."], "'.' is a folder; name a file for the plans."),
        ([], "There is no Snakefile in this folder; run `plumbline plan` in the project's folder."),
    ],
)
def test_what_cannot_be_planned_is_told_before_anything_is_asked(tmp_path, monkeypatch, capsys, given, said):
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text("a: [1, 2\nb: 3\n")
    assert main(["plan", *given]) == 1
    assert capsys.readouterr().err == f"plumbline: {said}\n"


def test_jobs_that_shared_a_gpu_had_parts_of_it():
    """A second alone and one shared by two, then one alone: 1.5 of 2 seconds each; another run had it alone."""
    assert gpu_shares([[(0, 2)], [(1, 3)], [(10, 14)], []]) == [0.75, 0.75, 1.0, 1.0]


def test_jobs_that_did_the_same_make_one_rate():
    (mean,) = together([TRAINED, replace(TRAINED, seconds=20.0, rows=3000, startup_seconds=6.0)])
    assert (mean.seconds, mean.rows, mean.startup_seconds, mean.jobs) == (15.0, 2000, 5.0, 2)


def test_the_packages_rates_are_one_for_each_work_and_cover_what_a_study_does():
    found = rates()
    keys = [(one.work, one.kinds, one.family, one.device) for one in found]
    assert len(set(keys)) == len(keys)
    assert all(one.seconds >= 0 and one.startup_seconds >= 0 and one.jobs >= 1 for one in found)
    heavy = {"train", "attribute", "score", "trace"}
    assert {(one.work, one.device) for one in found} >= {(name, device) for name in heavy for device in ("cpu", "cuda")}
    assert all(one.rows > 0 and one.length > 0 for one in found if one.work in heavy)


def small_plan(gpus: int = 1):
    jobs = [
        Job("prepare", {"dataset": "sst"}, 1, 0, 60, 1, ["p"], []),
        job("train", ["t"], minutes=1, dataset="sst", model="bilstm-tanh", seeds="0-1"),
        Job("download_sst", {}, 1, 0, None, 0, ["d"], []),
    ]
    jobs[1] = replace(jobs[1], after=[0])
    found = [
        Measured("prepare", ("sst", "", ""), "", "cpu", 3.0, 1.0, 60, 7.0),
        Measured("train", ("sst", "bilstm-tanh", ""), "bilstm", "cuda", 10.0, 4.0, 400, 7.0),
        Measured("train", ("sst", "bilstm-tanh", ""), "bilstm", "cpu", 90.0, 2.0, 400, 7.0),
    ]
    return jobs, Costs([], found), Machine(gpus, 2)


@pytest.mark.parametrize(("gpus", "seconds"), [(1, 14.0), (0, 92.0)])
def test_a_plan_by_hand(tmp_path, gpus, seconds):
    write_summary(tmp_path, "sst", 50, 10, 7.0)
    jobs, costs, machine = small_plan(gpus)
    plan = planned("small", jobs, Works(resolve(STUDY), tmp_path), costs, machine, 1.0)
    assert plan.jobs == 3
    assert plan.wall_seconds == plan.chain_seconds == 4.0 + seconds
    assert plan.chain == ["prepare", "train"]
    assert plan.gpu_seconds == (seconds if gpus else 0.0)
    assert plan.startup_seconds == 1.0 + (4.0 if gpus else 2.0)
    assert plan.shares()["measured"] == 1.0
    assert plan.untimed == ["download"]
    shown = text(plan)
    assert "Not counted: download." in shown and "train" in shown
    assert as_json(plan)["wall_seconds"] == plan.wall_seconds
    # On a core training takes longer than the minute that it asks for, and nothing else does.
    assert {kind.rule: kind.over for kind in plan.kinds} == {"train": int(not gpus), "prepare": 0, "download": 0}
    assert ("Of 1 jobs `train`, 1 may outlast" in shown) == (not gpus)
    assert ("the longest with 1.53 minutes" in shown) == (not gpus)


def test_an_empty_plan_says_that_nothing_is_left(tmp_path):
    _, costs, machine = small_plan()
    plan = planned("done", [], Works(resolve(STUDY), tmp_path), costs, machine, 1.0)
    assert sentence(plan) == "Nothing is left to do."
    assert plan.wall_seconds == 0.0


@pytest.mark.parametrize(
    ("seconds", "said"), [(5, "5 seconds"), (150, "2.5 minutes"), (9000, "2.5 hours"), (7_200_000, "2,000 hours")]
)
def test_durations_in_the_unit_people_say(seconds, said):
    assert duration(seconds) == said


def test_only_files_that_no_rule_brings_are_absent(tmp_path, monkeypatch):
    resolved = resolve({"datasets": ["sst", "movie"], "models": ["average-tanh"], "measures": ["attention"]})
    monkeypatch.delenv("PLUMBLINE_OFFLINE", raising=False)
    assert not [path for path in absent_files(resolved, tmp_path) if "sst/" in path or "vader/" in path]
    monkeypatch.setenv("PLUMBLINE_OFFLINE", "1")
    absent = absent_files(resolved, tmp_path)
    assert str(tmp_path / "sst/trees/train.txt") in absent
    for path in absent:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()
    assert absent_files(resolved, tmp_path) == []


def test_a_plan_outside_of_the_project_is_refused_in_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(json.dumps(STUDY))
    assert main(["plan"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "plumbline: There is no Snakefile in this folder; run `plumbline plan` in the project's folder."
    ]


def test_a_machine_without_cores_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["plan", "--cores", "0"])
    assert "'0' is not a whole number of 1 or more" in capsys.readouterr().err
