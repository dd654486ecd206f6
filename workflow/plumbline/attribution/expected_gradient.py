"""Expected gradients: integrated gradients with randomly sampled images as baselines.

Erion et al. 2021; SHAP's GradientExplainer computes the same, one image at a time.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
import torch

from plumbline.attribution.attribution_batch import AttributionBatch, copies_per_pass, explain, require_positive
from plumbline.attribution.importances import AttributionOptions, Importances
from plumbline.attribution.inputs import input_vectors
from plumbline.attribution.path import output_gradients
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


@measure(
    "expected-gradient",
    limits={"samples": [1, None]},
    needs=["gradient", "pixels"],
    pixels=True,
    cheap=True,
    whole=True,
    stochastic=True,
    equation="Σ_k |(1/n) Σ_i (x - b_i)_tk ∂f_c/∂x_tk (b_i + a_i (x - b_i))|, b_i of the explained, a_i ~ U(0, 1)",
    cost="`samples` forward and backward passes per image and one forward pass.",
    misleads="Baselines are the explained images, so scores change with the set that is explained. Mixtures of two "
    "images are out of the training distribution. Magnitudes hide whether a pixel speaks for or against the class.",
    citation=[
        "Erion, Janizek, Sturmfels, Lundberg & Lee (2021), Improving Performance of Deep Learning Models with "
        "Axiomatic Attribution Priors and Expected Gradients. Nature Machine Intelligence.",
        "Lundberg & Lee (2017), A Unified Approach to Interpreting Model Predictions. NeurIPS.",
    ],
)
def expected_gradient(
    evaluator: Evaluator,
    instances: Instances,
    *,
    target: Literal["predicted", "gold"] | int = "predicted",
    function: Literal["probability", "logit", "difference"] = "logit",
    samples: int = 200,
) -> Importances:
    """The mean gradient times difference at random points between sampled images and the image, magnitudes summed over
    channels.

    Baselines are sampled from all explained images, the image itself included. So scores depend on which images are
    explained but not on their order: images are sorted by split and instance, and samples depend on the seed and the
    instance alone.
    """
    require_positive("samples", samples)
    if len(set(instances.lengths.tolist())) > 1:
        raise PlumblineError(
            "Expected gradients interpolate between images, so all must have the same size; resize them."
        )
    background = np.lexsort((instances.instance, instances.split))

    def score(inputs: AttributionBatch) -> torch.Tensor:
        x, batch = inputs.vectors, inputs.batch
        generators = [instances.generator(i, evaluator.seed) for i in inputs.index]
        sampled = background[np.stack([g.integers(len(background), size=samples) for g in generators], axis=1)]
        points = torch.from_numpy(np.stack([g.random(samples) for g in generators], axis=1)).to(x)[..., None, None]
        total = torch.zeros_like(x, dtype=torch.float64)
        for part in torch.arange(samples).split(copies_per_pass(evaluator, batch)):
            ids = np.stack([instances.ids[i] for i in sampled[part.numpy()].ravel()])
            baselines = replace(batch.repeat(len(part)), ids=torch.from_numpy(ids).to(batch.ids))
            difference = x - input_vectors(evaluator.model, baselines).unflatten(0, (len(part), -1))
            moved = x - (1 - points[part.to(x.device)]) * difference
            total += (difference * output_gradients(evaluator.model, inputs, moved)).sum(0, dtype=torch.float64)
        return (total / samples).abs().sum(-1)

    options = AttributionOptions(target, function, texts="first", specials=False)
    return explain(evaluator, instances, score, options)
