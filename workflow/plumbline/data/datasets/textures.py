"""Generated images: shapes on backgrounds of noise with the spectrum of natural images."""

from collections.abc import Callable
from math import cos, pi, sin, sqrt, tan
from pathlib import Path

import numpy as np

from plumbline.data.corpus import split_generators
from plumbline.data.images import ImageCorpus, ImageExample
from plumbline.errors import PlumblineError
from plumbline.registry import dataset

# Spectra of natural scenes decay with the frequency f about as f^-1 (Field 1987).
STEEPEST, FLATTEST = 1.6, 1.0
# The weight of colour noise: natural colours vary more in lightness than in hue.
HUE = 0.35
# The share of an image covered by a shape.
SMALLEST, LARGEST = 0.08, 0.25
# The least number of pixels between a shape and the edge of the image.
MARGIN = 2
# The ranges of background colours, and of the difference by which shapes are lighter.
GROUND, LIGHTER = (0.15, 0.55), (0.15, 0.5)


@dataset(
    "textures",
    limits={"side": [32, None], "classes": [2, 5], "train": [1, None], "dev": [1, None], "test": [1, None]},
    source="plumbline itself, which generates it",
    licence="MIT",
    task="image classification",
    training={"epochs": 20, "batch_size": 32},
)
def textures(
    raw: Path, seed: int, *, train: int = 2000, dev: int = 200, test: int = 200, side: int = 64, classes: int = 2
) -> ImageCorpus:
    """Images of a shape, which is the class, of random size, position and rotation, lighter than its noisy background.

    Shapes of all classes cover the same areas.

    Options:
        side: Width and height of the images, in pixels.
        classes: Number of shapes, the first of disc, triangle, square, cross and ring.
    """
    if side < 32:
        raise PlumblineError(f"`side` is {side}; shapes need images of 32 pixels or more per side.")
    if not 2 <= classes <= len(SHAPES):
        raise PlumblineError(f"`classes` is {classes}; it must be from 2 to {len(SHAPES)}.")
    names = list(SHAPES)[:classes]
    images = []
    for split, size, generator in split_generators(seed, train, dev, test):
        for label in generator.permutation(np.arange(size) % classes).tolist():
            images.append(ImageExample(split, label, _image(generator, names[label], side)))
    return ImageCorpus(images, names)


def _image(generator: np.random.Generator, shape: str, side: int) -> np.ndarray:
    """A background and, inside the shape, a texture that is lighter in each channel, as bytes [H, H, 3]."""
    ground, figure = _texture(generator, side), _texture(generator, side)
    cover = _cover(generator, shape, side)[:, :, None]
    behind = (ground * cover).sum((0, 1)) / cover.sum()
    figure = figure - figure.mean((0, 1)) + behind + generator.uniform(*LIGHTER, 3)
    return (np.clip(ground * (1 - cover) + figure * cover, 0, 1) * 255 + 0.5).astype(np.uint8)


def _texture(generator: np.random.Generator, side: int) -> np.ndarray:
    """Noise [H, H, 3] around a colour, with the amplitude f^-a at frequency f for a random a."""
    power = generator.uniform(FLATTEST, STEEPEST)
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None])
    frequency[0, 0] = np.inf
    # One field of lightness, and one per channel.
    white = np.fft.rfft2(generator.standard_normal((4, side, side)))
    fields = np.fft.irfft2(white * frequency**-power, s=(side, side))
    fields /= fields.std((1, 2), keepdims=True)
    contrast = generator.uniform(0.06, 0.14)
    return generator.uniform(*GROUND, 3) + contrast * (fields[0][:, :, None] + HUE * np.moveaxis(fields[1:], 0, 2))


def _cover(generator: np.random.Generator, shape: str, side: int) -> np.ndarray:
    """The share of each pixel [H, H] that the shape covers; its edge is one pixel wide."""
    # All shapes draw the same number of random values.
    share, turn, across, down = generator.uniform(size=4)
    area = (SMALLEST + (LARGEST - SMALLEST) * share) * side**2
    reach = sqrt(area) * REACH + MARGIN
    centre = reach + (side - 2 * reach) * np.array([down, across])
    rows, columns = np.meshgrid(*(np.arange(side) + 0.5 - middle for middle in centre), indexing="ij")
    angle = 2 * pi * turn
    x, y = cos(angle) * columns + sin(angle) * rows, cos(angle) * rows - sin(angle) * columns
    return np.clip(0.5 - SHAPES[shape](x, y, area), 0, 1)


def _disc(x: np.ndarray, y: np.ndarray, area: float) -> np.ndarray:
    return np.hypot(x, y) - sqrt(area / pi)


def _polygon(x: np.ndarray, y: np.ndarray, area: float, corners: int) -> np.ndarray:
    inner = sqrt(area / (corners * tan(pi / corners)))
    angles = 2 * pi * np.arange(corners) / corners
    return np.max([cos(angle) * x + sin(angle) * y for angle in angles], axis=0) - inner


def _cross(x: np.ndarray, y: np.ndarray, area: float) -> np.ndarray:
    """Two bars three times as long as wide."""
    half = sqrt(area / 5) / 2
    bars = [np.maximum(np.abs(along) - 3 * half, np.abs(across) - half) for along, across in ((x, y), (y, x))]
    return np.minimum(*bars)


def _ring(x: np.ndarray, y: np.ndarray, area: float) -> np.ndarray:
    """A disc with a hole of half its width."""
    outer = sqrt(area / pi / 0.75)
    return np.abs(np.hypot(x, y) - 0.75 * outer) - 0.25 * outer


# Approximate signed distances of points [H, H] to a centred shape of a given area; negative inside.
SHAPES: dict[str, Callable[[np.ndarray, np.ndarray, float], np.ndarray]] = {
    "disc": _disc,
    "triangle": lambda x, y, area: _polygon(x, y, area, 3),
    "square": lambda x, y, area: _polygon(x, y, area, 4),
    "cross": _cross,
    "ring": _ring,
}
# The distance from the centre to the corners of a triangle of area 1, the largest of all shapes.
REACH = sqrt(4 / (3 * sqrt(3)))
