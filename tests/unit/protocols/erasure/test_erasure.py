"""Erasure compared with one text at a time, with hand-computed values, and on a decisive word."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from plumbline.config.resolve import resolve
from plumbline.config.runs import list_runs
from plumbline.conformance import example_instances, whole_batch
from plumbline.data.masking import apply_masks
from plumbline.data.vocabulary import MASK
from plumbline.errors import PlumblineError
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.erasure.metrics import aopc, count_erased, soft_comprehensiveness, soft_sufficiency
from plumbline.protocols.erasure.schemas import ERASURE
from plumbline.protocols.erasure.score import NO_FALL, ONE_WORD, SAME_ORDERS, SOFT, Erasure
from plumbline.protocols.erasure.soft import keep_probabilities, rescaled
from plumbline.tables.export import latex
from tests.unit.protocols.erasure.cells import Cell, drawn, kept, make_evaluator, probabilities, table

CASES = [("bilstm-tanh", False), ("cnn-dot", False), ("bag-of-words", False), ("bilstm-tanh", True)]
RATIOS = [10, 30, 50]


def test_number_of_erased_words():
    assert count_erased(np.array([1, 2, 3, 10, 11, 200]), 10).tolist() == [0, 1, 1, 1, 2, 20]
    assert count_erased(np.array([2, 3, 10]), 99).tolist() == [1, 2, 9]
    # 30 % of 10 is 3, not 4 by the rounding of 0.3.
    assert count_erased(np.array([10, 100]), 30).tolist() == [3, 30]


def test_metrics_by_hand():
    # DeYoung et al. count the whole text, whose fall is 0, among the steps.
    np.testing.assert_allclose(aopc(np.array([[0.2, 0.4], [0.0, 0.3]])), [0.2, 0.1])
    # Over all texts: (0.3 + 0 + 0.6) / (0.6 + 0.6 + 0.5); the last does not fall.
    fall, whole = np.array([0.3, -0.1, 0.6, 0.2]), np.array([0.6, 0.6, 0.5, -0.1])
    assert soft_comprehensiveness(fall, whole) == pytest.approx(0.9 / 1.7)
    assert soft_sufficiency(fall, whole) == pytest.approx(1 - 0.9 / 1.7)
    assert np.isnan(soft_comprehensiveness(fall[-1:], whole[-1:]))


def test_a_text_whose_output_hardly_falls_does_not_dominate():
    fall, whole = np.array([0.02, 0.4, 0.4]), np.array([0.0001, 0.5, 0.5])
    assert np.mean(fall / whole) > 60
    assert soft_comprehensiveness(fall, whole) == pytest.approx(0.82, abs=1e-3)
    assert soft_sufficiency(fall, whole) == pytest.approx(0.18, abs=1e-3)


@pytest.mark.parametrize(("name", "paired"), CASES)
def test_hard_erasure_equals_one_text_at_a_time(name, paired):
    evaluator, instances = make_evaluator(name, paired), example_instances(paired=paired)
    scores = drawn(instances)
    columns = Erasure(ratios=RATIOS, draws=0).score(Cell(instances, [evaluator], {"drawn": scores}))
    assert np.abs(columns["comprehensiveness"]).max() > 0.01
    for i in range(len(instances)):
        text = instances.take([i])
        before = probabilities(evaluator, text)
        target, falls = before.argmax(), []
        order = np.argsort(-scores[i], kind="stable")
        for ratio in RATIOS:
            top = order[: int(count_erased(np.array([len(order)]), ratio)[0])]
            rest = np.setdiff1d(order, top)
            falls.append(
                [before[target] - probabilities(evaluator, kept(text, words))[target] for words in (rest, top)]
            )
        comprehensive, sufficient = np.transpose(falls)
        np.testing.assert_allclose(columns["comprehensiveness_at"][i], comprehensive, atol=1e-5)
        np.testing.assert_allclose(columns["sufficiency_at"][i], sufficient, atol=1e-5)
        assert columns["comprehensiveness"][i] == pytest.approx(comprehensive.sum() / 4, abs=1e-5)
        assert columns["sufficiency"][i] == pytest.approx(sufficient.sum() / 4, abs=1e-5)
        assert columns["predicted_class"][i] == target


@pytest.mark.parametrize("removal", ["pad", "zero"])
def test_embeddings_can_be_replaced_instead(removal):
    evaluator, instances = make_evaluator(), example_instances()
    scores = drawn(instances)
    columns = Erasure(ratios=[50], removal=removal, draws=0).score(Cell(instances, [evaluator], {"drawn": scores}))
    nothing = (
        evaluator.model.embedding.weight[0]
        if removal == "pad"
        else torch.zeros(evaluator.model.embedding.embedding_dim)
    )
    for i in range(len(instances)):
        text = instances.take([i])
        before = probabilities(evaluator, text)
        top = np.argsort(-scores[i], kind="stable")[: int(count_erased(np.array([len(scores[i])]), 50)[0])]
        vectors = evaluator.model.embedding(whole_batch(text).ids).clone()
        vectors[0, np.flatnonzero(text.maskable[0])[top]] = nothing
        fall = before.max() - probabilities(evaluator, text, vectors)[before.argmax()]
        assert columns["comprehensiveness_at"][i] == pytest.approx([fall], abs=1e-5)


@pytest.mark.parametrize(
    ("removal", "masking", "mask"),
    [("mask", "none", MASK), ("auto", "uniform", MASK), ("mask", "none", 17), ("auto", "none", MASK)],
)
def test_masks_replace_words_of_models_that_were_trained_with_them(removal, masking, mask):
    evaluator, instances = make_evaluator(), example_instances()
    scores = drawn(instances)
    cell = Cell(instances, [evaluator], {"drawn": scores}, masking, mask)
    columns = Erasure(ratios=[50], removal=removal, draws=0).score(cell)
    for i in range(len(instances)):
        text = instances.take([i])
        before = probabilities(evaluator, text)
        top = np.argsort(-scores[i], kind="stable")[: int(count_erased(np.array([len(scores[i])]), 50)[0])]
        flags = np.isin(np.arange(len(scores[i])), top)
        deleted = (removal, masking) == ("auto", "none")
        after = kept(text, np.flatnonzero(~flags)) if deleted else apply_masks(text, [flags], mask)
        fall = before.max() - probabilities(evaluator, after)[before.argmax()]
        assert columns["comprehensiveness_at"][i] == pytest.approx([fall], abs=1e-5)


@pytest.mark.parametrize("soft", ["equal-retention", "min-max"])
def test_soft_erasure_equals_one_text_at_a_time(soft):
    evaluator, instances = make_evaluator(), example_instances()
    scores = drawn(instances)
    columns = Erasure(draws=3, soft=soft, retention=0.7, longest=0).score(Cell(instances, [evaluator], {"a": scores}))
    assert np.abs(columns["soft_fall_without"]).max() > 0.01
    for i in range(len(instances)):
        text = instances.take([i])
        words = np.flatnonzero(text.maskable[0])
        before = probabilities(evaluator, text)
        vectors = evaluator.model.embedding(whole_batch(text).ids)
        generator = instances.generator(i, evaluator.seed)

        def fall(keep: np.ndarray, text=text, words=words, vectors=vectors, before=before) -> np.ndarray:
            thinned = vectors.clone()
            thinned[0, words] *= torch.from_numpy(keep.astype(np.float32))
            return before[before.argmax()] - probabilities(evaluator, text, thinned)[before.argmax()]

        size = len(words), vectors.shape[-1]
        falls = []
        for _ in range(3):
            uniform = generator.random(size, dtype=np.float32)
            ways = rescaled(scores[i]) if soft == "min-max" else keep_probabilities(scores[i], 0.7)
            falls.append([fall(uniform < keep.astype(np.float32)[:, None]) for keep in ways])
        without, alone = np.mean(falls, axis=0)
        assert columns["fall_to_nothing"][i] == pytest.approx(fall(np.zeros(size)), abs=1e-5)
        assert columns["soft_fall_without"][i] == pytest.approx(without, abs=1e-5)
        assert columns["soft_fall_alone"][i] == pytest.approx(alone, abs=1e-5)


@pytest.mark.parametrize("paired", [False, True])
def test_scores_depend_neither_on_batch_nor_on_order(paired):
    instances = example_instances(paired=paired)
    scores = drawn(instances)
    order = np.random.default_rng(0).permutation(len(instances))
    whole = Erasure(longest=8).score(
        Cell(instances, [make_evaluator(paired=paired)], {"a": scores, "b": drawn(instances, 1)})
    )
    small_batches = make_evaluator(paired=paired, budget=20)
    parts = Erasure(longest=8).score(Cell(instances.take(order), [small_batches], {"a": [scores[i] for i in order]}))
    for name in ("comprehensiveness", "sufficiency", "fall_to_nothing", "soft_fall_without", "soft_fall_alone"):
        np.testing.assert_allclose(whole[name][: len(order)][order], parts[name], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(whole["morf_lerf"][: len(order)][order], parts["morf_lerf"], atol=1e-5)
    np.testing.assert_allclose(whole["normalised_aopc"][: len(order)][order], parts["normalised_aopc"], atol=1e-4)


class DecisiveWord(torch.nn.Module):
    """Predicts class 1 if word 9 is in the text, in proportion to what is left of its embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(64, 6)
        with torch.no_grad():
            self.embedding.weight.zero_()
            self.embedding.weight[9] = 1.0

    def forward(self, batch, vectors=None):
        vectors = self.embedding(batch.ids) if vectors is None else vectors
        logit = vectors.mean(-1).sum(1) * 8 - 4
        output = type("Output", (), {})()
        output.logits = torch.stack([-logit / 2, logit / 2], dim=-1)
        return output


