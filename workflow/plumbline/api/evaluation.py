"""`evaluate` and `explain`: a study of one model in memory, run in this process."""

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from plumbline.api.checkpoint import Checkpoint
from plumbline.api.config import Entries, Request, check_retraining, entries, write_scores
from plumbline.api.continuation import write_config
from plumbline.api.explained import ExplainedModel, explained_model
from plumbline.api.messages import in_words_of_arguments
from plumbline.api.progress import show_progress
from plumbline.api.results import Results
from plumbline.api.scored import check_classes, models_at_chance, unscored_protocols
from plumbline.api.texts import EvidenceSource, LabelledTexts, Words, read_texts
from plumbline.api.trained import TrainedModel
from plumbline.config.resolve import resolve
from plumbline.dag.study import StudyDag
from plumbline.errors import PlumblineError
from plumbline.project import PROJECT, SCRIPTS
from plumbline.protocols.criteria import ARROWS
from plumbline.report.manifest import MANIFEST, manifest
from plumbline.store import write_json

if TYPE_CHECKING:
    import torch

MEASURES = ("random", "gradient-norm", "input-x-gradient", "integrated-gradient-pad", "leave-one-out")
PROTOCOLS = ("agreement", "erasure")
# The measures of the scorecard that are shown for an evaluation as text, and the columns of a line.
SHOWN, WIDTH = 10, 120
# The folder of a model that was in memory.
CHECKPOINT = "checkpoint"


class Evaluation(Results):
    """The results of `evaluate` and `explain`, in a temporary folder that is removed with this object.

    `scorecard` and `table(name)` are pandas tables, `importances` the scores of every text, `plot()` the figure of the
    scorecard and `show(i)` a heat map of a text.
    """

    def __init__(
        self, workspace: TemporaryDirectory, config: dict[str, Any], model: ExplainedModel, texts: LabelledTexts
    ) -> None:
        super().__init__(Path(workspace.name) / "results")
        self._workspace, self._config, self._model, self._labelled = workspace, config, model, texts

    def __repr__(self) -> str:
        lines = [f"Evaluation of {self._config['name']}"]
        if self._labelled.labelled:
            right = (self.predictions["predicted"] == self.predictions["label"]).mean()
            lines[0] += f", accuracy {right:.2f}"
        lines += [f"{key}: {', '.join(self._config[key]) or 'none'}" for key in ("measures", "protocols")]
        if "scorecard" in self.tables:
            lines.append(self._scorecard_text())
        return "\n".join(lines)

    def _scorecard_text(self) -> str:
        """The first rows of the scorecard, with an arrow for the direction of each criterion."""
        card = self.scorecard
        if card.empty:
            return "scorecard: empty; `plot()` says why"
        arrows = {criterion: f"{criterion} {ARROWS[better]}" for criterion, better in self.directions.items()}
        rest = f"\n... {len(card) - SHOWN} more measures" if len(card) > SHOWN else ""
        return str(card.rename(columns=arrows).head(SHOWN).round(3).to_string(line_width=WIDTH)) + rest

    def to_config(self, path: str | Path = "my.yaml", texts: Any = None, labels: Any = None) -> Path:
        """Write a config for `plumbline run` that goes on where this evaluation ends: the same model, texts, measures
        and protocols, and ROAR, which fine-tunes the checkpoint.

        `texts` and `labels` are for training; the evaluated texts are then the test split. Without them, train, dev and
        test are drawn from the evaluated texts, and one's own importances are left out. The texts, and a model that was
        in memory, are written next to the config.
        """
        if not isinstance(self._model, Checkpoint):
            raise PlumblineError(
                "The model was trained by a study, which already has a config; add the measures and protocols to that "
                "config and run it again."
            )
        training = None if texts is None else read_texts(texts, labels, self._model.classes, self._labelled.words)
        if not self._labelled.labelled or (training and not training.labelled):
            raise PlumblineError(
                "`labels` is missing: give the class of each training text."
                if self._labelled.labelled
                else "A study needs the class of each text; call `evaluate` with `labels` instead of `explain`."
            )
        return write_config(Path(path), self._config, self._model, self._labelled, training)


