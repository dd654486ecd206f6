"""The GPU gives what the CPU gives, within float tolerance."""

import numpy as np
import pytest
import torch

from plumbline.attribution.gradient import differentiable, gradient
from plumbline.attribution.integrated_gradient import integrated_gradient
from plumbline.config.recipes import Training
from plumbline.conformance import ANSWERS, example_images, example_instances, example_model, reads_one_text
from plumbline.conformance.examples import examples_for, needs_pairs
from plumbline.models.batch import collate
from plumbline.models.budget import ROWS, Budget, bytes_per_token
from plumbline.models.evaluator import Evaluator
from plumbline.models.images import ResNet
from plumbline.models.lstm_kernels import kernels
from plumbline.models.objectives import AtteFa, Classification
from plumbline.models.rows import DeviceRows
from plumbline.protocols.attention.adversarial import AdversarialAttention
from plumbline.protocols.attention.permutation import permute_attention
from plumbline.registry import PAIRED, Registry, lacking, load
from plumbline.training.learner import Learner
from plumbline.training.recorded import Recorded
from plumbline.training.stack import can_stack
from plumbline.training.trainer import BlockSpec, SeedSetup, split_rows, train_block, train_seeds, train_together
from tests.unit.models.test_engine import Drawing, HalfOfTheWords, run_epoch

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]
REGISTRY = Registry()
INSTANCES = example_instances(40)
# Tokens: several texts, or one image.
BUDGET = 256
# What a config must set.
SET = {"captum": {"method": "IntegratedGradients"}}


def options_of(measure):
    return {name: option.default for name, option in measure.options.items()} | SET.get(measure.name, {})


PAIRS = [
    (measure.name, model.name)
    for measure in REGISTRY.all("measure")
    for model in REGISTRY.all("model")
    if {*measure.required} <= {*SET.get(measure.name, ())}
    and not lacking(measure, options_of(measure), model.provides)
    # resnet34 differs from resnet-small in size alone.
    and (model.reads != "pixels" or (measure.pixels and model.name != "resnet34"))
]


@pytest.mark.parametrize(("measure", "model"), PAIRS)
def test_importances_are_the_same_on_both_devices(measure, model):
    declaration = REGISTRY.get("measure", measure)
    options = options_of(declaration)
    net = REGISTRY.get("model", model)
    instances = examples_for(net, 4 if net.reads == "pixels" else 40, [*declaration.splits, "test"])
    scores = []
    for device in ("cpu", "cuda"):
        evaluator = Evaluator(example_model(net, paired=needs_pairs(net)), 0, BUDGET, device)
        scores.append(load(declaration.pointer)(evaluator, instances, **options).scores)
    # At the kink of a shared model's |c - q| rounding turns the sign of a gradient, now and then one of thousands.
    tolerance = 1e-4 if model.startswith("bilstm-shared") else 1e-5
    for a, b in zip(*scores, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=tolerance)


@pytest.mark.parametrize("model", REGISTRY.names("model"))
def test_predictions_are_the_same_on_both_devices(model):
    net = REGISTRY.get("model", model)
    probabilities = [
        Evaluator(example_model(net, paired=needs_pairs(net)), 0, BUDGET, d).probabilities(examples_for(net, 40))
        for d in ("cpu", "cuda")
    ]
    np.testing.assert_allclose(*probabilities, atol=1e-5)


ATTENTIVE = [model for model in REGISTRY.all("model") if "attention" in model.provides]


