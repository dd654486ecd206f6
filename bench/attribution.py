"""LIME, integrated gradients and DeepLIFT over many texts together against Captum, one text at a time."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from data import evaluator, spread, test_texts
from sizes import Sizes
from timing import Row, seconds
from torch import nn

from plumbline.attribution.deep_lift import deep_lift
from plumbline.attribution.gradient import differentiable
from plumbline.attribution.importances import Importances
from plumbline.attribution.inputs import baseline_of, input_vectors, read
from plumbline.attribution.lime import lime
from plumbline.attribution.path import integrated_gradient_pad
from plumbline.data.instances import Instances
from plumbline.models.batch import collate
from plumbline.models.budget import USEFUL_TOKENS
from plumbline.models.evaluator import Evaluator
from plumbline.runtime.devices import arithmetic

MODEL, VOCABULARY = "bilstm-song", 16_000


class Alone(nn.Module):
    """The probabilities [N, C] that a model gives to rows of vectors [N, L, d] in the place of one text's own."""

    def __init__(self, asked: Evaluator, ids: np.ndarray, free: np.ndarray) -> None:
        super().__init__()
        self.model, self.batch = asked.model, collate([ids], [free], asked.device)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        return read(self.model, self.batch.repeat(len(vectors)), vectors).logits.softmax(-1)


# What Captum gives to the tokens [L] of a text, from its vectors and its baseline, [1, L, d], and the class explained.
# It is imported where it is used, so that the other benchmarks run without it.
Way = Callable[[Alone, torch.Tensor, torch.Tensor, int], torch.Tensor]


def captum_lime(
    samples: int, together: int, text: Alone, vectors: torch.Tensor, nothing: torch.Tensor, target: int
) -> torch.Tensor:
    """Captum's kernel is by itself the studies': the cosine's, of width 1. `together` samples are a pass."""
    from captum._utils.models.linear_model import SkLearnRidge
    from captum.attr import Lime

    return Lime(text, interpretable_model=SkLearnRidge(alpha=1)).attribute(
        vectors,
        nothing,
        target=target,
        feature_mask=torch.arange(vectors.shape[1], device=vectors.device)[None, :, None],
        n_samples=samples,
        perturbations_per_eval=together,
        return_input_shape=False,
    )[0]


def captum_integrated_gradients(
    steps: int, text: Alone, vectors: torch.Tensor, nothing: torch.Tensor, target: int
) -> torch.Tensor:
    """All points of a text are a pass."""
    from captum.attr import IntegratedGradients

    with differentiable(text):
        found = IntegratedGradients(text).attribute(vectors, nothing, target, n_steps=steps, method="gausslegendre")
    return found[0].sum(-1)


def captum_deep_lift(text: Alone, vectors: torch.Tensor, nothing: torch.Tensor, target: int) -> torch.Tensor:
    """Its rules find no module to attach to in the model, so that this is the gradient times the difference."""
    from captum.attr import DeepLift

    # It warns of hooks that it sets and takes away again.
    with differentiable(text), warnings.catch_warnings(action="ignore"):
        return DeepLift(text).attribute(vectors, nothing, target)[0].sum(-1).detach()


def one_text_at_a_time(asked: Evaluator, instances: Instances, way: Way) -> list[np.ndarray]:
    """The scores of all tokens of each text by Captum, for the predicted class."""
    scores = []
    with arithmetic():
        for ids, free in zip(instances.ids, instances.maskable, strict=True):
            text = Alone(asked, ids, free)
            vectors, nothing = input_vectors(asked.model, text.batch), baseline_of(asked.model, text.batch, "pad")
            with torch.no_grad():
                target = int(text(vectors).argmax())
            scores.append(way(text, vectors, nothing, target).cpu().numpy())
    return scores


def all_together(
    asked: Evaluator, instances: Instances, places: np.ndarray, measure: Callable[..., Importances]
) -> list[np.ndarray]:
    """The scores of all tokens of the texts at some places by a measure of ours, which explains all texts."""
    found, scores = measure(asked, instances, sign="signed"), []
    for place in places:
        words = instances.maskable[place]
        scores.append(np.empty(len(words)))
        scores[-1][words], scores[-1][~words] = found.scores[place], found.specials[place]
    return scores


