"""A model of transformers that the Python API explains: a checkpoint, or a model in memory that is saved as one."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.config.checkpoints import CAUSAL, check_location, find_checkpoint
from plumbline.data.subwords import reading_checkpoint
from plumbline.errors import PlumblineError

if TYPE_CHECKING:
    import torch

    from plumbline.models.budget import Budget
    from plumbline.models.evaluator import Evaluator

# What an encoder with a classification head is called.
CLASSIFIER = "ForSequenceClassification"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that is used as it is: its folder or name, the names of its classes, and its prompt and answers if
    it is a causal language model."""

    checkpoint: str
    name: str
    classes: list[str]
    prompt: str = ""
    answers: tuple[str, ...] = ()
    # Whether the folder is a copy of a model in memory.
    in_memory: bool = False
    # It reads single texts and pairs, its tokenizer has the vocabulary, and it needs no plug-in.
    task: str = "auto"
    vocabulary: None = None
    plugins: tuple[str, ...] = ()

    def seeds_of(self, wanted: Sequence[int] | None) -> list[int]:
        """The seeds of random draws: those that are wanted, or 0."""
        return [0] if wanted is None else [*wanted]

    def evaluators(
        self, pointer: str, options: Mapping[str, Any], seeds: list[int], budget: "Budget", device: "torch.device"
    ) -> "list[Evaluator]":
        """The same model for each seed, which decides random draws alone."""
        from plumbline.models.block import build_model
        from plumbline.models.evaluator import Evaluator

        model = build_model(pointer, options, None, len(self.classes)).requires_grad_(False)
        return [Evaluator(model, seed, budget, device) for seed in seeds]

    def entry(self, checkpoint: str | None = None) -> dict[str, Any]:
        """Its entry in `models` of a config."""
        checkpoint = checkpoint or self.checkpoint
        if self.answers:
            return {"kind": "causal", "checkpoint": checkpoint, "prompt": self.prompt, "answers": [*self.answers]}
        return {"kind": "pretrained", "checkpoint": checkpoint, "head": "own", "training": {"epochs": 0}}

    def retrained_entry(self, checkpoint: str) -> dict[str, Any]:
        """The entry of the same checkpoint fine-tuned on the study's data."""
        if self.answers:
            return self.entry(checkpoint) | {"training": {"epochs": 1}}
        return {"kind": "pretrained", "checkpoint": checkpoint}


def find_model(
    model: Any, tokenizer: Any, prompt: str, answers: Sequence[str] | Mapping[str, str] | None, folder: Path
) -> Checkpoint:
    """The checkpoint to explain. A model in memory is saved in `folder` and read from there, so it stays unchanged."""
    if isinstance(model, str | Path):
        if tokenizer is not None:
            raise PlumblineError(
                f"`model` is the checkpoint '{model}', which has its own tokenizer; leave out `tokenizer`, and name "
                "the arguments `texts=` and `labels=`."
            )
        path = os.path.expanduser(model)
        # A path object is a folder, even if its name could be one of the hub.
        check_location("`model`", path if isinstance(model, str) else os.path.abspath(path))
        return _described(path, prompt, answers)
    for name, value in (("model", model), ("tokenizer", tokenizer)):
        if not hasattr(value, "save_pretrained"):
            raise PlumblineError(
                f"`{name}` is a {type(value).__name__}; give a model and a tokenizer of transformers, or as `model` "
                "the name or folder of a checkpoint, or a model that a study has trained, "
                "`plumbline.load('results').model()`."
            )
    if not hasattr(model, "get_input_embeddings"):
        raise PlumblineError(f"`model` is a {type(model).__name__}; it must be a transformers model.")
    with reading_checkpoint(type(model).__name__):
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    # The name from which transformers read it, if it did.
    name = str(getattr(model.config, "name_or_path", "")) or type(model).__name__
    described = _described(str(folder), prompt, answers, type(model).__name__)
    return replace(described, name=_title(name), in_memory=True)


def _title(checkpoint: str) -> str:
    """The name of a checkpoint in titles: that of its folder, or of the hub."""
    is_folder = os.path.isdir(checkpoint) or os.path.isabs(checkpoint)
    return os.path.basename(os.path.abspath(checkpoint)) if is_folder else checkpoint


def _described(
    checkpoint: str, prompt: str, answers: Sequence[str] | Mapping[str, str] | None, name: str = ""
) -> Checkpoint:
    """A checkpoint with its classes: the names of its outputs or, of a causal language model, those of its answers."""
    from transformers import AutoConfig

    with reading_checkpoint(name or checkpoint):
        config: Any = AutoConfig.from_pretrained(find_checkpoint(checkpoint))
    architectures, subject = config.architectures or [], name or f"the checkpoint '{checkpoint}'"
    if answers is not None or prompt:
        if not answers or not prompt:
            raise PlumblineError("A causal language model needs both `prompt`, with {text}, and `answers`.")
        if isinstance(answers, str):
            raise PlumblineError("`answers` is a string; give one answer for each class.")
        named = dict(answers) if isinstance(answers, Mapping) else {answer.strip(): answer for answer in answers}
        if len(named) < len(answers):
            raise PlumblineError("Two of the `answers` are the same; give each class a different answer.")
        return Checkpoint(checkpoint, _title(checkpoint), [*map(str, named)], prompt, tuple(named.values()))
    if any(architecture.endswith(CAUSAL) for architecture in architectures):
        raise PlumblineError(
            f"{subject} is a causal language model; give a `prompt` with {{text}} and `answers`, one for each class."
        )
    if not any(architecture.endswith(CLASSIFIER) for architecture in architectures):
        raise PlumblineError(
            f"{subject} has no classification head; load it with AutoModelForSequenceClassification and train it, or "
            "let a study train it: `plumbline run my.yaml` with `models: {mine: {checkpoint: NAME}}`."
        )
    names = [str(config.id2label[number]) for number in range(config.num_labels)]
    if len({*names}) < len(names):
        raise PlumblineError(f"{subject} has two outputs of the same name in `id2label`; rename one.")
    return Checkpoint(checkpoint, _title(checkpoint), names)
