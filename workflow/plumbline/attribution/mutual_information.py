"""Mutual information of words and classes in the training texts: importances that no model has a part in."""

from collections.abc import Sequence

import numpy as np
from scipy.special import xlogy

from plumbline.attribution.importances import Importances
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


def texts_with(words: Sequence[np.ndarray], classes: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """How many texts of each class hold each word, however often, in this shape [V, C]. classes: [texts]."""
    owners = np.repeat(np.arange(len(words)), [len(text) for text in words])
    # Sorted, because np.unique, which hashes, takes many times as long.
    pairs = np.sort(owners * shape[0] + np.concatenate(words))
    texts, held = np.divmod(pairs[np.diff(pairs, prepend=-1) > 0], shape[0])
    return np.bincount(held * shape[1] + classes[texts], minlength=shape[0] * shape[1]).reshape(shape)


def information(with_word: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """MI(w, y) in bits, [V, C], of a word's presence in a text and of whether its class is y.

    with_word: [V, C] texts of each class that hold each word; texts: [C] texts of each class.
    """
    n = texts.sum()
    others, holding, without_word = n - texts, with_word.sum(1, keepdims=True), texts - with_word
    lacking = n - holding
    cells = [
        (with_word, holding, texts),
        (holding - with_word, holding, others),
        (without_word, lacking, texts),
        (lacking - without_word, lacking, others),
    ]
    # Where a margin is 0, so is the cell, and what it adds.
    return sum(xlogy(cell, n * cell / np.maximum(row * column, 1)) for cell, row, column in cells) / (n * np.log(2))


@measure(
    "mutual-information",
    splits=["train"],
    range=[0, 1],
    equation="Σ_y P(y) MI(w_t, y), MI(w, y) = Σ_uc (N_uc / N) log₂(N N_uc / (N_u. N_.c))",
)
def mutual_information(evaluator: Evaluator, instances: Instances) -> Importances:
    """How much it tells about the class of a training text whether it holds the word, in bits, the same for all models.

    One more text of each class, which holds every word, is counted, so that no count of a word is 0.
    """
    words = [ids[free] for ids, free in zip(instances.ids, instances.maskable, strict=True)]
    training = np.flatnonzero(instances.split == "train")
    if not len(training):
        raise PlumblineError(
            "Mutual information is counted in training texts, but none of these is of the split 'train'."
        )
    found, classes = np.unique(instances.label[training], return_inverse=True)
    shape = (1 + int(np.concatenate(words).max(initial=0)), len(found))
    texts = 1 + np.bincount(classes)
    bits = information(1 + texts_with([words[i] for i in training], classes, shape), texts)
    scores = (bits @ (texts / texts.sum())).astype(np.float32)
    return Importances([scores[text] for text in words])
