"""Single texts and images with a known ground truth: which ones are shown, and their importances."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from plumbline.attribution.files import read_importances
from plumbline.data.instances import ragged
from plumbline.data.manipulation import attributed_share
from plumbline.data.pixels import side_length, unpack
from plumbline.data.schemas import INSTANCES
from plumbline.figures.drawing import Drawing
from plumbline.protocols.explained import select_rows
from plumbline.protocols.ground_truth.saliency import ExplainedImage, saliency
from plumbline.protocols.ground_truth.word_groups import ShownText, word_attention
from plumbline.registry import figure
from plumbline.store import read_record, read_table
from plumbline.training.schemas import PREDICTIONS


class ShownCell(NamedTuple):
    """The instances, predictions, importances by measure and dataset record of a cell."""

    instances: pa.Table
    predictions: pa.Table
    importances: Mapping[str, pa.Table]
    record: Mapping[str, Any]


def _choose(predictions: pa.Table, explained: set[int]) -> dict[int, int]:
    """The predicted class of one explained instance of each class, by instance; correctly predicted ones first."""
    numbers, labels = (predictions[column].to_pylist() for column in ("instance", "label"))
    chosen: dict[int, tuple[int, int]] = {}
    for number, label, probabilities in zip(numbers, labels, ragged(predictions["probabilities"]), strict=True):
        predicted = int(np.argmax(probabilities))
        better = label not in chosen or (chosen[label][1] != label and predicted == label)
        if number in explained and better:
            chosen[label] = number, predicted
    return dict(chosen[label] for label in sorted(chosen))


def _shown_instances(cell: ShownCell, split: str) -> Iterator[tuple[dict[str, Any], int, dict[str, np.ndarray]]]:
    """The row, the predicted class and each measure's scores of the shown instances, for the first seed."""
    seed = pc.min(cell.predictions["seed"]).as_py()
    scores: dict[str, dict[int, np.ndarray]] = {}
    for measure, table in cell.importances.items():
        rows = select_rows(table, [split], seed)
        scores[measure] = dict(zip(rows["instance"].to_pylist(), ragged(rows["scores"]), strict=True))
    explained = set.intersection(*map(set, scores.values())) if scores else set()
    rows = select_rows(cell.instances, [split])
    for number, predicted in _choose(select_rows(cell.predictions, [split], seed), explained).items():
        row = rows.filter(pc.equal(rows["instance"], number)).to_pylist()[0]
        yield row, predicted, {measure: by_instance[number] for measure, by_instance in scores.items()}


def explained_images(cell: ShownCell, split: str) -> list[ExplainedImage]:
    """An image of each class with the maps of the first seed's measures."""
    images = []
    for row, predicted, scores in _shown_instances(cell, split):
        size = side_length(len(row["ids"]))
        region = np.array(row["groups"]).reshape(size, size) == 1
        maps = {measure: values.reshape(size, size) for measure, values in scores.items()}
        shares = {measure: attributed_share(map_, region) for measure, map_ in maps.items()}
        state = "manipulated" if row["label"] == 1 else "unmodified"
        wrong = "" if predicted == row["label"] else ", misclassified"
        caption = f"{cell.record['manipulation']['variant']}\n{state}{wrong}"
        images.append(ExplainedImage(unpack(np.array(row["ids"], dtype=np.int32)), caption, region, maps, shares))
    return images


def shown_texts(cell: ShownCell, split: str) -> list[ShownText]:
    """A text of each class with the first seed's word importances."""
    texts, names = [], ["", *cell.record["manipulation"]["groups"]]
    for row, predicted, scores in _shown_instances(cell, split):
        maskable = np.array(row["maskable"])
        words = [token for token, is_word in zip(row["tokens"], maskable, strict=True) if is_word]
        label, prediction = (cell.record["classes"][number] for number in (row["label"], predicted))
        outcome = f"class {label}" if label == prediction else f"class {label}, predicted {prediction}"
        name = f"{cell.record['manipulation']['variant']}, {split} {row['instance']}, {outcome}"
        texts.append(ShownText(name, words, [names[group] for group in np.array(row["groups"])[maskable]], scores))
    return texts


def shown_cells(drawing: Drawing) -> Iterator[ShownCell]:
    """The shown cells of this dataset and model."""
    files = zip(*(drawing.here(f"{source}:shown") for source in ("instances", "datasets", "predictions")), strict=True)
    for instances, record, predictions in files:
        importances = {
            file.keys["measure"]: read_importances(file.path, file.keys["measure"])
            for file in drawing.here("importances:shown")
            if file.keys["variant"] == predictions.keys["variant"]
        }
        tables = read_table(instances.path, INSTANCES), read_table(predictions.path, PREDICTIONS)
        yield ShownCell(*tables, importances, read_record(record.path))


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
)
def draw_words(drawing: Drawing) -> Figure:
    """Share of each word in the total importance of its text, by absolute value (vertically), for one text of each
    class and variant and the first seed: a panel for each measure, with the words below the last one. Colours are the
    groups of words of the manipulation, grey are all other words. If there are many panels, a measure is a row of
    shaded words instead. In a model that uses them, the words that determine the label should have the highest bars, or
    the darkest shades.
    """
    texts: list[ShownText] = []
    names: dict[str, None] = {}
    for cell in shown_cells(drawing):
        texts += shown_texts(cell, drawing.facts["splits"][0])
        names |= dict.fromkeys(cell.record["manipulation"]["groups"])
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
)
def draw_saliency(drawing: Drawing) -> Figure:
    """Images under each measure’s importance of pixels (columns), for one image of each class and variant and the first
    seed. The stronger the red, the larger the absolute importance, at full strength from the 99th percentile of a map.
    The outline is the region that determines the label; below a map is the share of importance inside the outline,
    below the image the region’s share of its pixels. Higher is better.
    """
    split = drawing.facts["splits"][0]
    images = [image for cell in shown_cells(drawing) for image in explained_images(cell, split)]
    return saliency(images, drawing.title)
