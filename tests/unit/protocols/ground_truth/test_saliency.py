"""Pictures under importance: which are shown, and what is told of them."""

import numpy as np
import pyarrow as pa

from plumbline.data.pixels import pack
from plumbline.protocols.ground_truth.saliency import saliency
from plumbline.protocols.ground_truth.shown import explained_pictures

SIDE = 4
SUMMARY = {"manipulation": {"variant": "mark", "groups": ["region"]}, "classes": ["a", "b"]}


def tables() -> tuple[pa.Table, pa.Table, dict[str, pa.Table]]:
    """Four test pictures; the region is the upper half; the first one of class 1 is predicted wrongly."""
    pixels = np.random.default_rng(0).integers(256, size=(4, SIDE, SIDE, 3), dtype=np.uint8)
    region = np.repeat([1, 0], SIDE * SIDE // 2)
    keys = {"split": ["test"] * 4, "instance": [0, 1, 2, 3], "label": [0, 1, 1, 0]}
    instances = pa.table({**keys, "ids": list(pack(pixels)), "groups": [region] * 4})
    said = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    predictions = pa.table({**keys, "seed": [7] * 4, "probabilities": said})
    scores = [np.where(region == 1, 3.0, -1.0)] * 4
    explained = pa.table({**{k: keys[k] for k in ("split", "instance")}, "seed": [7] * 4, "scores": scores})
    nothing = explained.set_column(3, "scores", pa.array([np.zeros(SIDE * SIDE)] * 4))
    return instances, predictions, {"gradient-channels": explained, "grad-cam": nothing}


def test_a_picture_of_each_class_is_shown_and_rather_one_that_is_right():
    rows = explained_pictures(*tables(), SUMMARY, "test")
    assert [row.caption for row in rows] == ["mark\nas it was", "mark\nmanipulated"]
    for row in rows:
        assert row.region.sum() == SIDE * SIDE / 2
        assert row.shares["gradient-channels"] == 0.75 and np.isnan(row.shares["grad-cam"])


def test_each_measure_has_a_column_with_its_share():
    figure = saliency(explained_pictures(*tables(), SUMMARY, "test"), "textures")
    told = [axes.get_xlabel() for axes in figure.axes]
    of_measures = ["75 %", "no importance"]
    captions = [f"mark\n{made}\nregion 50 %" for made in ("as it was", "manipulated")]
    assert told == [captions[0], *of_measures, captions[1], *of_measures]
    assert [axes.get_title() for axes in figure.axes[:3]] == ["picture", "gradient\nchannels", "grad-cam"]


def test_without_pictures_a_sentence_stands_in_the_place_of_the_figure():
    assert "No picture was explained" in saliency([], "textures").texts[0].get_text()
