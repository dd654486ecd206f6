"""Explain the instances of a cell with one measure."""

from plumbline.attribution.run import attribute
from plumbline.data.instances import Instances
from plumbline.job import job
from plumbline.models.block import trained_models
from plumbline.models.devices import choose_device
from plumbline.registry import load
from plumbline.store import read_json, read_table, write_table

with job(snakemake) as running:
    instances = Instances.from_table(read_table(snakemake.input.instances, "instances"), snakemake.params.splits)
    device = choose_device()
    models = trained_models(
        snakemake.input.weights,
        snakemake.params.model,
        snakemake.params.model_options,
        len(read_json(snakemake.input.summary)["classes"]),
        snakemake.params.seeds,
        snakemake.resources.token_budget,
        device,
    )
    columns = attribute(models, instances, load(snakemake.params.object), snakemake.params.options)
    write_table(snakemake.output.importances, "attributions", columns)
    running.manifest(rows=len(columns["seed"]), device=device)