def in_turn(ways: dict[str, Callable[[], list[np.ndarray]]], turns: int) -> dict[str, tuple[float, list[np.ndarray]]]:
    """The fastest turn of each way, in seconds, and what it found."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    found: dict[str, list[np.ndarray]] = {}
    for _ in range(turns):
        for name, way in ways.items():
            taken[name].append(seconds(lambda: found.update({name: way()})))  # noqa: B023
    return {name: (min(taken[name]), found[name]) for name in ways}


def same(ours: list[np.ndarray], captums: list[np.ndarray]) -> str:
    """How far scores that must be the same are apart, as a share of the largest."""
    found = np.abs(np.concatenate(ours) - np.concatenate(captums)).max() / np.abs(np.concatenate(captums)).max()
    assert found < 1e-4, found
    return f"scores differ by at most {found:.0e} of the largest"


def alike(least: float, ours: list[np.ndarray], captums: list[np.ndarray]) -> str:
    """How scores that need not be the same correlate within a text, on average."""
    found = np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(ours, captums, strict=True)])
    assert found > least, found
    return f"scores correlate by {found:.3f}"


class Compared(NamedTuple):
    """A measure of ours, Captum's ways by name, what to check of their scores, and the turns on a CPU."""

    ours: Callable[..., Importances]
    captums: dict[str, Way]
    check: Callable[[list[np.ndarray], list[np.ndarray]], str]
    turns: int


def measures(samples: int, steps: int) -> dict[str, Compared]:
    """The measures by name."""
    limes = {
        f", {n} sample{'s'[: n > 1]} a pass": partial(captum_lime, samples, n) for n in (1, samples // 10, samples)
    }
    return {
        # Captum draws other samples.
        f"lime, {samples} samples": Compared(partial(lime, samples=samples), limes, partial(alike, 0.9), 1),
        f"integrated-gradient-pad, {steps} points": Compared(
            partial(integrated_gradient_pad, steps=steps), {"": partial(captum_integrated_gradients, steps)}, same, 3
        ),
        "grad-x-diff": Compared(partial(deep_lift, rule="gradient"), {"": captum_deep_lift}, same, 3),
        # Captum does something else.
        "deep-lift": Compared(deep_lift, {"": captum_deep_lift}, partial(alike, 0.0), 3),
    }


def rows(device: str, sizes: Sizes, prepared: list[Path]) -> Iterator[Row]:
    """The measures of Neely et al. 2022 at SST's sizes, or on test texts of prepared datasets."""
    for name, instances in test_texts(prepared, sizes.attribution.texts, 20, most=sizes.attribution.texts):
        yield from _rows(f"{MODEL}, {name}, {device}", instances, device, sizes)


def _rows(where: str, instances: Instances, device: str, sizes: Sizes) -> Iterator[Row]:
    words = max(VOCABULARY, 1 + max(int(ids.max()) for ids in instances.ids))
    asked = evaluator(MODEL, USEFUL_TOKENS[device], device, words)
    # Captum takes seconds for a text, so that a few stand for all.
    timed = sizes.attribution.timed
    places = spread(instances, timed)
    few = instances.take(places)
    for measure, compared in measures(sizes.lime, min(50, sizes.samples)).items():
        ways = {"ours": partial(all_together, asked, instances, places, compared.ours)}
        ways |= {detail: partial(one_text_at_a_time, asked, few, way) for detail, way in compared.captums.items()}
        compared.ours(asked, few)
        for way in compared.captums.values():
            one_text_at_a_time(asked, few.take([0]), way)
        told = in_turn(ways, min(sizes.turns, compared.turns) if device == "cpu" else sizes.turns)
        fast, ours = told.pop("ours")
        for detail, (taken, captums) in told.items():
            slow = taken / timed * len(instances)
            note = (
                f"{len(instances) / slow:,.1f} → {len(instances) / fast:,.1f} texts/s; {compared.check(ours, captums)}"
            )
            yield Row(f"{measure}, {where} (Captum's time from {timed} of them{detail})", slow, fast, note)