def evaluate(
    model: Any,
    tokenizer: Any = None,
    texts: Sequence[str] | Sequence[tuple[str, str]] | None = None,
    labels: Sequence[int] | Sequence[str] | None = None,
    *,
    measures: Entries = MEASURES,
    protocols: Entries = PROTOCOLS,
    importances: Mapping[str, Sequence[Sequence[float]]] | None = None,
    evidence: Sequence[Sequence[bool]] | None = None,
    evidence_source: EvidenceSource = "human",
    prompt: str = "",
    answers: Sequence[str] | Mapping[str, str] | None = None,
    words: Words = "spaces",
    seeds: int | Sequence[int] | None = None,
    device: "str | torch.device | None" = None,
    token_budget: int | None = None,
    least_above_chance: float | None = None,
    plugins: Sequence[str | Path] = (),
    progress: bool = True,
) -> Evaluation:
    """How faithful are explanations of a classifier? Score every measure by every protocol.

    `model` and `tokenizer` are of transformers and stay unchanged; or `model` is the folder or name of a checkpoint,
    without `tokenizer`; or one that a study has trained, `plumbline.load("results").model()`. A causal language model
    of transformers also needs a `prompt` with {text}, and {pair} for pairs, and the `answers` of the classes, as a list
    or by the name of each class.

    `texts` are strings, or pairs of them; `labels` the number or name of the class of each. `words` says how a text is
    divided: at white space, or by spaCy with case (`cased`) or without (`cleaned`). `evidence` has a flag for each word
    of a text between white space, for the protocol of that name; people marked these words, or a `rule` makes them
    decide the class.

    `measures` and `protocols` are names, or options by name as in a config; `importances` are scores of your own by
    name, one for each word or subword of a text. `plugins` are files with measures or protocols of your own.

    `seeds` decide random draws, by default 0; of a model that a study has trained they are those of its weights, by
    default all. `device` is by default a GPU if there is one; `token_budget` limits the tokens of one
    pass, by default by the free memory. A model whose accuracy is not `least_above_chance` of the way from chance to 1
    gets no scores in the scorecard; by default every model does.
    """
    check_retraining(protocols, isinstance(model, TrainedModel))
    request = Request(measures, protocols, seeds, token_budget, least_above_chance, plugins)
    workspace = TemporaryDirectory(prefix="plumbline-")
    described = explained_model(model, tokenizer, prompt, answers, Path(workspace.name) / CHECKPOINT)
    if labels is None:
        raise PlumblineError("`labels` is missing: give the class of each text, or call `explain`, which needs none.")
    labelled = read_texts(texts, labels, described.classes, words, evidence, evidence_source)
    return _run(workspace, request, described, labelled, importances or {}, device, progress)


def explain(
    model: Any,
    tokenizer: Any = None,
    texts: Sequence[str] | Sequence[tuple[str, str]] | None = None,
    labels: Sequence[int] | Sequence[str] | None = None,
    *,
    measures: Entries = MEASURES,
    prompt: str = "",
    answers: Sequence[str] | Mapping[str, str] | None = None,
    words: Words = "spaces",
    seeds: int | Sequence[int] | None = None,
    device: "str | torch.device | None" = None,
    token_budget: int | None = None,
    plugins: Sequence[str | Path] = (),
    progress: bool = True,
) -> Evaluation:
    """The importances of the tokens of texts by each measure, without scores; the arguments are those of `evaluate`.

    `labels` are needed only by measures with the option `target: gold`; without them, the classes that the
    first seed predicts are stored.
    """
    request = Request(measures, (), seeds, token_budget, None, plugins)
    workspace = TemporaryDirectory(prefix="plumbline-")
    described = explained_model(model, tokenizer, prompt, answers, Path(workspace.name) / CHECKPOINT)
    labelled = read_texts(texts, labels, described.classes, words)
    if not labelled.labelled:
        for name, options in entries(measures, "measures").items():
            if options.get("target") == "gold":
                raise PlumblineError(
                    f"`measures.{name}.target` is 'gold', which needs `labels`; give the class of each text."
                )
    return _run(workspace, request, described, labelled, {}, device, progress)


def _run(
    workspace: TemporaryDirectory,
    request: Request,
    model: ExplainedModel,
    texts: LabelledTexts,
    importances: Mapping[str, Sequence[Sequence[float]]],
    device: "str | torch.device | None",
    progress: bool,
) -> Evaluation:
    """Run the study of a request in a temporary folder."""
    from plumbline.api.run import LocalRun, choose_device
    from plumbline.models.budget import Budget

    started, root = time.perf_counter(), Path(workspace.name)
    imported = {name: root / "importances" / f"{name}.parquet" for name in importances}
    for path in imported.values():
        # The scores are aligned with subwords below, once these are known.
        write_scores(path, [np.zeros(1)])
    with in_words_of_arguments():
        config = request.config(model, texts, imported)
        dag = StudyDag(resolve(config), [Path(), PROJECT], SCRIPTS)
        for excluded in dag.runs.excluded:
            raise PlumblineError(f"{excluded.reason[0].upper()}{excluded.reason[1:]}; leave it out.")
    if dag.study.protocols:
        _warn([*unscored_protocols(dag), *check_classes(texts, request.least_above_chance)])
    run = LocalRun(dag, model, root / "results", choose_device(device), Budget(request.token_budget))
    with show_progress(progress, sum(map(len, run.groups.values())) + len(dag.study.protocols)) as begin:
        begin("read texts", 0)
        run.prepare(texts)
        for name, path in imported.items():
            write_scores(path, run.align(importances[name], name, texts))
        begin("predict", 0)
        probabilities = run.predict()
        if not texts.labelled:
            run.prepare(replace(texts, labels=probabilities[0].argmax(1).tolist()))
            run.predict()
        if dag.study.protocols:
            _warn(models_at_chance(probabilities, run.seeds, texts, request.least_above_chance))
        for group, measures in run.groups.items():
            more = f" and {len(measures) - 1} more" if len(measures) > 1 else ""
            begin(f"explain by {measures[0]}{more}", len(measures))
            run.attribute(group)
        for protocol in dag.study.protocols:
            begin(f"score by {protocol}", 1)
            run.score(protocol)
    if dag.study.protocols:
        run.tables()
    timings = pd.DataFrame([{"device": str(run.device), "seconds": time.perf_counter() - started, "event": None}])
    write_json(run.folder / MANIFEST, manifest(dag.study.model_dump(), [], timings))
    return Evaluation(workspace, config, model, texts)


def _warn(sentences: Sequence[str]) -> None:
    """Warn whoever called `evaluate`."""
    for sentence in sentences:
        warnings.warn(sentence, stacklevel=4)
