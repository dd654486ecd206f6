"""The data of the explorer: small scripts that its page loads on demand.

`index` lists all datasets and variants. Each has a folder, named by its position in the index, with `list` (labels and
lengths) and `texts`; for each model `masks`, `texts` if it has its own subwords and, for each seed, `list`
(predictions) and `explanations` (scores of all measures). Texts and explanations are in chunks, lists in longer blocks.
"""

import tempfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from plumbline.attribution.schemas import ATTRIBUTIONS
from plumbline.data.schemas import INSTANCES
from plumbline.explorer import examples
from plumbline.explorer.blocks import ExplorerOptions, SeedBlock, ShownVariant
from plumbline.explorer.examples import Row, TextScores
from plumbline.explorer.masked import Masks, masking_curves
from plumbline.explorer.rows import ChosenInstances, InstanceRows
from plumbline.figures.conventions import ADVERSARY, measure_colour, ordered, reference_measure
from plumbline.models.schemas import ATTENTION
from plumbline.protocols.attention.schemas import ADVERSARIES
from plumbline.report.embed import data_script
from plumbline.store import TableSchema, read_table, stream_table, write_text
from plumbline.training.schemas import PREDICTIONS

# Instances per block of a list, the most instances per chunk, and the size of a chunk in bytes.
BLOCK = 20_000
CHUNK = 200
CHUNK_BYTES = 2**20
# The colour of adversarial models, which no measure has.
ADVERSARIAL_MODEL = "#AA3377"


def build_explorer(folder: str | Path, study: str, shown: Sequence[ShownVariant], options: ExplorerOptions) -> None:
    """Write all files of the explorer."""
    sets: list[Row] = []
    for variant in shown:
        chosen = choose(variant, options)
        if len(chosen):
            sets.append(_Writer(Path(folder), len(sets), variant, chosen, options).write())
    measures = {measure for variant in shown for block in variant.blocks for measure in block.importances}
    masking = {curve["measure"] for entry in sets for model in entry["models"] for curve in model.get("curves", [])}
    colours = {measure: measure_colour(measure) for measure in ordered(measures | masking)}
    index = {"study": study, "sets": sets, "block": BLOCK, "measures": colours, "steps": examples.STEPS}
    index |= {"attention": measure_colour("attention"), "adversarial_attention": ADVERSARY}
    index |= {"adversarial_model": ADVERSARIAL_MODEL}
    write_text(Path(folder, "index.js"), data_script("index", index))


def choose(shown: ShownVariant, options: ExplorerOptions) -> ChosenInstances:
    """The instances to show, which are the same for all models: a number of those that the first block predicted, or
    all that some seed has explained or, without measures, predicted."""
    if not shown.blocks:
        return ChosenInstances.from_numbers({})
    first = shown.blocks[0].predictions
    if options.count != "all":
        split = "test" if "test" in options.splits else options.splits[0]
        predictions = read_table(first, PREDICTIONS)
        instances = examples.choose_instances(predictions, split, options.count, options.sampled)
        return ChosenInstances.from_numbers({split: instances})
    explained = dict.fromkeys(path for block in shown.blocks for path in block.importances.values())
    files = [(path, ATTRIBUTIONS) for path in explained] or [(first, PREDICTIONS)]
    numbers: dict[str, set[int]] = {split: set() for split in options.splits}
    for path, kind in files:
        for table in stream_table(path, kind, ["split", "instance"]):
            splits, instance = np.array(table["split"].to_pylist()), table["instance"].to_numpy()
            for split, of_split in numbers.items():
                of_split.update(instance[splits == split].tolist())
    return ChosenInstances.from_numbers({split: sorted(of_split) for split, of_split in numbers.items() if of_split})


