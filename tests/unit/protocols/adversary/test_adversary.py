"""Adversaries: their objectives, the epoch that is kept, the base model's columns they read, and their table."""

from dataclasses import replace
from functools import cache, partial
from itertools import chain, permutations, product
from math import inf, log, nan

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from plumbline.config.recipes import OBJECTIVE_TRAINING, Training
from plumbline.config.resolve import resolve
from plumbline.config.runs import list_runs
from plumbline.conformance import example_explained, example_instances, example_model, whole_batch
from plumbline.errors import PlumblineError
from plumbline.models.attention import masked_softmax
from plumbline.models.block import build_model
from plumbline.models.budget import Budget
from plumbline.models.classifier import Output
from plumbline.models.evaluator import Evaluator
from plumbline.models.objectives import AtteFa, Classification, Guided, WiegreffePinter, objective_of
from plumbline.models.rows import DeviceRows
from plumbline.models.schemas import ATTENTION
from plumbline.models.stored_attention import attention_columns, base_columns, compute_attention
from plumbline.protocols.adversary.table import (
    ADVERSARY_KEYS,
    CONSTANT,
    adversary_rows,
    attefa_rows,
    attefa_score,
    attention_divergence,
    output_distance,
)
from plumbline.protocols.attention.bins import BINS
from plumbline.protocols.attention.seed_variance import SeedVariance
from plumbline.registry import Registry
from plumbline.store import read_table, write_table
from plumbline.tables.chance import AT_CHANCE, COLLAPSED, mark_at_chance
from plumbline.training.epochs import select_epoch
from plumbline.training.learner import evaluate_rows
from plumbline.training.schemas import PREDICTIONS
from plumbline.training.trainer import BlockSpec, SeedSetup, split_rows, train_block, train_together
from tests.unit.models.test_heads import sharp
from tests.unit.training.test_trainer import EMBEDDING, FILLER, SPLITS, VECTORS, pointer

REGISTRY = Registry()
both = pytest.mark.parametrize("objective", [AtteFa(), WiegreffePinter(0.1)], ids=["attefa", "wiegreffe-pinter"])


def weights(*shape, seed=0):
    return (2 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))).softmax(-1)


def output_of(probabilities, heads):
    """An output with these probabilities [B, C] and weights [B, K, L]."""
    return Output(probabilities.log(), heads.mean(1), heads if heads.shape[1] > 1 else None)


def base(probabilities, heads):
    """The columns of a base model with these probabilities [B, C] and weights [B, K, L]."""
    return {"base_probabilities": probabilities, "base_attention": heads.transpose(1, 2)}


def summarised(objective, output, row):
    """An objective's summary of a split, by name."""
    summary = objective.summary(objective.quantities(output, row).double().mean(0))
    return dict(zip(objective.metrics, summary.tolist(), strict=True))


def attentive(name, seed=0, paired=False):
    """A random model whose attention differs between words."""
    model = example_model(REGISTRY.get("model", name), seed, paired).requires_grad_(False)
    for parameter in model.attention.parameters():
        parameter *= 5
    return model.eval()


@both
def test_quantities_are_the_distances_of_all_pairs_of_heads(objective):
    ours, theirs = weights(4, 3, 7), weights(4, 3, 7, seed=1)
    p, q = weights(4, 2), weights(4, 2, seed=1)
    found = objective.quantities(output_of(p, ours), base(q, theirs))
    np.testing.assert_allclose(found[:, 0], (p - q).abs()[:, 0], atol=1e-6)
    jsd, kl = found[:, 1:].view(4, 2, 3, 3).unbind(1)
    for row, head, other in product(range(4), range(3), range(3)):
        a, b = ours[row, other].double(), theirs[row, head].double()
        assert jsd[row, head, other].item() == pytest.approx(jensenshannon(a, b) ** 2, abs=1e-6)
        assert kl[row, head, other].item() == pytest.approx(entropy(a, b), abs=1e-5)


def test_losses_by_hand():
    p, q = torch.tensor([[0.8, 0.2], [0.3, 0.7]]), torch.tensor([[0.5, 0.5], [0.7, 0.3]])
    ours, theirs = torch.tensor([[[1.0, 0.0]], [[0.5, 0.5]]]), torch.tensor([[[0.0, 1.0]], [[0.25, 0.75]]])
    near = (log(4 / 3) + log(4 / 5)) / 4 + (0.25 * log(2 / 3) + 0.75 * log(6 / 5)) / 2
    found = AtteFa().losses(output_of(p, ours), base(q, theirs)).tolist()
    assert found == pytest.approx([0.15 / 0.5 - 1, 0.2 / 0.5 - near / log(2)], abs=1e-6)
    found = WiegreffePinter(0.3).losses(output_of(p, ours), base(q, theirs)).tolist()
    assert found[1] == pytest.approx(0.2 - 0.3 * log(4 / 3) / 2, abs=1e-6)
    assert found[0] == pytest.approx(0.15 - 0.3 * log(1e10), abs=1e-4), "a weight of 0 counts as 1e-10"


