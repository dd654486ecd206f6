"""The cleaners, on texts whose words were found by hand."""

import pytest

pytest.importorskip("spacy")
from plumbline.data.tokenize import clean, clean_treebank, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's  a\n\tGOOD film.", ["it", "'s", "a", "good", "film", "."]),
        ("I can't wait", ["i", "ca", "n't", "wait"]),
        ("The 21st, 1.5 and A2 \u0663", ["the", "qqq", ",", "qqq", "and", "qqq", "qqq"]),
        ("\u00a0\u2003 \n", []),
        ("", []),
    ],
)
def test_generic_cleaner(text: str, expected: list[str]) -> None:
    assert clean([text]) == [expected]


def test_words_as_they_stand() -> None:
    assert list(words(["It's  a\n\tGOOD film, of 1995.", "\u00a0 \n", "The end"])) == [
        ["It", "'s", "a", "GOOD", "film", ",", "of", "1995", "."],
        [],
        ["The", "end"],
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A -LRB- very -RRB- good film .", ["a", "very", "good", "film"]),
        ("It does n't work", ["it", "does", "n", "t", "work"]),
        ("co-writer\\/director 's 21st", ["co", "writer", "director", "s", "21st"]),
        ("It can not , it cannot", ["it", "can", "not", "it", "can", "not"]),
        ("... -- !", []),
    ],
)
def test_treebank_cleaner(text: str, expected: list[str]) -> None:
    assert clean_treebank([text]) == [expected]


def test_texts_keep_their_order_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    texts = [f"text number {letter}" for letter in "abcdefghij" * 30]
    assert [cleaned[-1] for cleaned in clean(texts)] == list("abcdefghij" * 30)
    assert capfd.readouterr() == ("", "")