@pytest.mark.parametrize(
    ("model", "paired"),
    [(model.name, False) for model in ATTENTIVE if reads_one_text(model)]
    + [(model.name, True) for model in ATTENTIVE if set(PAIRED) & set(model.tasks)],
)
def test_counterfactual_attention_is_the_same_on_both_devices(model, paired):
    instances = example_instances(40, paired=paired)
    evaluators = [
        Evaluator(example_model(REGISTRY.get("model", model), paired=paired).requires_grad_(False), 0, 200, device)
        for device in ("cpu", "cuda")
    ]
    for a, b in zip(*(permute_attention(evaluator, instances, 20) for evaluator in evaluators), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    found = [AdversarialAttention(steps=30)._seed(evaluator, instances) for evaluator in evaluators]
    np.testing.assert_allclose(found[0]["jsd"], found[1]["jsd"], atol=2e-3)


def test_integrated_gradients_of_a_bilstm_in_tf32_are_nearly_those_in_float32():
    evaluator = Evaluator(
        example_model(REGISTRY.get("model", "bilstm-softmax"), hidden=32).requires_grad_(False), 0, BUDGET, "cuda"
    )
    exact = integrated_gradient(evaluator, INSTANCES).scores
    evaluator.precision = "tf32"
    for a, b in zip(exact, integrated_gradient(evaluator, INSTANCES).scores, strict=True):
        np.testing.assert_allclose(a, b, atol=5e-3 * a.max())


SPLITS = {"train": example_instances(300), "dev": example_instances(60, seed=1), "test": example_instances(60, seed=2)}


def make(name="bilstm-tanh", seed=None):
    # The trainer seeds torch before it builds a model.
    model = example_model(REGISTRY.get("model", name), torch.initial_seed() if seed is None else seed)
    # Devices, and recorded steps, draw other numbers: what is dropped would differ.
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


def values(trained, metric):
    split = "train" if metric == "loss" else "dev"
    return [row["value"] for row in trained.history if (row["split"], row["metric"]) == (split, metric)]


# Models that select words draw them, and devices draw otherwise.
STEADY = [model.name for model in REGISTRY.all("model") if reads_one_text(model) and "selection" not in model.provides]


@pytest.mark.parametrize("model", STEADY)
def test_recorded_steps_do_what_ordinary_steps_do(model):
    # Exact arithmetic: some models make much of the last digits.
    training = Training(epochs=3, learning_rate=0.003, precision="float32")
    found = {}
    for way, device, record in [("cpu", "cpu", False), ("plain", "cuda", False), ("recorded", "cuda", True)]:
        rows = split_rows(SPLITS, 2, training, device)
        found[way] = train_seeds(SeedSetup(lambda: make(model), rows, training, record=record), [0, 1, 2], Budget(600))
    for plain in ("cpu", "plain"):
        for one, other in zip(found[plain], found["recorded"], strict=True):
            assert values(one, "loss") == pytest.approx(values(other, "loss"), abs=1e-3)
            assert one.chosen_epoch == other.chosen_epoch
            for split in SPLITS:
                np.testing.assert_allclose(one.probabilities[split], other.probabilities[split], atol=2e-3)


@pytest.mark.filterwarnings("error:plumbline. training steps cannot be captured")
@pytest.mark.parametrize(
    "changes",
    [
        {"clip_norm": 0.05},
        {"schedule": "plateau", "plateau_patience": 0, "plateau_factor": 0.2},
        {"masking": "uniform"},
    ],
)
def test_recorded_steps_follow_the_recipe(changes):
    usual = {"epochs": 5, "learning_rate": 0.01, "precision": "float32", "select_by": "loss", "reduction": "mean"}
    usual |= {"optimiser": "adam", "checkpoint_gain": 0.0}
    training = Training(**usual | changes)
    rows = {device: split_rows(SPLITS, 2, training, device) for device in ("cpu", "cuda")}
    found = [train_seeds(SeedSetup(make, rows[d], training, record=d == "cuda"), [0, 1], Budget(600)) for d in rows]
    for one, other in zip(*found, strict=True):
        assert values(one, "loss") == pytest.approx(values(other, "loss"), abs=1e-3)
        assert one.chosen_epoch == other.chosen_epoch and list(one.checkpoints) == list(other.checkpoints)
        np.testing.assert_allclose(one.probabilities["test"], other.probabilities["test"], atol=2e-3)
        for epoch, state in other.checkpoints.items():
            for name, tensor in state.items():
                assert tensor.device.type == "cpu"
                torch.testing.assert_close(tensor, one.checkpoints[epoch][name], atol=2e-3, rtol=1e-2)
    plain = train_seeds(SeedSetup(make, rows["cuda"], Training(**usual), record=True), [0], Budget(600))[0]
    assert values(found[1][0], "loss") != pytest.approx(values(plain, "loss"), abs=1e-3), "the option has an effect"


@pytest.mark.filterwarnings("error:plumbline. training steps cannot be captured")
def test_an_objective_whose_steps_draw_is_recorded():
    training = Training(epochs=4, learning_rate=0.01, select_by="loss", reduction="mean")
    rows = split_rows(SPLITS, 2, training, "cuda")
    build = lambda: Drawing(HalfOfTheWords())  # noqa: E731
    together = train_together(SeedSetup(build, rows, training, record=True), [0, 1, 2], Budget(600))
    for trained, seed in zip(together, range(3), strict=True):
        (alone,) = train_together(SeedSetup(build, rows, training, record=True), [seed], Budget(600))
        assert values(alone, "loss") == pytest.approx(values(trained, "loss"), abs=1e-4)
        assert np.isfinite(values(trained, "loss")).all()
    torch.manual_seed(0)
    learner = Learner(build(), 0, rows, training, Budget(600), record=True)
    run_epoch(learner, 1)
    assert learner._run.graphs, "the steps are recorded"
    usual, own = torch.cuda.get_rng_state(), learner._run._random.get_state()
    scores = [learner._evaluate(rows["dev"], learner._chunks["dev"]).tolist() for _ in range(2)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-6), "evaluation draws nothing"
    assert torch.equal(usual, torch.cuda.get_rng_state()) and torch.equal(own, learner._run._random.get_state())
    learner.finish()


def test_an_objective_that_is_reached_ends_recorded_training():
    training = Training(epochs=5, select_by="loss", first_eligible_epoch=1, precision="float32")
    rows = split_rows(SPLITS, 2, training, "cuda")
    seen = []

    def third(metrics):
        seen.append(metrics)
        return len(seen) == 3

    objective = Classification()
    objective.reached = third
    found = train_together(SeedSetup(make, rows, training, record=True, objective=objective), [0], Budget(600))[0]
    assert found.chosen_epoch == len(seen) == 3
    until = training.model_copy(update={"first_eligible_epoch": 3, "epochs": 3})
    after = train_together(SeedSetup(make, rows, until, record=True), [0], Budget(600))[0]
    for name, tensor in after.state.items():
        torch.testing.assert_close(found.state[name], tensor, atol=1e-3, rtol=1e-2)


def test_recorded_steps_of_an_image_model_do_what_ordinary_steps_do():
    """Including the running statistics of batch normalisation, which steps change in addition to the parameters."""
    training = Training(**{**REGISTRY.get("model", "resnet-small").training, "epochs": 3, "batch_size": 16})
    training = training.model_copy(update={"precision": "float32", "stop_at": None, "checkpoint_gain": None})
    splits = {split: example_images(40, seed, [split]) for seed, split in enumerate(("train", "dev", "test"))}
    options = {"stem": "3x3", "width": 8, "blocks": "1-1-1-1"}
    found = []
    for device, record in [("cpu", False), ("cuda", False), ("cuda", True)]:
        rows = split_rows(splits, 2, training, device)
        found += train_seeds(
            SeedSetup(lambda: ResNet(None, 2, **options), rows, training, record=record), [0], Budget(4096)
        )
    for other in found[:2]:
        assert values(other, "loss") == pytest.approx(values(found[2], "loss"), abs=1e-3)
        for name, tensor in other.state.items():
            torch.testing.assert_close(tensor, found[2].state[name], atol=5e-3, rtol=5e-3)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize(
    ("model", "precision"), [("bilstm-softmax", "float32"), ("bilstm-softmax", "tf32"), ("average-tanh", "float32")]
)
def test_a_stack_of_seeds_does_what_they_do_alone(model, precision, pairs):
    # As in a new job, whose first seeds are stacked.
    kernels.cache_clear()
    training = Training(
        epochs=3, learning_rate=0.01, batching="shuffle", batch_size=16, reduction="mean", class_weights="none",
        precision=precision, first_eligible_epoch=1, select_by="loss",
    )  # fmt: skip
    splits = {split: example_instances(n, n, paired=pairs) for split, n in (("train", 300), ("dev", 60), ("test", 60))}
    rows = split_rows(splits, ANSWERS if pairs else 2, training, "cuda")

    def build():
        return example_model(REGISTRY.get("model", model), torch.initial_seed(), pairs, hidden=32)

    assert can_stack([build(), build()], rows["train"], training, None)
    together = train_together(SeedSetup(build, rows, training, record=True), [0, 1, 2], Budget(600))
    again = train_together(SeedSetup(build, rows, training, record=True), [0, 1, 2], Budget(600))
    for trained, same, seed in zip(together, again, range(3), strict=True):
        (alone,) = train_together(SeedSetup(build, rows, training, record=True), [seed], Budget(600))
        exact = precision == "float32"
        assert values(alone, "loss") == pytest.approx(values(trained, "loss"), abs=1e-3 if exact else 2e-2)
        np.testing.assert_allclose(
            alone.probabilities["test"], trained.probabilities["test"], atol=5e-3 if exact else 5e-2
        )
        assert all(torch.equal(same.state[name], tensor) for name, tensor in trained.state.items())


class Dropping(torch.nn.Module):
    """A model with dropout, whose steps draw at random."""

    def __init__(self):
        super().__init__()
        self.inner, self.dropout = make(), torch.nn.Dropout(0.3)

    def forward(self, batch):
        return self.inner(batch, self.dropout(self.inner.embedding(batch.ids)))


@pytest.mark.parametrize(("model", "tolerance"), [(make, 1e-5), (Dropping, 1e-4)])
def test_seeds_side_by_side_do_not_touch_each_other(model, tolerance):
    training = Training(epochs=3, learning_rate=0.01)
    rows = split_rows(SPLITS, 2, training, "cuda")
    together = train_together(SeedSetup(model, rows, training, record=True), [0, 1, 2, 3], Budget(600))
    for trained, seed in zip(together, range(4), strict=True):
        (alone,) = train_together(SeedSetup(model, rows, training, record=True), [seed], Budget(600))
        assert values(alone, "loss") == pytest.approx(values(trained, "loss"), abs=tolerance)


def test_dropout_is_in_the_recorded_steps():
    training = Training(epochs=3, learning_rate=0.01)
    rows = split_rows(SPLITS, 2, training, "cuda")
    (dropped,), (whole,) = (
        train_together(SeedSetup(m, rows, training, record=True), [0], Budget(600)) for m in (Dropping, make)
    )
    assert values(dropped, "loss") != pytest.approx(values(whole, "loss"), abs=1e-3)


def test_every_replay_redraws():
    device = torch.device("cuda", torch.cuda.current_device())
    drawn, kept = torch.zeros(8, device=device), []
    work = Recorded(lambda: drawn.copy_(torch.rand(8, device=device)), torch.cuda.Stream(device), 0)
    usual = torch.cuda.get_rng_state()
    for _ in range(6):
        work()
        torch.cuda.synchronize()
        kept.append(tuple(drawn.tolist()))
    assert len(set(kept)) == 6
    assert torch.equal(usual, torch.cuda.get_rng_state()), "the usual generator is left alone"


def test_steps_are_recorded_once_per_shape():
    training = Training(epochs=5)
    rows = split_rows(SPLITS, 2, training, "cuda")
    learner = Learner(make(seed=0), 0, rows, training, Budget(600), record=True)
    for epoch in range(1, 6):
        for number in range(len(learner.begin_epoch())):
            learner.step(number)
        learner.end_epoch(epoch)
    assert 1 <= len(learner._run.graphs) <= 6
    learner.finish()


def test_a_loss_may_read_another_models_outputs():
    instances = SPLITS["train"]
    base = make(seed=0).eval()
    with torch.no_grad():
        output = base(collate(instances.ids, instances.maskable))
    attention = [output.attention[i, : len(ids), None].numpy() for i, ids in enumerate(instances.ids)]
    columns = {"base_probabilities": output.logits.softmax(-1).numpy(), "base_attention": attention}
    curves = []
    for device, record in [("cpu", False), ("cuda", True)]:
        splits = dict.fromkeys(("train", "dev", "test"), DeviceRows(instances, device, columns))
        training = Training(epochs=4, select_by="loss")
        learner = Learner(make(seed=4), 0, splits, training, Budget(600), AtteFa(), record)
        for epoch in range(1, 5):
            for number in range(len(learner.begin_epoch())):
                learner.step(number)
            learner.end_epoch(epoch)
        curves.append([learner.read_epoch(epoch)["train", "loss"] for epoch in range(1, 5)])
    assert curves[0] == pytest.approx(curves[1], abs=1e-3) and curves[0][-1] < curves[0][0]


class Impatient(torch.nn.Module):
    """A model that waits for a number on the host, which cannot be recorded."""

    def __init__(self):
        super().__init__()
        self.inner = make()

    def forward(self, batch):
        output = self.inner(batch)
        return output._replace(logits=output.logits * (1 if float(output.logits.sum()) < 1e9 else 0))


def test_a_model_that_cannot_be_recorded_trains_all_the_same():
    training = Training(epochs=2, learning_rate=0.01)
    rows = split_rows(SPLITS, 2, training, "cuda")
    with pytest.warns(UserWarning, match="cannot be captured as a CUDA graph, so training is slower"):
        found = train_seeds(SeedSetup(Impatient, rows, training, record=True), [0, 1], Budget(600))
    usual = train_seeds(SeedSetup(make, rows, training, record=True), [0, 1], Budget(600))
    for one, other in zip(found, usual, strict=True):
        assert values(one, "loss") == pytest.approx(values(other, "loss"), abs=1e-3)


def test_gradients_in_evaluation_mode_keep_their_meaning():
    model = make(seed=0).to("cuda").eval()
    ids, free = INSTANCES.ids, INSTANCES.maskable
    batch = collate(ids, free, "cuda")

    def slope():
        embedded = model.embedding(batch.ids).detach().requires_grad_()
        return torch.autograd.grad(model(batch, embedded).logits[:, 1].sum(), embedded)[0]

    with torch.backends.cudnn.flags(enabled=False):
        plain = slope()
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False), differentiable(model):
        fast = slope()
    torch.testing.assert_close(plain, fast, atol=1e-5, rtol=1e-4)
    assert not any(layer.training for layer in model.modules())


