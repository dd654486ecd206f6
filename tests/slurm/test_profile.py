"""The profile for SLURM knows all rules that ask for a GPU. It needs no cluster."""

import re

import pytest
import yaml
from snakemake.api import SnakemakeApi
from snakemake.settings.types import ConfigSettings, OutputSettings, ResourceSettings

from plumbline.data import raw

from ..pipeline.conftest import PROJECT

STUDIES = [PROJECT / "config.yaml", *sorted((PROJECT / "studies").glob("*.yaml"))]


@pytest.fixture
def rules(monkeypatch, tmp_path) -> dict[str, bool]:
    """All rules of the default study and the published ones, and whether they ask for a GPU."""
    monkeypatch.chdir(tmp_path)
    # Which rules there are does not depend on data.
    monkeypatch.setattr(raw, "check_raw", lambda resolved, folder: None)
    monkeypatch.setattr(raw, "downloads", lambda resolved, folder: [])
    # Parsing sets this for the jobs.
    monkeypatch.setenv("PYTHONPATH", "")
    found = {}
    for study in STUDIES:
        with SnakemakeApi(OutputSettings(quiet={"all"})) as snakemake:
            parsed = snakemake.workflow(
                ResourceSettings(), ConfigSettings(configfiles=[study]), snakefile=PROJECT / "Snakefile"
            )
            found |= {rule.name: bool(rule.resources.get("gpu").value) for rule in parsed._workflow.rules}
    return found


def test_rules_that_ask_for_a_gpu_go_to_its_partition(rules):
    asking = {rule for rule, asks in rules.items() if asks}
    assert {"train", "retrain", "attend", "attribute_together_1", "score_models", "trace"} < asking
    profile = yaml.safe_load((PROJECT / "profiles/slurm/config.yaml").read_text())
    sent = {rule for rule, resources in profile["set-resources"].items() if resources["slurm_partition"] == "gpu"}
    assert asking <= sent
    # A plug-in's cheap measures have rules of this kind too, so the profile names some that no study has yet.
    assert {rule for rule in sent if not re.fullmatch(r"attribute_together_\d", rule)} <= asking
    assert "slurm_partition=cpu" in profile["default-resources"]
