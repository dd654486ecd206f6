"""Permuted and adversarial attention: distances, searches and their tables."""

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
from plumbline.protocols.attention.adversarial import ROUNDING, AdversarialAttention, Search, divergence_slope, search
from plumbline.protocols.attention.bins import BINS, bin_of
from plumbline.protocols.attention.permutation import Permutation, permuted
from plumbline.registry import Registry

REGISTRY = Registry()
CASES = [
    ("bilstm-tanh", False),
    ("average-tanh", False),
    ("cnn-dot", False),
    ("bilstm-tanh", True),
    ("average-dot", True),
]


def evaluator(name: str, paired: bool = False, budget: int = 10_000, sharp: float = 20.0) -> Evaluator:
    """A random model whose output moves with its attention."""
    model = example_model(REGISTRY.get("model", name), paired=paired)
    with torch.no_grad():
        model.head.linear.weight *= sharp
        for parameter in model.attention.parameters():
            parameter *= sharp
    return Evaluator(model.requires_grad_(False), 3, budget)


def weights(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).softmax(-1)


def output(asked: Evaluator, instances: Instances, i: int, attention: np.ndarray) -> np.ndarray:
    """The output of one text alone with any weights on its words."""
    batch = whole_batch(instances.take([i]))
    spread = torch.zeros(1, batch.ids.shape[1])
    spread[0, instances.maskable[i]] = torch.from_numpy(np.asarray(attention, dtype=np.float32))
    encoded = asked.model.encode(asked.model.embedding(batch.ids), batch)
    return asked.model.decode(encoded, spread).softmax(-1)[0].numpy()


def test_distances_by_hand_and_by_scipy():
    one, other = torch.tensor([0.2, 0.8]), torch.tensor([0.5, 0.5])
    assert total_variation(one, other).item() == pytest.approx(0.3)
    three = torch.tensor([0.1, 0.2, 0.7]), torch.tensor([0.4, 0.2, 0.4])
    assert total_variation(*three).item() == pytest.approx(0.3)
    a, b = weights(6, 9), weights(6, 9, seed=1)
    expected = [jensenshannon(x, y) ** 2 for x, y in zip(a.numpy(), b.numpy(), strict=True)]
    np.testing.assert_allclose(jensen_shannon(a, b), expected, atol=1e-6)
    apart = torch.eye(2)
    assert jensen_shannon(apart[0], apart[1]).item() == pytest.approx(np.log(2), abs=1e-6)
    assert jensen_shannon(a, a).abs().max() < 1e-6


def test_bins_of_the_largest_weight():
    assert bin_of([0.0, 0.249, 0.25, 0.5, 0.75, 1.0]) == [BINS[0], BINS[0], BINS[1], BINS[2], BINS[3], BINS[3]]
    assert BINS == ("[0.00, 0.25)", "[0.25, 0.50)", "[0.50, 0.75)", "[0.75, 1.00]")


def test_slope_of_the_divergences_is_their_derivative():
    adversaries, attention = weights(2, 5, 3, 8).double().requires_grad_(), weights(3, 8, seed=1).double()
    pairs = jensen_shannon(adversaries[:, :, None], adversaries[:, None])
    value = jensen_shannon(adversaries, attention).sum() + pairs.sum() / 25
    (expected,) = torch.autograd.grad(value, adversaries)
    torch.testing.assert_close(divergence_slope(adversaries.detach(), attention), expected)
    alone = weights(1, 1, 3, 8).double().requires_grad_()
    (expected,) = torch.autograd.grad(jensen_shannon(alone, attention).sum(), alone)
    torch.testing.assert_close(divergence_slope(alone.detach(), attention), expected)


