"""What a study is: the one source of truth for config files, their schema and the reference page."""

import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, field_validator

from plumbline.config.derived import STRENGTHS, Derived, derive
from plumbline.config.external import check_brought, check_epochs, kind_of
from plumbline.config.manipulations import Manipulated, ManipulationEntry, check_variants, expand, fitting, put_words
from plumbline.config.masking import PLAIN, RoarEntry, Unit, check_roar
from plumbline.config.names import check_name
from plumbline.config.recipes import OBJECTIVE_TRAINING, PAIRED_TRAINING, Preparation, Recipe, Training
from plumbline.errors import PlumblineError, nearest
from plumbline.registry import PAIRED, Declaration, Kind, Registry, holds

Split = Literal["train", "dev", "test"]
# What file systems allow.
LONGEST_FILE = 255


class Entry(BaseModel):
    """A named object of a study. `kind` is the registered name behind it, by default the same name."""

    model_config = ConfigDict(extra="allow")
    kind: str = Field("", description="The registered object; by default the entry's own name.")

    @property
    def options(self) -> dict[str, Any]:
        """The options set on the object."""
        return dict(self.model_extra or {})


class OwnSeeds(BaseModel):
    """What may have blocks of seeds of its own."""

    @field_validator("seeds", mode="before", check_fields=False)
    @classmethod
    def _blocks(cls, value: Any) -> Any:
        return value if value is None else blocks_of(value)

    @field_validator("seeds", check_fields=False)
    @classmethod
    def _distinct(cls, blocks: list[str] | None) -> list[str] | None:
        return blocks and check_distinct(blocks)


class DatasetEntry(Entry):
    """A dataset: its options and what to change in its preparation."""

    preparation: dict[str, Any] = Field({}, description="Overrides of the dataset's preparation recipe.")
    training: dict[str, Any] = Field(
        {}, description="Overrides of the training of every model on this dataset; they win over the model's own."
    )
    variants: list[str] | None = Field(
        None,
        min_length=1,
        description="Only these variants: `plain`, or names of manipulations; by default all that there are.",
    )


class ModelEntry(OwnSeeds, Entry):
    """A model: its options and what to change in its training."""

    training: dict[str, Any] = Field({}, description="Overrides of the model's training recipe.")
    measures: list[str] | None = Field(
        None, description="Only these measures explain this model; by default all it can have."
    )
    datasets: list[str] | None = Field(
        None, description="Only these datasets train this model; by default all it can read."
    )
    variants: list[str] | None = Field(
        None,
        min_length=1,
        description="Only these variants: `plain`, or names of manipulations; by default all of its datasets.",
    )
    seeds: list[str] | None = Field(
        None, min_length=1, description="Blocks of seeds of this model; by default the study's."
    )
    attention_of: str = Field(
        "",
        description="A model, or an adversary such as `bilstm-tanh.attefa`, whose attention takes the place of this "
        "model's own, in training and after (Wiegreffe & Pinter's pre-loaded attention).",
    )


class MeasureEntry(Entry):
    """An importance measure and its options."""


class ProtocolEntry(Entry):
    """A way to score, and its options."""

    datasets: list[str] | None = Field(
        None, min_length=1, description="Only models of these datasets are scored; by default all that can be."
    )


class AdversaryEntry(OwnSeeds, Recipe):
    """Models like a base model, trained anew to say what it says with attention that differs from its."""

    objective: str = Field(
        "", description="`attefa` or `wiegreffe-pinter`; by default the entry's own name. docs/adversaries.md has both."
    )
    of: list[str] | None = Field(None, min_length=1, description="The base models; by default all that have attention.")
    datasets: list[str] | None = Field(
        None, min_length=1, description="Only on these datasets; by default on all of the base model."
    )
    base_seed: int | None = Field(
        None, ge=0, description="The seed of the base model; by default the study's first one."
    )
    seeds: list[str] | None = Field(
        None, min_length=1, description="Blocks of seeds of the adversaries; by default the study's."
    )
    strength: list[float] | None = Field(
        None,
        min_length=1,
        description="The strengths λ of `wiegreffe-pinter`, an adversary for each; by default "
        f"{', '.join(f'{strength:g}' for strength in STRENGTHS)}. `attefa` has none.",
    )
    training: dict[str, Any] = Field(
        {}, description="Overrides of the adversary's training, which else is its base model's with 80 epochs at most."
    )

    @field_validator("strength")
    @classmethod
    def _strengths(cls, value: list[float] | None) -> list[float] | None:
        if value and (min(value) < 0 or len(set(value)) < len(value)):
            raise ValueError("must hold numbers of 0 or more, each once")
        return value


