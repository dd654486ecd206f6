"""DeepLIFT against Captum, completeness, numbers by hand and a slow and obvious Deep-SHAP."""

from dataclasses import replace
from math import log

import numpy as np
import pytest
import torch
from captum.attr import DeepLift
from torch import nn
from transformers import AutoModel, BertConfig, DistilBertConfig, RobertaConfig
from transformers.activations import ACT2FN

from plumbline.attribution.deep_lift import deep_lift, deep_shap, difference_scores, partners
from plumbline.attribution.differences import NEAR, TensorWithBaseline
from plumbline.attribution.explained_output import ExplainedOutput
from plumbline.attribution.inputs import baseline_vectors, feature_mask, forward_vectors, input_vectors
from plumbline.conformance import CLASSES, WORDS, example_instances, example_model, whole_batch
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.classifier import AttentionClassifier, Output
from plumbline.models.evaluator import Evaluator
from plumbline.models.transformer import SongTransformer
from plumbline.registry import PAIRED, Registry

REGISTRY = Registry()
GRADIENT = [declaration for declaration in REGISTRY.all("model") if "gradient" in declaration.provides]
# The models of checkpoints are all the same here, and some others differ in their training alone.
DISTINCT = {
    f"{d.pointer} { {name: option.default for name, option in d.options.items() if name != 'checkpoint'} }": d
    for d in GRADIENT
}
CASES = [
    (d.name, paired)
    for d in DISTINCT.values()
    for paired in (False, True)
    if (set(PAIRED) & set(d.tasks) if paired else "classification" in d.tasks)
]


