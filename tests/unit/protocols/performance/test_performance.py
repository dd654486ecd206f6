"""Performance metrics compared with scikit-learn."""

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from plumbline.training.performance import PERFORMANCE_METRICS, midranks

CASES = [(classes, rows, rounded) for classes in (2, 3, 7) for rows in (9, 200) for rounded in (False, True)]


def drawn(classes: int, rows: int, rounded: bool) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, some of them equal if rounded, and labels of every class; better than chance."""
    random = np.random.default_rng(rows + classes)
    labels = np.concatenate([np.arange(classes), random.integers(classes, size=rows - classes)])
    scores = random.random((rows, classes)) + 0.3 * np.eye(classes)[labels]
    probabilities = scores / scores.sum(1, keepdims=True)
    return (np.round(probabilities, 1) if rounded else probabilities).astype(np.float32), labels


@pytest.mark.parametrize(("classes", "rows", "rounded"), CASES)
def test_metrics_equal_scikit_learn(classes, rows, rounded):
    probabilities, labels = drawn(classes, rows, rounded)
    predicted = probabilities.argmax(1)
    average = "binary" if classes == 2 else "macro"
    if classes > 2:
        # scikit-learn rejects rows that do not sum to 1, which does not matter for one class versus the rest.
        areas = [roc_auc_score(labels == class_, probabilities[:, class_]) for class_ in range(classes)]
    expected = {
        "accuracy": accuracy_score(labels, predicted),
        "f1": f1_score(labels, predicted, average=average, zero_division=0),
        "macro_f1": f1_score(labels, predicted, average="macro", zero_division=0),
        "roc_auc": roc_auc_score(labels, probabilities[:, 1]) if classes == 2 else np.mean(areas),
    }
    assert {name: PERFORMANCE_METRICS[name](probabilities, labels) for name in expected} == pytest.approx(expected)


def test_classes_without_labels_or_predictions():
    probabilities, labels = np.eye(4, dtype=np.float32)[[0, 0, 1, 1]], np.array([0, 0, 0, 1])
    macro_f1 = PERFORMANCE_METRICS["macro_f1"](probabilities, labels)
    assert (
        macro_f1 == pytest.approx(f1_score(labels, [0, 0, 1, 1], average="macro")) == pytest.approx((0.8 + 2 / 3) / 2)
    )
    assert np.isnan(PERFORMANCE_METRICS["roc_auc"](probabilities, labels))
    never = np.array([[0.9, 0.1], [0.8, 0.2]], dtype=np.float32)
    assert PERFORMANCE_METRICS["f1"](never, np.array([0, 0])) == 0.0


def test_equal_values_share_the_mean_of_their_ranks():
    values = np.array([3.0, 1.0, 3.0, 2.0, 3.0])
    assert midranks(values).tolist() == rankdata(values).tolist() == [4, 1, 4, 2, 4]
