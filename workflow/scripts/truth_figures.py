"""Draw what measures say where the truth is known, and what rationale models select."""

from pathlib import Path

import numpy as np
import pandas as pd

from plumbline.figures.style import save
from plumbline.protocols.ground_truth.figures import (
    attribution_by_accuracy,
    attribution_by_reassignment,
    attribution_by_region,
    attribution_by_visibility,
    truth_found,
)
from plumbline.protocols.ground_truth.rationale_curves import rationale_curves
from plumbline.protocols.ground_truth.saliency import saliency
from plumbline.protocols.ground_truth.shown import explained_pictures, optimum_lines, shown_texts
from plumbline.protocols.ground_truth.word_groups import attention_by_group, word_attention
from plumbline.runtime.job import job
from plumbline.store import read_record, read_table

OF_DATASET = {
    "attribution-by-region": attribution_by_region,
    "attribution-by-visibility": attribution_by_visibility,
    "attribution-by-reassignment": attribution_by_reassignment,
}


def of(table: pd.DataFrame, **keys: str) -> pd.DataFrame:
    """The rows with these values."""
    for column, value in keys.items():
        table = table[table[column] == value]
    return table


with job(snakemake):
    paths, params = snakemake.input, snakemake.params
    tables = {
        kind: read_table(path, kind).to_pandas()
        for kind, path in (("ground_truth", paths.truth), ("trace", paths.trace), ("rationales", paths.rationales))
        if path
    }
    truth = tables.get("ground_truth", pd.DataFrame())
    files = iter(paths.importances)
    drawn: dict[tuple[str, str], list[tuple]] = {}
    for cell, *of_cell in zip(params.cells, paths.instances, paths.summaries, paths.predictions, strict=True):
        importances = {measure: next(files) for measure in cell["measures"]}
        drawn.setdefault((cell["dataset"], cell["model"]), []).append((*of_cell, importances))
    for plot in params.plots:
        kind, dataset, model = map(plot.get, ("kind", "dataset", "model"))
        stem = Path("results", "figures", plot["stem"])
        if kind in OF_DATASET:
            save(OF_DATASET[kind](of(truth, dataset=dataset), dataset), stem)
        elif kind == "attribution-by-accuracy":
            save(attribution_by_accuracy(of(tables["trace"], dataset=dataset), truth, dataset), stem)
        elif kind == "truth-found":
            save(truth_found(truth), stem)
        elif kind == "attribution-by-group":
            save(attention_by_group(of(truth, dataset=dataset, model=model), f"{dataset}, {model}"), stem)
        elif kind == "rationale-curves":
            chosen = of(tables["rationales"], dataset=dataset)
            chosen = chosen.assign(selected=chosen["selection_rate"], model=chosen["model"].map(params.kinds))
            scores = [
                (cell["variant"], read_table(path, "rationale_scores").to_pandas())
                for cell, path in zip(params.chosen, paths.selections, strict=True)
                if cell["dataset"] == dataset
            ]
            # The best that could be is drawn as far as models select, and a little further.
            rates = np.linspace(0.01, max(0.2, 1.1 * chosen["selected"].max()), 60)
            save(rationale_curves(chosen, optimum_lines(scores, rates), dataset), stem)
        else:
            rows, names = [], []
            for instances, summary, predictions, importances in drawn[dataset, model]:
                told = read_record(summary)
                tables_of = {name: read_table(path, "attributions") for name, path in importances.items()}
                read = read_table(instances, "instances"), read_table(predictions, "predictions"), tables_of
                if kind == "saliency":
                    rows += explained_pictures(*read, told, params.splits[0])
                else:
                    rows += shown_texts(*read, told, params.splits[0])
                    names += [name for name in told["manipulation"]["groups"] if name not in names]
            title = f"{dataset}, {model}"
            save(saliency(rows, title) if kind == "saliency" else word_attention(rows, names, title), stem)
