"""The schema of a study: the one source of config validation, the JSON schema and the reference page."""

from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator

from plumbline.config.entries import (
    AdversaryEntry,
    DatasetEntry,
    ManipulationEntry,
    MeasureEntry,
    ModelEntry,
    ProtocolEntry,
    RoarEntry,
    Seeded,
)
from plumbline.config.recipes import Recipe
from plumbline.config.seeds import cut_block

Split = Literal["train", "dev", "test"]
Unit = Literal["relative", "absolute"]
# The longest file name that file systems allow, in bytes.
LONGEST_FILE = 255
# The registered name of degraded measures.
DEGRADED = "degraded"


class JobSize(Recipe):
    """The size of the jobs of a dataset, and their time."""

    seeds: int | None = Field(
        None,
        ge=1,
        description="The most seeds that one job trains or explains; larger blocks are cut into equal ones. By default "
        "a job has a whole block. Protocols that compare the seeds of a block need it whole.",
    )
    attribution_parts: int = Field(
        1,
        ge=1,
        description="The number of jobs over which the instances of each costly measure are split; cheap measures, "
        "imported ones and those that need all instances have one job.",
    )
    time_factor: float = Field(
        1.0, ge=1, description="Factor on the time that jobs request from a cluster, for those that cannot be cut."
    )


class Compute(Recipe):
    """Batch sizes, job sizes, disk use and GPU sharing; results do not depend on them."""

    token_budget: int | Literal["auto"] = Field(
        "auto",
        description="The most tokens, including padding, in one forward pass; limits memory. `auto` derives it from "
        "the free memory when a job starts.",
    )
    keep_retrained: bool = Field(
        True,
        description="Whether to keep the weights and importances of models that `roar` retrains. Otherwise they are "
        "deleted once no job needs them, which saves much disk; a level added later then retrains the previous one.",
    )
    keep_variants: bool = Field(
        True,
        description="Whether to keep the texts and images of manipulated variants. Otherwise they are deleted once no "
        "job needs them and regenerated when one does; 300 variants of images of 224 x 224 take about 60 GB.",
    )
    slots_per_gpu: int = Field(
        1, ge=1, description="Jobs that may share a GPU. With 4 and one GPU, set `--resources gpu=4`."
    )
    jobs: dict[str, JobSize] = Field(
        {},
        description="Smaller jobs, by dataset; `plumbline plan --cut` prints those that fit into their time. Set it "
        "before the first run: what it cuts is computed again.",
    )

    @field_validator("token_budget", mode="before")
    @classmethod
    def _tokens(cls, value: Any) -> Any:
        if value != "auto" and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ValueError("it must be 'auto' or a whole number of tokens, 1 or more")
        return value

    def job(self, dataset: str) -> JobSize:
        """The size of the jobs of a dataset."""
        return self.jobs.get(dataset) or JobSize()


class Report(Recipe):
    """What the report shows."""

    examples: int | Literal["all"] = Field(
        200,
        description="Instances per dataset and variant in the explorer, balanced over classes and over correct and "
        "wrong predictions, or `all` explained instances; with 0 the explorer is empty and reads none.",
    )

    @field_validator("examples")
    @classmethod
    def _count(cls, value: Any) -> Any:
        if value != "all" and value < 0:
            raise ValueError("it must be 'all' or a whole number, 0 or more")
        return value


