"""The entries of a study: its datasets, models, adversaries, ROAR curves, measures, manipulations and protocols."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from plumbline.config.recipes import Recipe
from plumbline.config.seeds import check_distinct, list_blocks

# λ of Wiegreffe & Pinter's objective. KL is an unbounded sum over words, so the interesting values are small.
STRENGTHS = [0.0, 1e-4, 2e-4, 5e-4, 8e-4, 1e-3, 1e-2, 1e-1]


class Entry(BaseModel):
    """A named object of a study and its options."""

    model_config = ConfigDict(extra="allow")
    kind: str = Field("", description="The registered name of the object; by default the entry's own name.")

    @property
    def options(self) -> dict[str, Any]:
        """The options that the config sets on the object."""
        return dict(self.model_extra or {})


class Seeded(BaseModel):
    """A section with the key `seeds`."""

    @field_validator("seeds", mode="before", check_fields=False)
    @classmethod
    def _as_blocks(cls, value: Any) -> Any:
        return value if value is None else list_blocks(value)

    @field_validator("seeds", check_fields=False)
    @classmethod
    def _distinct(cls, blocks: list[str] | None) -> list[str] | None:
        return blocks and check_distinct(blocks)


class DatasetEntry(Entry):
    """A dataset, its options and overrides of its preparation and of the training on it."""

    preparation: dict[str, Any] = Field({}, description="Overrides of the dataset's preparation recipe.")
    training: dict[str, Any] = Field(
        {},
        description="Overrides of the training of every model on this dataset; they take precedence over the model's.",
    )
    variants: list[str] | None = Field(
        None, min_length=1, description="Only these variants: `plain` or names of manipulations; by default all."
    )


class ModelEntry(Seeded, Entry):
    """A model, its options and overrides of its training."""

    training: dict[str, Any] = Field({}, description="Overrides of the model's training recipe.")
    measures: list[str] | None = Field(
        None, description="Only these measures explain this model; by default all that it supports."
    )
    datasets: list[str] | None = Field(
        None, description="Train this model on these datasets only; by default on all that it can read."
    )
    variants: list[str] | None = Field(
        None,
        min_length=1,
        description="Only these variants: `plain` or names of manipulations; by default all of its datasets.",
    )
    seeds: list[str] | None = Field(
        None, min_length=1, description="Blocks of seeds of this model; by default the study's."
    )
    attention_of: str = Field(
        "",
        description="A model, or an adversary such as `bilstm-tanh.attefa`, whose attention replaces this model's own "
        "in training and at inference (Wiegreffe & Pinter's pre-loaded attention).",
    )


class MeasureEntry(Entry):
    """An importance measure and its options."""


class ProtocolEntry(Entry):
    """A protocol that scores explanations, and its options."""

    datasets: list[str] | None = Field(
        None, min_length=1, description="Score models of these datasets only; by default of all that it can score."
    )


class AdversaryEntry(Seeded, Recipe):
    """Adversaries: copies of a base model, trained to reproduce its predictions with different attention."""

    objective: str = Field(
        "",
        description="`attefa` or `wiegreffe-pinter`; by default the entry's own name.",
    )
    of: list[str] | None = Field(None, min_length=1, description="The base models; by default all with attention.")
    datasets: list[str] | None = Field(
        None, min_length=1, description="Train on these datasets only; by default on all of the base model."
    )
    base_seed: int | None = Field(
        None, ge=0, description="The seed of the base model; by default the study's first seed."
    )
    seeds: list[str] | None = Field(
        None, min_length=1, description="Blocks of seeds of the adversaries; by default the study's."
    )
    strength: list[float] | None = Field(
        None,
        min_length=1,
        description="The strengths λ of `wiegreffe-pinter`, one adversary for each; by default "
        f"{', '.join(f'{strength:g}' for strength in STRENGTHS)}. Not used by `attefa`.",
    )
    training: dict[str, Any] = Field(
        {}, description="Overrides of the adversary's training; by default its base model's with at most 80 epochs."
    )

    @field_validator("strength")
    @classmethod
    def _strengths(cls, value: list[float] | None) -> list[float] | None:
        if value and (min(value) < 0 or len(set(value)) < len(value)):
            raise ValueError("it must contain different numbers, each 0 or more")
        return value


class RoarEntry(Recipe):
    """ROAR: mask the words that a measure ranks highest, retrain the model and measure the loss of performance."""

    strategies: list[Literal["roar", "recursive"]] = Field(
        ["recursive"],
        min_length=1,
        description="`roar` masks by the importances of the unmasked model, `recursive` by those of the model that was "
        "retrained at the previous level.",
    )
    levels: list[int] | None = Field(
        None,
        description="How much to mask: percentages of a text's words, by default 10 to 90 in steps of 10, or numbers "
        "of words, by default 1 to 10. All words masked, a level that all measures share, is always added.",
    )
    measures: list[str] | None = Field(
        None, min_length=1, description="The measures to mask by; by default all of the study that a model supports."
    )
    models: list[str] | None = Field(None, min_length=1, description="The models to retrain; by default all.")
    datasets: list[str] | None = Field(
        None,
        min_length=1,
        description="The datasets whose words are masked; by default all that a model is trained on.",
    )
    target: Literal["gold", "predicted"] = Field(
        "gold", description="The class that measures explain for masking, independent of their own option `target`."
    )
    leakage: bool = Field(
        False,
        description="Whether to also train models on the positions of masked words alone: if these exceed chance, the "
        "masks leak the class.",
    )

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        levels = self.levels or []
        if any(level < 1 for level in levels) or levels != sorted(set(levels)):
            raise ValueError("`levels` must be increasing whole numbers of 1 or more")
        for key in ("strategies", "measures", "models", "datasets"):
            named = getattr(self, key) or []
            if len(set(named)) < len(named):
                raise ValueError(f"`{key}` must not list a name twice")
        return self


class ManipulationEntry(Entry):
    """A manipulation with known ground truth; an option is a value, `{between: [a, b]}` (random) or `{levels: [...]}`.

    A variant's name is that of the entry, then the number of the draw, the level and `r` if there are several.
    """

    datasets: list[str] | None = Field(
        None, min_length=1, description="Manipulate these datasets only; by default all that it can."
    )
    r: float | list[float] = Field(
        0.5,
        description="The probability that an instance keeps its label rather than getting a random other one; a list "
        "makes one variant per value. With two classes and 0.5, only the manipulation predicts the label.",
    )
    matrix: list[list[float]] | None = Field(
        None, description="Instead of `r`, the probability that each class (row) becomes each class (column)."
    )
    classes: list[list[str]] | None = Field(
        None,
        min_length=1,
        description="Sets of classes, such as pairs; each draw keeps the instances of one set, and draws take the sets "
        "in turn. By default all classes.",
    )
    draws: int = Field(
        1, ge=1, le=10_000, description="The number of variants of each level, each with its own parameters and labels."
    )
    seed: int = Field(0, ge=0, description="Seed of labels, parameters and everything else that is random.")

    @field_validator("r")
    @classmethod
    def _probability(cls, value: float | list[float]) -> float | list[float]:
        values = value if isinstance(value, list) else [value]
        if not values or min(values) < 0 or max(values) > 1 or len(set(values)) < len(values):
            raise ValueError("it must be a probability or a list of distinct probabilities")
        return value

    @field_validator("matrix")
    @classmethod
    def _stochastic(cls, value: list[list[float]] | None) -> list[list[float]] | None:
        for row in value or []:
            if len(row) != len(value or []) or min(row) < 0 or abs(sum(row) - 1) > 1e-6:
                raise ValueError("it must be a square matrix whose rows are probabilities that sum to 1")
        return value
