"""Explain a block's models at the stored epochs of their training, and score this against the known truth."""

import numpy as np

from plumbline.attribution.run import attribute, load_calls
from plumbline.data.instances import Instances
from plumbline.data.schemas import INSTANCES
from plumbline.models.block import checkpoint_models, with_answers
from plumbline.models.budget import Budget
from plumbline.protocols.ground_truth.schemas import TRACE_SCORES
from plumbline.protocols.ground_truth.score import trace_rows
from plumbline.runtime.job import job
from plumbline.store import read_record, read_table, write_table
from plumbline.training.schemas import HISTORY

with job(snakemake) as running:
    instances = Instances.from_table(read_table(snakemake.input.instances, INSTANCES), snakemake.params.splits)
    summary = read_record(snakemake.input.summary)
    names = summary["manipulation"]["groups"]
    measures = load_calls(snakemake.params.measures)
    history = read_table(snakemake.input.history, HISTORY).to_pandas()
    device = running.device()
    rows = []
    for epoch, evaluator in checkpoint_models(
        snakemake.input.weights,
        snakemake.params.model,
        with_answers(snakemake.params.model_options, summary["classes"]),
        len(summary["classes"]),
        snakemake.params.seeds,
        running.budget(Budget),
        device,
    ):
        texts = instances.sampled(snakemake.params.sample, evaluator.seed)
        assert texts.groups
        groups = [numbers[free] for numbers, free in zip(texts.groups, texts.maskable, strict=True)]
        accuracy = float((evaluator.probabilities(instances).argmax(1) == instances.label).mean())
        of_epoch = (history["seed"] == evaluator.seed) & (history["epoch"] == epoch) & (history["split"] == "dev")
        on_dev = history[of_epoch & (history["metric"] == "accuracy")]["value"]
        columns, _ = attribute([evaluator], texts, measures)
        scores = {name: [np.asarray(row) for row in table["scores"]] for name, table in columns.items()}
        rows += trace_rows(evaluator.seed, epoch, accuracy, scores, groups, names, *on_dev)
    write_table(snakemake.output.trace, TRACE_SCORES, {key: [row[key] for row in rows] for key in rows[0]})
    running.manifest(rows=len(rows) * len(instances), device=device)
