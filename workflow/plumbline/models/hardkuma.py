"""The HardKuma distribution of Bastings et al. 2019: numbers from 0 to 1 that are 0 or 1 with some probability.

A Kumaraswamy variable k of shapes a and b, whose distribution function is 1 - (1 - x^a)^b, is stretched to (-0.1, 1.1)
and cut to [0, 1]. Everything here is a function of what a linear layer gives for each word, [..., 2]: the shapes before
their softplus.
"""

from math import log
from typing import Literal

import torch
from torch.nn.functional import softplus

from plumbline.models.fused import Fused, Tensors

LOW, HIGH = -0.1, 1.1
SMALLEST, LARGEST = 1e-6, 100.0
# Uniform draws keep off 0 and 1, where slopes are infinite.
MARGIN = 1e-3

Continuous = Literal["stretched", "published"]


def shapes(outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """a and b [..., 1]."""
    a, b = softplus(outputs).clamp(SMALLEST, LARGEST).split(1, dim=-1)
    return a, b


def _drawn(a: torch.Tensor, b: torch.Tensor, uniform: torch.Tensor, words: torch.Tensor) -> Tensors:
    a, b = (softplus(raw).clamp(SMALLEST, LARGEST) for raw in (a, b))
    k = (1 - (1 - uniform) ** (1 / b)) ** (1 / a)
    return ((LOW + (HIGH - LOW) * k).clamp(0, 1) * words,)


_draw = Fused(
    _drawn,
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
    """Draws z [..., 1] by the inverse of the distribution function.

    noise: [..., 2], a number drawn uniformly, and 1, or 0 where z must be 0.
    """
    given = *outputs.split(1, dim=-1), *noise.split(1, dim=-1)
    return (_drawn if torch.is_grad_enabled() else _draw)(*given)[0]


def _above(x: float, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The probability (1 - x^a)^b of a Kumaraswamy variable above x."""
    return (b * (-torch.expm1(a * log(x))).log()).exp()


def open_probability(outputs: torch.Tensor) -> torch.Tensor:
    """The probability [..., 1] that z is above 0."""
    return _above(-LOW / (HIGH - LOW), *shapes(outputs))


def mean(outputs: torch.Tensor) -> torch.Tensor:
    """The mean b B(1 + 1/a, b) [..., 1] of the variable before it is stretched."""
    # In single precision the gamma functions of 1/a differ by nothing but rounding where a is small.
    a, b = (shape.double() for shape in shapes(outputs))
    one = 1 + 1 / a
    return (b.log() + one.lgamma() + b.lgamma() - (one + b).lgamma()).exp().to(outputs.dtype)


def likeliest(outputs: torch.Tensor, words: torch.Tensor, continuous: Continuous = "stretched") -> torch.Tensor:
    """z [..., 1] without chance: 0 or 1 if that is likelier than all in between, and else the mean.

    The mean is that of the stretched variable; `published` is that of the variable before, as the studies' code has it,
    which is never 0. words: [..., 1], 0 where z must be 0.
    """
    a, b = shapes(outputs)
    one = _above((1 - LOW) / (HIGH - LOW), a, b)
    zero = 1 - _above(-LOW / (HIGH - LOW), a, b)
    between = 1 - zero - one
    expected = mean(outputs)
    if continuous == "stretched":
        expected = (LOW + (HIGH - LOW) * expected).clamp(0, 1)
    extreme = (one > zero).to(outputs.dtype)
    return torch.where(between > torch.maximum(zero, one), expected, extreme) * words