def test_total_variation_is_over_all_classes():
    p, q = torch.tensor([[0.7, 0.2, 0.1], [1, 0, 0]]), torch.tensor([[0.1, 0.5, 0.4], [0, 0.5, 0.5]])
    same = weights(2, 1, 4)
    assert AtteFa().losses(output_of(p, same), base(q, same)).tolist() == pytest.approx([0.6, 1], abs=1e-6)
    assert WiegreffePinter(9).losses(output_of(p, same), base(q, same)).tolist() == pytest.approx([0.3, 0.5], abs=1e-5)
    assert summarised(AtteFa(), output_of(p, same), base(q, same))["tvd"] == pytest.approx(0.4, abs=1e-6)


@both
def test_weights_of_exactly_0_and_padding_give_finite_losses_and_gradients(objective):
    scores, theirs = torch.tensor([[0.0, -200, 1, -200]]), torch.tensor([[[0.0, 0.6, 0.4, 0.0]]])
    p, q = weights(1, 2), weights(1, 2, seed=1)
    found = []
    for padding in (0, 3):
        wide = torch.nn.functional.pad(scores, (0, padding), value=5.0).requires_grad_()
        ours = masked_softmax(wide, torch.arange(4 + padding)[None] < 4)
        assert (ours[0, :4] > 0).tolist() == [True, False, True, False]
        row = base(q, torch.nn.functional.pad(theirs, (0, padding)))
        (loss,) = objective.losses(output_of(p, ours[:, None]), row)
        loss.backward()
        assert wide.grad.isfinite().all() and wide.grad.abs().max() > 1e-3 and not wide.grad[:, 4:].any()
        found.append([loss.item(), *wide.grad[0, :4].tolist()])
    assert np.isfinite(found[0]).all() and found[1] == pytest.approx(found[0], abs=1e-6)


@both
def test_impossible_classes_give_finite_losses_and_gradients(objective):
    batch = whole_batch(example_instances(paired=True))
    ours, theirs = (attentive("bilstm-tanh", seed, paired=True) for seed in (0, 1))
    ours.requires_grad_(True)
    output, other = ours(batch), theirs(batch)
    q = other.logits.softmax(-1)
    assert other.logits.isinf().any() and ((q == 0) == other.logits.isinf()).all()
    row = base(q, other.attention[:, None])
    # Two answers are allowed.
    change = (output.logits.softmax(-1) - q).abs().amax(-1)
    torch.testing.assert_close(objective.quantities(output, row)[:, 0], change, atol=1e-6, rtol=0)
    objective.losses(output, row).sum().backward()
    slopes = [parameter.grad for parameter in ours.parameters()]
    assert all(slope.isfinite().all() for slope in slopes) and all(slope.any() for slope in slopes)


@both
def test_a_summary_consists_of_means(objective):
    p, q, ours, theirs = weights(9, 3), weights(9, 3, seed=1), weights(9, 1, 6, seed=2), weights(9, 1, 6, seed=3)
    found = summarised(objective, output_of(p, ours), base(q, theirs))
    assert found["tvd"] == pytest.approx(output_distance(p.numpy(), q.numpy()).mean(), abs=1e-6)
    assert found["jsd"] == pytest.approx(attention_divergence(ours, theirs).mean(), abs=1e-6)
    assert found["kl"] == pytest.approx(entropy(ours[:, 0], theirs[:, 0], axis=1).mean(), abs=1e-5)
    assert found["loss"] == pytest.approx(objective.losses(output_of(p, ours), base(q, theirs)).mean().item(), abs=1e-6)


def test_objectives_by_their_names():
    assert [type(objective_of(name)) for name in ("", "guided", "attefa")] == [Classification, Guided, AtteFa]
    assert objective_of("wiegreffe-pinter", 0.3).strength == 0.3


def permuted(model, order):
    """The same model with permuted heads."""
    other = sharp("average-heads")
    other.load_state_dict(model.state_dict())
    for position, head in enumerate(order):
        other.attention.heads[position].load_state_dict(model.attention.heads[head].state_dict())
    reads = other.head.linear.weight
    reads[:] = reads.unflatten(1, (4, -1))[:, order].flatten(1)
    return other


def test_permuted_heads_are_the_same_attention():
    model, batch = sharp("average-heads"), whole_batch(example_instances())
    output = permuted(model, [2, 0, 3, 1])(batch)
    row = base(model(batch).logits.softmax(-1), model(batch).heads)
    found = summarised(AtteFa(), output, row)
    assert found["jsd"] == 0 and found["tvd"] == pytest.approx(0, abs=1e-7)
    assert attefa_score(found["tvd"], found["jsd"]) == 1
    unmatched = AtteFa().quantities(output, row)[:, 1:].mean(0).view(2, 4, 4)[0].diagonal()
    assert unmatched.min() > 0.01
    assert AtteFa().losses(output, row).abs().max() < 1e-6


