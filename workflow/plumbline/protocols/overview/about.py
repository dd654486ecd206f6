"""What ran and what its words mean: datasets, models, measures and metrics."""

from typing import Any

from plumbline.config.seeds import parse_seeds
from plumbline.registry import Declaration, Registry
from plumbline.report.tables import DASH, Table, TableCell, number, numeric

# Above so many classes a table gives their number instead of their names.
MANY_CLASSES = 10


def datasets_table(summaries: list[dict[str, Any]]) -> Table:
    """Counts, classes and lengths of every split."""
    rows = []
    for summary in summaries:
        for split in sorted(summary["splits"], key=["train", "dev", "test"].index):
            of = summary["splits"][split]
            lacking = summary.get("partial", {}).get(split)
            rows.append(
                [
                    TableCell(summary["dataset"]),
                    TableCell(f"{split}, partial", split, "bad") if lacking else TableCell(split),
                    numeric(of["instances"], 0),
                    _classes(summary, of["instances_per_class"]),
                    *_lengths(summary, of),
                ]
            )
    columns = ["dataset", "split", "instances", "by class", "mean length", "lengths", "unknown words"]
    caption = "Datasets as they were used, after filtering; lengths of texts in tokens, sizes of pictures in pixels."
    return Table(caption, columns, rows, frozenset((2, 4, 5, 6)))


def _lengths(summary: dict[str, Any], of: dict[str, Any]) -> list[TableCell]:
    """How long the texts of a split are, and how many of their words are unknown; pictures have a side instead."""
    if side := summary.get("side"):
        return [TableCell(DASH), TableCell(f"{side} × {side}", side), TableCell(DASH)]
    return [
        numeric(of["mean_length"], 1),
        TableCell(f"{of['shortest']}–{of['longest']}", of["longest"]),
        TableCell(f"{number(100 * of['unknown_share'], 1)} %", of["unknown_share"]),
    ]


def _classes(summary: dict[str, Any], counts: dict[str, int]) -> TableCell:
    """How many instances each class has or, of many classes, how many there are."""
    if len(counts) > MANY_CLASSES:
        return TableCell(f"{number(len(counts), 0)} {'answers' if summary.get('paired') else 'classes'}", len(counts))
    return TableCell(", ".join(f"{name} {number(count, 0)}" for name, count in counts.items()))


def partial(summaries: list[dict[str, Any]]) -> list[str]:
    """What is known to be missing of the publishers' splits, a sentence for each dataset."""
    sentences = []
    for summary in summaries:
        splits = summary.get("partial", {}).items()
        if splits:
            counts = [
                f"{number(of['texts'], 0)} of the {number(of['published'], 0)} published {split} texts"
                for split, of in splits
            ]
            sentences.append(
                f"All numbers about {summary['dataset']} rest on partial data: {' and '.join(counts)} were there."
            )
    return sentences


def dropped_texts(summaries: list[dict[str, Any]]) -> list[str]:
    """What the preparation of each dataset left out, in sentences."""
    return [
        f"{summary['dataset']}: {reason}, "
        + ", ".join(f"{number(count, 0)} of {split}" for split, count in counts.items())
        for summary in summaries
        for reason, counts in summary["dropped"].items()
        if any(counts.values())
    ]


def manipulations_table(variants: list[dict[str, Any]]) -> Table | None:
    """Every manipulated variant: what was done to the dataset, and what a model can reach that does not use it."""
    rows = []
    for summary in variants:
        of = summary["manipulation"]
        options = ", ".join(f"{key} {_told(value)}" for key, value in of["options"].items()) or DASH
        kept = DASH if of["r"] is None else number(of["r"], 2)
        rows.append(
            [
                TableCell(summary["dataset"]),
                TableCell(of["variant"]),
                TableCell(of["kind"]),
                TableCell(options),
                TableCell(" and ".join(summary["classes"])),
                TableCell(kept, of["r"] or 0),
                numeric(of["p_star"], 3),
            ]
        )
    columns = ["dataset", "variant", "manipulation", "options", "classes", "label kept", "accuracy without it"]
    caption = "Manipulated datasets: the accuracy that a model can reach without what the manipulation says."
    return Table(caption, columns, rows, frozenset((5, 6))) if rows else None


