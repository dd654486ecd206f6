"""Shared by measures: the input vectors of a model, the order of scores, samples, the tokens to rank."""

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch

from plumbline.attribution.files import read_importances, write_importances
from plumbline.attribution.importances import Importances, ScoreBuffer
from plumbline.attribution.inputs import baseline_vectors, feature_mask, forward_vectors, input_vectors
from plumbline.attribution.run import MeasureCall, attribute, check_scores
from plumbline.conformance import example_instances, example_model, reads_one_text, whole_batch
from plumbline.data.instances import draw_sample
from plumbline.data.schemas import INSTANCES
from plumbline.errors import PlumblineError
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.agreement.score import Agreement, sum_subwords
from plumbline.protocols.explained import Explained
from plumbline.registry import PAIRED, Registry
from plumbline.store import write_table
from plumbline.training.schemas import PREDICTIONS

REGISTRY = Registry()
CASES = [
    (model.name, paired)
    for model in REGISTRY.all("model")
    for paired in (False, True)
    if "gradient" in model.provides and (set(PAIRED) & set(model.tasks) if paired else reads_one_text(model))
]


@pytest.mark.parametrize(("name", "paired"), CASES)
def test_the_output_from_vectors_equals_that_from_ids(name, paired):
    """The vectors give the logits, and the baseline has the vectors of padding."""
    model = example_model(REGISTRY.get("model", name), paired=paired).eval()
    batch = whole_batch(example_instances(paired=paired))
    vectors = input_vectors(model, batch)
    tokens = batch.ids.shape[1] + (batch.pair.ids.shape[1] if batch.pair else 0)
    assert vectors.shape[:2] == (12, tokens) and not vectors.requires_grad
    with torch.no_grad():
        torch.testing.assert_close(
            forward_vectors(model, batch, vectors).logits, model(batch).logits, atol=1e-6, rtol=0
        )
        reference = baseline_vectors(model, batch, "pad")
        padding = getattr(model, "pad_id", model.embedding.padding_idx) or 0
        padded = replace(batch, ids=torch.full_like(batch.ids, padding))
        if batch.pair:
            padded = replace(padded, pair=replace(batch.pair, ids=torch.full_like(batch.pair.ids, padding)))
        logits = forward_vectors(model, batch, reference).logits
        torch.testing.assert_close(logits, model(padded).logits, atol=1e-6, rtol=0)
    assert not baseline_vectors(model, batch, "zero").any() and reference.shape == vectors.shape


def test_features_are_the_tokens_that_are_explained():
    instances = example_instances(paired=True)
    instances = replace(instances, pair_maskable=[np.arange(len(ids)) > 0 for ids in instances.pair])
    batch = whole_batch(instances)
    width = batch.ids.shape[1]
    for texts in ("first", "both"):
        for specials in (True, False):
            moved = feature_mask(batch, texts, specials)
            assert torch.equal(moved[:, :width], batch.present if specials else batch.attendable)
            seconds = [len(ids) - (not specials) if texts == "both" else 0 for ids in instances.pair]
            assert moved[:, width:].sum(1).tolist() == seconds


def test_scores_are_stored_at_their_instances_for_batches_in_any_order():
    instances = example_instances(paired=True)
    instances = replace(instances, pair_maskable=[np.arange(len(ids)) > 0 for ids in instances.pair])
    buffer = ScoreBuffer(instances)
    for index in (np.array([7, 2, 9]), np.array([i for i in range(12) if i not in (7, 2, 9)])):
        batch = whole_batch(instances.take(index))
        # Each token's score is its own id, so that a wrong position is a wrong number.
        values = torch.cat([batch.ids, 100 + batch.pair.ids], dim=1).double()
        buffer.add(index, batch, values, torch.from_numpy(index))
    found = buffer.importances()
    for i, (ids, free, second) in enumerate(zip(instances.ids, instances.maskable, instances.pair, strict=True)):
        assert found.scores[i].tolist() == ids[free].tolist()
        assert found.pair[i].tolist() == (100 + second[1:]).tolist()
        assert found.specials[i].tolist() == [*ids[~free].tolist(), 100 + second[0]]
    assert found.target.tolist() == list(range(12))
    only = ScoreBuffer(instances, "first", specials=False)
    only.add(np.arange(12), batch := whole_batch(instances), torch.zeros(12, batch.ids.shape[1]))
    assert only.importances(explained=False).pair is only.specials is only.importances(explained=False).target is None


