"""LIME, integrated gradients and DeepLIFT: batched, compared with Captum on one text at a time."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from data import build_evaluator, spread, test_texts
from sizes import Sizes
from timing import Row, seconds
from torch import nn

from plumbline.attribution.deep_lift import deep_lift
from plumbline.attribution.gradient import differentiable
from plumbline.attribution.importances import Importances
from plumbline.attribution.inputs import baseline_vectors, forward_vectors, input_vectors
from plumbline.attribution.lime import lime
from plumbline.attribution.path import integrated_gradient_pad
from plumbline.data.instances import Instances
from plumbline.models.batch import collate
from plumbline.models.budget import USEFUL_TOKENS
from plumbline.models.evaluator import Evaluator
from plumbline.runtime.devices import arithmetic

MODEL, VOCABULARY = "bilstm-song", 16_000


class SingleText(nn.Module):
    """The probabilities [N, C] of a model for vectors [N, L, d] that replace those of one text."""

    def __init__(self, evaluator: Evaluator, ids: np.ndarray, free: np.ndarray) -> None:
        super().__init__()
        self.model, self.batch = evaluator.model, collate([ids], [free], evaluator.device)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        return forward_vectors(self.model, self.batch.repeat(len(vectors)), vectors).logits.softmax(-1)


# Captum's scores of the tokens [L] of a text, from its vectors and its baseline, both [1, L, d], and the target class.
# Captum is imported where it is used, so that the other benchmarks run without it.
CaptumMethod = Callable[[SingleText, torch.Tensor, torch.Tensor, int], torch.Tensor]


def captum_lime(
    samples: int, per_pass: int, text: SingleText, vectors: torch.Tensor, baseline: torch.Tensor, target: int
) -> torch.Tensor:
    """Captum's default kernel is the published one: cosine distance, width 1. A pass has `per_pass` samples."""
    from captum._utils.models.linear_model import SkLearnRidge
    from captum.attr import Lime

    return Lime(text, interpretable_model=SkLearnRidge(alpha=1)).attribute(
        vectors,
        baseline,
        target=target,
        feature_mask=torch.arange(vectors.shape[1], device=vectors.device)[None, :, None],
        n_samples=samples,
        perturbations_per_eval=per_pass,
        return_input_shape=False,
    )[0]


def captum_integrated_gradients(
    steps: int, text: SingleText, vectors: torch.Tensor, baseline: torch.Tensor, target: int
) -> torch.Tensor:
    """All points of a text are in one pass."""
    from captum.attr import IntegratedGradients

    with differentiable(text):
        attributions = IntegratedGradients(text).attribute(
            vectors, baseline, target, n_steps=steps, method="gausslegendre"
        )
    return attributions[0].sum(-1)


def captum_deep_lift(text: SingleText, vectors: torch.Tensor, baseline: torch.Tensor, target: int) -> torch.Tensor:
    """Captum finds no module of the model for its rules, so that this is the gradient times the difference."""
    from captum.attr import DeepLift

    # Captum warns of hooks that it adds and removes.
    with differentiable(text), warnings.catch_warnings(action="ignore"):
        return DeepLift(text).attribute(vectors, baseline, target)[0].sum(-1).detach()


def one_text_at_a_time(evaluator: Evaluator, instances: Instances, method: CaptumMethod) -> list[np.ndarray]:
    """Captum's scores of all tokens of each text, for the predicted class."""
    scores = []
    with arithmetic():
        for ids, free in zip(instances.ids, instances.maskable, strict=True):
            text = SingleText(evaluator, ids, free)
            vectors, baseline = (
                input_vectors(evaluator.model, text.batch),
                baseline_vectors(evaluator.model, text.batch, "pad"),
            )
            with torch.no_grad():
                target = int(text(vectors).argmax())
            scores.append(method(text, vectors, baseline, target).cpu().numpy())
    return scores


def all_together(
    evaluator: Evaluator, instances: Instances, indices: np.ndarray, measure: Callable[..., Importances]
) -> list[np.ndarray]:
    """Our scores of all tokens of the texts at some indices; the measure explains all texts."""
    importances, scores = measure(evaluator, instances, sign="signed"), []
    for index in indices:
        words = instances.maskable[index]
        scores.append(np.empty(len(words)))
        scores[-1][words], scores[-1][~words] = importances.scores[index], importances.specials[index]
    return scores


