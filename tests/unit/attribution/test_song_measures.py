"""LIME, integrated gradients, Grad-SHAP and occlusion against Captum, slow loops, closed forms and planted words."""

import numpy as np
import pytest
import torch
from captum._utils.models.linear_model import SkLearnRidge
from captum.attr import GradientShap, IntegratedGradients, Lime
from captum.attr._core.lime import get_exp_kernel_similarity_function
from scipy.stats import kendalltau

from plumbline.attribution.attribution_batch import AttributionBatch, copies_per_pass
from plumbline.attribution.explained_output import ExplainedOutput
from plumbline.attribution.inputs import baseline_vectors, feature_mask, forward_vectors, input_vectors
from plumbline.attribution.lime import lime
from plumbline.attribution.occlusion import occlusion
from plumbline.attribution.path import grad_shap, integrate_path, integrated_gradient_pad
from plumbline.config.recipes import Training
from plumbline.conformance import example_instances, example_model, whole_batch
from plumbline.data.instances import Instances
from plumbline.data.vocabulary import EOS, SOS
from plumbline.errors import PlumblineError
from plumbline.models.block import build_model
from plumbline.models.evaluator import Evaluator
from plumbline.registry import PAIRED, Registry
from plumbline.training.trainer import BlockSpec, train_block

REGISTRY = Registry()
INSTANCES, PAIRS = example_instances(14), example_instances(paired=True)
# Of few and of many words; the pairs have two answers to choose from.
SOME = [0, 5, 11]
MODELS = [model for model in REGISTRY.all("model") if "gradient" in model.provides]
EVERY = [(model.name, False) for model in MODELS if "classification" in model.tasks]
EVERY += [(model.name, True) for model in MODELS if set(PAIRED) & set(model.tasks)]
# Single texts; pairs with word vectors of their own, with the same, and in one sequence.
CASES = [
    ("bilstm-tanh", False),
    ("cnn-dot", False),
    ("roberta", False),
    ("bilstm-tanh", True),
    ("bilstm-shared", True),
    ("roberta", True),
]
MEASURES = {
    "integrated-gradient-pad": (integrated_gradient_pad, {"steps": 7}),
    "grad-shap": (grad_shap, {}),
    "lime": (lime, {"samples": 21}),
    "lime-published": (lime, {"samples": 21, "pair_features": "shared"}),
    "occlusion": (occlusion, {}),
}


def make_evaluator(name, paired=False, budget=10_000, seed=0):
    """An evaluator in double precision, so that comparisons are sharp, whose vector of padding is not zero."""
    model = example_model(REGISTRY.get("model", name), seed, paired).double().requires_grad_(False)
    torch.manual_seed(seed + 1)
    for table in (model.embedding, getattr(model, "pair_embedding", model.embedding)):
        table.weight[table.padding_idx or 0] = torch.randn(table.embedding_dim)
    return Evaluator(model, seed, budget)


def some_of(paired):
    return (PAIRS if paired else INSTANCES).take(SOME)


def alone(evaluator, instances, i, baseline="pad"):
    """One text: its vectors, its baseline and the probabilities [N, C] of rows of vectors that replace its own."""
    batch = whole_batch(instances.take([i]))
    vectors = input_vectors(evaluator.model, batch)

    def probabilities(rows):
        return forward_vectors(evaluator.model, batch.repeat(len(rows)), rows).logits.softmax(-1)

    reference = baseline_vectors(evaluator.model, batch, baseline)
    if getattr(evaluator.model, "prompted", False):
        reference = torch.where(feature_mask(batch, specials=False)[..., None], reference, vectors)
    return vectors, reference, probabilities


def of_all_tokens(found, instances, i):
    """The scores of a text's tokens in their order, then those of its second text, whose tokens are all words."""
    own = np.zeros(len(instances.ids[i]))
    own[instances.maskable[i]] = found.scores[i]
    if found.specials is not None:
        own[~instances.maskable[i]] = found.specials[i]
    return own if found.pair is None else np.concatenate([own, found.pair[i]])


def columns(found):
    return [column for column in (found.scores, found.pair, found.specials) if column is not None]


def assert_same(found, expected, **tolerance):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


