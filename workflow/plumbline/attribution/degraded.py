"""Degraded measures: other measures with a random share of their scores permuted, which protocols should find worse."""

from dataclasses import replace
from math import floor

import numpy as np

from plumbline.attribution.importances import Importances
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


@measure(
    "degraded",
    limits={"share": [0, 1]},
    required=["of", "share"],
    stochastic=True,
    equation="s_π(t) for a random share of the words, with π a random permutation of these; s_t for all others",
    cost="That of its base, which is computed once for all shares.",
    misleads="It is a control, not an explanation. Where most scores of a text tie, permuting them changes little, "
    "and a criterion rightly finds it hardly worse.",
)
def degraded(evaluator: Evaluator, instances: Instances, *, of: str = "", share: float = 1.0) -> Importances:
    """The scores of the measure `of`, of which a random share is permuted: 0 is the measure itself, 1 a permutation of
    all scores of a text. The words of a smaller share are among those of a larger one.

    Words, those of second texts and special tokens are permuted among themselves, by the seed and the instance alone.

    Options:
        of: Measure of the study to make worse, or a list of them.
        share: Share of a text's scores that are permuted, 0 to 1, or a list of shares; higher is worse.
    """
    assert evaluator.importances_of
    base = evaluator.importances_of(of)

    def permuted(part: str) -> list[np.ndarray] | None:
        rows: list[np.ndarray] | None = getattr(base, part)
        return rows and [
            degrade(scores, share, instances.generator(i, evaluator.seed, f"degraded {part}"))
            for i, scores in enumerate(rows)
        ]

    return replace(base, **{part: permuted(part) for part in ("scores", "pair", "specials")})


def degrade(scores: np.ndarray, share: float, generator: np.random.Generator) -> np.ndarray:
    """Scores [n] with a share of them, rounded half up to a whole number, permuted among themselves."""
    chosen = generator.permutation(len(scores))[: floor(share * len(scores) + 0.5)]
    result = np.array(scores)
    result[chosen] = scores[generator.permutation(chosen)]
    return result
