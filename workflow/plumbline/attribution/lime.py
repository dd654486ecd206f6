"""LIME: a linear model of the output for texts with a random half of their tokens kept.

Captum's Lime (Kokhlikyan et al. 2020) with ridge regression explains one text at a time; here texts and samples share
passes.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import torch

from plumbline.attribution.attribution_batch import AttributionBatch, copies_per_pass, explain, require_positive
from plumbline.attribution.importances import AttributionOptions, Importances, passes_in
from plumbline.attribution.inputs import feature_mask
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure

# The ridge penalty, and PyTorch's lower bound of vector norms in a cosine.
ALPHA, MIN_NORM = 1.0, 1e-8


class Kernel:
    """The similarity of perturbed texts to the text itself: exp(-(1 - cos(x, x~))² / 2).

    The cosine is that of the concatenated vectors of all tokens. It is computed from sums over tokens, so that a sample
    needs only the term of each token.
    """

    def __init__(self, inputs: AttributionBatch) -> None:
        x, b = inputs.vectors, inputs.baseline
        present = feature_mask(inputs.batch)
        self.kept, self.mixed, self.dropped = (
            (left * right).sum(-1, dtype=torch.float64) * present for left, right in ((x, x), (x, b), (b, b))
        )

    def __call__(self, kept: torch.Tensor) -> torch.Tensor:
        """The weights [n, B] of samples. kept: [n, B, T] in double precision, 1 where a token keeps its vector."""
        product = self.mixed.sum(1) + torch.einsum("nbt,bt->nb", kept, self.kept - self.mixed)
        square = self.dropped.sum(1) + torch.einsum("nbt,bt->nb", kept, self.kept - self.dropped)
        squares = self.kept.sum(1).clamp(min=MIN_NORM**2) * square.clamp(min=MIN_NORM**2)
        return (-((1 - product / squares.sqrt()) ** 2) / 2).exp()


def ridge(moments: torch.Tensor) -> torch.Tensor:
    """The coefficients [B, F] of linear models with an unpenalised intercept and the penalty ALPHA ‖β‖².

    moments: [B, F + 2, F + 2], Σ_i w_i v_i v_iᵀ of v = (z, 1, y).
    """
    sums = moments[:, :, -2:-1]
    centred = moments - sums @ sums.mT / sums[:, -2:-1]
    penalty = ALPHA * torch.eye(moments.shape[-1] - 2, dtype=moments.dtype, device=moments.device)
    return torch.linalg.solve(centred[:, :-2, :-2] + penalty, centred[:, :-2, -1])


def feature_numbers(inputs: AttributionBatch, shared: bool) -> torch.Tensor:
    """The number of each token's feature, [B, T], from 0; arbitrary for a token that is no feature.

    If `shared`, the features of a second text are numbered from 0 again.
    """
    parts = inputs.features.tensor_split([inputs.batch.ids.shape[1]], dim=1) if shared else [inputs.features]
    return (torch.cat([part.cumsum(1) for part in parts], dim=1) - 1).clamp(min=0)


def draw_features(generators: Sequence[np.random.Generator], counts: Sequence[int], times: int) -> np.ndarray:
    """The kept features, [times, B, F], each with probability 1/2. counts: [B] the number of features of each row.

    The samples of a row do not depend on how many are drawn per call: each single-precision number takes half a word of
    the generator's stream, and the next number the other half.
    """
    kept = np.zeros((times, len(counts), max(counts)), dtype=bool)
    for row, (generator, count) in enumerate(zip(generators, counts, strict=True)):
        kept[:, row, :count] = generator.random((times, count), dtype=np.float32) < 0.5
    return kept


def feature_coefficients(
    evaluator: Evaluator,
    instances: Instances,
    inputs: AttributionBatch,
    numbers: torch.Tensor,
    samples: int,
    weigh: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    whole_first: bool = False,
) -> torch.Tensor:
    """The coefficient of each token's feature in the linear model of its row, [B, T]. numbers: [B, T] the features.

    `weigh` returns the weights [n, B] of samples from the kept features [n, B, F] and tokens [n, B, T] in double
    precision. With `whole_first` the first sample keeps everything.
    """
    counts = numbers.amax(1) + 1
    size = int(counts.max())
    generators = [instances.generator(i, evaluator.seed) for i in inputs.index]
    moments = torch.zeros(len(counts), size + 2, size + 2, dtype=torch.float64, device=numbers.device)
    copies = copies_per_pass(evaluator, inputs.batch)
    for start in range(0, samples, copies):
        drawn = draw_features(generators, counts.tolist(), min(copies, samples - start))
        z = torch.from_numpy(drawn).to(numbers.device)
        if whole_first and start == 0:
            z[0] = torch.arange(size, device=z.device) < counts[:, None]
        kept = z.gather(2, numbers.expand(len(z), -1, -1))
        y = inputs.masked_outputs(evaluator.model, kept)
        v = torch.cat([z.double(), torch.ones_like(y)[..., None], y[..., None]], dim=2)
        moments += torch.einsum("nbi,nbj->bij", weigh(z.double(), kept.double())[..., None] * v, v)
    return ridge(moments).gather(1, numbers)


@measure(
    "lime-published",
    summary="LIME as in Neely et al.'s code, where token t of both texts of a pair is one feature.",
    equation="|β_t| as of `lime`, token t of both texts one feature",
    misleads="For comparison with published numbers only: in pairs, token t of both texts has one score. Else as "
    "`lime`.",
    citation=[
        "Neely, Schouten, Bleeker & Lucic (2022), A Song of (Dis)agreement: Evaluating the Evaluation of Explainable "
        "Artificial Intelligence in Natural Language Processing. HHAI.",
        "Ribeiro, Singh & Guestrin (2016), “Why Should I Trust You?”: Explaining the Predictions of Any Classifier. "
        "KDD.",
    ],
    pair_features="shared",
)
@measure(
    "lime",
    limits={"samples": [1, None]},
    stochastic=True,
    equation="|β_t|, β = argmin Σ_i exp(-(1 - cos(x, x_i))² / 2) (p_c(x_i) - β₀ - β · z_i)² + ‖β‖²",
    cost="`samples` forward passes per text, and a linear system with an unknown for each token.",
    misleads="With few `samples` for the length of a text two runs rank words differently: see the protocol "
    "`reliability`. Texts with half of their tokens as padding are out of the training distribution. A linear model "
    "has no interactions of words.",
    citation="Ribeiro, Singh & Guestrin (2016), “Why Should I Trust You?”: Explaining the Predictions of Any "
    "Classifier. KDD.",
)
@passes_in("tf32")
def lime(
    evaluator: Evaluator,
    instances: Instances,
    *,
    options: AttributionOptions = AttributionOptions(),
    sign: Literal["absolute", "signed"] = "absolute",
    samples: int = 1000,
    pair_features: Literal["distinct", "shared"] = "distinct",
) -> Importances:
    """The coefficient of a token in a linear model of the output for texts with a random half of their tokens kept.

    A token that is dropped (z_t = 0, with probability 1/2) has its baseline's vector. Samples are weighted by their
    similarity to the text, and the model is a ridge regression. Samples depend on the seed and the instance alone.

    Options:
        pair_features: `shared` reproduces a fault of Neely et al.'s code: token t of both texts of a pair is one
            feature, kept or dropped together, with one score.
    """
    require_positive("samples", samples)

    def score(inputs: AttributionBatch) -> torch.Tensor:
        numbers, kernel = feature_numbers(inputs, pair_features == "shared"), Kernel(inputs)
        return feature_coefficients(evaluator, instances, inputs, numbers, samples, lambda _, kept: kernel(kept))

    return explain(evaluator, instances, score, options, sign, samples)