def test_all_metrics_detect_a_decisive_word():
    instances = example_instances()
    ids = [np.where(row == 9, 10, row) for row in instances.ids]
    for row in ids:
        row[1] = 9
    instances = replace(instances, ids=ids)
    right = [np.eye(int(free.sum()))[0] for free in instances.maskable]
    evaluator = Evaluator(DecisiveWord().requires_grad_(False), 0, 10_000)
    protocol = Erasure(ratios=RATIOS)
    columns = protocol.score(Cell(instances, [evaluator], {"right": right, "wrong": [1 - row for row in right]}))
    size = len(instances)
    rows = protocol.summarise(table(columns)).set_index(["metric", "measure"])["mean"]
    means = {name: (rows[name, "right"], rows[name, "wrong"]) for name in SOFT}
    assert rows["normalised_aopc", "right"] == pytest.approx(1, abs=1e-5)
    assert rows["morf_lerf", "right"] > 0 > rows["morf_lerf", "wrong"]
    fall = 1 / (1 + np.exp(-4)) - 1 / (1 + np.exp(4))
    np.testing.assert_allclose(columns["comprehensiveness"][:size], 3 / 4 * fall, atol=1e-6)
    np.testing.assert_allclose(columns["sufficiency"][:size], 0, atol=1e-6)
    np.testing.assert_allclose(columns["sufficiency"][size:], 3 / 4 * fall, atol=1e-6)
    # Equal retention keeps a part of the decisive word, min-max all of it or nothing.
    for right_value, wrong_value in means.values():
        assert right_value > wrong_value + 0.1
    published = Erasure(ratios=RATIOS, soft="min-max", longest=0)
    columns = published.score(Cell(instances, [evaluator], {"right": right, "wrong": [1 - row for row in right]}))
    rows = published.summarise(table(columns)).set_index(["metric", "measure"])["mean"]
    assert all(rows[name, "right"] == pytest.approx(1) for name in SOFT)
    assert all(rows[name, "wrong"] == pytest.approx(0, abs=1e-6) for name in SOFT)


