"""Mutual information of words and classes in the training texts: importances that depend on no model."""

from collections.abc import Sequence

import numpy as np
from scipy.special import xlogy

from plumbline.attribution.importances import Importances
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


def count_texts_with(words: Sequence[np.ndarray], classes: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The number of texts of each class that contain each word, in this shape [V, C]. classes: [texts]."""
    owners = np.repeat(np.arange(len(words)), [len(text) for text in words])
    # Sorting is many times faster than np.unique, which hashes.
    pairs = np.sort(owners * shape[0] + np.concatenate(words))
    texts, ids = np.divmod(pairs[np.diff(pairs, prepend=-1) > 0], shape[0])
    return np.bincount(ids * shape[1] + classes[texts], minlength=shape[0] * shape[1]).reshape(shape)


def information(with_word: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """MI(w, y) in bits, [V, C], of the presence of word w in a text and whether its class is y.

    with_word: [V, C] the number of texts of each class that contain each word; texts: [C] that of all texts.
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
    # Where a margin is 0, so are the cell and its term.
    return sum(xlogy(cell, n * cell / np.maximum(row * column, 1)) for cell, row, column in cells) / (n * np.log(2))


@measure(
    "mutual-information",
    splits=["train"],
    range=[0, 1],
    equation="Σ_y P(y) MI(w_t, y), MI(w, y) = Σ_uc (N_uc / N) log₂(N N_uc / (N_u. N_.c))",
    cost="No pass through the model: words are counted once in the training texts.",
    misleads="It describes the training texts, not the model: it is the same for a model that ignores the word. "
    "Words that are informative only together score 0.",
    citation=[
        "Manning, Raghavan & Schütze (2008), Introduction to Information Retrieval, section 13.5.1. Cambridge "
        "University Press.",
        "Madsen, Meade, Adlakha & Reddy (2022), Evaluating the Faithfulness of Importance Measures in NLP by "
        "Recursively Masking Allegedly Important Tokens and Retraining. Findings of EMNLP.",
    ],
)
def mutual_information(evaluator: Evaluator, instances: Instances) -> Importances:
    """The information about the class of a training text in the presence of the word, in bits; equal for all models.

    Counts include one additional text of each class that contains every word, so that no count is 0.
    """
    words = [ids[free] for ids, free in zip(instances.ids, instances.maskable, strict=True)]
    training = np.flatnonzero(instances.split == "train")
    if not len(training):
        raise PlumblineError(
            "Mutual information is estimated from training texts, but there are no texts of the split 'train'."
        )
    labels, classes = np.unique(instances.label[training], return_inverse=True)
    shape = (1 + int(np.concatenate(words).max(initial=0)), len(labels))
    texts = 1 + np.bincount(classes)
    bits = information(1 + count_texts_with([words[i] for i in training], classes, shape), texts)
    scores = (bits @ (texts / texts.sum())).astype(np.float32)
    return Importances([scores[text] for text in words])