@both
def test_losses_and_summary_do_not_depend_on_the_order_of_heads(objective):
    p, q, ours, theirs = weights(5, 2), weights(5, 2, seed=1), weights(5, 3, 6, seed=2), weights(5, 3, 6, seed=3)
    arguments = output_of(p, ours), base(q, theirs)
    losses, summary = objective.losses(*arguments), summarised(objective, *arguments)
    for our_order, their_order in (([1, 2, 0], [0, 1, 2]), ([0, 1, 2], [2, 1, 0]), ([2, 0, 1], [1, 0, 2])):
        arguments = output_of(p, ours[:, our_order]), base(q, theirs[:, their_order])
        torch.testing.assert_close(objective.losses(*arguments), losses, atol=1e-6, rtol=0)
        assert summarised(objective, *arguments) == pytest.approx(summary, abs=1e-6)


@both
def test_heads_are_matched_over_the_batch_and_learn(objective):
    theirs = torch.tensor([[0.98, 0.01, 0.01], [0.01, 0.98, 0.01]]).repeat(2, 1, 1)
    # The first row has its heads swapped, the second is a little nearer unswapped.
    ours = torch.stack([theirs[0].flip(0), torch.tensor([[0.5, 0.4, 0.1], [0.4, 0.5, 0.1]])])
    p, scores = weights(2, 2), ours.log().requires_grad_()
    heads = scores.softmax(-1)
    losses = objective.losses(output_of(p, heads), base(p, theirs))
    pairs = [objective.losses(output_of(p, heads[:, 1 - k, None]), base(p, theirs[:, k, None])) for k in range(2)]
    expected = torch.stack(pairs).mean(0)
    torch.testing.assert_close(losses, expected, atol=1e-6, rtol=0)
    slopes = [torch.autograd.grad(loss.sum(), scores, retain_graph=True)[0] for loss in (losses, expected)]
    torch.testing.assert_close(*slopes, atol=1e-6, rtol=0)
    assert slopes[0][1].abs().amax(-1).min() > 1e-3
    nearer = objective.losses(output_of(p[1:], heads[1:]), base(p[1:], theirs[1:]))
    assert abs(nearer.item()) < abs(losses[1].item()), "alone it is matched differently"


@pytest.mark.parametrize("name", ["bilstm-tanh", "average-heads"])
def test_the_summary_does_not_depend_on_the_batches_of_a_split(name):
    instances, objective = example_instances(20), AtteFa()
    ours, theirs = attentive(name), attentive(name, seed=1)
    seen = compute_attention(Evaluator(theirs, 1, 10_000), instances)
    spread = [np.pad(heads.T, ((1, 1), (0, 0))) for heads in seen]
    q = Evaluator(theirs, 1, 10_000).probabilities(instances)
    rows = DeviceRows(instances, "cpu", {"base_attention": spread, "base_probabilities": q})
    summaries = []
    for budget in (16, 60, 10_000):
        chunks = rows.plan_chunks(ours, Budget(budget))
        _, quantities = evaluate_rows(ours, objective, rows, chunks)
        summaries.append([len(chunks), *objective.summary(quantities.double().mean(0)).tolist()])
    assert summaries[0][0] > summaries[1][0] > summaries[2][0] == 1 and summaries[2][2] > 0.01
    for summary in summaries[:2]:
        assert summary[1:] == pytest.approx(summaries[2][1:], abs=1e-6)


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        ([0.1, 0.3, 0.2], {}, (2, False)),
        ([0.1, 0.3, 0.3], {}, (2, False)),
        ([3, 1, 2], {"larger": False}, (2, False)),
        ([-1, -3, -3], {"larger": False}, (2, False)),
        ([9, 1, 2, 2], {"first": 2}, (3, False)),
        ([9, 1], {"first": 3}, (0, False)),
        ([], {}, (0, False)),
        ([0.3, 0.2], {"patience": 2}, (1, False)),
        ([0.3, 0.2, 0.3], {"patience": 2}, (1, True)),
        ([0.3, 0.2, 0.1, 0.9], {"patience": 2}, (1, True)),
        ([0.3, 0.2, 0.4, 0.4, 0.1], {"patience": 2}, (3, True)),
        ([9, 9, 1, 0, 0], {"patience": 2, "first": 3}, (3, True)),
        ([9, 9, 1, 0], {"patience": 2, "first": 3}, (3, False)),
        ([nan, 0.1, nan, 0.2], {}, (4, False)),
        ([nan, nan], {}, (1, False)),
        ([nan, 5, 4], {"larger": False}, (3, False)),
        ([inf, 5, 4], {"larger": False}, (3, False)),
        ([0.3, nan, nan, 0.9], {"patience": 2}, (1, True)),
    ],
)
def test_the_chosen_epoch_by_hand(values, options, expected):
    assert select_epoch(values, **options) == expected


