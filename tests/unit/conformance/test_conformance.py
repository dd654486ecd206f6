"""All registered objects conform, and the checks notice objects that do not."""

from itertools import combinations
from pathlib import Path

import pytest
import torch

from plumbline.conformance import check, example_model
from plumbline.conformance.declarations import FEW_STEPS
from plumbline.registry import KINDS, Registry

REGISTRY = Registry()
CHECKPOINTS = [("roberta", 0), ("minilm", 0), ("roberta", 1)]


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in REGISTRY.names(kind)])
def test_registered_object_conforms(kind, name):
    assert check(kind, name, REGISTRY) == []


BROKEN = {
    "wrong-shape": (
        "return Importances([np.zeros(3)] * len(instances))",
        "scores of shape (3,) for text 0, which has 2 words",
    ),
    "not-finite": ("return Importances([np.full(m.sum(), np.nan) for m in instances.maskable])", "are not finite"),
    "restless": (
        "return Importances([np.random.random(m.sum()) for m in instances.maskable])",
        "differ between runs",
    ),
    "greedy": (
        "return Importances([np.full(m.sum(), float(evaluator.budget.tokens)) for m in instances.maskable])",
        "depend on the batch: the token budget",
    ),
    "orderly": (
        "return Importances([np.full(m.sum(), float(i)) for i, m in enumerate(instances.maskable)])",
        "depend on the order of the texts",
    ),
    "relative": (
        "mean = np.mean([m.sum() for m in instances.maskable])\n"
        "    return Importances([np.full(m.sum(), m.sum() / mean) for m in instances.maskable])",
        "depend on which other texts are explained",
    ),
    "crashing": (
        "return 1 / 0",
        "on every model it fails with ZeroDivisionError: division by zero (plugin.py, line 8).",
    ),
    "forgetful": ("Importances([])", "it returns None; end with `return Importances(scores)`."),
    "missing": ("return Importances([])", "it returns scores for 0 of 12 texts; return one array for each."),
    "boundless": (
        "return Importances([np.arange(m.sum(), dtype=float) for m in instances.maskable])",
        "its scores range from 0 to 12, outside its declared range [0, 1].",
    ),
    "drawing": (
        "draws = [instances.generator(i, evaluator.seed) for i in range(len(instances))]\n"
        "    return Importances([draw.random(m.sum()) for draw, m in zip(draws, instances.maskable)])",
        "state stochastic=True in its declaration.",
    ),
    "constant": ("return Importances([np.ones(m.sum()) for m in instances.maskable])", "but its scores do not depend"),
}
FACTS = {"boundless": ", range=[0, 1]", "constant": ", stochastic=True"}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_measure_is_noticed(name, tmp_path: Path):
    body, complaint = BROKEN[name]
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import numpy as np\nfrom plumbline.attribution.importances import Importances\n"
        "from plumbline.registry import measure\n\n"
        f'@measure("{name}", equation="?"{FACTS.get(name, "")})\ndef broken(evaluator, instances):\n'
        f'    """Broken on purpose."""\n    {body}\n'
    )
    faults = check("measure", name, Registry([plugin]))
    assert any(complaint in fault for fault in faults), faults


def test_undocumented_metric_is_noticed(tmp_path: Path):
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        'from plumbline.registry import metric\n\n@metric("m", direction="up")\ndef m(a, b):\n    return 0.0\n'
    )
    faults = check("metric", "m", Registry([plugin]))
    assert len(faults) == 5 and any("direction is 'up'" in fault for fault in faults)


def test_measures_get_frozen_models_with_gradients_enabled(tmp_path: Path):
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import numpy as np\nimport torch\nfrom plumbline.attribution.importances import Importances\n"
        "from plumbline.registry import measure\n\n"
        '@measure("norms", equation="|e|")\ndef norms(evaluator, instances):\n    """Lengths of word vectors."""\n'
        "    assert torch.is_grad_enabled()\n    torch.set_grad_enabled(False)\n"
        "    length = evaluator.model.embedding.weight.norm(dim=1).numpy()\n"
        "    return Importances([length[i][m] for i, m in zip(instances.ids, instances.maskable)])\n"
    )
    assert check("measure", "norms", Registry([plugin])) == []


