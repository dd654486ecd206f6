"""Masked erasure: masks level by level, the tables, p-values with a guarantee, and which models are scored."""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import pytest
import torch

from plumbline.attribution.leave_one_out import leave_one_out
from plumbline.attribution.random import random as random_measure
from plumbline.config.recipes import Training
from plumbline.config.resolve import resolve
from plumbline.config.runs import list_runs
from plumbline.conformance import example_instances, example_model, whole_batch
from plumbline.data.instances import Instances
from plumbline.data.vocabulary import MASK
from plumbline.errors import PlumblineError
from plumbline.models.block import build_model
from plumbline.models.evaluator import Evaluator
from plumbline.models.representation import represent
from plumbline.protocols.explained import Explanations
from plumbline.protocols.masked_erasure.conformal import Reference, out_of_distribution, simes, two_sided
from plumbline.protocols.masked_erasure.criteria import masked_erasure_faithfulness
from plumbline.protocols.masked_erasure.figures import masked_curves
from plumbline.protocols.masked_erasure.page import outlying_overview
from plumbline.protocols.masked_erasure.schemas import MASKED_ERASURE, MASKED_ERASURE_SCORES, MASKED_FAITHFULNESS
from plumbline.protocols.masked_erasure.score import (
    FEW_TEXTS,
    MaskedErasure,
    masked_as_in_training,
    read_texts,
    training_reference,
)
from plumbline.protocols.masked_erasure.table import masked_faithfulness_table
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.registry import Registry
from plumbline.store import read_table, write_table
from plumbline.tables.sources import File, Sources
from plumbline.training.trainer import BlockSpec, train_block
from tests.unit.training.test_trainer import FILLER, GOOD, SPLITS, VECTORS, planted, pointer


@dataclass
class Cell:
    """An in-memory cell, whose measure `drawn` is recomputed by `recompute`."""

    texts: Instances
    dev: Instances
    evaluators: list[Evaluator]
    importances: dict[str, list[np.ndarray]]
    recomputed: dict = field(default_factory=dict)
    seen: list[Instances] = field(default_factory=list)
    splits: tuple[str, ...] = ("test",)
    mask_id: int = MASK

    def instances(self, splits=None) -> Instances:
        return self.dev if splits else self.texts

    def models(self) -> list[Evaluator]:
        return self.evaluators

    def by_seed(self) -> list[Explanations]:
        keys = self.texts.split, self.texts.instance, np.zeros(len(self.texts), dtype=np.int32)
        return [Explanations(evaluator.seed, *keys, self.importances) for evaluator in self.evaluators]

    def compute(self, evaluator, instances, measures):
        self.seen.append(instances)
        return {measure: self.recomputed[measure](evaluator, instances) for measure in measures}


def drawn(instances: Instances, seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.random(int(free.sum())).astype(np.float32) for free in instances.maskable]


def make_evaluator(name: str = "bilstm-tanh") -> Evaluator:
    model = example_model(Registry().get("model", name))
    with torch.no_grad():
        for parameter in model.head.parameters():
            parameter *= 20
    return Evaluator(model.requires_grad_(False), 3, 10_000)


def cell(**changes) -> Cell:
    texts = example_instances(24)
    return Cell(texts, example_instances(60, 1, splits=["dev"]), [make_evaluator()], {"drawn": drawn(texts)}, **changes)


