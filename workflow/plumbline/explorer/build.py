"""The data of the explorer: small scripts that its page loads as they are asked for.

`index` tells what there is. Of each dataset and variant, a folder named by its place in the index, there are `list`
(labels and lengths), `texts`, of each model `masks`, `texts` if it has its own subwords and, of each seed, `list`
(predictions) and `told` (what measures say). Texts and what is told of them come in chunks, lists in longer blocks.
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
from plumbline.explorer.masked import Masks, curves
from plumbline.explorer.rows import Chosen, InstanceRows
from plumbline.figures.conventions import ADVERSARY, measure_colour, ordered, reference_measure
from plumbline.models.schemas import ATTENTION
from plumbline.protocols.attention.schemas import ADVERSARIES
from plumbline.report.embed import data_script
from plumbline.store import TableSchema, read_table, stream_table, write_text
from plumbline.training.schemas import PREDICTIONS

# Instances of a block of lists and, at most, of a chunk, which is to be of about so many bytes.
BLOCK = 20_000
CHUNK = 200
CHUNK_BYTES = 2**20
# The colour of adversarial models, which is none of a measure that is known.
RIVAL = "#AA3377"


def build_explorer(folder: str | Path, study: str, shown: Sequence[ShownVariant], wanted: ExplorerOptions) -> None:
    """Write all files of the explorer."""
    sets: list[Row] = []
    for one in shown:
        chosen = choose(one, wanted)
        if len(chosen):
            sets.append(_Writer(Path(folder), len(sets), one, chosen, wanted).write())
    measures = ordered({measure for one in shown for block in one.blocks for measure in block.importances})
    masking = {curve["measure"] for one in sets for model in one["models"] for curve in model.get("curves", [])}
    colours = {measure: measure_colour(measure) for measure in ordered({*measures, *masking})}
    told = {"study": study, "sets": sets, "block": BLOCK, "measures": colours, "steps": examples.STEPS}
    told |= {"adversary": ADVERSARY, "attention": measure_colour("attention"), "rival": RIVAL}
    write_text(Path(folder, "index.js"), data_script("index", told))


def choose(shown: ShownVariant, wanted: ExplorerOptions) -> Chosen:
    """The instances that are shown, which are the same for all models; the first block chooses them.

    All are those that some seed has explained or, where no measure explains anything, that were predicted.
    """
    if not shown.blocks:
        return Chosen.of({})
    first = shown.blocks[0].predictions
    if wanted.count != "all":
        split = "test" if "test" in wanted.splits else wanted.splits[0]
        told = read_table(first, PREDICTIONS)
        return Chosen.of({split: examples.choose_instances(told, split, wanted.count, wanted.sampled)})
    explained = dict.fromkeys(path for block in shown.blocks for path in block.importances.values())
    files = [(path, ATTRIBUTIONS) for path in explained] or [(first, PREDICTIONS)]
    numbers: dict[str, set[int]] = {split: set() for split in wanted.splits}
    for path, kind in files:
        for table in stream_table(path, kind, ["split", "instance"]):
            splits, own = np.array(table["split"].to_pylist()), table["instance"].to_numpy()
            for split, found in numbers.items():
                found.update(own[splits == split].tolist())
    return Chosen.of({split: sorted(found) for split, found in numbers.items() if found})


class _Writer:
    """The files of one variant of a dataset."""

    def __init__(self, folder: Path, place: int, shown: ShownVariant, chosen: Chosen, wanted: ExplorerOptions) -> None:
        self._folder, self._place = folder, place
        self._shown, self._chosen, self._wanted = shown, chosen, wanted
        self._size = _chunk_size(shown, chosen)
        self._models = [(model, list(blocks)) for model, blocks in groupby(shown.blocks, lambda block: block.model)]

    def write(self) -> Row:
        """Write the files; returns what the index tells of them."""
        name = f"{self._shown.dataset} {self._shown.variant}"
        self._bar = tqdm(desc=name, unit=" chunks", disable=None)
        with self._bar, tempfile.TemporaryDirectory() as spool:
            texts = self._instances(self._shown.instances, Path(spool))
            self._texts(texts)
            models = [self._model(i, model, blocks, texts) for i, (model, blocks) in enumerate(self._models)]
        told = self._shown.summary["splits"]
        return {
            "dataset": self._shown.dataset,
            "variant": self._shown.variant,
            "classes": self._shown.summary["classes"],
            "second": self._shown.second,
            "pictures": self._shown.pictures,
            "splits": self._chosen.splits,
            "count": len(self._chosen),
            "total": sum(told[split]["instances"] for split in self._chosen.splits),
            "chunk": self._size,
            "models": models,
        }

    def _save(self, name: str, value: Any) -> None:
        name = f"{self._place}/{name}"
        write_text(self._folder / f"{name}.js", data_script(name, value))

    def _save_list(self, name: str, columns: dict[str, list[Any]]) -> None:
        for k, start in enumerate(range(0, len(self._chosen), BLOCK)):
            self._save(f"{name}list/{k}", {key: values[start : start + BLOCK] for key, values in columns.items()})

    def _chunks(self) -> Iterator[tuple[int, int, int]]:
        for k, start in enumerate(range(0, len(self._chosen), self._size)):
            yield k, start, min(start + self._size, len(self._chosen))
            self._bar.update()

    def _rows(self, path: str, kind: TableSchema, columns: Sequence[str], spool: Path) -> InstanceRows:
        return InstanceRows(path, kind, columns, self._chosen, spool)

    def _instances(self, path: str, spool: Path) -> InstanceRows:
        return self._rows(path, INSTANCES, examples.PICTURE if self._shown.pictures else examples.TEXT, spool)

    def _describe(self, row: Row) -> Row:
        return examples.describe_picture(row) if self._shown.pictures else examples.describe_text(row)

    def _texts(self, rows: InstanceRows) -> None:
        """The texts or pictures, and the list of them."""
        columns: dict[str, list[Any]] = {"split": self._chosen.split.tolist(), "number": self._chosen.number.tolist()}
        columns |= {"label": [], "length": []}
        for k, start, stop in self._chunks():
            here = dict(rows.of(0, start, stop))
            own = [here[place] for place in range(stop - start)]
            self._save(f"texts/{k}", [self._describe(row) for row in own])
            columns["label"] += [row["label"] for row in own]
            columns["length"] += [
                len(row["ids"]) if self._shown.pictures else int(row["maskable"].sum()) for row in own
            ]
        self._save_list("", columns)

    def _model(self, number: int, model: str, blocks: Sequence[SeedBlock], texts: InstanceRows) -> Row:
        measures = ordered({measure for block in blocks for measure in block.importances})
        told: Row = {"model": model, "measures": measures, "subwords": model in self._shown.subwords, "seeds": []}
        told["reference"] = reference_measure(measures) if measures else None
        with tempfile.TemporaryDirectory() as spool:
            if told["subwords"]:
                texts = self._instances(self._shown.subwords[model], Path(spool))
                for k, start, stop in self._chunks():
                    own = dict(texts.of(0, start, stop))
                    self._save(f"{number}/texts/{k}", [self._describe(own[place]) for place in range(stop - start)])
            if self._shown.masks.get(model):
                masks = Masks(self._shown.masks[model], self._chosen, Path(spool))
                told |= {"curves": curves(point for point, _ in self._shown.masks[model]), "masks_seed": masks.seed}
                for k, start, stop in self._chunks():
                    self._save(f"{number}/masks/{k}", masks.of(start, stop))
            for block in blocks:
                with tempfile.TemporaryDirectory() as own_spool:
                    opened = _Opened(block, self._chosen, Path(own_spool))
                    for seed in opened.predictions.seeds:
                        self._seed(f"{number}/{len(told['seeds'])}/", opened, seed, texts, told["reference"])
                        told["seeds"].append(seed)
        return told

    def _seed(self, name: str, block: "_Opened", seed: int, texts: InstanceRows, reference: str | None) -> None:
        """What a seed predicts, and what measures, adversaries and adversarial models tell of each instance."""
        columns: dict[str, list[Any]] = {"predicted": [], "probability": [], "explained": [], "tau": []}
        for k, start, stop in self._chunks():
            rows = dict(texts.of(0, start, stop))
            told = block.told(seed, start, stop)
            if self._shown.pictures:
                plain = [_on_pixels(one, rows[place]) for place, one in enumerate(told)]
            else:
                plain = _on_words(told, rows, reference, self._wanted.specials, self._wanted.random)
            self._save(f"{name}told/{k}", plain)
            for one in plain:
                columns["predicted"].append(one["probable"][0][0])
                columns["probability"].append(one["probable"][0][1])
                columns["explained"].append(int(bool(one.get("scores") or one.get("maps"))))
                columns["tau"].append(one.get("mean"))
        self._save_list(name, columns)


class _Opened:
    """The tables of a block, open."""

    def __init__(self, block: SeedBlock, chosen: Chosen, spool: Path) -> None:
        def rows(path: str, kind: TableSchema, *columns: str, where: tuple[str, str] | None = None) -> InstanceRows:
            return InstanceRows(path, kind, columns, chosen, spool, where)

        self.predictions = rows(block.predictions, PREDICTIONS, "probabilities")
        self._importances = {
            measure: rows(block.importances[measure], ATTRIBUTIONS, *TextScores._fields, where=("measure", measure))
            for measure in ordered(block.importances)
        }
        self._adversaries = block.adversaries and rows(block.adversaries, ADVERSARIES, *examples.ADVERSARIES)
        self._attention = block.attention and rows(block.attention, ATTENTION, "heads", "attention")
        self._rivals = [
            (
                rival,
                rows(rival.attention, ATTENTION, "heads", "attention"),
                rows(rival.predictions, PREDICTIONS, "probabilities"),
            )
            for rival in block.rivals
        ]

    def told(self, seed: int, start: int, stop: int) -> list[Row]:
        """Of each instance the most probable classes and, under `of`, what measures say; also its adversaries."""
        said = {place: row["probabilities"] for place, row in self.predictions.of(seed, start, stop)}
        told: list[Row] = [{"probable": examples.most_probable(said[i]), "of": {}} for i in range(stop - start)]
        for measure, rows in self._importances.items():
            for place, row in rows.of(seed, start, stop):
                told[place]["of"][measure] = TextScores(**row)
        if self._adversaries:
            for place, found in examples.attacks(self._adversaries.of(seed, start, stop)).items():
                told[place]["adversaries"] = found
        for place, rivals in self._against(seed, start, stop, said).items():
            told[place]["rivals"] = rivals
        return told

    def _against(self, seed: int, start: int, stop: int, said: dict[int, np.ndarray]) -> dict[int, Row]:
        """Where the base model looks, and where its rivals do, with their probability of its class."""
        found: dict[int, Row] = {}
        rivals = [one for one in self._rivals if one[0].base_seed == seed]
        looks = examples.attention_weights(self._attention.of(seed, start, stop)) if self._attention and rivals else {}
        for rival, attention, predictions in rivals:
            others = examples.attention_weights(attention.of(rival.seed, start, stop))
            probabilities = dict(predictions.of(rival.seed, start, stop))
            for place in looks.keys() & others.keys():
                own = looks[place]
                base = {"heads": len(own), "scores": examples.weights(own.mean(0)), "models": []}
                probability = probabilities[place]["probabilities"][int(np.argmax(said[place]))]
                one = examples.describe_adversary(rival.title, rival.seed, own, others[place], probability)
                found.setdefault(place, base)["models"].append(one)
        return found


def _on_words(told: list[Row], rows: dict[int, Row], reference: str | None, specials: bool, random: str) -> list[Row]:
    of = [one.pop("of") for one in told]
    agreed = examples.taus(of, reference, specials, random)
    return [
        told[i] | examples.plain_scores(of[i]) | agreed[i] | examples.on_truth(of[i], examples.truth_mask(rows[i]))
        for i in range(len(told))
    ]


def _on_pixels(told: Row, row: Row) -> Row:
    of = told.pop("of")
    maps = {measure: examples.map_of(one.scores) for measure, one in of.items()}
    return told | {"maps": maps} | examples.on_truth(of, examples.truth_mask(row, words=False))


def _chunk_size(shown: ShownVariant, chosen: Chosen) -> int:
    """How many instances fill a chunk: fewer of long texts and of pictures."""
    length = max(shown.summary["splits"][split]["mean_length"] for split in chosen.splits)
    if shown.pictures:
        length = min(length, examples.MOST_PIXELS**2)
    measures = max(len(block.importances) for block in shown.blocks)
    # Seven letters for a word or its score; four for three bytes of a colour or a map.
    each = length * (4 / 3 * max(3, measures) if shown.pictures else 7 * (1 + measures))
    return int(np.clip(CHUNK_BYTES / each, 1, CHUNK))
