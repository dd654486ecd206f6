"""All checks of a folder of results."""

from pathlib import Path

import torch

from tests.oracle.agreement import check_agreement
from tests.oracle.check import Checks
from tests.oracle.importances import check_ids, check_importances, check_predictions
from tests.oracle.store import Results

# So many texts of each seed, and of each split, are computed anew.
LIMIT = 60


def run(folder: Path, limit: int = LIMIT) -> Checks:
    """Compute a study anew from what it has stored, and compare."""
    torch.set_num_threads(1)
    results, checks = Results(folder), Checks()
    check_ids(results, checks)
    check_predictions(results, checks, limit)
    check_importances(results, checks, limit)
    check_agreement(results, checks, {})
    return checks