def time_in_turn(functions: dict[str, Callable[[], Any]], turns: int) -> dict[str, tuple[float, Any]]:
    """The seconds of the fastest turn of each function, and its result."""
    taken: dict[str, list[float]] = {name: [] for name in functions}
    results: dict[str, Any] = {}
    for _ in range(turns):
        for name, function in functions.items():
            taken[name].append(seconds(lambda: results.update({name: function()})))  # noqa: B023
    return {name: (min(taken[name]), results[name]) for name in functions}


def check_equal(ours: list[np.ndarray], captums: list[np.ndarray]) -> str:
    """The largest difference of scores that must be equal, as a fraction of the largest score."""
    gap = np.abs(np.concatenate(ours) - np.concatenate(captums)).max() / np.abs(np.concatenate(captums)).max()
    assert gap < 1e-4, gap
    return f"scores differ by at most {gap:.0e} of the largest"


def check_correlated(least: float, ours: list[np.ndarray], captums: list[np.ndarray]) -> str:
    """The mean correlation within a text of scores that need not be equal."""
    correlation = np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(ours, captums, strict=True)])
    assert correlation > least, correlation
    return f"scores correlate by {correlation:.3f}"


class Compared(NamedTuple):
    """A measure of ours, Captum's methods by name, the check of their scores, and the turns on a CPU."""

    ours: Callable[..., Importances]
    captums: dict[str, CaptumMethod]
    check: Callable[[list[np.ndarray], list[np.ndarray]], str]
    turns: int


def measures(samples: int, steps: int) -> dict[str, Compared]:
    """The measures by name."""
    limes = {
        f", {n} sample{'s'[: n > 1]} a pass": partial(captum_lime, samples, n) for n in (1, samples // 10, samples)
    }
    return {
        # Captum draws other samples.
        f"lime, {samples} samples": Compared(partial(lime, samples=samples), limes, partial(check_correlated, 0.9), 1),
        f"integrated-gradient-pad, {steps} points": Compared(
            partial(integrated_gradient_pad, steps=steps),
            {"": partial(captum_integrated_gradients, steps)},
            check_equal,
            3,
        ),
        "grad-x-diff": Compared(partial(deep_lift, rule="gradient"), {"": captum_deep_lift}, check_equal, 3),
        # Captum computes something else.
        "deep-lift": Compared(deep_lift, {"": captum_deep_lift}, partial(check_correlated, 0.0), 3),
    }


def rows(device: str, sizes: Sizes, prepared: list[Path]) -> Iterator[Row]:
    """The measures of Neely et al. 2022 at SST's sizes, or on test texts of prepared datasets."""
    for name, instances in test_texts(prepared, sizes.attribution.texts, 20, most=sizes.attribution.texts):
        yield from _rows(f"{MODEL}, {name}, {device}", instances, device, sizes)


def _rows(where: str, instances: Instances, device: str, sizes: Sizes) -> Iterator[Row]:
    words = max(VOCABULARY, 1 + max(int(ids.max()) for ids in instances.ids))
    evaluator = build_evaluator(MODEL, USEFUL_TOKENS[device], device, words)
    # Captum takes seconds per text, so that only a few are timed.
    timed = sizes.attribution.timed
    indices = spread(instances, timed)
    few = instances.take(indices)
    for measure, compared in measures(sizes.lime, min(50, sizes.samples)).items():
        functions = {"ours": partial(all_together, evaluator, instances, indices, compared.ours)}
        functions |= {name: partial(one_text_at_a_time, evaluator, few, m) for name, m in compared.captums.items()}
        compared.ours(evaluator, few)
        for method in compared.captums.values():
            one_text_at_a_time(evaluator, few.take([0]), method)
        times = time_in_turn(functions, min(sizes.turns, compared.turns) if device == "cpu" else sizes.turns)
        fast, ours = times.pop("ours")
        for detail, (taken, captums) in times.items():
            slow = taken / timed * len(instances)
            note = (
                f"{len(instances) / slow:,.1f} → {len(instances) / fast:,.1f} texts/s; {compared.check(ours, captums)}"
            )
            yield Row(f"{measure}, {where} (Captum's time from {timed} of them{detail})", slow, fast, note)
