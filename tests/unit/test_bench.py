"""Every group of the benchmarks runs at tiny sizes: on the CPU, and on a GPU by `make gpu`."""

import re

import every
import numpy as np
import precision
import pytest
import run
import torch
import training
from data import Task
from sizes import TINY
from timing import Row

from plumbline.config.recipes import Preparation
from plumbline.data.corpus import Corpus, Example
from plumbline.data.prepare import prepare
from plumbline.data.schemas import INSTANCES
from plumbline.registry import Registry
from plumbline.store import write_json, write_table, write_tensors

GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]
ENCODER = ["leave-one-out", "gradient", "input x gradient", "four gradient measures"]
OBJECTS = [*Registry().all("measure"), *Registry().all("protocol")]
# The beginnings of the rows of each group.
ROWS = {
    "kendall": ["Kendall's tau and p"] * 3,
    "flow": ["attention flow"] * 2,
    "measures": ["leave-one-out", *ENCODER, *ENCODER, *ENCODER],
    "attribution": ["lime"] * 3 + ["integrated-gradient-pad", "grad-x-diff", "deep-lift"],
    "counterfactual": ["4 permutations", "adversarial attention"],
    "every": [declared.name for declared in OBJECTS if not declared.facts.get("required")],
    "training": ["training"] * 2,
    "adversary": ["adversaries"] * 2,
    "memory": [],
    "transformer": [
        "building a trained model",
        "fine-tuning",
        *["integrated-gradient", "integrated-gradient-pad", "lime"] * 2,
    ],
}
# On a GPU training has a row for each precision.
ROWS_ON_GPU = {name: ROWS[name] for name in ROWS if name not in ("kendall", "flow")} | {
    "training": ["training"] * 3,
    "transformer": ["fine-tuning", *ROWS["transformer"]],
}
SENTENCES = {
    "every": [f"left out: {declared.name}, " for declared in OBJECTS if declared.facts.get("required")],
    "memory": ["leave-one-out, bilstm-tanh, 1 texts of 70 words, "],
    "transformer": ["fine-tuning, SST's lengths, "] * 2,
}
# The group with long texts on a GPU.
LONG = ("cuda", "transformer")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The folder of a small dataset as the rules `prepare` and `embed` write it."""
    folder = tmp_path_factory.mktemp("prepared")
    examples = [
        Example(split, index % 2, [f"w{7 * index + word}" for word in range(4 + index % 3)])
        for split, count in {"train": 40, "dev": 8, "test": 8}.items()
        for index in range(count)
    ]
    dataset = prepare(Corpus(examples, ["negative", "positive"]), Preparation(), "small")
    write_table(folder / "plain" / "instances.parquet", INSTANCES, dataset.instances)
    write_tensors(folder / "embedding.safetensors", {"embedding": torch.randn(len(dataset.words), 8)})
    write_json(folder / "dataset.json", {"dataset": "small", **dataset.summary})
    return folder


@pytest.mark.parametrize(
    ("device", "group"),
    [*(("cpu", group) for group in ROWS), *(pytest.param("cuda", group, marks=GPU) for group in ROWS_ON_GPU)],
)
def test_group(device, group):
    expected = (ROWS if device == "cpu" else ROWS_ON_GPU)[group]
    results = list(run.run_groups([group], [device], TINY, [], epochs=2))
    rows, sentences = ([result for result in results if isinstance(result, kind)] for kind in (Row, str))
    assert sorted(row.what.split(",")[0] for row in rows) == sorted(expected)
    for row in rows:
        assert np.isfinite([row.plain, row.ours]).all() and min(row.plain, row.ours) > 0
        assert row.what.endswith(device) or group in ("kendall", "flow", "attribution", "every")
        if group in ("attribution", "every"):
            assert re.search(r"scores (differ|correlate) by", row.note), "both versions are compared"
    starts = SENTENCES.get(group, []) + (["fine-tuning, IMDB's lengths, "] * 2 if (device, group) == LONG else [])
    assert len(sentences) == len(starts)
    for sentence, start in zip(sentences, starts, strict=True):
        assert sentence.startswith(start + device)


def test_every_group_has_a_test():
    assert {*ROWS, "precision"} == {*run.GROUPS}


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
def test_plain_training_has_the_losses_of_the_engine(device):
    task = training.one_epoch(64).changed(precision="float32")
    with training.arithmetic():
        scores, losses = training.plain(task, [0, 1], device)
    for seed in (0, 1):
        assert losses[seed] == pytest.approx(training.first_epoch(task, seed, device), abs=1e-4)
    assert losses[0] != pytest.approx(losses[1], abs=1e-4)
    assert scores == pytest.approx(training.engine(task, [0, 1], device), abs=0.1)


def test_prepared_dataset(prepared):
    rows = list(run.run_groups(["counterfactual"], ["cpu"], TINY, [prepared], epochs=2))
    assert ["small (8 test texts)" in row.what for row in rows] == [True, True]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
def test_precision(device, prepared):
    lines = list(precision.lines(Task.prepared(prepared, epochs=2), device, TINY["cuda"]))
    assert [line.split(",")[0] for line in lines] == ["float32", "tf32", "bfloat16"]
    for line in lines:
        scores = [float(number) for number in re.findall(r"(-?[\d.]+) ±", line)]
        assert len(scores) == 2 and 0 <= scores[0] <= 1 and -1 <= scores[1] <= 1


@pytest.mark.parametrize("other", [[1.0, 2.1], [1.0, np.nan]])
def test_versions_that_differ_are_refused(other):
    scores = [np.array([1.0, 2.0])]
    assert "0e+00" in every.check_equal(scores, scores)
    with pytest.raises(every.Refused, match="differ"):
        every.check_equal(scores, [np.array(other)])


def test_command_prints_a_table(capsys):
    run.main(["--tiny", "--devices", "cpu", "--only", "kendall", "flow"])
    head, names, rule, *rows = [line for line in capsys.readouterr().out.splitlines() if line]
    assert "one thread" in head and names.count("|") == rule.count("|") == 6 and len(rows) == 5
    for row in rows:
        what, plain, ours, ratio = row.split(" | ")[:4]
        assert what[2:] and float(plain) >= 0 and float(ours) > 0 and float(ratio) > 0
