"""A study with its registered objects, typed options and merged recipes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from plumbline.config.entries import Entry
from plumbline.config.messages import validation_message
from plumbline.config.names import check_name
from plumbline.config.recipes import Preparation, Training
from plumbline.config.schema import Study
from plumbline.config.seeds import parse_seeds
from plumbline.config.variants import Manipulated
from plumbline.errors import PlumblineError, nearest
from plumbline.registry import Declaration, Kind, Registry
from plumbline.registry.meanings import option_meanings

# The registered model of an entry that names only a checkpoint.
PRETRAINED = "pretrained"


@dataclass(frozen=True)
class Derived:
    """A model whose training reads the seed `base_seed`, in the configured block `base_block`, of the model `base`.

    `adversary` is the config's name of an adversary, empty for a model with another's attention.
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
    """A study with its registered objects, typed options and merged recipes."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.registry = Registry(study.plugins)
        self.declarations: dict[tuple[Kind, str], Declaration] = {}
        self.options: dict[tuple[Kind, str], dict[str, Any]] = {}
        self.preparations: dict[str, Preparation] = {}
        self.trainings: dict[tuple[str, str], Training] = {}
        self.model_options: dict[tuple[str, str], dict[str, Any]] = {}
        kinds: tuple[Kind, ...] = ("dataset", "model", "measure", "protocol")
        for kind in kinds:
            for name, entry in getattr(study, f"{kind}s").items():
                where = f"{kind}s.{name}"
                check_name(name, where)
                declaration = self.declared(kind, name, entry, where)
                self.declarations[kind, name] = declaration
                self.options[kind, name] = check_options(declaration, entry.options, where, type(entry).model_fields)
                if kind == "dataset":
                    recipes = [declaration.preparation, entry.preparation]
                    self.preparations[name] = merge_recipe(Preparation, recipes, f"{where}.preparation")
                check_listed(entry, where, measures=study.measures, datasets=study.datasets)
        # Filled by `resolve`: variants of manipulations, and models whose training reads another model.
        self.manipulated: dict[str, Manipulated] = {}
        self.derived: dict[str, Derived] = {}

    def base_of(self, measure: str) -> str:
        """The measure that another one, such as a degraded one, reads; the measure itself if it reads none."""
        base = self.options["measure", measure].get("of")
        return base if base in self.study.measures else measure

    def base_block(self, model: str, dataset: str) -> str:
        """The seed block, on a dataset, of the seed that a derived model reads."""
        derived = self.derived[model]
        blocks = self.study.cut(dataset, [derived.base_block])
        return next(block for block in blocks if derived.base_seed in parse_seeds(block))

    def inserted_words(self, dataset: str) -> list[str]:
        """The distinct words that manipulations may insert into the texts of a dataset; vocabularies include them."""
        variants = [variant for variant in self.manipulated.values() if dataset in variant.datasets]
        declared = [word for variant in variants for word in self.declarations["manipulation", variant.name].words]
        return sorted({*declared, *(word for variant in variants for word in variant.options.get("tokens", []))})

    def declared(self, kind: Kind, name: str, entry: Entry, where: str) -> Declaration:
        """The declaration of an entry's registered object."""
        checkpoint = kind == "model" and "checkpoint" in entry.options and name not in self.registry.names(kind)
        try:
            return self.registry.get(kind, entry.kind or (PRETRAINED if checkpoint else name))
        except PlumblineError as error:
            key = f"{where}.kind" if entry.kind else where
            raise PlumblineError(f"`{key}`: {error}") from None


def check_listed(entry: Any, where: str, **known: Iterable[str]) -> None:
    """Refuse names in an entry's lists, such as `datasets`, that are not among the known ones."""
    for key, names in known.items():
        for name in getattr(entry, key, None) or []:
            if name not in names:
                raise PlumblineError(
                    f"`{where}.{key}` names '{name}', which is not defined in the study; {nearest(name, names)}"
                )


def check_options(
    declaration: Declaration, options: Mapping[str, Any], where: str, entry_keys: Iterable[str]
) -> dict[str, Any]:
    """Typed options, with defaults for those that are not set; `entry_keys` are the other keys of the entry."""
    fields: dict[str, Any] = {name: (option.type, option.default) for name, option in declaration.options.items()}
    try:
        typed = create_model(declaration.name, __config__=ConfigDict(extra="forbid"), **fields)(**options)
    except ValidationError as error:
        meaning = _meaning(declaration, str(error.errors()[0]["loc"][0]))
        raise PlumblineError(validation_message(error, where, [*fields, *entry_keys]) + meaning) from None
    for name in getattr(declaration, "required", ()):
        if options.get(name) in (None, ""):
            fault = f"`{where}.{name}` is missing; {declaration.kind} '{declaration.name}' needs it."
            raise PlumblineError(fault + _meaning(declaration, name))
    for name, (least, most) in declaration.limits.items():
        value = getattr(typed, name)
        if (least is not None and value < least) or (most is not None and value > most):
            allowed = f"{least:g} or more" if most is None else f"from {least:g} to {most:g}"
            fault = f"`{where}.{name}` is {value:g}; it must be {allowed}."
            raise PlumblineError(fault + _meaning(declaration, name))
    return {name: getattr(typed, name) for name in sorted(fields)}


def _meaning(declaration: Declaration, option: str) -> str:
    """The end of an error message about the value of an option: its meaning, if the declaration has one."""
    meaning = option_meanings(declaration).get(option)
    return f" `{option}`: {meaning}" if meaning else ""


def merge_recipe(recipe: type[BaseModel], layers: Iterable[dict[str, Any]], where: str) -> Any:
    """A recipe from layers of values; later layers take precedence."""
    values: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            nested = isinstance(value, dict) and isinstance(values.get(name), dict)
            values[name] = {**values[name], **value} if nested else value
    try:
        return recipe(**values)
    except ValidationError as error:
        raise PlumblineError(validation_message(error, where, recipe)) from None
