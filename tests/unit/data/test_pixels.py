"""Images as sequences of pixels."""

import numpy as np
import pytest

from plumbline.data.pixels import pack, side_length, unpack
from plumbline.errors import PlumblineError


def test_an_id_holds_the_three_bytes_of_a_pixel_row_by_row() -> None:
    image = np.array([[[1, 2, 3], [255, 255, 255]], [[0, 0, 0], [255, 0, 128]]], dtype=np.uint8)
    ids = pack(image)
    assert ids.dtype == np.int32
    assert ids.tolist() == [0x010203, 0xFFFFFF, 0, 0xFF0080]


@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
def test_unpacking_reverses_packing(shape: tuple[int, ...]) -> None:
    images = np.random.default_rng(0).integers(256, size=(*shape, 5, 5, 3), dtype=np.uint8)
    ids = pack(images)
    assert ids.shape == (*shape, 25)
    np.testing.assert_array_equal(unpack(ids), images)
    # As models hold them.
    np.testing.assert_array_equal(unpack(ids.astype(np.int64)), images)
    assert unpack(ids).dtype == np.uint8


def test_lengths_that_are_no_square_are_refused() -> None:
    assert [side_length(n) for n in (1, 4, 16384, 50176)] == [1, 2, 128, 224]
    for length in (0, 2, 50175):
        with pytest.raises(PlumblineError, match=f"A text of {length} tokens cannot be an image"):
            side_length(length)
    with pytest.raises(PlumblineError, match="A text of 3 tokens"):
        unpack(np.zeros((2, 3), dtype=np.int32))


def test_other_arrays_are_refused() -> None:
    for image in (np.zeros((2, 2, 3)), np.zeros((2, 2), dtype=np.uint8), np.zeros((2, 2, 4), dtype=np.uint8)):
        with pytest.raises(PlumblineError, match="An image must be bytes"):
            pack(image)
