"""The parts of the training engine, on the CPU; test_gpu.py compares its two ways on a GPU."""

import gc
import itertools
import subprocess
import sys
import weakref
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from plumbline.attribution.gradient import gradient
from plumbline.attribution.importances import Importances
from plumbline.attribution.run import MeasureCall, attribute
from plumbline.config.recipes import Training
from plumbline.conformance import ANSWERS, example_instances, example_model
from plumbline.errors import PlumblineError
from plumbline.models.batch import collate, plan_batches
from plumbline.models.budget import Budget
from plumbline.models.evaluator import Evaluator
from plumbline.models.objectives import AtteFa, Classification
from plumbline.models.rows import DeviceRows
from plumbline.models.widths import choose_widths
from plumbline.registry import Registry
from plumbline.training.learner import Learner, batch_order
from plumbline.training.optimisers import Adam, AmsGrad, PlateauRate
from plumbline.training.performance import PERFORMANCE_METRICS
from plumbline.training.selection import SELECTION_METRICS, selection_metrics
from plumbline.training.trainer import SeedSetup, split_rows, train_seeds, train_together

REGISTRY = Registry()
INSTANCES = example_instances(70)
SPLITS = {"train": INSTANCES, "dev": example_instances(30, seed=1), "test": example_instances(20, seed=2)}


def make(name="bilstm-tanh"):
    return example_model(REGISTRY.get("model", name), 3)


def test_gathered_batches_are_the_collated_ones():
    rows = DeviceRows(INSTANCES, "cpu", {"weight": np.arange(70.0)})
    index = [3, 40, 11, 3]
    expected = collate([INSTANCES.ids[i] for i in index], [INSTANCES.maskable[i] for i in index])
    width = expected.ids.shape[1]
    batch, columns = rows.batch(torch.tensor(index), width + 4)
    for name in ("ids", "present", "attendable"):
        wide = getattr(batch, name)
        assert torch.equal(wide[:, :width], getattr(expected, name)) and not wide[:, width:].any()
    assert columns["label"].tolist() == INSTANCES.label[index].tolist() and columns["weight"].tolist() == index


def test_columns_per_token_are_padded_as_the_text_is():
    rows = DeviceRows(INSTANCES, "cpu", {"place": [np.arange(1.0, len(ids) + 1) for ids in INSTANCES.ids]})
    batch, columns = rows.batch(torch.tensor([5, 0]), 12)
    expected = torch.arange(1.0, 13).repeat(2, 1) * batch.present
    assert torch.equal(columns["place"], expected)
    with pytest.raises(ValueError, match="column 'place' does not have one value per token"):
        DeviceRows(INSTANCES, "cpu", {"place": [np.ones(3)] * 70})


def test_widths_waste_the_least_that_can_be():
    random = np.random.default_rng(0)
    for cost in (0.5, 4, 40):
        needed = random.integers(3, 14, size=60)
        longest = 15

        def total(widths, needed=needed, cost=cost):
            return cost * sum(widths) + 8 * sum(min(w for w in widths if w >= n) for n in needed)

        every = [
            [*some, longest] for k in range(12) for some in itertools.combinations(range(3, longest), k)
        ]  # fmt: skip
        found = choose_widths(needed, longest, 8, cost)
        assert total(found.tolist()) == pytest.approx(min(map(total, every)))
        assert found[-1] == longest and (np.diff(found) > 0).all()


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_selection_scores_are_the_reported_ones(classes):
    random = np.random.default_rng(classes)
    for round in range(20):
        labels = np.append(np.arange(classes), random.integers(classes, size=40))
        # Few distinct values, so that there are ties.
        probabilities = random.integers(1, 4, size=(len(labels), classes)).astype(np.float32)
        if round == 0:
            probabilities[:, 0] = 9  # Only one class is ever predicted.
        probabilities /= probabilities.sum(1, keepdims=True)
        found = selection_metrics(torch.from_numpy(probabilities), torch.from_numpy(labels)).tolist()
        expected = [
            *(PERFORMANCE_METRICS[name](probabilities, labels) for name in SELECTION_METRICS[:-1]),
            len(np.unique(probabilities.argmax(1))),
        ]
        assert found == pytest.approx(expected, abs=1e-6) and (found[-1] == 1) == (round == 0)


