"""Draw what masking and training anew told: the curves, how sparse measures are, and the faithfulness of all."""

from pathlib import Path

import pandas as pd

from plumbline.figures.style import save
from plumbline.protocols.roar.figures import PUBLISHED, faithfulness_overview, roar_curves, sparsity_figure
from plumbline.runtime.job import job
from plumbline.store import read_table

with job(snakemake):
    headline, plots, random = snakemake.params.headline, snakemake.params.plots, snakemake.params.random
    roar, faithfulness, sparsity, reproduction = (
        read_table(path, kind).to_pandas()
        for kind in ("roar", "faithfulness", "sparsity", "reproduction")
        for path in [snakemake.input[kind]]
    )
    # In the order of the study.
    names = [*headline, *(plot["model"] for plot in plots if "model" in plot)]
    order = {name: place for place, name in enumerate(dict.fromkeys(names))}
    faithfulness = faithfulness.sort_values(
        ["dataset", "model"], key=lambda column: column.astype(str).map(order), kind="stable"
    )
    # The published values that ours are judged by; they say nothing about what was made otherwise.
    told = reproduction[(reproduction["study"] == "Recursive ROAR") & (reproduction["metric"] == "faithfulness")]
    told = told[told["within"].notna()]
    columns = {"measure_a": "measure", "published": "value", "published_low": "ci_low", "published_high": "ci_high"}
    published = told.rename(columns=columns).reindex(columns=PUBLISHED)

    def here(table: pd.DataFrame, dataset: str, model: str) -> pd.DataFrame:
        return table[(table["dataset"] == dataset) & (table["model"] == model)]

    for plot in plots:
        if plot["kind"] == "faithfulness":
            figure = faithfulness_overview(faithfulness, published)
        else:
            dataset, model = plot["dataset"], plot["model"]
            title = f"{dataset}, {model}"
            if plot["kind"] == "roar-curves":
                figure = roar_curves(here(roar, dataset, model), headline[dataset], title, random)
            else:
                figure = sparsity_figure(here(sparsity, dataset, model), title, random)
        save(figure, Path("results", "figures", plot["stem"]))