def test_real_lack_of_memory_halves_the_budget():
    instances = example_instances(400)
    expected = gradient(Evaluator(make(seed=0), 0, 100_000, "cuda"), instances)
    torch.cuda.empty_cache()
    hog = make(seed=0)
    hog.encode = _hungry(hog.encode)
    budget = Budget(100_000)
    with pytest.warns(UserWarning, match="token budget halved"):
        found = gradient(Evaluator(hog, 0, budget, "cuda"), instances)
    assert budget.events and budget.tokens < 100_000
    for a, b in zip(expected.scores, found.scores, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def _hungry(encode):
    """Takes a share of the GPU that no pass of more than 1000 tokens can have."""
    whole = torch.cuda.mem_get_info()[1]

    def greedy(embedded, batch):
        room = torch.empty(int(whole * batch.ids.numel() / 1000), dtype=torch.uint8, device="cuda")
        hidden = encode(embedded, batch)
        del room
        return hidden

    return greedy


def test_pairs_train_recorded_as_on_the_cpu():
    training = Training(epochs=3, learning_rate=0.01, class_weights="none", no_decay=[], reduction="mean")
    splits = {
        name: example_instances(len(split), seed, paired=True) for seed, (name, split) in enumerate(SPLITS.items())
    }
    found = []
    for device in ("cpu", "cuda"):
        rows = split_rows(splits, ANSWERS, training, device)
        build = lambda: example_model(REGISTRY.get("model", "bilstm-tanh"), torch.initial_seed(), paired=True)  # noqa: E731
        found.append(train_seeds(SeedSetup(build, rows, training, record=device == "cuda"), [0, 1], Budget(900)))
    for one, other in zip(*found, strict=True):
        assert values(one, "loss") == pytest.approx(values(other, "loss"), abs=1e-3)
        np.testing.assert_allclose(one.probabilities["test"], other.probabilities["test"], atol=2e-3)


def test_the_budget_fits_the_gpu():
    model = make(seed=0).to("cuda")
    example = collate([np.full(400, 7)] * ROWS, None, "cuda")
    tokens = Budget().settle(model, 400, lambda: example)
    assert 400 <= tokens <= 262_144 and tokens * bytes_per_token(model, example) < torch.cuda.mem_get_info()[0]


def test_a_block_trains_and_predicts_on_the_gpu():
    declaration = REGISTRY.get("model", "bilstm-tanh")
    options = {key: option.default for key, option in declaration.options.items()}
    embedding = torch.randn(40, 8)
    results = [
        train_block(
            BlockSpec(declaration.pointer, options, {"embedding": embedding}, SPLITS, 2, Training(epochs=2)),
            [0, 1],
            600,
            device,
        )
        for device in ("cpu", "cuda")
    ]
    for a, b in zip(results[0][2]["probabilities"], results[1][2]["probabilities"], strict=True):
        np.testing.assert_allclose(a, b, atol=2e-3)
