"""Permuted and adversarial attention: distances, search and tables."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from plumbline.conformance import example_instances, example_model, whole_batch
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.attention import masked_softmax
from plumbline.models.distances import jensen_shannon, total_variation
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.attention.adversarial import (
    ROUNDING,
    AdversarialAttention,
    SearchOptions,
    divergence_gradient,
    search_adversaries,
)
from plumbline.protocols.attention.bins import BINS, weight_bins
from plumbline.protocols.attention.permutation import Permutation, permute_attention
from plumbline.registry import Registry

REGISTRY = Registry()
CASES = [
    ("bilstm-tanh", False),
    ("average-tanh", False),
    ("cnn-dot", False),
    ("bilstm-tanh", True),
    ("average-dot", True),
]


def make_evaluator(name: str, paired: bool = False, budget: int = 10_000, sharp: float = 20.0) -> Evaluator:
    """A random model whose output depends on its attention."""
    model = example_model(REGISTRY.get("model", name), paired=paired)
    with torch.no_grad():
        model.head.linear.weight *= sharp
        for parameter in model.attention.parameters():
            parameter *= sharp
    return Evaluator(model.requires_grad_(False), 3, budget)


def weights(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).softmax(-1)


def output(evaluator: Evaluator, instances: Instances, i: int, attention: np.ndarray) -> np.ndarray:
    """The output of a single text with the given weights on its words."""
    batch = whole_batch(instances.take([i]))
    spread = torch.zeros(1, batch.ids.shape[1])
    spread[0, instances.maskable[i]] = torch.from_numpy(np.asarray(attention, dtype=np.float32))
    encoded = evaluator.model.encode(evaluator.model.embedding(batch.ids), batch)
    return evaluator.model.decode(encoded, spread).softmax(-1)[0].numpy()


def test_distances_by_hand_and_by_scipy():
    two = torch.tensor([0.2, 0.8]), torch.tensor([0.5, 0.5])
    assert total_variation(*two).item() == pytest.approx(0.3)
    three = torch.tensor([0.1, 0.2, 0.7]), torch.tensor([0.4, 0.2, 0.4])
    assert total_variation(*three).item() == pytest.approx(0.3)
    a, b = weights(6, 9), weights(6, 9, seed=1)
    expected = [jensenshannon(x, y) ** 2 for x, y in zip(a.numpy(), b.numpy(), strict=True)]
    np.testing.assert_allclose(jensen_shannon(a, b), expected, atol=1e-6)
    apart = torch.eye(2)
    assert jensen_shannon(apart[0], apart[1]).item() == pytest.approx(np.log(2), abs=1e-6)
    assert jensen_shannon(a, a).abs().max() < 1e-6


def test_bins_of_the_largest_weight():
    assert weight_bins([0.0, 0.249, 0.25, 0.5, 0.75, 1.0]) == [BINS[0], BINS[0], BINS[1], BINS[2], BINS[3], BINS[3]]
    assert BINS == ("[0.00, 0.25)", "[0.25, 0.50)", "[0.50, 0.75)", "[0.75, 1.00]")


def test_gradient_of_the_divergences_equals_autograd():
    adversaries, attention = weights(2, 5, 3, 8).double().requires_grad_(), weights(3, 8, seed=1).double()
    pairs = jensen_shannon(adversaries[:, :, None], adversaries[:, None])
    value = jensen_shannon(adversaries, attention).sum() + pairs.sum() / 25
    (expected,) = torch.autograd.grad(value, adversaries)
    torch.testing.assert_close(divergence_gradient(adversaries.detach(), attention), expected)
    alone = weights(1, 1, 3, 8).double().requires_grad_()
    (expected,) = torch.autograd.grad(jensen_shannon(alone, attention).sum(), alone)
    torch.testing.assert_close(divergence_gradient(alone.detach(), attention), expected)


@pytest.mark.parametrize(("name", "paired"), CASES)
def test_permutation_equals_one_decoding_at_a_time(name, paired):
    evaluator, instances = make_evaluator(name, paired), example_instances(paired=paired)
    change, largest, predicted = permute_attention(evaluator, instances, 7)
    assert change.max() > 0.01
    for i in range(len(instances)):
        batch = whole_batch(instances.take([i]))
        whole = evaluator.model(batch)
        before, attention = whole.logits.softmax(-1)[0].numpy(), whole.attention[0].numpy()[instances.maskable[i]]
        words = np.tile(np.flatnonzero(instances.maskable[i]), (7, 1))
        for k, order in enumerate(instances.generator(i, evaluator.seed).permuted(words, axis=1)):
            after = output(evaluator, instances, i, attention[order - 1])
            assert change[i, k] == pytest.approx(np.abs(after - before).sum() / 2, abs=1e-5)
        assert largest[i] == pytest.approx(attention.max(), abs=1e-5) and predicted[i] == before.argmax()


def test_permutation_does_not_depend_on_batch_or_order():
    instances = example_instances()
    order = np.random.default_rng(0).permutation(len(instances))
    whole = permute_attention(make_evaluator("bilstm-tanh"), instances, 20)
    parts = permute_attention(make_evaluator("bilstm-tanh", budget=20), instances.take(order), 20)
    for expected, result in zip(whole, parts, strict=True):
        np.testing.assert_allclose(expected[order], result, atol=1e-6)
    other_seed = make_evaluator("bilstm-tanh")
    other_seed.seed = 4
    assert not np.allclose(whole[0], permute_attention(other_seed, instances, 20)[0])


@pytest.mark.parametrize(("name", "paired"), CASES)
def test_permuting_uniform_attention_changes_nothing(name, paired):
    evaluator = make_evaluator(name, paired)
    evaluator.model.attend = lambda encoded, batch: masked_softmax(
        torch.zeros_like(encoded.hidden[..., 0]), batch.attendable
    )
    change, largest, _ = permute_attention(evaluator, example_instances(paired=paired), 25)
    assert change.max() < 1e-6
    assert largest[0] == pytest.approx(0.5), "the first text has two words"


def score(evaluator: Evaluator, instances: Instances, **options) -> pd.DataFrame:
    return pd.DataFrame(AdversarialAttention(**options)._seed(evaluator, instances))


@pytest.mark.parametrize(("name", "paired"), CASES)
def test_adversaries_satisfy_their_bound_when_recomputed(name, paired):
    evaluator, instances = make_evaluator(name, paired), example_instances(24, paired=paired)
    rows = score(evaluator, instances, steps=60)
    assert len(rows) == 48 and rows["epsilon"].tolist()[:2] == [0.01, 0.05]
    assert (rows["jsd"] <= np.log(2)).all() and (rows["jsd"] >= 0).all()
    assert (rows["feasible"] > 0).any() and rows["jsd"].max() > 0.1
    assert (rows["jsd"].to_numpy()[1::2] >= rows["jsd"].to_numpy()[::2]).all(), "a wider bound allows as much"
    for row in rows.to_dict("records"):
        i = row["instance"]
        before = evaluator.model(whole_batch(instances.take([i]))).logits.softmax(-1)[0].numpy()
        np.testing.assert_allclose(row["probabilities"], before, atol=1e-6)
        assert row["adversary"].sum() == pytest.approx(1, abs=1e-5) and row["adversary"].min() >= 0
        after = output(evaluator, instances, i, row["adversary"])
        np.testing.assert_allclose(row["adversary_probabilities"], after, atol=1e-6)
        change = np.abs(after - before).sum() / 2
        assert change == pytest.approx(row["change"], abs=1e-6) and change <= row["epsilon"]
        expected = jensenshannon(row["attention"], row["adversary"]) ** 2
        assert row["jsd"] == pytest.approx(expected, abs=1e-5)
    # A text of several words always has an adversary: without a feasible one, the best is interpolated to the bound.
    several, infeasible = rows["length"] > 1, rows["feasible"] == 0
    assert (rows["jsd"][several] > 0).all() and (several & infeasible).any()


def test_if_nothing_is_feasible_the_adversary_is_the_attention():
    rows = score(make_evaluator("bilstm-tanh"), example_instances(), steps=5, epsilon=[ROUNDING / 2])
    assert (rows["jsd"] == 0).all() and (rows["change"] == 0).all() and (rows["feasible"] == 0).all()
    assert all(np.array_equal(row.attention, row.adversary) for row in rows.itertuples())
    table = AdversarialAttention().summarise(pa.Table.from_pandas(rows))
    assert table["feasible_fraction"].tolist() == [0] * len(table)


def test_if_attention_has_no_effect_every_adversary_is_feasible_and_far():
    """One repeated word and an encoder of single words: any attention gives the same output."""
    instances = example_instances()
    same = replace(
        instances, ids=[np.where(free, 7, ids) for ids, free in zip(instances.ids, instances.maskable, strict=True)]
    )
    rows = score(make_evaluator("average-tanh"), same, steps=300)
    assert (rows["feasible"] >= 5).all() and rows["change"].max() < 1e-5
    assert rows["jsd"][rows["length"] >= 9].min() > 0.5


def test_search_equals_pytorch_adam_on_the_literal_loss():
    evaluator, instances = make_evaluator("bilstm-tanh", True), example_instances(6, paired=True)
    batch, model, options = whole_batch(instances), evaluator.model, SearchOptions(3, 40, 0.01, 500.0, 3.0)
    with torch.no_grad():
        encoded = model.encode(model.embedding(batch.ids), batch)
        attention = model.attend(encoded, batch)
        before = model.decode(encoded, attention).softmax(-1)
    starts = 3 * torch.randn(2, 3, *batch.ids.shape, generator=torch.Generator().manual_seed(0))

    def output_change(weights: torch.Tensor) -> torch.Tensor:
        return total_variation(model.decode(encoded, weights).softmax(-1), before)

    adversarial = search_adversaries(output_change, attention, batch.attendable, starts.clone(), [0.01, 0.05], options)
    for g, slack in enumerate([0.01, 0.05]):
        logits = starts[g].clone().requires_grad_()
        adam = torch.optim.Adam([logits], lr=0.01, amsgrad=True)
        for _ in range(40):
            adversaries = masked_softmax(logits, batch.attendable)
            change = (model.decode(encoded, adversaries).softmax(-1) - before).abs().sum(-1) / 2
            loss = 500 * (change - slack).clamp(min=0).sum() - jensen_shannon(adversaries, attention).sum()
            loss = loss - jensen_shannon(adversaries[:, None], adversaries[None]).sum() / 9
            adam.zero_grad()
            loss.backward()
            adam.step()
        torch.testing.assert_close(adversarial[g], masked_softmax(logits.detach(), batch.attendable), atol=2e-4, rtol=0)


def test_search_does_not_depend_on_batch_or_order():
    instances = example_instances()
    order = np.random.default_rng(0).permutation(len(instances))
    whole = score(make_evaluator("bilstm-tanh"), instances, steps=40)
    parts = score(make_evaluator("bilstm-tanh", budget=16), instances.take(order), steps=40)
    both = whole.merge(parts, on=["instance", "epsilon"])
    np.testing.assert_allclose(both["jsd_x"], both["jsd_y"], atol=1e-3)


def test_published_slack_searches_once_for_all_epsilons():
    evaluator, instances = make_evaluator("bilstm-tanh"), example_instances()
    rows = score(evaluator, instances, steps=40, slack="published")
    alone = score(evaluator, instances, steps=40, epsilon=[0.01])
    # As in the study's code, infeasible adversaries are not interpolated.
    assert rows["feasible"].to_numpy()[::2].tolist() == alone["feasible"].tolist()
    assert (rows["jsd"][rows["feasible"] == 0] == 0).all() and (rows["feasible"] > 0).any()
    assert np.isclose(rows["jsd"].to_numpy()[::2], alone["jsd"], atol=1e-6).sum() >= 5
    assert (alone["jsd"].to_numpy() >= rows["jsd"].to_numpy()[::2] - 1e-6).all()
    assert (rows["jsd"].to_numpy()[1::2] >= rows["jsd"].to_numpy()[::2]).all()


@pytest.mark.parametrize(
    ("protocol", "options", "message"),
    [
        (Permutation, {"permutations": 0}, "`permutations` is 0"),
        (AdversarialAttention, {"epsilon": []}, "`epsilon` is"),
        (AdversarialAttention, {"epsilon": [0.1, 0.1]}, "distinct numbers"),
        (AdversarialAttention, {"steps": 0}, "`steps` is 0"),
    ],
)
def test_invalid_options_are_rejected(protocol, options, message):
    with pytest.raises(PlumblineError, match=message):
        protocol(**options)


def test_summaries_by_class_and_bin():
    scores = {
        "seed": [0] * 5, "predicted_class": [0, 0, 1, 1, 1], "max_attention": [0.1, 0.2, 0.1, 0.8, 0.9],
        "median_change": [0.1, 0.3, 0.5, 0.0, 0.2],
    }  # fmt: skip
    table = Permutation().summarise(pa.table(scores)).set_index(["predicted_class", "max_attention_bin"])
    assert table.loc[("all", "all"), "n"] == 5
    assert table.loc[("all", "all"), "median_change_mean"] == pytest.approx(0.22)
    assert table.loc[("0", BINS[0]), ["median_change_q25", "median_change_q75"]].tolist() == pytest.approx([0.15, 0.25])
    assert table.loc[("1", BINS[3]), "n"] == 2 and ("0", BINS[3]) not in table.index
    many = pa.table(scores | {"predicted_class": [0, 1, 2, 3, 3]})
    assert set(Permutation().summarise(many)["predicted_class"]) == {"all"}
    adversaries = {
        "seed": [0] * 4, "predicted_class": [0] * 4, "max_attention": [0.1, 0.1, 0.9, 0.9],
        "epsilon": [0.01, 0.05] * 2, "feasible": [0, 3, 5, 5], "jsd": [0.0, 0.2, 0.4, 0.6],
    }  # fmt: skip
    table = (
        AdversarialAttention()
        .summarise(pa.table(adversaries))
        .set_index(["epsilon", "predicted_class", "max_attention_bin"])
    )
    whole = table.loc[(0.01, "all", "all")]
    assert (whole["n"], whole["feasible_fraction"]) == (2, 0.5)
    assert (whole["jsd_mean"], whole["jsd_std"]) == (pytest.approx(0.2), pytest.approx(0.2))
    assert table.loc[(0.05, "0", BINS[3]), "jsd_mean"] == pytest.approx(0.6)
