"""The profile for SLURM lists all rules that request a GPU. Needs no cluster."""

from itertools import product

import pytest
import yaml
from snakemake.api import SnakemakeApi
from snakemake.settings.types import ConfigSettings, OutputSettings, ResourceSettings

from plumbline.data import raw

from ..pipeline.conftest import PROJECT

STUDIES = [PROJECT / "config.yaml", *sorted((PROJECT / "studies").glob("*.yaml"))]
# What is changed of them: some rules are only there if what is retrained does not stay.
CHANGES = [{}, {"compute": {"keep_retrained": False}}]


@pytest.fixture
def rules(monkeypatch, tmp_path) -> dict[str, bool]:
    """All rules of the default study and the published ones, and whether they request a GPU."""
    monkeypatch.chdir(tmp_path)
    # Which rules there are does not depend on data.
    monkeypatch.setattr(raw, "check_raw", lambda resolved, folder: None)
    monkeypatch.setattr(raw, "downloads", lambda resolved, folder: [])
    # Parsing sets this for the jobs.
    monkeypatch.setenv("PYTHONPATH", "")
    found = {}
    for study, changed in product(STUDIES, CHANGES):
        with SnakemakeApi(OutputSettings(quiet={"all"})) as snakemake:
            parsed = snakemake.workflow(
                ResourceSettings(),
                ConfigSettings(config=changed, configfiles=[study]),
                snakefile=PROJECT / "Snakefile",
            )
            found |= {rule.name: bool(rule.resources.get("gpu").value) for rule in parsed._workflow.rules}
    return found


def test_rules_that_request_a_gpu_go_to_its_partition(rules):
    asking = {rule for rule, asks in rules.items() if asks}
    assert {"train", "retrain", "extract_attention", "attribute", "score_models", "trace"} < asking
    profile = yaml.safe_load((PROJECT / "profiles/slurm/config.yaml").read_text())
    sent = {rule for rule, resources in profile["set-resources"].items() if resources["slurm_partition"] == "gpu"}
    assert asking == sent
    assert "slurm_partition=cpu" in profile["default-resources"]
