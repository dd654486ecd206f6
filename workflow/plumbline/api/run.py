"""The jobs of a study with one model, except its training, run in this process.

Each step reads and writes the same artefacts as the job of its name and calls the same functions.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from plumbline.api.explained import ExplainedModel
from plumbline.api.places import place, sources_of
from plumbline.api.texts import EXPLAINED, LabelledTexts, align_scores
from plumbline.attribution.files import write_importances
from plumbline.attribution.run import attribute, load_calls
from plumbline.config.seeds import parse_seeds
from plumbline.dag.paths import cell_folder
from plumbline.dag.study import StudyDag
from plumbline.data.instances import Instances, optional_ragged
from plumbline.data.masking import special_ids
from plumbline.data.prepare import prepare
from plumbline.data.schemas import INSTANCES, VOCABULARY
from plumbline.data.subwords import tokenize_subwords
from plumbline.errors import PlumblineError
from plumbline.models.block import with_answers
from plumbline.models.budget import Budget
from plumbline.models.evaluator import Evaluator
from plumbline.models.objectives import Classification
from plumbline.models.rows import DeviceRows
from plumbline.protocols.explained import Explained, scores_of
from plumbline.protocols.make import declared_table, protocol_table
from plumbline.registry import load
from plumbline.store import read_table, write_json, write_table
from plumbline.tables.export import write_formats
from plumbline.training.learner import evaluate_rows
from plumbline.training.schemas import PREDICTIONS

# The tables that a study has besides those of its protocols.
TABLES = ("performance", "scorecard")


class LocalRun:
    """The run of a study's only cell, of this model, with its results in `folder`."""

    def __init__(
        self, dag: StudyDag, model: ExplainedModel, folder: Path, device: torch.device, budget: Budget
    ) -> None:
        self.dag, self.model, self.folder = dag, model, folder
        self.device, self._budget = device, budget
        (self.cell,) = dag.runs.cells
        self.seeds = parse_seeds(self.cell.seeds)

    def at(self, path: str) -> Path:
        """The place of an artefact."""
        return place(self.folder, path)

    @property
    def _options(self) -> Mapping[str, Any]:
        return self.dag.paths.model_options(self.cell)

    @cached_property
    def instances(self) -> Instances:
        """The texts as the model reads them."""
        return Instances.from_table(read_table(self.at(self.dag.paths.instances(self.cell)), INSTANCES), [EXPLAINED])

    def prepare(self, texts: LabelledTexts) -> None:
        """Write the texts as instances, of words and of the model's subwords, in place of earlier ones."""
        self.__dict__.pop("instances", None)
        name, paths = self.cell.dataset, self.dag.paths
        declaration = self.dag.params.declaration("dataset", name)
        recipe = self.dag.resolved.preparations[name]
        facts = name, None, declaration.task, declaration.evidence
        prepared = prepare(texts.corpus(), recipe, *facts, [EXPLAINED], self.model.vocabulary)
        words = self.at(f"{paths.data_folder(self.cell)}/instances.parquet")
        write_table(words, INSTANCES, prepared.instances)
        write_table(self.at(f"results/data/{name}/vocabulary.parquet"), VOCABULARY, prepared.vocabulary)
        write_json(self.at(paths.record_of(self.cell)), {"dataset": name, **prepared.summary})
        if not self._subwords:
            return
        options = self._options
        columns, summary = tokenize_subwords(
            read_table(words, INSTANCES), options["checkpoint"], options.get("prompt", "")
        )
        write_table(self.at(paths.instances(self.cell)), INSTANCES, columns)
        write_json(Path(self._subwords), summary)

    @property
    def _subwords(self) -> str:
        """The record of the model's subwords; empty if it reads words."""
        path = self.dag.paths.subwords(self.cell)
        return str(self.at(str(path))) if path else ""

    def align(self, scores: Any, name: str, texts: LabelledTexts) -> list[np.ndarray]:
        """One's own scores for each token of the model."""
        table = read_table(self.at(self.dag.paths.instances(self.cell)), INSTANCES, ["word"])
        lengths = [len(words) for words in texts.divide(texts.texts)]
        words = optional_ragged(table["word"]) or [np.arange(length) for length in lengths]
        return align_scores(scores, name, words, lengths)

    @cached_property
    def models(self) -> Iterable[Evaluator]:
        """The model of each seed."""
        pointer = self.dag.params.declaration("model", self.cell.model).pointer
        options = with_answers(self._options, self.model.classes)
        return self.model.evaluators(pointer, options, self.seeds, self._budget, self.device)

    def _probabilities(self) -> Iterator[np.ndarray]:
        """The probabilities [N, C] of each seed; seeds with the same model share them."""
        rows = DeviceRows(self.instances, self.device, {"weight": np.ones(len(self.instances), dtype=np.float32)})
        model, found = None, np.empty((0, 0))
        for evaluator in self.models:
            if evaluator.model is not model:
                model = evaluator.model
                objective = getattr(model, "objective", None) or Classification()
                found = evaluate_rows(model, objective, rows, rows.plan_chunks(model, self._budget))[0].cpu().numpy()
            yield found

    def predict(self) -> list[np.ndarray]:
        """Write the predictions of every seed, and return the probabilities [N, C] of each."""
        instances, probabilities, count = self.instances, [*self._probabilities()], len(self.seeds)
        columns = {
            "seed": np.repeat(self.seeds, len(instances)),
            "split": instances.split.tolist() * count,
            "instance": np.tile(instances.instance, count),
            "label": np.tile(instances.label, count),
            "probabilities": [row for rows in probabilities for row in rows],
        }
        write_table(self._predictions, PREDICTIONS, columns)
        return probabilities

    @property
    def _predictions(self) -> Path:
        return self.at(f"results/models/{cell_folder(self.cell)}/predictions.parquet")

    @property
    def groups(self) -> dict[str, list[str]]:
        """The measures that share a job, by the name of their file."""
        groups: dict[str, list[str]] = {}
        for measure in self.dag.runs.measures[self.cell.model]:
            groups.setdefault(self.dag.groups.of(measure), []).append(measure)
        return groups

    def attribute(self, group: str, instances: Instances | None = None) -> None:
        """Write the importances of the measures of a group."""
        calls = load_calls(self.dag.params.measures(self.cell, group))
        keys = {name: getattr(self.cell, name) for name in ("dataset", "variant", "model")}
        columns, _ = attribute(self.models, instances or self.instances, calls, None, keys)
        write_importances(self.at(f"results/attributions/{cell_folder(self.cell)}/{group}.parquet"), columns)

    def score(self, name: str) -> None:
        """Write the scores of a protocol."""
        dag, cell = self.dag, self.cell
        measures = dag.params.compared(name, cell.model)
        explained = Explained(
            predictions=self._predictions,
            importances={measure: self.at(dag.paths.importances(cell, measure)) for measure in measures},
            seeds=self.seeds,
            splits=[EXPLAINED],
            texts=self.at(dag.paths.instances(cell)),
            models=lambda: self.models,
            summary=self.at(dag.paths.record_of(cell)),
            model_options=self._options,
            recomputed=dag.params.recomputed(name, cell),
            mask_id=special_ids(self._subwords)[0],
            masking=dag.params.training(cell)["masking"],
        )
        declaration = dag.params.declaration("protocol", name)
        protocol = load(declaration.pointer)(**dag.params.options("protocol", name))
        scores = protocol.score(explained)
        write_table(self.at(f"results/scores/{name}/{cell_folder(cell)}.parquet"), scores_of(protocol), scores)

    def tables(self) -> None:
        """Write the tables of the protocols, of the model's performance and the scorecard."""
        protocols = self.dag.study.protocols
        for name in (TABLES[0], *protocols, *(TABLES[1:] if protocols else ())):
            params = self.dag.table_params(name)
            sources = sources_of(self.folder, self.dag.parts.table_reads(name), params["facts"])
            make = load(params["object"])
            kind, frame = (
                protocol_table(make(**params["options"]), sources)
                if name in protocols
                else declared_table(make, sources)
            )
            files = {suffix: self.at(f"results/tables/{name}.{suffix}") for suffix in ("parquet", "csv")}
            write_formats(SimpleNamespace(**files, latex=self.at(f"results/tables/{name}.tex")), kind, frame)


def choose_device(device: str | torch.device | None) -> torch.device:
    """The given device, or a GPU if there is one."""
    try:
        chosen = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError:
        raise PlumblineError(f"`device` is '{device}', which torch does not know; write 'cpu' or 'cuda'.") from None
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise PlumblineError(f"`device` is '{device}', but torch finds no GPU; leave it out to use the CPU.")
    return chosen
