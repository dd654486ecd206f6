"""Saliency maps: which images are shown, and their captions."""

import numpy as np
import pyarrow as pa

from plumbline.data.pixels import pack
from plumbline.protocols.ground_truth.saliency import saliency
from plumbline.protocols.ground_truth.shown import ShownCell, explained_images

SIDE = 4
SUMMARY = {"manipulation": {"variant": "mark", "groups": ["region"]}, "classes": ["a", "b"]}


def cell() -> ShownCell:
    """Four test images; the region is the upper half; the first one of class 1 is misclassified."""
    pixels = np.random.default_rng(0).integers(256, size=(4, SIDE, SIDE, 3), dtype=np.uint8)
    region = np.repeat([1, 0], SIDE * SIDE // 2)
    keys = {"split": ["test"] * 4, "instance": [0, 1, 2, 3], "label": [0, 1, 1, 0]}
    instances = pa.table({**keys, "ids": list(pack(pixels)), "groups": [region] * 4})
    probabilities = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    predictions = pa.table({**keys, "seed": [7] * 4, "probabilities": probabilities})
    scores = [np.where(region == 1, 3.0, -1.0)] * 4
    explained = pa.table({**{k: keys[k] for k in ("split", "instance")}, "seed": [7] * 4, "scores": scores})
    zero = explained.set_column(3, "scores", pa.array([np.zeros(SIDE * SIDE)] * 4))
    return ShownCell(instances, predictions, {"gradient-channels": explained, "grad-cam": zero}, SUMMARY)


def test_an_image_of_each_class_is_shown_and_correctly_predicted_ones_first():
    images = explained_images(cell(), "test")
    assert [image.caption for image in images] == ["mark\nunmodified", "mark\nmanipulated"]
    for image in images:
        assert image.region.sum() == SIDE * SIDE / 2
        assert image.shares["gradient-channels"] == 0.75 and np.isnan(image.shares["grad-cam"])


def test_each_measure_has_a_column_with_its_share():
    figure = saliency(explained_images(cell(), "test"), "textures")
    labels = [axes.get_xlabel() for axes in figure.axes]
    of_measures = ["75 %", "no importance"]
    captions = [f"mark\n{state}\nregion 50 %" for state in ("unmodified", "manipulated")]
    assert labels == [captions[0], *of_measures, captions[1], *of_measures]
    assert [axes.get_title() for axes in figure.axes[:3]] == ["image", "gradient\nchannels", "grad-cam"]


def test_without_images_the_figure_is_a_sentence():
    assert "no image was explained" in saliency([], "textures").texts[0].get_text()
