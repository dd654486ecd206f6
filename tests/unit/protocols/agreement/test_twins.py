"""Measures that rank alike are found, whatever the scale of their scores."""

import numpy as np
import pytest

from plumbline.attribution.files import first_importances, write_importances
from plumbline.protocols.agreement.twins import INSTANCES, twins_among, twins_of

RANDOM = np.random.default_rng(0)
TEXTS = [RANDOM.random(length).astype(np.float32) for length in RANDOM.integers(2, 30, size=40)]


def test_a_positive_factor_of_each_text_makes_a_twin():
    scaled = [row * RANDOM.uniform(0.1, 9) for row in TEXTS]
    other = [RANDOM.random(len(row)) for row in TEXTS]
    found = twins_among({"one": TEXTS, "other": other, "scaled": scaled, "again": [row**3 for row in TEXTS]})
    assert found == {"scaled": "one", "again": "one"}


def test_much_alike_is_no_twin():
    near = [row + 0.05 * RANDOM.random(len(row)) for row in TEXTS]
    assert twins_among({"one": TEXTS, "near": near}) == {}


def test_rounding_of_a_few_words_does_not_hide_a_twin():
    """One of a hundred texts with two words the other way round."""
    long = [np.arange(50.0) for _ in range(20)]
    swapped = [row.copy() for row in long]
    swapped[0][[3, 4]] = swapped[0][[4, 3]]
    assert twins_among({"one": long, "swapped": swapped}) == {"swapped": "one"}


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_texts_without_an_order_do_not_count(odd):
    flat = [np.zeros(5)] * 10
    assert twins_among({"one": [RANDOM.random(5) for _ in flat], "flat": flat}) == {}
    assert twins_among({"one": [np.full(5, odd)] * 3, "two": [np.full(5, odd)] * 3}) == {}


def test_of_pictures_some_pixels_are_compared():
    pictures = [RANDOM.random(3000) for _ in range(5)]
    other = [RANDOM.random(3000) for _ in range(5)]
    assert twins_among({"one": pictures, "twice": [2 * row for row in pictures], "other": other}) == {"twice": "one"}


def write(path, rows, seeds=1, order=None):
    order = range(len(rows)) if order is None else order
    columns = {
        "seed": [seed for seed in range(seeds) for _ in rows],
        "split": ["test"] * (seeds * len(rows)),
        "instance": [i for _ in range(seeds) for i in order],
        "scores": [rows[i] for _ in range(seeds) for i in order],
    }
    write_importances(path, {path.name: columns})


def test_files_are_compared_instance_by_instance(tmp_path):
    turned = list(reversed(range(len(TEXTS))))
    write(tmp_path / "one", TEXTS)
    write(tmp_path / "turned", [2 * row for row in TEXTS], order=turned)
    assert twins_of({"one": tmp_path / "one", "turned": tmp_path / "turned"}) == {"turned": "one"}
    assert twins_of({"one": tmp_path / "one"}) == {} and twins_of({}) == {}


def test_only_the_first_rows_are_read(tmp_path):
    write(tmp_path / "one", TEXTS * 5, seeds=2)
    table = first_importances(tmp_path / "one", "one", ["seed", "instance"], INSTANCES)
    assert len(table) == INSTANCES and set(table["seed"].to_pylist()) == {0}
    write(tmp_path / "none", [])
    assert len(first_importances(tmp_path / "none", "none", ["seed", "scores"], INSTANCES)) == 0
