"""Performance metrics. Every metric takes probabilities [N, C] and labels [N]."""

from collections.abc import Callable, Sequence

import numpy as np

from plumbline.registry import metric


def midranks(values: np.ndarray) -> np.ndarray:
    """The rank of each of the values [N], from 1; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def _f1_of(predicted: np.ndarray, labels: np.ndarray, class_: int) -> float:
    """2 TP / (2 TP + FP + FN) of a class; 0 if it is neither predicted nor a label."""
    hits = np.sum((predicted == class_) & (labels == class_))
    of_class = np.sum(predicted == class_) + np.sum(labels == class_)
    return float(2 * hits / of_class) if of_class else 0.0


def _area(scores: np.ndarray, positive: np.ndarray) -> float:
    """P(score of a positive > score of a negative), ties counted half: the Mann-Whitney U over the number of pairs."""
    n, wins = positive.sum(), midranks(scores)[positive].sum()
    return float((wins - n * (n + 1) / 2) / (n * (len(scores) - n)))


@metric("accuracy", direction="higher", range=[0, 1], unit="share", equation="(1/N) Σ [argmax p_i = y_i]")
def accuracy(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Share of instances whose most probable class is the label."""
    return float(np.mean(probabilities.argmax(1) == labels))


@metric(
    "f1", direction="higher", range=[0, 1], unit="score", equation="2 P R / (P + R) of class 1; macro mean for C > 2"
)
def f1(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """F1 of the positive class for two classes (Jain & Wallace, Table 1), macro F1 for more."""
    if probabilities.shape[1] == 2:
        return _f1_of(probabilities.argmax(1), labels, 1)
    return macro_f1(probabilities, labels)


@metric("macro_f1", direction="higher", range=[0, 1], unit="score", equation="(1/C) Σ_c F1_c")
def macro_f1(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Mean F1 of the classes that are predicted or the label of some instance."""
    predicted = probabilities.argmax(1)
    return float(np.mean([_f1_of(predicted, labels, class_) for class_ in np.union1d(predicted, labels)]))


@metric(
    "roc_auc",
    direction="higher",
    range=[0, 1],
    unit="area",
    equation="P(p(x⁺) > p(x⁻)); one against the rest for C > 2",
)
def roc_auc(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Area under the ROC curve; NaN if the split lacks a class or a probability is not finite."""
    classes = probabilities.shape[1]
    if len(np.unique(labels)) < classes or not np.isfinite(probabilities).all():
        return float("nan")
    positives = [1] if classes == 2 else range(classes)
    return float(np.mean([_area(probabilities[:, class_], labels == class_) for class_ in positives]))


def wilson_low(hits: float, n: int, z: float = 1.959964) -> float:
    """The lower bound of Wilson's 95 % interval of the proportion `hits` / `n`."""
    share, more = hits / n, z * z / n
    return float((share + more / 2 - z * np.sqrt(share * (1 - share) / n + more / (4 * n))) / (1 + more))


def chance_level(probabilities: np.ndarray, labels: np.ndarray, answers: Sequence[np.ndarray] | None = None) -> float:
    """The accuracy of predictions that are drawn with the model's own class frequencies: Σ_c P(ŷ = c) P(y = c).

    With the possible classes A_i of each instance, `answers`, they are drawn from these: (1/N) Σ_i P(ŷ = y_i) /
    P(ŷ ∈ A_i).
    """
    predicted = probabilities.argmax(1)
    if answers is None:
        return sum(float(np.mean(predicted == c) * np.mean(labels == c)) for c in np.unique(labels))
    # The predicted class of an instance is one of its answers, so no share is 0.
    frequency = np.bincount(predicted, minlength=probabilities.shape[1]) / len(labels)
    return float(np.mean([frequency[y] / frequency[a].sum() for y, a in zip(labels, answers, strict=True)]))


@metric(
    "above_chance",
    direction="higher",
    range=[None, 1],
    unit="share",
    equation="(a - g) / (1 - g); a the lower bound of accuracy's 95 % interval (Wilson), g = Σ_c P(ŷ = c) P(y = c)",
)
def above_chance(probabilities: np.ndarray, labels: np.ndarray, answers: Sequence[np.ndarray] | None = None) -> float:
    """Accuracy rescaled so that chance is 0 and perfect is 1, at the lower bound of its interval; NaN with one class.

    Chance is that of predictions drawn with the model's own class frequencies, as in Cohen's κ; if each instance has
    possible `answers` of its own, from these.
    """
    guessed = chance_level(probabilities, labels, answers)
    if guessed >= 1:
        return float("nan")
    return (wilson_low(float(np.sum(probabilities.argmax(1) == labels)), len(labels)) - guessed) / (1 - guessed)


# Of probabilities and labels; `above_chance` also reads the possible answers of each instance.
PERFORMANCE_METRICS: dict[str, Callable[..., float]] = {
    function.__name__: function for function in (accuracy, f1, macro_f1, roc_auc, above_chance)
}
