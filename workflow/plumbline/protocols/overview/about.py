"""Tables of the overview and the about page: datasets, models, measures and metrics."""

from typing import Any

from plumbline.config.seeds import parse_seeds
from plumbline.registry import Declaration, Registry
from plumbline.report.tables import DASH, Table, TableCell, number, numeric

# With more classes a table gives their number instead of their names.
MANY_CLASSES = 10


def datasets_table(summaries: list[dict[str, Any]]) -> Table:
    """Counts, classes and lengths of every split."""
    rows = []
    for summary in summaries:
        for split in sorted(summary["splits"], key=["train", "dev", "test"].index):
            counts = summary["splits"][split]
            incomplete = summary.get("partial", {}).get(split)
            name = TableCell(f"{split}, partial", split, "bad") if incomplete else TableCell(split)
            instances = numeric(counts["instances"], 0), _classes(summary, counts["instances_per_class"])
            rows.append([TableCell(summary["dataset"]), name, *instances, *_lengths(summary, counts)])
    columns = ["dataset", "split", "instances", "by class", "mean length", "lengths", "unknown words"]
    caption = (
        "Splits of the datasets after filtering; lengths of texts in tokens, sizes of images in pixels. Models of "
        "words read all unknown words as one token; models of subwords read them as they are."
    )
    return Table(caption, columns, rows, frozenset((2, 4, 5, 6)))


def _lengths(summary: dict[str, Any], counts: dict[str, Any]) -> list[TableCell]:
    """Text lengths and the share of unknown words of a split; of images the side."""
    if side := summary.get("side"):
        return [TableCell(DASH), TableCell(f"{side} × {side}", side), TableCell(DASH)]
    return [
        numeric(counts["mean_length"], 1),
        TableCell(f"{counts['shortest']}–{counts['longest']}", counts["longest"]),
        TableCell(f"{number(100 * counts['unknown_share'], 1)} %", counts["unknown_share"]),
    ]


def _classes(summary: dict[str, Any], counts: dict[str, int]) -> TableCell:
    """The number of instances of each class or, if there are many, the number of classes."""
    if len(counts) > MANY_CLASSES:
        return TableCell(f"{number(len(counts), 0)} {'answers' if summary.get('paired') else 'classes'}", len(counts))
    return TableCell(", ".join(f"{name} {number(count, 0)}" for name, count in counts.items()))


def partial_data_warnings(summaries: list[dict[str, Any]]) -> list[str]:
    """A sentence for each dataset of which published texts are missing."""
    sentences = []
    for summary in summaries:
        if splits := summary.get("partial"):
            counts = [
                f"{number(texts['texts'], 0)} of the {number(texts['published'], 0)} published {split} texts"
                for split, texts in splits.items()
            ]
            sentences.append(f"Results on {summary['dataset']} are from partial data: {' and '.join(counts)}.")
    return sentences


def dropped_texts(summaries: list[dict[str, Any]]) -> list[str]:
    """The instances that the preparation of each dataset dropped, a line for each reason."""
    return [
        f"{summary['dataset']}: {reason}, "
        + ", ".join(f"{number(count, 0)} of {split}" for split, count in counts.items())
        for summary in summaries
        for reason, counts in summary["dropped"].items()
        if any(counts.values())
    ]


def manipulations_table(variants: list[dict[str, Any]]) -> Table | None:
    """Every manipulated variant, with the accuracy that a model can reach without the manipulation."""
    rows = []
    for summary in variants:
        manipulation = summary["manipulation"]
        options = ", ".join(f"{key} {_option_text(value)}" for key, value in manipulation["options"].items()) or DASH
        kept = manipulation["r"]
        texts = summary["dataset"], manipulation["variant"], manipulation["kind"], options
        classes = TableCell(" and ".join(summary["classes"]))
        numbers = TableCell(number(kept), kept or 0), numeric(manipulation["p_star"], 3)
        rows.append([*map(TableCell, texts), classes, *numbers])
    columns = ["dataset", "variant", "manipulation", "options", "classes", "label kept", "accuracy without it"]
    caption = (
        "Manipulated datasets. “label kept” is the probability that an instance keeps its original label; “accuracy "
        "without it” is the highest accuracy that a model can reach without the manipulated features."
    )
    return Table(caption, columns, rows, frozenset((5, 6))) if rows else None