@pytest.mark.parametrize(("name", "paired"), CASES)
def test_permutation_equals_one_decoding_at_a_time(name, paired):
    asked, instances = evaluator(name, paired), example_instances(paired=paired)
    change, largest, predicted = permuted(asked, instances, 7)
    assert change.max() > 0.01
    for i in range(len(instances)):
        batch = whole_batch(instances.take([i]))
        told = asked.model(batch)
        before, attention = told.logits.softmax(-1)[0].numpy(), told.attention[0].numpy()[instances.maskable[i]]
        words = np.tile(np.flatnonzero(instances.maskable[i]), (7, 1))
        for k, order in enumerate(instances.generator(i, asked.seed).permuted(words, axis=1)):
            after = output(asked, instances, i, attention[order - 1])
            assert change[i, k] == pytest.approx(np.abs(after - before).sum() / 2, abs=1e-5)
        assert largest[i] == pytest.approx(attention.max(), abs=1e-5) and predicted[i] == before.argmax()


def test_permutation_does_not_depend_on_batch_or_order():
    instances = example_instances()
    order = np.random.default_rng(0).permutation(len(instances))
    whole = permuted(evaluator("bilstm-tanh"), instances, 20)
    parts = permuted(evaluator("bilstm-tanh", budget=20), instances.take(order), 20)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one[order], other, atol=1e-6)
    other_seed = evaluator("bilstm-tanh")
    other_seed.seed = 4
    assert not np.allclose(whole[0], permuted(other_seed, instances, 20)[0])


@pytest.mark.parametrize(("name", "paired"), CASES)
def test_permuting_uniform_attention_changes_nothing(name, paired):
    asked = evaluator(name, paired)
    asked.model.attend = lambda encoded, batch: masked_softmax(
        torch.zeros_like(encoded.hidden[..., 0]), batch.attendable
    )
    change, largest, _ = permuted(asked, example_instances(paired=paired), 25)
    assert change.max() < 1e-6
    assert largest[0] == pytest.approx(0.5), "the first text has two words"


def score(asked: Evaluator, instances: Instances, **options) -> pd.DataFrame:
    return pd.DataFrame(AdversarialAttention(**options)._seed(asked, instances))


@pytest.mark.parametrize(("name", "paired"), CASES)
def test_adversaries_keep_their_bound_when_computed_anew(name, paired):
    asked, instances = evaluator(name, paired), example_instances(24, paired=paired)
    found = score(asked, instances, steps=60)
    assert len(found) == 48 and found["epsilon"].tolist()[:2] == [0.01, 0.05]
    assert (found["jsd"] <= np.log(2)).all() and (found["jsd"] >= 0).all()
    assert (found["feasible"] > 0).any() and found["jsd"].max() > 0.1
    assert (found["jsd"].to_numpy()[1::2] >= found["jsd"].to_numpy()[::2]).all(), "a wider bound allows as much"
    for row in found.to_dict("records"):
        i = row["instance"]
        before = asked.model(whole_batch(instances.take([i]))).logits.softmax(-1)[0].numpy()
        np.testing.assert_allclose(row["probabilities"], before, atol=1e-6)
        assert row["adversary"].sum() == pytest.approx(1, abs=1e-5) and row["adversary"].min() >= 0
        after = output(asked, instances, i, row["adversary"])
        np.testing.assert_allclose(row["adversary_probabilities"], after, atol=1e-6)
        moved = np.abs(after - before).sum() / 2
        assert moved == pytest.approx(row["change"], abs=1e-6) and moved <= row["epsilon"]
        expected = jensenshannon(row["attention"], row["adversary"]) ** 2
        assert row["jsd"] == pytest.approx(expected, abs=1e-5)
    # A text of several words always has one: if the search has not kept the bound, what it found goes back.
    several, lost = found["length"] > 1, found["feasible"] == 0
    assert (found["jsd"][several] > 0).all() and (several & lost).any()


def test_where_nothing_is_feasible_the_attention_stands_for_itself():
    found = score(evaluator("bilstm-tanh"), example_instances(), steps=5, epsilon=[ROUNDING / 2])
    assert (found["jsd"] == 0).all() and (found["change"] == 0).all() and (found["feasible"] == 0).all()
    assert all(np.array_equal(row.attention, row.adversary) for row in found.itertuples())
    table = AdversarialAttention().summarise(pa.Table.from_pandas(found))
    assert table["feasible_fraction"].tolist() == [0] * len(table)


