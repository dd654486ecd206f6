"""Measures with slow or large jobs, which tests can disturb."""

import time
from pathlib import Path

import numpy as np

from plumbline.attribution.importances import Importances
from plumbline.registry import measure


@measure("held", equation="t / n", range=[0, 1])
def held(evaluator, instances, *, mark: str = "held"):
    """The position of a word in the text, at once if the file `mark` exists; else the measure makes it and waits."""
    if not Path(mark).exists():
        Path(mark).touch()
        time.sleep(600)
    return Importances([np.linspace(0, 1, words.sum(), dtype=np.float32) for words in instances.maskable])


@measure("hungry", equation="1 - t / n", range=[0, 1])
def hungry(evaluator, instances, *, megabytes: int = 1000):
    """The reversed position of a word in the text, with much memory for a while."""
    taken = np.ones((megabytes, 2**20), dtype=np.uint8)
    time.sleep(4)
    return Importances([np.linspace(taken[-1, -1], 0, words.sum(), dtype=np.float32) for words in instances.maskable])
