"""Checks of datasets: their declarations, and what they read from the publishers' files."""

from collections.abc import Iterator, Sequence
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.config.recipes import Preparation, Training
from plumbline.conformance.declarations import TASKS, check_documentation, check_recipe
from plumbline.conformance.notes import Checked, Unchecked, type_name
from plumbline.data.corpus import Corpus
from plumbline.data.images import ImageCorpus, prepare_images
from plumbline.data.prepare import prepare
from plumbline.data.sources import missing_files
from plumbline.errors import nearest
from plumbline.registry import Declaration, holds, load

# What the evidence of a dataset may be.
EVIDENCE = ("", "rule", "human")


def check_dataset(declaration: Declaration, raw: Path | None = None) -> Iterator[str]:
    """A dataset declares its source and licence; given the folder of its files, it is read too."""
    yield from check_documentation(declaration, "source", "licence")
    if declaration.task not in TASKS:
        yield f"its task is '{declaration.task}'; {nearest(declaration.task, TASKS)}"
        return
    if declaration.evidence not in EVIDENCE:
        yield f"its declaration states evidence={declaration.evidence!r}; it must be 'rule', 'human' or absent."
    wrong = [*check_recipe(Preparation, declaration, "preparation"), *check_recipe(Training, declaration, "training")]
    wrong += check_recipe(Training, declaration, "subword_training")
    yield from wrong
    if not callable(load(declaration.pointer)):
        yield "it is not callable."
    elif raw is not None and not wrong:
        yield from _check_reading(declaration, raw)


def _check_reading(declaration: Declaration, raw: Path) -> Iterator[str]:
    """The corpus can be prepared, and is the same when it is read again."""
    options = declaration.defaults
    if declaration.required:
        yield Unchecked(f"it was not read: a config must set its options {', '.join(declaration.required)}")
        return
    files = {key: path.format(**options) for key, path in declaration.files.items() if holds(key, options)}
    lacking = missing_files(declaration.name, files, raw, declaration.source)
    if lacking:
        yield Unchecked(f"it was not read: {lacking}")
        return
    recipe = Preparation(**declaration.preparation)
    read = partial(load(declaration.pointer), raw, recipe.seed, **options)
    corpus = read()
    if not isinstance(corpus, Corpus | ImageCorpus):
        yield f"it returns {type_name(corpus)}; end with `return Corpus(examples, classes)`."
        return
    wrong = list(_check_examples(corpus))
    if wrong:
        yield from wrong
        return
    if isinstance(corpus, ImageCorpus):
        prepare_images(corpus, recipe, declaration.name, declaration.counts, declaration.task)
        count, what = len(corpus.images), "images"
    else:
        prepare(corpus, recipe, declaration.name, declaration.counts, declaration.task, declaration.evidence)
        count, what = len(corpus.examples), "texts"
    if not _same_corpus(corpus, read()):
        yield "it returns different data when it is read again; draw random numbers only from its `seed`."
    yield Checked(f"{count} {what}")


def _check_examples(corpus: Corpus | ImageCorpus) -> Iterator[str]:
    """Labels are class indices and texts are lists of words; the first fault is reported."""
    examples: Sequence[Any] = corpus.images if isinstance(corpus, ImageCorpus) else corpus.examples
    for i, example in enumerate(examples):
        if not isinstance(example.label, Integral):
            yield f"the label of text {i} is {example.label!r}; return the index of its class, from 0."
            return
        texts = {name: getattr(example, name, None) for name in ("tokens", "pair")}
        for name, words in texts.items():
            if words is not None and not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
                yield f"the `{name}` of text {i} are {type_name(words)}; return a list of words, each a str."
                return


def _same_corpus(first: Corpus | ImageCorpus, second: Corpus | ImageCorpus) -> bool:
    if isinstance(first, Corpus) or isinstance(second, Corpus):
        return first == second
    pairs = zip(first.images, second.images, strict=False)
    return len(first.images) == len(second.images) and all(
        (a.split, a.label) == (b.split, b.label) and np.array_equal(a.pixels, b.pixels) for a, b in pairs
    )
