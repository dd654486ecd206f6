"""Twins are found whatever the scale of their scores."""

import numpy as np
import pytest

from plumbline.attribution.files import first_importances, write_importances
from plumbline.protocols.agreement.twins import INSTANCES, find_twins, find_twins_in_files

RANDOM = np.random.default_rng(0)
TEXTS = [RANDOM.random(length).astype(np.float32) for length in RANDOM.integers(2, 30, size=40)]


def test_a_positive_factor_of_each_text_makes_a_twin():
    scaled = [row * RANDOM.uniform(0.1, 9) for row in TEXTS]
    other = [RANDOM.random(len(row)) for row in TEXTS]
    twins = find_twins({"one": TEXTS, "other": other, "scaled": scaled, "again": [row**3 for row in TEXTS]})
    assert twins == {"scaled": "one", "again": "one"}


def test_similar_measures_are_not_twins():
    near = [row + 0.05 * RANDOM.random(len(row)) for row in TEXTS]
    assert find_twins({"one": TEXTS, "near": near}) == {}


def test_rounding_of_a_few_words_does_not_hide_a_twin():
    """One text of twenty has two words swapped."""
    long = [np.arange(50.0) for _ in range(20)]
    swapped = [row.copy() for row in long]
    swapped[0][[3, 4]] = swapped[0][[4, 3]]
    assert find_twins({"one": long, "swapped": swapped}) == {"swapped": "one"}


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_constant_and_non_finite_texts_are_ignored(odd):
    flat = [np.zeros(5)] * 10
    assert find_twins({"one": [RANDOM.random(5) for _ in flat], "flat": flat}) == {}
    assert find_twins({"one": [np.full(5, odd)] * 3, "two": [np.full(5, odd)] * 3}) == {}


def test_a_sample_of_the_pixels_of_images_is_compared():
    images = [RANDOM.random(3000) for _ in range(5)]
    other = [RANDOM.random(3000) for _ in range(5)]
    assert find_twins({"one": images, "twice": [2 * row for row in images], "other": other}) == {"twice": "one"}


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
    backwards = list(reversed(range(len(TEXTS))))
    write(tmp_path / "one", TEXTS)
    write(tmp_path / "reversed", [2 * row for row in TEXTS], order=backwards)
    assert find_twins_in_files({"one": tmp_path / "one", "reversed": tmp_path / "reversed"}) == {"reversed": "one"}
    assert find_twins_in_files({"one": tmp_path / "one"}) == {} and find_twins_in_files({}) == {}


def test_only_the_first_rows_are_read(tmp_path):
    write(tmp_path / "one", TEXTS * 5, seeds=2)
    table = first_importances(tmp_path / "one", "one", ["seed", "instance"], INSTANCES)
    assert len(table) == INSTANCES and set(table["seed"].to_pylist()) == {0}
    write(tmp_path / "none", [])
    assert len(first_importances(tmp_path / "none", "none", ["seed", "scores"], INSTANCES)) == 0