class Compute(Recipe):
    """How work is cut. Results do not depend on it."""

    token_budget: int | Literal["auto"] = Field(
        "auto",
        description="Tokens, padding included, that one forward pass may hold; bounds the memory. `auto` is chosen "
        "from the free memory when a job starts.",
    )
    keep_retrained: bool = Field(
        True,
        description="Whether the weights and importances of models that `roar` trains anew stay. Without, they go once "
        "nothing needs them, which takes far less disk; a level that is added later then trains the one below again.",
    )
    keep_variants: bool = Field(
        True,
        description="Whether the texts and pictures of manipulated variants stay. Without, they go once nothing needs "
        "them and are made again if something does; 300 variants of pictures of 224 x 224 take some 60 GB.",
    )
    slots_per_gpu: int = Field(
        1, ge=1, description="Jobs that may share a GPU. With 4 and one GPU, ask for `--resources gpu=4`."
    )

    @field_validator("token_budget", mode="before")
    @classmethod
    def _tokens(cls, value: Any) -> Any:
        if value != "auto" and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ValueError("must be 'auto' or a whole number of tokens, 1 or more")
        return value


class Report(Recipe):
    """What the report shows."""

    examples: int | Literal["all"] = Field(
        200,
        description="Instances per dataset and variant in the explorer, right and wrong ones of each class in turn, or "
        "`all` that are explained.",
    )

    @field_validator("examples")
    @classmethod
    def _count(cls, value: Any) -> Any:
        if value != "all" and value < 0:
            raise ValueError("must be 'all' or a whole number, 0 or more")
        return value


