"""Measures for images against Captum, scikit-image, Pillow, slow loops, closed forms and planted regions.

Captum and scikit-image are imported where they are used, because machines that run the tests of GPUs may lack them.
"""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.ndimage import gaussian_filter
from scipy.stats import spearmanr
from sklearn.linear_model import Ridge
from sklearn.metrics import pairwise_distances

from plumbline.attribution.expected_gradient import expected_gradient
from plumbline.attribution.explained_output import ExplainedOutput
from plumbline.attribution.grad_cam import grad_cam, map_weights, resize_maps
from plumbline.attribution.gradient import gradient
from plumbline.attribution.inputs import baseline_vectors, input_vectors
from plumbline.attribution.lime import draw_features
from plumbline.attribution.patches import occlusion_patch, patch_numbers
from plumbline.attribution.path import grad_shap, integrated_gradient_pad
from plumbline.attribution.quickshift import quickshift
from plumbline.attribution.random import random
from plumbline.attribution.smooth_grad import smooth_grad, smooth_grads
from plumbline.attribution.superpixels import lime_superpixels, segment_means, segment_numbers
from plumbline.conformance import example_images, example_model, whole_batch
from plumbline.data.instances import Instances
from plumbline.data.pixels import pack
from plumbline.errors import PlumblineError
from plumbline.models.evaluator import Evaluator
from plumbline.models.images import LinearPixels, ResNet
from plumbline.registry import Registry

SIZE = 32
CHANNELS = {"attention": "attached", "function": "logit", "reduction": "l1"}
# Few samples where many would change nothing but time.
MEASURES = {
    "gradient-channels": (gradient, CHANNELS),
    "gradient-norm": (gradient, {**CHANNELS, "reduction": "l2"}),
    "input-x-gradient": (gradient, {**CHANNELS, "reduction": "dot"}),
    "gradient-attached": (gradient, {"attention": "attached"}),
    "smooth-grad": (smooth_grad, {"samples": 7}),
    "smooth-grad-abs": (smooth_grad, {"samples": 7, "mean": "magnitude"}),
    "grad-cam": (grad_cam, {}),
    "lime-superpixels": (lime_superpixels, {"samples": 25}),
    "expected-gradient": (expected_gradient, {"samples": 7}),
    "occlusion-patch": (occlusion_patch, {"patch": 56}),
    "integrated-gradient-pad": (integrated_gradient_pad, {"steps": 6}),
    "grad-shap": (grad_shap, {}),
    "random": (random, {}),
}


def make_image(size, seed, blur=2.0):
    """Clouds of colour."""
    clouds = gaussian_filter(np.random.default_rng(seed).normal(size=(size, size, 3)), (blur, blur, 0))
    return (255 * (clouds - clouds.min()) / (clouds.max() - clouds.min())).astype(np.uint8)


def make_images(count=4, size=SIZE, blur=2.0):
    ids = [pack(make_image(size, seed, blur)) for seed in range(count)]
    number = np.arange(count, dtype=np.int32)
    return Instances(np.repeat("test", count), number, number % 2, ids, [np.ones(size**2, dtype=bool)] * count)


def resnet(budget=10**6, double=True, seed=0):
    torch.manual_seed(seed)
    model = ResNet(None, 2, stem="3x3", width=8, blocks="1-1-1-1")
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.running_mean, -0.2, 0.2)
            torch.nn.init.uniform_(module.bias, -0.2, 0.2)
    return Evaluator((model.double() if double else model).requires_grad_(False), seed, budget)


def linear(size=SIZE, budget=10**6, region=None):
    """A linear model in double precision; with a region [size, size], all weights outside of it are 0."""
    torch.manual_seed(0)
    model = LinearPixels(None, 2, side=size).double().requires_grad_(False)
    if region is not None:
        model.linear.weight.view(2, size, size, 3)[:, ~region] = 0
    return Evaluator(model, 0, budget)


def weights_of(evaluator, found):
    """The weights [B, T, 3] of the class that was explained in each image."""
    weights = evaluator.model.linear.weight.numpy()
    return weights.reshape(2, -1, 3)[found.target]


def assert_same(found, expected, **tolerance):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


def test_what_the_declarations_state():
    registry = Registry()
    for name, (function, _) in MEASURES.items():
        declared = registry.get("measure", name)
        assert declared.pixels and declared.equation
        assert declared.attribute == function.__name__
    only = {name for name in MEASURES if "pixels" in registry.get("measure", name).needs}
    assert only == {
        "smooth-grad",
        "smooth-grad-abs",
        "grad-cam",
        "lime-superpixels",
        "expected-gradient",
        "occlusion-patch",
    }
    for name in ("gradient", "gradient-vocabulary", "leave-one-out", "attention"):
        assert not registry.get("measure", name).pixels


