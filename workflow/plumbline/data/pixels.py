"""An image as a sequence of pixels: one id per pixel, row by row, which holds its three bytes of colour."""

import math

import numpy as np

from plumbline.errors import PlumblineError


def side_length(length: int) -> int:
    """The side of a square image of `length` pixels."""
    root = math.isqrt(length)
    if length == 0 or root * root != length:
        raise PlumblineError(
            f"A text of {length} tokens cannot be an image: images are square, so the number of pixels must be a "
            "square number; use an image dataset with an image model."
        )
    return root


def pack(image: np.ndarray) -> np.ndarray:
    """The ids [..., H * W], int32, of images [..., H, W, 3], uint8: (red << 16) | (green << 8) | blue."""
    if image.dtype != np.uint8 or image.ndim < 3 or image.shape[-1] != 3:
        raise PlumblineError(
            f"An image must be bytes [H, W, 3], red, green and blue; this one is {image.dtype} {list(image.shape)}."
        )
    red, green, blue = (image[..., channel].astype(np.int32) for channel in range(3))
    return ((red << 16) | (green << 8) | blue).reshape(*image.shape[:-3], -1)


def unpack(ids: np.ndarray) -> np.ndarray:
    """The images [..., H, H, 3], uint8, of ids [..., H * H]."""
    height = side_length(ids.shape[-1])
    image = np.stack([ids >> 16 & 255, ids >> 8 & 255, ids & 255], axis=-1).astype(np.uint8)
    return image.reshape(*ids.shape[:-1], height, height, 3)
