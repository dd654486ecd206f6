"""DeepLIFT's rules (Shrikumar et al. 2017): exact propagation of differences from a baseline through a model.

A `TensorWithBaseline` carries its value for the baseline along. Every function is computed for both, and autograd then
returns multipliers m instead of derivatives, such that Σ m Δin = Δout without remainder; Δ is the value for the text
minus that for the baseline. A linear function keeps its own multipliers. A pointwise function has Δout/Δin, the rescale
rule. A product has Δ(ab) = mean(b) Δa + mean(a) Δb, means over text and baseline, which is also its Shapley value. A
quotient and a square root invert a product and follow its rule. All else, such as softmax and recurrent layers, is
composed of these.

Functions without a rule are refused. To treat them as linear would give plausible numbers that do not add up.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from plumbline.attribution.unrolled import gru_step, lstm_step, unroll
from plumbline.errors import PlumblineError

# Below this difference a pointwise function has its derivative at the midpoint, since a quotient of smaller differences
# is rounding error. In double precision either is accurate to about ten digits here.
NEAR = 1e-6

# Properties of a tensor, and functions of its shape alone.
METADATA = {
    "__len__", "device", "dim", "dtype", "is_cuda", "ndim", "new_ones", "new_zeros", "numel", "ones_like", "shape",
    "size", "zeros_like",
}  # fmt: skip
LINEAR = {
    "__getitem__", "__rsub__", "T", "add", "cat", "chunk", "clone", "contiguous", "cumsum", "double", "dropout",
    "expand", "expand_as", "flatten", "flip", "gather", "index_select", "mT", "masked_fill", "mean", "narrow",
    "neg", "pad", "permute", "repeat", "repeat_interleave", "reshape", "roll", "rsub", "scatter", "select", "split",
    "squeeze", "stack", "sub", "sum", "transpose", "type_as", "unbind", "unflatten", "unsqueeze", "view",
    "view_as", "where",
}  # fmt: skip
# Linear in each factor, so linear if only one factor depends on the text.
PRODUCTS = {"bmm", "conv1d", "einsum", "linear", "matmul", "mul"}
# Applied to each number independently.
POINTWISE = {
    "abs", "clamp", "clip", "elu", "erf", "exp", "gelu", "hardswish", "hardtanh", "leaky_relu", "log", "mish", "pow",
    "relu", "relu6", "sigmoid", "silu", "softplus", "square", "tanh",
}  # fmt: skip


class TensorWithBaseline(torch.Tensor):
    """A tensor of the forward pass of the text, with the same tensor of the baseline's pass."""

    value: torch.Tensor
    baseline: torch.Tensor

    @classmethod
    def of(cls, value: torch.Tensor, baseline: torch.Tensor) -> "TensorWithBaseline":
        """The text's tensor, with respect to which multipliers are computed, with the baseline's."""
        tensor = value.as_subclass(cls)
        tensor.value, tensor.baseline = value, baseline
        return tensor

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        # Attributes are accessed through the getter of their descriptor.
        name = func.__self__.__name__ if func.__name__ == "__get__" else func.__name__  # type: ignore[attr-defined]
        count = _count([*args, *kwargs.values()])
        if name in RULES:
            return RULES[name](*args, **kwargs)
        if name in METADATA:
            return func(*_part(args, "value"), **_part(kwargs, "value"))
        if name in LINEAR or (name in PRODUCTS and count == 1):
            return _linear(func, args, kwargs)
        if name in PRODUCTS and count == 2:
            return _product(func, args, kwargs)
        if name in POINTWISE and count == 1 and isinstance(args[0], TensorWithBaseline):
            return _pointwise(func, args, kwargs)
        raise PlumblineError(
            f"DeepLIFT has no rule for '{func.__name__}', which this model computes; add one to "
            "plumbline/attribution/differences.py, or use the measure 'grad-x-diff'."
        )


