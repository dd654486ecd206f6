"""Planning: hand-checked schedules, estimates from measurements, and plans of whole studies."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from plumbline.cli import main
from plumbline.config.resolve import resolve
from plumbline.errors import PlumblineError
from plumbline.planning.absent import absent_files
from plumbline.planning.cost import SNAKEMAKE_OVERHEAD, Costs
from plumbline.planning.graph import as_dot
from plumbline.planning.jobs import PlannedJob, connect_jobs
from plumbline.planning.measured import Measurement, from_results, from_table, rates, read_timings
from plumbline.planning.plan import Machine, plan_jobs
from plumbline.planning.schedule import Task, finish_times, longest_chain
from plumbline.planning.show import as_json, as_text, duration, plan_sentence
from plumbline.planning.sizes import Size, expected_size, packaged_sizes, stored_size
from plumbline.planning.work import Work, Works
from plumbline.protocols.timings.schemas import TIMINGS
from plumbline.store import write_table

# A, then B and C on GPUs, then D.
DIAMOND = [Task(2), Task(3, gpus=1, after=[0]), Task(4, gpus=1, after=[0]), Task(1, after=[1, 2])]
STUDY = {
    "datasets": {"sst": {}, "mock-2": {"train": 96, "dev": 32, "test": 24, "shortest": 4, "longest": 8}},
    "models": {"bilstm-tanh": {"training": {"epochs": 4}}, "small": {"kind": "average-tanh", "hidden": 8}},
    "seeds": ["0-1"],
    "measures": ["attention", "gradient", "leave-one-out"],
    "protocols": {"agreement": {}},
}
NET = Work("train", 1000, 20.0, ("sst", "net", ""), ("sst", "bilstm-tanh", ""), "bilstm")
LOO = ("sst", "bilstm-tanh", "leave-one-out")
TRAINED = Measurement(NET, "cuda", 10.0, 4.0)


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


def test_a_job_that_requests_more_than_the_machine_has_gets_all_of_it():
    assert finish_times([Task(1, cores=4), Task(1)], 2, None) == [1, 2]


def test_jobs_without_a_gpu_pass_those_that_wait_for_one():
    assert finish_times([Task(5, gpus=1), Task(5, gpus=1), Task(1)], 2, 1) == [5, 10, 1]


def test_recursive_levels_wait_for_each_other_however_many_gpus_there_are():
    """Three measures, ten levels of one second to explain and two to retrain."""
    tasks: list[Task] = []
    for _ in range(3):
        for level in range(10):
            tasks.append(Task(1, gpus=1, after=[len(tasks) - 1] if level else []))
            tasks.append(Task(2, gpus=1, after=[len(tasks) - 1]))
    assert wall(tasks, 64, 1) == 90
    assert wall(tasks, 64, 3) == wall(tasks, 64, 8) == 30
    assert len(longest_chain(tasks)) == 20


def record(rule: str, inputs: list[str], outputs: list[str]) -> dict:
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
    jobs = connect_jobs(
        [
            record("c", ["b", "a"], ["c"]),
            record("a", ["raw"], ["a"]),
            record("b", ["a"], ["b"]),
            record("all", ["c"], []),
        ]
    )
    # The plan does not depend on the order of the records.
    assert [job.rule for job in jobs] == ["a", "b", "c"]
    assert [job.after for job in jobs] == [[], [0], [0, 1]]
    assert [job.inputs for job in jobs] == [1, 1, 2]


def measured(seconds: float = 10.0, **changes) -> Measurement:
    return Measurement(replace(NET, **changes), "cuda", seconds, 4.0)


def test_the_same_work_costs_what_it_did():
    assert Costs([TRAINED], []).work(NET, "cuda") == (10.0, "measured")


def test_work_on_another_device_is_unknown():
    assert Costs([TRAINED], []).work(NET, "cpu") == (0.0, "unknown")


def test_twice_the_rows_cost_twice_as_much():
    assert Costs([TRAINED], []).work(replace(NET, rows=2000), "cuda") == (20.0, "scaled")


@pytest.mark.parametrize(("kinds", "seconds"), [(NET.kinds, 20.0), (LOO, 40.0)])
def test_longer_texts_cost_by_the_root_of_their_length_or_in_proportion_if_read_for_each_word(kinds, seconds):
    longer = replace(NET, kinds=kinds, length=80.0, names=("imdb", "net", ""))
    assert Costs([measured(kinds=kinds)], []).work(longer, "cuda") == (pytest.approx(seconds), "scaled")


def test_the_median_of_the_same_model_on_other_datasets_counts():
    found = [measured(seconds, names=(str(seconds), "net", "")) for seconds in (1.0, 3.0, 100.0)]
    assert Costs(found, []).work(NET, "cuda") == (pytest.approx(3.0), "scaled")


def test_the_users_own_timings_count_before_the_packages():
    assert Costs([measured(3.0)], [TRAINED]).work(NET, "cuda")[0] == 3.0


def test_a_name_of_the_study_counts_before_the_kind_behind_it():
    own = [measured(2.0), measured(9.0, names=("sst", "wide", ""))]
    assert Costs(own, []).work(NET, "cuda")[0] == 2.0
    assert Costs(own, []).work(replace(NET, names=("sst", "wide", "")), "cuda")[0] == 9.0


def test_another_model_is_a_guess_by_the_nearest_kind():
    """The same encoder before other models of words, and these before models of images."""
    pixels, average = measured(1.0, kinds=("", "resnet", ""), family="pixels"), {"kinds": ("", "average-tanh", "")}
    words, same = measured(2.0, family="average", **average), measured(3.0, kinds=("", "bilstm-dot", ""))
    other = replace(NET, kinds=("sst", "mine", ""), names=("sst", "mine", ""))
    for found, seconds in (([pixels, words, same], 3.0), ([pixels, words], 2.0), ([pixels], 1.0)):
        assert Costs([], found).work(other, "cuda") == (seconds, "guessed")


def test_a_job_counts_its_startup_once_and_has_its_weakest_basis():
    cost = Costs([TRAINED], []).job([NET, replace(NET, rows=2000)], "cuda")
    assert (cost.startup, cost.seconds, cost.basis) == (4.0 + SNAKEMAKE_OVERHEAD, 30.0, "scaled")


def test_light_jobs_cost_what_they_did():
    assert Costs([], [Measurement(Work("report"), "cpu", 6.0, 2.0)]).work(Work("report"), "cpu") == (6.0, "measured")


def test_sizes_are_those_of_the_options_and_within_the_limit():
    resolved = resolve(STUDY | {"datasets": STUDY["datasets"] | {"snli": {"preparation": {"limit": 100}}}})
    drawn = expected_size(resolved, "mock-2", "plain")
    assert drawn.counts == {"train": 96, "dev": 32, "test": 24}
    assert drawn.length == pytest.approx(75 * (4 + 8) / (50 + 100))
    assert expected_size(resolved, "snli", "plain").counts == {"train": 100, "dev": 100, "test": 100}
    assert expected_size(resolved, "sst", "plain") == packaged_sizes()["sst", False]


def test_sizes_of_own_data_are_those_of_its_file(tmp_path):
    rows = [f"{'word ' * (1 + k % 3)},{k % 2},{split}" for split in ("train", "dev", "test") for k in range(6)]
    (tmp_path / "own.csv").write_text("\n".join(["text,label,split", *rows, "x,,train"]))
    entry = {"kind": "table", "path": str(tmp_path / "own.csv"), "text": "text", "label": "label", "split": "split"}
    own = expected_size(resolve(STUDY | {"datasets": {"own": entry}}), "own", "plain")
    assert (own.counts, own.length) == ({"train": 6, "dev": 6, "test": 6}, 2.0)
    absent = {**entry, "path": str(tmp_path / "absent.csv")}
    assert expected_size(resolve(STUDY | {"datasets": {"own": absent}}), "own", "plain").counts == {}


def write_summary(results: Path, dataset: str, train: int, test: int, length: float) -> None:
    folder = results / "data" / dataset
    folder.mkdir(parents=True)
    splits = {"train": {"instances": train, "mean_length": length}, "test": {"instances": test, "mean_length": 1.0}}
    (folder / "dataset.json").write_text(json.dumps({"splits": splits}))


def test_stored_sizes_count_before_expected_ones(tmp_path):
    write_summary(tmp_path, "sst", 50, 10, 7.0)
    assert stored_size(tmp_path, "sst", "plain") == Size({"train": 50, "test": 10}, 7.0)
    assert Works(resolve(STUDY), tmp_path).size("sst", "roar/relative/gradient/10").counts["train"] == 50
    assert stored_size(tmp_path, "imdb", "plain") is None


def job(
    rule: str, outputs: list[str], inputs: int = 3, gpus: int = 1, minutes: int | None = None, **wildcards: str
) -> PlannedJob:
    return PlannedJob(rule, {"variant": "plain", **wildcards}, 1, gpus, minutes, inputs, outputs, [])


def test_the_work_of_jobs(tmp_path):
    write_summary(tmp_path, "sst", 50, 10, 7.0)
    works = Works(resolve(STUDY), tmp_path)
    cell = {"dataset": "sst", "model": "small", "seeds": "0-1"}
    (train,) = works.of_job(job("train", ["weights.safetensors"], **cell | {"model": "bilstm-tanh"}))
    assert (train.work, train.rows, train.length) == ("train", 50 * 2 * 4, 7.0)
    explained = works.of_job(job("attribute", ["a/cheap.parquet", "a/cheap.json"], measures="cheap", **cell))
    assert [(unit.names[2], unit.rows) for unit in explained] == [("attention", 20), ("gradient", 20)]
    assert {(unit.kinds[1], unit.family) for unit in explained} == {("average-tanh", "average")}
    (masked,) = works.of_job(
        job("attribute", ["gradient.parquet"], measures="gradient", **cell | {"variant": "unmasked"})
    )
    assert masked.rows == 60 * 2
    (score,) = works.of_job(job("score", ["s.parquet"], inputs=4 + 3, protocol="agreement", **cell))
    assert (score.work, score.rows, score.kinds[2]) == ("score", 10 * 2 * 3, "agreement")
    assert works.of_job(job("report", ["index.html"], inputs=5)) == [Work("report")]


def test_a_part_of_the_instances_is_a_part_of_the_work(tmp_path):
    write_summary(tmp_path, "sst", 50, 10, 7.0)
    works = Works(resolve(STUDY), tmp_path)
    cell = {"dataset": "sst", "model": "small", "seeds": "0-1", "measures": "leave-one-out"}
    (whole,) = works.of_job(job("attribute", ["a.parquet"], **cell))
    (part,) = works.of_job(job("attribute_part", ["a.2-of-4.parquet"], part="2-of-4", **cell))
    assert part == replace(whole, rows=whole.rows / 4) and whole.rows == 20
    assert works.of_job(job("join_importances", ["a.parquet"], **cell)) == [Work("summarise")]


def test_a_protocol_that_computes_measures_costs_as_much_as_these_at_each_level(tmp_path):
    write_summary(tmp_path, "sst", 50, 10, 7.0)
    model = {"kind": "bilstm-tanh", "training": {"masking": "uniform"}}
    for recompute, expected in [
        (True, [("attribute", name, 10 * 2 * 3) for name in STUDY["measures"]]),
        (False, [("score", "masked_erasure", 10 * 2)]),
    ]:
        protocols = {"masked_erasure": {"levels": [20, 40, 60], "recompute": recompute}}
        works = Works(resolve(STUDY | {"models": {"masked": model}, "protocols": protocols}), tmp_path)
        wildcards = CELL | {"model": "masked", "protocol": "masked_erasure"}
        found = works.of_job(job("score_models", ["s.parquet"], **wildcards))
        assert [(unit.work, unit.kinds[2], unit.rows) for unit in found] == expected


def manifest(path: Path, rule: str, keys: dict, config: dict, each: Sequence[dict] = ({},), **costs: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [{"keys": keys | own, "startup_seconds": 1.5} | costs for own in each]
    path.write_text(json.dumps({"rule": rule, "config": config, "device": "cpu", "parts": parts}))


CELL = {"dataset": "sst", "variant": "plain", "model": "mine", "seeds": "0-1"}


def test_manifests_of_a_run_hold_its_costs(tmp_path):
    """Training counts all configured epochs, and two measures divide the start-up of their job."""
    write_summary(tmp_path, "sst", 50, 10, 7.0)
    works = Works(resolve(STUDY), tmp_path)
    keys = CELL | {"model": "small"}
    config = {"seeds": [0, 1], "training": {"epochs": 4, "patience": 1}}
    manifest(tmp_path / "models/m/manifest.json", "train", keys, config, seconds=8.0, rows=100)
    config = {"measures": {"attention": {}, "gradient": {}}}
    each = [{"measure": "attention"}, {"measure": "gradient"}]
    manifest(tmp_path / "attributions/a/cheap.json", "attribute", keys, config, each, seconds=2.0, rows=20)
    manifest(tmp_path / "scores/s/other.json", "score", CELL | {"protocol": "gone"}, {}, seconds=2.0, rows=20)
    (tmp_path / "models/m/other.json").write_text("{}")
    trained, _, explained = from_results(tmp_path, works)
    names, kinds = ("sst", "small", ""), ("sst", "average-tanh", "")
    assert trained == Measurement(Work("train", 400, 7.0, names, kinds, "average"), "cpu", 8.0, 1.5)
    assert (explained.work.kinds[2], explained.seconds, explained.work.rows) == ("gradient", 2.0, 20)
    assert explained.startup_seconds == 3.0


def timings(path: Path, rows: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows, schema=TIMINGS.schema)
    write_table(path, TIMINGS, {name: table[name].to_pylist() for name in table.column_names})
    return path


def test_a_table_of_timings_holds_the_same_costs_but_for_protocols(tmp_path):
    shared = {
        "rule": "attribute",
        "dataset": "sst",
        "variant": "plain",
        "model": "bilstm-tanh",
        "seeds": "0-1",
    }
    costs = {"startup_seconds": 1.5, "device": "cuda:0", "rows": 20}
    rows = [shared | costs | {"measure": name, "seconds": 2.0} for name in ("attention", "gradient")]
    rows.append(shared | costs | {"rule": "score", "seconds": 2.0})
    rows.append(shared | {"measure": "gradient", "device": "cuda", "event": "the token budget was halved"})
    works = Works(resolve(STUDY), tmp_path)
    found = from_table(timings(tmp_path / "tables/timings.parquet", rows), works)
    assert [(unit.work.names, unit.work.family, unit.device) for unit in found] == [
        (("sst", "bilstm-tanh", name), "bilstm", "cuda") for name in ("attention", "gradient")
    ]
    assert [unit.startup_seconds for unit in found] == [3.0, 3.0]
    assert Costs(found, []).work(found[1].work, "cuda") == (2.0, "measured")


def test_the_timings_of_a_recorded_run_are_read(tmp_path):
    cell = {"rule": "train", "dataset": "sst", "variant": "plain", "model": "bilstm-tanh", "seeds": "0"}
    costs = {"seconds": 6.0, "startup_seconds": 1.0, "peak_rss": 9.0, "peak_gpu": 0.0, "rows": 9, "device": "cuda"}
    file = timings(tmp_path / "run/tables/timings.parquet", [cell | costs | {"rows_per_second": 1.5, "event": None}])
    works = Works(resolve(STUDY), tmp_path / "results")
    assert read_timings(tmp_path / "run", works) == from_table(file, works) != []


def test_no_timings_are_refused_in_one_sentence(tmp_path, monkeypatch):
    works = Works(resolve(STUDY), tmp_path)
    for path in (tmp_path / "timings.parquet", tmp_path):
        with pytest.raises(PlumblineError, match="There are no timings in"):
            read_timings(path, works)
    (tmp_path / "notes.txt").write_text("seconds")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlumblineError, match=r"'notes\.txt' is not a table of timings; give a run's"):
        read_timings(Path("notes.txt"), works)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["nowhere.yaml"], "There is no config file 'nowhere.yaml'; check the path."),
        (["."], "'.' is a folder; give a config file."),
        (["bad.yaml"], "'bad.yaml', line 2 is not valid YAML: expected ',' or ']', but got ':'."),
        (["--json", "."], "`--json` is '.', a folder; give the name of a file."),
        (["jain-walace"], "There is no study or file 'jain-walace'; did you mean 'jain-wallace'?"),
    ],
)
def test_unplannable_arguments_are_refused_before_the_dry_run(tmp_path, monkeypatch, capsys, given, message):
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text("a: [1, 2\nb: 3\n")
    assert main(["plan", *given]) == 1
    assert capsys.readouterr().err == f"plumbline: {message}\n"


def test_the_packages_rates_are_one_for_each_work_and_cover_what_a_study_does():
    found = rates()
    keys = [(unit.work, unit.device) for unit in found]
    assert len(set(keys)) == len(keys)
    assert all(unit.seconds >= 0 and unit.startup_seconds >= 0 for unit in found)
    heavy = {"train", "attribute", "score", "trace"}
    assert {(unit.work.work, unit.device) for unit in found} >= {
        (name, kind) for name in heavy for kind in ("cpu", "cuda")
    }


def small_plan(gpus: int = 1):
    jobs = [
        PlannedJob("prepare", {"dataset": "sst"}, 1, 0, 60, 1, ["p"], []),
        job("train", ["t"], minutes=1, dataset="sst", model="bilstm-tanh", seeds="0-1"),
        PlannedJob("download_sst", {}, 1, 0, None, 0, ["d"], []),
    ]
    jobs[1] = replace(jobs[1], after=[0])
    prepared = Work("prepare", 60, 7.0, ("sst", "", ""), ("sst", "", ""))
    trained = Work("train", 400, 7.0, ("sst", "bilstm-tanh", ""), ("sst", "bilstm-tanh", ""), "bilstm")
    found = [
        Measurement(prepared, "cpu", 3.0, 1.0),
        Measurement(trained, "cuda", 10.0, 4.0),
        Measurement(trained, "cpu", 90.0, 2.0),
    ]
    return jobs, Costs(found, []), Machine(gpus, 2)


@pytest.mark.parametrize(("gpus", "seconds"), [(1, 14.0), (0, 92.0)])
def test_a_plan_by_hand(tmp_path, gpus, seconds):
    write_summary(tmp_path, "sst", 50, 10, 7.0)
    jobs, costs, machine = small_plan(gpus)
    plan = plan_jobs("small", jobs, Works(resolve(STUDY), tmp_path), costs, machine, 1.0)
    assert plan.jobs == 3
    assert plan.wall_seconds == plan.chain_seconds == pytest.approx(4.0 + seconds + 2 * SNAKEMAKE_OVERHEAD)
    assert plan.chain == ["prepare", "train"]
    assert plan.gpu_seconds == pytest.approx(seconds + SNAKEMAKE_OVERHEAD if gpus else 0.0)
    assert plan.startup_seconds == pytest.approx(1.0 + (4.0 if gpus else 2.0) + 2 * SNAKEMAKE_OVERHEAD)
    assert plan.fraction_by_basis()["measured"] == pytest.approx(1.0)
    assert plan.untimed == ["download"]
    shown = as_text(plan)
    assert "Not counted: download." in shown and "train" in shown
    assert as_json(plan)["wall_seconds"] == plan.wall_seconds
    # On a core only training takes longer than the minute that it requests.
    assert {rule.rule: rule.over for rule in plan.rules} == {"train": int(not gpus), "prepare": 0, "download": 0}
    assert ("Of 1 jobs `train`, 1 may exceed" in shown) == (not gpus)
    assert ("the longest with 1.54 minutes" in shown) == (not gpus)


def test_an_empty_plan_says_that_nothing_is_left(tmp_path):
    _, costs, machine = small_plan()
    plan = plan_jobs("done", [], Works(resolve(STUDY), tmp_path), costs, machine, 1.0)
    assert plan_sentence(plan) == "Nothing is left to do."
    assert plan.wall_seconds == 0.0


@pytest.mark.parametrize(
    ("seconds", "shown"), [(5, "5 seconds"), (150, "2.5 minutes"), (9000, "2.5 hours"), (7_200_000, "2,000 hours")]
)
def test_durations_have_a_readable_unit(seconds, shown):
    assert duration(seconds) == shown


def test_only_files_that_no_rule_makes_are_absent(tmp_path, monkeypatch):
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


def test_a_machine_without_cores_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["plan", "--cores", "0"])
    assert "'0' is not a whole number of 1 or more" in capsys.readouterr().err


def test_the_rule_graph_has_each_rule_and_edge_once():
    records = [{"rule": "train", "outputs": ["a"], "inputs": []}, {"rule": "train", "outputs": ["b"], "inputs": []}]
    records += [
        {"rule": "report", "outputs": ["c"], "inputs": ["a", "b"]},
        {"rule": "all", "outputs": [], "inputs": []},
    ]
    rest = {"wildcards": {}, "threads": 1, "gpus": 0, "minutes": None}
    graph = as_dot(connect_jobs([job | rest for job in records]))
    assert graph.splitlines()[2:-1] == ['"report";', '"train";', '"train" -> "report";']


def test_without_graphviz_the_rules_are_not_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["graph", str(tmp_path / "rules.svg")]) == 1
    assert "install graphviz" in capsys.readouterr().err
