"""Random importances: the baseline that every measure is compared with."""

import numpy as np

from plumbline.attribution.importances import Importances
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


@measure(
    "random",
    covers=["pair", "specials"],
    pixels=True,
    cheap=True,
    stochastic=True,
    range=[0, 1],
    equation="U(0, 1)",
    cost="No pass through the model.",
    misleads="It explains nothing: it is the level that every other measure must exceed. In a single short text it "
    "may rank words correctly by chance.",
    citation="Hooker, Erhan, Kindermans & Kim (2019), A Benchmark for Interpretability Methods in Deep Neural "
    "Networks. NeurIPS.",
)
def random(evaluator: Evaluator, instances: Instances) -> Importances:
    """A uniform random number per token, from the seed and the instance alone, so that order and batch do not matter.

    Words come first in the random stream, then those of a second text, then special tokens.
    """
    drawn: list[list[np.ndarray]] = [[], [], []]
    for i, words in enumerate(instances.maskable):
        pair_words = np.empty(0, dtype=bool) if instances.pair is None else instances.pair_words(i)
        generator = instances.generator(i, evaluator.seed)
        counts = words.sum(), pair_words.sum(), (~words).sum() + (~pair_words).sum()
        for part, count in zip(drawn, counts, strict=True):
            part.append(generator.random(int(count)).astype(np.float32))
    scores, pair, specials = drawn
    return Importances(scores, None, None if instances.pair is None else pair, specials)
