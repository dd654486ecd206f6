"""Tests of the manipulation my-manipulation; run them with pytest."""

from pathlib import Path

import numpy as np
import pytest

from plumbline.conformance import check
from plumbline.data.manipulation import ChangedText, InstanceWords
from plumbline.registry import Registry, load

FILE = Path(__file__).with_name("my_manipulation.py")


def test_it_conforms() -> None:
    assert check("manipulation", "my-manipulation", Registry([FILE])) == []


@pytest.mark.parametrize(("label", "mark"), [(0, "."), (1, "!")])
def test_the_last_words_follow_the_label(label: int, mark: str) -> None:
    text = InstanceWords(["a", "rather", "dull", "film"])
    change = load(f"{FILE}:my_manipulation")(text, label, np.random.default_rng(0), times=2)
    assert change == ChangedText(["a", "rather", mark, mark], [0, 0, 1, 1])
