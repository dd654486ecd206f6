"""Build the data of the explorer."""

from plumbline.explorer.blocks import Shown, Wanted, find_blocks
from plumbline.explorer.build import build
from plumbline.figures.conventions import SECONDS
from plumbline.registry import PICTURES
from plumbline.runtime.job import job
from plumbline.store import read_record

with job(snakemake):
    paths, params = snakemake.input, snakemake.params
    blocks = find_blocks(
        params.cells,
        paths.predictions,
        paths.importances,
        paths.adversaries,
        paths.attention,
        paths.adversary_predictions,
    )
    pieces: dict[tuple[str, str], dict[str, str]] = {}
    for (dataset, variant, model), path in zip(params.pieces, paths.pieces, strict=True):
        pieces.setdefault((dataset, variant), {})[model] = path
    # Only texts as they are get masked.
    masks: dict[tuple[str, str], dict[str, list]] = {}
    for point, path in zip(params.masked, paths.masks, strict=True):
        masks.setdefault((point["dataset"], "plain"), {}).setdefault(point["model"], []).append((point, path))
    shown = [
        Shown(
            dataset,
            variant,
            read_record(summary),
            instances,
            blocks[dataset, variant],
            pieces.get((dataset, variant), {}),
            masks.get((dataset, variant), {}),
            task == PICTURES,
            SECONDS.get(task, "second text"),
        )
        for (dataset, variant, task), instances, summary in zip(
            params.sets, paths.instances, paths.summaries, strict=True
        )
    ]
    wanted = Wanted(params.examples, params.splits, params.sample, params.specials, params.random)
    build(snakemake.output[0], params.name, shown, wanted)
