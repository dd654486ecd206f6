"""Draw how alike the measures of a study rank words: histograms, matrices and differences."""

from pathlib import Path

import pandas as pd

from plumbline.figures.agreement import kendall, tau_histogram, tau_matrix
from plumbline.figures.differences import Roles, mean_differences
from plumbline.figures.style import save
from plumbline.job import job
from plumbline.store import read_json, read_table

with job(snakemake):
    taus = pd.concat(
        kendall(read_table(path, "scores")).assign(dataset=cell["dataset"], model=cell["model"])
        for cell, path in zip(snakemake.params.cells, snakemake.input.scores, strict=True)
    )
    classes = {summary["dataset"]: summary["classes"] for summary in map(read_json, snakemake.input.summaries)}
    for stem in sorted({Path(path).with_suffix("") for path in snakemake.output}):
        paths = [path for path in snakemake.output if Path(path).with_suffix("") == stem]
        dataset, model, title = stem.parent.name, stem.name, f"{stem.parent.name}, {stem.name}"
        here = taus[(taus["dataset"] == dataset) & (taus["model"] == model)]
        match stem.parent.parent.name:
            case "tau-histogram":
                save(tau_histogram(here, classes[dataset], title), paths)
            case "tau-matrix":
                save(tau_matrix(here, title), paths)
            case _:
                save(mean_differences(taus, Roles.of(snakemake.params.get("kinds", {}))), paths)
