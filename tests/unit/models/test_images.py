"""Image models: the networks against slow obvious code, their training, and their memory."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import conv2d

from plumbline.attribution.inputs import baseline_vectors, forward_vectors, input_vectors
from plumbline.config.recipes import Preparation, Training
from plumbline.conformance import SIDE, example_images, example_model, whole_batch
from plumbline.data.datasets.textures import textures
from plumbline.data.images import prepare_images
from plumbline.data.instances import Instances
from plumbline.data.pixels import pack, unpack
from plumbline.data.schemas import INSTANCES
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch, collate
from plumbline.models.block import build_model, trained_models
from plumbline.models.budget import ROWS, Budget, bytes_per_token
from plumbline.models.evaluator import Evaluator
from plumbline.models.images import LinearPixels, ResNet
from plumbline.registry import Registry
from plumbline.store import read_table, write_table, write_tensors
from plumbline.training.trainer import BlockSpec, train_block

REGISTRY = Registry()
MODELS = [declaration for declaration in REGISTRY.all("model") if declaration.reads == "pixels"]
IMAGES = example_images()
SMALL = {"stem": "3x3", "width": 4, "blocks": "1-1-1-1"}


def batch_of(images: np.ndarray) -> Batch:
    return collate(list(pack(images)), None)


def weights_of(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def test_there_are_some() -> None:
    assert {declaration.name for declaration in MODELS} == {"linear-pixels", "resnet-small", "resnet34"}


def test_resnet34_is_that_of_he_et_al() -> None:
    """The published model has 21,797,672 parameters, and 36 convolutions of which 3 are shortcuts."""
    model = ResNet(None, 1000)
    assert weights_of(model) == 21_797_672
    convolutions = [part for part in model.modules() if isinstance(part, nn.Conv2d)]
    assert len(convolutions) == 36 and sum(part.kernel_size == (1, 1) for part in convolutions) == 3
    assert convolutions[0].kernel_size == (7, 7) and not any(part.bias is not None for part in convolutions)
    assert weights_of(ResNet(None, 1000, blocks="2-2-2-2")) == 11_689_512  # ResNet-18
    with torch.no_grad():
        maps = model.eval().maps(batch_of(np.zeros((1, 224, 224, 3), dtype=np.uint8)))
    assert maps.shape == (1, 512, 7, 7) and model.readout_weights.shape == (1000, 512)


def test_colours_are_normalised_as_imagenets() -> None:
    image = np.array([[[0, 0, 0], [255, 255, 255]], [[124, 116, 104], [255, 0, 51]]], dtype=np.uint8)
    found = ResNet(None, 2).embedding(batch_of(image[None]).ids)[0]
    by_hand = (image.reshape(-1, 3) / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(found, by_hand, atol=1e-6)
    assert found[3, 2] == pytest.approx((0.2 - 0.406) / 0.225, abs=1e-6)


@pytest.mark.parametrize("declaration", MODELS, ids=lambda declaration: declaration.name)
def test_measures_find_the_vectors_and_black_images(declaration) -> None:
    model, batch = example_model(declaration).eval(), whole_batch(IMAGES)
    vectors = input_vectors(model, batch)
    assert vectors.shape == (12, SIDE**2, 3) and not vectors.requires_grad
    with torch.no_grad():
        torch.testing.assert_close(forward_vectors(model, batch, vectors).logits, model(batch).logits, atol=0, rtol=0)
        black = batch_of(np.zeros((12, SIDE, SIDE, 3), dtype=np.uint8))
        torch.testing.assert_close(baseline_vectors(model, batch, "pad"), model.embedding(black.ids), atol=0, rtol=0)


def normalised(maps: torch.Tensor, norm: nn.BatchNorm2d) -> torch.Tensor:
    mean, variance, weight, bias = (
        part[:, None, None] for part in (norm.running_mean, norm.running_var, norm.weight, norm.bias)
    )
    return (maps - mean) / (variance + 1e-5).sqrt() * weight + bias


@torch.no_grad()
def test_resnet_small_equals_its_layers_one_by_one() -> None:
    """Convolutions of images in channels-last format, statistics by hand."""
    model = example_model(REGISTRY.get("model", "resnet-small")).eval()
    for norm in model.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.weight.uniform_(0.5, 1.5), norm.bias.normal_()
    images = np.stack([unpack(ids) for ids in IMAGES.ids])
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]).double(), torch.tensor([0.229, 0.224, 0.225]).double()
    x = ((torch.from_numpy(images).double() / 255 - mean) / deviation).permute(0, 3, 1, 2).contiguous()
    x = normalised(conv2d(x, model.stem[0].weight, stride=2, padding=1), model.stem[1]).clamp(min=0)
    widths = []
    for block, stride in zip(model.blocks, (1, 2, 2, 2), strict=True):
        y = normalised(conv2d(x, block.first.weight, stride=stride, padding=1), block.first_norm).clamp(min=0)
        y = normalised(conv2d(y, block.second.weight, padding=1), block.second_norm)
        if stride > 1:
            x = normalised(conv2d(x, block.shortcut[0].weight, stride=stride), block.shortcut[1])
        x = (x + y).clamp(min=0)
        widths.append(tuple(x.shape[1:]))
    assert widths == [(16, 8, 8), (32, 4, 4), (64, 2, 2), (128, 1, 1)]
    batch = whole_batch(IMAGES)
    # Rounding of the colours to float32 is what is left.
    torch.testing.assert_close(model.maps(batch), x, atol=1e-5, rtol=1e-5)
    logits = torch.einsum("bkhw,ck->bc", x, model.readout_weights) / 1 + model.linear.bias
    torch.testing.assert_close(model(batch).logits, logits, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_linear_pixels_is_a_sum_over_pixels() -> None:
    model, batch = LinearPixels(None, 3, side=SIDE), whole_batch(IMAGES)
    weight = model.linear.weight.unflatten(1, (SIDE**2, 3))
    logits = torch.einsum("btd,ctd->bc", model.embedding(batch.ids), weight) + model.linear.bias
    torch.testing.assert_close(model(batch).logits, logits, atol=1e-5, rtol=1e-5)


def test_images_that_a_model_cannot_read_are_refused() -> None:
    with pytest.raises(PlumblineError, match=r"reads images of 8 x 8 pixels, but these have 16 x 16; set its option"):
        LinearPixels(None, 2, side=8)(whole_batch(IMAGES))
    with pytest.raises(PlumblineError, match="`side` is 0"):
        LinearPixels(None, 2, side=0)
    with pytest.raises(PlumblineError, match="A text of 12 tokens cannot be an image"):
        ResNet(None, 2, **SMALL)(collate([np.arange(12)], None))
    model, one = ResNet(None, 2, **SMALL).train(), whole_batch(IMAGES.take([0]))
    with pytest.raises(PlumblineError, match=(r"one image of 16 x 16 pixels .* batch normalisation cannot train on")):
        model(one)
    # Two are enough, and so is one that is larger.
    model(whole_batch(IMAGES.take([0, 1])))
    model(batch_of(np.zeros((1, 17, 17, 3), dtype=np.uint8)))


def test_training_moves_no_colour_and_keeps_the_statistics_of_its_epoch(tmp_path: Path) -> None:
    """Even if the vectors may be trained; and the statistics that come back are those that were stored."""
    declaration = REGISTRY.get("model", "resnet-small")
    splits = {split: example_images(20, seed, [split]) for seed, split in enumerate(("train", "dev", "test"))}
    training = Training(**{**declaration.training, "epochs": 2, "batch_size": 8, "checkpoint_gain": None})
    trained = train_block(BlockSpec(declaration.pointer, SMALL, {}, splits, 2, training), [0, 1], None)
    weights, _, predictions = trained
    torch.testing.assert_close(weights["0/embedding.weight"], ResNet(None, 2).embedding.weight.data, atol=0, rtol=0)
    norm = "0/blocks.0.first_norm"
    # Three steps an epoch; the statistics have left their beginning, a mean of 0 and a variance of 1.
    assert int(weights[f"{norm}.num_batches_tracked"]) in (3, 6)
    assert (weights[f"{norm}.running_mean"] != 0).all() and (weights[f"{norm}.running_var"] != 1).all()
    write_tensors(tmp_path / "weights.safetensors", weights)
    evaluators = trained_models(tmp_path / "weights.safetensors", declaration.pointer, SMALL, 2, [0, 1], 512)
    probabilities = np.stack(predictions["probabilities"]).reshape(2, 3, 20, 2)
    for evaluator, own in zip(evaluators, probabilities, strict=True):
        for split, there in zip(("train", "dev", "test"), own, strict=True):
            np.testing.assert_allclose(evaluator.probabilities(splits[split]), there, atol=1e-6)
    again = train_block(BlockSpec(declaration.pointer, SMALL, {}, splits, 2, training, trainable=False), [1], None)[0]
    for name, tensor in again.items():
        torch.testing.assert_close(tensor, weights[name], atol=0, rtol=0)


def test_resnet_small_learns_textures(tmp_path: Path) -> None:
    """What it learns from small images in seconds is the shape: the test split has other colours and positions. By
    chance it would be right on 65% of 200 images once in a hundred thousand times."""
    made = prepare_images(textures(Path(), 0, train=400, dev=60, test=200, side=32), Preparation(), "textures")
    write_table(tmp_path / "instances.parquet", INSTANCES, made.instances)
    splits = Instances.from_table(read_table(tmp_path / "instances.parquet", INSTANCES), ["train", "dev", "test"])
    declaration = REGISTRY.get("model", "resnet-small")
    training = Training(**{**declaration.training, "epochs": 6, "batch_size": 16, "checkpoint_gain": None})
    options = {name: option.default for name, option in declaration.options.items()}
    _, _, predictions = train_block(
        BlockSpec(declaration.pointer, options, {}, splits.by_split(), 2, training, trainable=False), [0], None
    )
    right = np.stack(predictions["probabilities"]).argmax(1) == predictions["label"]
    assert right[np.array(predictions["split"]) == "test"].mean() > 0.65


def test_resnet34_learns_eight_images_by_heart() -> None:
    declaration = REGISTRY.get("model", "resnet34")
    splits = {split: example_images(8, seed, [split]) for seed, split in enumerate(("train", "dev", "test"))}
    training = Training(**{**declaration.training, "epochs": 8, "checkpoint_gain": None, "stop_at": None})
    _, history, _ = train_block(BlockSpec(declaration.pointer, {}, {}, splits, 2, training, trainable=False), [0], None)
    loss = [
        value
        for split, metric, value in zip(history["split"], history["metric"], history["value"], strict=True)
        if (split, metric) == ("train", "loss")
    ]
    assert len(loss) == 8 and loss[-1] < 0.2 < loss[0]


def test_large_images_fit_the_budget() -> None:
    """An image has more tokens than the budget of a pass: it then runs alone."""
    model = build_model("plumbline.models.images:ResNet", SMALL, None, 2).requires_grad_(False)
    random = np.random.default_rng(0)
    ids = list(pack(random.integers(256, size=(3, 264, 264, 3), dtype=np.uint8)))
    large = Instances(*(IMAGES.take([0, 1, 2]).__dict__[key] for key in ("split", "instance", "label")), ids, [
        np.ones(264**2, dtype=bool)
    ] * 3)  # fmt: skip
    evaluator = Evaluator(model, 0)
    seen: list[int] = []
    evaluator.each(large, lambda index, batch: seen.append(len(index)))
    assert evaluator.budget.tokens == 264**2 > ResNet.useful_tokens["cpu"] and seen == [1, 1, 1]
    np.testing.assert_allclose(
        evaluator.probabilities(large), Evaluator(model, 0, 10**6).probabilities(large), atol=1e-5
    )


def test_a_pixel_costs_what_the_first_layers_keep_of_it() -> None:
    """At least the maps that the stem and the first block keep for the gradient, a quarter as many as pixels each."""
    model = ResNet(None, 2, **SMALL).requires_grad_(False)
    batch = whole_batch(example_images(ROWS))
    cost = bytes_per_token(model, batch)
    assert 5 * 4 * SMALL["width"] / 4 < cost < 40 * 4 * SMALL["width"]
    assert not model.embedding.weight.requires_grad
    tokens = Budget(memory_mb=64).settle(model, SIDE**2, lambda: batch)
    assert SIDE**2 <= tokens <= ResNet.useful_tokens["cpu"]
