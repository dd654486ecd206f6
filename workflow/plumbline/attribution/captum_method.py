"""Captum's attribution methods (Kokhlikyan et al. 2020), and a user's own subclasses of them, as measures."""

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

from plumbline.attribution.attribution_batch import AttributionBatch, copies_per_pass, explain
from plumbline.attribution.gradient import differentiable
from plumbline.attribution.importances import AttributionOptions, Importances
from plumbline.attribution.inputs import forward_vectors
from plumbline.config.external import METHODS
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError, nearest
from plumbline.models.evaluator import Evaluator
from plumbline.registry import load, measure

# Deterministic methods that explain each row of a batch independently. All others get one text at a time.
BATCHED = {"Deconvolution", "DeepLift", "GuidedBackprop", "InputXGradient", "IntegratedGradients", "Saliency"}
REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": lambda values: values.sum(-1),
    "l1": lambda values: values.abs().sum(-1),
    "l2": lambda values: values.norm(dim=-1),
}
# Arguments that are supplied here, so that a config cannot set them.
SUPPLIED = {"inputs", "baselines", "target", "additional_forward_args", "feature_mask", "return_convergence_delta"}


class CaptumMethod:
    """A Captum class with the arguments of the config, split into those of its constructor and of `attribute`."""

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        self.name = name.rpartition(":")[2]
        self.kind = getattr(captum.attr, name) if name in METHODS else _load_class(name)
        self.batched = name in BATCHED
        self.perturbs, self.slides = (issubclass(self.kind, base) for base in (PerturbationAttribution, Occlusion))
        init_parameters = dict(list(signature(self.kind).parameters.items())[1:])
        self.parameters = signature(self.kind.attribute).parameters
        known = METHODS.get(name) or tuple({*init_parameters, *self.parameters} - SUPPLIED - {"self"})
        for argument in arguments:
            if argument not in known:
                raise PlumblineError(
                    f"`arguments` has '{argument}', which '{self.name}' does not take; {nearest(argument, known)}"
                )
        self._init = {key: value for key, value in arguments.items() if key in init_parameters}
        self._attribute = {key: value for key, value in arguments.items() if key not in init_parameters}
        if self.slides:
            self._attribute = {"sliding_window_shapes": 1, "strides": 1, **self._attribute}
        for given, parameters in ((self._init, init_parameters), (self._attribute, self.parameters)):
            for key, parameter in parameters.items():
                required = parameter.default is Parameter.empty and parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
                if required and key not in (*given, *SUPPLIED, "self"):
                    raise PlumblineError(f"'{self.name}' needs the argument '{key}'; add it to `arguments`.")

    def __call__(
        self, forward: nn.Module, vectors: torch.Tensor, baseline: torch.Tensor, size: int, rows: torch.Tensor | None
    ) -> torch.Tensor:
        """Attributions [N, F, d] of vectors [N, F, d], with at most `size` of them in one forward pass."""
        arguments = dict(self._attribute)
        defaults: dict[str, Any] = {
            "baselines": baseline,
            "additional_forward_args": rows,
            "internal_batch_size": size,
            "perturbations_per_eval": size,
        }
        if self.perturbs:
            # A word, with its whole vector, is one feature.
            defaults["feature_mask"] = torch.arange(vectors.shape[1], device=vectors.device)[None, :, None]
        if self.slides:
            # The config counts windows in words; they span whole vectors.
            for key in ("sliding_window_shapes", "strides"):
                arguments[key] = (arguments[key], vectors.shape[2])
        if self.kind is KernelShap and vectors.shape[1] == 1:
            # KernelShap samples proper subsets of the words; a single word has none, and its value is its ablation.
            return FeatureAblation(forward).attribute(vectors, baseline, feature_mask=defaults["feature_mask"])
        defaults = {key: value for key, value in defaults.items() if key in self.parameters and value is not None}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Setting (forward, )?backward hooks")
            values = self.kind(forward, **self._init).attribute(vectors, **{**defaults, **arguments})
        values = values[0] if isinstance(values, tuple) else values
        if not isinstance(values, torch.Tensor) or values.shape != vectors.shape:
            shape = tuple(values.shape) if isinstance(values, torch.Tensor) else type(values).__name__
            raise PlumblineError(
                f"'{self.name}' gave attributions of shape {shape} for vectors of shape {tuple(vectors.shape)}; the "
                "shapes must be equal."
            )
        return values.detach()

    def reduce(self, values: torch.Tensor, reduction: str) -> torch.Tensor:
        """One number per token, [..., F]. If words are perturbed as a whole, all entries of a vector are equal."""
        return values[..., 0] if self.perturbs else REDUCTIONS[reduction](values)


