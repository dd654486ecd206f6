"""Methods of Captum (Kokhlikyan et al. 2020), and a study's own of its kind, as measures."""

import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import Parameter, signature
from typing import Any, Literal

import captum.attr
import numpy as np
import torch
from captum.attr import Attribution, FeatureAblation, KernelShap, Occlusion, PerturbationAttribution
from torch import nn

from plumbline.attribution.attribution_batch import AttributionBatch, copies, explain
from plumbline.attribution.gradient import differentiable
from plumbline.attribution.importances import Function, Importances, explained_output
from plumbline.attribution.inputs import read
from plumbline.config.external import METHODS
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError, nearest
from plumbline.models.evaluator import Evaluator
from plumbline.registry import load, measure

# Methods that draw nothing at random and explain each row of a batch by itself. Others get a text at a time.
TOGETHER = {"Deconvolution", "DeepLift", "GuidedBackprop", "InputXGradient", "IntegratedGradients", "Saliency"}
REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": lambda values: values.sum(-1),
    "l1": lambda values: values.abs().sum(-1),
    "l2": lambda values: values.norm(dim=-1),
}
# What a method is given here, and a config cannot give.
GIVEN = {"inputs", "baselines", "target", "additional_forward_args", "feature_mask", "return_convergence_delta"}


class Method:
    """A method with the arguments that a config gives, and how it is called."""

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        self.name = name.rpartition(":")[2]
        self.kind = getattr(captum.attr, name) if name in METHODS else _own(name)
        self.together = name in TOGETHER
        self.perturbs, self.slides = (issubclass(self.kind, of) for of in (PerturbationAttribution, Occlusion))
        building = dict(list(signature(self.kind).parameters.items())[1:])
        self.takes = signature(self.kind.attribute).parameters
        known = METHODS.get(name) or tuple({*building, *self.takes} - GIVEN - {"self"})
        for argument in arguments:
            if argument not in known:
                raise PlumblineError(
                    f"`arguments` has '{argument}', which '{self.name}' does not take; {nearest(argument, known)}"
                )
        self._built = {key: value for key, value in arguments.items() if key in building}
        self._told = {key: value for key, value in arguments.items() if key not in building}
        if self.slides:
            self._told = {"sliding_window_shapes": 1, "strides": 1, **self._told}
        for place, parameters in ((self._built, building), (self._told, self.takes)):
            for key, parameter in parameters.items():
                needed = parameter.default is Parameter.empty and parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
                if needed and key not in (*place, *GIVEN, "self"):
                    raise PlumblineError(f"'{self.name}' needs '{key}', which is not among its `arguments`.")

    def __call__(
        self, forward: nn.Module, vectors: torch.Tensor, baseline: torch.Tensor, room: int, rows: torch.Tensor | None
    ) -> torch.Tensor:
        """The attributions of vectors [N, F, d], in this shape, if `forward` may read `room` of them at a time."""
        told = dict(self._told)
        usual: dict[str, Any] = {
            "baselines": baseline,
            "additional_forward_args": rows,
            "internal_batch_size": room,
            "perturbations_per_eval": room,
        }
        if self.perturbs:
            # A word is one feature, with all of its vector.
            usual["feature_mask"] = torch.arange(vectors.shape[1], device=vectors.device)[None, :, None]
        if self.slides:
            # Windows are so many words, with all of their vectors.
            for key in ("sliding_window_shapes", "strides"):
                told[key] = (told[key], vectors.shape[2])
        if self.kind is KernelShap and vectors.shape[1] == 1:
            # Which draws among sets of words, of which there are none; a lone word's value is what it takes away.
            return FeatureAblation(forward).attribute(vectors, baseline, feature_mask=usual["feature_mask"])
        told = {**{key: value for key, value in usual.items() if key in self.takes and value is not None}, **told}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Setting (forward, )?backward hooks")
            found = self.kind(forward, **self._built).attribute(vectors, **told)
        found = found[0] if isinstance(found, tuple) else found
        if not isinstance(found, torch.Tensor) or found.shape != vectors.shape:
            shape = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
            raise PlumblineError(
                f"'{self.name}' gave attributions of shape {shape} for vectors of shape {tuple(vectors.shape)}; they "
                "must be alike."
            )
        return found.detach()

    def reduced(self, values: torch.Tensor, reduction: str) -> torch.Tensor:
        """One number for each token, [..., F]: where words are put away whole, all numbers of a vector are the same."""
        return values[..., 0] if self.perturbs else REDUCTIONS[reduction](values)