class _Writer:
    """The files of one variant of a dataset."""

    def __init__(
        self, folder: Path, index: int, shown: ShownVariant, chosen: ChosenInstances, options: ExplorerOptions
    ) -> None:
        self._folder, self._index = folder, index
        self._shown, self._chosen, self._options = shown, chosen, options
        self._size = _chunk_size(shown, chosen)
        self._models = [(model, list(blocks)) for model, blocks in groupby(shown.blocks, lambda block: block.model)]

    def write(self) -> Row:
        """Write the files; returns their entry in the index."""
        name = f"{self._shown.dataset} {self._shown.variant}"
        self._bar = tqdm(desc=name, unit=" chunks", disable=None)
        with self._bar, tempfile.TemporaryDirectory() as spool:
            texts = self._instances(self._shown.instances, Path(spool))
            self._texts(texts)
            models = [self._model(i, model, blocks, texts) for i, (model, blocks) in enumerate(self._models)]
        splits = self._shown.summary["splits"]
        return {
            "dataset": self._shown.dataset,
            "variant": self._shown.variant,
            "classes": self._shown.summary["classes"],
            "second": self._shown.second,
            "images": self._shown.images,
            "splits": self._chosen.splits,
            "count": len(self._chosen),
            "total": sum(splits[split]["instances"] for split in self._chosen.splits),
            "chunk": self._size,
            "models": models,
        }

    def _save(self, name: str, value: Any) -> None:
        name = f"{self._index}/{name}"
        write_text(self._folder / f"{name}.js", data_script(name, value))

    def _save_list(self, name: str, columns: dict[str, list[Any]]) -> None:
        for k, start in enumerate(range(0, len(self._chosen), BLOCK)):
            self._save(f"{name}list/{k}", {key: values[start : start + BLOCK] for key, values in columns.items()})

    def _chunks(self) -> Iterator[tuple[int, int, int]]:
        for k, start in enumerate(range(0, len(self._chosen), self._size)):
            yield k, start, min(start + self._size, len(self._chosen))
            self._bar.update()

    def _instances(self, path: str, spool: Path) -> InstanceRows:
        columns = examples.IMAGE if self._shown.images else examples.TEXT
        return InstanceRows(path, INSTANCES, columns, self._chosen, spool)

    def _texts(self, rows: InstanceRows) -> None:
        """The texts or images, and the list of them."""
        columns: dict[str, list[Any]] = {"split": self._chosen.split.tolist(), "number": self._chosen.number.tolist()}
        columns |= {"label": [], "length": []}
        for k, start, stop in self._chunks():
            chunk = self._save_texts(f"texts/{k}", rows, start, stop)
            columns["label"] += [row["label"] for row in chunk]
            columns["length"] += [int(row["maskable"].sum()) if "maskable" in row else len(row["ids"]) for row in chunk]
        self._save_list("", columns)

    def _save_texts(self, name: str, rows: InstanceRows, start: int, stop: int) -> list[Row]:
        found = dict(rows.between(0, start, stop))
        chunk = [found[i] for i in range(stop - start)]
        self._save(name, [*map(examples.describe_image if self._shown.images else examples.describe_text, chunk)])
        return chunk

    def _model(self, number: int, model: str, blocks: Sequence[SeedBlock], texts: InstanceRows) -> Row:
        measures = ordered({measure for block in blocks for measure in block.importances})
        entry: Row = {"model": model, "measures": measures, "subwords": model in self._shown.subwords, "seeds": []}
        entry["reference"] = reference_measure(measures) if measures else None
        entry["reliability"] = self._options.reliability.get((self._shown.dataset, self._shown.variant, model), {})
        with tempfile.TemporaryDirectory() as spool:
            if entry["subwords"]:
                texts = self._instances(self._shown.subwords[model], Path(spool))
                for k, start, stop in self._chunks():
                    self._save_texts(f"{number}/texts/{k}", texts, start, stop)
            if points := self._shown.masks.get(model):
                masks = Masks(points, self._chosen, Path(spool))
                entry |= {"curves": masking_curves(point for point, _ in points), "masks_seed": masks.seed}
                for k, start, stop in self._chunks():
                    self._save(f"{number}/masks/{k}", masks.between(start, stop))
            for block in blocks:
                with tempfile.TemporaryDirectory() as block_spool:
                    tables = _BlockTables(block, self._chosen, Path(block_spool))
                    for seed in tables.predictions.seeds:
                        self._seed(f"{number}/{len(entry['seeds'])}/", tables, seed, texts, entry["reference"])
                        entry["seeds"].append(seed)
        return entry

    def _seed(self, name: str, tables: "_BlockTables", seed: int, texts: InstanceRows, reference: str | None) -> None:
        """The predictions of a seed and the explanations of each instance."""
        columns: dict[str, list[Any]] = {"predicted": [], "probability": [], "explained": [], "tau": []}
        for k, start, stop in self._chunks():
            rows = dict(texts.between(0, start, stop))
            chunk = tables.explanations(seed, start, stop)
            if self._shown.images:
                chunk = [_image_explanation(explanation, rows[i]) for i, explanation in enumerate(chunk)]
            else:
                chunk = _text_explanations(chunk, rows, reference, self._options.specials, self._options.random)
            self._save(f"{name}explanations/{k}", chunk)
            for explanation in chunk:
                predicted, probability = explanation["probable"][0]
                columns["predicted"].append(predicted)
                columns["probability"].append(probability)
                columns["explained"].append(int(bool(explanation.get("scores") or explanation.get("maps"))))
                columns["tau"].append(explanation.get("mean"))
        self._save_list(name, columns)


