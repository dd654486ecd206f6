"""The five image manipulations of Zhou et al. (2022). No pixel outside of their regions changes.

Options are in pixels of an image of 224 x 224, as in the study, and are scaled to the size of the images.

Options:
    radius: Radius of the circle around the centre, in pixels of an image of 224 x 224.
    height: Height of the region, in pixels of an image of 224 x 224.
    place: Position of the stripe, from 0, at the top, to 1, at the bottom.
"""

from pathlib import Path

import numpy as np

from plumbline.data.manipulation import ImageManipulation
from plumbline.registry import manipulation

SIZE = 224
BLACK, WHITE = (0, 0, 0), (255, 255, 255)
# The least distance of the watermark's centre from the edges of its box, in pixels of an image of 224 x 224.
MARGIN_X, MARGIN_Y = 40, 10
HUE, VALUE = 0, 2


def _extent(length: float, place: float) -> tuple[int, int]:
    """Start and end of an interval in an image of 224 pixels; `place` from 0, at the start, to 1, at the end."""
    start = place * (SIZE - length)
    return int(start), int(start + length)


def _only_in(region: np.ndarray, changed: np.ndarray, image: np.ndarray) -> np.ndarray:
    """The changed image inside the region and the image [H, H, 3] outside."""
    return np.where(region[..., None], changed, image)


def _shifted(image: np.ndarray, region: np.ndarray, channel: int, by: np.ndarray) -> np.ndarray:
    """The image with the hue, which wraps, or the value of the pixels [P] in the region shifted by `by` [P].

    Colours are truncated to bytes, as in the study. Its code truncates the whole image, and thereby slightly changes
    pixels outside of the region too.
    """
    from matplotlib.colors import hsv_to_rgb, rgb_to_hsv

    hsv = rgb_to_hsv(image[region].astype(np.float32) / 255)
    hsv[:, channel] += by
    hsv[:, channel] = hsv[:, channel] % 1 if channel == HUE else np.clip(hsv[:, channel], 0, 1)
    changed = image.copy()
    changed[region] = (hsv_to_rgb(hsv) * 255).astype(np.uint8)
    return changed


