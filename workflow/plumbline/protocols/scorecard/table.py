"""The scorecard: every measure against every protocol.

A criterion is a number that a protocol assigns to each measure of a dataset and model, for each seed. Some criteria
apply to one kind of measure only, such as attention.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from plumbline.protocols.agreement.twins import find_twins_in_files, first_twin
from plumbline.protocols.bootstrap import student_interval
from plumbline.protocols.criteria import KEYS, VALUES, Cell, Criterion, Measures, criterion_of
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.protocols.scorecard.schemas import SCORECARD
from plumbline.registry import table
from plumbline.store import TableSchema, read_stamped
from plumbline.tables.chance import Model
from plumbline.tables.chance import at_chance as models_at_chance
from plumbline.tables.sources import Sources

Keys = tuple[str, str, str, str]


def values_of(criteria: Sequence[Criterion], tables: Mapping[str, pd.DataFrame], measures: Measures) -> pd.DataFrame:
    """One row per criterion, dataset, model, measure and seed that has a value.

    A criterion of one kind of measure applies to all names of that kind.
    """
    frames = []
    for criterion in criteria:
        if criterion.table not in tables:
            continue
        rows = criterion.read(tables[criterion.table], measures)
        if criterion.measure:
            named = [name for name, kind in measures.kinds.items() if kind == criterion.measure] or [criterion.measure]
            rows = pd.concat([rows.assign(measure=name) for name in named], ignore_index=True)
        frames.append(rows.assign(criterion=criterion.name).dropna(subset="value"))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=[*VALUES, "criterion"])


def scorecard_rows(
    criteria: Sequence[Criterion],
    values: pd.DataFrame,
    explained: Iterable[Keys],
    measures: Measures,
    at_chance: Collection[Model] = (),
) -> pd.DataFrame:
    """Rows of the table `scorecard`: one per criterion, dataset, variant, model and measure, with or without a value.

    `criteria` are those of the study, `explained` the keys of everything that it explains, `at_chance` the excluded
    models.
    """
    known = dict(tuple(values.groupby(["criterion", *KEYS], observed=True)))
    scored = set(values[["criterion", *KEYS[:-1]]].itertuples(index=False, name=None))
    cells = sorted({*explained, *values[KEYS].itertuples(index=False, name=None)})
    counted: dict[Cell, list[str]] = {}
    for *block, measure in cells:
        if measure != measures.random and measure not in measures.degraded:
            counted.setdefault((block[0], block[1], block[2]), []).append(measure)
    left_out: dict[Cell, list[int]] = {}
    for dataset, variant, model, seed in sorted(at_chance):
        left_out.setdefault((dataset, variant, model), []).append(int(seed))
    rows = []
    for criterion in criteria:
        for dataset, variant, model, measure in cells:
            if not criterion.judges(variant):
                continue
            cell = dataset, variant, model
            seeds = known.get((criterion.name, *cell, measure))
            twin = first_twin(measures.twins, cell, measure)
            row: dict[str, Any] = dict(zip(KEYS, (*cell, measure), strict=True)) | {
                "criterion": criterion.name,
                "direction": criterion.direction,
                "faithfulness": criterion.faithfulness,
                "twin_of": None if twin == measure else twin,
                "degraded_of": measures.degraded.get(measure),
            }
            if seeds is None:
                compared = len(counted.get(cell, ()))
                reason = _missing(criterion, (*cell, measure), scored, measures, compared, left_out.get(cell, []))
                row |= {"n_seeds": 0, "per_seed": [], "status": "missing", "reason": reason}
            else:
                row |= _estimate(seeds, criterion.bounds) | {"status": "ok"}
                row["reason"] = _seeds_at_chance(left_out[cell]) if cell in left_out else None
            rows.append(row)
    return pd.DataFrame(rows, columns=SCORECARD.schema.names)


def _seeds_at_chance(seeds: Sequence[int]) -> str:
    excluded = f"seed {seeds[0]} is" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))} are"
    return f"{excluded} left out, hardly better than guessing"


def _missing(
    criterion: Criterion,
    cell: Keys,
    scored: set[tuple[str, ...]],
    measures: Measures,
    compared: int,
    at_chance: Sequence[int],
) -> str:
    """Why a measure has no value; `compared` measures of its cell are neither random nor degraded."""
    *block, measure = cell
    if criterion.measure and measures.kinds.get(measure, measure) != criterion.measure:
        return f"it applies to {criterion.measure} only"
    if (criterion.name, *block) in scored:
        return "it has no value for this measure"
    if compared < criterion.least_measures:
        return (
            f"it compares {criterion.least_measures} measures or more besides random, and there is {compared or 'none'}"
        )
    if at_chance:
        return _seeds_at_chance(at_chance)
    return "the study does not compute it for this dataset, variant and model, or an option leaves it out"


def _estimate(rows: pd.DataFrame, bounds: tuple[float, float]) -> dict[str, Any]:
    """The mean over seeds and, of three or more, its interval."""
    seeds = rows["value"].to_numpy(dtype=np.float64)
    low, high = np.clip(student_interval(seeds), *bounds).tolist()
    value = float(seeds.mean())
    return {"n_seeds": len(seeds), "per_seed": seeds.tolist(), "value": value, "ci_low": low, "ci_high": high}


@table(
    "scorecard",
    reads=["criteria", "performance", "importances?"],
    params=["criteria", "random", "measure_kinds", "degraded"],
)
def scorecard_table(sources: Sources) -> tuple[TableSchema, pd.DataFrame]:
    """Every measure of the study against every protocol."""
    degraded = {name: rung["of"] for name, rung in sources.facts["degraded"].items()}
    # The first block of seeds of a cell determines its twins.
    blocks: dict[Cell, str] = {}
    importances: dict[Cell, dict[str, str]] = {}
    explained = []
    for keys, path in sources["importances"]:
        cell = keys["dataset"], keys["variant"], keys["model"]
        explained.append((*cell, keys["measure"]))
        if blocks.setdefault(cell, keys["seeds"]) == keys["seeds"] and keys["measure"] not in degraded:
            importances.setdefault(cell, {})[keys["measure"]] = path
    twins = {cell: find_twins_in_files(files) for cell, files in importances.items()}
    measures = Measures(sources.facts["measure_kinds"], sources.facts["random"], twins, degraded)
    criteria = [criterion_of(declared) for declared in sources.facts["criteria"]]
    tables = {keys["kind"]: read_stamped(path)[1].to_pandas() for keys, path in sources["criteria"]}
    excluded = models_at_chance(sources.frame(PERFORMANCE))
    return SCORECARD, scorecard_rows(criteria, values_of(criteria, tables, measures), explained, measures, excluded)
