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
    paths = [Path(path) for path in snakemake.output if path.endswith(".svg")]
    for plot, path in zip(params.plots, paths, strict=True):
        figure = load(params.objects[plot["kind"]])(Drawing(sources, plot["dataset"], plot["model"]))
        save(figure, path.with_suffix(""))