def test_selection_scores_without_a_class_or_a_number():
    probabilities = torch.tensor([[0.4, 0.6], [0.7, 0.3]])
    assert selection_metrics(probabilities, torch.tensor([1, 1]))[3].isnan()
    assert selection_metrics(probabilities * torch.nan, torch.tensor([0, 1]))[3].isnan()


def plain_epoch(model, training, seed):
    """A loop as everybody writes it, to compare with; returns the mean loss."""
    random = np.random.default_rng(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=training.learning_rate, amsgrad=True)
    total = 0.0
    for index in batch_order(INSTANCES.lengths, training, random):
        batch = collate([INSTANCES.ids[i] for i in index], [INSTANCES.maskable[i] for i in index])
        labels = torch.from_numpy(INSTANCES.label[index]).long()
        loss = cross_entropy(model(batch).logits, labels, reduction="sum")
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        total += loss.item()
    return total / len(INSTANCES)


@pytest.mark.parametrize("name", ["bilstm-tanh", "cnn-tanh", "average-dot", "bag-of-words"])
def test_a_learner_does_what_a_plain_loop_does(name):
    training = Training(epochs=1, first_eligible_epoch=1, weight_decay=0, class_weights="none", learning_rate=0.01)
    rows = split_rows(SPLITS, 2, training, "cpu")
    learner = Learner(make(name), 5, rows, training, Budget(400))
    for number in range(len(learner.begin_epoch())):
        learner.step(number)
    learner.end_epoch(1)
    other = make(name)
    assert learner.read_epoch(1)["train", "loss"] == pytest.approx(plain_epoch(other, training, 5), abs=1e-5)
    for (key, a), b in zip(learner.model.state_dict().items(), other.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4, msg=key)


def test_a_loss_may_read_another_models_outputs_and_attention():
    """An adversary: keep the base model's predictions, move its attention."""
    base = make().eval()
    with torch.no_grad():
        output = base(collate(INSTANCES.ids, INSTANCES.maskable))
    attention = [output.attention[i, : len(ids), None].numpy() for i, ids in enumerate(INSTANCES.ids)]
    rows = DeviceRows(
        INSTANCES, "cpu", {"base_probabilities": output.logits.softmax(-1).numpy(), "base_attention": attention}
    )
    training = Training(epochs=30, first_eligible_epoch=1, learning_rate=0.02, weight_decay=0, select_by="loss")
    adversary = example_model(REGISTRY.get("model", "bilstm-tanh"), 4)
    splits = dict.fromkeys(("train", "dev", "test"), rows)
    learner = Learner(adversary, 0, splits, training, Budget(400), AtteFa())
    losses = []
    for epoch in range(1, 31):
        for number in range(len(learner.begin_epoch())):
            learner.step(number)
        learner.end_epoch(epoch)
        losses.append(learner.read_epoch(epoch)["train", "loss"])
    assert losses[-1] < losses[0] - 0.3 and losses[-1] < -0.6


def test_a_cpu_computes_in_single_precision_whatever_the_recipe():
    found = {}
    for precision in ("float32", "tf32", "bfloat16"):
        training = Training(epochs=3, precision=precision, learning_rate=0.01)
        rows = split_rows(SPLITS, 2, training, "cpu")
        (trained,) = train_together(SeedSetup(make, rows, training), [0], Budget(400))
        found[precision] = [row["value"] for row in trained.history]
        assert all(tensor.dtype == torch.float32 for tensor in trained.state.values())
    assert found["float32"] == found["tf32"] == found["bfloat16"]


def test_seeds_that_do_not_fit_together_train_in_smaller_groups(monkeypatch):
    training = Training(epochs=2)
    rows = split_rows(SPLITS, 2, training, "cpu")
    alone = [train_together(SeedSetup(make, rows, training), [seed], Budget(400))[0] for seed in range(5)]
    sizes = []

    def short_of_memory(setup, seeds, budget):
        sizes.append(len(seeds))
        if len(seeds) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return train_together(replace(setup, record=False), seeds, budget)

    monkeypatch.setattr("plumbline.training.trainer.train_together", short_of_memory)
    budget = Budget(400)
    with pytest.warns(UserWarning, match="5 seeds at once do not fit, continuing with 2"):
        found = train_seeds(SeedSetup(make, rows, training, record=True), list(range(5)), budget)
    assert sizes == [5, 2, 3, 1, 2] and len(budget.events) == 2
    for one, other in zip(alone, found, strict=True):
        assert all(torch.equal(one.state[name], other.state[name]) for name in one.state)