def test_a_sample_is_the_studys_and_of_each_split():
    split = np.array(["dev"] * 30 + ["test"] * 50)
    drawn = draw_sample(split, 10, 87)
    assert drawn.tolist() == sorted(drawn.tolist()) and (split[drawn] == "dev").sum() == 10
    random.seed(87)
    assert drawn[:10].tolist() == sorted(random.sample(range(30), 10))
    assert draw_sample(split, 40, 0).tolist()[:30] == list(range(30)) and len(draw_sample(split, 40, 0)) == 70


def test_splits_that_a_measure_counts_in_stay_whole():
    instances = example_instances(24, splits=["train", "test"])
    some = instances.sampled(5, 3, ["train"])
    assert (some.split == "train").sum() == 12 and (some.split == "test").sum() == 5
    kept = instances.instance[draw_sample(instances.split, 5, 3)]
    assert set(some.instance[some.split == "test"]) == set(kept[kept >= 12])


def doubled(evaluator, instances):
    """Each token's id, of both texts and of specials too."""
    buffer = ScoreBuffer(instances)

    def work(index, batch):
        seconds = [] if batch.pair is None else [batch.pair.ids]
        buffer.add(index, batch, torch.cat([batch.ids, *seconds], dim=1).float())

    evaluator.each(instances, work)
    return buffer.importances(explained=False)


def turned(evaluator, instances):
    """The same, with those of second texts negated."""
    found = doubled(evaluator, instances)
    return replace(found, pair=None if found.pair is None else [-scores for scores in found.pair])


def cell(folder, instances, measures, count):
    """A cell with two seeds, which explain a sample each."""
    seeds = [3, 4]
    evaluators = [Evaluator(example_model(REGISTRY.get("model", "average-tanh")), seed, 500) for seed in seeds]
    columns, _ = attribute(evaluators, instances, measures, lambda seed: instances.sampled(count, seed))
    for name, table in columns.items():
        write_importances(folder / name, {name: table})
    size = len(instances)
    keys = {"seed": np.repeat(seeds, size), "split": np.tile(instances.split, 2)}
    keys |= {"instance": np.tile(instances.instance, 2), "label": np.tile(instances.label, 2)}
    write_table(folder / "p", PREDICTIONS, {**keys, "probabilities": [[0.9, 0.1]] * (2 * size)})
    return Explained(folder / "p", {name: folder / name for name in measures}, seeds, ["test"], sample=count)


def test_each_seed_explains_and_scores_its_own_sample(tmp_path):
    instances = example_instances(24)
    explained = cell(tmp_path, instances, {"a": MeasureCall(doubled, {}), "b": MeasureCall(turned, {})}, 6)
    table = read_importances(tmp_path / "a", "a")
    assert len(table) == 12 and table["pair"].null_count == 12
    for explanations in explained.by_seed():
        wanted = draw_sample(instances.split, 6, explanations.seed)
        assert explanations.instance.tolist() == instances.instance[wanted].tolist()
        for scores, i in zip(explanations.scores["a"], wanted, strict=True):
            assert scores.tolist() == instances.ids[i][instances.maskable[i]].tolist()