STEPPED = {
    "quick": (f"assert steps == {FEW_STEPS}", []),
    "slow": ("assert steps == 50", []),
    "wrong": ("assert False, steps", ["on every model it fails with AssertionError: 50 (plugin.py, line 8)."]),
    "partial": (
        "assert not hasattr(evaluator.model, 'types'), 'no'",
        [
            "on model 'causal', 'distilbert', 'minilm-song', 'distilbert-uniform', 'minilm-song-uniform', 'minilm', "
            "'pretrained', 'roberta' it fails with AssertionError: no (plugin.py, line 8)."
        ],
    ),
}


@pytest.mark.parametrize("name", STEPPED)
def test_steps_are_few_unless_a_measure_needs_more_and_equivalent_models_are_all_named(name, tmp_path: Path):
    body, complaints = STEPPED[name]
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import numpy as np\nfrom plumbline.attribution.importances import Importances\n"
        "from plumbline.registry import measure\n\n"
        f'@measure("{name}", equation="1")\ndef stepped(evaluator, instances, *, steps: int = 50):\n'
        f'    """Takes steps."""\n    {body}\n'
        "    return Importances([np.ones(m.sum()) for m in instances.maskable])\n"
    )
    assert check("measure", name, Registry([plugin])) == [
        f"The measure '{name}': {complaint}" for complaint in complaints
    ]


@pytest.mark.parametrize(("least", "faults"), [(0, 0), (50, 0), (51, 1)])
def test_steps_are_few_unless_a_protocol_needs_more(least: int, faults: int, tmp_path: Path):
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "from plumbline.errors import PlumblineError\nfrom plumbline.protocols.erasure.score import Erasure\n"
        "from plumbline.registry import protocol\n\n"
        '@protocol("stepped", needs=["gradient"], equation="1")\nclass Stepped(Erasure):\n    """Takes steps."""\n\n'
        "    def __init__(self, *, steps: int = 50) -> None:\n        super().__init__(draws=1)\n"
        f"        assert steps in (50, {FEW_STEPS})\n"
        f"        if steps < {least}:\n            raise PlumblineError('too few')\n"
    )
    assert len(check("protocol", "stepped", Registry([plugin]))) == faults


def test_models_that_start_from_a_checkpoint_share_it_and_draw_their_output_layer():
    states = [example_model(REGISTRY.get("model", name), seed).state_dict() for name, seed in CHECKPOINTS]
    drawn = [{key for key in a if not torch.equal(a[key], b[key])} for a, b in combinations(states, 2)]
    assert drawn[0] == set() and drawn[1] == drawn[2] != set()
    assert all("classifier" in key for key in drawn[1])


BROKEN_HEADS = {
    "none": ("Output(o.logits, o.attention)", "it provides 'heads', but its output has none."),
    "flat": ("o._replace(heads=o.attention)", "its `heads` has shape (12, 15), not [B, K, L]."),
    "turned": ("o._replace(heads=o.heads.mT)", "its `heads` has shape (12, 15, 4), not [B, K, L]."),
    "halved": ("o._replace(heads=o.heads / 2)", "one of its heads does not sum to 1."),
    "everywhere": (
        "o._replace(heads=torch.full_like(o.heads, 1 / 15))",
        "one of its heads has weight on special tokens or padding.",
    ),
    "one": ("o._replace(attention=o.heads[:, 0])", "its attention is not the mean of its heads."),
    "swapped": (
        "o._replace(heads=o.heads.flip(1))",
        "its `decode` does not accept stacked weights [..., B, K, L].",
    ),
    "other": (
        "o._replace(logits=2 * o.logits)",
        "its `encode`, `attend` and `decode` do not reproduce its logits.",
    ),
}


@pytest.mark.parametrize("name", BROKEN_HEADS)
def test_broken_heads_are_noticed(name, tmp_path: Path):
    body, complaint = BROKEN_HEADS[name]
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import torch\nfrom plumbline.models.classifier import Output\n"
        "from plumbline.models.multi_head import MultiHeadClassifier\n"
        "from plumbline.registry import model\n\n"
        f'@model("{name}", provides=["heads"])\nclass Broken(MultiHeadClassifier):\n    """Broken on purpose."""\n\n'
        "    def forward(self, batch, embedded=None):\n        o = super().forward(batch, embedded)\n"
        f"        return {body}\n"
    )
    faults = check("model", name, Registry([plugin]))
    assert f"The model '{name}': {complaint}" in faults, faults


