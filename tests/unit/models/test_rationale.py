"""Rationale models against plain loops, closed forms and exact expectations, and whether they learn planted words."""

from itertools import product

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from torch.nn.functional import cross_entropy

from plumbline.attribution.selection import selection
from plumbline.config.recipes import Training
from plumbline.conformance import CLASSES, check, example_instances, whole_batch
from plumbline.data.instances import Instances
from plumbline.data.vocabulary import EOS, SOS, SPECIALS
from plumbline.errors import PlumblineError
from plumbline.models import hardkuma
from plumbline.models.batch import Batch
from plumbline.models.budget import Budget
from plumbline.models.evaluator import Evaluator
from plumbline.models.rationale import MEMORY, Generator, Rationale, RationaleCR, RationaleRL
from plumbline.models.rationale_objectives import Reinforce, Relaxed
from plumbline.registry import Registry
from plumbline.training.learner import MetricKey
from plumbline.training.trainer import SeedSetup, split_rows, train_together
from tests.unit.models.test_rcnn import golden

D, H, LENGTH = 3, 4, 5
MODELS = {"rationale-rl": RationaleRL, "rationale-cr": RationaleCR}


def inverse(x):
    """What softplus gives x for."""
    return np.log(np.expm1(x))


def shaken(module, seed=0):
    """A module in double precision with biases that are not 0."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "bias" in name:
                parameter.normal_(std=0.3)
    return module.double()


def numpy_selection(generator, hidden, words, draw):
    """z of one text, word by word. hidden: [L, 2H]; draw: a function of the outputs [K] and the place."""
    w = {name: parameter.detach().numpy() for name, parameter in generator.named_parameters()}
    c1 = c2 = s = np.zeros(MEMORY)
    steps = []
    for t, (h, word) in enumerate(zip(hidden, words, strict=True)):
        outputs = w["output"] @ np.concatenate([h, s]) + w["output_bias"]
        z = draw(outputs, t) if word else 0.0
        steps.append((z, outputs))
        if word:
            x = np.append(h, z)
            kept = 1 / (1 + np.exp(-(w["enter"][0] @ x + s @ w["recur"] + w["gate_bias"])))
            c1, c2 = kept * c1 + (1 - kept) * (w["enter"][1] @ x), kept * c2 + (1 - kept) * (c1 + w["enter"][2] @ x)
            s = np.tanh(c2 + w["bias"])
    z, outputs = zip(*steps, strict=True)
    return np.array(z), np.array(outputs)


def numpy_draw(outputs, uniform):
    a, b = np.log1p(np.exp(outputs))
    return np.clip(-0.1 + 1.2 * (1 - (1 - uniform) ** (1 / b)) ** (1 / a), 0, 1)


def generated(kinds, rows=3):
    generator = shaken(Generator(D, H, kinds))
    embedded = torch.randn(rows, LENGTH, D, dtype=torch.float64)
    words = torch.ones(rows, LENGTH, dtype=torch.bool)
    words[:, 0], words[1, -1] = False, False
    return generator, embedded, words


@pytest.mark.parametrize("kinds", [1, 2])
def test_the_generator_is_a_plain_loop(kinds):
    generator, embedded, words = generated(kinds)
    uniform = 0.05 + 0.9 * torch.rand(*words.shape, 1, dtype=torch.float64)
    if kinds == 1:
        noise = uniform.logit().masked_fill(~words[..., None], torch.inf)

        def over(outputs, threshold):
            return (outputs >= threshold).to(outputs.dtype)

        z, outputs = generator(embedded, words, over, noise)
    else:
        z, outputs = generator(
            embedded, words, hardkuma.draw_selection, torch.cat([uniform, words[..., None].double()], -1)
        )
    for row, text in enumerate(embedded.numpy()):
        hidden = golden(generator.encoder, text, words[row].numpy())
        draws = uniform[row, :, 0].numpy()
        draw = (
            (lambda o, t, u=draws: float(1 / (1 + np.exp(-o[0])) >= u[t]))
            if kinds == 1
            else (lambda o, t, u=draws: numpy_draw(o, u[t]))
        )
        expected, expected_outputs = numpy_selection(generator, hidden, words[row].numpy(), draw)
        np.testing.assert_allclose(z[row].detach().numpy(), expected, atol=1e-12)
        here = words[row].numpy()
        np.testing.assert_allclose(outputs[row].detach().numpy()[here], expected_outputs[here], atol=1e-12)
    assert len(z[words].unique()) > 1


def test_derivatives_of_the_generator_are_those_of_differences():
    generator, embedded, words = generated(2, rows=2)
    noise = torch.cat([0.05 + 0.9 * torch.rand(2, LENGTH, 1, dtype=torch.float64), words[..., None].double()], -1)
    names = [name for name, _ in generator.named_parameters()]

    def run(given, *parameters):
        state = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(generator, state, (given, words, hardkuma.draw_selection, noise))

    given = [embedded, *(parameter.detach() for parameter in generator.parameters())]
    given = [tensor.requires_grad_() for tensor in given]
    z = run(*given)[0]
    assert ((z > 0) & (z < 1)).any()
    assert torch.autograd.gradcheck(run, given, fast_mode=True)


def outputs_of(a, b):
    return torch.tensor([[inverse(a), inverse(b)]], dtype=torch.float64)


@pytest.mark.parametrize(("a", "b"), [(0.3, 2.0), (1.0, 1.0), (2.5, 0.4), (40.0, 60.0)])
def test_hardkuma_is_its_distribution_function(a, b):
    def below(x):
        return 1 - (1 - x**a) ** b

    outputs = outputs_of(a, b)
    assert hardkuma.open_probability(outputs).item() == pytest.approx(1 - below(0.1 / 1.2), abs=1e-9)
    assert hardkuma.kumaraswamy_mean(outputs).item() == pytest.approx(quad(lambda x: 1 - below(x), 0, 1)[0], abs=1e-7)
    uniform = torch.linspace(0.001, 0.999, 9, dtype=torch.float64)
    noise = torch.stack([uniform, torch.ones_like(uniform)], dim=1)
    z = hardkuma.draw_selection(outputs.expand(9, -1), noise)[:, 0].numpy()
    inside = (z > 0) & (z < 1)
    np.testing.assert_allclose(below((z[inside] + 0.1) / 1.2), uniform.numpy()[inside], atol=1e-9)
    assert (uniform.numpy()[z == 0] <= below(0.1 / 1.2)).all() and (uniform.numpy()[z == 1] >= below(1.1 / 1.2)).all()


def test_the_mean_holds_in_single_precision_where_shapes_are_extreme():
    outputs = torch.tensor([[-12.0, 3.0], [60.0, -12.0], [-30.0, -30.0]])
    exact = hardkuma.kumaraswamy_mean(outputs.double())
    torch.testing.assert_close(hardkuma.kumaraswamy_mean(outputs), exact.float(), atol=1e-6, rtol=1e-5)


def test_z_in_evaluation_is_the_most_probable_of_0_1_and_between():
    one = torch.ones(1, 1, dtype=torch.float64)
    # a = b = 1 is uniform: 0 and 1 have 1/12 each, and the mean is 1/2 stretched or not.
    assert hardkuma.most_probable(outputs_of(1, 1), one).item() == pytest.approx(0.5)
    # a = 1, b = 2: P(0) = 1 - (11/12)² = .16 and the mean 1/3, which is stretched to .3.
    assert hardkuma.most_probable(outputs_of(1, 2), one).item() == pytest.approx(0.3)
    assert hardkuma.most_probable(outputs_of(1, 2), one, "published").item() == pytest.approx(1 / 3)
    assert hardkuma.most_probable(outputs_of(0.05, 5), one).item() == 0
    assert hardkuma.most_probable(outputs_of(5, 0.05), one).item() == 1
    assert hardkuma.most_probable(outputs_of(5, 0.05), 0 * one).item() == 0


def example(name, hidden=6, **options):
    torch.manual_seed(1)
    embedding = torch.randn(40, D)
    embedding[0] = 0
    return MODELS[name](embedding, CLASSES, hidden=hidden, **options)


@pytest.mark.parametrize("name", MODELS)
def test_it_conforms(name):
    assert check("model", name, Registry()) == []


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("training", [False, True])
def test_special_tokens_and_padding_are_neither_selected_nor_counted(name, training):
    batch = whole_batch(example_instances())
    model = example(name).train(training)
    output = model(batch)
    assert (output.z > 0).any() and not output.z[~batch.attendable].any()
    assert not output.open_probability[~batch.attendable].any()
    assert torch.equal(output.words, batch.attendable)
    assert output.z.min() >= 0 and output.z.max() <= 1
    others = batch.ids.clone()
    others[~batch.attendable] = 7
    torch.manual_seed(0)
    output = model(batch)
    torch.manual_seed(0)
    assert torch.equal(model(Batch(others, batch.present, batch.attendable)).logits, output.logits)


@pytest.mark.parametrize("name", MODELS)
def test_the_classifier_reads_z_x_and_nothing_else(name):
    model = shaken(example(name, hidden=H)).eval()
    batch = whole_batch(example_instances())
    output = model(batch)
    weight, bias = (parameter.detach().numpy() for parameter in model.output.parameters())
    embedded = model.embedding(batch.ids).detach().numpy()
    for row, z in enumerate(output.z.detach().numpy()):
        states = golden(model.encoder, z[:, None] * embedded[row], z > 0)
        expected = weight @ np.concatenate([states[-1, :H], states[0, H:]]) + bias
        np.testing.assert_allclose(output.logits[row].detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_without_chance_are_those_of_differences(name):
    model = shaken(example(name)).eval().requires_grad_(False)
    batch = whole_batch(example_instances().take([3, 7]))
    embedded = model.embedding(batch.ids).detach().requires_grad_()
    z = model(batch).z
    if name == "rationale-cr":
        assert ((z > 0) & (z < 1)).any()
    assert torch.autograd.gradcheck(lambda given: model(batch, given).logits, (embedded,))


@pytest.mark.parametrize("name", MODELS)
def test_the_measure_tells_z_of_the_words(name):
    instances = example_instances()
    model = example(name)
    importances = selection(Evaluator(model, 0, 30), instances)
    for i, scores in enumerate(importances.scores):
        z = model(whole_batch(instances.take([i]))).z[0].detach().numpy()
        np.testing.assert_allclose(scores, z[instances.maskable[i]], atol=1e-6)
        assert not importances.specials[i].any()


def told_output(z, words, opened=None, log_probability=None):
    logits = torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    opened = torch.zeros_like(z) if opened is None else opened
    return Rationale(logits, None, None, None, z, words, opened, log_probability)


WORDS = torch.tensor([[True, True, True, True], [True, True, False, False]])
ROW = {"label": torch.tensor([0, 1]), "weight": torch.ones(2, dtype=torch.float64)}
ENTROPY = [np.log(2), np.log(1 + np.e)]


@pytest.mark.parametrize(("penalty", "costs"), [("code", (0.25 - 0.2, 0.5 - 0.2)), ("paper", (2 / 6 - 0.2,) * 2)])
def test_rewarded_by_hand(penalty, costs):
    z = torch.tensor([[1, 0, 0, 0], [0, 1, 0, 0]], dtype=torch.float64)
    output = told_output(z, WORDS, log_probability=torch.tensor([-2.0, -3.0], dtype=torch.float64))
    objective = Reinforce(0.2, 3.0, penalty, 0.97, 0.01)
    expected = [e + (e + 3 * c) * p for e, c, p in zip(ENTROPY, costs, (-2, -3), strict=True)]
    np.testing.assert_allclose(objective.losses(output, ROW), expected, rtol=1e-12)
    rate, loss = objective.summary(objective.quantities(output, ROW).mean(0))
    assert rate.item() == pytest.approx(2 / 6)
    assert loss.item() == pytest.approx(np.mean(ENTROPY) + 3 * np.mean(costs))


@pytest.mark.parametrize(("penalty", "share"), [("paper", 1.8 / 6), ("code", (1.0 / 4 + 0.8 / 2) / 2)])
def test_relaxed_by_hand(penalty, share):
    z = torch.tensor([[0.3, 0, 0, 1], [0, 0, 0, 0]], dtype=torch.float64)
    opened = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.5, 0.3, 0, 0]], dtype=torch.float64)
    objective = Relaxed(0.2, 3.0, penalty, 0.97, 0.01)
    output = told_output(z, WORDS, opened)
    np.testing.assert_allclose(objective.losses(output, ROW), np.array(ENTROPY) + 3 * (share - 0.2), rtol=1e-12)
    rate, loss = objective.summary(objective.quantities(output, ROW).mean(0))
    assert rate.item() == pytest.approx(2 / 6)
    assert loss.item() == pytest.approx(np.mean(ENTROPY) + 3 * (share - 0.2))


def test_the_reward_has_the_slope_of_the_expected_cost():
    """Over all selections of a short text, each by its probability: what REINFORCE rests on, exactly."""
    model = shaken(example("rationale-rl", dropout=0.0, rate=0.3, strength=2.0)).train()
    batch = whole_batch(example_instances().take([1]))
    row = {"label": torch.tensor([1]), "weight": torch.ones(1, dtype=torch.float64)}
    places = batch.attendable[0].nonzero()[:, 0].tolist()
    weights = [parameter for name, parameter in model.named_parameters() if name != "embedding.weight"]
    drawn = torch.Tensor.logit
    by_chance = [torch.zeros_like(weight) for weight in weights]
    cost = torch.zeros((), dtype=torch.float64)
    total = 0.0
    try:
        for chosen in product([0.0, 1.0], repeat=len(places)):
            # A threshold below or above everything decides each word.
            threshold = torch.zeros(1, batch.ids.shape[1], 1, dtype=torch.float64)
            threshold[0, places, 0] = torch.tensor([-1e9 if one else 1e9 for one in chosen], dtype=torch.float64)
            torch.Tensor.logit = lambda _, fixed=threshold: fixed
            output = model(batch)
            assert output.z[0, places].tolist() == list(chosen)
            probability = output.log_probability.exp()
            slopes = torch.autograd.grad(model.objective.losses(output, row).sum(), weights, retain_graph=True)
            for sum_, slope in zip(by_chance, slopes, strict=True):
                sum_ += probability.detach() * slope
            penalty = 2.0 * abs(np.mean(chosen) - 0.3)
            cost = cost + (probability * (cross_entropy(output.logits, row["label"]) + penalty)).sum()
            total += probability.item()
    finally:
        torch.Tensor.logit = drawn
    assert total == pytest.approx(1)
    for sum_, slope in zip(by_chance, torch.autograd.grad(cost, weights), strict=True):
        torch.testing.assert_close(sum_, slope, atol=1e-10, rtol=1e-8)
        assert slope.any()


def test_draws_have_the_reported_probability():
    model = example("rationale-rl", dropout=0.0).train()
    batch = whole_batch(example_instances().take([0])).repeat(4000)
    torch.manual_seed(0)
    with torch.no_grad():
        output = model(batch)
    first = batch.attendable[0].nonzero()[0].item()
    assert output.z[:, first].mean().item() == pytest.approx(output.open_probability[0, first].item(), abs=0.03)


def test_training_ends_where_accuracy_and_share_are_reached():
    objective = Reinforce(0.1, 1.0, "code", 0.97, 0.01)

    def metrics(accuracy, rate):
        return {MetricKey("dev", "accuracy"): accuracy, MetricKey("dev", "selection_rate"): rate}

    assert objective.reached(metrics(0.97, 0.109))
    assert not objective.reached(metrics(0.969, 0.1))
    assert not objective.reached(metrics(1.0, 0.112))
    assert not objective.reached({MetricKey("test", "accuracy"): 1.0})


@pytest.mark.parametrize(("options", "wrong"), [({"rate": 0.0}, "`rate` is 0"), ({"strength": -1.0}, "`strength`")])
def test_impossible_options_are_refused(options, wrong):
    with pytest.raises(PlumblineError, match=wrong):
        example("rationale-rl", **options)


def planted(count, seed, split):
    """Texts of 8 to 13 words, one in ten of which is the word of the class; the others say nothing."""
    random = np.random.default_rng(seed)
    label = random.integers(CLASSES, size=count).astype(np.int32)
    ids, maskable, truth = [], [], []
    for one in label:
        words = random.integers(len(SPECIALS) + CLASSES, len(SPECIALS) + 50, size=random.integers(8, 14))
        decides = np.zeros(len(words), dtype=bool)
        decides[random.choice(len(words), 1)] = True
        words[decides] = len(SPECIALS) + one
        ids.append(np.concatenate([[SOS], words, [EOS]]).astype(np.int32))
        maskable.append(np.concatenate([[False], np.ones(len(words), dtype=bool), [False]]))
        truth.append(decides)
    return Instances(np.full(count, split), np.arange(count, dtype=np.int32), label, ids, maskable), truth


@pytest.mark.parametrize("name", MODELS)
def test_it_learns_to_select_planted_words(name):
    found = {split: planted(count, seed, split) for seed, (split, count) in enumerate(SIZES.items())}
    options = Registry().get("model", name).training
    training = Training(**{**options, "epochs": 20, "batch_size": 64, "learning_rate": 2e-3})
    rows = split_rows({split: texts for split, (texts, _) in found.items()}, CLASSES, training, "cpu")
    torch.manual_seed(0)
    embedding = torch.randn(len(SPECIALS) + 50, 20)

    def build():
        model = MODELS[name](embedding, CLASSES, hidden=32)
        model.embedding.weight.requires_grad_(False)
        return model

    (trained,) = train_together(SeedSetup(build, rows, training), [0], Budget(10**5))
    metrics = {(row["epoch"], row["split"], row["metric"]): row["value"] for row in trained.history}
    last = trained.history[-1]["epoch"]
    assert last == trained.chosen_epoch < 20
    assert metrics[last, "dev", "accuracy"] >= 0.97 and abs(metrics[last, "dev", "selection_rate"] - 0.1) <= 0.01
    test, truth = found["test"]
    assert (trained.probabilities["test"].argmax(1) == test.label).mean() > 0.95
    model = build()
    model.load_state_dict(trained.state)
    selected = np.concatenate(selection(Evaluator(model, 0, 10**5), test).scores) > 0
    right = np.concatenate(truth)
    assert selected.mean() == pytest.approx(0.1, abs=0.03)
    assert right[selected].mean() > 5 * right.mean()


SIZES = {"train": 1000, "dev": 200, "test": 200}