def _told(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def models_table(study: dict[str, Any], cells: list[dict[str, Any]]) -> Table:
    """Every model, what the config changed in it, and the measures that explain it."""
    rows = []
    masked = any(cell.get("masked_by") for cell in cells)
    for name, entry in study["models"].items():
        of = [cell for cell in cells if cell["model"] == name]
        measures = of[0]["measures"] if of else []
        masking = list(dict.fromkeys(measure for cell in of for measure in cell.get("masked_by", [])))
        rows.append(
            [
                TableCell(name if _kind(name, entry) == name else f"{name} ({_kind(name, entry)})"),
                TableCell(_settings(entry)),
                TableCell(", ".join(sorted({cell["dataset"] for cell in of})) or DASH),
                TableCell(", ".join(measures) or DASH),
                *([TableCell(", ".join(masking) or DASH)] if masked else []),
            ]
        )
    columns = ["model", "set in the config", "datasets", "explained by", *(["masked by"] if masked else [])]
    return Table("Models, what the config changed in them, and the measures that can explain each.", columns, rows)


def _kind(name: str, entry: dict[str, Any]) -> str:
    return entry.get("kind") or name


def _settings(entry: dict[str, Any]) -> str:
    """The options that the config sets, a nested one as `training.epochs 6`."""
    words = []
    for key, value in entry.items():
        if key in ("kind", "measures", "datasets", "variants") or value in (None, "", {}, []):
            continue
        nested = value.items() if isinstance(value, dict) else [(None, value)]
        for inner, setting in nested:
            told = " ".join(map(str, setting)) if isinstance(setting, list) else setting
            words.append(f"{key}.{inner} {told}" if inner else f"{key} {told}")
    return ", ".join(words) or "defaults"


def entries_of(study: dict[str, Any], key: str) -> list[str]:
    """The study's protocols or adversaries, each with the options that the config sets."""
    return [f"{name} ({_settings(entry)})" for name, entry in study.get(key, {}).items()]


def seeds_of(study: dict[str, Any]) -> list[int]:
    """All seeds of the study."""
    blocks = [block for entry in study["models"].values() for block in entry.get("seeds") or study["seeds"]]
    return sorted({seed for block in blocks or study["seeds"] for seed in parse_seeds(block)})


def measures_table(registry: Registry, study: dict[str, Any]) -> Table:
    """Every registered measure, and under which names the study uses it."""
    rows = []
    for declaration in registry.all("measure"):
        used = [name for name, entry in study["measures"].items() if _kind(name, entry) == declaration.name]
        needs = ", ".join(declaration.needs) or "nothing"
        told = "yes" if used == [declaration.name] else ", ".join(used) or DASH
        rows.append([TableCell(declaration.name), TableCell(told), *_facts(declaration), TableCell(needs)])
    # Those of this study first.
    rows.sort(key=lambda row: (row[1].text == DASH, row[0].text))
    columns = ["measure", "in this study", "what it is", "equation", "range", "more important is", "needs of a model"]
    caption = "All importance measures, those of this study first: what each computes, and which way its scores go."
    return Table(caption, columns, rows)


def metrics_table(registry: Registry) -> Table:
    """Every registered metric."""
    rows = [[TableCell(metric.name), *_facts(metric), TableCell(metric.unit)] for metric in registry.all("metric")]
    caption = "All metrics that tables and figures have, and which of their values are better."
    return Table(caption, ["metric", "what it is", "equation", "range", "better is", "unit"], rows)


def _span(bounds: list[float | None] | None) -> str:
    """What a range is, in words."""
    low, high = bounds or (None, None)
    if low is None:
        told = "unbounded" if high is None else f"at most {high}"
    else:
        told = f"{low} or more" if high is None else f"{low} to {high}"
    return told.replace("-", "−")


def _facts(declaration: Declaration) -> list[TableCell]:
    span = _span(declaration.range)
    return [
        TableCell(declaration.summary.replace("`", "")),
        TableCell(declaration.equation),
        TableCell(span),
        TableCell(declaration.direction or DASH),
    ]
