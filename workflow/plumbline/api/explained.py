"""The model that the Python API explains: a checkpoint of transformers, or a model that a study has trained."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from plumbline.api.checkpoint import find_model
from plumbline.api.trained import TrainedModel
from plumbline.data.vocabulary import Vocabulary
from plumbline.errors import PlumblineError

if TYPE_CHECKING:
    import torch

    from plumbline.models.budget import Budget
    from plumbline.models.evaluator import Evaluator


class ExplainedModel(Protocol):
    """A model of one kind or the other."""

    @property
    def name(self) -> str:
        """Its name in titles."""

    @property
    def classes(self) -> list[str]:
        """The names of its classes."""

    @property
    def task(self) -> str:
        """The task of the texts that it reads; `auto` if single texts and pairs will do."""

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The words that it knows; None if its tokenizer has them."""

    @property
    def plugins(self) -> Sequence[str]:
        """The files of plug-ins that it needs."""

    def seeds_of(self, wanted: Sequence[int] | None) -> list[int]:
        """The seeds that are evaluated: those that are wanted, or its own."""

    def entry(self) -> dict[str, Any]:
        """Its entry in `models` of a config."""

    def evaluators(
        self, pointer: str, options: Mapping[str, Any], seeds: list[int], budget: "Budget", device: "torch.device"
    ) -> "Iterable[Evaluator]":
        """The model of each seed, built by the class at `pointer`; these can be iterated over several times."""


def explained_model(
    model: Any, tokenizer: Any, prompt: str, answers: Sequence[str] | Mapping[str, str] | None, folder: Path
) -> ExplainedModel:
    """The model to explain; one in memory is saved in `folder`."""
    if not isinstance(model, TrainedModel):
        return find_model(model, tokenizer, prompt, answers, folder)
    given = {"tokenizer": tokenizer is not None, "prompt": bool(prompt), "answers": answers is not None}
    for name, is_given in given.items():
        if is_given:
            raise PlumblineError(
                f"`{name}` is given, but a model that a study has trained reads texts as the study does; leave it out, "
                "and name the arguments `texts=` and `labels=`."
            )
    return model
