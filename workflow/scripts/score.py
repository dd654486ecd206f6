"""Score a cell by one protocol."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plumbline.data.masking import special_ids
from plumbline.protocols.explained import Explained, scores_of
from plumbline.registry import load
from plumbline.runtime.job import job
from plumbline.store import read_record, write_table


def models() -> Iterable[Any]:
    """The block's models, for protocols that query them; other protocols need no torch."""
    from plumbline.models.block import trained_models, with_answers
    from plumbline.models.budget import Budget

    model, seeds = snakemake.params.model, snakemake.params.seeds
    classes = read_record(snakemake.input.summary)["classes"]
    options = with_answers(snakemake.params.model_options, classes)
    global device
    device = running.device()
    return trained_models(snakemake.input.weights, model, options, len(classes), seeds, running.budget(Budget), device)


device: Any = None


with job(snakemake) as running:
    explained = Explained(
        predictions=Path(snakemake.input.predictions),
        importances=dict(zip(snakemake.params.measures, map(Path, snakemake.input.importances), strict=True)),
        seeds=snakemake.params.seeds,
        splits=snakemake.params.splits,
        texts=Path(snakemake.input.instances),
        models=models,
        sample=snakemake.params.sample,
        summary=Path(snakemake.input.summary),
        model_options=snakemake.params.model_options,
        recomputed=snakemake.params.recomputed,
        mask_id=special_ids(snakemake.input.subwords)[0],
        masking=snakemake.params.masking,
    )
    protocol = load(snakemake.params.object)(**snakemake.params.options)
    scores = protocol.score(explained)
    write_table(snakemake.output.scores, scores_of(protocol), scores)
    running.manifest(rows=len(scores["seed"]), device=device)
