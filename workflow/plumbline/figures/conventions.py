"""Conventions of figures and pages: colours and order of measures, thresholds. Imports no plotting library."""

import hashlib
from collections.abc import Iterable

import numpy as np

# With more classes the study reports all of them together.
MOST_CLASSES = 3
INK = "#22262b"
FAINT = "#6b727c"
BAR = "#5b7083"

# Okabe & Ito's colour-blind safe palette first, with a darker yellow for print. There are more measures than such
# colours, so names are always shown with them.
MEASURES = {
    "attention": "#0072B2",
    "rollout": "#00A3A3",
    "attention-flow": "#006D77",
    "attention-x-gradient": "#5C6BC0",
    "gradient": "#D55E00",
    "gradient-attached": "#E69F00",
    "input-x-gradient": "#CC79A7",
    "gradient-norm": "#A08A00",
    "gradient-vocabulary": "#B8400E",
    "lime": "#6B8E23",
    "lime-published": "#A3B86C",
    "integrated-gradient": "#56B4E9",
    "integrated-gradient-published": "#23316E",
    "integrated-gradient-pad": "#4F86C6",
    "grad-x-diff": "#C0392B",
    "deep-lift": "#7B3F00",
    "grad-shap": "#8E44AD",
    "deep-shap": "#5E3C99",
    "deep-shap-published": "#B39CD0",
    "mutual-information": "#8A1C4B",
    "leave-one-out": "#009E73",
    "occlusion": "#2E7D32",
    "selection": "#AD1457",
    "gradient-channels": "#E8590C",
    "smooth-grad": "#F59F00",
    "smooth-grad-abs": "#C9A227",
    "grad-cam": "#1098AD",
    "lime-superpixels": "#66A80F",
    "expected-gradient": "#7048E8",
    "occlusion-patch": "#2B8A3E",
    "random": "#8C8C8C",
}
# Paul Tol's muted colours, each with a lighter and a darker shade, for measures not listed above: enough that two of
# them rarely share a colour.
OTHER_MEASURES = [
    "#332288", "#7267ab", "#2f236a", "#88ccee", "#aad8ef", "#6795ac", "#44aa99", "#7bc2b6", "#397e73",
    "#117733", "#5aa071", "#175c2e", "#999933", "#b7b76d", "#73732d", "#ddcc77", "#e4d89e", "#a0955b",
    "#cc6677", "#d9949f", "#96505c", "#882255", "#ab6789", "#6a2246", "#aa4499", "#c27db7", "#7f3974",
]  # fmt: skip
MUTED = OTHER_MEASURES[::3]
# Paul Tol's high-contrast colours first: they differ where two histograms overlap, and in grey.
CLASSES = [
    "#DDAA33", "#004488", "#BB5566", "#66CCEE", "#228833", "#AA3377", "#EE7733", "#44AA99", "#7E6148", "#777777",
]  # fmt: skip
# The colour of adversarial attention.
ADVERSARY = "#B3432B"
# The name of the second text of each task.
SECOND_TEXTS = {"question answering": "question", "inference": "hypothesis", "paraphrase": "second question"}
# A model uses the manipulation if one that does not would reach its accuracy with a lower probability than this.
ALPHA = 0.001
# The percentile of an image's saliency map that is drawn at full strength, since single pixels outshine all others.
BRIGHTEST = 99.0


def measure_colour(measure: str) -> str:
    """The colour of a measure, the same in every figure and on the page."""
    if measure in MEASURES:
        return MEASURES[measure]
    # Python's own hash differs between processes.
    return OTHER_MEASURES[int(hashlib.sha256(measure.encode()).hexdigest(), 16) % len(OTHER_MEASURES)]


def class_colour(index: int) -> str:
    """The colour of a predicted class."""
    return CLASSES[index % len(CLASSES)]


def ordered(measures: Iterable[str], last: str = "") -> list[str]:
    """Measures in the order of all figures: those of MEASURES first, then the others by name, then `last`."""
    ranks = {name: rank for rank, name in enumerate(MEASURES)}
    return sorted(set(measures), key=lambda name: (name == last, ranks.get(name, len(ranks)), name))


def reference_measure(measures: Iterable[str], preferred: str = "attention") -> str:
    """The measure that all others are compared with: attention or, for a model without it, the first one."""
    names = ordered(measures)
    return preferred if preferred in names else names[0]


def brightest(scores: np.ndarray) -> float:
    """The absolute score of a saliency map that is drawn at full strength."""
    strength = np.abs(scores)
    return float(np.percentile(strength, BRIGHTEST) or strength.max() or 1.0)
