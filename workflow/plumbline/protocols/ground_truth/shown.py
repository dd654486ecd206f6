"""Which texts and pictures with a known truth are drawn, and what is drawn of them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from plumbline.attribution.files import read_importances
from plumbline.data.instances import ragged
from plumbline.data.manipulation import attributed_share
from plumbline.data.pixels import side, unpack
from plumbline.data.schemas import INSTANCES
from plumbline.figures.drawing import Drawing
from plumbline.protocols.ground_truth.rationales import optimum_curve
from plumbline.protocols.ground_truth.saliency import ExplainedImage, saliency
from plumbline.protocols.ground_truth.word_groups import ShownText, word_attention
from plumbline.registry import figure
from plumbline.store import read_record, read_table
from plumbline.training.schemas import PREDICTIONS


def _first(table: pa.Table, split: str, seed: int | None = None) -> pa.Table:
    here = pc.equal(table["split"].cast(pa.string()), split)
    return table.filter(here if seed is None else pc.and_(here, pc.equal(table["seed"], seed)))


def _chosen(predictions: pa.Table, explained: set[int]) -> dict[int, int]:
    """Of each class an instance that is explained and, if there is one, got right: its number and predicted class."""
    numbers, labels = (predictions[column].to_pylist() for column in ("instance", "label"))
    found: dict[int, tuple[int, int]] = {}
    for number, label, probabilities in zip(numbers, labels, ragged(predictions["probabilities"]), strict=True):
        said = int(np.argmax(probabilities))
        better = label not in found or (found[label][1] != label and said == label)
        if number in explained and better:
            found[label] = number, said
    return dict(found[label] for label in sorted(found))


def _scores(importances: Mapping[str, pa.Table], split: str, seed: int) -> dict[str, dict[int, np.ndarray]]:
    told = {}
    for measure, table in importances.items():
        rows = _first(table, split, seed)
        told[measure] = dict(zip(rows["instance"].to_pylist(), ragged(rows["scores"]), strict=True))
    return told


def _each(
    instances: pa.Table, predictions: pa.Table, importances: Mapping[str, pa.Table], split: str
) -> Iterator[tuple[dict[str, Any], int, dict[str, np.ndarray]]]:
    """The instances that are shown: the row, the predicted class and each measure's scores."""
    seed = pc.min(predictions["seed"]).as_py()
    scores = _scores(importances, split, seed)
    explained = set.intersection(*(set(of) for of in scores.values())) if scores else set()
    rows = _first(instances, split)
    for number, said in _chosen(_first(predictions, split, seed), explained).items():
        row = rows.filter(pc.equal(rows["instance"], number)).to_pylist()[0]
        yield row, said, {measure: of[number] for measure, of in scores.items()}


def explained_pictures(
    instances: pa.Table,
    predictions: pa.Table,
    importances: Mapping[str, pa.Table],
    summary: Mapping[str, Any],
    split: str,
) -> list[ExplainedImage]:
    """A picture of each class under the maps of the first seed's measures."""
    found = []
    for row, said, scores in _each(instances, predictions, importances, split):
        size = side(len(row["ids"]))
        region = np.array(row["groups"]).reshape(size, size) == 1
        maps = {measure: of.reshape(size, size) for measure, of in scores.items()}
        shares = {measure: attributed_share(of, region) for measure, of in maps.items()}
        changed = "manipulated" if row["label"] == 1 else "as it was"
        right = "" if said == row["label"] else ", taken for the other"
        caption = f"{summary['manipulation']['variant']}\n{changed}{right}"
        found.append(ExplainedImage(unpack(np.array(row["ids"], dtype=np.int32)), caption, region, maps, shares))
    return found


