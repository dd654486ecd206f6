"""Quick shift: superpixels as trees in which the parent of each pixel is the nearest pixel of higher density.

Vedaldi & Soatto 2008, in Lab colours and positions, with the choices of scikit-image's `quickshift`. Vectorised over
all pixels of all images, with a loop over neighbours.
"""

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import torch

# The largest distance of a pixel to its parent, as in LIME's package; no two pixels of a window are so far apart.
MAX_DISTANCE = 200.0
# Noise on densities, which breaks ties between pixels of equal colour; the same for all images.
NOISE, NOISE_SEED = 1e-5, 42
# From linear RGB to XYZ, and the white point of sRGB (D65).
TO_XYZ = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
WHITE = np.array([0.95047, 1.0, 1.08883])


def lab(images: np.ndarray) -> np.ndarray:
    """Images [..., 3] of sRGB bytes in CIE Lab, where distances are perceptual differences."""
    bytes_ = np.arange(256) / 255
    linear = np.where(bytes_ > 0.04045, ((bytes_ + 0.055) / 1.055) ** 2.4, bytes_ / 12.92)
    xyz = linear[images] @ TO_XYZ.T / WHITE
    x, y, z = np.moveaxis(np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116), -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def _neighbours(reach: int, size: int) -> Iterator[tuple[int, tuple[slice, slice], tuple[slice, slice]]]:
    """For each offset of at most `reach` rows and columns, in row-major order: its squared length, the pixels that have
    a neighbour at this offset, and these neighbours."""
    reach = min(reach, size - 1)
    for y, x in product(range(-reach, reach + 1), repeat=2):
        if y or x:
            pixels = slice(max(0, -y), size - max(0, y)), slice(max(0, -x), size - max(0, x))
            neighbours = slice(max(0, y), size - max(0, -y)), slice(max(0, x), size - max(0, -x))
            yield y**2 + x**2, pixels, neighbours


@torch.no_grad()
def quickshift(
    images: np.ndarray, kernel_size: float, ratio: float, device: torch.device | str = "cpu"
) -> torch.Tensor:
    """The number of each pixel's superpixel, from 0, [B, size, size]. images: [B, size, size, 3] bytes.

    Densities are those of a Gaussian kernel of this width, truncated at three times the width, which also bounds the
    offset of a parent. Colour distances are scaled by `ratio` relative to spatial ones.
    """
    count, size = images.shape[:2]
    # Channels first, so that each is contiguous; computed on the host, so that all devices have the same values.
    colours = torch.from_numpy(np.ascontiguousarray(np.moveaxis(lab(images) * ratio, -1, 0))).to(device)
    reach = math.ceil(3 * kernel_size)

    def squared_distance(step: int, pixels: tuple[slice, slice], neighbours: tuple[slice, slice]) -> torch.Tensor:
        return (colours[(..., *pixels)] - colours[(..., *neighbours)]).square_().sum(0).add_(step)

    noise = np.random.default_rng(NOISE_SEED).normal(scale=NOISE, size=(size, size))
    density = torch.from_numpy(noise).to(device).repeat(count, 1, 1) + 1
    steps = list(_neighbours(reach, size))
    # The second half of the steps are the first, backwards.
    for step, pixels, neighbours in steps[: len(steps) // 2]:
        close = squared_distance(step, pixels, neighbours).mul_(-0.5 / kernel_size**2).exp_()
        density[(..., *pixels)] += close
        density[(..., *neighbours)] += close
    position = torch.arange(size * size, device=device).view(1, size, size).repeat(count, 1, 1)
    parent, nearest = position.clone(), torch.full_like(density, MAX_DISTANCE**2)
    for step, pixels, neighbours in steps:
        squared = squared_distance(step, pixels, neighbours)
        nearer = (density[(..., *neighbours)] > density[(..., *pixels)]) & (squared < nearest[(..., *pixels)])
        nearest[(..., *pixels)] = torch.where(nearer, squared, nearest[(..., *pixels)])
        parent[(..., *pixels)] = torch.where(nearer, position[(..., *neighbours)], parent[(..., *pixels)])
    position, root = position.flatten(1), parent.flatten(1)
    while not torch.equal(root, above := root.gather(1, root)):
        root = above
    return ((root == position).cumsum(1) - 1).gather(1, root).view(count, size, size)
