"""Quick shift: superpixels as the trees in which each pixel hangs on its nearest one of higher density.

Vedaldi & Soatto 2008, in colours (Lab) and places, with the choices of scikit-image's `quickshift`. All pixels of all
pictures go together, one neighbour of each after the other.
"""

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import torch

# The farthest that a pixel hangs on another, by LIME's package; no two pixels of a window are so far apart.
FARTHEST = 200.0
# Noise on densities, by which pixels of even colour differ. The same for all pictures.
NOISE, NOISE_SEED = 1e-5, 42
# XYZ of linear red, green and blue, and of white: the daylight of sRGB.
TO_XYZ = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
WHITE = np.array([0.95047, 1.0, 1.08883])


def lab(images: np.ndarray) -> np.ndarray:
    """Pictures [..., 3] of sRGB bytes in CIE's Lab, where differences are as large as they look."""
    bytes_ = np.arange(256) / 255
    linear = np.where(bytes_ > 0.04045, ((bytes_ + 0.055) / 1.055) ** 2.4, bytes_ / 12.92)
    xyz = linear[images] @ TO_XYZ.T / WHITE
    x, y, z = np.moveaxis(np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116), -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def _neighbours(reach: int, size: int) -> Iterator[tuple[int, tuple[slice, slice], tuple[slice, slice]]]:
    """For each step of at most `reach` rows and columns, in reading order: its squared length, the pixels that have a
    neighbour there, and these neighbours."""
    reach = min(reach, size - 1)
    for step in product(range(-reach, reach + 1), repeat=2):
        if any(step):
            here = slice(max(0, -step[0]), size - max(0, step[0])), slice(max(0, -step[1]), size - max(0, step[1]))
            there = slice(max(0, step[0]), size - max(0, -step[0])), slice(max(0, step[1]), size - max(0, -step[1]))
            yield step[0] ** 2 + step[1] ** 2, here, there


@torch.no_grad()
def quickshift(
    images: np.ndarray, kernel_size: float, ratio: float, device: torch.device | str = "cpu"
) -> torch.Tensor:
    """The number of each pixel's superpixel, from 0, [B, size, size]. images: [B, size, size, 3] bytes.

    A pixel's density is that of a Gaussian kernel of this width, cut at three times of it, which is also how far its
    parent may be. A difference of colours counts `ratio` times beside one of places.
    """
    count, size = images.shape[:2]
    # Channels first, so that each is even in memory; from the host, so that every device starts from the same.
    colours = torch.from_numpy(np.ascontiguousarray(np.moveaxis(lab(images) * ratio, -1, 0))).to(device)
    reach = math.ceil(3 * kernel_size)

    def distance(step: int, here: tuple[slice, slice], there: tuple[slice, slice]) -> torch.Tensor:
        return (colours[(..., *here)] - colours[(..., *there)]).square_().sum(0).add_(step)

    noise = np.random.default_rng(NOISE_SEED).normal(scale=NOISE, size=(size, size))
    density = torch.from_numpy(noise).to(device).repeat(count, 1, 1) + 1
    steps = list(_neighbours(reach, size))
    # The second half of the steps are the first, backwards.
    for step, here, there in steps[: len(steps) // 2]:
        close = distance(step, here, there).mul_(-0.5 / kernel_size**2).exp_()
        density[(..., *here)] += close
        density[(..., *there)] += close
    place = torch.arange(size * size, device=device).view(1, size, size).repeat(count, 1, 1)
    parent, nearest = place.clone(), torch.full_like(density, FARTHEST**2)
    for step, here, there in steps:
        apart = distance(step, here, there)
        nearer = (density[(..., *there)] > density[(..., *here)]) & (apart < nearest[(..., *here)])
        nearest[(..., *here)] = torch.where(nearer, apart, nearest[(..., *here)])
        parent[(..., *here)] = torch.where(nearer, place[(..., *there)], parent[(..., *here)])
    place, root = place.flatten(1), parent.flatten(1)
    while not torch.equal(root, above := root.gather(1, root)):
        root = above
    return ((root == place).cumsum(1) - 1).gather(1, root).view(count, size, size)