@pytest.mark.parametrize(("name", "paired"), EVERY)
def test_integrated_gradients_sum_to_the_change_of_the_output(name, paired):
    """Σ_t of the integral is f(x) - f(b)."""
    evaluator, instances = make_evaluator(name, paired), some_of(paired)
    found = integrated_gradient_pad(evaluator, instances, sign="signed")
    for i in range(len(instances)):
        vectors, reference, probabilities = alone(evaluator, instances, i)
        change = probabilities(vectors)[0, found.target[i]] - probabilities(reference)[0, found.target[i]]
        assert of_all_tokens(found, instances, i).sum() == pytest.approx(float(change), abs=1e-2)


@pytest.mark.parametrize(("name", "paired"), CASES)
@pytest.mark.parametrize("baseline", ["pad", "zero"])
def test_integrated_gradients_agree_with_captum(name, paired, baseline):
    evaluator, instances = make_evaluator(name, paired, budget=200), some_of(paired)
    found = integrated_gradient_pad(evaluator, instances, baseline=baseline, target="gold", sign="signed", tolerance=0)
    assert found.target.tolist() == instances.label.tolist()
    for i in range(len(instances)):
        vectors, reference, probabilities = alone(evaluator, instances, i, baseline)
        expected = IntegratedGradients(probabilities).attribute(
            vectors, reference, int(instances.label[i]), n_steps=50, method="gausslegendre"
        )
        np.testing.assert_allclose(of_all_tokens(found, instances, i), expected.sum(-1)[0], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(("name", "paired"), CASES)
def test_grad_shap_agrees_with_captum(name, paired, monkeypatch):
    evaluator, instances = make_evaluator(name, paired, budget=200), some_of(paired)
    found = grad_shap(evaluator, instances, sign="signed")
    absolute = grad_shap(evaluator, instances)
    for i in range(len(instances)):
        vectors, reference, probabilities = alone(evaluator, instances, i)
        points = instances.generator(i, evaluator.seed).random(5)
        monkeypatch.setattr(np.random, "uniform", lambda low, high, size, points=points: points[:size])
        expected = GradientShap(probabilities).attribute(
            vectors, reference, n_samples=5, stdevs=0.0, target=int(found.target[i])
        )
        np.testing.assert_allclose(of_all_tokens(found, instances, i), expected.sum(-1)[0], atol=1e-6, rtol=1e-5)
        np.testing.assert_allclose(of_all_tokens(absolute, instances, i), np.abs(of_all_tokens(found, instances, i)))


def test_grad_shap_of_many_samples_tends_to_integrated_gradients():
    evaluator, some = make_evaluator("average-tanh"), INSTANCES.take([3, 8])
    exact = integrated_gradient_pad(evaluator, some, sign="signed").scores
    off = {
        samples: max(np.abs(a - b).max() for a, b in zip(shap, exact, strict=True))
        for samples in (5, 5000)
        for shap in [grad_shap(evaluator, some, samples=samples, sign="signed").scores]
    }
    assert off[5000] < min(2e-3, off[5] / 5)


@pytest.mark.parametrize("copies", [1, 3, 10])
def test_points_may_differ_from_row_to_row_and_share_passes(copies):
    batch = whole_batch(INSTANCES)
    evaluator = make_evaluator("bilstm-tanh", budget=copies * batch.ids.numel())
    assert copies_per_pass(evaluator, batch) == copies
    vectors, reference = input_vectors(evaluator.model, batch), baseline_vectors(evaluator.model, batch, "pad")
    output = ExplainedOutput(torch.from_numpy(INSTANCES.label).long(), "logit")
    inputs = AttributionBatch(np.arange(len(INSTANCES)), batch, feature_mask(batch), vectors, reference, output)
    points, weights = np.random.default_rng(0).random((4, len(INSTANCES))), [0.1, 0.2, 0.3, 0.4]
    found = integrate_path(evaluator, inputs, points, weights)
    for i in range(len(INSTANCES)):
        expected = integrate_path(evaluator, inputs.take(torch.tensor([i])), points[:, i], weights)
        torch.testing.assert_close(found[i], expected[0], rtol=1e-9, atol=1e-12)


def captum_lime(evaluator, instances, i, target, samples, shared=False, baseline="pad"):
    """Captum's coefficients of all tokens of one text, from the masks that ours are drawn from."""
    vectors, reference, probabilities = alone(evaluator, instances, i, baseline)
    first = len(instances.ids[i])
    numbers = torch.arange(vectors.shape[1])
    numbers = torch.where(numbers < first, numbers, numbers - first) if shared else numbers
    count = int(numbers.max()) + 1
    masks = instances.generator(i, evaluator.seed).random((samples, count), dtype=np.float32) < 0.5

    def perturbed(*_, **__):
        yield from torch.from_numpy(masks).long()[:, None]

    explainer = Lime(
        probabilities,
        interpretable_model=SkLearnRidge(alpha=1),
        similarity_func=get_exp_kernel_similarity_function("cosine", kernel_width=1),
        perturb_func=perturbed,
    )
    return explainer.attribute(
        vectors,
        reference,
        target=int(target),
        feature_mask=numbers[None, :, None].expand_as(vectors),
        n_samples=samples,
        perturbations_per_eval=50,
    )[0, :, 0].numpy()


@pytest.mark.parametrize(("name", "paired"), CASES)
@pytest.mark.parametrize(("pair_features", "baseline"), [("distinct", "pad"), ("distinct", "zero"), ("shared", "pad")])
def test_lime_agrees_with_captum(name, paired, pair_features, baseline):
    evaluator, instances = make_evaluator(name, paired, budget=1000), some_of(paired)
    options = {"samples": 100, "pair_features": pair_features, "baseline": baseline}
    found = lime(evaluator, instances, sign="signed", **options)
    absolute = lime(evaluator, instances, **options)
    for i in range(len(instances)):
        expected = captum_lime(evaluator, instances, i, found.target[i], 100, pair_features == "shared", baseline)
        assert np.abs(expected).max() > 1e-3
        np.testing.assert_allclose(of_all_tokens(found, instances, i), expected, atol=1e-5, rtol=1e-4)
        np.testing.assert_allclose(of_all_tokens(absolute, instances, i), np.abs(of_all_tokens(found, instances, i)))


def test_lime_recovers_a_linear_model():
    """z = w · mean(e) + b, logits ±z/2: a word that is left out changes the logit by w · (e_t - e_pad) / 2n."""
    evaluator, long = make_evaluator("bag-of-words"), INSTANCES.take(range(6, 12))
    w, vectors = evaluator.model.head.linear.weight[0].numpy(), evaluator.model.embedding.weight.numpy()
    found = lime(evaluator, long, function="logit", target=1, sign="signed")
    for i, (ids, free) in enumerate(zip(long.ids, long.maskable, strict=True)):
        expected = (vectors[ids[free]] - vectors[0]) @ w / (2 * free.sum())
        assert kendalltau(np.abs(found.scores[i]), np.abs(expected)).statistic >= 0.95
        # The ridge takes the share 1 / (1 + Σ w_i / 4) or so, about a hundredth.
        np.testing.assert_allclose(found.scores[i], expected, rtol=0.05, atol=0.01 * np.abs(expected).max())
        np.testing.assert_allclose(found.specials[i], 0, atol=0.01 * np.abs(expected).max())


def test_tokens_that_share_a_feature_get_the_same_score():
    evaluator = make_evaluator("bilstm-tanh", paired=True)
    shared = lime(evaluator, PAIRS, samples=50, function="logit", pair_features="shared")
    distinct = lime(evaluator, PAIRS, samples=50, function="logit")
    differ = 0
    for i, (ids, seconds) in enumerate(zip(PAIRS.ids, PAIRS.pair, strict=True)):
        both = min(len(ids), len(seconds))
        assert_same([of_all_tokens(shared, PAIRS, i)[:both]], [shared.pair[i][:both]])
        differ += not np.allclose(of_all_tokens(distinct, PAIRS, i)[:both], distinct.pair[i][:both])
    assert differ == len(PAIRS)
    declared = REGISTRY.get("measure", "lime-published").options
    assert declared["pair_features"].default == "shared" and declared["samples"].default == 1000


@pytest.mark.parametrize(("name", "paired"), CASES)
@pytest.mark.parametrize("sign", ["absolute", "signed"])
def test_occlusion_equals_one_pass_per_token(name, paired, sign):
    evaluator, instances = make_evaluator(name, paired, budget=100), some_of(paired)
    found = occlusion(evaluator, instances, sign=sign)
    for i in range(len(instances)):
        vectors, reference, probabilities = alone(evaluator, instances, i)
        expected = []
        for t in range(vectors.shape[1]):
            without = vectors.clone()
            without[:, t] = reference[:, t]
            drop = float((probabilities(vectors) - probabilities(without))[0, found.target[i]])
            expected.append(abs(drop) if sign == "absolute" else drop)
        np.testing.assert_allclose(of_all_tokens(found, instances, i), expected, atol=1e-6)


def test_words_that_differ_by_rounding_alone_are_not_ranked(monkeypatch):
    """In a bag of words the same word has the same score at every position, up to rounding of the sum."""
    evaluator = Evaluator(example_model(REGISTRY.get("model", "bag-of-words")), 0, 300)
    words = np.random.default_rng(0).integers(8, 13, 60)
    free = np.array([False, *[True] * 60, False])
    ids = np.array([SOS, *words, EOS], dtype=np.int32)
    twins = Instances(np.array(["test"]), np.array([0]), np.array([0], dtype=np.int32), [ids], [free])
    scores = occlusion(evaluator, twins, function="logit").scores[0]
    assert len(set(scores)) == len(set(words)) == len(set(zip(words, scores, strict=True))) == 5
    monkeypatch.setattr("plumbline.attribution.occlusion.merge_rounding_ties", lambda scores, resolution: scores)
    assert len(set(occlusion(evaluator, twins, function="logit").scores[0])) > 5


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("name", "paired"), CASES)
def test_scores_do_not_depend_on_batch_padding_or_order(measure, name, paired):
    """Those of second texts and special tokens too."""
    function, options = MEASURES[measure]
    instances = (PAIRS if paired else INSTANCES).take(range(4, 12))
    order = np.random.default_rng(3).permutation(len(instances))
    whole = function(make_evaluator(name, paired), instances, **options)
    shuffled = function(make_evaluator(name, paired, budget=90), instances.take(order), **options)
    for a, b in zip(columns(whole), columns(shuffled), strict=True):
        assert_same([a[i] for i in order], b, atol=1e-6)
    assert shuffled.target.tolist() == whole.target[order].tolist()