@manipulation(
    "peripheral-blur",
    limits={"radius": [1, 224], "sigma": [0, 224]},
    reads="pixels",
    groups=["effective region"],
    visibility="sigma",
    equation="x ∗ N(0, σ²) outside of the circle of radius R",
    citation="Zhou, Booth, Ribeiro & Shah (2022), Do Feature Attribution Methods Correctly Attribute Features? AAAI.",
)
def peripheral_blur(size: int, *, radius: float = 80.0, sigma: float = 10.0) -> ImageManipulation:
    """A Gaussian blur of `sigma` pixels outside of a circle around the centre; the region is the outside.

    Options:
        sigma: Standard deviation of the blur, in pixels of an image of 224 x 224; higher is more visible.
    """
    from PIL import Image, ImageDraw, ImageFilter

    outside = Image.new("L", (size, size), 1)
    reach = radius * size / SIZE
    ImageDraw.Draw(outside).ellipse([size / 2 - reach] * 2 + [size / 2 + reach] * 2, fill=0)
    region = np.array(outside, dtype=bool)
    blur = ImageFilter.GaussianBlur(sigma * size / SIZE)

    def change(image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return _only_in(region, np.asarray(Image.fromarray(image).filter(blur)), image)

    return ImageManipulation(region, change)


@manipulation(
    "central-brightness",
    limits={"radius": [1, 224], "shift": [-1, 1]},
    reads="pixels",
    groups=["effective region"],
    visibility="shift",
    equation="V + s cos²(½π · 112 ρ / R) where the distance ρ from the centre is at most R / 112",
    citation="Zhou, Booth, Ribeiro & Shah (2022), Do Feature Attribution Methods Correctly Attribute Features? AAAI.",
)
def central_brightness(size: int, *, radius: float = 60.0, shift: float = -0.3) -> ImageManipulation:
    """A darker or, with a `shift` above 0, lighter centre; the region is the circle.

    Options:
        shift: Change of brightness at the centre, -1 to 1; below 0 is darker.
    """
    axis = np.linspace(-1, 1, size)
    distance = np.hypot(axis[:, None], axis[None, :])
    region = distance <= radius / (SIZE / 2)
    by = shift * np.cos(np.pi / 2 * distance[region] * (SIZE / 2) / radius) ** 2
    return ImageManipulation(region, lambda image, random: _shifted(image, region, VALUE, by))


def _stripe(size: int, top: int, bottom: int) -> np.ndarray:
    """The region [size, size] of the rows from top to bottom, inclusive, given in pixels of 224."""
    rows = np.arange(size)
    return np.repeat(((rows >= top * size // SIZE) & (rows <= bottom * size // SIZE))[:, None], size, axis=1)


@manipulation(
    "striped-hue",
    limits={"height": [1, 224], "place": [0, 1], "shift": [-1, 1]},
    reads="pixels",
    groups=["effective region"],
    visibility="shift",
    equation="H + s u² sign(u) in rows t to b, with u = sin(2π (row - 112) / (b - t))",
    citation="Zhou, Booth, Ribeiro & Shah (2022), Do Feature Attribution Methods Correctly Attribute Features? AAAI.",
)
def striped_hue(size: int, *, height: float = 50.0, place: float = 0.46, shift: float = 0.15) -> ImageManipulation:
    """A wave of hues in a horizontal stripe, which is the region, its last row included.

    Options:
        shift: Amplitude of the wave, as a share of the circle of hues, -1 to 1; farther from 0 is more visible.
    """
    top, bottom = _extent(height, place)
    region = _stripe(size, top, bottom)
    # The wave starts at the middle row of the image, not of the stripe.
    wave = np.sin(2 * np.pi / (bottom - top) * (np.arange(size) * SIZE / size - SIZE / 2))
    by = np.repeat(shift * wave**2 * np.sign(wave), size).reshape(size, size)[region]
    return ImageManipulation(region, lambda image, random: _shifted(image, region, HUE, by))


@manipulation(
    "striped-noise",
    limits={"height": [1, 224], "place": [0, 1], "probability": [0, 1]},
    reads="pixels",
    groups=["effective region"],
    visibility="probability",
    equation="x_i ~ U{0, …, 255}³ with probability q in rows t to b",
    citation="Zhou, Booth, Ribeiro & Shah (2022), Do Feature Attribution Methods Correctly Attribute Features? AAAI.",
)
def striped_noise(
    size: int, *, height: float = 50.0, place: float = 0.46, probability: float = 0.03
) -> ImageManipulation:
    """Each pixel of a horizontal stripe gets a random colour with some probability.

    The region is the stripe, its last row included.

    Options:
        probability: Probability with which a pixel of the stripe is replaced, 0 to 1; higher is more visible.
    """
    region = _stripe(size, *_extent(height, place))

    def change(image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        replaced = region & (random.random(region.shape) < probability)
        return _only_in(replaced, random.integers(256, size=image.shape, dtype=np.uint8), image)

    return ImageManipulation(region, change)


@manipulation(
    "watermark",
    limits={"height": [20, 224], "width": [80, 224], "place_x": [0, 1], "place_y": [0, 1], "font": [1, 224]},
    reads="pixels",
    groups=["effective region"],
    visibility="font",
    equation="`IMG` and four hexadecimal digits at a random point of a box",
    citation="Zhou, Booth, Ribeiro & Shah (2022), Do Feature Attribution Methods Correctly Attribute Features? AAAI.",
)
def watermark(
    size: int,
    *,
    height: float = 50.0,
    width: float = 164.0,
    place_x: float = 0.5,
    place_y: float = 0.8625,
    font: float = 13.0,
) -> ImageManipulation:
    """`IMG` and four hexadecimal digits, one white and one black, at a random point of a box, which is the region.

    Text that is wider than the box is clipped.

    Options:
        width: Width of the box, in pixels of an image of 224 x 224.
        place_x: Position of the box, from 0, at the left, to 1, at the right.
        place_y: Position of the box, from 0, at the top, to 1, at the bottom.
        font: Size of the letters, in pixels of an image of 224 x 224; higher is more visible.
    """
    import matplotlib
    from PIL import Image, ImageDraw, ImageFont

    (top, bottom), (left, right) = _extent(height, place_y), _extent(width, place_x)
    region = np.zeros((size, size), dtype=bool)
    region[top * size // SIZE : bottom * size // SIZE, left * size // SIZE : right * size // SIZE] = True
    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    letters = ImageFont.truetype(str(path), font * size / SIZE, layout_engine=ImageFont.Layout.BASIC)

    def change(image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        x = random.uniform(left + MARGIN_X, right - MARGIN_X) * size / SIZE
        y = random.uniform(top + MARGIN_Y, bottom - MARGIN_Y) * size / SIZE
        colours = (BLACK, WHITE) if random.random() < 0.5 else (WHITE, BLACK)
        number = f"{random.integers(16**4):04X}"
        written = Image.fromarray(image)
        draw = ImageDraw.Draw(written)
        for text, colour, anchor in (("IMG", colours[0], "rm"), (number, colours[1], "lm")):
            draw.text((x, y), text, fill=colour, font=letters, anchor=anchor)
        return _only_in(region, np.asarray(written), image)

    return ImageManipulation(region, change)
