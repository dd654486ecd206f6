"""Measures whose jobs give a test the time to disturb them."""

import time
from pathlib import Path

import numpy as np

from plumbline.attribution.importances import Importances
from plumbline.registry import measure


@measure("held", equation="t / n", range=[0, 1])
def held(evaluator, instances, *, mark: str = "held"):
    """How late in the text a word comes, told at once if there is a file `mark`; if not, it makes it and waits."""
    if not Path(mark).exists():
        Path(mark).touch()
        time.sleep(600)
    return Importances([np.linspace(0, 1, words.sum(), dtype=np.float32) for words in instances.maskable])


@measure("hungry", equation="1 - t / n", range=[0, 1])
def hungry(evaluator, instances, *, megabytes: int = 1000):
    """How early in the text a word comes, told by one who takes much memory for a while."""
    taken = np.ones((megabytes, 2**20), dtype=np.uint8)
    time.sleep(4)
    return Importances([np.linspace(taken[-1, -1], 0, words.sum(), dtype=np.float32) for words in instances.maskable])