def _option_text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def models_table(study: dict[str, Any], cells: list[dict[str, Any]]) -> Table:
    """Every model with its settings in the config and the measures that explain it."""
    rows = []
    masked = any(cell.get("masked_by") for cell in cells)
    for name, entry in study["models"].items():
        own = [cell for cell in cells if cell["model"] == name]
        measures = own[0]["measures"] if own else []
        masking = list(dict.fromkeys(measure for cell in own for measure in cell.get("masked_by", [])))
        title = name if _kind(name, entry) == name else f"{name} ({_kind(name, entry)})"
        lists = [sorted({cell["dataset"] for cell in own}), measures, *([masking] if masked else [])]
        rows.append([*map(TableCell, (title, _settings(entry), *(", ".join(names) or DASH for names in lists)))])
    columns = ["model", "set in the config", "datasets", "explained by", *(["masked by"] if masked else [])]
    return Table("Models, the options set in the config, and the measures that explain them.", columns, rows)


def _kind(name: str, entry: dict[str, Any]) -> str:
    return entry.get("kind") or name


def _settings(entry: dict[str, Any]) -> str:
    """The options set in the config, nested ones as `training.epochs 6`."""
    settings = []
    for key, value in entry.items():
        if key in ("kind", "measures", "datasets", "variants") or value in (None, "", {}, []):
            continue
        nested = value.items() if isinstance(value, dict) else [(None, value)]
        for inner, setting in nested:
            text = " ".join(map(str, setting)) if isinstance(setting, list) else setting
            settings.append(f"{key}.{inner} {text}" if inner else f"{key} {text}")
    return ", ".join(settings) or "defaults"


def entries_of(study: dict[str, Any], key: str) -> list[str]:
    """The study's protocols or adversaries with the options set in the config."""
    return [f"{name} ({_settings(entry)})" for name, entry in study.get(key, {}).items()]


def seeds_of(study: dict[str, Any]) -> list[int]:
    """All seeds of the study."""
    blocks = [block for entry in study["models"].values() for block in entry.get("seeds") or study["seeds"]]
    return sorted({seed for block in blocks or study["seeds"] for seed in parse_seeds(block)})


def measures_table(registry: Registry, study: dict[str, Any]) -> Table:
    """Every registered measure, and its names in the study."""
    rows = []
    for declaration in registry.all("measure"):
        used = [name for name, entry in study["measures"].items() if _kind(name, entry) == declaration.name]
        needs = ", ".join(declaration.needs) or "nothing"
        names = "yes" if used == [declaration.name] else ", ".join(used) or DASH
        rows.append([TableCell(declaration.name), TableCell(names), *_facts(declaration), TableCell(needs)])
    # Measures of this study first.
    rows.sort(key=lambda row: (row[1].text == DASH, row[0].text))
    columns = ["measure", "in this study", "what it is", "equation", "range", "more important is", "needs of a model"]
    caption = "All importance measures, those of this study first: what each computes, and the direction of its scores."
    return Table(caption, columns, rows)


def metrics_table(registry: Registry) -> Table:
    """Every registered metric."""
    rows = [[TableCell(metric.name), *_facts(metric), TableCell(metric.unit)] for metric in registry.all("metric")]
    caption = "All metrics of tables and figures, and whether higher or lower is better."
    return Table(caption, ["metric", "what it is", "equation", "range", "better is", "unit"], rows)


def _span(bounds: list[float | None] | None) -> str:
    """A range in words."""
    low, high = bounds or (None, None)
    if low is None:
        text = "unbounded" if high is None else f"at most {high}"
    else:
        text = f"{low} or more" if high is None else f"{low} to {high}"
    return text.replace("-", "−")


def _facts(declaration: Declaration) -> list[TableCell]:
    summary, bounds = declaration.summary.replace("`", ""), _span(declaration.range)
    return [*map(TableCell, (summary, declaration.equation, bounds, declaration.direction or DASH))]
