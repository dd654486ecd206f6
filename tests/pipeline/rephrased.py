"""A plug-in file: pairs of questions that may mean the same."""

from pathlib import Path

import numpy as np

from plumbline.data.corpus import Corpus, Example
from plumbline.registry import dataset

WORDS = ["where", "is", "john", "good", "great", "film", "football", "unbelievable"]


@dataset(
    "rephrased",
    source="nowhere, it is generated",
    licence="MIT",
    task="paraphrase",
    preparation={"embedding": {"dimensions": 8}},
)
def rephrased(raw: Path, seed: int) -> Corpus:
    """Pairs of texts with the same words in another order, or with the other words."""
    random = np.random.default_rng(seed)
    examples = []
    for split, size in {"train": 64, "dev": 16, "test": 20}.items():
        for i in range(size):
            words = random.permutation(WORDS).tolist()
            cut = int(random.integers(2, 7))
            first, rest = words[:cut], words[cut:]
            examples.append(Example(split, i % 2, first, random.permutation(first).tolist() if i % 2 else rest))
    return Corpus(examples, ["different", "same"])
