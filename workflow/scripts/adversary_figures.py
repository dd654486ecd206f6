"""Draw what the adversaries reached: their scores, and the plane of attention against output."""

from pathlib import Path

import pandas as pd

from plumbline.figures.style import save
from plumbline.protocols.adversary.figures import attefa_violins, by_base_seed, jsd_tvd_plane
from plumbline.protocols.attention.bins import EVERY
from plumbline.runtime.job import job
from plumbline.store import read_table

with job(snakemake):
    order = {name: place for place, name in enumerate(snakemake.params.order)}
    frame = read_table(snakemake.input.table, "adversary").to_pandas()
    frame = frame.sort_values(["dataset", "model"], key=lambda column: column.astype(str).map(order), kind="stable")
    # The published scores that ours are judged by; they say nothing about data that were made otherwise.
    reproduction = read_table(snakemake.input.reproduction, "reproduction").to_pandas()
    published = reproduction[(reproduction["metric"] == "AtteFa") & reproduction["within"].notna()]
    published = published.rename(columns={"published": "value", "published_spread": "std"})
    seeds = None
    if snakemake.input.seeds:
        seeds = read_table(snakemake.input.seeds, "seed_variance").to_pandas()
        seeds = seeds[seeds["max_attention_bin"] == EVERY].rename(columns={"jsd_mean": "jsd", "tvd_mean": "tvd"})

    def here(table: pd.DataFrame, dataset: str, model: str) -> pd.DataFrame:
        return table[(table["dataset"] == dataset) & (table["model"] == model)]

    for plot in snakemake.params.plots:
        if plot["kind"] == "attefa-violins":
            figure = attefa_violins(by_base_seed(frame), published)
        else:
            dataset, model = plot["dataset"], plot["model"]
            chance = None if seeds is None else here(seeds, dataset, model)
            # Adversaries of another seed's model are not of this one.
            rows = here(frame, dataset, model)
            first = rows["base_seed"].min()
            title = f"{dataset}, {model}" + (f", seed {first}" if rows["base_seed"].nunique() > 1 else "")
            if chance is not None:
                chance = chance[chance["base_seed"] == first]
            figure = jsd_tvd_plane(rows[rows["base_seed"] == first], chance, title)
        save(figure, Path("results", "figures", plot["stem"]))