class Study(BaseModel):
    """A whole study. The same keys serve the default study and every published one."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field("study", min_length=1, description="The title of tables and report.")
    raw: str = Field(
        "raw",
        description="Folder of the publishers' files, in the working folder, beside this file or in the project; the "
        "variable PLUMBLINE_DATA, if set, takes its place.",
    )
    plugins: list[str] = Field(
        [], description="Your own Python files with datasets, models, measures or protocols; relative to this file."
    )
    datasets: dict[str, DatasetEntry] = Field(description="The datasets, by name, with options and `preparation`.")
    manipulations: dict[str, ManipulationEntry] = Field(
        {},
        description="Modifications of the datasets with a known truth, by name, with options; each makes variants that "
        "models are trained on beside the plain dataset.",
    )
    models: dict[str, ModelEntry] = Field(description="The models, by name, with options and `training`.")
    seeds: list[str] = Field(
        ["0"], min_length=1, description="Blocks of seeds, such as `0-4` or `10,50,257`; a block trains in one job."
    )
    adversaries: dict[str, AdversaryEntry] = Field(
        {}, description="Adversaries of the models, by name: the same output from other attention."
    )
    roar: dict[Unit, RoarEntry] = Field(
        {},
        description="ROAR and Recursive ROAR: words masked by importance and models trained anew, with `relative` "
        "levels (percent of a text), `absolute` ones (numbers of words) or both.",
    )
    measures: dict[str, MeasureEntry] = Field(description="The importance measures, by name, with options.")
    explain: list[Split] = Field(
        ["test"],
        description="The splits whose instances are explained; none if only `roar` explains, which takes every split.",
    )
    sample: int | None = Field(
        None,
        ge=1,
        description="Explain so many instances of each split, drawn anew by each seed; by default all. Protocols "
        "that read importances, `erasure` too, score these; what `roar` masks by is not sampled, nor are "
        "`permutation`, `adversarial_attention` and `seed_variance`, which ask the models alone.",
    )
    least_above_chance: float | None = Field(
        0.2,
        le=1,
        description="Models that surely cover less of the way from guessing to always right on the test split are left "
        "out of means, the scorecard and the report's sentences, with the status `at chance`; `null` leaves none out.",
    )
    protocols: dict[str, ProtocolEntry] = Field({}, description="The ways to score, by name, with options.")
    compute: Compute = Field(
        default_factory=lambda: Compute(), description="How work is cut; results do not depend on it."
    )
    report: Report = Field(default_factory=lambda: Report(), description="What the report shows.")

    def blocks(self, model: str) -> list[str]:
        """The blocks of seeds of a model."""
        return self.models[model].seeds or self.seeds

    @field_validator("compute", "report", mode="before")
    @classmethod
    def _nothing_set(cls, value: Any) -> Any:
        return {} if value is None else value

    @field_validator(
        "datasets", "manipulations", "models", "adversaries", "roar", "measures", "protocols", mode="before"
    )
    @classmethod
    def _names_alone(cls, value: Any) -> Any:
        """A list of names, or a name with nothing behind it, means the defaults; so does a section that is empty."""
        if value is None:
            return {}
        if isinstance(value, list):
            for name in value:
                if not isinstance(name, str):
                    raise ValueError(
                        f"a list holds names alone, and {name!r} is none; write `name: {{...}}` without dashes"
                    )
            value = {name: {} for name in value}
        return {name: entry or {} for name, entry in value.items()} if isinstance(value, dict) else value

    @field_validator("seeds", mode="before")
    @classmethod
    def _blocks(cls, value: Any) -> Any:
        return blocks_of(value)

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, blocks: list[str]) -> list[str]:
        return check_distinct(blocks)

    @field_validator("datasets", "models")
    @classmethod
    def _some(cls, entries: dict[str, Any]) -> dict[str, Any]:
        if not entries:
            raise ValueError("a study needs at least one")
        return entries

    @field_validator("raw")
    @classmethod
    def _a_folder(cls, value: str) -> str:
        if max(len(part.encode()) for part in value.split("/")) > LONGEST_FILE:
            raise ValueError(f"a folder's name may have {LONGEST_FILE} bytes at most")
        return value


def blocks_of(value: Any) -> list[str]:
    """Blocks of seeds, of which there may be one alone and which may be numbers."""
    return [str(block) for block in (value if isinstance(value, list) else [value])]


def check_distinct(blocks: list[str]) -> list[str]:
    """Blocks of seeds as they are; one that holds a seed for the second time is refused."""
    seen: set[int] = set()
    for block in blocks:
        for seed in parse_seeds(block):
            if seed in seen:
                raise ValueError(f"seed {seed} stands twice in {blocks}; name each seed once.")
            seen.add(seed)
    return blocks


# A block is a folder, and its seeds are trained in one job; random generators take no larger seeds.
LONGEST_BLOCK, MOST_SEEDS, LARGEST_SEED = 100, 10_000, 2**32 - 1


def parse_seeds(block: str) -> list[int]:
    """The seeds of a block: ``0-4`` is 0 to 4, ``10,50`` is 10 and 50."""
    if len(block) > LONGEST_BLOCK:
        raise ValueError(
            f"the block of seeds '{block[:20]}…' has {len(block)} characters, and its folder's name {LONGEST_BLOCK} at "
            "most; write '0-4' for seeds in a row, or make it several blocks."
        )
    seeds: list[int] = []
    for part in block.split(","):
        bounds = part.split("-")
        if len(bounds) > 2 or not all(bound.isascii() and bound.isdigit() for bound in bounds):
            raise ValueError(f"'{block}' is not a block of seeds; write '0-4' or '10,50,257'.")
        first, last = int(bounds[0]), int(bounds[-1])
        if last < first:
            raise ValueError(f"'{block}' is not a block of seeds; write '0-4' or '10,50,257'.")
        if last > LARGEST_SEED:
            raise ValueError(f"'{block}' holds the seed {last}; the largest is {LARGEST_SEED}.")
        if last - first >= MOST_SEEDS:
            raise ValueError(
                f"'{block}' holds {last - first + 1} seeds; a block may have {MOST_SEEDS}, so make it several."
            )
        seeds += range(first, last + 1)
    return seeds


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
                declaration = self._declared(kind, name, entry, where)
                self.declarations[kind, name] = declaration
                own = [key for key in type(entry).model_fields if key != "options"]
                self.options[kind, name] = _check_options(declaration, entry.options, where, own)
                if kind == "dataset":
                    recipes = [declaration.preparation, entry.preparation]
                    self.preparations[name] = _merged(Preparation, recipes, f"{where}.preparation")
                for key, known in (("measures", study.measures), ("datasets", study.datasets)):
                    for word in getattr(entry, key, None) or []:
                        if word not in known:
                            raise PlumblineError(f"`{where}.{key}` names '{word}'; {nearest(word, known)}")

        self.manipulated: dict[str, Manipulated] = {}
        for name, entry in study.manipulations.items():
            self._add_manipulation(name, entry)
        check_variants(study)
        for dataset in study.datasets:
            for model in study.models:
                self._fit(dataset, model)
        check_brought(self)
        for name in study.adversaries:
            check_name(name, f"adversaries.{name}")
        self.derived: dict[str, Derived] = {}
        for derived in derive(self):
            if derived.adversary:
                self._add_adversary(derived)
            self.derived[derived.name] = derived
        check_roar(self)

    def _add_manipulation(self, name: str, entry: ManipulationEntry) -> None:
        """The variants of a manipulation, each with its options typed."""
        where = f"manipulations.{name}"
        check_name(name, where)
        declaration = self._declared("manipulation", name, entry, where)
        self.declarations["manipulation", name] = declaration
        for variant in expand(name, entry, declaration, fitting(self, name, entry, declaration)):
            if variant.variant in (PLAIN, *self.manipulated):
                raise PlumblineError(f"`{where}`: a variant '{variant.variant}' is there twice; rename one.")
            typed = _check_options(declaration, variant.options, where, list(type(entry).model_fields))
            self.manipulated[variant.variant] = replace(variant, options=typed)

    def words_put(self, dataset: str) -> list[str]:
        """The words that manipulations may put into the texts of a dataset, each once."""
        found = [
            word
            for variant in self.manipulated.values()
            if dataset in variant.datasets
            for word in put_words(self.declarations["manipulation", variant.name], variant.options)
        ]
        return sorted(set(found))

    def _add_adversary(self, derived: Derived) -> None:
        """An adversary's object and options are its base model's; its training is, but for what its objective asks."""
        if derived.name in self.study.models or derived.name in self.derived:
            raise PlumblineError(f"`adversaries.{derived.adversary}`: '{derived.name}' is there twice; rename one.")
        kind: Kind = "model"
        self.declarations[kind, derived.name] = self.declarations[kind, derived.base]
        self.options[kind, derived.name] = self.options[kind, derived.base]
        own = self.study.adversaries[derived.adversary].training
        for dataset in self.study.datasets:
            usual = self.trainings[dataset, derived.base].model_dump()
            layers = [usual, OBJECTIVE_TRAINING[derived.objective], own]
            where = f"adversaries.{derived.adversary}.training"
            training = self.trainings[dataset, derived.name] = _merged(Training, layers, where)
            if training.select_by != "loss":
                raise PlumblineError(
                    f"`{where}.select_by` is '{training.select_by}'; an adversary chooses by its loss."
                )
            check_epochs(f"adversaries.{derived.adversary}", training.epochs, {})
            self.model_options[dataset, derived.name] = self.model_options[dataset, derived.base]

    def _fit(self, dataset: str, model: str) -> None:
        """The training and the options of a model on a dataset: what the two declare, then what the config sets."""
        data, of_data = self.declarations["dataset", dataset], self.study.datasets[dataset]
        net, of_net = self.declarations["model", model], self.study.models[model]
        usual: dict[str, Any] = dict(PAIRED_TRAINING) if data.task in PAIRED else {}
        of_task = data.training
        if net.reads == "pieces":
            # Fine-tuning has a recipe of its own, of which the task decides only how the epoch is chosen.
            usual = {key: value for key, value in usual.items() if key == "select_by"}
            of_task = data.pieces_training
        recipes = [usual, net.training, of_task, of_net.training]
        self.trainings[dataset, model] = _merged(Training, recipes, f"models.{model}.training")
        if of_data.training:
            recipes.append(of_data.training)
            self.trainings[dataset, model] = _merged(Training, recipes, f"datasets.{dataset}.training")
        options = dict(self.options["model", model])
        for key, value in data.model_options.items():
            name = key.rpartition(":")[2]
            if name in options and name not in of_net.options and holds(key, options):
                options[name] = value
        self.model_options[dataset, model] = options
        check_epochs(f"models.{model}", self.trainings[dataset, model].epochs, options)

    def _declared(self, kind: Kind, name: str, entry: Entry | ManipulationEntry, where: str) -> Declaration:
        try:
            return self.registry.get(kind, kind_of(kind, name, entry, self.registry.names(kind)))
        except PlumblineError as error:
            key = f"{where}.kind" if entry.kind else where
            raise PlumblineError(f"`{key}`: {error}") from None


def _check_options(
    declaration: Declaration, options: Mapping[str, Any], where: str, own: Sequence[str]
) -> dict[str, Any]:
    """Options typed, with the defaults of those that are not set; `own` are the other keys of the entry."""
    fields: dict[str, Any] = {name: (option.type, option.default) for name, option in declaration.options.items()}
    try:
        typed = create_model(declaration.name, __config__=ConfigDict(extra="forbid"), **fields)(**options)
    except ValidationError as error:
        raise PlumblineError(sentence(error, where, [*fields, *own])) from None
    for name in getattr(declaration, "required", ()):
        if options.get(name) in (None, ""):
            raise PlumblineError(f"`{where}.{name}` is missing; {declaration.kind} '{declaration.name}' needs it.")
    for name, (least, most) in declaration.limits.items():
        value = getattr(typed, name)
        if (least is not None and value < least) or (most is not None and value > most):
            wanted = f"{least:g} or more" if most is None else f"from {least:g} to {most:g}"
            raise PlumblineError(f"`{where}.{name}` is {value:g}; it must be {wanted}.")
    return {name: getattr(typed, name) for name in sorted(fields)}


def _merged(recipe: type[BaseModel], layers: Iterable[dict[str, Any]], where: str) -> Any:
    """A recipe from layers of values, of which later ones win."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            nested = isinstance(value, dict) and isinstance(merged.get(name), dict)
            merged[name] = {**merged[name], **value} if nested else value
    try:
        return recipe(**merged)
    except ValidationError as error:
        raise PlumblineError(sentence(error, where, recipe)) from None