def test_what_did_not_fit_is_freed_before_fewer_seeds_are_tried(monkeypatch):
    class Step:
        def __init__(self):
            self.own = self.run

        def run(self):
            pass

    held = []

    def short_of_memory(_, seeds, __):
        assert not any(reference() for reference in held)
        if len(seeds) > 1:
            held.append(weakref.ref(Step()))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return list(seeds)

    monkeypatch.setattr("plumbline.training.trainer.train_together", short_of_memory)
    gc.disable()
    try:
        with pytest.warns(UserWarning, match="continuing with 1"):
            assert train_seeds(SeedSetup(make, {}, Training(), record=True), [0, 1], Budget(400)) == [0, 1]
    finally:
        gc.enable()
    assert len(held) == 1


def test_one_seed_that_does_not_fit_trains_with_smaller_passes_of_evaluation(monkeypatch):
    training = Training(epochs=2)
    rows = split_rows(SPLITS, 2, training, "cpu")
    (alone,) = train_together(SeedSetup(make, rows, training), [0], Budget(400))
    budgets = []

    def short_of_memory(setup, seeds, budget):
        budgets.append(budget.tokens)
        if budget.tokens > 4096:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return train_together(setup, seeds, budget)

    monkeypatch.setattr("plumbline.training.trainer.train_together", short_of_memory)
    with pytest.warns(UserWarning, match="token budget halved to 4096"):
        (found,) = train_seeds(SeedSetup(make, rows, training), [0], Budget(16384))
    assert budgets == [16384, 8192, 4096]
    assert all(torch.equal(alone.state[name], found.state[name]) for name in alone.state)