def strong(model: nn.Module) -> nn.Module:
    """A model with weights so large that it is far from linear, and with padding that is a vector like others."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embedding" not in name and "LayerNorm" not in name and "norm" not in name:
                parameter *= 3
        if isinstance(model, AttentionClassifier):
            for embedding in {model.embedding, getattr(model, "pair_embedding", model.embedding)}:
                embedding.weight[0] = torch.linspace(-1, 1, embedding.embedding_dim)
    return model.requires_grad_(False)


def make_evaluator(name, paired=False, budget=10_000):
    return Evaluator(strong(example_model(REGISTRY.get("model", name), paired=paired)), 0, budget)


def change(evaluator, instances, classes, function, baseline="pad", texts="both", specials=True):
    """How the explained output differs from that of the baseline, [N], in double precision."""
    model, batch = evaluator.model.double(), whole_batch(instances)
    vectors = input_vectors(model, batch)
    moved = feature_mask(batch, texts, specials)[:, :, None]
    reference = torch.where(moved, baseline_vectors(model, batch, baseline), vectors)
    ends = [forward_vectors(model, batch, rows).logits for rows in (vectors, reference)]
    explained = ExplainedOutput.of("gold", function, ends[0], classes)
    outputs = [explained.value(logits) for logits in ends]
    model.float()
    return (outputs[0] - outputs[1]).numpy()


def all_scores(found):
    """The scores of all tokens of each instance."""
    columns = [column for column in (found.scores, found.pair, found.specials) if column is not None]
    return [np.concatenate(row) for row in zip(*columns, strict=True)]


def total(found):
    return np.array([scores.sum(dtype=np.float64) for scores in all_scores(found)])


# Sums


@pytest.mark.parametrize(("name", "paired"), CASES)
@pytest.mark.parametrize("function", ["probability", "logit", "difference"])
def test_scores_of_all_tokens_sum_to_the_change_of_the_output(name, paired, function):
    evaluator, instances = make_evaluator(name, paired), example_instances(paired=paired).take([1, 5, 8, 10])
    found = deep_lift(evaluator, instances, function=function, sign="signed")
    # The words of a prompt are not explained.
    specials = not getattr(evaluator.model, "prompted", False)
    expected = change(evaluator, instances, found.target, function, specials=specials)
    assert np.abs(expected).max() > 1e-3
    # Scores are stored in single precision.
    largest = max(np.abs(scores).max() for scores in all_scores(found))
    np.testing.assert_allclose(total(found), expected, atol=1e-6 * max(1, largest))


@pytest.mark.parametrize("name", ["bilstm-tanh", "bilstm-shared", "distilbert"])
@pytest.mark.parametrize("options", [{"baseline": "zero"}, {"texts": "first"}, {"specials": False}])
def test_only_explained_tokens_are_replaced(name, options):
    evaluator, instances = make_evaluator(name, True), example_instances(paired=True).take([1, 8, 10])
    found = deep_lift(evaluator, instances, sign="signed", target="gold", **options)
    expected = change(evaluator, instances, instances.label, "probability", **options)
    np.testing.assert_allclose(total(found), expected, atol=2e-6)
    assert (found.specials is None) == ("specials" in options)
    assert (found.pair is None) == ("texts" in options)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(expected, change(evaluator, instances, instances.label, "probability"), atol=1e-4)


def test_gradients_times_differences_do_not_sum_to_it():
    evaluator, instances = make_evaluator("bilstm-tanh"), example_instances()
    found = deep_lift(evaluator, instances, rule="gradient", sign="signed")
    assert np.abs(total(found) - change(evaluator, instances, found.target, "probability")).max() > 0.01


KINDS = {
    "bert": BertConfig(pad_token_id=0, hidden_act="gelu_new"),
    "distilbert": DistilBertConfig(pad_token_id=0, activation="gelu"),
    "roberta": RobertaConfig(pad_token_id=1),
}
SMALL = {
    "hidden_size": 16, "dim": 16, "num_hidden_layers": 2, "n_layers": 2, "num_attention_heads": 2, "n_heads": 2,
    "intermediate_size": 32, "hidden_dim": 32, "max_position_embeddings": 64, "initializer_range": 0.3,
    "vocab_size": WORDS,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("paired", [False, True])
def test_scores_are_complete_in_transformers_of_each_kind(kind, paired, tmp_path):
    config = KINDS[kind]
    config.update({key: value for key, value in SMALL.items() if hasattr(config, key)})
    torch.manual_seed(0)
    AutoModel.from_config(config).save_pretrained(tmp_path)
    model = SongTransformer(None, 5 if paired else CLASSES, checkpoint=str(tmp_path)).requires_grad_(False)
    evaluator, instances = Evaluator(model, 0, 10_000), example_instances(paired=paired).take([1, 5, 8, 10])
    for function in ("probability", "logit", "difference"):
        found = deep_lift(evaluator, instances, function=function, sign="signed")
        expected = change(evaluator, instances, found.target, function)
        assert np.abs(expected).max() > 1e-2
        np.testing.assert_allclose(total(found), expected, atol=2e-6)


# Captum


class Plain(nn.Module):
    """Modules over the vectors of all tokens as one row, so that Captum finds them."""

    def __init__(self, *modules):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), *modules)

    def forward(self, batch, vectors):
        return Output(self.net(vectors))


NETS = {
    "tanh": lambda: [nn.Linear(12, 7), nn.Tanh(), nn.Linear(7, 3)],
    "sigmoid": lambda: [nn.Linear(12, 7), nn.Sigmoid(), nn.Linear(7, 3)],
    "relu": lambda: [nn.Linear(12, 7), nn.ReLU(), nn.Linear(7, 3)],
    "deep": lambda: [*NETS["tanh"](), nn.ReLU(), nn.Linear(3, 7), nn.Sigmoid(), nn.Linear(7, 3)],
}  # fmt: skip


@pytest.mark.parametrize("name", NETS)
def test_modules_that_captum_knows_get_its_attributions(name):
    torch.manual_seed(0)
    model = Plain(*NETS[name]()).double().requires_grad_(False)
    vectors, baseline = 2 * torch.randn(2, 5, 3, 4, dtype=torch.float64)
    classes = torch.tensor([0, 1, 2, 0, 1])
    expected = DeepLift(model.net).attribute(vectors, baseline, target=classes).sum(-1)
    output = ExplainedOutput(classes, "logit")
    found = difference_scores(model, Batch(*[torch.ones(5, 3)] * 3), vectors, baseline, output, "rescale")
    torch.testing.assert_close(found, expected.detach(), atol=1e-8, rtol=1e-6)


class Pooled(nn.Module):
    """The largest value of each of some features over all tokens, by a module or by a function."""

    def __init__(self):
        super().__init__()
        self.linear, self.tanh, self.head = nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)
        self.pool = nn.MaxPool1d(7)

    def forward(self, vectors):
        return self.head(self.pool(self.tanh(self.linear(vectors)).mT).squeeze(-1))

    def functional(self, vectors):
        return self.head(torch.tanh(self.linear(vectors)).amax(1))


def test_the_maximum_agrees_with_captum():
    torch.manual_seed(0)
    model = Pooled().double().requires_grad_(False)
    vectors, baseline = torch.randn(2, 5, 7, 4, dtype=torch.float64)
    expected = DeepLift(model).attribute(vectors, baseline, target=1).detach()
    vectors.requires_grad_()
    output = model.functional(TensorWithBaseline.of(vectors, baseline))
    (multipliers,) = torch.autograd.grad(output.value[:, 1].sum(), vectors)
    torch.testing.assert_close(multipliers * (vectors.detach() - baseline), expected, atol=1e-8, rtol=1e-6)


def test_captum_on_the_studys_models_is_gradient_times_difference():
    """Its rules find no module to attach to."""
    evaluator, instances = make_evaluator("bilstm-tanh"), example_instances()
    evaluator.model.double()
    batch = whole_batch(instances)

    class Probabilities(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = evaluator.model

        def forward(self, vectors):
            return self.model(batch.repeat(2), vectors).logits.softmax(-1)

    vectors = input_vectors(evaluator.model, batch)
    reference = torch.where(feature_mask(batch)[:, :, None], baseline_vectors(evaluator.model, batch, "pad"), vectors)
    expected = DeepLift(Probabilities()).attribute(vectors, reference, target=torch.from_numpy(instances.label).long())
    expected = expected.sum(-1).detach().numpy()
    found = deep_lift(evaluator, instances, rule="gradient", target="gold", sign="signed")
    for row, scores, free in zip(expected, found.scores, instances.maskable, strict=True):
        np.testing.assert_allclose(scores, row[: len(free)][free], atol=1e-6)


# Rules by hand


def contributions(function, text, baseline, output=0):
    """The contribution of each number of the text to one output of a function."""
    x, b = (torch.tensor(row, dtype=torch.float64) for row in (text, baseline))
    x.requires_grad_()
    out = function(TensorWithBaseline.of(x, b))
    (multipliers,) = torch.autograd.grad(out.value.flatten()[output], x)
    difference = (x - b).detach().nan_to_num(0)
    assert float((out.value - out.baseline).detach().flatten()[output]) == pytest.approx(
        float(multipliers @ difference)
    )
    return (multipliers * difference).tolist()


INF = float("inf")
# Powers 3, 2 and 1, 1, their sums 5 and 2, weights 3/5 and 1/2: (2 - mean(3/5, 1/2) · 2) / mean(5, 2), and what the
# second adds to the sum alone.
SOFTMAX = (9 / 35, -11 / 70)
BY_HAND = {
    # 3 · 4 - 1 · 2 = mean(4, 2) · 2 + mean(3, 1) · 2
    "product": (lambda x: x[:1] * x[1:], (3, 4), (1, 2), 0, (6, 4)),
    "matrix product": (lambda x: x[:2][None] @ x[2:][:, None], (3, 1, 4, 5), (1, 1, 2, 5), 0, (6, 0, 4, 0)),
    "einsum": (lambda x: torch.einsum("i,i->", x[:1], x[1:]), (3, 4), (1, 2), 0, (6, 4)),
    # 12 / 3 - 2 / 1 = (10 - mean(4, 2) · 2) / mean(3, 1)
    "quotient": (lambda x: x[:1] / x[1:], (12, 3), (2, 1), 0, (5, -3)),
    "half": (lambda x: x / 2, (4, 3), (1, 1), 0, (1.5, 0)),
    "one over": (lambda x: 1 / x, (4,), (2,), 0, (-1 / 4,)),
    "square": (lambda x: x**2, (3, 1), (1, 1), 0, (8, 0)),
    "root": (torch.sqrt, (9, 1), (4, 1), 0, (1, 0)),
    "relu": (torch.relu, (3, 1), (-1, 1), 0, (3, 0)),
    "softmax": (lambda x: x.softmax(-1), (log(3), log(2)), (0, 0), 0, SOFTMAX),
    "masked softmax": (lambda x: x.softmax(-1), (log(3), -INF, log(2)), (0, -INF, 0), 0, (SOFTMAX[0], 0, SOFTMAX[1])),
    "softmax of a sum": (lambda x: (x + 900).softmax(-1), (log(3), log(2)), (0, 0), 0, SOFTMAX),
    "softmax of another height": (lambda x: x.softmax(-1), (900, 900), (0, 0), 0, (0.5, -0.5)),
    # Half the distance, h, becomes h / √(h² + 12): 1/2 for h = 2 and 1/7 for h = 1/2. It comes from both ends of it.
    "layer norm": (lambda x: nn.functional.layer_norm(x, (2,), eps=12), (2, -2), (1.5, 0.5), 0, (5 / 84, 25 / 84)),
    "largest, rising": (lambda x: x.amax(0), (5, 1, 2), (1, 3, 0), 0, (2, 0, 0)),
    "largest, falling": (lambda x: x.amax(0), (1, 3), (5, 1), 0, (-2, 0)),
    "largest, tied": (lambda x: x.amax(0), (3, 3), (0, 1), 0, (1, 1)),
    "largest, tied otherwise": (lambda x: x.amax(0), (3, 3, 4), (0, 6, 6), 0, (0, -1, -1)),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_rules_by_hand(name):
    *arguments, expected = BY_HAND[name]
    assert contributions(*arguments) == pytest.approx(expected, abs=1e-9)


def test_a_norm_of_several_dimensions_with_weights_sums_up():
    torch.manual_seed(0)
    norm = nn.LayerNorm((3, 4)).double().requires_grad_(False)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x, b = torch.randn(2, 2, 3, 4, dtype=torch.float64)
    x.requires_grad_()
    out = norm(TensorWithBaseline.of(x, b))
    torch.testing.assert_close(out.value, norm(x))
    torch.testing.assert_close(out.baseline, norm(b))
    (multipliers,) = torch.autograd.grad(out.value[:, 1, 2].sum(), x)
    torch.testing.assert_close((multipliers * (x - b)).sum((1, 2)), (out.value - out.baseline)[:, 1, 2])


@pytest.mark.parametrize("name", sorted({*ACT2FN} - {"prelu", "xielu"}))
def test_activations_of_transformers_have_the_rescale_rule(name):
    torch.manual_seed(0)
    b = 3 * torch.randn(200, dtype=torch.float64)
    x = torch.cat([b[:50], b[50:100] + NEAR / 3, b[100:150] + 3 * NEAR, 3 * torch.randn(50, dtype=torch.float64)])
    x.requires_grad_()
    out = ACT2FN[name](TensorWithBaseline.of(x, b))
    (multipliers,) = torch.autograd.grad(out.value.sum(), x)
    torch.testing.assert_close(multipliers * (x - b), out.value - out.baseline, atol=1e-12, rtol=0)
    same = b.clone().requires_grad_()
    (derivative,) = torch.autograd.grad(ACT2FN[name](same).sum(), same)
    smooth = (multipliers - derivative).abs()[:150] < 1e-5
    # But for those with a kink between the two.
    assert smooth[:50].all() and smooth.sum() >= 148


# Recurrent layers


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize(
    "options",
    [{}, {"batch_first": True}, {"bias": False}, {"num_layers": 2, "bidirectional": True, "batch_first": True}],
)
def test_unrolled_layers_have_the_outputs_of_the_layers(layer, options):
    torch.manual_seed(0)
    made = layer(4, 3, **options).double().requires_grad_(False)
    x, b = torch.randn(2, 5, 6, 4, dtype=torch.float64)
    x.requires_grad_()
    outputs, states = made(TensorWithBaseline.of(x, b))
    states = states if isinstance(states, tuple) else (states,)
    for part, given in (("value", x), ("baseline", b)):
        expected, last = made(given)
        torch.testing.assert_close(getattr(outputs, part), expected)
        for found, state in zip(states, last if isinstance(last, tuple) else (last,), strict=True):
            torch.testing.assert_close(getattr(found, part), state)
    (multipliers,) = torch.autograd.grad(outputs.value.sum(), x)
    torch.testing.assert_close((multipliers * (x - b)).sum(), (outputs.value - outputs.baseline).sum())


# What has no rule


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda x: x.sort(), "sort"),
        (lambda x: x.detach(), "detach"),
        (lambda x: x.mul_(2), "mul_"),
        (lambda x: 2**x, "__rpow__"),
        (lambda x: torch.einsum("i,i,i->", x, x, x), "einsum"),
        (lambda x: nn.functional.normalize(x, dim=0), "normalize"),
    ],
)
def test_functions_without_a_rule_are_refused(function, named):
    with pytest.raises(PlumblineError, match=f"no rule for '{named}'"):
        function(TensorWithBaseline.of(torch.ones(3), torch.zeros(3)))


def test_projections_of_recurrent_layers_are_refused():
    with pytest.raises(PlumblineError, match="proj_size"):
        nn.LSTM(4, 3, proj_size=2)(TensorWithBaseline.of(torch.ones(5, 2, 4), torch.zeros(5, 2, 4)))


# Measures


def test_the_model_is_restored():
    evaluator = make_evaluator("bilstm-tanh")
    before = {name: value.clone() for name, value in evaluator.model.state_dict().items()}
    deep_lift(evaluator, example_instances())
    evaluator.model.forward = lambda *_: 1 / 0
    with pytest.raises(ZeroDivisionError):
        deep_lift(evaluator, example_instances())
    for name, value in evaluator.model.state_dict().items():
        assert value.dtype == torch.float32 and torch.equal(value, before[name])


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("rule", ["rescale", "gradient"])
def test_deep_shap_of_equal_baselines_is_deep_lift(rule, paired):
    evaluator, instances = make_evaluator("bilstm-tanh", paired), example_instances(paired=paired)
    found, expected = deep_shap(evaluator, instances, rule=rule), deep_lift(evaluator, instances, rule=rule)
    signed = deep_lift(evaluator, instances, rule=rule, sign="signed")
    for own, same, either in zip(*map(all_scores, (found, expected, signed)), strict=True):
        np.testing.assert_array_equal(own, same)
        np.testing.assert_array_equal(own, np.abs(either))
    assert found.target.tolist() == expected.target.tolist() == evaluator.probabilities(instances).argmax(1).tolist()


def test_presets():
    published = REGISTRY.get("measure", "deep-shap-published")
    assert {name: published.options[name].default for name in ("rule", "mixed")} == {
        "rule": "gradient",
        "mixed": "texts-and-labels",
    }
    common = {
        "target": "predicted", "function": "probability", "baseline": "pad", "texts": "both", "specials": True,
        "sign": "absolute",
    }  # fmt: skip
    for name in ("grad-x-diff", "deep-lift", "deep-shap", "deep-shap-published"):
        declared = REGISTRY.get("measure", name)
        options = {option: value.default for option, value in declared.options.items()}
        assert common.items() <= options.items() and declared.needs == ["gradient"]


def planted(count=64):
    """Texts of ten words with a label that depends on the presence of word 7."""
    random = np.random.default_rng(0)
    ids = [random.integers(8, WORDS, size=10).astype(np.int32) for _ in range(count)]
    label = np.arange(count, dtype=np.int32) % 2
    for row in np.flatnonzero(label):
        ids[row][random.integers(10)] = 7
    return Instances(
        np.array(["test"] * count), np.arange(count, dtype=np.int32), label, ids, [np.ones(10, dtype=bool)] * count
    )


@pytest.mark.parametrize(
    ("name", "options", "rule"),
    [
        ("bag-of-words", {}, "rescale"),
        ("bag-of-words", {}, "gradient"),
        # On which gradients find other words now and then.
        ("bilstm-tanh", {"hidden": 16}, "rescale"),
    ],
)
def test_a_word_that_alone_decides_the_class_ranks_first(name, options, rule):
    instances, batch = planted(), whole_batch(planted())
    declared = REGISTRY.get("model", name)
    torch.manual_seed(0)
    chosen = {key: option.default for key, option in declared.options.items()} | options
    model = (AttentionClassifier if options else type(example_model(declared)))(torch.randn(WORDS, 8), 2, **chosen)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    labels = torch.from_numpy(instances.label).long()
    for _ in range(60):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(batch).logits, labels).backward()
        optimiser.step()
    evaluator = Evaluator(model.requires_grad_(False), 0, 10_000)
    assert (evaluator.probabilities(instances).argmax(1) == instances.label).all()
    # A saturated probability has gradients of rounding, so the logit.
    found = deep_lift(evaluator, instances, rule=rule, function="logit").scores
    for i in np.flatnonzero(instances.label):
        assert instances.ids[i][found[i].argmax()] == 7


# Deep-SHAP as published


def test_partners_are_neighbours_by_split_and_number():
    instances = example_instances(9, splits=["dev", "test"])
    assert instances.split.tolist() == ["dev"] * 5 + ["test"] * 4
    expected = {0: 1, 1: 0, 2: 3, 3: 2, 4: 4, 5: 6, 6: 5, 7: 8, 8: 7}
    assert dict(enumerate(partners(instances).tolist())) == expected
    order = np.random.default_rng(0).permutation(9)
    shuffled = partners(instances.take(order))
    assert {int(order[i]): int(order[j]) for i, j in enumerate(shuffled)} == expected


def filled(row, width, filler=0):
    """A row as [1, width]."""
    return torch.from_numpy(np.pad(row, (0, width - len(row)), constant_values=filler))[None]


def as_if(instances, i, j, padding, answers_of):
    """Instance i in a batch of i and j, with the masks of j."""
    sides = [(instances.ids, instances.maskable)]
    if instances.pair is not None:
        sides.append((instances.pair, instances.pair_maskable))
    texts = []
    for ids, free in sides:
        width = max(len(ids[i]), len(ids[j]))
        present = filled(np.ones(len(ids[j]), dtype=bool), width, False)
        texts.append(Batch(filled(ids[i].astype(np.int64), width, padding), present, filled(free[j], width, False)))
    answers = None if instances.answers is None else torch.from_numpy(instances.answers[answers_of] + 1).long()[None]
    return replace(texts[0], pair=texts[1] if len(texts) > 1 else None, answers=answers)


def one_by_one(model, instances, i, j, chosen, answers_of):
    """(x - b) · ∂p_c/∂x of the tokens of instance i with the masks of j: one array for each text."""
    padding = 1 if hasattr(model, "vectors") else 0
    batch = as_if(instances, i, j, padding, answers_of)
    reference = replace(batch, ids=torch.full_like(batch.ids, padding))
    if batch.pair is not None:
        reference = replace(reference, pair=replace(batch.pair, ids=torch.full_like(batch.pair.ids, padding)))
    if hasattr(model, "vectors"):
        x, b = ([model.vectors(rows).detach()] for rows in (batch, reference))
    else:
        x, b = (
            [model.embedding(rows.ids), *([] if rows.pair is None else [model.pair_embedding(rows.pair.ids)])]
            for rows in (batch, reference)
        )
    x = [vectors.requires_grad_() for vectors in x]
    logits = model.read(batch, *x).logits if hasattr(model, "vectors") else model(batch, *x).logits
    gradients = torch.autograd.grad(logits.softmax(-1)[0, chosen], x)
    rows = [(gradient * (own - base)).sum(-1)[0].detach() for gradient, own, base in zip(gradients, x, b, strict=True)]
    texts = [instances.ids[i]] + ([] if instances.pair is None else [instances.pair[i]])
    return [row[: len(ids)].numpy() for row, ids in zip(rows, texts, strict=True)]


MIXED = [
    ("bilstm-tanh", False, "predicted"),
    ("cnn-dot", False, "predicted"),
    ("distilbert", False, "gold"),
    ("bilstm-tanh", True, "predicted"),
    ("bilstm-shared", True, "predicted"),
]


@pytest.mark.parametrize(("name", "paired", "target"), MIXED)
@pytest.mark.parametrize("mixed", ["texts", "texts-and-labels"])
def test_published_deep_shap_equals_one_pair_after_the_other(name, paired, target, mixed):
    evaluator, instances = make_evaluator(name, paired), example_instances(9, paired=paired)
    # Some neighbours of about the same length, and some not.
    instances = replace(instances, instance=np.array([0, 8, 1, 3, 6, 2, 5, 7, 4], dtype=np.int32))
    partner = {0: 2, 2: 0, 5: 3, 3: 5, 8: 6, 6: 8, 4: 7, 7: 4, 1: 1}
    evaluator.model.double()
    found = deep_shap(evaluator, instances, rule="gradient", mixed=mixed, target=target, sign="signed")
    classes = evaluator.probabilities(instances).argmax(1) if target == "predicted" else instances.label
    assert found.target.tolist() == classes.tolist() and len({*classes.tolist()}) > 1
    for i, j in partner.items():
        label = j if mixed == "texts-and-labels" else i
        own = one_by_one(evaluator.model, instances, i, i, classes[i], i)
        other = one_by_one(evaluator.model, instances, i, j, classes[label], label)
        first, *second = [(a + b) / 2 for a, b in zip(own, other, strict=True)]
        free = instances.maskable[i]
        np.testing.assert_allclose(found.scores[i], first[free], rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(found.specials[i], first[~free], rtol=1e-5, atol=1e-8)
        if paired:
            np.testing.assert_allclose(found.pair[i], second[0], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("rule", ["gradient", "rescale"])
def test_mixing_depends_on_neither_order_nor_batch(rule):
    evaluator, instances = make_evaluator("bilstm-shared", True), example_instances(9, paired=True)
    options = {"rule": rule, "mixed": "texts-and-labels"}
    whole = deep_shap(evaluator, instances, **options)
    order = np.random.default_rng(0).permutation(9)
    small = deep_shap(make_evaluator("bilstm-shared", True, 20), instances.take(order), **options)
    for column in ("scores", "pair", "specials"):
        again = getattr(small, column)
        for i, scores in enumerate(getattr(whole, column)):
            np.testing.assert_allclose(again[order.tolist().index(i)], scores, atol=1e-6)
    plain = deep_shap(evaluator, instances, rule=rule)
    assert max(np.abs(a - b).max() for a, b in zip(whole.scores, plain.scores, strict=True)) > 1e-3
    np.testing.assert_array_equal(whole.scores[8], plain.scores[8])
