"""What a study is: the one source of truth for config files, their schema and the reference page."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from plumbline.config.recipes import Recipe
from plumbline.config.seeds import blocks_of, check_distinct

Split = Literal["train", "dev", "test"]
Unit = Literal["relative", "absolute"]
# What file systems allow.
LONGEST_FILE = 255
# λ of Wiegreffe & Pinter's objective. KL is a sum over words without bound, so that small ones tell them apart.
STRENGTHS = [0.0, 1e-4, 2e-4, 5e-4, 8e-4, 1e-3, 1e-2, 1e-1]


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


class RoarEntry(Recipe):
    """Mask the words that a measure calls important, train anew, and see what that costs."""

    strategies: list[Literal["roar", "recursive"]] = Field(
        ["recursive"],
        min_length=1,
        description="`roar` masks by the importances of the unmasked model, `recursive` by those of the model that was "
        "trained one level below.",
    )
    levels: list[int] | None = Field(
        None,
        description="How much is masked: percent of a text's words, by default 10 to 90 in steps of 10, or numbers of "
        "words, by default 1 to 10. Everything masked, which all measures share, is always among them.",
    )
    measures: list[str] | None = Field(
        None, min_length=1, description="The measures that mask; by default all of the study that a model can have."
    )
    models: list[str] | None = Field(
        None, min_length=1, description="The models that are trained anew; by default all."
    )
    datasets: list[str] | None = Field(
        None, min_length=1, description="The datasets whose words are masked; by default all of a model."
    )
    target: Literal["gold", "predicted"] = Field(
        "gold", description="The class that measures explain here, whatever they explain elsewhere."
    )
    leakage: bool = Field(
        False,
        description="Whether models are also trained on which words are masked and nothing else: above chance, the "
        "masks alone give the class away.",
    )

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        levels = self.levels or []
        if any(level < 1 for level in levels) or levels != sorted(set(levels)):
            raise ValueError("`levels` must be whole numbers of 1 or more that rise")
        for key in ("strategies", "measures", "models", "datasets"):
            named = getattr(self, key) or []
            if len(set(named)) < len(named):
                raise ValueError(f"`{key}` must name each once")
        return self


class ManipulationEntry(BaseModel):
    """A modification with a known truth. An option is a value, `{between: [a, b]}` (drawn) or `{levels: [...]}` (each).

    Variants are named by the entry, the number of the draw, the level and `r`, as far as there are several.
    """

    model_config = ConfigDict(extra="allow")
    kind: str = Field("", description="The registered manipulation; by default the entry's own name.")
    datasets: list[str] | None = Field(
        None, min_length=1, description="Only these datasets; by default all that it can change."
    )
    r: float | list[float] = Field(
        0.5,
        description="The probability that an instance keeps its label, else it gets any other; a list makes a variant "
        "of each. With two classes and 0.5 labels say nothing but what the manipulation says.",
    )
    matrix: list[list[float]] | None = Field(
        None,
        description="In place of `r`, the probability that each class (row) becomes each class (column).",
    )
    classes: list[list[str]] | None = Field(
        None,
        min_length=1,
        description="Sets of classes, such as pairs; the instances of one are all that a draw keeps, and draws take "
        "them in turn. By default all classes.",
    )
    draws: int = Field(
        1, ge=1, le=10_000, description="So many variants of each kind, with parameters and labels of their own."
    )
    seed: int = Field(0, ge=0, description="Seed of labels, parameters and all else that is drawn.")

    @field_validator("r")
    @classmethod
    def _probability(cls, value: float | list[float]) -> float | list[float]:
        several = value if isinstance(value, list) else [value]
        if not several or min(several) < 0 or max(several) > 1 or len(set(several)) < len(several):
            raise ValueError("must be a probability, or a list of them, each once")
        return value

    @field_validator("matrix")
    @classmethod
    def _stochastic(cls, value: list[list[float]] | None) -> list[list[float]] | None:
        for row in value or []:
            if len(row) != len(value or []) or min(row) < 0 or abs(sum(row) - 1) > 1e-6:
                raise ValueError("must be square, of rows of probabilities that sum to 1")
        return value

    @property
    def options(self) -> dict[str, Any]:
        """The options set on the manipulation."""
        return dict(self.model_extra or {})


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