class Study(Seeded):
    """A whole study; the default study and the published ones use the same keys."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field("study", min_length=1, description="The title of the tables and the report.")
    raw: str = Field(
        "raw",
        description="Folder of the publishers' files, in the working folder, next to this file or in the project; the "
        "environment variable PLUMBLINE_DATA overrides it.",
    )
    plugins: list[str] = Field(
        [], description="Your own Python files with datasets, models, measures or protocols; relative to this file."
    )
    datasets: dict[str, DatasetEntry] = Field(description="The datasets, by name, with options and `preparation`.")
    manipulations: dict[str, ManipulationEntry] = Field(
        {},
        description="Manipulations with known ground truth, by name, with options; each makes variants of the datasets "
        "that models are trained on in addition to the plain ones.",
    )
    models: dict[str, ModelEntry] = Field(description="The models, by name, with options and `training`.")
    seeds: list[str] = Field(
        ["0"],
        min_length=1,
        description="Blocks of seeds, such as `0-4` or `10,50,257`; one job trains all seeds of a block.",
    )
    adversaries: dict[str, AdversaryEntry] = Field(
        {}, description="Adversaries of the models, by name: the same output with different attention."
    )
    roar: dict[Unit, RoarEntry] = Field(
        {},
        description="ROAR and Recursive ROAR: words masked by importance and models retrained, with `relative` levels "
        "(percent of a text), `absolute` levels (numbers of words) or both.",
    )
    measures: dict[str, MeasureEntry] = Field(description="The importance measures, by name, with options.")
    explain: list[Split] = Field(
        ["test"],
        description="The splits whose instances are explained; empty if only `roar` explains, which uses every split.",
    )
    sample: int | None = Field(
        None,
        ge=1,
        description="Explain this many instances of each split, sampled per seed; by default all. Protocols that read "
        "importances, including `erasure`, score these. `roar` is not sampled, nor are `permutation`, "
        "`adversarial_attention` and `seed_variance`, which only query the model.",
    )
    least_above_chance: float | None = Field(
        0.2,
        le=1,
        description="A model whose test accuracy is not, at 95 % confidence, above this share of the way from chance "
        "to 1 has the status `at chance` and is excluded from means, the scorecard and the report's sentences; `null` "
        "excludes none, and the end of a run then counts those that are not surely above chance.",
    )
    protocols: dict[str, ProtocolEntry] = Field(
        {}, description="The protocols that score explanations, by name, with options."
    )
    compute: Compute = Field(
        default_factory=lambda: Compute(),
        description="Batch sizes, job sizes, disk use and GPU sharing; no effect on results.",
    )
    report: Report = Field(default_factory=lambda: Report(), description="What the report shows.")

    def blocks(self, model: str) -> list[str]:
        """The seed blocks of a model, as configured."""
        return self.models[model].seeds or self.seeds

    def cut(self, dataset: str, blocks: list[str]) -> list[str]:
        """Seed blocks, cut into those of the jobs of a dataset."""
        most = self.compute.job(dataset).seeds
        return [part for block in blocks for part in cut_block(block, most)]

    @property
    def degraded(self) -> dict[str, MeasureEntry]:
        """The degraded measures."""
        return {name: entry for name, entry in self.measures.items() if (entry.kind or name) == DEGRADED}

    @field_validator("compute", "report", mode="before")
    @classmethod
    def _empty_section(cls, value: Any) -> Any:
        return {} if value is None else value

    @field_validator(
        "datasets", "manipulations", "models", "adversaries", "roar", "measures", "protocols", mode="before"
    )
    @classmethod
    def _as_entries(cls, value: Any) -> Any:
        """Names without options, as a list or with empty values, take the defaults."""
        if value is None:
            return {}
        if isinstance(value, str):
            raise ValueError(f"it must be a list of names, such as [{value}], or options by name")
        if isinstance(value, list):
            for name in value:
                if not isinstance(name, str):
                    raise ValueError(
                        f"a list may contain only names, and {name!r} is not a name; write `name: {{...}}` without "
                        "dashes"
                    )
            value = {name: {} for name in value}
        return {name: entry or {} for name, entry in value.items()} if isinstance(value, dict) else value

    @field_validator("datasets", "models")
    @classmethod
    def _not_empty(cls, entries: dict[str, Any]) -> dict[str, Any]:
        if not entries:
            raise ValueError("a study needs at least one entry")
        return entries

    @field_validator("raw")
    @classmethod
    def _folder_name(cls, value: str) -> str:
        if max(len(part.encode()) for part in value.split("/")) > LONGEST_FILE:
            raise ValueError(f"a folder name may have at most {LONGEST_FILE} bytes")
        return value
