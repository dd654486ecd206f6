"""Store attention weights of trained models for downstream jobs."""

from plumbline.data.instances import Instances
from plumbline.data.schemas import INSTANCES
from plumbline.models.block import trained_models
from plumbline.models.budget import Budget
from plumbline.models.schemas import ATTENTION
from plumbline.models.stored_attention import attention_columns
from plumbline.runtime.job import job
from plumbline.store import read_record, read_table, write_table

with job(snakemake) as running:
    params = snakemake.params
    instances = Instances.from_table(read_table(snakemake.input.instances, INSTANCES), params.splits)
    classes = len(read_record(snakemake.input.summary)["classes"])
    device = running.device()
    models = trained_models(
        snakemake.input.weights, params.model, params.options, classes, params.seeds, running.budget(Budget), device
    )
    columns = attention_columns(models, instances)
    write_table(snakemake.output.attention, ATTENTION, columns)
    running.manifest(rows=len(columns["seed"]), device=device)
