"""What an evaluation cannot show: empty columns of the scorecard, and explanations of a model that guesses."""

from collections.abc import Sequence

import numpy as np

from plumbline.api.texts import LabelledTexts
from plumbline.config.support import scorecard_needs
from plumbline.dag.study import StudyDag
from plumbline.errors import PlumblineError
from plumbline.training.performance import above_chance, accuracy, chance_level

# A model is at chance if its accuracy exceeds chance by no more than rounding.
ROUNDING = 1e-9


def unscored_protocols(dag: StudyDag) -> list[str]:
    """A sentence about each protocol with too few measures for any of its columns; refused if that is so for all."""
    ((measures,), sentences) = dag.runs.measures.values(), []
    count, needs = scorecard_needs(dag.resolved, measures)
    for protocol, least in needs.items():
        other = ", or choose other protocols, such as ['erasure']" if count else ""
        sentences.append(
            f"`protocols` names '{protocol}', which needs {'one measure' if least == 1 else f'{least} measures'} or "
            f"more besides random, but `measures` has {count or 'none'}, so it adds no score to the scorecard: add a "
            f"measure{other}."
        )
    if sentences and len(sentences) == len(dag.study.protocols):
        raise PlumblineError(sentences[0])
    return sentences


def check_classes(texts: LabelledTexts, least_above_chance: float | None) -> list[str]:
    """A sentence about labels of one class, with which a model cannot be compared with chance."""
    if not texts.labelled or len({*texts.labels}) > 1:
        return []
    only = f"`labels` has one class only, '{texts.classes[texts.labels[0]]}'"
    if least_above_chance is not None:
        raise PlumblineError(
            f"{only}, so the accuracy cannot exceed chance, as `least_above_chance` requires: add texts of another "
            "class, or leave out `least_above_chance`."
        )
    return [
        f"{only}, so the accuracy does not show whether the model is better than guessing; add texts of another class."
    ]


def models_at_chance(
    probabilities: Sequence[np.ndarray], seeds: Sequence[int], texts: LabelledTexts, least_above_chance: float | None
) -> list[str]:
    """A sentence about the first seed whose model guesses, if any; with the probabilities [N, C] of each seed."""
    labels = np.array(texts.labels)
    if not texts.labelled or len({*texts.labels}) < 2:
        return []
    for seed, found in zip(seeds, probabilities, strict=True):
        right, chance = accuracy(found, labels), chance_level(found, labels)
        subject = (
            f"The model's accuracy is {right:.2f} on {len(labels)} texts{f' (seed {seed})' if len(seeds) > 1 else ''}"
        )
        if least_above_chance is None:
            if right <= chance + ROUNDING:
                return [
                    f"{subject}, and that of guessing {chance:.2f}: explanations of a model that guesses mean little; "
                    "`least_above_chance=0.2` leaves it out of the scorecard."
                ]
        elif above_chance(found, labels) < least_above_chance:
            return [
                f"{subject}, and that of guessing {chance:.2f}: the model is left out of the scorecard, because the "
                f"lower bound of its accuracy is less than {least_above_chance:g} of the way from chance to 1 "
                "(`least_above_chance`). Give more texts, a better model or a lower `least_above_chance`; None keeps "
                "every model."
            ]
    return []
