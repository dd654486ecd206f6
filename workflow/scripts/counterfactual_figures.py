"""Draw what happens when attention is permuted, or replaced by an adversary or by another seed's."""

from pathlib import Path

import pandas as pd

from plumbline.figures.conventions import SECONDS
from plumbline.figures.style import save
from plumbline.protocols.adversary.figures import VARIANCES, seed_variance
from plumbline.protocols.attention.adversarial_texts import WEIGHTS, WORDS, adversarial_texts, choose_texts, gather
from plumbline.protocols.attention.figures import CHANGES, DIVERGENCES, jsd_histogram, jsd_violins, permutation_violins
from plumbline.runtime.job import job
from plumbline.store import read_record, read_table

DRAWN = {
    "permutation": permutation_violins,
    "jsd-histogram": jsd_histogram,
    "jsd-violins": jsd_violins,
    "seed-variance": seed_variance,
}
# The kind of table that holds a protocol's scores, and the columns that are drawn.
READ = {
    "permutation": ("permutation_scores", CHANGES),
    "adversarial_attention": ("adversaries", DIVERGENCES),
    "seed_variance": ("seed_variance_scores", VARIANCES),
}

with job(snakemake):
    classes = {summary["dataset"]: summary["classes"] for summary in map(read_record, snakemake.input.summaries)}
    instances = dict(zip(classes, snakemake.input.instances, strict=False))
    files: dict[tuple[str, str], list[str]] = {}
    for cell, path in zip(snakemake.params.cells, snakemake.input.scores, strict=True):
        files.setdefault((cell["dataset"], cell["model"]), []).append(path)
    for (dataset, model), paths in files.items():
        plots = [plot for plot in snakemake.params.plots if (plot["dataset"], plot["model"]) == (dataset, model)]
        rows = pd.concat([read_table(path, *READ[snakemake.params.protocol]).to_pandas() for path in paths])
        title = f"{dataset}, {model}"
        for plot in plots:
            if plot["kind"] in DRAWN:
                figure = DRAWN[plot["kind"]](rows, classes[dataset], title)
            else:
                # The weights of all words are many numbers: only now, and one file at a time.
                texts = gather(
                    choose_texts(rows),
                    (read_table(path, "adversaries", WEIGHTS) for path in paths),
                    read_table(instances[dataset], "instances", WORDS),
                    classes[dataset],
                )
                second = SECONDS.get(snakemake.params.tasks[dataset], "second text")
                figure = adversarial_texts(texts, title, rows["epsilon"].min(), second)
            save(figure, Path("results", "figures", plot["stem"]))
