"""Permuted and adversarial attention: batched, compared with one text at a time."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from data import build_evaluator, test_texts
from sizes import Sizes
from timing import Row, seconds

from plumbline.data.instances import Instances
from plumbline.models.attention import masked_softmax
from plumbline.models.batch import collate
from plumbline.models.budget import USEFUL_TOKENS
from plumbline.models.distances import jensen_shannon
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.attention.adversarial import AdversarialAttention
from plumbline.protocols.attention.permutation import permute_attention


def one_permutation_at_a_time(evaluator: Evaluator, instances: Instances, permutations: int) -> np.ndarray:
    """Permutation by definition: shuffle, run the output layer, repeat."""
    model, change = evaluator.model, np.empty((len(instances), permutations))
    with torch.no_grad():
        for i in range(len(instances)):
            batch = collate(instances.ids[i : i + 1], instances.maskable[i : i + 1], evaluator.device)
            encoded = model.encode(model.embedding(batch.ids), batch)
            attention = model.attend(encoded, batch)
            before = model.decode(encoded, attention).softmax(-1)
            words = np.tile(np.flatnonzero(instances.maskable[i]), (permutations, 1))
            for k, order in enumerate(instances.generator(i, evaluator.seed).permuted(words, axis=1)):
                shuffled = attention.clone()
                shuffled[0, words[0]] = attention[0, order]
                after = model.decode(encoded, shuffled).softmax(-1)
                change[i, k] = float((after - before).abs().sum()) / 2
    return change


def one_text_at_a_time(evaluator: Evaluator, instances: Instances, protocol: AdversarialAttention) -> None:
    """The adversarial search by definition, with automatic differentiation, for one text at a time."""
    model, search = evaluator.model, protocol.search
    for i in range(len(instances)):
        batch = collate(instances.ids[i : i + 1], instances.maskable[i : i + 1], evaluator.device)
        with torch.no_grad():
            encoded = model.encode(model.embedding(batch.ids), batch)
            attention = model.attend(encoded, batch)
            before = model.decode(encoded, attention).softmax(-1)
        for epsilon in protocol.epsilon:
            logits = search.spread * torch.randn(search.adversaries, *batch.ids.shape, device=evaluator.device)
            logits.requires_grad_()
            adam = torch.optim.Adam([logits], lr=search.learning_rate, amsgrad=True)
            for _ in range(search.steps):
                adversaries = masked_softmax(logits, batch.attendable)
                moved = (model.decode(encoded, adversaries).softmax(-1) - before).abs().sum(-1) / 2
                loss = search.penalty * (moved - epsilon).clamp(min=0).sum()
                loss = loss - jensen_shannon(adversaries, attention).sum()
                loss = loss - jensen_shannon(adversaries[:, None], adversaries[None]).sum() / search.adversaries**2
                adam.zero_grad()
                loss.backward()
                adam.step()


def rows(device: str, sizes: Sizes, prepared: list[Path]) -> Iterator[Row]:
    """Both experiments, per text: at SST's sizes, or on the test texts of prepared datasets."""
    for name, instances in test_texts(prepared, sizes.counterfactual.texts, 19):
        yield from _rows(f"per text, bilstm-tanh, {name}, {device}", instances, device, sizes)


def _rows(where: str, instances: Instances, device: str, sizes: Sizes) -> Iterator[Row]:
    words = 1 + max(int(ids.max()) for ids in instances.ids)
    evaluator = build_evaluator("bilstm-tanh", USEFUL_TOKENS[device], device, words)
    # The plain version takes seconds per text, so that only a few are timed.
    timed, permutations = sizes.counterfactual.timed, min(100, sizes.samples)
    few = instances.take(np.random.default_rng(0).choice(len(instances), timed, replace=False))
    slow, fast = (
        one_permutation_at_a_time(evaluator, few, permutations),
        permute_attention(evaluator, few, permutations)[0],
    )
    assert np.allclose(slow, fast, atol=1e-5)
    turns = range(sizes.turns)
    plain = min(seconds(lambda: one_permutation_at_a_time(evaluator, few, permutations)) for _ in turns) / timed
    ours = min(seconds(lambda: permute_attention(evaluator, instances, permutations)) for _ in turns) / len(instances)
    yield Row(f"{permutations} permutations, {where}", plain, ours, f"{1 / plain:,.1f} → {1 / ours:,.0f} texts/s")
    # PyTorch's first optimiser imports its compiler, which takes seconds.
    one_text_at_a_time(evaluator, few.take([0]), AdversarialAttention(steps=1))
    protocol = AdversarialAttention(steps=min(500, sizes.samples))
    plain = seconds(lambda: one_text_at_a_time(evaluator, few, protocol)) / timed
    ours = seconds(lambda: protocol._seed(evaluator, instances)) / len(instances)
    what = f"adversarial attention, 2 epsilons, 5 adversaries, {protocol.search.steps} steps, {where}"
    yield Row(what, plain, ours, f"{1 / plain:,.2f} → {1 / ours:,.0f} texts/s")