BROKEN_PAIRS = {
    "sideless": (
        "def forward(self, batch, embedded=None):",
        "super().forward(batch, embedded)",
        "has no `pair_embedded`",
    ),
    "deaf": (
        "def forward(self, batch, embedded=None, pair_embedded=None):",
        "super().forward(batch, embedded)",
        "but the gradient to the word vectors of second texts is zero or not finite.",
    ),
    "stubborn": (
        "def forward(self, batch, embedded=None, pair_embedded=None):",
        "super().forward(batch, embedded, None if pair_embedded is None else 2 * pair_embedded)",
        "its logits for word vectors differ from those for the words.",
    ),
    "halved": (
        "def forward(self, batch, embedded=None, pair_embedded=None):",
        "(o := super().forward(batch, embedded, pair_embedded))._replace(pair_attention=o.pair_attention / 2)",
        "its attention to the second text does not sum to 1.",
    ),
    "first": (
        "def forward(self, batch, embedded=None, pair_embedded=None):",
        "(o := super().forward(batch, embedded, pair_embedded))._replace(pair_attention=o.attention)",
        "its `pair_attention` has shape (12, 15), not [B, M].",
    ),
}


@pytest.mark.parametrize("name", BROKEN_PAIRS)
def test_broken_models_of_pairs_are_noticed(name, tmp_path: Path):
    signature, body, complaint = BROKEN_PAIRS[name]
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "from plumbline.models.paired import SharedClassifier\nfrom plumbline.registry import model\n\n"
        f'@model("{name}", provides=["gradient"], tasks=["inference"])\nclass Broken(SharedClassifier):\n'
        f'    """Broken on purpose."""\n\n    {signature}\n        return {body}\n'
    )
    faults = check("model", name, Registry([plugin]))
    assert any(complaint in fault for fault in faults), faults


BROKEN_LAYERS = {
    "flat": ("layers", "output.mean(2)", "has shape (12, 2, 15, 15), not [B, layers, heads, T, T] with T = 15."),
    "wide": ("readout", "output[:, 1:]", "its `readout` has shape (12, 14), not [B, T] with T = 15."),
    "doubled": ("layers", "2 * output", "a row of its `layers` does not sum to 1."),
    "even": ("layers", "torch.full_like(output, 1 / 15)", "its `layers` has weight on padding."),
    "padded": ("readout", "torch.full_like(output, 1 / output.shape[1])", "its `readout` has weight on padding."),
    "mixed": (
        "layers",
        "output.flip(0) if len(output) > 1 else output",
        "its `layers` depend on the padding or on the other",
    ),
    "crowded": (
        "readout",
        "output if len(output) > 1 else output.flip(1)",
        "its `readout` depends on the padding or on the",
    ),
    "short": ("vectors", "output[:, 1:]", "its `vectors` has shape (12, 14, 16), not [B, T, d] with T = 15."),
    "moved": ("vectors", "output + 0.1", "its `read` of its `vectors` does not reproduce its logits."),
    "crossed": (
        "vectors",
        "output if len(output) > 1 else output + 0.1",
        "its `vectors` depend on the padding or on the",
    ),
    "cut": ("read", "self(batch)", "the gradient of its `read` to its `vectors` is zero or not finite."),
    "hooked": (
        "read",
        "(self.encoder.base_model.embeddings.register_forward_hook(lambda m, i, o: o + 0.1), output)[1]",
        "its logits change after `vectors` and `read` are called.",
    ),
}


@pytest.mark.parametrize("name", BROKEN_LAYERS)
def test_broken_layers_and_vectors_are_noticed(name, tmp_path: Path):
    method, body, complaint = BROKEN_LAYERS[name]
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import torch\nfrom plumbline.models.transformer import TransformerClassifier\n"
        "from plumbline.registry import model\n\n"
        f'@model("{name}", provides=["layers"], reads="subwords")\nclass Broken(TransformerClassifier):\n'
        '    """Broken on purpose."""\n\n    def __init__(self, embedding, classes, *, checkpoint: str = ""):\n'
        "        super().__init__(embedding, classes, checkpoint=checkpoint)\n\n"
        f"    def {method}(self, batch, *rest):\n        output = super().{method}(batch, *rest)\n"
        f"        return {body}\n"
    )
    faults = check("model", name, Registry([plugin]))
    assert any(complaint in fault for fault in faults), faults