class _Carried(torch.autograd.Function):
    """A value with the derivatives of another tensor, its carrier."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, carrier: torch.Tensor) -> torch.Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *slopes: torch.Tensor) -> tuple[None, torch.Tensor]:
        return None, slopes[0]


_carried: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = _Carried.apply


def _mapped(values: Any, change: Callable[[TensorWithBaseline], Any]) -> Any:
    """Arguments, nested in tuples, lists and dicts, with `change` applied to each `TensorWithBaseline`."""
    if isinstance(values, TensorWithBaseline):
        return change(values)
    if isinstance(values, dict):
        return {name: _mapped(value, change) for name, value in values.items()}
    return type(values)(_mapped(value, change) for value in values) if isinstance(values, tuple | list) else values


def _part(values: Any, name: str) -> Any:
    return _mapped(values, lambda tensor: getattr(tensor, name))


def _count(values: Sequence[Any]) -> int:
    """How many of the arguments depend on the text."""
    return sum(
        _count(value) if isinstance(value, tuple | list) else isinstance(value, TensorWithBaseline) for value in values
    )


def _linear(func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    value, baseline = (func(*_part(args, part), **_part(kwargs, part)) for part in ("value", "baseline"))
    if isinstance(value, torch.Tensor):
        return TensorWithBaseline.of(value, baseline)
    return type(value)(map(TensorWithBaseline.of, value, baseline))


def _product(func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> TensorWithBaseline:
    """The product of the means has the means as its derivatives; it is the carrier."""
    carrier = func(*_mapped(args, _mean), **_mapped(kwargs, _mean))
    with torch.no_grad():
        value, baseline = (func(*_part(args, part), **_part(kwargs, part)) for part in ("value", "baseline"))
    return TensorWithBaseline.of(_carried(value, carrier), baseline)


def _mean(factor: TensorWithBaseline) -> torch.Tensor:
    return _carried((factor.value.detach() + factor.baseline) / 2, factor.value)


def _pointwise(func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> TensorWithBaseline:
    def apply(at: torch.Tensor) -> torch.Tensor:
        return func(at, *args[1:], **kwargs)

    x, b = args[0].value.detach(), args[0].baseline
    with torch.no_grad():
        value, baseline = apply(x), apply(b)
        slope = (value - baseline) / (x - b)
    # Not "below NEAR": a masked position is -∞ in both, and the difference is NaN.
    near = ~((x - b).abs() > NEAR)
    if near.any():
        with torch.enable_grad():
            middle = ((x + b) / 2).requires_grad_()
            (derivative,) = torch.autograd.grad(apply(middle).sum(), middle)
        slope = torch.where(near, derivative, slope)
    return TensorWithBaseline.of(_carried(value, args[0].value * slope), baseline)


def _quotient(a: torch.Tensor | float, b: torch.Tensor | float) -> TensorWithBaseline:
    """q = a / b has the rule of the product a = q b: Δq = (Δa - mean(q) Δb) / mean(b).

    The rule of a times 1 / b would be exact too, but is unbounded where one of two positive denominators is small.
    """
    if not isinstance(b, TensorWithBaseline):
        return _linear(torch.div, (a, b), {})
    with torch.no_grad():
        value, baseline = (_part(a, part) / _part(b, part) for part in ("value", "baseline"))
        quotient, denominator = (value + baseline) / 2, (b.value + b.baseline) / 2
    return TensorWithBaseline.of(_carried(value, (_part(a, "value") - quotient * b.value) / denominator), baseline)


def _root(x: TensorWithBaseline) -> TensorWithBaseline:
    """r = √x has the rule of the product x = r r: Δr = Δx / (2 mean(r))."""
    with torch.no_grad():
        value, baseline = x.value.sqrt(), x.baseline.sqrt()
    return TensorWithBaseline.of(_carried(value, x.value / (value + baseline)), baseline)


def _softmax(x: TensorWithBaseline, dim: int, dtype: torch.dtype | None = None, _stacklevel: int = 3) -> torch.Tensor:
    """exp x / Σ exp x, with multipliers within [-1, 1].

    The same number is subtracted from the scores in both passes, so that no exponential overflows; the result does not
    change. The precision stays the same, whatever `dtype` is.
    """
    middle = (x.value.detach().amax(dim, keepdim=True) + x.baseline.amax(dim, keepdim=True)) / 2
    powers = (x - middle).exp()
    return powers / powers.sum(dim, keepdim=True)


def _layer_norm(
    x: TensorWithBaseline,
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


def _amax(x: TensorWithBaseline, dim: int, keepdim: bool = False) -> TensorWithBaseline:
    """The maximum: all of Δout is due to its position in the pass with the larger maximum; ties share it.

    There Δin has the sign of Δout and is at least as large, so that multipliers are in [0, 1].
    """
    value, baseline = x.value.detach(), x.baseline
    top, low = value.amax(dim, keepdim=True), baseline.amax(dim, keepdim=True)
    largest = torch.where(top >= low, value == top, baseline == low).to(value.dtype)
    near = (value - baseline).abs() <= NEAR
    slope = largest / largest.sum(dim, keepdim=True) * torch.where(near, 1, (top - low) / (value - baseline))
    carrier = (x.value * slope).sum(dim, keepdim=keepdim)
    return TensorWithBaseline.of(_carried(value.amax(dim, keepdim), carrier), baseline.amax(dim, keepdim))


def _log_softmax(
    x: TensorWithBaseline, dim: int, dtype: torch.dtype | None = None, _stacklevel: int = 3
) -> torch.Tensor:
    """x - log Σ exp x; the same number is subtracted in both passes, as in the softmax."""
    middle = (x.value.detach().amax(dim, keepdim=True) + x.baseline.amax(dim, keepdim=True)) / 2
    shifted = x - middle
    return shifted - shifted.exp().sum(dim, keepdim=True).log()


def _rms_norm(
    x: TensorWithBaseline,
    normalized_shape: Sequence[int],
    weight: torch.Tensor | None = None,
    eps: float | None = None,
) -> torch.Tensor:
    dims = tuple(range(-len(normalized_shape), 0))
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    normal = x / ((x * x).mean(dims, keepdim=True) + eps).sqrt()
    return normal if weight is None else normal * weight


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """The fused kernel's function step by step, since it has no rule as a whole."""
    if enable_gqa:
        key, value = (part.repeat_interleave(query.shape[-3] // part.shape[-3], dim=-3) for part in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
        scores = scores.masked_fill(~allowed, -torch.inf)
    if attn_mask is not None:
        mask = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(~attn_mask, -torch.inf) if mask else scores + attn_mask
    return scores.softmax(-1) @ value


def _cast(x: TensorWithBaseline, *args: Any, **kwargs: Any) -> Any:
    """A cast to less than the precision of the rules is left out: quotients of small differences need all digits."""
    narrower = any(part in (torch.float32, torch.bfloat16, torch.float16) for part in (*args, *kwargs.values()))
    return x if narrower else _linear(torch.Tensor.to, (x, *args), kwargs)


def _add_in_place(x: TensorWithBaseline, other: torch.Tensor) -> TensorWithBaseline:
    result = x + other
    x.value, x.baseline = result.value, result.baseline  # type: ignore[attr-defined]
    return x


RULES: dict[str, Callable[..., Any]] = {
    "add_": _add_in_place,
    "to": _cast,
    "float": lambda x: x,
    "addmm": lambda bias, a, b: a @ b + bias,
    "div": _quotient,
    "__rdiv__": lambda b, a: _quotient(a, b),
    "sqrt": _root,
    "rsqrt": lambda x: _quotient(1.0, _root(x)),
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "scaled_dot_product_attention": _attention,
    "rms_norm": _rms_norm,
    "layer_norm": _layer_norm,
    "amax": _amax,
    # The same in both passes: masked positions.
    "isneginf": lambda x: x.value.isneginf(),
    "lstm": partial(unroll, lstm_step),
    "gru": partial(unroll, gru_step),
}