@pytest.mark.parametrize("measure", ["grad-shap", "lime"])
def test_draws_follow_the_seed(measure):
    function, options = MEASURES[measure]
    models = [make_evaluator("average-tanh") for _ in range(2)]
    models[1].seed = 1
    first, second = (function(evaluator, INSTANCES, **options).scores for evaluator in models)
    assert all(not np.allclose(a, b, rtol=1e-3) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("name", ["bilstm-tanh", "roberta"])
def test_second_texts_may_be_excluded(measure, name):
    """With the first text alone and without special tokens nothing else is scored or replaced."""
    function, options = MEASURES[measure]
    evaluator, seen = make_evaluator(name, paired=True), []
    batches = {tuple(batch.ids[0].tolist()): batch for batch in (whole_batch(PAIRS.take([i])) for i in (3, 7))}

    def watched(batch, *vectors):
        seen.append((batch, torch.cat(vectors, dim=1)))
        return inner(batch, *vectors)

    if hasattr(evaluator.model, "vectors"):
        inner, evaluator.model.read = evaluator.model.read, watched
    else:
        inner, evaluator.model.forward = evaluator.model.forward, watched
    for i in (3, 7):
        found = function(evaluator, PAIRS.take([i]), texts="first", specials=False, **options)
        assert found.pair is None and found.specials is None and np.isfinite(found.scores[0]).all()
        assert (found.scores[0] > 0).any()
    assert seen
    for batch, vectors in seen:
        own = batches[tuple(batch.ids[0].tolist())]
        stays = ~feature_mask(own, "first", specials=False)[0]
        expected = input_vectors(evaluator.model, own)[0]
        assert (vectors[:, stays] == expected[stays]).all()
    moved = {bool((vectors[:, 1] != input_vectors(evaluator.model, batch)[:, 1]).any()) for batch, vectors in seen}
    assert moved == {True, False}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("target", [4, "gold"])
@pytest.mark.parametrize("function", ["logit", "probability"])
def test_classes_that_cannot_be_the_answer_have_no_scores(measure, target, function):
    compute, options = MEASURES[measure]
    some = PAIRS.take([1, 2, 4, 5])
    found = compute(make_evaluator("bilstm-tanh", paired=True), some, target=target, function=function, **options)
    for i, (answers, explained) in enumerate(zip(some.answers, found.target, strict=True)):
        scores = of_all_tokens(found, some, i)
        moves = explained in answers and (function == "logit" or len(set(answers)) > 1)
        assert np.isfinite(scores).all() and (scores > 1e-9).any() == moves


@pytest.mark.parametrize("measure", MEASURES)
def test_measures_continue_when_memory_runs_out(measure):
    """With passes of half the size; what was counted is not counted twice."""
    function, options = MEASURES[measure]
    expected = function(make_evaluator("average-tanh"), INSTANCES, **options).scores
    evaluator = make_evaluator("average-tanh", budget=200)
    forward, passes = evaluator.model.forward, []

    def short_of_memory(batch, *vectors):
        passes.append(batch.ids.numel())
        if len(passes) == 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(batch, *vectors)

    evaluator.model.forward = short_of_memory
    with pytest.warns(UserWarning, match="token budget halved to 100"):
        assert_same(function(evaluator, INSTANCES, **options).scores, expected, rtol=1e-5, atol=1e-7)
    assert max(passes[3:]) <= 100 and max(passes[:3]) > 100


@pytest.mark.parametrize(("function", "option"), [(integrated_gradient_pad, "steps"), (grad_shap, "samples")])
@pytest.mark.parametrize("value", [0, -1])
def test_points_must_be_positive(function, option, value):
    with pytest.raises(PlumblineError, match=f"`{option}` is {value}; it must be 1 or more"):
        function(make_evaluator("bag-of-words"), INSTANCES, **{option: value})


def test_samples_must_be_positive():
    with pytest.raises(PlumblineError, match="`samples` is 0; it must be 1 or more"):
        lime(make_evaluator("bag-of-words"), INSTANCES, samples=0)


FILLER, WORDS = 8, 14


def planted(split, count, seed, without=0):
    """Random filler with one word that alone decides the label: the last of the vocabulary or the one before.

    The first texts are `without` it, and may have either label.
    """
    random = np.random.default_rng(seed)
    ids, positions, label = [], random.integers(1, 5, count), np.arange(count, dtype=np.int32) % 2
    for i, (position, number) in enumerate(zip(positions, label, strict=True)):
        words = random.integers(FILLER, WORDS - 2, random.integers(4, 9))
        if i >= without:
            words[position - 1] = WORDS - 1 - number
        ids.append(np.concatenate([[SOS], words, [EOS]]).astype(np.int32))
    free = [np.array([False, *[True] * (len(row) - 2), False]) for row in ids]
    return Instances(np.array([split] * count), np.arange(count), label, ids, free), positions - 1


@pytest.fixture(scope="module")
def trained():
    """A BiLSTM that has learned the planted words."""
    splits = {split: planted(split, 200, seed, without=60)[0] for seed, split in enumerate(("train", "dev", "test"))}
    vectors = torch.randn(WORDS, 10, generator=torch.Generator().manual_seed(0)) * (torch.arange(WORDS) > 0)[:, None]
    declaration = REGISTRY.get("model", "bilstm-tanh")
    options = {name: option.default for name, option in declaration.options.items()} | {"hidden": 16}
    training = Training(epochs=10, learning_rate=0.01, first_eligible_epoch=1, select_by="accuracy")
    weights, _, _ = train_block(
        BlockSpec(declaration.pointer, options, {"embedding": vectors}, splits, 2, training), [0], 4096
    )
    state = {name.removeprefix("0/"): tensor for name, tensor in weights.items()}
    model = build_model(declaration.pointer, options, state["embedding.weight"], 2)
    model.load_state_dict(state)
    return Evaluator(model.requires_grad_(False), 0, 4096)


@pytest.mark.parametrize("measure", MEASURES)
def test_the_word_that_decides_the_label_is_found(measure, trained):
    function, options = MEASURES[measure]
    texts, positions = planted("test", 60, 7)
    assert (trained.probabilities(texts).argmax(1) == texts.label).all()
    found = function(trained, texts, **{**options, **({"samples": 500} if "lime" in measure else {})})
    assert np.mean([scores.argmax() == position for scores, position in zip(found.scores, positions, strict=True)]) == 1
    signed = function(trained, texts, sign="signed", **options)
    assert all(scores[position] > 0 for scores, position in zip(signed.scores, positions, strict=True))
