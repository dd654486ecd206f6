"""LIME: a linear model of what the model says of texts of which random tokens are left.

Captum's Lime (Kokhlikyan et al. 2020) with a ridge, which takes a text at a time; here rows and samples share passes.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch

from plumbline.attribution.attribution_batch import AttributionBatch, at_least_one, copies, explain, outputs_with
from plumbline.attribution.importances import Function, Importances
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure

# The penalty of the ridge, and the least length of a vector in a cosine, as PyTorch has it.
ALPHA, LEAST = 1.0, 1e-8


class Kernel:
    """How close texts with tokens left out are to the text itself: exp(-(1 - cos(x, x~))² / 2).

    The cosine is that of the vectors of all tokens, one after the other. It comes from sums over tokens, so that for a
    sample it needs only what each token adds to them.
    """

    def __init__(self, question: AttributionBatch) -> None:
        x, b = question.vectors, question.baseline
        pair = question.batch.pair
        present = question.batch.present if pair is None else torch.cat([question.batch.present, pair.present], dim=1)
        self.kept, self.mixed, self.dropped = (
            (one * other).sum(-1, dtype=torch.float64) * present for one, other in ((x, x), (x, b), (b, b))
        )

    def __call__(self, kept: torch.Tensor) -> torch.Tensor:
        """The weights [n, B] of samples. kept: [n, B, T] in double precision, 1 where a token has its own vector."""
        product = self.mixed.sum(1) + torch.einsum("nbt,bt->nb", kept, self.kept - self.mixed)
        square = self.dropped.sum(1) + torch.einsum("nbt,bt->nb", kept, self.kept - self.dropped)
        squares = self.kept.sum(1).clamp(min=LEAST**2) * square.clamp(min=LEAST**2)
        return (-((1 - product / squares.sqrt()) ** 2) / 2).exp()


def ridge(moments: torch.Tensor) -> torch.Tensor:
    """The coefficients [B, F] of linear models with a free intercept, penalised by ALPHA ‖β‖².

    moments: [B, F + 2, F + 2], Σ_i w_i v_i v_iᵀ of v = (z, 1, y).
    """
    sums = moments[:, :, -2:-1]
    centred = moments - sums @ sums.mT / sums[:, -2:-1]
    penalty = ALPHA * torch.eye(moments.shape[-1] - 2, dtype=moments.dtype, device=moments.device)
    return torch.linalg.solve(centred[:, :-2, :-2] + penalty, centred[:, :-2, -1])


def numbered(question: AttributionBatch, shared: bool) -> torch.Tensor:
    """The number of each token's feature, [B, T], from 0; that of another if it is none.

    If `shared`, the features of a second text are counted from 0 again.
    """
    free, width = question.free, question.batch.ids.shape[1]
    counts = torch.cat([part.cumsum(1) for part in free.tensor_split([width], dim=1)], 1) if shared else free.cumsum(1)
    return (counts - 1).clamp(min=0)


def drawn(generators: Sequence[np.random.Generator], counts: Sequence[int], times: int) -> np.ndarray:
    """Which features are left, [times, B, F], each one time in two. counts: [B] the features of each row.

    A row's next samples, whatever was drawn at a time: single precision takes half a word of the stream, and then the
    other half.
    """
    left = np.zeros((times, len(counts), max(counts)), dtype=bool)
    for row, (generator, count) in enumerate(zip(generators, counts, strict=True)):
        left[:, row, :count] = generator.random((times, count), dtype=np.float32) < 0.5
    return left


def token_coefficients(
    evaluator: Evaluator,
    instances: Instances,
    question: AttributionBatch,
    function: Function,
    samples: int,
    shared: bool,
) -> torch.Tensor:
    """What each token's feature weighs in the linear model of its row, [B, T]."""
    numbers, device = numbered(question, shared), question.vectors.device
    counts = (numbers.amax(1) + 1).tolist()
    generators = [instances.generator(i, evaluator.seed) for i in question.index]
    kernel, size = Kernel(question), max(counts) + 2
    moments = torch.zeros(len(counts), size, size, dtype=torch.float64, device=device)
    together = copies(evaluator, question.batch)
    for start in range(0, samples, together):
        z = torch.from_numpy(drawn(generators, counts, min(together, samples - start))).to(device)
        kept = z.gather(2, numbers.expand(len(z), -1, -1))
        y = outputs_with(evaluator, question, kept, function).double()
        v = torch.cat([z.double(), torch.ones_like(y)[..., None], y[..., None]], dim=2)
        moments += torch.einsum("nbi,nbj->bij", kernel(kept.double())[..., None] * v, v)
    return ridge(moments).gather(1, numbers)


@measure(
    "lime-published",
    equation="|β_t| as of `lime`, token t of both texts one feature",
    pair_features="shared",
)
@measure(
    "lime",
    limits={"samples": [1, None]},
    equation="|β_t|, β = argmin Σ_i exp(-(1 - cos(x, x_i))² / 2) (p_c(x_i) - β₀ - β · z_i)² + ‖β‖²",
)
def lime(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit"] = "probability",
    baseline: Literal["pad", "zero"] = "pad",
    texts: Literal["first", "both"] = "both",
    specials: bool = True,
    sign: Literal["absolute", "signed"] = "absolute",
    samples: int = 1000,
    pair_features: Literal["distinct", "shared"] = "distinct",
) -> Importances:
    """What a token weighs in a linear model of the output of texts of which half the tokens are left at random.

    A token that is left out (z_t = 0, one time in two) has its baseline's vector. Samples count the more the closer
    they are to the text, and the linear model has a ridge. The tokens are drawn from the seed and the instance alone.
    `shared` is Neely et al.'s code for pairs, by a fault: token t of the text and token t of the second text are one
    feature, so that they come and go together and get the same score.
    """
    at_least_one("samples", samples)

    def answer(question: AttributionBatch) -> torch.Tensor:
        values = token_coefficients(evaluator, instances, question, function, samples, pair_features == "shared")
        return values.abs() if sign == "absolute" else values

    return explain(evaluator, instances, answer, target, baseline, texts, specials)