def _load_class(pointer: str) -> Any:
    """A user's own subclass of `captum.attr.Attribution`."""
    source, _, name = pointer.rpartition(":")
    try:
        kind = load(pointer)
    except (ImportError, AttributeError) as error:
        raise PlumblineError(f"`method`: '{name}' cannot be imported from '{source}' ({error}).") from error
    if not isinstance(kind, type) or not issubclass(kind, Attribution) or not hasattr(kind, "attribute"):
        raise PlumblineError(
            f"`method`: '{name}' of '{source}' is not a subclass of captum.attr.Attribution with a method `attribute`."
        )
    return kind


class BatchForward(nn.Module):
    """The explained outputs of rows of a batch, as a function of all their vectors."""

    def __init__(self, model: nn.Module, inputs: AttributionBatch) -> None:
        super().__init__()
        self.model, self.inputs = model, inputs

    def forward(self, vectors: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """[N] outputs. vectors: [N, T, d]; rows: [N] the row of the batch that each belongs to."""
        logits = forward_vectors(self.model, self.inputs.batch.take(rows), vectors).logits
        return self.inputs.output.take(rows).value(logits)


class SingleTextForward(nn.Module):
    """The explained output of one row, as a function of the vectors of its features."""

    def __init__(self, batch: BatchForward, row: int, size: int) -> None:
        super().__init__()
        self.batch, self.row, self.size = batch, row, size

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """[N] outputs, computed at most `size` at a time unless gradients are needed. words: [N, F, d]."""
        if words.requires_grad or len(words) <= self.size:
            return self._outputs(words)
        return torch.cat([self._outputs(part) for part in words.split(self.size)])

    def _outputs(self, words: torch.Tensor) -> torch.Tensor:
        vectors = self.batch.inputs.vectors[self.row].repeat(len(words), 1, 1)
        vectors = vectors.masked_scatter(self.batch.inputs.features[self.row][None, :, None], words)
        return self.batch(vectors, torch.full((len(words),), self.row, device=words.device))


@contextmanager
def seeded(generator: np.random.Generator, device: torch.device) -> Iterator[None]:
    """Seed the global random number generators, and restore their states afterwards."""
    seed, numpy_state, python_state = int(generator.integers(2**32)), np.random.get_state(), random.getstate()
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        np.random.seed(seed)
        random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(numpy_state)
            random.setstate(python_state)


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
    stochastic=True,
    equation="|Σ_k φ_tk| of the method's attributions φ of the vectors x",
    cost="That of the method: one backward pass for gradients, `n_steps` for integrated ones, one forward pass per "
    "word or sample for perturbations; most of the latter run one text at a time.",
    misleads="As the method does. Scores are relative to padding, which may itself be evidence for a class. Captum's "
    "DeepLift is exact only for element-wise functions that are modules, and its Lime sets small effects to 0.",
    citation="Kokhlikyan et al. (2020), Captum: A Unified and Generic Model Interpretability Library for PyTorch. "
    "arXiv:2009.07896.",
)
def captum_method(
    evaluator: Evaluator,
    instances: Instances,
    *,
    method: str = "",
    arguments: dict = {},  # noqa: B006
    options: AttributionOptions = AttributionOptions(),
    reduction: Literal["sum", "l1", "l2"] = "sum",
    sign: Literal["absolute", "signed"] = "absolute",
) -> Importances:
    """A method of Captum, such as `IntegratedGradients`, or a user's own subclass of `captum.attr.Attribution`.

    It explains the input vectors of the model. Methods that perturb replace the whole vector of a word by the
    baseline's.

    Options:
        method: Name of a class of `captum.attr`, or `file.py:Class` for a class of your own.
        arguments: Keyword arguments of the method, such as `{n_steps: 50}`.
        reduction: How a word's vector of attributions becomes one score: its sum, or its L1 or L2 norm.
    """
    explainer, model = CaptumMethod(method, arguments), evaluator.model

    def score(inputs: AttributionBatch) -> torch.Tensor:
        forward = BatchForward(model, inputs)
        size = len(inputs.index) * copies_per_pass(evaluator, inputs.batch)
        with differentiable(model):
            if explainer.batched:
                rows = torch.arange(len(inputs.index), device=inputs.vectors.device)
                vectors = inputs.vectors.clone().requires_grad_()
                return explainer.reduce(explainer(forward, vectors, inputs.baseline, size, rows), reduction)
            values = inputs.vectors.new_zeros(inputs.features.shape)
            for row, (i, features) in enumerate(zip(inputs.index, inputs.features, strict=True)):
                words, baseline = inputs.vectors[None, row, features], inputs.baseline[None, row, features]
                words = words.clone().requires_grad_(not explainer.perturbs)
                with seeded(instances.generator(i, evaluator.seed), words.device):
                    attributions = explainer(SingleTextForward(forward, row, size), words, baseline, size, None)
                values[row, features] = explainer.reduce(attributions, reduction)[0].to(values)
            return values

    return explain(evaluator, instances, score, options, sign)
