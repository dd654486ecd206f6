"""Draw the figures of a protocol."""

from pathlib import Path
from types import SimpleNamespace

from plumbline.figures.drawing import Drawing
from plumbline.figures.style import save
from plumbline.registry import load
from plumbline.runtime.job import job
from plumbline.tables.sources import Sources

with job(snakemake):
    params = SimpleNamespace(**snakemake.params.figures)
    sources = Sources.of_job(snakemake.input, params)
    for plot in params.plots:
        figure = load(params.objects[plot["kind"]])(Drawing(sources, plot["dataset"], plot["model"]))
        save(figure, Path("results", "figures", plot["stem"]))
