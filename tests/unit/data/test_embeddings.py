"""Word vectors: each kind, words without a vector, coverage, and damaged files."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from plumbline.config.recipes import Embedding
from plumbline.data.embeddings import embed, second_vectors, word2vec_epochs
from plumbline.data.vocabulary import SPECIALS
from plumbline.errors import PlumblineError

WORDS = [*SPECIALS, "good", "bad", "rare"]
TOKENS = [["good", "bad", "good"], ["good", "unlisted"]]


def from_file(raw: Path, content: str | bytes, name: str = "vectors.txt", dimensions: int = 2) -> np.ndarray:
    (raw / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    recipe = Embedding(kind="file", path=name, dimensions=dimensions)
    return embed(WORDS, TOKENS, recipe, raw)[0]


@pytest.mark.parametrize(
    "content",
    [
        "the 9 9\ngood .27 -.5\n. . . 7 7\nbad 1e-1 -2\n",  # GloVe: no header, words with spaces, bare points
        "3 2\nthe 9 9 \ngood 0.27 -0.5 \nbad 0.1 -2 \n",  # fastText: header, a space at the end of lines
        "good 0.27 -0.5\r\nbad 0.1 -2\r\ngood 5 5",  # the first of two vectors counts; no end of line at the end
        "<unk> 9 9\n<sos> 9 9\ngood 0.27 -0.5\n2 0.1 0.2\nbad 0.1 -2\n",  # specials and numbers as words
    ],
)
def test_formats_of_vector_files(tmp_path: Path, content: str) -> None:
    expected = np.zeros((8, 2), dtype=np.float32)
    expected[5:7] = [[0.27, -0.5], [0.1, -2]]
    matrix = from_file(tmp_path, content)
    assert matrix.dtype == np.float32
    np.testing.assert_array_equal(matrix, expected)


def test_coverage_counts_types_and_training_tokens(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("good 1 2\n")
    _, record = embed(WORDS, TOKENS, Embedding(kind="file", path="v.txt", dimensions=2), tmp_path)
    assert record == {
        "kind": "file",
        "path": "v.txt",
        "dimensions": 2,
        "seed": 0,
        "missing": "zeros",
        "types": 3,
        "types_found": 1,
        "types_found_share": pytest.approx(1 / 3),
        "training_tokens_found_share": pytest.approx(3 / 5),
    }


def test_words_without_a_vector(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("good" + " 3" * 50 + "\n")
    words = [*SPECIALS, "good", *(f"rare{n}" for n in range(2000))]
    rows = {}
    for missing in ("zeros", "normal", "uniform"):
        recipe = Embedding(kind="file", path="v.txt", dimensions=50, missing=missing)
        matrix, _ = embed(words, TOKENS, recipe, tmp_path)
        assert not matrix[0].any()
        assert (matrix[5] == 3).all()
        rows[missing] = np.delete(matrix, [0, 5], axis=0)
        np.testing.assert_array_equal(matrix, embed(words, TOKENS, recipe, tmp_path)[0])
    assert not rows["zeros"].any()
    assert rows["normal"].std() == pytest.approx(1, abs=0.02)
    assert np.abs(rows["uniform"]).max() <= 0.05
    assert rows["uniform"].std() == pytest.approx(0.1 / 12**0.5, abs=0.001)


def test_words_without_a_vector_are_drawn_like_those_that_have_one(tmp_path: Path) -> None:
    """One mean and one deviation over all numbers: 0.5 and 1.5 here, though the two dimensions differ in both."""
    (tmp_path / "v.txt").write_text("good 1 2\nbad -2 1\nelsewhere 900 900\n")
    words = [*SPECIALS, "good", "bad", *(f"rare{n}" for n in range(20000))]
    recipe = Embedding(kind="file", path="v.txt", dimensions=2, missing="like-found")
    matrix, record = embed(words, TOKENS, recipe, tmp_path)
    assert matrix.dtype == np.float32 and record["missing"] == "like-found"
    np.testing.assert_array_equal(matrix[[0, 5, 6]], [[0, 0], [1, 2], [-2, 1]])
    drawn = np.delete(matrix, [0, 5, 6], axis=0)
    np.testing.assert_allclose(drawn.mean(axis=0), 0.5, atol=0.05)
    np.testing.assert_allclose(drawn.std(axis=0), 1.5, atol=0.05)
    assert matrix[1:5].all(), "UNK is a word without a vector, and so are the other specials"
    np.testing.assert_array_equal(matrix, embed(words, TOKENS, recipe, tmp_path)[0])
    np.testing.assert_array_equal(second_vectors(matrix, recipe), matrix)


def test_like_found_needs_a_found_vector(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("elsewhere 1 2\n")
    with pytest.raises(
        PlumblineError, match=(r"'like-found', but the file has no vector for any word of the vocabulary")
    ):
        embed(WORDS, TOKENS, Embedding(kind="file", path="v.txt", dimensions=2, missing="like-found"), tmp_path)
    matrix, _ = embed(WORDS, TOKENS, Embedding(kind="file", path="v.txt", dimensions=2), tmp_path)
    assert matrix.shape == (len(WORDS), 2) and not matrix.any()


def test_random_vectors_are_standard_normal_and_follow_the_seed(tmp_path: Path) -> None:
    words = [*SPECIALS, *(f"w{n}" for n in range(2000))]
    matrix, record = embed(words, TOKENS, Embedding(kind="random", dimensions=50, seed=3), tmp_path)
    assert matrix.dtype == np.float32 and matrix.shape == (2005, 50)
    assert not matrix[0].any() and matrix[1:].any(axis=1).all()
    assert matrix[1:].mean() == pytest.approx(0, abs=0.02) and matrix[1:].std() == pytest.approx(1, abs=0.02)
    assert record == {"kind": "random", "dimensions": 50, "seed": 3}
    np.testing.assert_array_equal(matrix, embed(words, TOKENS, Embedding(dimensions=50, seed=3), tmp_path)[0])
    assert (matrix[1:] != embed(words, TOKENS, Embedding(dimensions=50, seed=4), tmp_path)[0][1:]).any()


@pytest.mark.parametrize("kind", ["random", "file"])
def test_a_scale_applies_to_all_vectors(tmp_path: Path, kind: str) -> None:
    (tmp_path / "v.txt").write_text("good 3 4\n")
    found = {}
    for scale in (1, 0.25):
        recipe = Embedding(kind=kind, path="v.txt", dimensions=2, missing="normal", scale=scale)
        matrix, record = embed(WORDS, TOKENS, recipe, tmp_path)
        found[scale] = np.stack([matrix, second_vectors(matrix, recipe)])
        assert found[scale].dtype == np.float32 and not found[scale][:, 0].any() and found[scale][:, 1:].all()
        assert record.get("scale", 1) == scale
    np.testing.assert_array_equal(found[0.25], found[1] / 4)
    assert (found[1][0] == found[1][1]).all() == (kind == "file"), "second texts have another draw"
    assert kind == "random" or found[0.25][0, 5].tolist() == [0.75, 1]


WORD2VEC = """
import hashlib
from pathlib import Path
from plumbline.config.recipes import Embedding
from plumbline.data.embeddings import embed
from plumbline.data.vocabulary import SPECIALS
texts = [f"word{n % 7} follows word{n % 11} and once{n}".split() for n in range(400)]
words = [*SPECIALS, *sorted({word for text in texts for word in text})]
matrix, record = embed(words, texts, Embedding(kind="word2vec", dimensions=8, seed=5), Path())
print(hashlib.sha256(matrix.tobytes()).hexdigest(), record["types_found"], record["passes"], matrix[:5].any())
"""


@pytest.mark.skipif(find_spec("gensim") is None, reason="gensim is not installed")
def test_trained_vectors_are_the_same_in_every_process() -> None:
    # Side by side, because importing gensim is most of the time.
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WORD2VEC],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    printed = {process.communicate()[0] for process in processes}
    assert len(printed) == 1
    # Eleven numbered words, `follows` and `and` stand more than once; the specials stay zeros.
    assert printed.pop().split()[1:] == ["13", "100", "False"]


def test_small_corpora_get_more_epochs() -> None:
    assert [word2vec_epochs(tokens) for tokens in (1, 100_000, 1_000_000, 100_000_000)] == [100, 50, 5, 5]


def test_training_vectors_needs_a_repeated_word(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"no word occurs twice in the training texts: set `embedding\.kind` to"):
        embed(WORDS, [["good", "bad"]], Embedding(kind="word2vec", dimensions=2), tmp_path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            "the 9 9\ngood 1 2\nbad 1",
            ", line 3, hold 1 values, not 2: the file is truncated or damaged, download it again.",
        ),
        ("the 9 9\n\n", ", line 2, hold 0 values, not 2: the file is truncated or damaged, download it again."),
        (
            "5 2\nthe 9 9\ngood 1 2\n",
            " declare 5 words in line 1 but end after 2, in line 3: the file is truncated, download it again.",
        ),
        ("5 2\n", " hold no word: the file is truncated, download it again."),
        ("", " hold no word: the file is truncated, download it again."),
        (
            b"the 9 9\ng\xff\xfeod 1 2\n",
            ", line 2, are not UTF-8 text: unpack the file if it is compressed, or download it again if it is damaged.",
        ),
        (
            "the 1 2 3\ngood 1 2 3\n",
            ", line 1, have 3 values per word, but `dimensions` of the embedding is 2: "
            "set it to 3 or name another file.",
        ),
        (
            "7 300\nthe 1 2 3\n",
            ", line 1, have 300 values per word, but `dimensions` of the embedding is 2: "
            "set it to 300 or name another file.",
        ),
        (
            "the 9 9\ngood 1 x\n",
            ", line 2, hold a value that is not a finite number: the file is damaged, download it again.",
        ),
        (
            "the 9 9\ngood 1 nan\n",
            ", line 2, hold a value that is not a finite number: the file is damaged, download it again.",
        ),
    ],
)
def test_damaged_files_are_refused_in_one_sentence(tmp_path: Path, content: str | bytes, sentence: str) -> None:
    with pytest.raises(PlumblineError) as caught:
        from_file(tmp_path, content)
    assert str(caught.value) == f"The word vectors '{tmp_path / 'vectors.txt'}'{sentence}"


@pytest.mark.parametrize(
    ("name", "publisher"),
    [
        ("vectors/glove.840B.300d.txt", "the Stanford GloVe page, https://nlp.stanford.edu/projects/glove/"),
        ("vectors/wiki-news-300d-1M.vec", "fastText, https://fasttext.cc/docs/en/english-vectors.html"),
        ("vectors/wiki.simple.vec", "fastText, https://fasttext.cc/docs/en/pretrained-vectors.html"),
        ("vectors/crawl-300d-2M.vec", "fastText, https://fasttext.cc/docs/en/english-vectors.html"),
        ("vectors/cc.en.300.vec", "fastText, https://fasttext.cc/docs/en/crawl-vectors.html"),
        ("mine.txt", "their publisher"),
    ],
)
def test_a_missing_file_is_named_with_its_publisher_and_path(tmp_path: Path, name: str, publisher: str) -> None:
    with pytest.raises(PlumblineError) as caught:
        embed(WORDS, TOKENS, Embedding(kind="file", path=name), tmp_path)
    assert str(caught.value) == (
        f"The word vectors '{name}' are not in the folder '{tmp_path}': "
        f"get them from {publisher} and put them at '{tmp_path / name}'."
    )


def test_a_file_without_a_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"`embedding.kind` is 'file', but `embedding.path` is missing"):
        embed(WORDS, TOKENS, Embedding(kind="file"), tmp_path)