class Scripted(Classification):
    """Learns as usual but reports given losses, by epoch: of the training split and of the held-out ones."""

    reports = ("test",)

    def __init__(self, train, *held_out):
        steps = -(-len(SPLITS["train"]) // 32)
        self.train = iter(np.repeat(train, steps))
        self.held_out = chain.from_iterable(zip(*held_out, strict=True))

    def losses(self, output, row):
        losses = super().losses(output, row)
        return losses - losses.detach() + float(next(self.train))

    def quantities(self, output, row):
        return super().losses(output, row)[:, None]

    def summary(self, means):
        return torch.full_like(means, float(next(self.held_out)))


def scripted(train, *held_out, **changes):
    """One seed, trained for as many epochs as there are losses."""
    usual = {"epochs": len(train), "first_eligible_epoch": 1, "select_by": "loss", "also_select_on": ["test"]}
    training = Training(**{**usual, **changes})
    rows, objective = split_rows(SPLITS, 2, training, "cpu"), Scripted(train, *held_out)
    build = partial(build_model, *pointer("bag-of-words"), EMBEDDING, 2)
    (trained,) = train_together(SeedSetup(build, rows, training, objective=objective), [0], Budget(4096))
    return trained


def at_end_of(epoch):
    """The parameters after this number of epochs."""
    falling = range(epoch, 0, -1)
    return scripted(falling, falling, falling).state


def alike(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(
    ("dev", "test", "options", "chosen", "epochs"),
    [
        # Training goes on for the test split, but dev has run out of patience.
        ([3, 1, 2, 2, 0, 0, 0, 0], [6, 5, 4, 3, 2, 2, 2, 2], {"patience": 2}, 2, 7),
        ([3, 1, 2, 2, 0, 0, 0, 0], [6, 5, 4, 3, 2, 2, 2, 2], {"patience": 2, "also_select_on": []}, 2, 4),
        ([3, 1, 2, 2, 0, 0, 0, 0], [6, 5, 4, 3, 2, 2, 2, 2], {}, 5, 8),
        ([0, 2, 1, 1], [1, 1, 1, 1], {"first_eligible_epoch": 2}, 3, 4),
        ([nan, 2, nan, 1, 3], [1, 1, 1, 1, 1], {}, 4, 5),
        ([nan, nan, nan], [1, 1, 1], {}, 1, 3),
    ],
)
def test_the_kept_weights_are_those_of_the_chosen_epoch(dev, test, options, chosen, epochs):
    trained = scripted([1] * len(dev), dev, test, **options)
    assert (trained.chosen_epoch, max(row["epoch"] for row in trained.history)) == (chosen, epochs)
    training = Training(**{"epochs": len(dev), "first_eligible_epoch": 1, **options})
    first, patience = training.first_eligible_epoch, training.patience
    assert select_epoch(dev, first, patience, larger=False)[0] == chosen, "the choice of the adversary table"
    assert alike(trained.state, at_end_of(chosen)) and not alike(trained.state, at_end_of(epochs))


def test_selection_on_the_training_split_uses_the_mean_loss_of_its_steps():
    trained = scripted([3, 1, 2], [1, 2, 3], select_on="train", also_select_on=[])
    losses = [row["value"] for row in trained.history if (row["split"], row["metric"]) == ("train", "loss")]
    assert losses == pytest.approx([3, 1, 2]) and trained.chosen_epoch == 2
    assert alike(trained.state, at_end_of(2))


def small(name):
    """A small model; the LSTM attends to one word, so that other attention is possible."""
    path, options = pointer(name)
    return path, options | {"hidden": 16, "temperature": 0.05 if name == "bilstm-tanh" else 1}


def train(name, seeds=(1,), objective=None, columns=None, **changes):
    usual = OBJECTIVE_TRAINING["attefa"] if objective else {"select_by": "loss"}
    training = Training(**{**usual, "epochs": 12, "learning_rate": 0.01, **changes})
    return train_block(
        BlockSpec(*small(name), VECTORS, SPLITS, 2, training, objective=objective, columns=columns), list(seeds), 4096
    )


def stored(name, parameters):
    """An evaluator of the trained model of one seed."""
    model = build_model(*small(name), EMBEDDING, 2)
    model.load_state_dict({key.partition("/")[2]: parameter for key, parameter in parameters.items()})
    return Evaluator(model.requires_grad_(False), 0, 4096)


@cache
def trained_base(name):
    """An evaluator of a base model, and the columns that adversaries read."""
    parameters, _, predictions = train(name, seeds=[0])
    evaluator = stored(name, parameters)
    parts = [attention_columns([evaluator], split) for split in SPLITS.values()]
    attention = pa.table({key: list(chain.from_iterable(part[key] for part in parts)) for key in parts[0]})
    return evaluator, base_columns(attention, pa.table(predictions), 0, SPLITS)


# Training by the loss of Wiegreffe and Pinter.
IMITATION = OBJECTIVE_TRAINING["wiegreffe-pinter"] | {"epochs": 12}


def last(history):
    """The values of the last epoch, by split and metric."""
    frame = pd.DataFrame(history)
    frame = frame[(frame["epoch"] == frame["epoch"].max()) & (frame["metric"] != "chosen_epoch")]
    return frame.set_index(["split", "metric"])["value"]


def test_an_lstm_can_attend_to_other_words_with_the_same_output():
    _, columns = trained_base("bilstm-tanh")
    found = last(train("bilstm-tanh", objective=AtteFa(), columns=columns)[1])
    assert found["test", "jsd"] > 0.6 and found["test", "tvd"] < 0.05 and found["test", "accuracy"] > 0.95
    scores = ["accuracy", "f1", "macro_f1", "roc_auc", "answers", "tvd", "jsd", "kl", "loss"]
    assert found.index.tolist() == [("train", "loss"), *product(["dev", "test"], scores)]
    assert found["test", "loss"] == pytest.approx(found["test", "tvd"] / 0.5 - found["test", "jsd"] / log(2))
    copied = last(train("bilstm-tanh", objective=WiegreffePinter(0), columns=columns, **IMITATION)[1])
    assert copied.index.tolist() == [("train", "loss"), *product(["test"], scores)]
    assert copied["test", "tvd"] < 0.02 and copied["test", "loss"] == copied["test", "tvd"]


def test_an_adversary_does_not_depend_on_the_seeds_trained_with_it():
    _, columns = trained_base("average-tanh")
    options = {"objective": AtteFa(), "columns": columns, "epochs": 3}
    together, again, alone = (train("average-tanh", seeds, **options) for seeds in ([0, 1], [0, 1], [1]))
    assert alike(together[0], again[0]) and alike(alone[0], together[0])
    assert not torch.equal(together[0]["0/head.linear.weight"], together[0]["1/head.linear.weight"])


def informative(evaluator, instances):
    """The attention weight on the informative word of each text."""
    texts = zip(compute_attention(evaluator, instances), instances.ids, instances.maskable, strict=True)
    return np.array([weights[0, ids[free] != FILLER].item() for weights, ids, free in texts])


def binary_divergence(w, v):
    return jensenshannon(np.stack([w, 1 - w]), np.stack([v, 1 - v])) ** 2


def test_an_encoder_without_order_bounds_the_divergence():
    """With one filler word, an encoder without order gives all of it the same weight, and so, with the masses w and v
    on the informative word, the divergence is that of (w, 1 - w) and (v, 1 - v), at most that of (w, 1 - w) and (0, 1).
    """
    instances = SPLITS["test"]
    evaluator, columns = trained_base("average-tanh")
    w, found = informative(evaluator, instances), {}
    for epochs in (1, 12):
        parameters, history, _ = train("average-tanh", objective=AtteFa(), columns=columns, epochs=epochs)
        v = informative(stored("average-tanh", parameters), instances)
        values = pd.DataFrame(history).set_index(["epoch", "split", "metric"])["value"]
        found[epochs] = values[history["epoch"][-1], "test", "jsd"]
        assert found[epochs] == pytest.approx(binary_divergence(w, v).mean(), abs=1e-5)
    bound = binary_divergence(w, 0 * w).mean()
    assert found[1] < bound - 0.03 and found[12] == pytest.approx(bound, abs=0.01) and v.max() < 0.05


def given_weights(evaluator, instances):
    """A model's weights [B, L], 0 on special tokens and padding."""
    given = torch.zeros(len(instances), instances.lengths.max())
    for row, weights, free in zip(given, compute_attention(evaluator, instances), instances.maskable, strict=True):
        row[: len(free)][torch.from_numpy(free)] = torch.from_numpy(weights[0])
    return given


def test_given_attention_replaces_a_models_own():
    evaluator, columns = trained_base("bilstm-tanh")
    changes = {"epochs": 3, "no_decay": [], "weight_decay": 0.1, "also_select_on": []}
    parameters, _, predictions = train("average-tanh", objective=Guided(), columns=columns, **changes)
    model, batch = stored("average-tanh", parameters).model, whole_batch(SPLITS["dev"])
    given = given_weights(evaluator, SPLITS["dev"])
    expected = model.decode(model.encode(model.embedding(batch.ids), batch), given).softmax(-1).numpy()
    is_dev = np.array(predictions["split"]) == "dev"
    np.testing.assert_allclose(np.stack(predictions["probabilities"])[is_dev], expected, atol=1e-6)
    assert np.abs(expected - model(batch).logits.softmax(-1).numpy()).max() > 0.01
    torch.manual_seed(1)
    fresh = build_model(*small("average-tanh"), EMBEDDING, 2)
    untouched = [
        name for name, parameter in fresh.named_parameters() if torch.equal(parameter, parameters[f"1/{name}"])
    ]
    assert untouched == [f"attention.{name}" for name, _ in fresh.attention.named_parameters()]


def test_a_model_with_given_attention_trains_all_other_parameters():
    model, instances = attentive("bilstm-tanh").requires_grad_(True), example_instances()
    given = given_weights(Evaluator(attentive("average-tanh"), 0, 4096), instances)
    row = {"base_attention": given[:, :, None], "label": torch.from_numpy(instances.label).long(), "weight": 1}
    output = Guided().run(model, whole_batch(instances), row)
    assert torch.equal(output.attention, given)
    Guided().losses(output, row).sum().backward()
    unmoved = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert unmoved == [f"attention.{name}" for name, _ in model.attention.named_parameters()]


def shuffled(table, seed=0):
    return table.take(np.random.default_rng(seed).permutation(len(table)))


def test_base_columns_are_in_the_order_of_the_instances(tmp_path):
    """Two splits and two seeds, of which one is read; weights and probabilities encode their instance."""
    splits = {"dev": example_instances(5).take([3, 0, 4]), "test": example_instances(5).take([4, 2, 1])}
    keys, attention, probabilities = [], [], []
    for seed, (name, split), i in product([4, 5], splits.items(), range(3)):
        words, number = int(split.maskable[i].sum()), int(split.instance[i])
        code = 1000 * seed + 100 * (name == "test") + 10 * number
        keys.append((seed, name, number))
        attention.append(np.concatenate([code + np.arange(words), -code - np.arange(words)]).astype(np.float32))
        probabilities.append(np.array([code, -code, 0], dtype=np.float32))
    seed, split, instance = zip(*keys, strict=True)
    shared = {"seed": seed, "split": split, "instance": instance}
    for kind, columns in (
        (ATTENTION, {"heads": [2] * len(keys), "attention": attention}),
        (PREDICTIONS, {"label": [0] * len(keys), "probabilities": probabilities}),
    ):
        write_table(tmp_path / kind.name, kind, shuffled(pa.table(shared | columns), len(kind.name)).to_pydict())
    tables = (read_table(tmp_path / kind.name, kind) for kind in (ATTENTION, PREDICTIONS))
    found = base_columns(*tables, 5, splits)
    for name, instances in splits.items():
        for i, number in enumerate(instances.instance):
            code, weights = 5000 + 100 * (name == "test") + 10 * number, found[name]["base_attention"][i]
            assert found[name]["base_probabilities"][i].tolist() == [code, -code, 0]
            words = code + np.arange(len(weights) - 2)
            assert weights.tolist() == [[0, 0], *([word, -word] for word in words), [0, 0]]


@pytest.mark.parametrize(("name", "heads"), [("bilstm-tanh", 1), ("average-heads", 4)])
def test_weights_do_not_depend_on_batch_or_order(name, heads):
    instances, model = example_instances(), attentive(name)
    order = np.random.default_rng(0).permutation(len(instances))
    columns = attention_columns([Evaluator(model, 7, 20), Evaluator(model, 8, 10_000)], instances.take(order))
    assert columns["seed"] == [7] * 12 + [8] * 12 and columns["instance"] == [*order, *order]
    assert columns["split"] == ["test"] * 24 and columns["heads"] == [heads] * 24
    for found, i in zip(columns["attention"], [*order, *order], strict=True):
        output = model(whole_batch(instances.take([i])))
        alone = output.attention[:, None] if heads == 1 else output.heads
        np.testing.assert_allclose(found, alone[0, :, 1:-1].flatten(), atol=1e-6)


def history_of(seed, **metrics):
    """Rows of a history from values by epoch, under names such as `test_f1`."""
    for name, values in metrics.items():
        split, metric = name.split("_")
        for epoch, value in enumerate(values, 1):
            yield {"seed": seed, "epoch": epoch, "split": split, "metric": metric, "value": value}


def test_adversary_rows_for_each_split_that_chooses_the_epoch():
    scores = {"test_f1": [0.5, 0.6, 0.7], "test_tvd": [0.3, 0.2, 0.1], "test_jsd": [0.1, 0.2, 0.6]}
    scores |= {"test_answers": [2, 2, 2]}
    chosen = {"seed": 3, "epoch": 2, "split": "dev", "metric": "chosen_epoch", "value": 2}
    diverged = {name: [nan] for name in ("train_loss", "dev_loss", "test_loss", "test_tvd", "test_jsd")}
    history = [
        *history_of(3, train_loss=[3, 2, 1], dev_loss=[3, 1, 2], test_loss=[1, 1, 0], **scores),
        chosen,
        *history_of(4, **diverged, test_f1=[0], test_answers=[1]),
    ]
    cell = dict.fromkeys(ADVERSARY_KEYS, "x") | {
        "strength": None,
        "selected_on": ["dev", "test"],
        "first": 1,
        "patience": 10,
    }
    dev, test, *failed = adversary_rows(pd.DataFrame(history), cell)
    keys = {key: cell[key] for key in ADVERSARY_KEYS}
    shared = {**keys, "seed": 3, "epochs": 3, "status": "ok", "reason": None}
    assert dev == shared | {"selected_on": "dev", "epoch": 2, "f1": 0.6, "tvd": 0.2, "jsd": 0.2, "attefa": 1}
    score = pytest.approx(0.1 / 0.5 / (0.6 / log(2)))
    assert test == shared | {"selected_on": "test", "epoch": 3, "f1": 0.7, "tvd": 0.1, "jsd": 0.6, "attefa": score}
    for row, split in zip(failed, ["dev", "test"], strict=True):
        assert (row["seed"], row["selected_on"], row["epochs"], row["epoch"]) == (4, split, 1, 1)
        assert (row["status"], row["reason"]) == ("undefined", "training diverged") and np.isnan(row["attefa"])
    (early,) = adversary_rows(pd.DataFrame(history[:-7]), cell | {"selected_on": ["test"], "patience": 1})
    assert early["epoch"] == 1, "patience has run out before the third epoch"
    (late,) = adversary_rows(pd.DataFrame(history[:-7]), cell | {"selected_on": ["dev"], "first": 4})
    assert late["epoch"] is None and late["status"] == "undefined"


def test_an_adversary_with_constant_predictions_has_collapsed():
    """It predicts one class at the epoch chosen on dev and two at that of test; its F1 is the same."""
    scores = {"test_f1": [0.6, 0.6], "test_tvd": [0.25, 0.2], "test_jsd": [0.3, 0.6], "test_answers": [1, 2]}
    other = scores | {"test_answers": [2, 2], "test_tvd": [0.1, 0.1]}
    losses = {"dev_loss": [1, 2], "test_loss": [2, 1]}
    history = pd.DataFrame([*history_of(3, **losses, **scores), *history_of(4, **losses, **other)])
    cell = dict.fromkeys(ADVERSARY_KEYS, "x") | {"objective": "attefa", "strength": None, "base_seed": 0}
    cell |= {"selected_on": ["dev", "test"], "first": 1, "patience": 10}
    table = pd.DataFrame(adversary_rows(history, cell))
    assert table["status"].tolist() == [COLLAPSED, "ok", "ok", "ok"]
    assert table["reason"].dropna().tolist() == [CONSTANT] and table["attefa"].notna().all()
    assert attefa_rows(table)["seed"].tolist() == [3, 4] and set(attefa_rows(table)["selected_on"]) == {"dev"}
    base = {("x", "x", "x", 0): "the base model is at chance"}
    assert set(mark_at_chance(table, base, seed="base_seed")["status"]) == {AT_CHANCE}, "as the base model"
    (imitator,) = adversary_rows(history[history["seed"] == 3], cell | {"strength": 0, "selected_on": ["dev"]})
    assert (imitator["status"], imitator["reason"]) == (COLLAPSED, CONSTANT)


def test_training_counts_the_predicted_classes():
    """An imitator of a base model with constant predictions is constant too."""
    _, columns = trained_base("average-tanh")
    good = last(train("average-tanh", objective=WiegreffePinter(0), columns=columns, **IMITATION)[1])
    assert good["test", "answers"] == 2
    one_sided = {
        split: values | {"base_probabilities": np.tile(np.float32([0.1, 0.9]), (len(SPLITS[split]), 1))}
        for split, values in columns.items()
    }
    constant = last(train("average-tanh", objective=WiegreffePinter(0), columns=one_sided, **IMITATION)[1])
    assert constant["test", "answers"] == 1


def cell_of(tmp_path, *seeds, model="average-tanh"):
    """An explained cell of models that attend to different words."""
    models = [Evaluator(attentive(model, seed), seed, 10_000) for seed in seeds]
    explained = example_explained(tmp_path)
    return replace(explained, seeds=list(seeds), models=lambda: models), models


def test_seed_variance_by_hand(tmp_path):
    explained, models = cell_of(tmp_path, 2, 0, 1)
    instances = explained.instances()
    outputs_of = {evaluator.seed: evaluator.model(whole_batch(instances)) for evaluator in models}
    for option, base_seed, others in ((-1, 2, [0, 1]), (0, 0, [2, 1])):
        found = pd.DataFrame(SeedVariance(base_seed=option).score(explained))
        assert found["seed"].tolist() == list(np.repeat(others, len(instances)))
        assert set(found["base_seed"]) == {base_seed} and found["jsd"].max() > 0.01
        output = outputs_of[base_seed]
        for row in found.itertuples():
            other, i, free = outputs_of[row.seed], row.instance, instances.maskable[row.instance]
            a, b = (seed.attention[i, : len(free)].numpy()[free] for seed in (output, other))
            p, q = (seed.logits[i].softmax(-1) for seed in (output, other))
            assert row.jsd == pytest.approx(jensenshannon(a.astype(float), b.astype(float)) ** 2, abs=1e-6)
            assert row.tvd == pytest.approx((p - q).abs().sum().item() / 4, abs=1e-6)
            assert row.max_attention == pytest.approx(a.max()) and row.predicted_class == p.argmax()
            assert row.length == free.sum()


def test_seeds_of_models_with_several_heads_are_compared_head_by_head(tmp_path):
    explained, models = cell_of(tmp_path, 0, 1, model="average-heads")
    instances = explained.instances()
    base, other = (evaluator.model(whole_batch(instances)) for evaluator in models)
    pairs = np.empty((len(instances), 4, 4))
    for i, free in enumerate(instances.maskable):
        for a, b in product(range(4), repeat=2):
            own, its = (
                heads[i, k, : len(free)].double().numpy()[free] for heads, k in ((base.heads, a), (other.heads, b))
            )
            pairs[i, a, b] = jensenshannon(own, its) ** 2
    # Heads that lie nearest by hand: of all orders that with the smallest sum.
    order = min(permutations(range(4)), key=lambda order: sum(pairs[:, a, b].sum() for a, b in enumerate(order)))
    assert order != (0, 1, 2, 3)
    found = SeedVariance().score(explained)
    np.testing.assert_allclose(found["jsd"], pairs[:, range(4), order].mean(1), atol=1e-6)
    largest = [base.heads[i].mean(0)[: len(free)].numpy()[free].max() for i, free in enumerate(instances.maskable)]
    np.testing.assert_allclose(found["max_attention"], largest, rtol=1e-6)


def test_the_same_heads_in_another_order_are_no_difference(tmp_path):
    explained, models = cell_of(tmp_path, 0, 1, model="average-heads")
    base, other = (evaluator.model for evaluator in models)
    other.load_state_dict(base.state_dict())
    other.attention.heads = torch.nn.ModuleList(other.attention.heads[k] for k in (2, 0, 3, 1))
    found = SeedVariance().score(explained)
    assert len(found["jsd"]) > 0 and max(found["jsd"]) < 1e-9


def test_seed_variance_summary_by_hand():
    scores = {
        "seed": [1, 1, 1, 2], "base_seed": [0] * 4, "max_attention": [0.1, 0.2, 0.9, 0.6],
        "jsd": [0.1, 0.3, 0.5, 0.0], "tvd": [0.1, 0.2, 0.3, 0.05],
    }  # fmt: skip
    table = SeedVariance().summarise(pa.table(scores)).set_index(["base_seed", "seed", "max_attention_bin"])
    assert table.index.tolist() == [(0, 1, BINS[0]), (0, 1, BINS[3]), (0, 1, "all"), (0, 2, BINS[2]), (0, 2, "all")]
    columns = ["n", "tvd_mean", "jsd_mean", "jsd_q25", "jsd_q50", "jsd_q75"]
    assert table.loc[(0, 1, "all"), columns].tolist() == pytest.approx([3, 0.2, 0.3, 0.2, 0.3, 0.4])
    assert table.loc[(0, 1, BINS[0]), columns].tolist() == pytest.approx([2, 0.15, 0.2, 0.15, 0.2, 0.25])


def test_seed_variance_needs_two_seeds_and_a_base_seed_among_them(tmp_path):
    config = dict(datasets=["movie"], models=["bilstm-tanh"], measures=["attention"], protocols=["seed_variance"])
    message = (
        r"`protocols\.seed_variance` cannot score any model .*: protocol 'seed_variance' needs blocks of 2 seeds or "
    )
    with pytest.raises(PlumblineError, match=message + r"more, but '7' has fewer\.$"):
        list_runs(resolve(config | {"seeds": ["7"]}))
    runs = list_runs(resolve(config | {"seeds": ["0-1", "7"]}))
    assert [cell.seeds for cell in runs.scored["seed_variance"]] == ["0-1"]
    assert [line.reason for line in runs.excluded][-1].endswith("but '7' has fewer")
    assert len(list_runs(resolve(config | {"seeds": ["0-1"]})).scored["seed_variance"]) == 1
    with pytest.raises(
        PlumblineError, match=(r"^`base_seed` is 7, which is not one of the seeds of the block, \[0, 1\]\.$")
    ):
        SeedVariance(base_seed=7).score(example_explained(tmp_path))
