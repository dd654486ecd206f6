"""Build the data of the explorer."""

from plumbline.explorer.blocks import ExplorerOptions, ShownVariant, find_blocks
from plumbline.explorer.build import build_explorer
from plumbline.explorer.retest import read_reliability
from plumbline.figures.conventions import SECOND_TEXTS
from plumbline.registry import IMAGES
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
    subwords: dict[tuple[str, str], dict[str, str]] = {}
    for (dataset, variant, model), path in zip(params.subwords, paths.subwords, strict=True):
        subwords.setdefault((dataset, variant), {})[model] = path
    # Only plain texts are masked.
    masks: dict[tuple[str, str], dict[str, list]] = {}
    for point, path in zip(params.masked, paths.masks, strict=True):
        masks.setdefault((point["dataset"], "plain"), {}).setdefault(point["model"], []).append((point, path))
    shown = [
        ShownVariant(
            dataset,
            variant,
            read_record(summary),
            instances,
            blocks[dataset, variant],
            subwords.get((dataset, variant), {}),
            masks.get((dataset, variant), {}),
            task == IMAGES,
            SECOND_TEXTS.get(task, "second text"),
        )
        for (dataset, variant, task), instances, summary in zip(
            params.sets, paths.instances, paths.summaries, strict=True
        )
    ]
    settings = params.examples, params.splits, params.sample, params.specials, params.random
    options = ExplorerOptions(*settings, read_reliability(paths.reliability))
    build_explorer(snakemake.output[0], params.name, shown, options)
