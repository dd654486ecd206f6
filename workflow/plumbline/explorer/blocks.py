"""The input tables of the explorer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from plumbline.explorer.examples import Row
from plumbline.protocols.adversary.page import adversary_title


@dataclass(frozen=True)
class ShownAdversary:
    """An adversarial model: its title, the seed of its base model, its own seed, and the tables of its attention and
    predictions."""

    title: str
    base_seed: int
    seed: int
    attention: str
    predictions: str


@dataclass(frozen=True)
class SeedBlock:
    """The tables of a block of seeds of one model: predictions, the importances of each measure and, if the study has
    them, adversarial attention, and the model's own attention with its adversarial models."""

    model: str
    predictions: str
    importances: dict[str, str] = field(default_factory=dict)
    adversaries: str | None = None
    attention: str | None = None
    adversarial_models: Sequence[ShownAdversary] = ()


@dataclass(frozen=True)
class ShownVariant:
    """A variant of a dataset: its record and table of instances, the blocks of its models, those of one model together,
    the instances of each model with its own subword tokenizer, and for each model trained on masked texts the points of
    its curves, each with its table of masks. `second` is the name of its second texts."""

    dataset: str
    variant: str
    summary: Row
    instances: str
    blocks: Sequence[SeedBlock]
    subwords: dict[str, str] = field(default_factory=dict)
    masks: dict[str, list[tuple[Row, str]]] = field(default_factory=dict)
    images: bool = False
    second: str = "second text"


@dataclass(frozen=True)
class ExplorerOptions:
    """The number of instances to show, or all; the splits they are from; the number that each seed explained, None for
    all; whether special tokens are ranked too; the name of the random measure; and by dataset, variant and model the
    reliability of measures with draws."""

    count: int | Literal["all"]
    splits: Sequence[str]
    sampled: int | None = None
    specials: bool = False
    random: str = ""
    reliability: Mapping[tuple[str, ...], Mapping[str, float]] = field(default_factory=dict)


def find_blocks(
    cells: list[dict[str, Any]],
    predictions: Sequence[str],
    importances: Sequence[str],
    adversaries: Sequence[str] = (),
    attention: Sequence[str] = (),
    adversary_predictions: Sequence[str] = (),
) -> dict[tuple[str, str], list[SeedBlock]]:
    """The tables of each cell, by dataset and variant. `importances` lists the files of all measures, cell by cell;
    `adversaries` one file for each cell that has them. For a cell with adversarial models `attention` lists its own
    file and theirs, `adversary_predictions` their predictions."""
    scores, attacks, weights, adversary_files = map(iter, (importances, adversaries, attention, adversary_predictions))
    blocks: dict[tuple[str, str], list[SeedBlock]] = {}
    for cell, path in zip(cells, predictions, strict=True):
        block = SeedBlock(
            cell["model"],
            path,
            {measure: next(scores) for measure in cell["measures"]},
            next(attacks) if cell["attacked"] else None,
            next(weights) if cell["shown_adversaries"] else None,
            [
                ShownAdversary(
                    adversary_title(model["adversary"], model["objective"], model["strength"]),
                    model["base_seed"],
                    model["seed"],
                    next(weights),
                    next(adversary_files),
                )
                for model in cell["shown_adversaries"]
            ],
        )
        blocks.setdefault((cell["dataset"], cell["variant"]), []).append(block)
    return blocks
