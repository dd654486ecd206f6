"""DeepLIFT's rules (Shrikumar et al. 2017): how differences from a baseline pass through a model, exactly.

`Beside` is a tensor that carries its value for the baseline along. What it goes through is computed for both, and what
autograd then finds are not derivatives but multipliers m, such that Σ m Δin = Δout without remainder; Δ is the value
for the text less that for the baseline. A linear function keeps its own multipliers. A curve has Δout/Δin, the rescale
rule. A product has Δ(ab) = mean(b) Δa + mean(a) Δb, means over text and baseline, which is also its Shapley value. A
quotient and a square root undo a product, and have its rule. All else, such as softmax and recurrent layers, is written
down in terms of these.

Functions without a rule are refused. To take them for linear would give numbers that look right and do not add up.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from plumbline.attribution.unrolled import gru_step, lstm_step, unrolled
from plumbline.errors import PlumblineError

# Below this difference a curve has its derivative in the middle, since a quotient of smaller ones is rounding. In
# double precision either is right to some ten digits here.
NEAR = 1e-6

# What is read off a tensor, or made of its shape alone.
ASKED = {
    "__len__", "device", "dim", "dtype", "is_cuda", "ndim", "new_ones", "new_zeros", "numel", "ones_like", "shape",
    "size", "zeros_like",
}  # fmt: skip
LINEAR = {
    "__getitem__", "__rsub__", "T", "add", "cat", "chunk", "clone", "contiguous", "cumsum", "double", "dropout",
    "expand", "expand_as", "flatten", "flip", "float", "gather", "index_select", "mT", "masked_fill", "mean", "narrow",
    "neg", "pad", "permute", "repeat", "reshape", "roll", "rsub", "select", "split", "squeeze", "stack", "sub", "sum",
    "to", "transpose", "type_as", "unbind", "unflatten", "unsqueeze", "view", "view_as", "where",
}  # fmt: skip
# Linear in each factor, and so linear if only one of them depends on the text.
PRODUCTS = {"bmm", "conv1d", "einsum", "linear", "matmul", "mul"}
# Functions of one number.
CURVES = {
    "abs", "clamp", "clip", "elu", "erf", "exp", "gelu", "hardswish", "hardtanh", "leaky_relu", "log", "mish", "pow",
    "relu", "relu6", "sigmoid", "silu", "softplus", "square", "tanh",
}  # fmt: skip


class Beside(torch.Tensor):
    """A tensor of the text's pass with that of the baseline's pass beside it, of the same shape."""

    own: torch.Tensor
    baseline: torch.Tensor

    @classmethod
    def of(cls, own: torch.Tensor, baseline: torch.Tensor) -> "Beside":
        """The text's tensor, of which multipliers are wanted, with the baseline's."""
        found = own.as_subclass(cls)
        found.own, found.baseline = own, baseline
        return found

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        # An attribute is asked for through the getter that is bound to its descriptor.
        name = func.__self__.__name__ if func.__name__ == "__get__" else func.__name__  # type: ignore[attr-defined]
        found = _count([*args, *kwargs.values()])
        if name in WRITTEN:
            return WRITTEN[name](*args, **kwargs)
        if name in ASKED:
            return func(*_part(args, "own"), **_part(kwargs, "own"))
        if name in LINEAR or (name in PRODUCTS and found == 1):
            return _linear(func, args, kwargs)
        if name in PRODUCTS and found == 2:
            return _product(func, args, kwargs)
        if name in CURVES and found == 1 and isinstance(args[0], Beside):
            return _curve(func, args, kwargs)
        raise PlumblineError(
            f"DeepLIFT has no rule for '{func.__name__}', which this model computes; add one to "
            "plumbline/attribution/differences.py, or take the measure 'grad-x-diff'."
        )


class _Carried(torch.autograd.Function):
    """A value that has the derivatives of another, its carrier."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, carrier: torch.Tensor) -> torch.Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *slopes: torch.Tensor) -> tuple[None, torch.Tensor]:
        return None, slopes[0]


def _carried(value: torch.Tensor, carrier: torch.Tensor) -> torch.Tensor:
    return _Carried.apply(value, carrier)


def _mapped(values: Any, change: Callable[[Beside], Any]) -> Any:
    """Arguments, or lists of them, of which each `Beside` is changed."""
    if isinstance(values, Beside):
        return change(values)
    if isinstance(values, dict):
        return {name: _mapped(value, change) for name, value in values.items()}
    return type(values)(_mapped(value, change) for value in values) if isinstance(values, tuple | list) else values


def _part(values: Any, name: str) -> Any:
    return _mapped(values, lambda beside: getattr(beside, name))


def _count(values: Sequence[Any]) -> int:
    """How many of the arguments depend on the text."""
    return sum(_count(value) if isinstance(value, tuple | list) else isinstance(value, Beside) for value in values)


