"""All checks of a folder of results."""

from pathlib import Path

import torch

from tests.oracle.agreement import check_agreement
from tests.oracle.attention import check_adversaries, check_adversary_models, check_permutation, check_seed_variance
from tests.oracle.card import check_meta, check_performance, check_scorecard
from tests.oracle.check import Checks
from tests.oracle.importances import check_ids, check_importances, check_predictions
from tests.oracle.masking import check_curves, check_masks
from tests.oracle.store import Results
from tests.oracle.truth import check_erasure, check_ground_truth

# So many texts of each seed, and of each split, are computed anew by the models.
LIMIT = 24


def run(folder: Path, limit: int = LIMIT) -> Checks:
    """Compute a study anew from what it has stored, and compare."""
    torch.set_num_threads(1)
    results, checks = Results(folder), Checks()
    check_ids(results, checks)
    check_predictions(results, checks, limit)
    scored, at_chance = check_performance(results, checks)
    check_importances(results, checks, limit)
    check_agreement(results, checks, at_chance)
    check_permutation(results, checks, at_chance, limit)
    check_adversaries(results, checks, at_chance, limit)
    check_seed_variance(results, checks, at_chance, limit)
    check_adversary_models(results, checks, at_chance)
    check_masks(results, checks)
    check_curves(results, checks, scored, at_chance)
    check_ground_truth(results, checks, at_chance)
    check_erasure(results, checks, at_chance, limit)
    check_scorecard(results, checks)
    check_meta(results, checks)
    return checks
