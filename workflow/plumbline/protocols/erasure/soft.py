"""Soft erasure: elements of the vectors of all words are zeroed at random, with a probability given by importance."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from plumbline.attribution.explained_output import ExplainedOutput
from plumbline.attribution.inputs import forward_vectors, input_vectors
from plumbline.models.batch import Batch
from plumbline.protocols.erasure.erased import WholeTexts
from plumbline.protocols.erasure.metrics import FloatArray
from plumbline.training.performance import midranks

# How close the mean of keep probabilities is to the retention.
EXACTNESS = 1e-12


def keep_probabilities(scores: np.ndarray, retention: float) -> tuple[FloatArray, FloatArray]:
    """The probabilities [words] with which soft comprehensiveness and soft sufficiency keep the elements of each word
    of a text: (1 - u)^γ and u^γ, with midranks u and for each the γ with which the mean is `retention`.

    They depend on the order of the scores alone, so every measure keeps equally much. NaN counts as the lowest score.
    """
    ranks = (midranks(np.where(np.isnan(scores), -np.inf, scores)) - 0.5) / max(1, len(scores))
    return _with_mean(1 - ranks, retention), _with_mean(ranks, retention)


def _with_mean(ranks: FloatArray, mean: float) -> FloatArray:
    """The power of the ranks, all between 0 and 1, with this mean.

    The mean falls with the exponent and is convex in it, so that Newton's method rises to the solution from below.
    """
    if not len(ranks):
        return ranks
    logarithms = np.log(ranks)
    exponent = np.log(mean) / logarithms.min()
    while (powers := np.exp(exponent * logarithms)).mean() - mean > EXACTNESS:
        exponent -= (powers.mean() - mean) / (powers * logarithms).mean()
    return powers


def rescaled(scores: np.ndarray) -> tuple[FloatArray, FloatArray]:
    """The keep probabilities [words] as published: 1 - a and a, with scores a min-max scaled to 0 … 1 within a text.

    a is ½ if all scores are equal; NaN counts as the minimum.
    """
    finite = np.nan_to_num(scores.astype(np.float64), nan=-np.inf)
    finite = np.where(np.isneginf(finite), finite[np.isfinite(finite)].min(initial=0.0), finite)
    width = np.ptp(finite) if len(finite) else 0.0
    important = (finite - finite.min()) / width if width > 0 else np.full(len(finite), 0.5)
    return 1 - important, important


def soft_falls(
    whole: WholeTexts, keeps: Mapping[str, Sequence[tuple[FloatArray, FloatArray]]], draws: int
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """The fall [N] of the output without any word, and by measure the mean falls [2, N] with the elements of each word
    kept by the two probabilities of `keeps`. The draws are the same for every measure."""
    evaluator, instances, predicted, output, *_ = whole
    fall_to_nothing = np.full(len(instances), np.nan)
    mean_falls = {measure: np.full((2, len(instances)), np.nan) for measure in keeps}

    def work(index: np.ndarray, batch: Batch) -> None:
        with torch.no_grad():
            vectors = input_vectors(evaluator.model, batch)
            free = torch.nn.functional.pad(batch.attendable, (0, vectors.shape[1] - batch.attendable.shape[1]))
            explained = ExplainedOutput(torch.from_numpy(predicted[index]).long().to(vectors.device), "probability")

            def falls(keep: torch.Tensor) -> FloatArray:
                logits = forward_vectors(evaluator.model, batch, vectors * keep).logits
                return output[index] - explained.value(logits).double().cpu().numpy()

            fall_to_nothing[index] = falls(~free[..., None])
            at_words = {
                measure: [_at_words(free, [rows[i][way] for i in index]) for way in range(2)]
                for measure, rows in keeps.items()
            }
            generators = [instances.generator(int(i), evaluator.seed) for i in index]
            sums = {measure: np.zeros((2, len(index))) for measure in keeps}
            for _ in range(draws):
                uniform = _uniform(free, generators, vectors)
                for measure, ways in at_words.items():
                    sums[measure] += [falls(uniform < keep[..., None]) for keep in ways]
        for measure, values in sums.items():
            mean_falls[measure][:, index] = values / draws

    evaluator.each(instances, work)
    return fall_to_nothing, mean_falls


def _at_words(free: torch.Tensor, rows: Sequence[np.ndarray]) -> torch.Tensor:
    """One number per word at the positions of the words, [B, T]; 1 elsewhere."""
    values = torch.ones(free.shape)
    values[free.cpu()] = torch.from_numpy(np.concatenate([*rows]).astype(np.float32))
    return values.to(free.device)


def _uniform(free: torch.Tensor, generators: Sequence[np.random.Generator], vectors: torch.Tensor) -> torch.Tensor:
    """Uniform numbers for the embeddings of words, from one generator per text; -1 elsewhere, which is always kept."""
    drawn = torch.full_like(vectors, -1)
    for row, (generator, words) in enumerate(zip(generators, free, strict=True)):
        numbers = generator.random((int(words.sum()), vectors.shape[-1]), dtype=np.float32)
        drawn[row, words] = torch.from_numpy(numbers).to(vectors.device, vectors.dtype)
    return drawn
