"""The image manipulations: their regions, pixel by pixel, and the changes inside."""

import colorsys
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter

from plumbline.config.resolve import resolve
from plumbline.data.manipulation import ImageManipulation, manipulate
from plumbline.data.manipulations.images import (
    central_brightness,
    peripheral_blur,
    striped_hue,
    striped_noise,
    watermark,
)
from plumbline.data.pixels import pack, unpack
from plumbline.data.schemas import INSTANCES
from plumbline.errors import PlumblineError
from plumbline.registry import Registry, load
from plumbline.store import read_table, write_table

NAMES = ["central-brightness", "peripheral-blur", "striped-hue", "striped-noise", "watermark"]
SIZES = [32, 64, 128, 224]


def random_image(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(256, size=(size, size, 3), dtype=np.uint8)


def drawn(name: str, random: np.random.Generator) -> dict[str, float]:
    """Parameters in the ranges of the study's first experiment, with any visibility."""
    place = {"place": random.uniform()}
    return {
        "peripheral-blur": {"radius": random.uniform(80, 130), "sigma": random.uniform(1, 10)},
        "central-brightness": {"radius": random.uniform(40, 112), "shift": random.uniform(-1, 1)},
        "striped-hue": {"height": random.uniform(20, 224), "shift": random.uniform(-1, 1), **place},
        "striped-noise": {"height": random.uniform(20, 224), "probability": random.uniform(), **place},
        "watermark": {
            "height": random.uniform(40, 200),
            "width": random.uniform(100, 200),
            "place_x": random.uniform(),
            "place_y": random.uniform(),
            "font": random.uniform(7, 30),
        },
    }[name]


def made(name: str, size: int, **options: Any) -> ImageManipulation:
    return load(Registry().get("manipulation", name).pointer)(size, **options)


def slow_region(name: str, options: dict[str, float]) -> np.ndarray:
    """The region in an image of 224 x 224 as described in the study's table."""
    region = np.zeros((224, 224), dtype=bool)
    for row in range(224):
        for column in range(224):
            if name == "central-brightness":
                x, y = -1 + 2 * column / 223, -1 + 2 * row / 223
                inside = math.sqrt(x * x + y * y) <= options["radius"] / 112
            elif name == "watermark":
                top = options["place_y"] * (224 - options["height"])
                left = options["place_x"] * (224 - options["width"])
                inside = int(top) <= row < int(top + options["height"])
                inside &= int(left) <= column < int(left + options["width"])
            else:
                top = options["place"] * (224 - options["height"])
                inside = int(top) <= row <= int(top + options["height"])
            region[row, column] = inside
    return region


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_outside_of_the_region_ever_changes(name: str, size: int) -> None:
    random = np.random.default_rng([size, NAMES.index(name)])
    moved = 0
    for seed in range(12):
        region, change = made(name, size, **drawn(name, random))
        image = random_image(size, seed)
        before = image.copy()
        after = change(image, random)
        assert (after.dtype, after.shape, region.dtype, region.shape) == (np.uint8, image.shape, bool, (size, size))
        np.testing.assert_array_equal(image, before)
        np.testing.assert_array_equal(after[~region], image[~region])
        moved += (after != image).any()
    # With a font of two pixels, for example, nothing may be visible.
    assert moved >= 10


@pytest.mark.parametrize("name", [name for name in NAMES if name != "peripheral-blur"])
def test_regions_are_those_of_the_study(name: str) -> None:
    random = np.random.default_rng(3)
    for _ in range(3):
        options = drawn(name, random)
        np.testing.assert_array_equal(made(name, 224, **options).region, slow_region(name, options))


@pytest.mark.parametrize("radius", [80.0, 103.7, 130.0])
def test_the_blurred_region_is_outside_of_the_circle(radius: float) -> None:
    region = peripheral_blur(224, radius=radius).region
    rows, columns = np.mgrid[:224, :224]
    distance = np.hypot(rows - 112, columns - 112)
    assert region[distance > radius + 1].all() and not region[distance < radius - 1].any()
    share = 1 - np.mean(distance <= radius)
    assert region.mean() == pytest.approx(share, abs=0.01)


def test_the_fixed_manipulations_of_the_study_are_the_defaults() -> None:
    for stripe in (striped_hue(224).region, striped_noise(224).region):
        assert np.flatnonzero(stripe.all(axis=1)).tolist() == list(range(80, 131)) and stripe.sum() == 51 * 224
    box = watermark(224).region
    assert np.flatnonzero(box.any(axis=1)).tolist() == list(range(150, 200))
    assert np.flatnonzero(box.any(axis=0)).tolist() == list(range(30, 194)) and box.sum() == 50 * 164


@pytest.mark.parametrize("name", NAMES)
def test_smaller_images_have_regions_of_the_same_share(name: str) -> None:
    options = drawn(name, np.random.default_rng(5))
    whole = made(name, 224, **options).region.mean()
    assert [made(name, size, **options).region.mean() for size in (64, 128)] == pytest.approx([whole] * 2, abs=0.035)


def test_regions_of_the_study_are_of_all_sizes() -> None:
    """Their mean share is that of the ranges which parameters are drawn from."""
    rows, columns = np.mgrid[:224, :224]
    radii = np.linspace(80, 130, 51)
    expected = {
        "peripheral-blur": np.mean([np.hypot(rows - 112, columns - 112) > radius for radius in radii]),
        "central-brightness": math.pi * (112**3 - 40**3) / 3 / 72 / 224**2,
        "striped-hue": 122 / 224,
        "striped-noise": 122 / 224,
        "watermark": 120 * 150 / 224**2,
    }
    random = np.random.default_rng(0)
    for name in NAMES:
        shares = [made(name, 64, **drawn(name, random)).region.mean() for _ in range(200)]
        assert np.mean(shares) == pytest.approx(expected[name], abs=0.05), name


def test_blur_is_gaussian() -> None:
    image = random_image(224)
    image = np.asarray(Image.fromarray(image[:28, :28]).resize((224, 224), Image.Resampling.BILINEAR))
    region, change = peripheral_blur(224, radius=80.0, sigma=4.0)
    after = change(image, np.random.default_rng(0))
    exact = gaussian_filter(image.astype(float), sigma=(4, 4, 0), mode="nearest")
    # Pillow's blur is a sequence of box blurs.
    assert np.abs(after[region] - exact[region]).max() < 6
    assert np.abs(image[region] - exact[region]).max() > 20


def slow_shift(image: np.ndarray, by: np.ndarray, channel: int) -> np.ndarray:
    """The image [H, H, 3] with hue (0) or value (2) of each pixel shifted by `by` [H, H]."""
    after = np.zeros_like(image, dtype=float)
    for place in np.ndindex(*by.shape):
        hsv = list(colorsys.rgb_to_hsv(*(image[place] / 255)))
        hsv[channel] += by[place]
        hsv[channel] = hsv[channel] % 1 if channel == 0 else min(max(hsv[channel], 0), 1)
        after[place] = np.array(colorsys.hsv_to_rgb(*hsv)) * 255
    return after


@pytest.mark.parametrize("shift", [-0.3, 0.5])
def test_brightness_shifts_the_value_most_in_the_centre(shift: float) -> None:
    image = random_image(32)
    region, change = central_brightness(32, radius=90.0, shift=shift)
    axis = np.array([-1 + 2 * k / 31 for k in range(32)])
    distance = np.sqrt(axis[:, None] ** 2 + axis[None, :] ** 2)
    by = shift * np.cos(0.5 * np.pi * distance * 112 / 90) ** 2
    exact = slow_shift(image, np.where(region, by, 0), 2)
    lost = exact - change(image, np.random.default_rng(0))
    # Truncation: a byte is the whole number below, but for the rounding of single precision.
    assert lost[region].min() > -0.01 and lost[region].max() < 1.01


@pytest.mark.parametrize("size", [32, 224])
def test_hue_wraps_and_its_phase_is_that_of_the_middle_row(size: int) -> None:
    image = random_image(size)[:, :4]
    wide = np.tile(image, (1, size // 4, 1))
    region, change = striped_hue(size, height=60.0, place=0.25, shift=0.7)  # rows 41 to 101 of 224
    u = np.sin(2 * np.pi / 60 * (np.arange(size) * 224 / size - 112))
    by = np.where(region[:, :4], (0.7 * u**2 * np.sign(u))[:, None], 0)
    exact = slow_shift(image, by, 0)
    lost = (exact - change(wide, np.random.default_rng(0))[:, :4])[region[:, :4]]
    # Hues are rounded to single precision, which moves a byte by far less than one.
    assert lost.min() > -0.01 and lost.max() < 1.01
    assert np.abs(exact[region[:, :4]] - image[region[:, :4]]).max() > 100


def test_noise_changes_a_share_of_pixels_to_any_colour() -> None:
    image = np.zeros((224, 224, 3), dtype=np.uint8)
    region, change = striped_noise(224, height=223.0, place=0.0, probability=0.3)
    after = change(image, np.random.default_rng(0))
    struck = after.any(axis=-1)
    assert region.all()
    assert struck.mean() == pytest.approx(0.3, abs=4 * math.sqrt(0.21 / 224**2))
    bytes_ = after[struck]
    assert (bytes_.min(), bytes_.max()) == (0, 255)
    assert bytes_.mean(axis=0) == pytest.approx([127.5] * 3, abs=3)
    np.testing.assert_array_equal(after, change(image, np.random.default_rng(0)))


def test_watermarks_are_white_and_black_in_equal_parts() -> None:
    grey = np.full((224, 224, 3), 128, dtype=np.uint8)
    region, change = watermark(224, height=100.0, width=200.0)
    left_white, writings = 0, set()
    for seed in range(60):
        after = change(grey, np.random.default_rng(seed))
        assert (after[..., 0] == after[..., 1]).all() and (after[region].min(), after[region].max()) == (0, 255)
        white, black = (np.flatnonzero((after[..., 0] == shade).any(axis=0)) for shade in (255, 0))
        assert white.max() < black.min() or black.max() < white.min()
        left_white += white.max() < black.min()
        writings.add(after.tobytes())
    assert len(writings) == 60
    assert 16 <= left_white <= 44  # 30 ± 3.6 standard deviations


def test_text_wider_than_its_box_is_clipped() -> None:
    image = np.full((224, 224, 3), 128, dtype=np.uint8)
    region, change = watermark(224, height=40.0, width=80.0, font=40.0)
    after = change(image, np.random.default_rng(0))
    assert (after[~region] == 128).all() and (after[region][:, 0] != 128).any()
    edge = np.flatnonzero(region.any(axis=0))[[0, -1]]
    assert (after[:, edge, 0] != 128).any(axis=0).all()


@pytest.mark.parametrize(
    ("name", "options", "fault"),
    [
        ("striped-hue", {"height": 225.0}, "`height` is 225; it must be from 1 to 224"),
        ("striped-noise", {"place": 1.2}, "`place` is 1.2; it must be from 0 to 1"),
        ("striped-noise", {"probability": 2.0}, "`probability` is 2; it must be from 0 to 1"),
        ("watermark", {"width": 60.0}, "`width` is 60; it must be from 80 to 224"),
        ("peripheral-blur", {"radius": 0.0}, "`radius` is 0; it must be from 1 to 224"),
    ],
)
def test_options_out_of_bounds_are_refused(name: str, options: dict[str, float], fault: str) -> None:
    message = fault.replace("`", f"`manipulations.{name}.", 1)
    entries = {"datasets": ["textures"], "models": ["resnet-small"], "measures": ["random"]}
    with pytest.raises(PlumblineError, match=message):
        resolve({**entries, "manipulations": {name: options}})


def record(classes: list[str], count: int) -> dict[str, Any]:
    of_split = {"texts": 3 * count, "texts_per_class": dict.fromkeys(classes, count), "unknown_share": 0.0}
    return {"dataset": "plain", "classes": classes, "splits": {split: of_split for split in ("train", "dev", "test")}}


def varied(name: str, tmp_path: Path, classes: list[str] | None, **options: Any) -> Any:
    """Three splits of 24 images of three classes, plain and changed."""
    rows = [(split, number) for split in ("train", "dev", "test") for number in range(24)]
    images = [random_image(32, seed) for seed in range(len(rows))]
    columns: dict[str, Any] = {
        "split": [split for split, _ in rows],
        "instance": [number for _, number in rows],
        "label": [number % 3 for _, number in rows],
        "tokens": [[] for _ in rows],
        "ids": [pack(image) for image in images],
        "maskable": [np.ones(1024, dtype=bool) for _ in rows],
    }
    write_table(tmp_path / "plain.parquet", INSTANCES, columns)
    declaration = Registry().get("manipulation", name)
    settings = {"name": name, "options": options, "r": 0.5, "matrix": None, "classes": classes, "seed": 4}
    table = read_table(tmp_path / "plain.parquet", INSTANCES)
    changed, summary = manipulate(
        table, [], record(["tern", "crow", "raven"], 8), load(declaration.pointer), declaration.facts, settings
    )
    write_table(tmp_path / "variant.parquet", INSTANCES, changed)
    return dict(zip(rows, images, strict=True)), read_table(tmp_path / "variant.parquet", INSTANCES), summary


@pytest.mark.parametrize("name", NAMES)
def test_images_of_the_second_class_are_changed_and_all_have_the_region(name: str, tmp_path: Path) -> None:
    images, table, summary = varied(
        name, tmp_path, ["raven", "tern"], **({"font": 40.0} if name == "watermark" else {})
    )
    region = made(name, 32).region
    assert len(table) == 48
    for row in table.to_pylist():
        before = images[row["split"], row["instance"]]
        after = unpack(np.array(row["ids"]))
        np.testing.assert_array_equal(np.array(row["groups"]), region.ravel())
        np.testing.assert_array_equal(after[~region], before[~region])
        assert row["original_label"] == {0: 1, 2: 0}[row["instance"] % 3]
        assert (after != before).any() == (row["label"] == 1)
        assert row["tokens"] == [] and all(row["maskable"])
    applied = summary["manipulation"]
    assert applied["shares"]["train"]["effective region"] == pytest.approx(region.mean())
    assert (applied["reads"], applied["p_star"], applied["classes"]) == ("pixels", 0.5, ["raven", "tern"])
    test = summary["splits"]["test"]
    assert test["texts"] == test["instances"] == sum(test["instances_per_class"].values()) == 16
    assert (test["mean_length"], test["unknown_share"]) == (1024, 0.0)


def test_images_of_more_than_two_classes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match="the second of two classes, but there are 3: name pairs of them"):
        varied("watermark", tmp_path, None)


def test_a_change_of_no_pixel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match="changes no pixel of an image of 32 x 32"):
        varied("peripheral-blur", tmp_path, ["raven", "tern"], radius=200.0)
