"""The config of an evaluation."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os.path import abspath
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from plumbline.api.explained import ExplainedModel
from plumbline.api.texts import EXPLAINED, LabelledTexts
from plumbline.config.external import IMPORTED
from plumbline.config.names import check_name
from plumbline.errors import PlumblineError
from plumbline.registry import PAIRED

# Names of measures or protocols, or their options by name.
Entries = Sequence[str] | Mapping[str, Mapping[str, Any] | None]
# The names of the dataset and the model.
DATASET, MODEL = "texts", "model"
# What needs training, and the section of a config that asks for it.
_MASKED = ("trains models on texts with masked words", "`roar`")
_MANIPULATED = ("trains models on manipulated texts", "`manipulations`")
_ADVERSARY = ("trains adversarial models", "`adversaries`")
RETRAINING = {
    "roar": _MASKED,
    "faithfulness": _MASKED,
    "synthetic_roar": _MASKED,
    "sparsity": _MASKED,
    "ground_truth": _MANIPULATED,
    "rationales": _MANIPULATED,
    "masked_erasure": (
        "needs a model that was trained with masked words and its dev texts",
        "`training: {masking: uniform}` of a model",
    ),
    "adversary": _ADVERSARY,
    "adversaries": _ADVERSARY,
    "seed_variance": ("compares models trained with several seeds", "`seeds`"),
}
# Those that score a model that a study has trained.
OF_TRAINED = ("seed_variance",)


def count_texts(count: int) -> str:
    """A number of texts."""
    return f"{count} text{'' if count == 1 else 's'}"


def entries(listed: Entries, name: str) -> dict[str, dict[str, Any]]:
    """Options by name, from names or a mapping."""
    if isinstance(listed, str):
        raise PlumblineError(f"`{name}` is a string; write a list, such as ['{listed}'].")
    if not isinstance(listed, Iterable):
        raise PlumblineError(
            f"`{name}` is {listed!r}; write a list of names, or a dict of options by name, or leave it out."
        )
    named = listed if isinstance(listed, Mapping) else dict.fromkeys(listed)
    for key in named:
        if not isinstance(key, str):
            raise PlumblineError(
                f"`{name}` contains {key!r}, which is not a name; write a list of names, or a dict of options by name."
            )
    return {key: dict(options or {}) for key, options in named.items()}


def check_retraining(protocols: Entries, trained: bool) -> None:
    """Refuse protocols that need training; some of them score a model that a study has `trained`."""
    for name, options in entries(protocols, "protocols").items():
        kind = options.get("kind", name)
        if kind in RETRAINING and not (trained and kind in OF_TRAINED):
            what, section = RETRAINING[kind]
            advice = (
                f"set {section} in the config of the study that trained the model, and run it."
                if trained
                else "evaluate without it, write a config with `result.to_config('my.yaml')`, set "
                f"{section} there and run `plumbline run my.yaml`."
            )
            raise PlumblineError(f"`protocols` names '{name}', which {what}, but `evaluate` trains no models: {advice}")


@dataclass(frozen=True)
class Request:
    """What is to be computed, with which seeds and within which memory."""

    measures: Entries
    protocols: Entries = ()
    seeds: int | Sequence[int] | None = None
    token_budget: int | None = None
    least_above_chance: float | None = None
    plugins: Sequence[str | Path] = ()

    def config(self, model: ExplainedModel, texts: LabelledTexts, imported: Mapping[str, Path]) -> dict[str, Any]:
        """The config of a study of one model; `imported` are the files of one's own importances."""
        measures = entries(self.measures, "measures")
        for name in imported:
            check_name(name, f"importances['{name}']")
            if name in measures:
                raise PlumblineError(f"`importances` and `measures` both name '{name}'; rename one.")
        for name, options in measures.items():
            target, count = options.get("target"), len(model.classes)
            if isinstance(target, int) and not 0 <= target < count:
                raise PlumblineError(
                    f"`measures.{name}.target` is {target}, but the model has {count} classes, numbered from 0."
                )
        if not (self.seeds is None or isinstance(self.seeds, int | Sequence)) or isinstance(self.seeds, str):
            raise PlumblineError(f"`seeds` is {self.seeds!r}; it must be a whole number or a list of them.")
        seeds = model.seeds_of([self.seeds] if isinstance(self.seeds, int) else self.seeds)
        plugins = dict.fromkeys([*model.plugins, *map(abspath, self.plugins)])
        return {
            "name": f"{model.name}, {count_texts(len(texts.texts))}",
            "plugins": [*plugins],
            "datasets": {DATASET: dataset_entry(texts, task=model.task)},
            "models": {MODEL: model.entry()},
            "seeds": [",".join(map(str, seeds))],
            "measures": measures | {name: {"kind": IMPORTED, "path": str(path)} for name, path in imported.items()},
            "protocols": entries(self.protocols, "protocols"),
            "least_above_chance": self.least_above_chance,
            "compute": {} if self.token_budget is None else {"token_budget": self.token_budget},
        }


def dataset_entry(texts: LabelledTexts, path: str = "texts.jsonl", task: str = "auto") -> dict[str, Any]:
    """The entry of a table with the texts; its columns are those of `LabelledTexts.rows`."""
    if task != "auto" and (task in PAIRED) != (texts.pairs is not None):
        read = "pairs, as for " if task in PAIRED else "single texts, as for "
        raise PlumblineError(f"`texts` must be {read}{task}, which the model was trained for.")
    columns = {"text": "text", "label": "label"} | ({} if task == "auto" else {"task": task})
    columns |= {"pair": "pair"} if texts.pairs is not None else {}
    if texts.evidence is not None:
        columns |= {"evidence": "evidence", "evidence_source": texts.evidence_source}
    return {"kind": "table", "path": path, **columns, "classes": texts.classes, "tokens": texts.words}


def write_scores(path: Path, scores: Sequence[np.ndarray]) -> None:
    """Write one's own importances as a file for the measure `imported`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"split": EXPLAINED, "instance": i, "scores": row.tolist()} for i, row in enumerate(scores)]
    pd.DataFrame(rows).to_parquet(path)
