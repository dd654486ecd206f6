"""The initial word vectors of a vocabulary: random, read from a file, or trained on the training texts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plumbline.config.recipes import Embedding
from plumbline.data.vector_file import read_vectors
from plumbline.data.vocabulary import PAD, SPECIALS
from plumbline.errors import PlumblineError

WINDOW, MINIMUM_COUNT = 10, 2  # word2vec of Jain & Wallace for MIMIC
# gensim's five epochs hardly change the vectors of a small corpus: on 8,000 film review sentences a BiLSTM was then no
# better than with random vectors. So small corpora get up to 100 epochs, until this many words were seen.
WORDS_SEEN = 5_000_000


def embed(
    words: Sequence[str], training_tokens: Sequence[Sequence[str]], recipe: Embedding, raw: Path
) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """Vectors of all words by id, [V, d] with a zero row for PAD, and a record of how many words have one.

    `words` begins with the five special tokens, which never have a pretrained vector, as in the published code.
    """
    generator = np.random.default_rng(recipe.seed)
    if recipe.kind == "random":
        matrix = generator.standard_normal((len(words), recipe.dimensions)).astype(np.float32)
        found: dict[str, NDArray[np.float32]] = {}
    else:
        found = _trained(training_tokens, recipe) if recipe.kind == "word2vec" else _read(words, recipe, raw)
        covered = [id_ for id_ in range(len(SPECIALS), len(words)) if words[id_] in found]
        vectors = np.array([found[words[id_]] for id_ in covered], dtype=np.float32).reshape(-1, recipe.dimensions)
        matrix = _filled(len(words), recipe, generator, vectors)
        matrix[covered] = vectors
    matrix[PAD] = 0
    return matrix * np.float32(recipe.scale), _coverage(words, training_tokens, found, recipe)


def second_vectors(vectors: NDArray[np.float32], recipe: Embedding) -> NDArray[np.float32]:
    """The initial vectors of second texts: a copy, or another draw where all are random."""
    if recipe.kind != "random":
        return vectors.copy()
    redrawn = np.random.default_rng([recipe.seed, 1]).standard_normal(vectors.shape).astype(np.float32)
    redrawn[PAD] = 0
    return redrawn * np.float32(recipe.scale)


def _filled(
    size: int, recipe: Embedding, generator: np.random.Generator, vectors: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Vectors [size, d] of words without a pretrained vector; `vectors` [N, d] are those of the others."""
    shape = (size, recipe.dimensions)
    if recipe.missing == "like-found":
        if not len(vectors):
            raise PlumblineError(
                "`embedding.missing` is 'like-found', but the file has no vector for any word of the vocabulary: name "
                "another file or set `embedding.missing` to 'normal'."
            )
        # One mean and one deviation over the values of all vectors, as in AllenNLP.
        mean, deviation = vectors.mean(dtype=np.float64), vectors.std(dtype=np.float64)
        return generator.normal(mean, deviation, shape).astype(np.float32)
    if recipe.missing == "normal":
        return generator.standard_normal(shape).astype(np.float32)
    if recipe.missing == "uniform":
        return generator.uniform(-0.05, 0.05, shape).astype(np.float32)
    return np.zeros(shape, dtype=np.float32)


def _read(words: Sequence[str], recipe: Embedding, raw: Path) -> dict[str, NDArray[np.float32]]:
    if not recipe.path:
        raise PlumblineError(
            "`embedding.kind` is 'file', but `embedding.path` is missing; set it to a file of word vectors."
        )
    return read_vectors(raw, recipe.path, set(words[len(SPECIALS) :]), recipe.dimensions)


def word2vec_epochs(tokens: int) -> int:
    """The epochs of word2vec on a corpus of this many words."""
    return min(max(5, ceil(WORDS_SEEN / tokens)), 100)


def train_word2vec(texts: Iterable[list[str]], dimensions: int, seed: int) -> Any:
    """gensim's CBOW vectors of all words that occur at least twice, if any. `texts` is iterated several times.

    One worker, because several would make the result depend on the order in which they finish.
    """
    from gensim.models import Word2Vec  # type: ignore[import-untyped,unused-ignore]

    model = Word2Vec(vector_size=dimensions, window=WINDOW, min_count=MINIMUM_COUNT, sg=0, workers=1, seed=seed % 2**32)
    model.build_vocab(texts)
    words = model.corpus_total_words
    if len(model.wv):
        model.train(texts, total_examples=model.corpus_count, total_words=words, epochs=word2vec_epochs(words))
    return model.wv


def _trained(training_tokens: Sequence[Sequence[str]], recipe: Embedding) -> dict[str, NDArray[np.float32]]:
    counts = Counter(word for tokens in training_tokens for word in tokens)
    if max(counts.values(), default=0) < MINIMUM_COUNT:
        raise PlumblineError(
            "Word vectors cannot be trained because no word occurs twice in the training texts: "
            "set `embedding.kind` to 'random' or 'file'."
        )
    vectors = train_word2vec([list(tokens) for tokens in training_tokens], recipe.dimensions, recipe.seed)
    return {word: vectors[word] for word in vectors.index_to_key}


def _coverage(
    words: Sequence[str],
    training_tokens: Sequence[Sequence[str]],
    found: dict[str, NDArray[np.float32]],
    recipe: Embedding,
) -> dict[str, Any]:
    record: dict[str, Any] = {"kind": recipe.kind, "dimensions": recipe.dimensions, "seed": recipe.seed}
    record |= {"scale": recipe.scale} if recipe.scale != 1 else {}
    if recipe.kind == "random":
        return record
    types = words[len(SPECIALS) :]
    covered = {word for word in types if word in found}
    tokens = Counter(word for text in training_tokens for word in text)
    with_vector = sum(count for word, count in tokens.items() if word in covered)
    origin = {"path": recipe.path} if recipe.kind == "file" else {"passes": word2vec_epochs(tokens.total())}
    return record | {
        **origin,
        "missing": recipe.missing,
        "types": len(types),
        "types_found": len(covered),
        "types_found_share": len(covered) / max(len(types), 1),
        "training_tokens_found_share": with_vector / max(tokens.total(), 1),
    }