def _linear(func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    own = func(*_part(args, "own"), **_part(kwargs, "own"))
    baseline = func(*_part(args, "baseline"), **_part(kwargs, "baseline"))
    if isinstance(own, torch.Tensor):
        return Beside.of(own, baseline)
    return type(own)(Beside.of(one, other) for one, other in zip(own, baseline, strict=True))


def _product(func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Beside:
    """Both factors have the derivatives of the product of the means, which are the means."""
    carrier = func(*_mapped(args, _halfway), **_mapped(kwargs, _halfway))
    with torch.no_grad():
        value, baseline = (func(*_part(args, part), **_part(kwargs, part)) for part in ("own", "baseline"))
    return Beside.of(_carried(value, carrier), baseline)


def _halfway(factor: Beside) -> torch.Tensor:
    return _carried((factor.own.detach() + factor.baseline) / 2, factor.own)


def _curve(func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Beside:
    def drawn(at: torch.Tensor) -> torch.Tensor:
        return func(at, *args[1:], **kwargs)

    x, b = args[0].own.detach(), args[0].baseline
    with torch.no_grad():
        value, baseline = drawn(x), drawn(b)
        slope = (value - baseline) / (x - b)
    # Not "below NEAR": a position that is masked is -∞ in both, and their difference no number.
    near = ~((x - b).abs() > NEAR)
    if near.any():
        with torch.enable_grad():
            middle = ((x + b) / 2).requires_grad_()
            (derivative,) = torch.autograd.grad(drawn(middle).sum(), middle)
        slope = torch.where(near, derivative, slope)
    return Beside.of(_carried(value, args[0].own * slope), baseline)


def _quotient(a: torch.Tensor | float, b: torch.Tensor | float) -> Beside:
    """q = a / b has the rule of the product a = q b: Δq = (Δa - mean(q) Δb) / mean(b).

    That of a times 1 / b would be exact too, but grows without bound where one of two positive denominators is small.
    """
    if not isinstance(b, Beside):
        return _linear(torch.div, (a, b), {})
    with torch.no_grad():
        value, baseline = (_part(a, part) / _part(b, part) for part in ("own", "baseline"))
        quotient, denominator = (value + baseline) / 2, (b.own + b.baseline) / 2
    return Beside.of(_carried(value, (_part(a, "own") - quotient * b.own) / denominator), baseline)


def _root(x: Beside) -> Beside:
    """r = √x has the rule of the product x = r r: Δr = Δx / (2 mean(r))."""
    with torch.no_grad():
        value, baseline = x.own.sqrt(), x.baseline.sqrt()
    return Beside.of(_carried(value, x.own / (value + baseline)), baseline)


def _softmax(x: Beside, dim: int, dtype: torch.dtype | None = None, _stacklevel: int = 3) -> torch.Tensor:
    """exp x / Σ exp x, with multipliers within [-1, 1].

    The scores lose the same number in both passes, so that no power is too large, which changes nothing else. All stays
    as precise as it is, whatever `dtype` asks for.
    """
    middle = (x.own.detach().amax(dim, keepdim=True) + x.baseline.amax(dim, keepdim=True)) / 2
    powers = (x - middle).exp()
    return powers / powers.sum(dim, keepdim=True)


def _layer_norm(
    x: Beside,
    normalized_shape: Sequence[int],
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    dims = tuple(range(-len(normalized_shape), 0))
    centred = x - x.mean(dims, keepdim=True)
    normal = centred / ((centred * centred).mean(dims, keepdim=True) + eps).sqrt()
    normal = normal if weight is None else normal * weight
    return normal if bias is None else normal + bias


def _amax(x: Beside, dim: int, keepdim: bool = False) -> Beside:
    """The largest: all of Δout comes from where it is, in the pass in which it is larger; ties share it.

    There Δin is at least as far from 0, on the same side, so that no multiplier leaves [0, 1].
    """
    own, baseline = x.own.detach(), x.baseline
    top, low = own.amax(dim, keepdim=True), baseline.amax(dim, keepdim=True)
    there = torch.where(top >= low, own == top, baseline == low).to(own.dtype)
    near = (own - baseline).abs() <= NEAR
    slope = there / there.sum(dim, keepdim=True) * torch.where(near, 1, (top - low) / (own - baseline))
    carrier = (x.own * slope).sum(dim, keepdim=keepdim)
    return Beside.of(_carried(own.amax(dim, keepdim), carrier), baseline.amax(dim, keepdim))


WRITTEN: dict[str, Callable[..., Any]] = {
    "div": _quotient,
    "__rdiv__": lambda b, a: _quotient(a, b),
    "sqrt": _root,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "amax": _amax,
    "lstm": partial(unrolled, lstm_step),
    "gru": partial(unrolled, gru_step),
}