def _own(pointer: str) -> Any:
    """A class of the study's own."""
    place, _, name = pointer.rpartition(":")
    try:
        found = load(pointer)
    except (ImportError, AttributeError) as error:
        raise PlumblineError(f"`method`: '{name}' cannot be imported from '{place}' ({error}).") from error
    if not isinstance(found, type) or not issubclass(found, Attribution) or not hasattr(found, "attribute"):
        raise PlumblineError(
            f"`method`: '{name}' of '{place}' is no subclass of captum.attr.Attribution with a method `attribute`."
        )
    return found


class BatchForward(nn.Module):
    """The explained output of rows of a batch, as a function of all their vectors."""

    def __init__(self, model: nn.Module, question: AttributionBatch, function: Function) -> None:
        super().__init__()
        self.model, self.question, self.function = model, question, function

    def forward(self, vectors: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """[N] outputs. vectors: [N, T, d]; rows: [N] which row of the batch each is."""
        logits = read(self.model, self.question.batch.take(rows), vectors).logits
        outputs = explained_output(logits, self.question.classes[rows], self.function)
        # A class that cannot be the answer has no logit.
        return outputs.masked_fill(outputs.isneginf(), 0)


class SingleTextForward(nn.Module):
    """The explained output of one row, as a function of the vectors of the tokens that are features."""

    def __init__(self, rows: BatchForward, row: int, room: int) -> None:
        super().__init__()
        self.rows, self.row, self.room = rows, row, room
        self.free = rows.question.free[row]

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """[N] outputs, of so many at a time as there is room for unless gradients are asked. words: [N, F, d]."""
        if words.requires_grad or len(words) <= self.room:
            return self._read(words)
        return torch.cat([self._read(some) for some in words.split(self.room)])

    def _read(self, words: torch.Tensor) -> torch.Tensor:
        vectors = self.rows.question.vectors[self.row].repeat(len(words), 1, 1)
        vectors = vectors.masked_scatter(self.free[None, :, None], words)
        return self.rows(vectors, torch.full((len(words),), self.row, device=words.device))


@contextmanager
def seeded(generator: np.random.Generator, device: torch.device) -> Iterator[None]:
    """Let all that is drawn at random come from a stream of its own, and leave no trace of it."""
    number, numpy, python = int(generator.integers(2**32)), np.random.get_state(), random.getstate()
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(number)
        np.random.seed(number)
        random.seed(number)
        try:
            yield
        finally:
            np.random.set_state(numpy)
            random.setstate(python)


@measure(
    "captum",
    required=["method"],
    needs=[
        "method=Deconvolution:gradient",
        "method=DeepLift:gradient",
        "method=GradientShap:gradient",
        "method=GuidedBackprop:gradient",
        "method=InputXGradient:gradient",
        "method=IntegratedGradients:gradient",
        "method=Saliency:gradient",
    ],
    pixels=True,
    equation="|Σ_k φ_tk| of the method's attributions φ of the vectors x",
)
def captum_method(
    evaluator: Evaluator,
    instances: Instances,
    *,
    method: str = "",
    arguments: dict = {},  # noqa: B006
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit"] = "probability",
    baseline: Literal["pad", "zero"] = "pad",
    texts: Literal["first", "both"] = "both",
    specials: bool = True,
    reduction: Literal["sum", "l1", "l2"] = "sum",
    sign: Literal["absolute", "signed"] = "absolute",
) -> Importances:
    """A method of Captum's, such as `IntegratedGradients`, or a class of one's own that is one of its `Attribution`.

    It explains the vectors from which the model computes everything, of which `reduction` makes a number for each word.
    Methods that perturb put words away whole, for the vector of the baseline. `arguments` are the method's own.
    """
    asked, model = Method(method, arguments), evaluator.model

    def together(question: AttributionBatch, rows: BatchForward) -> torch.Tensor:
        room = len(question.index) * copies(evaluator, question.batch)
        every = torch.arange(len(question.index), device=question.vectors.device)
        vectors = question.vectors.clone().requires_grad_()
        return asked.reduced(asked(rows, vectors, question.baseline, room, every), reduction)

    def alone(question: AttributionBatch, rows: BatchForward) -> torch.Tensor:
        values = question.vectors.new_zeros(question.free.shape)
        room = len(question.index) * copies(evaluator, question.batch)
        for row, i in enumerate(question.index):
            free = question.free[row]
            words, nothing = question.vectors[None, row, free], question.baseline[None, row, free]
            words = words.clone().requires_grad_(not asked.perturbs)
            with seeded(instances.generator(i, evaluator.seed), words.device):
                found = asked(SingleTextForward(rows, row, room), words, nothing, room, None)
            values[row, free] = asked.reduced(found, reduction)[0].to(values)
        return values

    def answer(question: AttributionBatch) -> torch.Tensor:
        rows = BatchForward(model, question, function)
        with differentiable(model):
            values = (together if asked.together else alone)(question, rows)
        return values.abs() if sign == "absolute" else values

    return explain(evaluator, instances, answer, target, baseline, texts, specials)