def test_the_table_has_means_ratios_and_reasons():
    instances = example_instances()
    single = replace(
        instances, ids=[row[:1].repeat(3) for row in instances.ids], maskable=[np.array([False, True, False])] * 12
    )
    protocol = Erasure(ratios=RATIOS)
    scores = protocol.score(Cell(instances, [make_evaluator()], {"drawn": drawn(instances)}))
    rows = protocol.summarise(table(scores))
    assert set(rows["metric"]) == {
        *("comprehensiveness", "sufficiency", "normalised_aopc", "morf_lerf"),
        *("soft_comprehensiveness", "soft_sufficiency"),
    }
    soft = rows[rows["metric"] == "soft_comprehensiveness"].iloc[0]
    fall, to_nothing = scores["soft_fall_without"], scores["fall_to_nothing"]
    counted = to_nothing > 0
    assert soft["mean"] == pytest.approx(np.maximum(fall, 0)[counted].sum() / to_nothing[counted].sum())
    assert (soft["n"], soft["dropped"]) == (counted.sum(), 12 - counted.sum())
    whole = rows[(rows["metric"] == "comprehensiveness") & rows["ratio"].isna()].iloc[0]
    assert whole["mean"] == pytest.approx(np.mean(scores["comprehensiveness"])) and whole["n"] == 12
    at = rows[(rows["metric"] == "sufficiency") & (rows["ratio"] == 30)].iloc[0]
    assert at["mean"] == pytest.approx(np.mean([row[1] for row in scores["sufficiency_at"]]), abs=1e-6)
    cell = rows.assign(dataset="d", variant="plain", model="m")
    printed = latex(ERASURE, cell)
    assert "comprehensiveness" in printed and printed.count("drawn") == 1
    # With one word nothing can be erased, and the output of a constant model does not fall.
    constant = make_evaluator(sharp=0.0)
    undefined = protocol.summarise(table(protocol.score(Cell(single, [constant], {"drawn": drawn(single)}))))
    assert set(undefined["status"]) == {"undefined"} and undefined["mean"].isna().all()
    assert set(undefined["reason"]) == {ONE_WORD, NO_FALL, SAME_ORDERS.format(24)}
    without_soft = Erasure(draws=0, longest=0)
    rows = without_soft.summarise(
        table(without_soft.score(Cell(instances, [make_evaluator()], {"drawn": drawn(instances)})))
    )
    assert set(rows["metric"]) == {"comprehensiveness", "sufficiency"}


@pytest.mark.parametrize("ratios", [[], [0, 10], [50, 100], [20, 10], [10, 10]])
def test_invalid_ratios_are_rejected(ratios):
    with pytest.raises(PlumblineError, match="write distinct percentages between 0 and 100, ascending"):
        Erasure(ratios=ratios)


def test_images_are_excluded_with_a_reason():
    study = {
        "datasets": ["textures", "movie"],
        "models": ["resnet-small", "bilstm-tanh"],
        "measures": ["random"],
        "protocols": ["erasure"],
    }
    runs = list_runs(resolve(study))
    assert {cell.model for cell in runs.scored["erasure"]} == {"bilstm-tanh"}
    reasons = [run.reason for run in runs.excluded if run.model == "resnet-small"]
    assert "protocol 'erasure' scores texts, but model 'resnet-small' reads images" in reasons
