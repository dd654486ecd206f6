"""The HardKuma distribution of Bastings et al. 2019, on [0, 1] with point masses at 0 and 1.

A Kumaraswamy variable k of shapes a and b, whose distribution function is 1 - (1 - x^a)^b, is stretched to (-0.1, 1.1)
and clamped to [0, 1]. All functions take the outputs [..., 2] of a linear layer for each word: the shapes before the
softplus.
"""

from math import log
from typing import Literal

import torch
from torch.nn.functional import softplus

from plumbline.models.fused import Fused, Tensors

LOW, HIGH = -0.1, 1.1
SMALLEST, LARGEST = 1e-6, 100.0
# Uniform draws keep this distance from 0 and 1, where gradients are infinite.
MARGIN = 1e-3

Continuous = Literal["stretched", "published"]


def shape_parameters(outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The shapes a and b, each [..., 1]."""
    a, b = softplus(outputs).clamp(SMALLEST, LARGEST).split(1, dim=-1)
    return a, b


def _draw_by_operations(a: torch.Tensor, b: torch.Tensor, uniform: torch.Tensor, words: torch.Tensor) -> Tensors:
    a, b = (softplus(raw).clamp(SMALLEST, LARGEST) for raw in (a, b))
    k = (1 - (1 - uniform) ** (1 / b)) ** (1 / a)
    return ((LOW + (HIGH - LOW) * k).clamp(0, 1) * words,)


_draw = Fused(
    _draw_by_operations,
    f"""template <typename T> void draw(T a, T b, T uniform, T words, T& z) {{
        a = a > T(20) ? a : ::log1p(::exp(a));
        b = b > T(20) ? b : ::log1p(::exp(b));
        a = a < T({SMALLEST}) ? T({SMALLEST}) : (a > T({LARGEST}) ? T({LARGEST}) : a);
        b = b < T({SMALLEST}) ? T({SMALLEST}) : (b > T({LARGEST}) ? T({LARGEST}) : b);
        T k = ::pow(T(1) - ::pow(T(1) - uniform, T(1) / b), T(1) / a);
        z = T({LOW}) + T({HIGH - LOW}) * k;
        z = words * (z < T(0) ? T(0) : (z > T(1) ? T(1) : z));
    }}""",
    1,
)


def draw_selection(outputs: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    """Draw z [..., 1] by inverse transform sampling.

    noise: [..., 2], a uniform draw, and a mask that is 0 where z must be 0.
    """
    inputs = *outputs.split(1, dim=-1), *noise.split(1, dim=-1)
    return (_draw_by_operations if torch.is_grad_enabled() else _draw)(*inputs)[0]


def _above(x: float, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """P(k > x) = (1 - x^a)^b of a Kumaraswamy variable k."""
    return (b * (-torch.expm1(a * log(x))).log()).exp()


def open_probability(outputs: torch.Tensor) -> torch.Tensor:
    """P(z > 0), [..., 1]."""
    return _above(-LOW / (HIGH - LOW), *shape_parameters(outputs))


def kumaraswamy_mean(outputs: torch.Tensor) -> torch.Tensor:
    """The mean b B(1 + 1/a, b) [..., 1] of the unstretched variable."""
    # In double precision: for small a the difference of the log-gammas of 1/a is below single-precision rounding.
    a, b = (shape.double() for shape in shape_parameters(outputs))
    one = 1 + 1 / a
    return (b.log() + one.lgamma() + b.lgamma() - (one + b).lgamma()).exp().to(outputs.dtype)


def most_probable(outputs: torch.Tensor, words: torch.Tensor, continuous: Continuous = "stretched") -> torch.Tensor:
    """Deterministic z [..., 1]: 0 or 1 if more probable than the open interval between them, otherwise the mean.

    The mean is that of the stretched variable; `published` is that of the unstretched one, as in the studies' code,
    which is never 0. words: [..., 1], 0 where z must be 0.
    """
    a, b = shape_parameters(outputs)
    one = _above((1 - LOW) / (HIGH - LOW), a, b)
    zero = 1 - _above(-LOW / (HIGH - LOW), a, b)
    between = 1 - zero - one
    expected = kumaraswamy_mean(outputs)
    if continuous == "stretched":
        expected = (LOW + (HIGH - LOW) * expected).clamp(0, 1)
    extreme = (one > zero).to(outputs.dtype)
    return torch.where(between > torch.maximum(zero, one), expected, extreme) * words