@pytest.mark.parametrize("name", MEASURES)
def test_scores_depend_neither_on_the_budget_nor_on_the_order(name):
    measure, options = MEASURES[name]
    instances = make_images()
    whole = measure(resnet(), instances, **options)
    assert [scores.shape for scores in whole.scores] == [(SIZE**2,)] * len(instances)
    assert all(np.isfinite(scores).all() and scores.std() > 0 and scores.min() >= 0 for scores in whole.scores)
    for budget in (SIZE**2, 3 * SIZE**2):
        assert_same(measure(resnet(budget), instances, **options).scores, whole.scores, rtol=1e-6, atol=1e-9)
    order = [2, 0, 3, 1]
    shuffled = measure(resnet(2 * SIZE**2), instances.take(order), **options)
    assert_same(shuffled.scores, [whole.scores[i] for i in order], rtol=1e-6, atol=1e-9)


def test_gradients_of_a_linear_model_are_its_weights():
    evaluator, instances = linear(budget=3 * SIZE**2), make_images()
    found = gradient(evaluator, instances, **CHANNELS)
    expected = np.abs(weights_of(evaluator, found)).sum(-1)
    for scores in (
        found.scores,
        smooth_grad(evaluator, instances).scores,
        smooth_grad(evaluator, instances, mean="magnitude").scores,
    ):
        assert_same(scores, expected, rtol=1e-6)


def test_expected_gradients_of_a_linear_model_are_in_closed_form():
    """Σ_k |w_k (x - b̄)_k| with b̄ the mean of the samples, and, with many samples, of all images."""
    evaluator, instances = linear(8), make_images(5, 8)
    x = input_vectors(evaluator.model, whole_batch(instances)).numpy()
    few = expected_gradient(evaluator, instances, samples=6)
    means = [x[instances.generator(i, 0).integers(5, size=6)].mean(0) for i in range(5)]
    assert_same(few.scores, np.abs(weights_of(evaluator, few) * (x - means)).sum(-1), rtol=1e-5, atol=1e-8)
    many, samples = expected_gradient(evaluator, instances, samples=4000), 4000
    weights = weights_of(evaluator, many)
    limit = np.abs(weights * (x - x.mean(0))).sum(-1)
    error = (np.abs(weights) * x.std(0)).sum(-1) / np.sqrt(samples)
    assert (np.abs(np.stack(many.scores) - limit) < 5 * error).all()


def test_expected_gradients_depend_on_the_images_that_are_explained():
    """The same images in any order, as the test above shows; others give other scores."""
    instances = make_images()
    all_four, three = (expected_gradient(resnet(), some, samples=9) for some in (instances, instances.take([0, 1, 2])))
    assert np.abs(all_four.scores[0] - three.scores[0]).max() > 1e-4


def test_integrated_gradients_of_images_are_complete():
    instances = make_images()
    for evaluator, close in ((linear(), 1e-6), (resnet(), 3e-3)):
        found = integrated_gradient_pad(evaluator, instances, sign="signed", function="logit", steps=200)
        batch = whole_batch(instances)
        black = evaluator.model(batch, baseline_vectors(evaluator.model, batch, "pad")).logits.numpy()
        change = (evaluator.model(batch).logits.numpy() - black)[np.arange(4), found.target]
        np.testing.assert_allclose([scores.sum() for scores in found.scores], change, atol=close)
        # The baseline is a black image.
        empty = pack(np.zeros((1, SIZE, SIZE, 3), np.uint8))
        np.testing.assert_array_equal(
            baseline_vectors(evaluator.model, batch, "pad")[:1], evaluator.model.embedding(torch.from_numpy(empty))
        )


def planted(size=SIZE):
    """Rows 8 to 15, columns 16 to 27: what patches of 4 pixels cover without a rest."""
    region = np.zeros((size, size), dtype=bool)
    region[8:16, 16:28] = True
    return region


@pytest.mark.parametrize("name", sorted(set(MEASURES) - {"grad-cam", "lime-superpixels", "random"}))
def test_a_planted_region_gets_everything(name):
    measure, options = MEASURES[name]
    region = planted()
    # A patch of 28 pixels in an image of 224 is one of 4 here.
    options = {**options, "patch": 28} if name == "occlusion-patch" else options
    for scores in measure(linear(region=region), make_images(), **options).scores:
        assert scores[region.ravel()].sum() > 0
        assert (scores[~region.ravel()] == 0).all()


