"""Train a block of seeds of one model on one variant of a dataset."""

from plumbline.config.recipes import Training
from plumbline.data.instances import Instances
from plumbline.job import job
from plumbline.models.objectives import objective_of
from plumbline.models.trainer import train_block
from plumbline.models.weights import base_columns
from plumbline.store import read_json, read_table, read_tensors, write_table, write_tensors

with job(snakemake) as running:
    table = read_table(snakemake.input.instances, "instances")
    splits = {split: Instances.from_table(table, [split]) for split in ("train", "dev", "test")}
    against, columns = snakemake.params.against, None
    if against:
        says, looks = snakemake.input.predictions, snakemake.input.attention
        read = read_table(looks, "attention"), read_table(says, "predictions")
        columns = base_columns(*read, against["base_seed"], splits)
    device = running.device()
    weights, history, predictions = train_block(
        snakemake.params.object,
        snakemake.params.options,
        read_tensors(snakemake.input.embedding),
        snakemake.params.trainable,
        splits,
        len(read_json(snakemake.input.summary)["classes"]),
        Training(**snakemake.params.training),
        snakemake.params.seeds,
        running.budget(),
        device,
        objective_of(against.get("objective", ""), against.get("strength")),
        columns,
    )
    write_table(snakemake.output.history, "history", history)
    write_table(snakemake.output.predictions, "predictions", predictions)
    write_tensors(snakemake.output.weights, weights)
    running.manifest(rows=len(splits["train"]) * len(snakemake.params.seeds) * max(history["epoch"]), device=device)
