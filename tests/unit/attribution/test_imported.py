"""Importances from a file: which of its rows are read, and one sentence for each fault."""

import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pandas as pd
import pytest

from plumbline.attribution.files import write_importances
from plumbline.attribution.run import MeasureCall, attribute
from plumbline.config.external import locate_files
from plumbline.config.resolve import resolve
from plumbline.config.runs import list_runs
from plumbline.conformance import example_images, example_instances, example_model
from plumbline.data.instances import Instances
from plumbline.data.schemas import INSTANCES
from plumbline.errors import PlumblineError
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Registry, load
from plumbline.store import write_table

REGISTRY = Registry()
IMPORTED = load(REGISTRY.get("measure", "imported").pointer)
CELL = {"dataset": "sst", "variant": "plain", "model": "bilstm"}


def frame(instances: Instances, draws: int = 0, **columns: Any) -> pd.DataFrame:
    """Importances drawn at random, as a user's file has them."""
    draw = np.random.default_rng(draws)
    scores = [draw.random(int(free.sum())) for free in instances.maskable]
    table = {"split": instances.split, "instance": instances.instance, "scores": scores}
    return pd.DataFrame(table).assign(**columns)


def read(path, table: pd.DataFrame, instances: Instances, seed: int = 0, cell=CELL):
    table.to_parquet(path)
    evaluator = Evaluator(example_model(REGISTRY.get("model", "average-tanh")), seed, 10_000)
    evaluator.cell = cell
    return IMPORTED(evaluator, instances, path=str(path))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "theirs.parquet"


@pytest.mark.parametrize("make", [example_instances, example_images])
def test_scores_come_in_the_order_of_the_instances(path, make):
    instances = make(6, splits=("train", "test"))
    table = frame(instances)
    shuffled = table.sample(frac=1, random_state=0)
    found = read(path, shuffled, instances.take([5, 0, 3]))
    for position, i in enumerate([5, 0, 3]):
        np.testing.assert_allclose(found.scores[position], table["scores"][i], rtol=1e-6)
    assert found.target is None and found.scores[0].dtype == np.float32