def _known_keys(model: type[BaseModel], path: Iterable[Any]) -> list[str]:
    """The keys that could stand where an unknown one was found."""
    at: Any = model
    for part in path:
        if part not in getattr(at, "model_fields", {}):
            continue
        annotation = at.model_fields[part].annotation
        if get_origin(annotation) in (Union, types.UnionType):
            annotation = next(a for a in get_args(annotation) if a is not type(None))
        at = get_args(annotation)[1] if get_origin(annotation) is dict else annotation
    return list(at.model_fields) if isinstance(at, type) and issubclass(at, BaseModel) else []


WANTED = {
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_parsing", "float_type"), "a number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "keys and values"),
    "list_type": "a list",
    "string_type": "text",
}


def sentence(error: ValidationError, prefix: str, known: type[BaseModel] | list[str]) -> str:
    """The first fault of a validation as one sentence: the key, the value and what would be right."""
    fault = error.errors()[0]
    # pydantic adds the member of a union to the place.
    location = [str(part) for part in fault["loc"] if not str(part).startswith(("literal[", "constrained-", "[key]"))]
    if len(location) > 1 and location[-1] in ("int", "float", "str", "bool"):
        location = location[:-1]
    key = ".".join([prefix, *location] if prefix else location)
    value = fault["input"]
    if fault["type"] == "extra_forbidden":
        candidates = known if isinstance(known, list) else _known_keys(known, fault["loc"][:-1])
        return f"`{key}` (set to {value!r}) is not a key that is known here; {nearest(location[-1], candidates)}"
    if fault["type"] == "missing":
        return f"`{key}` is missing; the study needs it."
    if fault["type"] == "literal_error":
        expected = [word.strip(" '") for word in fault["ctx"]["expected"].replace(" or ", ", ").split(",")]
        hint = nearest(str(value), expected)
        return f"`{key}` is {value!r}; {hint}" + ("" if "known are" in hint else f" Known are: {', '.join(expected)}.")
    if fault["type"] in WANTED:
        return f"`{key}` is {value!r}: it must be {WANTED[fault['type']]}."
    message = fault["msg"].removeprefix("Value error, ")
    return f"`{key}` is {value!r}: {message[0].lower() + message[1:].rstrip('.')}."


def resolve(config: dict[str, Any]) -> Resolved:
    """Check a config whole, before any work; the first fault is raised as one sentence."""
    try:
        study = Study(**config)
    except ValidationError as error:
        raise PlumblineError(sentence(error, "", Study)) from None
    return Resolved(study)


def read_config(path: Path) -> dict[str, Any]:
    """A config file as plain values."""
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PlumblineError(f"There is no config file '{path}'.") from error
    except IsADirectoryError as error:
        raise PlumblineError(f"'{path}' is a folder; name a config file.") from error
    except OSError as error:
        raise PlumblineError(f"The config file '{path}' cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise PlumblineError(f"'{path}' is no config file: it is not UTF-8 text.") from error
    except yaml.MarkedYAMLError as error:
        where = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise PlumblineError(f"'{path}'{where} is not valid YAML: {error.problem}.") from error
    # Signs that YAML forbids, and values such as a date that there is not.
    except (yaml.YAMLError, ValueError) as error:
        raise PlumblineError(f"'{path}' is not valid YAML: {str(error).splitlines()[0]}.") from error
    if not isinstance(config, dict):
        raise PlumblineError(f"'{path}' must hold keys and values, as config.yaml does.")
    return config