def test_one_seed_that_does_not_fit_is_one_sentence(monkeypatch):
    def never(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("plumbline.training.trainer.train_together", never)
    with pytest.raises(
        PlumblineError, match="One seed alone does not fit into the device's memory; lower `batch_size`"
    ):
        train_seeds(SeedSetup(make, {}, Training(), record=True), [0], Budget(400))


def test_an_optimiser_does_not_import_the_compiler():
    program = (
        "import sys, torch\n"
        "from plumbline.training.optimisers import AmsGrad\n"
        "model = torch.nn.Linear(2, 1)\n"
        "optimiser = AmsGrad([(list(model.parameters()), 0.0)], 0.1)\n"
        "model(torch.ones(1, 2)).sum().backward()\n"
        "optimiser.step()\n"
        "optimiser.zero_grad()\n"
        "sys.exit('torch._dynamo' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


@pytest.mark.parametrize(("optimiser", "amsgrad"), [(AmsGrad, True), (Adam, False)])
def test_the_optimiser_is_pytorchs(optimiser, amsgrad):
    models = [torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    groups = [[(list(m[0].parameters()), 0.1), (list(m[1].parameters()), 0.0)] for m in models]
    theirs = [{"params": parameters, "weight_decay": decay} for parameters, decay in groups[1]]
    optimisers = [optimiser(groups[0], 0.01), torch.optim.Adam(theirs, lr=0.01, amsgrad=amsgrad)]
    for step in range(30):
        inputs = torch.randn(8, 4, generator=torch.Generator().manual_seed(step)) * (1 + step % 5)
        for model, moving in zip(models, optimisers, strict=True):
            moving.zero_grad()
            hidden = model[0](inputs)
            # Every third step the second layer has no gradient.
            (hidden if step % 3 == 0 else model[1](hidden)).square().sum().backward()
            moving.step()
    for ours, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(ours, other, atol=1e-6, rtol=1e-5)


def make_paired():
    """A model that reads a question with the text."""
    return example_model(REGISTRY.get("model", "bilstm-tanh"), paired=True)


def paired(instances, seed):
    random = np.random.default_rng(seed)
    pair = [random.integers(5, 40, size=random.integers(1, 9)) for _ in instances.ids]
    return replace(instances, pair=pair, label=np.array([row[0] % 2 for row in pair], dtype=np.int32))


def test_paired_inputs_train_and_do_not_depend_on_the_batch():
    splits = {name: paired(split, seed) for seed, (name, split) in enumerate(SPLITS.items())}
    training = Training(epochs=25, learning_rate=0.02, select_by="accuracy", weight_decay=0, class_weights="none")
    rows = split_rows(splits, ANSWERS, training, "cpu")
    (trained,) = train_together(SeedSetup(make_paired, rows, training), [0], Budget(400))
    losses = [row["value"] for row in trained.history if (row["split"], row["metric"]) == ("train", "loss")]
    assert losses[-1] < 0.1 * losses[0], "only the second text determines the label"
    model = make_paired()
    model.load_state_dict(trained.state)
    for tokens in (24, 100, 10_000):
        evaluator = Evaluator(model, 0, tokens)
        np.testing.assert_allclose(evaluator.probabilities(splits["test"]), trained.probabilities["test"], atol=1e-6)


def test_batches_of_pairs_keep_the_budget():
    random = np.random.default_rng(0)
    lengths, seconds = random.integers(1, 60, size=300), random.integers(1, 40, size=300)
    batches = plan_batches(lengths, 500, "cpu", seconds)
    assert sorted(np.concatenate(batches)) == list(range(300))
    assert max(len(b) * (lengths[b].max() + seconds[b].max()) for b in batches) <= 500
    with pytest.raises(PlumblineError, match="does not fit into"):
        plan_batches(lengths, 70, "cpu", seconds)


def test_measures_of_a_job_do_not_touch_each_other_and_are_named():
    def careless(evaluator, instances):
        torch.set_grad_enabled(False)
        return Importances([np.zeros(free.sum()) for free in instances.maskable])

    def broken(evaluator, instances):
        raise KeyError("oh")

    evaluator = Evaluator(make().requires_grad_(False), 0, 400)
    options = {name: option.default for name, option in REGISTRY.get("measure", "gradient").options.items()}
    measures = {"careless": MeasureCall(careless, {}), "gradient": MeasureCall(gradient, options)}
    columns, seconds = attribute([evaluator], SPLITS["test"], measures)
    alone, _ = attribute([evaluator], SPLITS["test"], {"gradient": measures["gradient"]})
    assert torch.is_grad_enabled() and set(seconds) == set(measures)
    for a, b in zip(columns["gradient"]["scores"], alone["gradient"]["scores"], strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(KeyError) as caught:
        attribute([evaluator], SPLITS["test"], measures | {"mine": MeasureCall(broken, {})})
    assert caught.value.__notes__ == ["The error occurred in the measure 'mine'."]
    with pytest.raises(PlumblineError, match="The measure 'mine' must return Importances, not list"):
        attribute([evaluator], SPLITS["test"], {"mine": MeasureCall(lambda evaluator, instances: [], {})})


class Dropping(torch.nn.Module):
    """A model that draws at random in training."""

    def __init__(self):
        super().__init__()
        self.inner, self.dropout = make(), torch.nn.Dropout(0.3)
        self.embedding = self.inner.embedding

    def forward(self, batch, embedded=None):
        return self.inner(batch, self.dropout(self.embedding(batch.ids)))


def test_a_seed_with_dropout_does_not_depend_on_its_block_or_budget():
    training = Training(epochs=2)
    rows = split_rows(SPLITS, 2, training, "cpu")
    block = train_seeds(SeedSetup(Dropping, rows, training), [0, 1], Budget())
    for seed, budget in ((1, Budget()), (1, Budget(400)), (0, Budget(400))):
        (alone,) = train_seeds(SeedSetup(Dropping, rows, training), [seed], budget)
        assert alone.history[0]["value"] == block[seed].history[0]["value"]
        assert all(torch.equal(alone.state[name], block[seed].state[name]) for name in alone.state)


def run_epoch(learner, epoch):
    for number in range(len(learner.begin_epoch())):
        learner.step(number)
    learner.end_epoch(epoch)
    return learner.read_epoch(epoch)


def test_clipped_steps_and_a_falling_step_size_are_those_of_a_plain_loop():
    changes = {"clip_norm": 0.05, "schedule": "plateau", "plateau_patience": 0, "plateau_factor": 0.3, "epochs": 6}
    usual = {"optimiser": "adam", "reduction": "mean", "class_weights": "none", "no_decay": [], "weight_decay": 0.01}
    training = Training(**changes, **usual, learning_rate=0.01, batch_size=16, select_by="accuracy")
    learner = Learner(make(), 5, split_rows(SPLITS, 2, training, "cpu"), training, Budget(400))
    other, random = make(), np.random.default_rng(5)
    parameters = list(other.parameters())
    adam = torch.optim.Adam(parameters, lr=0.01, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(adam, mode="max", patience=0, factor=0.3)
    clipped, rates = 0, set()
    for epoch in range(1, 7):
        accuracy = run_epoch(learner, epoch)["dev", "accuracy"]
        for index in batch_order(INSTANCES.lengths, training, random):
            batch = collate([INSTANCES.ids[i] for i in index], [INSTANCES.maskable[i] for i in index])
            adam.zero_grad()
            cross_entropy(other(batch).logits, torch.from_numpy(INSTANCES.label[index]).long()).backward()
            norm = sum(float(p.grad.square().sum()) for p in parameters) ** 0.5
            clipped += norm > 0.05
            for parameter in parameters:
                parameter.grad *= min(1.0, 0.05 / (norm + 1e-6))
            adam.step()
        rates.add(schedule.get_last_lr()[0])
        schedule.step(accuracy)
        assert learner._rate.value.item() == pytest.approx(schedule.get_last_lr()[0], rel=1e-6)
    assert clipped > 10 and len(rates) > 1
    for (key, a), b in zip(learner.model.state_dict().items(), other.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, atol=5e-5, rtol=1e-3, msg=key)


@pytest.mark.parametrize("larger", [True, False])
@pytest.mark.parametrize(("patience", "factor"), [(0, 0.5), (2, 0.1), (3, 0.7)])
def test_a_plateau_is_pytorchs(larger, patience, factor):
    random = np.random.default_rng(patience)
    # Steps below and above a ten-thousandth, ties, values without meaning, and rates that are too small to change.
    values = np.cumsum(random.choice([-2e-3, -2e-5, 0, 2e-5, 2e-3], size=300)) + 0.5
    values[random.random(300) < 0.05] = np.nan
    # At first each epoch is better, but by less than what counts, as are four together.
    values[:40] = 0.5 + (1 if larger else -1) * 1e-5 * np.arange(40)
    adam = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
    mode = "max" if larger else "min"
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(adam, mode=mode, patience=patience, factor=factor)
    rate = PlateauRate(0.3, patience, factor, larger, "cpu")
    place, seen = rate.value.data_ptr(), set()
    for value in values.tolist():
        theirs.step(value)
        rate.update(value)
        seen.add(rate.value.item())
        assert rate.value.item() == pytest.approx(theirs.get_last_lr()[0], rel=1e-6)
    assert len(seen) > 3 and rate.value.data_ptr() == place, "recorded steps read it where it is"


class Drawing(torch.nn.Module):
    """A model that reads some words, drawn at random in training, and learns to read half of them."""

    def __init__(self, objective=None):
        super().__init__()
        self.inner = make()
        self.embedding, self.score = self.inner.embedding, torch.nn.Linear(self.inner.embedding.embedding_dim, 1)
        if objective:
            self.objective = objective

    def forward(self, batch, embedded=None):
        embedded = self.embedding(batch.ids) if embedded is None else embedded
        chances = self.score(embedded).sigmoid() * batch.present[:, :, None]
        read = torch.bernoulli(chances) if self.training else (chances >= 0.5).to(chances.dtype)
        output = self.inner(batch, embedded * (read + chances - chances.detach()))
        share = (read + chances - chances.detach()).squeeze(-1).sum(1) / batch.present.sum(1)
        return Chosen(output.logits, output.attention, share)


class Chosen(NamedTuple):
    logits: torch.Tensor
    attention: torch.Tensor
    share: torch.Tensor


class HalfOfTheWords(Classification):
    """A term of the batch is added to the loss of each row; the metrics are those of the whole split."""

    metrics = ("loss", "selection_rate")

    def __init__(self, reached=None):
        if reached:
            self.reached = reached

    def losses(self, output, row):
        return super().losses(output, row) + (output.share.mean() - 0.5).abs()

    def quantities(self, output, row):
        return torch.stack([super().losses(output, row), output.share], dim=1)

    def summary(self, means):
        return torch.stack([means[0] + (means[1] - 0.5).abs(), means[1]])


def test_a_models_own_objective_is_learnt_unless_another_is_given():
    training = Training(epochs=2, select_by="loss")
    rows = split_rows(SPLITS, 2, training, "cpu")
    histories = [
        run_epoch(Learner(Drawing(own), 0, rows, training, Budget(400), given), 1)
        for own, given in [(HalfOfTheWords(), None), (HalfOfTheWords(), Classification()), (None, None)]
    ]
    assert [("dev", "selection_rate") in values for values in histories] == [True, False, False]
    (trained,) = train_together(SeedSetup(lambda: Drawing(HalfOfTheWords()), rows, training), [0], Budget(400))
    assert {row["metric"] for row in trained.history} >= {"selection_rate", "loss"}


def test_an_objective_that_is_reached_ends_training_at_its_epoch():
    """The reported loss rises, so that the usual rule would select the first epoch."""
    seen = []

    class Rising(HalfOfTheWords):
        def summary(self, means):
            return torch.stack([torch.tensor(float(len(seen)), dtype=means.dtype), means[1]])

    def third(metrics):
        seen.append(metrics["dev", "selection_rate"])
        assert 0 <= metrics["dev", "accuracy"] <= 1
        return len(seen) == 3

    def trained(objective, **changes):
        seen.clear()
        training = Training(**{"epochs": 6, "select_by": "loss", "first_eligible_epoch": 1, **changes})
        rows = split_rows(SPLITS, 2, training, "cpu")
        return train_together(SeedSetup(lambda: Drawing(objective), rows, training), [0], Budget(400))[0]

    found = trained(Rising(third))
    assert found.chosen_epoch == 3 == max(row["epoch"] for row in found.history)
    after = trained(Rising(), epochs=3, first_eligible_epoch=3)
    assert all(torch.equal(found.state[name], after.state[name]) for name in after.state)
    never = trained(Rising(lambda metrics: False))
    assert never.chosen_epoch == 1 and max(row["epoch"] for row in never.history) == 6
    late = trained(Rising(lambda metrics: True), first_eligible_epoch=2)
    assert late.chosen_epoch == 2 == max(row["epoch"] for row in late.history)


def test_evaluation_draws_nothing_and_drawn_steps_depend_on_the_seed_alone():
    training = Training(epochs=2, select_by="loss")
    rows = split_rows(SPLITS, 2, training, "cpu")
    learner = Learner(Drawing(HalfOfTheWords()), 0, rows, training, Budget(400))
    before = torch.get_rng_state()
    for number in range(len(learner.begin_epoch())):
        learner.step(number)
    between = torch.get_rng_state()
    learner.end_epoch(1)
    assert torch.equal(between, torch.get_rng_state()) and not torch.equal(before, between)
    build = lambda: Drawing(HalfOfTheWords())  # noqa: E731
    block = train_seeds(SeedSetup(build, rows, training), [0, 1], Budget())
    (alone,) = train_seeds(SeedSetup(build, rows, training), [1], Budget(300))
    assert all(torch.equal(alone.state[name], block[1].state[name]) for name in alone.state)
    assert alone.history[0]["value"] != block[0].history[0]["value"]


PROGRAM = """
import torch
from plumbline.config.recipes import Training
from plumbline.conformance import example_instances, example_model
from plumbline.models.budget import Budget
from plumbline.training.trainer import SeedSetup, split_rows, train_together
from plumbline.registry import Registry

splits = {name: example_instances(64) for name in ("train", "dev", "test")}
training = Training(epochs=2)
model = Registry().get("model", "average-tanh")
rows = split_rows(splits, 2, training, "cpu")
train_together(SeedSetup(lambda: example_model(model), rows, training), [0], Budget(400))
"""


def test_training_by_itself_is_quiet():
    quiet = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