class _BlockTables:
    """The tables of a block of seeds, restricted to the chosen instances."""

    def __init__(self, block: SeedBlock, chosen: ChosenInstances, spool: Path) -> None:
        def rows(path: str, kind: TableSchema, *columns: str, where: tuple[str, str] | None = None) -> InstanceRows:
            return InstanceRows(path, kind, columns, chosen, spool, where)

        self.predictions = rows(block.predictions, PREDICTIONS, "probabilities")
        self._importances = {
            measure: rows(block.importances[measure], ATTRIBUTIONS, *TextScores._fields, where=("measure", measure))
            for measure in ordered(block.importances)
        }
        self._adversaries = block.adversaries and rows(block.adversaries, ADVERSARIES, *examples.ADVERSARIES)
        self._attention = block.attention and rows(block.attention, ATTENTION, "heads", "attention")
        self._adversarial_models = [
            (
                model,
                rows(model.attention, ATTENTION, "heads", "attention"),
                rows(model.predictions, PREDICTIONS, "probabilities"),
            )
            for model in block.adversarial_models
        ]

    def explanations(self, seed: int, start: int, stop: int) -> list[Row]:
        """For each instance its most probable classes, the scores of all `measures`, and its adversaries."""
        probabilities = {i: row["probabilities"] for i, row in self.predictions.between(seed, start, stop)}
        probable = [examples.most_probable(probabilities[i]) for i in range(stop - start)]
        found: list[Row] = [{"probable": classes, "measures": {}} for classes in probable]
        for measure, rows in self._importances.items():
            for i, row in rows.between(seed, start, stop):
                found[i]["measures"][measure] = TextScores(**row)
        if self._adversaries:
            attacks = examples.adversarial_attention(self._adversaries.between(seed, start, stop))
            for i, by_epsilon in attacks.items():
                found[i]["adversaries"] = by_epsilon
        for i, models in self._compare_attention(seed, start, stop, probabilities).items():
            found[i]["adversarial_models"] = models
        return found

    def _compare_attention(
        self, seed: int, start: int, stop: int, probabilities: dict[int, np.ndarray]
    ) -> dict[int, Row]:
        """The attention of the base model and of its adversarial models, with their probability of its class."""
        found: dict[int, Row] = {}
        models = [tables for tables in self._adversarial_models if tables[0].base_seed == seed]
        if not self._attention or not models:
            return found
        base = examples.attention_weights(self._attention.between(seed, start, stop))
        for model, attention, predictions in models:
            adversarial = examples.attention_weights(attention.between(model.seed, start, stop))
            outputs = dict(predictions.between(model.seed, start, stop))
            for i in base.keys() & adversarial.keys():
                own = {"heads": len(base[i]), "scores": examples.rounded_weights(base[i].mean(0)), "models": []}
                probability = outputs[i]["probabilities"][int(np.argmax(probabilities[i]))]
                described = examples.describe_adversary(model.title, model.seed, base[i], adversarial[i], probability)
                found.setdefault(i, own)["models"].append(described)
        return found


def _text_explanations(
    chunk: list[Row], rows: dict[int, Row], reference: str | None, specials: bool, random: str
) -> list[Row]:
    scores = [explanation.pop("measures") for explanation in chunk]
    agreement = examples.agreement_by_text(scores, reference, specials, random)
    return [
        explanation
        | examples.plain_scores(scores[i])
        | agreement[i]
        | examples.truth_shares(scores[i], examples.truth_mask(rows[i]))
        for i, explanation in enumerate(chunk)
    ]


def _image_explanation(explanation: Row, row: Row) -> Row:
    scores = explanation.pop("measures")
    maps = {measure: examples.saliency_map(image.scores) for measure, image in scores.items()}
    return explanation | {"maps": maps} | examples.truth_shares(scores, examples.truth_mask(row, words=False))


def _chunk_size(shown: ShownVariant, chosen: ChosenInstances) -> int:
    """The number of instances per chunk: fewer for long texts and images."""
    length = max(shown.summary["splits"][split]["mean_length"] for split in chosen.splits)
    if shown.images:
        length = min(length, examples.MOST_PIXELS**2)
    measures = max(len(block.importances) for block in shown.blocks)
    # About seven characters for a word or its score; four for three bytes of a colour or a map.
    size = length * (4 / 3 * max(3, measures) if shown.images else 7 * (1 + measures))
    return int(np.clip(CHUNK_BYTES / size, 1, CHUNK))