def test_superpixels_that_touch_a_planted_region_get_everything():
    region, instances = planted(64), make_images(3, 64)
    found = lime_superpixels(linear(64, region=region), instances, function="logit", samples=400)
    for scores, numbers in zip(found.scores, segment_numbers(whole_batch(instances), 4.0).numpy(), strict=True):
        touching = np.isin(numbers, np.unique(numbers[region.ravel()]))
        assert 0 < touching.mean() < 0.5
        assert scores[touching].sum() / scores.sum() > 0.9


def test_smooth_gradients_agree_with_captum(monkeypatch):
    from captum.attr import NoiseTunnel, Saliency

    evaluator, instances = resnet(budget=4 * SIZE**2), make_images(2)
    for mean, absolute in (("gradient", False), ("magnitude", True)):
        found = smooth_grad(evaluator, instances, samples=6, mean=mean)
        for i in range(len(instances)):
            batch = whole_batch(instances.take([i]))
            x = input_vectors(evaluator.model, batch)
            noise = instances.generator(i, 0).standard_normal((6, SIZE**2, 3), dtype=np.float32)
            monkeypatch.setattr(torch, "normal", lambda _, width, noise=noise: width * torch.from_numpy(noise))
            expected = NoiseTunnel(
                Saliency(lambda rows, b=batch: evaluator.model(b.repeat(len(rows)), rows).logits)
            ).attribute(
                x,
                nt_type="smoothgrad",
                nt_samples=6,
                stdevs=0.15 * float(x.max() - x.min()),
                target=int(found.target[i]),
                abs=absolute,
            )
            np.testing.assert_allclose(found.scores[i], expected[0].abs().sum(-1), rtol=1e-5)


