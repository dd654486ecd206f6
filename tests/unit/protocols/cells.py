"""Explained cells in memory, for protocols that compute measures themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from plumbline.conformance import example_instances, example_model
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.explained import Explained
from plumbline.registry import Registry

REGISTRY = Registry()


@dataclass(frozen=True)
class Cell(Explained):
    """A cell with loaded instances."""

    loaded: Instances | None = None

    def instances(self) -> Instances:
        assert self.loaded
        return self.loaded


def params(name: str, **options: Any) -> dict[str, Any]:
    """The params of a measure."""
    declared = REGISTRY.get("measure", name)
    keys = {"object": declared.pointer, "splits": declared.splits, "bases": {}, "stochastic": declared.stochastic}
    return {**keys, "options": {**declared.defaults, **options}}


def make_cell(
    measures: Mapping[str, Any], count: int = 60, seeds: Sequence[int] = (0,), imported: Sequence[str] = ()
) -> Cell:
    """A random BiLSTM for each seed, and texts of which half are training texts."""
    texts = example_instances(count)
    texts = replace(texts, split=np.where(np.arange(count) // 2 % 2, "train", "test"))
    declaration = REGISTRY.get("model", "bilstm-tanh")
    models = [Evaluator(example_model(declaration, seed).requires_grad_(False), seed, 10_000) for seed in seeds]
    files = dict.fromkeys([*measures, *imported], Path())
    return Cell(Path(), files, list(seeds), ["test"], models=lambda: models, recomputed=measures, loaded=texts)


def table_of(protocol: Any, cell: Cell) -> pd.DataFrame:
    """The protocol's table of a cell."""
    columns = protocol.score(cell)
    scores = pa.table({name: pa.array(list(column)) for name, column in columns.items()})
    return protocol.summarise(scores).assign(dataset="d", variant="plain", model="m")
