"""Train a block of seeds of one model on one variant of a dataset, masking words first if the variant is masked."""

from plumbline.attribution.files import read_importances
from plumbline.config.recipes import Training
from plumbline.data.corpus import SPLITS
from plumbline.data.instances import Instances
from plumbline.data.masking import apply_masks, mask_columns, masks_at, seed_rows, special_ids
from plumbline.data.schemas import INSTANCES, MASKS
from plumbline.models.block import with_answers
from plumbline.models.budget import Budget
from plumbline.models.objectives import objective_of
from plumbline.models.schemas import ATTENTION
from plumbline.models.stored_attention import base_columns
from plumbline.runtime.job import job
from plumbline.store import read_record, read_table, read_tensors, write_table, write_tensors
from plumbline.training.schemas import HISTORY, PREDICTIONS
from plumbline.training.trainer import BlockSpec, train_block

with job(snakemake) as running:
    instances = Instances.from_table(read_table(snakemake.input.instances, INSTANCES), SPLITS)
    splits, seeds = instances.by_split(), snakemake.params.seeds
    base, columns = snakemake.params.base, None
    if base:
        attention = read_table(snakemake.input.attention, ATTENTION)
        base_predictions = read_table(snakemake.input.predictions, PREDICTIONS)
        columns = base_columns(attention, base_predictions, base["base_seed"], splits)
    masking, masks, masked_instances = snakemake.params.masking, None, None
    mask, other = special_ids(snakemake.input.subwords)
    if snakemake.input.masks:
        table = read_table(snakemake.input.masks, MASKS)
        masks = {seed: seed_rows(table, "masked", seed, instances) for seed in seeds}
    # The masks read are those of the level below; words masked there stay masked.
    if snakemake.output.get("masks"):
        scores = read_importances(snakemake.input.importances, masking["measure"])
        level, unit = masking["level"], masking["unit"]
        masks = {
            seed: masks_at(
                level, unit, seed_rows(scores, "scores", seed, instances), instances.ties(seed), masks and masks[seed]
            )
            for seed in seeds
        }
        write_table(snakemake.output.masks, MASKS, mask_columns(masks, instances))
    if masking:
        left = other if masking["positions"] else None
        masked_instances = {
            seed: apply_masks(instances, masks and masks[seed], mask, left).by_split() for seed in seeds
        }
    device, classes = running.device(), read_record(snakemake.input.summary)["classes"]
    spec = BlockSpec(
        pointer=snakemake.params.object,
        options=with_answers(snakemake.params.options, classes),
        vectors=read_tensors(snakemake.input.embedding) if snakemake.input.embedding else {},
        splits=splits,
        classes=len(classes),
        training=Training(**snakemake.params.training),
        trainable=snakemake.params.trainable,
        objective=objective_of(base["objective"], base["strength"]) if base.get("objective") else None,
        columns=columns,
        masked_instances=masked_instances,
        # Of retrained models only the test scores are used.
        predicted=["test"] if masking else SPLITS,
        mask_id=mask,
    )
    weights, history, predictions = train_block(spec, seeds, running.budget(Budget), device)
    write_table(snakemake.output.history, HISTORY, history)
    write_table(snakemake.output.predictions, PREDICTIONS, predictions)
    write_tensors(snakemake.output.weights, weights)
    rows = len(splits["train"]) * len(seeds) * max(history["epoch"])
    running.manifest(rows, device, masking.get("measure", ""))