def mask_by_hand(ids: np.ndarray, scores: np.ndarray, level: int) -> np.ndarray:
    """A text, of which the first and last token are special, with its highest-scored words masked."""
    masked = ids.copy()
    masked[1 + np.argsort(-scores)[: len(scores) * level // 100]] = MASK
    return masked


def test_predictions_are_those_of_texts_masked_by_hand():
    here = cell()
    columns = MaskedErasure(levels=[30, 60]).score(here)
    model = here.evaluators[0].model
    for i, ids in enumerate(here.texts.ids):
        for column, level in enumerate((0, 30, 60, 100)):
            text = replace(here.texts.take([i]), ids=[mask_by_hand(ids, here.importances["drawn"][i], level)])
            assert columns["predicted_at"][i][column] == model(whole_batch(text)).logits.argmax()
    assert columns["label"].tolist() == here.texts.label.tolist()
    for column, level in enumerate((0, 30, 60, 100)):
        ids = [
            mask_by_hand(ids, row, level) for ids, row in zip(here.texts.ids, here.importances["drawn"], strict=True)
        ]
        _, features = represent(model, whole_batch(replace(here.texts, ids=ids)))
        expected = training_reference(here.evaluators[0], here.dev, MASK).p_values(features.double().numpy())
        np.testing.assert_allclose(np.stack(columns["p_value_at"])[:, column], expected, atol=0.04)
        assert len(set(expected)) > 3, "or the test would be void"


def test_measures_explain_the_masked_texts_of_each_level_but_the_last():
    """Importances are reversed once, so that the words masked next are the last ones of the first ranking."""
    here = cell(recomputed={"drawn": lambda evaluator, texts: [-row for row in drawn(texts)]})
    MaskedErasure(levels=[30, 60, 90]).score(here)
    assert len(here.seen) == 2
    for i, ids in enumerate(here.texts.ids):
        scores, first = here.importances["drawn"][i], here.seen[0].ids[i]
        np.testing.assert_array_equal(first, mask_by_hand(ids, scores, 30))
        more = len(scores) * 60 // 100 - len(scores) * 30 // 100
        kept = [word for word in np.argsort(scores) if first[1 + word] != MASK]
        expected = first.copy()
        expected[1 + np.array(kept[:more], dtype=int)] = MASK
        np.testing.assert_array_equal(here.seen[1].ids[i], expected)
    MaskedErasure(levels=[30, 60, 90], recompute=False).score(here)
    assert len(here.seen) == 2


def test_only_test_texts_are_scored_if_they_are_explained():
    texts = example_instances(24, splits=["train", "test"])
    both = cell(splits=("train", "test"))
    both.texts, both.importances = texts, {"drawn": drawn(texts)}
    assert set(MaskedErasure(levels=[50]).score(both)["split"]) == {"test"}
    assert len(MaskedErasure(levels=[50]).score(replace(both, splits=("train",)))["split"]) == 24


@pytest.mark.parametrize("levels", [[], [0, 50], [50, 100], [50, 20], [20, 20]])
def test_levels_that_do_not_ascend_between_0_and_100_are_refused(levels):
    with pytest.raises(PlumblineError, match="write distinct percentages between 0 and 100, ascending"):
        MaskedErasure(levels=levels)


def test_the_summary_by_hand(tmp_path):
    rows = {
        "seed": [0] * 4, "split": ["test"] * 4, "instance": range(4), "predicted_class": [0] * 4, "length": [5] * 4,
        "label": [0, 0, 1, 1], "measure": ["m"] * 4,
        "predicted_at": [[0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 0]],
        "p_value_at": [[0.5, 0.01, 0.04], [0.5, 0.05, 0.6], [0.5, 0.8, 0.6], [0.01, 0.9, 0.6]],
    }  # fmt: skip
    write_table(tmp_path / "scores", MASKED_ERASURE_SCORES, rows)
    summary = MaskedErasure(levels=[50]).summarise(read_table(tmp_path / "scores", MASKED_ERASURE_SCORES))
    values = summary.set_index(["metric", "level"])["value"]
    assert values["accuracy"].tolist() == [0.75, 0.5, 0.5]
    assert values["macro_f1"].tolist() == pytest.approx([(4 / 5 + 2 / 3) / 2, 0.5, 1 / 3])
    assert values["out_of_distribution"].tolist() == [0.25, 0.25, 0.25]
    assert set(summary["status"]) == {"ok"} and set(summary["n"]) == {4}


def test_with_few_dev_texts_the_p_values_are_undefined():
    here = cell()
    here.dev = here.dev.take(range(30))
    columns = MaskedErasure(levels=[50]).score(here)
    assert np.isnan(np.stack(columns["p_value_at"])).all()
    table = MaskedErasure(levels=[50]).summarise(pa_table(columns))
    undefined = table[table["metric"] == "out_of_distribution"]
    assert set(undefined["status"]) == {"undefined"} and set(undefined["reason"]) == {FEW_TEXTS}
    assert set(table[table["metric"] == "accuracy"]["status"]) == {"ok"}


def pa_table(columns):
    import pyarrow as pa

    return pa.table({name: pa.array(list(column)) for name, column in columns.items()})


# p-values.


def test_p_values_by_hand():
    reference = np.array([[1.0], [2.0], [2.0], [4.0]])
    found = two_sided(np.array([[0.0], [2.0], [3.0], [9.0]]), reference)[:, 0]
    # None below: 2 (0 + 1) / 5; three at most 2 and three at least 2; three below and one above; none above.
    assert found.tolist() == pytest.approx([0.4, 1.0, 0.8, 0.4])
    assert simes(np.array([[0.2, 0.01, 0.5], [0.3, 0.3, 0.3]])).tolist() == pytest.approx([0.03, 0.3])


@pytest.mark.parametrize("correlated", [False, True])
def test_texts_like_the_reference_have_uniform_p_values(correlated):
    random = np.random.default_rng(0)
    mixing = random.normal(size=(20, 20)) if correlated else np.eye(20)
    draw = lambda count: random.normal(size=(count, 20)) @ mixing  # noqa: E731
    reference = Reference(draw(1000), random)
    shares = []
    for _ in range(20):
        p_values = Reference(draw(1000), random).p_values(draw(500))
        shares.append([np.mean(p_values <= level) for level in (0.05, 0.2, 0.5, 0.9)])
    assert np.mean(shares, axis=0).tolist() == pytest.approx([0.05, 0.2, 0.5, 0.9], abs=0.02)
    assert out_of_distribution(reference.p_values(draw(1000) * 3)) > 0.5


def test_on_average_no_more_than_the_level_is_out_of_distribution_with_few_texts():
    random = np.random.default_rng(0)
    shares = [
        out_of_distribution(Reference(random.normal(size=(48, 5)), random).p_values(random.normal(size=(50, 5))))
        for _ in range(300)
    ]
    assert 0.02 < np.mean(shares) < 0.055


@pytest.mark.parametrize("name", ["bilstm-tanh", "cnn-dot", "average-tanh", "roberta", "bag-of-words"])
def test_the_representation_is_the_input_of_the_last_linear_layer(name):
    model = example_model(Registry().get("model", name)).eval()
    batch = whole_batch(example_instances())
    logits, features = represent(model, batch)
    torch.testing.assert_close(logits, model(batch).logits)
    assert features.shape[0] == len(batch.ids) and not any(part._forward_pre_hooks for part in model.modules())
    if hasattr(model, "head"):
        torch.testing.assert_close(model.head(features), logits)


class Flat(torch.nn.Module):
    """A model whose linear layer has a row per word, and whose logits are their sums."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(1, 2)

    def forward(self, batch):
        class Result:
            logits = self.linear(batch.ids[..., None].float()).sum(1)

        return Result


def test_without_a_row_per_text_the_representation_is_the_logits():
    logits, features = represent(Flat(), whole_batch(example_instances()))
    assert features is logits


# Trained models.


@pytest.fixture(scope="module")
def evaluators() -> dict[str, Evaluator]:
    """Models of a planted word, trained without and with masks."""
    place, options = pointer("bilstm-tanh")
    options |= {"hidden": 8}
    trained = {}
    for masking in ("none", "uniform"):
        training = Training(epochs=6, learning_rate=0.02, masking=masking)
        weights, *_ = train_block(BlockSpec(place, options, VECTORS, SPLITS, 2, training), [0], 4096)
        state = {name.removeprefix("0/"): tensor for name, tensor in weights.items()}
        model = build_model(place, options, state["embedding.weight"], 2)
        model.load_state_dict(state)
        trained[masking] = Evaluator(model.requires_grad_(False), 0, 10_000)
    return trained


DEV, TEST = planted("dev", 600, 5), planted("test", 300, 6)


def outlying(evaluator: Evaluator, texts: Instances) -> float:
    reference = training_reference(evaluator, DEV, MASK)
    return out_of_distribution(reference.p_values(read_texts(evaluator, texts)[1]))


@pytest.mark.parametrize("masking", ["none", "uniform"])
def test_texts_masked_like_the_reference_are_in_distribution_and_word_salad_is_not(evaluators, masking):
    evaluator, random = evaluators[masking], np.random.default_rng(0)
    assert outlying(evaluator, masked_as_in_training(TEST, MASK, random)) == pytest.approx(0.05, abs=0.045)
    assert outlying(evaluator, TEST) < 0.12
    # Only decisive words, of which texts of the reference have one.
    texts = list(zip(TEST.ids, TEST.maskable, strict=True))
    salad = [np.where(free, random.choice([*GOOD], len(ids)), ids) for ids, free in texts]
    assert outlying(evaluator, replace(TEST, ids=salad)) > 0.3
    # The decisive words alone: texts as short are not in the reference.
    kept = [~free | (ids != FILLER) for ids, free in texts]
    short = [[row[keep] for row, keep in zip(rows, kept, strict=True)] for rows in (TEST.ids, TEST.maskable)]
    assert outlying(evaluator, replace(TEST, ids=short[0], maskable=short[1])) > 0.3


@pytest.fixture(scope="module")
def table(evaluators) -> pd.DataFrame:
    """The table of the model trained with masks: leave-one-out, random, and the least important words first."""
    evaluator = evaluators["uniform"]
    texts = TEST.take(range(150))
    scores = {"loo": leave_one_out(evaluator, texts).scores, "random": random_measure(evaluator, texts).scores}
    scores["worst"] = [-row for row in scores["loo"]]
    recomputed = {
        "loo": lambda evaluator, texts: leave_one_out(evaluator, texts).scores,
        "random": lambda evaluator, texts: random_measure(evaluator, texts).scores,
    }
    protocol = MaskedErasure(levels=[20, 40, 60, 80])
    rows = protocol.summarise(pa_table(protocol.score(Cell(texts, DEV, [evaluator], scores, recomputed))))
    return rows.assign(dataset="planted", variant="plain", model="masked")


def sources(table: pd.DataFrame, folder) -> Sources:
    write_table(folder / "a.parquet", MASKED_ERASURE, {name: table[name] for name in MASKED_ERASURE.columns})
    write_table(folder / "b.parquet", PERFORMANCE, {name: [] for name in PERFORMANCE.columns})
    files = {
        "masked_erasure": [File({}, str(folder / "a.parquet"))],
        "performance": [File({}, str(folder / "b.parquet"))],
    }
    return Sources(files, {"headlines": {"planted": "macro_f1"}, "random": "random"})


def test_the_words_that_decide_are_faithful_and_the_others_are_not(table, tmp_path):
    schema, rows = masked_faithfulness_table(sources(table, tmp_path))
    write_table(tmp_path / "c.parquet", schema, {name: rows[name] for name in schema.columns})
    faithfulness = rows.set_index("measure")["faithfulness"]
    assert schema is MASKED_FAITHFULNESS and set(faithfulness.index) == {"loo", "worst"}
    assert faithfulness["loo"] > 0.3 and faithfulness["worst"] < 0
    assert set(rows["strategy"]) == {"masked"} and set(rows["n_levels"]) == {6}
    values = masked_erasure_faithfulness(rows, None)
    assert dict(zip(values["measure"], values["value"], strict=True)) == faithfulness.to_dict()
    ends = table[(table["metric"] == "accuracy") & table["level"].isin([0, 100])].groupby("level")["value"]
    assert (ends.nunique() == 1).all(), "all measures share the ends of their curves"
    assert ends.mean()[0] > 0.8 and ends.mean()[100] < 0.7


def test_the_figure_and_the_page_show_the_table(table):
    figure = masked_curves(table, "macro_f1", "planted, masked", "random")
    left, right = figure.axes
    for panel, metric in ((left, "macro_f1"), (right, "out_of_distribution")):
        rows = table[(table["metric"] == metric) & (table["measure"] == "loo")].sort_values("level")
        lines = {line.get_label(): line for line in panel.lines}
        np.testing.assert_allclose(lines["loo"].get_ydata(), rows["value"])
        assert lines["loo"].get_xdata().tolist() == [0, 20, 40, 60, 80, 100]
    assert left.get_ylabel() == "macro f1" and right.get_ylabel() == "share of texts with p < 0.05"
    shown = outlying_overview(table)
    assert shown.columns[3:] == ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"] and len(shown.rows) == 3


# Config.


def study(**changes) -> dict:
    models = {"bilstm-tanh": {}, "masked": {"kind": "bilstm-tanh", "training": {"masking": "uniform"}}}
    config = {"datasets": ["mock-2"], "models": models, "measures": ["gradient", "random"]}
    return config | {"protocols": ["masked_erasure"]} | changes


def test_only_models_trained_with_masks_are_scored():
    runs = list_runs(resolve(study()))
    assert {cell.model for cell in runs.scored["masked_erasure"]} == {"masked"}
    reasons = [excluded.reason for excluded in runs.excluded]
    assert "protocol 'masked_erasure' needs masked training, which model 'bilstm-tanh' does not provide" in reasons
    datasets = {"mock-2": {"training": {"masking": "uniform"}}}
    assert len(list_runs(resolve(study(datasets=datasets))).scored["masked_erasure"]) == 2
    with pytest.raises(PlumblineError, match="needs masked training, which model 'average-tanh' does not provide"):
        list_runs(resolve(study(models=["average-tanh"])))


MASKED = {"training": {"masking": "uniform"}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"datasets": ["textures"], "models": {"resnet-small": MASKED}},
            "`training.masking` is 'uniform', but model 'resnet-small' reads images, which have no mask token; remove",
        ),
        (
            {"adversaries": {"attefa": {"of": ["masked"], "seeds": ["0"], **MASKED}}},
            "`adversaries.attefa.training.masking` is 'uniform'; adversaries imitate outputs of unmasked texts",
        ),
        (
            {"models": {"minilm": {"head": "own", "training": {"masking": "uniform", "epochs": 0}}}},
            "`masking` is uniform, but `epochs` is 0",
        ),
    ],
)
def test_what_cannot_be_trained_with_masks_is_refused(changes, message):
    with pytest.raises(PlumblineError) as error:
        resolve(study(protocols=[], **changes))
    assert message in str(error.value)


def test_an_adversary_of_a_masked_model_is_trained_without_masks():
    resolved = resolve(study(protocols=[], adversaries={"attefa": {"of": ["masked"], "seeds": ["0"]}}))
    assert resolved.trainings["mock-2", "masked"].masking == "uniform"
    adversaries = [training for (_, model), training in resolved.trainings.items() if model in resolved.derived]
    assert adversaries and {training.masking for training in adversaries} == {"none"}