def shown_texts(
    instances: pa.Table,
    predictions: pa.Table,
    importances: Mapping[str, pa.Table],
    summary: Mapping[str, Any],
    split: str,
) -> list[ShownText]:
    """A text of each class with the first seed's importances of its words."""
    found, names = [], ["", *summary["manipulation"]["groups"]]
    for row, said, scores in _each(instances, predictions, importances, split):
        free = np.array(row["maskable"])
        words = [token for token, word in zip(row["tokens"], free, strict=True) if word]
        label, guess = (summary["classes"][number] for number in (row["label"], said))
        told = f"class {label}" if label == guess else f"class {label}, taken for {guess}"
        name = f"{summary['manipulation']['variant']}, {split} {row['instance']}, {told}"
        found.append(ShownText(name, words, [names[group] for group in np.array(row["groups"])[free]], scores))
    return found


def optimum_lines(scores: Iterable[tuple[str, pd.DataFrame]], rates: np.ndarray) -> pd.DataFrame:
    """The best precision and recall at each rate, of each variant: of all its texts, or with the same rate in each.

    scores: rows of the table `rationale_scores` of a variant; models of it have the same texts.
    """
    lines, seen = [], set()
    for variant, rows in scores:
        if variant in seen:
            continue
        seen.add(variant)
        rows = rows[rows["seed"] == rows["seed"].min()]
        curve = optimum_curve(rows["words"].to_numpy(), rows["truth"].to_numpy(), rates)
        for of, suffix in (("dataset", ""), ("text", "_each")):
            columns = {f"optimum_{name}{suffix}": name for name in ("precision", "recall")}
            told = curve.rename(columns={**columns, "selection_rate": "rate"})
            lines.append(told[["rate", "precision", "recall"]].assign(variant=variant, of=of))
    return pd.concat(lines, ignore_index=True)


# The instances, predictions and importances of a cell.
Read = tuple[pa.Table, pa.Table, dict[str, pa.Table]]


def shown_cells(drawing: Drawing) -> Iterator[tuple[Read, dict[str, Any]]]:
    """The tables of each cell that is shown of this dataset and model, and the record of how its data were made."""
    files = zip(*(drawing.here(f"{source}:shown") for source in ("instances", "datasets", "predictions")), strict=True)
    for instances, record, predictions in files:
        own = [
            file for file in drawing.here("importances:shown") if file.keys["variant"] == predictions.keys["variant"]
        ]
        importances = {file.keys["measure"]: read_importances(file.path, file.keys["measure"]) for file in own}
        read = read_table(instances.path, INSTANCES), read_table(predictions.path, PREDICTIONS), importances
        yield read, read_record(record.path)


@figure(
    "word-attribution",
    reads=["instances:shown", "datasets:shown", "predictions:shown", "importances:shown"],
    params=["splits"],
    cells="ground_truth",
    per=["dataset", "model"],
    only=["texts", "shown"],
    page="truth",
    experiment="ground truth",
    order=220,
    caption="The importance of each word of single texts; coloured words are those that the label follows.",
)
def draw_words(drawing: Drawing) -> Figure:
    """Single texts."""
    texts: list[ShownText] = []
    names: dict[str, None] = {}
    for read, record in shown_cells(drawing):
        texts += shown_texts(*read, record, drawing.facts["splits"][0])
        names |= dict.fromkeys(record["manipulation"]["groups"])
    return word_attention(texts, list(names), drawing.title)


@figure(
    "saliency",
    reads=["instances:shown", "datasets:shown", "predictions:shown", "importances:shown"],
    params=["splits"],
    cells="ground_truth",
    per=["dataset", "model"],
    only=["images"],
    page="truth",
    experiment="ground truth",
    order=230,
    caption=(
        "Pictures under the importance that each measure gives their pixels; the outline is the region that "
        "the label follows, and the number its share of the importance."
    ),
)
def draw_saliency(drawing: Drawing) -> Figure:
    """Single images."""
    split = drawing.facts["splits"][0]
    rows = [row for read, record in shown_cells(drawing) for row in explained_pictures(*read, record, split)]
    return saliency(rows, drawing.title)