@pytest.mark.parametrize("name", ["dataset", "variant", "model", "seed"])
@pytest.mark.parametrize("categories", [False, True])
def test_columns_restrict_the_rows(path, name, categories):
    instances = example_instances(4)
    right = {**CELL, "seed": 3}[name]
    wrong = 4 if name == "seed" else "other"
    wanted = frame(instances, 1)
    table = pd.concat([frame(instances, 0, **{name: wrong}), wanted.assign(**{name: right})])
    table = table.astype({name: "category", "split": "category"}) if categories else table
    found = read(path, table, instances, seed=3)
    for mine, theirs in zip(found.scores, wanted["scores"], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_the_class_that_was_explained_is_kept(path):
    instances = example_instances(4)
    assert read(path, frame(instances, target=[1, 0, 1, 1]), instances).target.tolist() == [1, 0, 1, 1]


def test_what_plumbline_writes_can_be_read_again(path, tmp_path):
    instances = example_instances(5)
    evaluator = Evaluator(example_model(REGISTRY.get("model", "average-tanh")).requires_grad_(False), 0, 10_000)
    measures = {"random": MeasureCall(load(REGISTRY.get("measure", "random").pointer), {})}
    columns, _ = attribute([evaluator], instances, measures)
    table = {**columns["random"], "target": instances.label}
    write_importances(path, {"random": table})
    again, _ = attribute([evaluator], instances, {"theirs": MeasureCall(IMPORTED, {"path": str(path)})}, cell=CELL)
    for mine, theirs in zip(again["theirs"]["scores"], columns["random"]["scores"], strict=True):
        assert np.array_equal(mine, theirs)
    # A file may hold several measures: the one of this name is taken, and without it one must be named.
    other = {**table, "scores": [scores + 1 for scores in table["scores"]]}
    write_importances(path, {"random": table, "other": other})
    named, _ = attribute([evaluator], instances, {"t": MeasureCall(IMPORTED, {"path": str(path), "measure": "other"})})
    for mine, theirs in zip(named["t"]["scores"], columns["random"]["scores"], strict=True):
        assert np.allclose(mine, theirs + 1)
    with pytest.raises(PlumblineError, match="holds the measures other, random; set `measure` to one of them"):
        attribute([evaluator], instances, {"t": MeasureCall(IMPORTED, {"path": str(path)})})


def test_the_example_of_the_page_makes_such_a_file(tmp_path, path, monkeypatch):
    page = Path(__file__).parents[3] / "docs" / "how-to" / "extending.md"
    (found,) = re.findall(r"\n    import pandas as pd\n(.*?)\n\n[^ \n]", page.read_text(encoding="utf-8"), re.S)
    instances = example_instances(5)
    folder = tmp_path / "results/data/movie/plain"
    folder.mkdir(parents=True)
    columns = {name: getattr(instances, name) for name in ("split", "instance", "label", "ids", "maskable")}
    tokens = [[f"w{number}" for number in ids] for ids in instances.ids]
    write_table(folder / "instances.parquet", INSTANCES, {**columns, "tokens": tokens})
    monkeypatch.chdir(tmp_path)
    exec(dedent(found), {"pd": pd, "my_probability": lambda words: sum(int(word[1:]) for word in words) / 1000})
    read_back = read(path, pd.read_parquet("theirs.parquet"), instances, cell={**CELL, "dataset": "movie"})
    for ids, free, scores in zip(instances.ids, instances.maskable, read_back.scores, strict=True):
        np.testing.assert_allclose(scores, ids[free] / 1000, atol=1e-6)
    assert read_back.target.tolist() == [1] * 5


def lacking(table):
    return table.drop(index=[1, 3])


def with_scores(position, value):
    def change(table):
        scores = table["scores"].tolist()
        scores[position] = value
        return table.assign(scores=scores)

    return change


FAULTS = {
    "missing": (
        lacking,
        r"lacks 2 of 6 instances, such as 1 of split 'test'; add scores for all explained instances\.",
    ),
    "other dataset": (lambda table: table.assign(dataset="movie"), r"\(dataset sst, .*seed 0\) lacks 6 of 6"),
    "other seed": (lambda table: table.assign(seed=7), r"seed 0\) lacks 6 of 6 instances"),
    "twice": (
        lambda table: pd.concat([table, table[4:5]]),
        r"has instance 4 of split 'test' more than once; keep one row\.",
    ),
    "short": (
        with_scores(2, [0.5]),
        r"instance 2 of split 'test' has 1 scores and 4 words; give one score for each word\.",
    ),
    "nan": (
        with_scores(0, [0.1, np.nan]),
        r"instance 0 of split 'test' has a score that is not a finite number\.",
    ),
    "infinite": (with_scores(0, [0.1, np.inf]), r"instance 0 .* has a score that is not a finite number\."),
    "no list": (lambda table: table.assign(scores=1.0), r"The column 'scores' .* is double; .*lists of numbers\."),
    "words": (lambda table: table.assign(scores=[["a"]] * 6), r"The column 'scores' .* must hold lists of numbers\."),
    "text": (lambda table: table.assign(instance="a"), r"The column 'instance' .* must hold whole numbers\."),
    "empty": (with_scores(2, None), r"The column 'scores' of .* is empty in 1 rows; give a value in every row\."),
    "nameless": (lambda table: table.drop(columns="split"), r"has no column 'split'; it must have split, instance"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_one_sentence(path, name):
    change, message = FAULTS[name]
    instances = example_instances(6)
    with pytest.raises(PlumblineError, match=message) as caught:
        read(path, change(frame(instances)), instances)
    assert "\n" not in str(caught.value)


# The config.


def study(tmp_path, entry: dict[str, Any], **changes: Any) -> dict[str, Any]:
    measures = {"random": {}, "theirs": {"kind": "imported", **entry}}
    config = {"datasets": ["sst"], "models": ["bilstm-tanh"], "measures": measures, **changes}
    return locate_files(config, [tmp_path])


def test_a_file_next_to_the_study_is_found(tmp_path):
    frame(example_instances(2)).to_parquet(tmp_path / "theirs.parquet")
    found = resolve(study(tmp_path, {"path": "theirs.parquet"})).options["measure", "theirs"]["path"]
    assert (tmp_path / "theirs.parquet").samefile(found)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, r"`measures.theirs.path` is missing; measure 'imported' needs it\."),
        ({"path": "gone.parquet"}, r"`measures.theirs.path`: there is no file '.*gone.parquet'\."),
        ({"path": "text.parquet"}, r"the file '.*text.parquet' is not Parquet"),
        ({"path": "bare.parquet"}, r"has no column 'scores'; it must have split, instance, scores and may have"),
        ({"pth": "x"}, r"`measures.theirs.pth` .*did you mean 'path'\?"),
    ],
)
def test_faults_of_the_config_are_reported_before_any_work(tmp_path, entry, message):
    (tmp_path / "text.parquet").write_text("not a table")
    frame(example_instances(2)).drop(columns="scores").to_parquet(tmp_path / "bare.parquet")
    with pytest.raises(PlumblineError, match=message):
        resolve(study(tmp_path, entry))


def test_words_are_masked_by_a_file_but_not_recursively(tmp_path, path):
    frame(example_instances(2)).to_parquet(path)
    entry = {"path": path.name}
    runs = list_runs(resolve(study(tmp_path, entry, roar={"relative": {"levels": [10], "strategies": ["roar"]}})))
    assert any(masked.measure == "theirs" for masked in runs.masked.values())
    for options in ({}, {"measures": ["theirs"]}, {"strategies": ["roar", "recursive"]}):
        with pytest.raises(
            PlumblineError, match=r"`roar.relative` masks recursively, .*'theirs' reads them from a file"
        ):
            resolve(study(tmp_path, entry, roar={"relative": {"levels": [10], **options}}))
    resolve(study(tmp_path, entry, roar={"relative": {"levels": [10], "measures": ["random"]}}))
