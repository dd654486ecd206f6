"""A model whose output is flat for texts with erased words, so that all measures score well."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from plumbline.attribution.gradient import gradient
from plumbline.conformance import check, whole_batch
from plumbline.data.instances import Instances
from plumbline.data.vocabulary import EOS, SOS, SPECIALS
from plumbline.models.classifier import AttentionClassifier
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.erasure.score import Erasure
from plumbline.protocols.explained import Explanations
from plumbline.registry import Registry, load
from tests.unit.protocols.cells import Cell

PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "protocols" / "erasure.md").read_text(encoding="utf-8")
WORDS, DECISIVE = 40, len(SPECIALS)
ROW = re.compile(r"^\| (bilstm-tanh|inflated), `(\w+)`" + r" \| ([\d.]+)" * 4 + r" \|$", re.MULTILINE)


@dataclass(frozen=True)
class Erased(Cell):
    """A cell with importances in memory."""

    scores: dict[str, list[np.ndarray]] = field(default_factory=dict)

    def by_seed(self) -> Any:
        texts = self.instances()
        return [Explanations(0, texts.split, texts.instance, np.zeros(len(texts), dtype=np.int32), self.scores)]


def make_texts(count: int, seed: int) -> tuple[Instances, list[np.ndarray]]:
    """Texts of 8 to 14 words of which one determines the class; and where it is."""
    random = np.random.default_rng(seed)
    words = [random.integers(DECISIVE + 2, WORDS, size=8 + i % 7) for i in range(count)]
    label = random.integers(2, size=count).astype(np.int32)
    truth = [np.arange(len(text)) == random.integers(len(text)) for text in words]
    words = [np.where(flags, DECISIVE + own, text) for text, flags, own in zip(words, truth, label, strict=True)]
    ids = [np.concatenate([[SOS], text, [EOS]]).astype(np.int32) for text in words]
    maskable = [np.concatenate([[False], np.ones(len(text), dtype=bool), [False]]) for text in words]
    return Instances(np.full(count, "test"), np.arange(count, dtype=np.int32), label, ids, maskable), truth


def train(model: torch.nn.Module, steps: int = 80) -> None:
    texts, _ = make_texts(200, 1)
    batch, label = whole_batch(texts), torch.from_numpy(texts.label).long()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        optimiser.zero_grad()
        cross_entropy(model(batch).logits, label).backward()
        optimiser.step()


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the page."""
    block = next(block for block in re.findall(r"(?:^(?: {4}.*)?\n)+", PAGE, re.MULTILINE) if "# inflated.py" in block)
    path = tmp_path_factory.mktemp("plugin") / "inflated.py"
    path.write_text("".join(line[4:] or "\n" for line in block.splitlines(keepends=True)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def models(plugin: Path) -> dict[str, Evaluator]:
    """The ordinary model after training, and the same weights in the other one."""
    torch.manual_seed(0)
    embedding = torch.randn(WORDS, 16)
    embedding[0] = 0
    ordinary = AttentionClassifier(embedding, 2, hidden=16)
    train(ordinary)
    inflated = load(f"{plugin}:Inflated")(embedding, 2, hidden=16)
    inflated.load_state_dict(ordinary.state_dict())
    named = {"bilstm-tanh": ordinary, "inflated": inflated}
    return {name: Evaluator(model.requires_grad_(False), 0, 10_000) for name, model in named.items()}


def test_it_conforms(plugin: Path):
    assert check("model", "inflated", Registry([plugin])) == []


def test_predictions_and_importances_of_whole_texts_are_those_of_the_ordinary_model(models):
    texts, _ = make_texts(100, 2)
    ordinary, inflated = models.values()
    np.testing.assert_array_equal(ordinary.probabilities(texts), inflated.probabilities(texts))
    assert (ordinary.probabilities(texts).argmax(1) == texts.label).mean() > 0.95
    for own, other in zip(*(gradient(model, texts).scores for model in models.values()), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-5)


@pytest.mark.parametrize("removal", ["pad", "zero", "mask"])
def test_its_comprehensiveness_is_high_for_every_measure_and_random_too(models, removal):
    scores = comprehensiveness(models, removal)
    assert scores["bilstm-tanh", "truth"] > scores["bilstm-tanh", "random"] + 0.15
    assert scores["inflated", "random"] > scores["bilstm-tanh", "random"] + 0.15
    assert scores["inflated", "random"] == pytest.approx(scores["inflated", "truth"])


def test_deleted_words_leave_no_trace(models):
    scores = comprehensiveness(models, "delete")
    for measure in ("truth", "gradient", "random"):
        assert scores["inflated", measure] == pytest.approx(scores["bilstm-tanh", measure])


def test_the_numbers_of_the_page(models):
    found = {removal: comprehensiveness(models, removal) for removal in ("pad", "delete")}
    shares = {name: share_on_truth(model) for name, model in models.items()}
    rows = ROW.findall(PAGE)
    assert [row[:2] for row in rows] == [(name, removal) for name in models for removal in found]
    for name, removal, *numbers in rows:
        own = [found[removal][name, measure] for measure in ("truth", "gradient", "random")]
        assert list(map(float, numbers)) == pytest.approx([*own, shares[name]], abs=0.03)


def comprehensiveness(models: dict[str, Evaluator], removal: Any) -> dict[tuple[str, str], float]:
    """The mean area over the perturbation curve of each model and measure."""
    texts, truth = make_texts(100, 2)
    random = [np.random.default_rng([3, i]).random(len(flags)) for i, flags in enumerate(truth)]
    found = {}
    for name, evaluator in models.items():
        scores = {"truth": truth, "gradient": gradient(evaluator, texts).scores, "random": random}
        cell = Erased(Path(), {}, [0], ["test"], models=lambda one=evaluator: [one], loaded=texts, scores=scores)
        columns = Erasure(ratios=[10, 20, 50], removal=removal, draws=0, longest=0).score(cell)
        for measure in scores:
            found[name, measure] = columns["comprehensiveness"][columns["measure"] == measure].mean()
    return found


def share_on_truth(evaluator: Evaluator) -> float:
    """The mean share of the gradient's importance on the decisive word."""
    texts, truth = make_texts(100, 2)
    rows = zip(gradient(evaluator, texts).scores, truth, strict=True)
    return float(np.mean([scores[flags].sum() / scores.sum() for scores, flags in rows]))
