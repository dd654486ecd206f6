"""Build the report and the study's manifest."""

from plumbline.figures.adversarial_texts import SECONDS
from plumbline.job import job, versions
from plumbline.report.build import Content, page
from plumbline.report.examples import choose_texts, collect
from plumbline.report.inputs import read_blocks, read_figures, read_masks, read_tables
from plumbline.report.manifest import manifest
from plumbline.report.masked import MOST_TEXTS, collect_masked
from plumbline.report.tables import named, of_variant
from plumbline.store import read_json, read_table, write_json, write_text

with job(snakemake):
    study, cells, excluded = snakemake.params.study, snakemake.params.cells, snakemake.params.excluded
    tables = read_tables(snakemake.input.tables)
    summaries = [read_json(path) for path in snakemake.input.summaries]
    variants = [read_json(path) for path in snakemake.input.variants]
    # A manipulated dataset is shown under a name of its own.
    told = [{**summary, "dataset": named(summary["dataset"], of_variant(summary))} for summary in variants]
    instances = {
        named(*pair): read_table(path, "instances")
        for pair, path in zip(snakemake.params.texts, snakemake.input.instances, strict=True)
    }
    shown_cells = [cell for cell in cells if cell["shown"]]
    blocks = read_blocks(
        shown_cells,
        snakemake.input.predictions,
        snakemake.input.importances,
        snakemake.input.adversaries,
        snakemake.input.attention,
        snakemake.input.rivals,
    )
    seconds = {name: SECONDS.get(task, "second text") for name, task in snakemake.params.tasks.items()}
    seconds |= {one["dataset"]: seconds[plain["dataset"]] for one, plain in zip(told, variants, strict=True)}
    # A study that only masks explains no split.
    split = "test" if "test" in study["explain"] else [*study["explain"], "test"][0]
    count = study["report"]["examples"]
    in_pieces = [(named(dataset, variant), model) for dataset, variant, model in snakemake.params.pieces]
    pieces = {pair: read_table(path, "instances") for pair, path in zip(in_pieces, snakemake.input.pieces, strict=True)}
    specials = "agreement" in tables and "all" in set(tables["agreement"]["tokens"])
    examples = collect(blocks, [*summaries, *told], instances, split, count, seconds, pieces, study["sample"], specials)
    points, masks = snakemake.params.masked, snakemake.input.masks
    first: dict[str, str] = {}
    for cell, path in zip(shown_cells, snakemake.input.predictions, strict=True):
        first.setdefault(named(cell["dataset"], cell["variant"]), path)
    numbers = {
        dataset: choose_texts(read_table(first[dataset], "predictions"), "test", min(count, MOST_TEXTS))
        for dataset in {point["dataset"] for point in points}
    }
    # The texts as each model reads them.
    read_by = [(point["dataset"], point["model"]) for point in points]
    texts = {pair: pieces.get(pair, instances[pair[0]]) for pair in read_by}
    masked = collect_masked(read_masks(points, masks), texts, numbers, "test", seconds)
    figures = read_figures(snakemake.input.figures)
    kinds = ("performance", "reproduction", "timings", "agreement", "permutation", "adversarial_attention", "adversary")
    shown = {
        name: tables.get(name)
        for name in (*kinds, "seed_variance", "roar", "faithfulness", "ground_truth", "rationales")
    }
    # These have figures.
    drawn = ("sparsity", "synthetic_roar", "trace")
    others = {kind: table for kind, table in tables.items() if kind not in (*shown, *drawn)}
    content = Content(
        study,
        cells,
        excluded,
        summaries,
        variants=variants,
        others=others,
        figures=figures,
        parts=snakemake.params.parts,
        examples=examples,
        masked=masked,
        versions=versions(),
        **shown,
    )
    write_text(snakemake.output.report, page(content))
    write_json(snakemake.output.manifest, manifest(study, excluded, tables["timings"]))
