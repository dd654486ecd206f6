"""Splits that scikit-learn draws, against values that it gave."""

import pytest

from plumbline.data.corpus import Example, draw_dev, hold_out
from plumbline.errors import PlumblineError


def test_scikit_learn_draws_the_held_out_texts() -> None:
    assert hold_out(range(10), 0.2, 1378) == ([2, 7, 0, 5, 1, 6, 3, 9], [8, 4])
    assert hold_out(range(10), 0.8, 1378)[0] == [3, 9]


def test_held_out_texts_are_stratified() -> None:
    stays, held = hold_out(range(20), 0.2, 13478, [k % 4 == 0 for k in range(20)])
    assert (len(stays), len(held)) == (16, 4)
    assert sum(k % 4 == 0 for k in held) == 1


def test_dev_is_drawn_from_the_training_texts_in_their_order() -> None:
    test = [Example("test", 0, [str(k)]) for k in range(5)]
    training = [Example("train", 0, [str(k)]) for k in range(20)]
    drawn = draw_dev([*test, *training])
    assert drawn[:5] == test
    assert [int(example.tokens[0]) for example in drawn if example.split == "dev"] == [4, 11, 17]
    assert [example.tokens for example in drawn[5:]] == [example.tokens for example in training]


def test_one_text_cannot_be_split() -> None:
    with pytest.raises(PlumblineError) as caught:
        hold_out([1], 0.15, 0)
    assert str(caught.value) == ("A split needs two or more texts, but the files contain 1: download them again.")
