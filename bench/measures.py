"""Measures: batched, compared with one instance, or one position, at a time."""

from collections.abc import Iterator

import numpy as np
from data import build_evaluator, texts
from sizes import Sizes
from timing import Row, compare

from plumbline.attribution.gradient import gradient, gradients
from plumbline.attribution.leave_one_out import leave_one_out
from plumbline.data.instances import Instances, Texts
from plumbline.models.budget import USEFUL_TOKENS
from plumbline.models.evaluator import Evaluator

DEFAULT = {
    "target": "predicted", "function": "probability", "attention": "detached", "reduction": "dot", "sign": "absolute"
}  # fmt: skip
ATTACHED = DEFAULT | {"attention": "attached"}
INPUT_X_GRADIENT = ATTACHED | {"function": "logit"}
FAMILY = [DEFAULT, ATTACHED, INPUT_X_GRADIENT, INPUT_X_GRADIENT | {"reduction": "l2"}]


def one_pass_per_position(evaluator: Evaluator, instances: Instances) -> list[np.ndarray]:
    """Leave-one-out by definition: delete a word, run the model, repeat."""
    scores = []
    for ids, free in zip(instances.ids, instances.maskable, strict=True):
        before = evaluator.probabilities(Texts([ids], [free]))[0]
        after = [
            evaluator.probabilities(Texts([np.delete(ids, t)], [np.delete(free, t)]))[0] for t in np.flatnonzero(free)
        ]
        scores.append(np.abs(np.array(after) - before).sum(1))
    return scores


def rows(device: str, sizes: Sizes) -> Iterator[Row]:
    """Leave-one-out and gradients, for the encoders of Jain & Wallace at SST's sizes."""
    instances = texts(sizes.measures, 19)
    perturbed = int(sum(free.sum() for free in instances.maskable))
    for name in ("bilstm-tanh", "cnn-tanh", "average-tanh"):
        evaluator = build_evaluator(name, USEFUL_TOKENS[device], device)
        slow, fast = one_pass_per_position(evaluator, instances), leave_one_out(evaluator, instances).scores
        assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(slow, fast, strict=True))
        where = f"{name}, {len(instances)} texts of 19 words, {device}"
        yield compare(
            f"leave-one-out, {where}",
            lambda evaluator=evaluator: one_pass_per_position(evaluator, instances),
            lambda evaluator=evaluator: leave_one_out(evaluator, instances),
            sizes.turns,
            perturbed,
        )
        if name == "bilstm-tanh":
            # The plain loop is slow here, so there are only a few texts.
            reviews = texts(*sizes.reviews, exactly=True)
            yield compare(
                f"leave-one-out, {name}, {sizes.reviews.texts} texts of {sizes.reviews.words} words, {device}",
                lambda evaluator=evaluator, reviews=reviews: one_pass_per_position(evaluator, reviews),
                lambda evaluator=evaluator, reviews=reviews: leave_one_out(evaluator, reviews),
                min(sizes.turns, 2),
                sizes.reviews.texts * sizes.reviews.words,
            )
        for measure, options in (("gradient", DEFAULT), ("input x gradient", INPUT_X_GRADIENT)):
            yield compare(
                f"{measure}, {where}",
                lambda evaluator=evaluator, options=options: [
                    gradient(evaluator, instances.take([i]), **options) for i in range(len(instances))
                ],
                lambda evaluator=evaluator, options=options: gradient(evaluator, instances, **options),
                sizes.turns,
                len(instances),
            )
        yield compare(
            f"four gradient measures, one by one and from shared passes, {where}",
            lambda evaluator=evaluator: [gradient(evaluator, instances, **options) for options in FAMILY],
            lambda evaluator=evaluator: gradients(evaluator, instances, FAMILY),
            sizes.turns,
            4 * len(instances),
        )
