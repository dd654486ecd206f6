"""Quora Question Pairs, on a file written in their form: tabs, and quotation marks around what needs them."""

from collections import Counter
from pathlib import Path

import pytest

from plumbline.config.recipes import Preparation
from plumbline.data.corpus import split_by_seed
from plumbline.data.datasets.quora import COLUMNS, SHARES, quora
from plumbline.data.prepare import prepare
from plumbline.errors import PlumblineError
from plumbline.registry import PAIRED, Registry

HEADING = "\t".join(COLUMNS)


def row(number: int, first: str, second: str, label: str = "0") -> str:
    return "\t".join([str(number), str(2 * number + 1), str(2 * number + 2), first, second, label])


def write(raw: Path, rows: list[str], heading: str = HEADING) -> Path:
    path = raw / "quora/quora_duplicate_questions.tsv"
    path.parent.mkdir(parents=True)
    path.write_bytes("\r\n".join([heading, *rows, ""]).encode())
    return path


def many(count: int = 40) -> list[str]:
    return [row(k, f"What is {k} ?", f"Why {k}", str(k % 2)) for k in range(count)]


def test_pairs_labels_and_words(tmp_path: Path) -> None:
    quoted = '"What is ""so called"" art?"'
    split = '"Two\tlines\n\nof one"'
    write(tmp_path, [*many(), row(40, quoted, "Isn't it art ?", "1"), row(41, split, '5" or 6"?')])
    corpus = quora(tmp_path, 0)
    assert corpus.classes == ["different", "duplicate"] and corpus.dropped == {}
    assert [e.label for e in corpus.examples] == [k % 2 for k in range(40)] + [1, 0]
    assert (corpus.examples[0].tokens, corpus.examples[0].pair) == (["What", "is", "0", "?"], ["Why", "0"])
    assert corpus.examples[40].tokens == ["What", "is", '"so', 'called"', "art?"]
    assert corpus.examples[40].pair == ["Isn't", "it", "art", "?"]
    assert (corpus.examples[41].tokens, corpus.examples[41].pair) == (
        ["Two", "lines", "of", "one"],
        ['5"', "or", '6"?'],
    )


def test_splits_are_drawn_by_the_seed_of_all_pairs(tmp_path: Path) -> None:
    write(tmp_path, many(200))
    splits = {seed: [e.split for e in quora(tmp_path, seed).examples] for seed in (0, 1)}
    assert all(Counter(drawn) == {"train": 160, "dev": 20, "test": 20} for drawn in splits.values())
    assert splits[0] == split_by_seed(200, SHARES, 0) != splits[1]


def test_the_whole_file_has_the_declared_counts() -> None:
    """The published file holds 404,290 pairs."""
    assert Counter(split_by_seed(404290, SHARES, 3)) == Registry().get("dataset", "quora").counts


def test_empty_and_long_pairs_are_dropped_and_counted(tmp_path: Path) -> None:
    rows = many(200)
    for k in range(0, 200, 10):
        rows[k] = row(k, "", "What ?", "0")
        rows[k + 1] = row(k + 1, "word " * 150, "word " * 50, "1")
        rows[k + 2] = row(k + 2, "word " * 150, "word " * 49, "0")
    write(tmp_path, rows)
    declaration = Registry().get("dataset", "quora")
    recipe = Preparation(**declaration.preparation)
    summary = prepare(quora(tmp_path, 0), recipe, "quora", declaration.counts, declaration.task).summary
    assert {reason: sum(counts.values()) for reason, counts in summary["dropped"].items()} == (
        {"no words": 20, "length filter": 20}
    )
    assert max(split["longest"] for split in summary["splits"].values()) == 150
    assert summary["partial"] == {
        "train": {"texts": 160, "published": 323432},
        "dev": {"texts": 20, "published": 40429},
        "test": {"texts": 20, "published": 40429},
    }


@pytest.mark.parametrize("bad", ["5\t11\t12\tWhat?\tWhy?", row(5, "What?", "Why?", "yes"), row(5, "A", "B", "")])
def test_malformed_rows_are_named(tmp_path: Path, bad: str) -> None:
    path = write(tmp_path, [*many(5), bad])
    with pytest.raises(PlumblineError) as caught:
        quora(tmp_path, 0)
    assert str(caught.value) == (
        f"'{path}', line 7 does not have 6 columns with 0 or 1 in the last: download the file again."
    )


@pytest.mark.parametrize("rows", [[], many(3)])
def test_another_heading_is_refused(tmp_path: Path, rows: list[str]) -> None:
    path = write(tmp_path, rows, "test_id\tquestion1\tquestion2" if rows else "")
    with pytest.raises(PlumblineError) as caught:
        quora(tmp_path, 0)
    assert str(caught.value) == (
        f"'{path}' does not start with the columns id, qid1, qid2, question1, question2, is_duplicate: download the "
        "file again."
    )


def test_declared_recipes() -> None:
    declaration = Registry().get("dataset", "quora")
    recipe = Preparation(**declaration.preparation)
    assert declaration.task == "paraphrase" and declaration.task in PAIRED
    assert (recipe.together_shorter_than, recipe.shorter_than, recipe.vocabulary_of) == (200, None, "all")
    assert (recipe.embedding.path, recipe.embedding.missing) == ("vectors/wiki-news-300d-1M.vec", "like-found")
    assert declaration.training == {"batch_size": 1024}
    assert declaration.subword_training == {"batch_size": 64, "learning_rate": 2e-5}