def test_agreement_ranks_the_selected_tokens(tmp_path):
    """Scores of second texts alone are negated, so that τ is 1 of texts, and less of all that holds second ones."""
    instances = example_instances(24, paired=True)
    measures = {"a": MeasureCall(doubled, {}), "b": MeasureCall(turned, {})}
    explained = cell(tmp_path, instances, measures, None)
    rows = pa.table(Agreement(tokens=["text", "texts", "all"]).score(explained)).to_pandas()
    counts = {kind: group.groupby("instance")["length"].first() for kind, group in rows.groupby("tokens")}
    for i, (free, second) in enumerate(zip(instances.maskable, instances.pair, strict=True)):
        words = int(free.sum())
        assert [counts[kind][i] for kind in ("text", "texts", "all")] == [
            words,
            words + len(second),
            words + 2 + len(second),
        ]
    means = rows.groupby("tokens")["value"].mean()
    assert means["text"] == pytest.approx(1) and means["texts"] < 0.9 and means["all"] < 0.9


def test_agreement_of_tokens_without_scores_is_refused(tmp_path):
    lone = {"a": MeasureCall(doubled, {}), "b": MeasureCall(lambda e, i: Importances(doubled(e, i).scores), {})}
    explained = cell(tmp_path, example_instances(12, paired=True), lone, None)
    with pytest.raises(
        PlumblineError, match="measure 'b' gives no scores to second texts; change the measure's options"
    ):
        Agreement(tokens=["texts"]).score(explained)
    single = cell(tmp_path, example_instances(12), lone, None)
    assert len(Agreement(tokens=["texts"]).score(single)["seed"]) == 24, "texts that stand alone have no second ones"
    with pytest.raises(PlumblineError, match="gives no scores to special tokens"):
        Agreement(tokens=["all"]).score(single)


def test_scores_of_second_texts_must_fit_them():
    instances = example_instances(3, paired=True)
    found = Importances([np.zeros(int(free.sum())) for free in instances.maskable], pair=[np.zeros(1)] * 3)
    with pytest.raises(PlumblineError, match="which has 2 words in its second text"):
        check_scores(found, instances, "mine")


def test_subwords_of_a_word_are_ranked_as_one(tmp_path):
    """Subwords 0 and 1 are a word, 2 another, 3 and 4 a third: sums by hand, and τ of three words, not five."""
    keys = {"seed": [0], "split": ["test"], "instance": [5]}
    write_table(tmp_path / "p", PREDICTIONS, {**keys, "label": [0], "probabilities": [[0.9, 0.1]]})
    for name, scores, second in (("a", [1, 2, 4, 3, 3], [1, 5]), ("b", [5, 5, 4, 1, 1], [2, 1])):
        columns = {"scores": [scores], "pair": [second], "specials": [[9, 9, 9]]}
        write_importances(tmp_path / name, {name: {**keys, "target": [0], **columns}})
    text = {"tokens": [["[CLS]", *"vwxyz", "[SEP]"]], "ids": [[1, 5, 6, 7, 8, 9, 2]]}
    text |= {"maskable": [[False, *[True] * 5, False]], "tokens_b": [["k", "l", "[SEP]"]], "ids_b": [[3, 4, 2]]}
    subwords = {"maskable_b": [[True, True, False]], "word": [[0, 0, 1, 2, 2]], "word_b": [[0, 0]]}
    write_table(tmp_path / "t", INSTANCES, {"split": ["test"], "instance": [5], "label": [0], **text, **subwords})
    explained = Explained(tmp_path / "p", {n: tmp_path / n for n in "ab"}, [0], ["test"], tmp_path / "t")
    (explanations,) = explained.by_seed()
    summed = sum_subwords(explanations, explained.words())
    assert summed.scores["a"][0].tolist() == [3, 4, 6] and summed.pair["b"][0].tolist() == [3]
    rows = pa.table(Agreement(tokens=["text", "all"], subwords="summed").score(explained)).to_pandas()
    assert rows["length"].tolist() == [3, 7] and rows["value"][0] == -1
    assert Agreement().score(explained)["length"].tolist() == [5]
