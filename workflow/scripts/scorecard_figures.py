"""Draw the scorecard, of the whole study and of each dataset and model, and whether the protocols agree."""

from pathlib import Path

from plumbline.figures.style import save
from plumbline.protocols.scorecard.figures import meta_evaluation, scorecard
from plumbline.runtime.job import job
from plumbline.store import read_table

with job(snakemake):
    card = read_table(snakemake.input.scorecard, "scorecard").to_pandas()
    for plot in snakemake.params.plots:
        if plot["kind"] == "meta-evaluation":
            table = read_table(snakemake.input.meta_evaluation, "meta_evaluation").to_pandas()
            figure = meta_evaluation(table, "Do protocols agree about measures?")
        elif "dataset" in plot:
            dataset, model = plot["dataset"], plot["model"]
            here = card[(card["dataset"] == dataset) & (card["model"] == model)]
            figure = scorecard(here, f"{dataset}, {model}")
        else:
            figure = scorecard(card, snakemake.params.name)
        save(figure, Path("results", "figures", plot["stem"]))
