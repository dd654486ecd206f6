"""A study of nothing but what `plumbline new` writes."""

import pandas as pd
import pytest

from plumbline.cli import main

from .conftest import copy_project, run_snakemake, write_config

pytestmark = pytest.mark.studies

KINDS = ("dataset", "manipulation", "measure", "model", "protocol")
STUDY = {
    "name": "one's own",
    "datasets": {"whole-dataset": {"preparation": {"embedding": {"dimensions": 8}}}},
    "manipulations": {"whole-manipulation": {"r": 0.5}},
    "models": {"whole-model": {"hidden": 8, "training": {"epochs": 2}}},
    "measures": ["leave-one-out", "whole-measure"],
    "protocols": ["ground_truth", "whole-protocol"],
}


def test_a_study_of_templates_alone_runs(tmp_path):
    """Every kind at once, through the whole workflow."""
    folder = copy_project(tmp_path / "study")
    for kind in KINDS:
        assert main(["new", kind, f"whole-{kind}", "--folder", str(folder)]) == 0
    raw = folder / "raw" / "whole-dataset"
    raw.mkdir()
    lines = [f"{['bad', 'good'][i % 2]}\tfilm {i % 7} was {['dull', 'great'][i % 2]} again\n" for i in range(160)]
    (raw / "all.tsv").write_text("".join(lines))
    write_config(folder, {**STUDY, "plugins": [f"whole_{kind}.py" for kind in KINDS]})
    done = run_snakemake(folder, "all", "--cores", "2")
    assert done.returncode == 0, done.stdout
    names = ("performance", "scorecard", *STUDY["protocols"])
    tables = {name: f"results/tables/{name}.parquet" for name in names}
    found = {name: pd.read_parquet(folder / path) for name, path in tables.items()}
    assert set(found["performance"]["variant"]) == {"plain", "whole-manipulation"}
    assert set(found["ground_truth"]["group"]) == {"marks", "other"}
    own = found["whole-protocol"]
    assert set(own["measure"]) == {"leave-one-out", "whole-measure"}
    assert own["mean"].between(0, 1).all() and (own["n"] > 0).all()
    # What the plug-in declares is there as what the library declares is.
    column = found["scorecard"][found["scorecard"]["criterion"] == "whole-protocol"]
    assert set(column["measure"]) == {"leave-one-out", "whole-measure"} and set(column["status"]) == {"ok"}
    page = (folder / "results/report/whole-protocol.html").read_text()
    assert "figures/whole-protocol.svg" in page and "All means" in page
    assert all((folder / f"results/figures/whole-protocol.{suffix}").is_file() for suffix in ("svg", "pdf", "png"))
