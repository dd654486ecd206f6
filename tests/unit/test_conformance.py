"""Everything registered keeps its contract; and the suite notices objects that do not."""

from pathlib import Path

import pytest

from plumbline.conformance import check
from plumbline.registry import KINDS, Registry

REGISTRY = Registry()


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in REGISTRY.names(kind)])
def test_registered_object_conforms(kind, name):
    assert check(kind, name, REGISTRY) == []


BROKEN = {
    "wrong-shape": ("return Importances([np.zeros(3)] * len(instances))", "scores of shape (3,) for a text of 2 words"),
    "not-finite": ("return Importances([np.full(m.sum(), np.nan) for m in instances.maskable])", "are not finite"),
    "restless": (
        "return Importances([np.random.random(m.sum()) for m in instances.maskable])",
        "differ when it is run again",
    ),
    "greedy": (
        "return Importances([np.full(m.sum(), float(evaluator.budget.tokens)) for m in instances.maskable])",
        "depend on the token budget",
    ),
    "orderly": (
        "return Importances([np.full(m.sum(), float(i)) for i, m in enumerate(instances.maskable)])",
        "depend on the order of the texts",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_measure_is_noticed(name, tmp_path: Path):
    body, complaint = BROKEN[name]
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import numpy as np\nfrom plumbline.attribution.importances import Importances\n"
        "from plumbline.registry import measure\n\n"
        f'@measure("{name}", equation="?")\ndef broken(evaluator, instances):\n'
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