def test_expected_gradients_agree_with_captum(monkeypatch):
    from captum.attr import GradientShap

    evaluator, instances = resnet(budget=4 * SIZE**2), make_images(3)
    found = expected_gradient(evaluator, instances, samples=8)
    background = input_vectors(evaluator.model, whole_batch(instances))
    for i in range(len(instances)):
        batch, generator = whole_batch(instances.take([i])), instances.generator(i, 0)
        chosen, points = generator.integers(3, size=8), generator.random(8)
        monkeypatch.setattr(np.random, "choice", lambda count, size, chosen=chosen: chosen)
        monkeypatch.setattr(np.random, "uniform", lambda low, high, size, points=points: points)
        expected = GradientShap(lambda rows, b=batch: evaluator.model(b.repeat(len(rows)), rows).logits).attribute(
            background[[i]], background, n_samples=8, stdevs=0.0, target=int(found.target[i])
        )
        np.testing.assert_allclose(found.scores[i], expected[0].abs().sum(-1), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("function", ["logit", "probability"])
def test_grad_cam_agrees_with_captum(function):
    from captum.attr import LayerGradCam

    evaluator, instances = resnet(), make_images(3, 64)
    batch = whole_batch(instances)
    found = grad_cam(evaluator, instances, function=function)

    def output(vectors):
        logits = evaluator.model(batch, vectors).logits
        return logits.softmax(-1) if function == "probability" else logits

    target = torch.from_numpy(found.target).long()
    x = input_vectors(evaluator.model, batch).requires_grad_()
    maps = LayerGradCam(output, evaluator.model.blocks).attribute(x, target, relu_attributions=True)[:, 0].detach()
    assert maps.shape == (3, 4, 4) and maps.max() > 0
    assert_same(found.scores, resize_maps(maps, 64).clamp(min=0).flatten(1).numpy(), rtol=1e-5, atol=1e-9)


def test_the_weights_of_maps_are_the_readout_over_their_positions():
    """And the gradient with respect to a map, which is the same at all its positions."""
    evaluator, instances = resnet(), make_images(3, 64)
    batch, classes = whole_batch(instances), torch.tensor([0, 1, 1])
    maps = evaluator.model.maps(batch).requires_grad_()
    logits = evaluator.model.linear(maps.mean((2, 3)))
    gradients = torch.autograd.grad(logits.gather(1, classes[:, None]).sum(), maps)[0]
    found = map_weights(evaluator.model.readout_weights, logits, ExplainedOutput(classes, "logit"), 16)
    torch.testing.assert_close(found, gradients.mean((2, 3)))
    torch.testing.assert_close(found, evaluator.model.linear.weight[classes] / 16)


@pytest.mark.parametrize(("small", "large"), [(7, 224), (4, 64), (2, 32), (1, 16)])
def test_maps_are_resized_as_pillow_resizes_them(small, large):
    seen = np.random.default_rng(0).normal(size=(2, small, small)).clip(0).astype(np.float32)
    found = resize_maps(torch.from_numpy(seen), large).numpy()
    expected = [np.asarray(Image.fromarray(one).resize((large, large), Image.Resampling.BICUBIC)) for one in seen]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_grad_cam_without_positive_evidence_is_zero():
    evaluator = resnet()
    evaluator.model.linear.weight[0] = -1
    for scores in grad_cam(evaluator, make_images(), target=0).scores:
        assert (scores == 0).all()


@pytest.mark.parametrize(
    ("size", "kernel_size", "ratio"),
    [(31, 4, 0.2), (64, 2, 0.2), (64, 64 / 56, 0.2 * 64 / 224), (20, 1, 1.0), (90, 4, 0.2)],
)
def test_superpixels_are_scikit_images(size, kernel_size, ratio):
    """Number by number, for clouds, for noise, for what has a part of one colour and for one colour alone."""
    from skimage.segmentation import quickshift as expected_of

    images = np.stack([make_image(size, seed, blur) for seed, blur in enumerate((0.0, 1.0, 3.0, 2.0))])
    images[2, : size // 2, : size // 2] = images[2, 0, 0]
    images[3] = images[3, 0, 0]
    found = quickshift(images, kernel_size, ratio).numpy()
    expected = [expected_of(one, kernel_size=kernel_size, max_dist=200, ratio=ratio) for one in images]
    assert found.max() > 0
    np.testing.assert_array_equal(found, expected)


def test_smaller_images_have_as_many_superpixels():
    """An image of 224 x 224 and its copy of 128 x 128 have nearly the same number."""
    large = make_image(224, 1, 8)
    counts = []
    for size in (64, 128, 224):
        image = np.asarray(Image.fromarray(large).resize((size, size)))
        one = Instances(np.array(["test"]), np.arange(1), np.zeros(1, int), [pack(image)], [np.ones(size**2, bool)])
        counts.append(int(segment_numbers(whole_batch(one), 4.0).max()) + 1)
    assert min(counts) > 0.6 * max(counts)
    assert counts[-1] > 15


@pytest.mark.parametrize("hidden", ["black", "mean"])
def test_lime_of_superpixels_agrees_with_a_slow_loop(hidden):
    """A sample at a time; scikit-learn's distances and ridge."""
    evaluator, instances = resnet(budget=3 * 64**2), make_images(2, 64)
    found = lime_superpixels(evaluator, instances, hidden=hidden, samples=40, sign="signed")
    for i in range(len(instances)):
        batch = whole_batch(instances.take([i]))
        numbers = segment_numbers(batch, 4.0)[0].numpy()
        x = input_vectors(evaluator.model, batch)[0].numpy()
        cover = baseline_vectors(evaluator.model, batch, "pad")[0].numpy().copy()
        count = numbers.max() + 1
        if hidden == "mean":
            for segment in range(count):
                cover[numbers == segment] = x[numbers == segment].mean(0)
        z = draw_features([instances.generator(i, 0)], [count], 40)[:, 0].astype(float)
        z[0] = 1
        rows = [torch.from_numpy(np.where(one[numbers][:, None] == 1, x, cover))[None] for one in z]
        y = [float(evaluator.model(batch, row).logits.softmax(-1)[0, found.target[i]]) for row in rows]
        distances = pairwise_distances(z, z[:1], metric="cosine").ravel()
        weights = np.sqrt(np.exp(-(distances**2) / 0.25**2))
        expected = Ridge(alpha=1).fit(z, y, sample_weight=weights).coef_[numbers]
        np.testing.assert_allclose(found.scores[i], expected, atol=1e-8, rtol=1e-5)


def test_lime_recovers_the_weights_of_superpixels_in_a_linear_model():
    evaluator, instances = linear(64), make_images(3, 64)
    found = lime_superpixels(evaluator, instances, function="logit", sign="signed")
    batch = whole_batch(instances)
    parts = input_vectors(evaluator.model, batch) - baseline_vectors(evaluator.model, batch, "pad")
    parts = (parts.numpy() * weights_of(evaluator, found)).sum(-1)
    for scores, part, numbers in zip(found.scores, parts, segment_numbers(batch, 4.0).numpy(), strict=True):
        truth = np.bincount(numbers, part)
        firsts = np.unique(numbers, return_index=True)[1]
        assert len(truth) > 10
        assert spearmanr(scores[firsts], truth).statistic > 0.95


def test_segment_means():
    vectors = torch.tensor([[[1.0], [3.0], [10.0], [20.0]], [[1.0], [2.0], [3.0], [4.0]]])
    found = segment_means(vectors, torch.tensor([[0, 0, 1, 1], [0, 0, 0, 0]]))
    assert found[..., 0].tolist() == [[2, 2, 15, 15], [2.5, 2.5, 2.5, 2.5]]


def test_patches():
    assert patch_numbers(4, 2).view(4, 4).tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]
    assert patch_numbers(3, 2).view(3, 3).tolist() == [[0, 0, 1], [0, 0, 1], [2, 2, 3]]


@pytest.mark.parametrize("baseline", ["pad", "zero"])
def test_occlusion_of_patches_of_a_linear_model_is_their_part_of_the_output(baseline):
    evaluator, instances = linear(24, budget=5 * 24**2), make_images(3, 24)
    found = occlusion_patch(evaluator, instances, patch=75, sign="signed", baseline=baseline)
    batch = whole_batch(instances)
    parts = input_vectors(evaluator.model, batch) - baseline_vectors(evaluator.model, batch, baseline)
    parts = (parts.numpy() * weights_of(evaluator, found)).sum(-1).reshape(3, 3, 8, 3, 8).sum((2, 4))
    assert_same(found.scores, parts.repeat(8, 1).repeat(8, 2).reshape(3, -1), atol=1e-6)
    absolute = occlusion_patch(evaluator, instances, patch=75, baseline=baseline)
    assert_same(absolute.scores, np.abs(found.scores), rtol=1e-6)


@pytest.mark.parametrize(
    "name", ["smooth-grad", "grad-cam", "lime-superpixels", "expected-gradient", "occlusion-patch"]
)
def test_the_explained_class_is_the_target(name):
    measure, options = MEASURES[name]
    evaluator, instances = resnet(), make_images()
    by_class = [measure(evaluator, instances, target=c, **options) for c in (0, 1)]
    gold = measure(evaluator, instances, target="gold", **options)
    predicted = measure(evaluator, instances, **options)
    assert gold.target.tolist() == instances.label.tolist()
    assert predicted.target.tolist() == evaluator.probabilities(instances).argmax(1).tolist()
    for i, (a, b) in enumerate(zip(gold.target, predicted.target, strict=True)):
        np.testing.assert_allclose(gold.scores[i], by_class[a].scores[i], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(predicted.scores[i], by_class[b].scores[i], rtol=1e-6, atol=1e-9)


def test_impossible_options_are_refused():
    evaluator, instances = linear(), make_images()
    for measure, options in (
        (smooth_grad, {"samples": 0}),
        (expected_gradient, {"samples": 0}),
        (lime_superpixels, {"samples": 0}),
        (lime_superpixels, {"kernel_size": 0.0}),
        (occlusion_patch, {"patch": 0}),
    ):
        with pytest.raises(PlumblineError, match=next(iter(options))):
            measure(evaluator, instances, **options)
    sizes = Instances(
        np.repeat("test", 2),
        np.arange(2),
        np.zeros(2, int),
        [np.zeros(n, np.int32) for n in (4, 9)],
        [np.ones(n, bool) for n in (4, 9)],
    )
    with pytest.raises(PlumblineError, match="must have the same size"):
        expected_gradient(evaluator, sizes)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", MEASURES)
def test_scores_are_the_same_on_both_devices(name):
    measure, options = MEASURES[name]
    instances = make_images(4, 64)
    host, device = (
        measure(Evaluator(resnet().model, 0, 10**5, where), instances, **options) for where in ("cpu", "cuda")
    )
    assert_same(device.scores, host.scores, rtol=1e-5, atol=1e-8)


def test_both_means_of_smooth_grad_share_passes_and_equal_separate_runs():
    evaluator, instances = (
        Evaluator(example_model(Registry().get("model", "resnet-small")), 3, 2000),
        example_images(6),
    )
    usual = {"target": "predicted", "function": "logit", "noise": 0.2, "samples": 5}
    means = ("magnitude", "gradient", "magnitude")
    calls = []
    evaluator.model.register_forward_hook(lambda *_: calls.append(1))
    together = smooth_grads(evaluator, instances, [{**usual, "mean": mean} for mean in means])
    shared = len(calls)
    for mean, found in zip(means, together, strict=True):
        alone = smooth_grad(evaluator, instances, **{**usual, "mean": mean})
        for a, b in zip(found.scores, alone.scores, strict=True):
            np.testing.assert_array_equal(a, b)
    assert len(calls) == 4 * shared, "as many passes together as each takes alone"