def test_where_attention_cannot_matter_every_adversary_is_feasible_and_far():
    """One word, repeated, through an encoder that sees each word by itself: any attention gives the same output."""
    instances = example_instances()
    same = replace(
        instances, ids=[np.where(free, 7, ids) for ids, free in zip(instances.ids, instances.maskable, strict=True)]
    )
    found = score(evaluator("average-tanh"), same, steps=300)
    assert (found["feasible"] >= 5).all() and found["change"].max() < 1e-5
    assert found["jsd"][found["length"] >= 9].min() > 0.5


def test_search_equals_the_loss_as_it_is_written_under_pytorch_adam():
    asked, instances = evaluator("bilstm-tanh", True), example_instances(6, paired=True)
    batch, model, how = whole_batch(instances), asked.model, Search(3, 40, 0.01, 500.0, 3.0)
    with torch.no_grad():
        encoded = model.encode(model.embedding(batch.ids), batch)
        attention = model.attend(encoded, batch)
        before = model.decode(encoded, attention).softmax(-1)
    starts = 3 * torch.randn(2, 3, *batch.ids.shape, generator=torch.Generator().manual_seed(0))
    found = search(model, encoded, attention, before, batch.attendable, starts.clone(), [0.01, 0.05], how)
    for g, slack in enumerate([0.01, 0.05]):
        logits = starts[g].clone().requires_grad_()
        adam = torch.optim.Adam([logits], lr=0.01, amsgrad=True)
        for _ in range(40):
            adversaries = masked_softmax(logits, batch.attendable)
            moved = (model.decode(encoded, adversaries).softmax(-1) - before).abs().sum(-1) / 2
            loss = 500 * (moved - slack).clamp(min=0).sum() - jensen_shannon(adversaries, attention).sum()
            loss = loss - jensen_shannon(adversaries[:, None], adversaries[None]).sum() / 9
            adam.zero_grad()
            loss.backward()
            adam.step()
        torch.testing.assert_close(found[g], masked_softmax(logits.detach(), batch.attendable), atol=2e-4, rtol=0)


def test_search_does_not_depend_on_batch_or_order():
    instances = example_instances()
    order = np.random.default_rng(0).permutation(len(instances))
    whole = score(evaluator("bilstm-tanh"), instances, steps=40)
    parts = score(evaluator("bilstm-tanh", budget=16), instances.take(order), steps=40)
    both = whole.merge(parts, on=["instance", "epsilon"])
    np.testing.assert_allclose(both["jsd_x"], both["jsd_y"], atol=1e-3)


def test_published_slack_searches_once_for_all_epsilons():
    asked, instances = evaluator("bilstm-tanh"), example_instances()
    found = score(asked, instances, steps=40, slack="published")
    alone = score(asked, instances, steps=40, epsilon=[0.01])
    # As in the study's code, what the search has not found is not looked for.
    assert found["feasible"].to_numpy()[::2].tolist() == alone["feasible"].tolist()
    assert (found["jsd"][found["feasible"] == 0] == 0).all() and (found["feasible"] > 0).any()
    assert np.isclose(found["jsd"].to_numpy()[::2], alone["jsd"], atol=1e-6).sum() >= 5
    assert (alone["jsd"].to_numpy() >= found["jsd"].to_numpy()[::2] - 1e-6).all()
    assert (found["jsd"].to_numpy()[1::2] >= found["jsd"].to_numpy()[::2]).all()


@pytest.mark.parametrize(
    ("make", "options", "says"),
    [
        (Permutation, {"permutations": 0}, "`permutations` is 0"),
        (AdversarialAttention, {"epsilon": []}, "`epsilon` is"),
        (AdversarialAttention, {"epsilon": [0.1, 0.1]}, "each once"),
        (AdversarialAttention, {"steps": 0}, "`steps` is 0"),
    ],
)
def test_impossible_options_are_refused(make, options, says):
    with pytest.raises(PlumblineError, match=says):
        make(**options)


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
