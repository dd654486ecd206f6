"""The tables that the explorer is made from."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from plumbline.explorer.examples import Row
from plumbline.protocols.adversary.page import title


@dataclass(frozen=True)
class ShownAdversary:
    """An adversarial model: its title, the seed of the base model that it was set against, its own seed, and the tables
    of where it looks and what it predicted."""

    title: str
    base_seed: int
    seed: int
    attention: str
    predictions: str


@dataclass(frozen=True)
class SeedBlock:
    """The tables of a block of seeds of one model: what it predicted, the importances of each measure and, if the study
    has them, the adversaries of its attention, and where it looks itself beside adversarial models."""

    model: str
    predictions: str
    importances: dict[str, str] = field(default_factory=dict)
    adversaries: str | None = None
    attention: str | None = None
    rivals: Sequence[ShownAdversary] = ()


@dataclass(frozen=True)
class ShownVariant:
    """A variant of a dataset: its record, its table of instances, and that of each model with its own subwords;
    what its second texts are; its models' blocks, those of a model together; and of each model that was trained on
    masked texts the points of its curves, each with its table of masks."""

    dataset: str
    variant: str
    summary: Row
    instances: str
    blocks: Sequence[SeedBlock]
    subwords: dict[str, str] = field(default_factory=dict)
    masks: dict[str, list[tuple[Row, str]]] = field(default_factory=dict)
    pictures: bool = False
    second: str = "second text"


@dataclass(frozen=True)
class ExplorerOptions:
    """What is shown: so many instances, or all, of these splits, of which each seed explained so many, or all; whether
    special tokens are ranked too; and the name of the random measure."""

    count: int | Literal["all"]
    splits: Sequence[str]
    sampled: int | None = None
    specials: bool = False
    random: str = ""


def find_blocks(
    cells: list[dict[str, Any]],
    predictions: Sequence[str],
    importances: Sequence[str],
    adversaries: Sequence[str] = (),
    attention: Sequence[str] = (),
    rivals: Sequence[str] = (),
) -> dict[tuple[str, str], list[SeedBlock]]:
    """The tables of each cell, by dataset and variant. `importances` lists the files of the first cell's measures, then
    on; `adversaries` one file of each cell that has them. Of a cell with rivals `attention` lists its own file and
    theirs, `rivals` their predictions."""
    files, attacked, looks, said = map(iter, (importances, adversaries, attention, rivals))
    found: dict[tuple[str, str], list[SeedBlock]] = {}
    for cell, path in zip(cells, predictions, strict=True):
        told = {measure: next(files) for measure in cell["measures"]}
        adversary = next(attacked) if cell["attacked"] else None
        own = next(looks) if cell["rivals"] else None
        others = [
            ShownAdversary(
                title(rival["adversary"], rival["objective"], rival["strength"]),
                rival["base_seed"],
                rival["seed"],
                next(looks),
                next(said),
            )
            for rival in cell["rivals"]
        ]
        block = SeedBlock(cell["model"], path, told, adversary, own, others)
        found.setdefault((cell["dataset"], cell["variant"]), []).append(block)
    return found
