"""Draw how alike the measures of a study rank words: histograms, matrices and differences; and print the matrices."""

from pathlib import Path

import pandas as pd

from plumbline.figures.style import save
from plumbline.protocols.agreement.differences import Roles, mean_differences
from plumbline.protocols.agreement.figures import kendall, measures_of, tau_histogram, tau_matrix
from plumbline.protocols.agreement.matrices import correlation_matrices
from plumbline.runtime.job import job
from plumbline.store import read_record, read_table, write_text
from plumbline.tables.export import latex_matrices

with job(snakemake):
    taus = pd.concat(
        kendall(read_table(path, "scores")).assign(dataset=cell["dataset"], model=cell["model"])
        for cell, path in zip(snakemake.params.cells, snakemake.input.scores, strict=True)
    )
    classes = {summary["dataset"]: summary["classes"] for summary in map(read_record, snakemake.input.summaries)}
    agreement = read_table(snakemake.input.table, "agreement").to_pandas()
    write_text(snakemake.output.latex, latex_matrices(agreement, measures_of(agreement)))
    for plot in snakemake.params.plots:
        stem = Path("results", "figures", plot["stem"])
        if plot["kind"] == "mean-differences":
            save(mean_differences(taus, Roles.of(snakemake.params.kinds)), stem)
            continue
        if plot["kind"] == "correlation-matrices":
            own = agreement[agreement["model"] == plot["model"]]
            save(correlation_matrices(own, snakemake.params.datasets, plot["model"]), stem)
            continue
        dataset, model = plot["dataset"], plot["model"]
        here = taus[(taus["dataset"] == dataset) & (taus["model"] == model)]
        title = f"{dataset}, {model}"
        if plot["kind"] == "tau-histogram":
            save(tau_histogram(here, classes[dataset], title), stem)
        else:
            save(tau_matrix(here, title), stem)
