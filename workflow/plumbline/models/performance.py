"""How good predictions are. Every function takes probabilities [N, C] and labels [N]."""

from collections.abc import Callable

import numpy as np
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from plumbline.registry import metric


@metric("accuracy", direction="higher", range=[0, 1], unit="share", equation="(1/N) Σ [argmax p_i = y_i]")
def accuracy(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Share of instances whose most probable class is the label."""
    return float(accuracy_score(labels, probabilities.argmax(1)))


@metric(
    "f1", direction="higher", range=[0, 1], unit="score", equation="2 P R / (P + R) of class 1; macro mean for C > 2"
)
def f1(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """F1 of the positive class for two classes (Jain & Wallace, Table 1), macro F1 for more."""
    binary = probabilities.shape[1] == 2
    return float(f1_score(labels, probabilities.argmax(1), average="binary" if binary else "macro", zero_division=0))


@metric("macro_f1", direction="higher", range=[0, 1], unit="score", equation="(1/C) Σ_c F1_c")
def macro_f1(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Mean over classes of the class's F1."""
    return float(f1_score(labels, probabilities.argmax(1), average="macro", zero_division=0))


@metric(
    "roc_auc",
    direction="higher",
    range=[0, 1],
    unit="area",
    equation="P(p(x⁺) > p(x⁻)); one against the rest for C > 2",
)
def roc_auc(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Area under the ROC curve; NaN where the split lacks a class or a probability is not finite."""
    classes = probabilities.shape[1]
    if len(np.unique(labels)) < classes or not np.isfinite(probabilities).all():
        return float("nan")
    if classes == 2:
        return float(roc_auc_score(labels, probabilities[:, 1]))
    return float(roc_auc_score(labels, probabilities.astype(np.float64), multi_class="ovr", labels=range(classes)))


PERFORMANCE: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": accuracy,
    "f1": f1,
    "macro_f1": macro_f1,
    "roc_auc": roc_auc,
}
