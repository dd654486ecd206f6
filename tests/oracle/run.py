"""All checks of a folder of results."""

from collections.abc import Callable, Collection
from pathlib import Path

import torch

from tests.oracle.agreement import check_agreement
from tests.oracle.attention import check_adversaries, check_adversary_models, check_permutation, check_seed_variance
from tests.oracle.card import check_meta, check_performance, check_scorecard
from tests.oracle.check import Checks
from tests.oracle.erasure import check_erasure
from tests.oracle.evidence import check_evidence
from tests.oracle.importances import check_ids, check_importances, check_predictions
from tests.oracle.masking import check_curves, check_masks
from tests.oracle.store import Results
from tests.oracle.truth import check_ground_truth

# The number of texts of each seed and split that the models recompute.
LIMIT = 6


def run(folder: Path, limit: int = LIMIT, parts: Collection[str] = ()) -> Checks:
    """Recompute a study, or parts of it, from its stored results, and compare."""
    torch.set_num_threads(1)
    results, checks = Results(folder), Checks()
    scored, at_chance = check_performance(results, checks)
    every: dict[str, Callable[[], None]] = {
        "ids": lambda: check_ids(results, checks),
        "predictions": lambda: check_predictions(results, checks, limit),
        "importances": lambda: check_importances(results, checks, limit),
        "agreement": lambda: check_agreement(results, checks, at_chance),
        "permutation": lambda: check_permutation(results, checks, at_chance, limit),
        "adversaries": lambda: check_adversaries(results, checks, at_chance, limit),
        "seed variance": lambda: check_seed_variance(results, checks, at_chance, limit),
        "adversary": lambda: check_adversary_models(results, checks, at_chance),
        "masks": lambda: check_masks(results, checks),
        "curves": lambda: check_curves(results, checks, scored, at_chance),
        "ground truth": lambda: check_ground_truth(results, checks, at_chance),
        "evidence": lambda: check_evidence(results, checks, at_chance),
        "erasure": lambda: check_erasure(results, checks, at_chance, limit),
        "scorecard": lambda: check_scorecard(results, checks),
        "meta": lambda: check_meta(results, checks),
    }
    for part in parts or every:
        every[part]()
    return checks
