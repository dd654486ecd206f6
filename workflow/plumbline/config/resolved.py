"""A study with every name looked up, every option typed and every recipe merged."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from plumbline.config.messages import validation_message
from plumbline.config.names import check_name
from plumbline.config.recipes import Preparation, Training
from plumbline.config.schema import Entry, ManipulationEntry, Study
from plumbline.config.variants import Manipulated
from plumbline.errors import PlumblineError, nearest
from plumbline.registry import Declaration, Kind, Registry

# The registered model that a checkpoint alone stands for.
PRETRAINED = "pretrained"


@dataclass(frozen=True)
class Derived:
    """A model and the one that it reads: of that model, the seed `base_seed`, which `base_block` holds.

    `adversary` is the config's name of it, empty for a model with another's attention; `datasets` are those it may
    learn.
    """

    name: str
    base: str
    base_seed: int
    base_block: str
    objective: str
    strength: float | None
    adversary: str
    seeds: list[str]
    datasets: list[str]


class Resolved:
    """A study with every name looked up, every option typed and every recipe merged."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.registry = Registry(study.plugins)
        self.declarations: dict[tuple[Kind, str], Declaration] = {}
        self.options: dict[tuple[Kind, str], dict[str, Any]] = {}
        self.preparations: dict[str, Preparation] = {}
        self.trainings: dict[tuple[str, str], Training] = {}
        self.model_options: dict[tuple[str, str], dict[str, Any]] = {}
        kinds: list[tuple[Kind, dict[str, Any]]] = [
            ("dataset", study.datasets),
            ("model", study.models),
            ("measure", study.measures),
            ("protocol", study.protocols),
        ]
        for kind, entries in kinds:
            for name, entry in entries.items():
                where = f"{kind}s.{name}"
                check_name(name, where)
                declaration = self.declared(kind, name, entry, where)
                self.declarations[kind, name] = declaration
                own = [key for key in type(entry).model_fields if key != "options"]
                self.options[kind, name] = checked_options(declaration, entry.options, where, own)
                if kind == "dataset":
                    recipes = [declaration.preparation, entry.preparation]
                    self.preparations[name] = merged(Preparation, recipes, f"{where}.preparation")
                for key, known in (("measures", study.measures), ("datasets", study.datasets)):
                    for word in getattr(entry, key, None) or []:
                        if word not in known:
                            raise PlumblineError(f"`{where}.{key}` names '{word}'; {nearest(word, known)}")
        # Filled by `resolve`: variants of manipulations, and models that read another.
        self.manipulated: dict[str, Manipulated] = {}
        self.derived: dict[str, Derived] = {}

    def words_put(self, dataset: str) -> list[str]:
        """The words that manipulations may put into the texts of a dataset, each once."""
        found = [
            word
            for variant in self.manipulated.values()
            if dataset in variant.datasets
            for word in put_words(self.declarations["manipulation", variant.name], variant.options)
        ]
        return sorted(set(found))

    def declared(self, kind: Kind, name: str, entry: Entry | ManipulationEntry, where: str) -> Declaration:
        """The declaration behind an entry of the study."""
        try:
            return self.registry.get(kind, kind_of(kind, name, entry, self.registry.names(kind)))
        except PlumblineError as error:
            key = f"{where}.kind" if entry.kind else where
            raise PlumblineError(f"`{key}`: {error}") from None


def kind_of(kind: str, name: str, entry: Any, known: Iterable[str]) -> str:
    """The registered name behind an entry: what it says, or a pretrained model where it names just a checkpoint."""
    if kind == "model" and not entry.kind and name not in known and "checkpoint" in entry.options:
        return PRETRAINED
    return str(entry.kind or name)


def put_words(declaration: Declaration, options: Mapping[str, Any]) -> list[str]:
    """The words that a manipulation may put into texts, so that vocabularies have them."""
    return [*declaration.words, *options.get("tokens", [])]


def checked_options(
    declaration: Declaration, options: Mapping[str, Any], where: str, own: Sequence[str]
) -> dict[str, Any]:
    """Options typed, with the defaults of those that are not set; `own` are the other keys of the entry."""
    fields: dict[str, Any] = {name: (option.type, option.default) for name, option in declaration.options.items()}
    try:
        typed = create_model(declaration.name, __config__=ConfigDict(extra="forbid"), **fields)(**options)
    except ValidationError as error:
        raise PlumblineError(validation_message(error, where, [*fields, *own])) from None
    for name in getattr(declaration, "required", ()):
        if options.get(name) in (None, ""):
            raise PlumblineError(f"`{where}.{name}` is missing; {declaration.kind} '{declaration.name}' needs it.")
    for name, (least, most) in declaration.limits.items():
        value = getattr(typed, name)
        if (least is not None and value < least) or (most is not None and value > most):
            wanted = f"{least:g} or more" if most is None else f"from {least:g} to {most:g}"
            raise PlumblineError(f"`{where}.{name}` is {value:g}; it must be {wanted}.")
    return {name: getattr(typed, name) for name in sorted(fields)}


def merged(recipe: type[BaseModel], layers: Iterable[dict[str, Any]], where: str) -> Any:
    """A recipe from layers of values, of which later ones win."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            nested = isinstance(value, dict) and isinstance(merged.get(name), dict)
            merged[name] = {**merged[name], **value} if nested else value
    try:
        return recipe(**merged)
    except ValidationError as error:
        raise PlumblineError(validation_message(error, where, recipe)) from None
