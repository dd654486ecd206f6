"""Previews of a study's own data: rows, classes and lengths of each split, and what is dropped and why.

Slow packages are imported after the config is checked, so that most mistakes are reported at once.
"""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.config.checkpoints import CONFIG, find_checkpoint
from plumbline.config.external import locate_files
from plumbline.config.own_data import OWN
from plumbline.config.resolve import read_config, resolve
from plumbline.config.resolved import Resolved
from plumbline.config.runs import list_runs, scorecard_gaps
from plumbline.errors import PlumblineError
from plumbline.registry import IMAGES, PACKAGE, load

if TYPE_CHECKING:
    from plumbline.data.prepare import Prepared

SHOWN_ROWS = 10
# The width of a preview that is not printed to a terminal.
WIDTH = 100
Line = tuple[str, bool]


def preview_studies(configs: Iterable[Path], raw: Path) -> Iterator[Line]:
    """Lines about the own data of each study, what it downloads and what its scorecard will lack, each with whether it
    is no fault."""
    for config in configs:
        try:
            content = read_config(config)
        except PlumblineError as error:
            yield str(error), False
            continue
        try:
            resolved = resolve(locate_files(content, [Path(), config.parent]))
            gaps = scorecard_gaps(resolved, list_runs(resolved))
        except PlumblineError as error:
            yield f"{config}: {error}", False
            continue
        yield from ((f"{config}: warning: {gap}", True) for gap in gaps)
        yield from _downloads(resolved)
        datasets = [name for name in resolved.study.datasets if _is_own(resolved, name)]
        if not datasets:
            yield f"{config}: conforms, and has no data of your own to preview", True
        for dataset in datasets:
            yield _preview(resolved, dataset, raw)


def _downloads(resolved: Resolved) -> Iterator[Line]:
    """Checkpoints that a run will download."""
    for model in resolved.study.models:
        name = resolved.options["model", model].get("checkpoint")
        if name and not Path(find_checkpoint(name), CONFIG).is_file():
            yield (
                f"model {model}: warning: '{name}' is not a folder; a run downloads it from the Hugging Face Hub",
                True,
            )


def _is_own(resolved: Resolved, dataset: str) -> bool:
    declaration = resolved.declarations["dataset", dataset]
    return declaration.name in OWN or not declaration.path.is_relative_to(PACKAGE)


def _preview(resolved: Resolved, dataset: str, raw: Path) -> Line:
    from plumbline.data.own_files import check_own

    declaration, options = resolved.declarations["dataset", dataset], resolved.options["dataset", dataset]
    try:
        check_own(f"datasets.{dataset}", declaration.name, options)
        prepared = _prepare(resolved, dataset, raw)
    except PlumblineError as error:
        return f"dataset {dataset}: {error}", False
    kind = "images" if declaration.task == IMAGES else "texts"
    width = shutil.get_terminal_size((WIDTH, 0)).columns
    lines = [f"dataset {dataset}: conforms ({len(prepared.instances['split'])} {kind})", *describe(prepared)]
    return "\n".join([*lines, *(show_rows(prepared, width) if kind == "texts" else ())]), True


def _prepare(resolved: Resolved, dataset: str, raw: Path) -> "Prepared":
    """The dataset, prepared as its job does."""
    from plumbline.data.images import ImageCorpus, prepare_images
    from plumbline.data.prepare import prepare

    declaration, recipe = resolved.declarations["dataset", dataset], resolved.preparations[dataset]
    corpus = load(declaration.pointer)(raw, recipe.seed, **resolved.options["dataset", dataset])
    facts = dataset, declaration.counts, declaration.task
    if isinstance(corpus, ImageCorpus):
        return prepare_images(corpus, recipe, *facts)
    return prepare(corpus, recipe, *facts, declaration.evidence)


def describe(prepared: "Prepared") -> Iterator[str]:
    """The instances of each class and split, their lengths, how splits were drawn, and what is dropped."""
    summary = prepared.summary
    splits, side = summary["splits"], summary.get("side")
    counts = {
        class_: [split["instances_per_class"][class_] for split in splits.values()] for class_ in summary["classes"]
    }
    counts["all"] = [split["instances"] for split in splits.values()]
    rows = counts if side else counts | _lengths(prepared)
    width = max(map(len, rows))
    for name, values in {"": list(splits), **rows}.items():
        yield " ".join(["", f"{name:{width}}", *(f"{value:>8}" for value in values)])
    if side:
        yield f" size: {side} x {side} pixels"
    if drawn := summary.get("drawn"):
        yield f" splits: drawn by {', '.join(f'{key} {_plain(value)}' for key, value in drawn.items())}"
    for reason, dropped in summary["dropped"].items():
        where = ", ".join(f"{count} of {'all rows' if split == 'all' else split}" for split, count in dropped.items())
        yield f" dropped: {reason}: {where}"
    if not summary["dropped"]:
        yield " dropped: nothing"
    if not side:
        yield from _repeated(prepared.instances)


def _lengths(prepared: "Prepared") -> dict[str, list[int]]:
    """The median, the 95th percentile and the maximum of the numbers of words of each split."""
    import numpy as np

    rows = list(zip(prepared.instances["split"], map(sum, prepared.instances["maskable"]), strict=True))
    lengths = [[length for split, length in rows if split == name] for name in prepared.summary["splits"]]
    statistics = {"median": 50, "95%": 95, "longest": 100}
    return {f"{name} words": [round(np.percentile(n, at)) for n in lengths] for name, at in statistics.items()}


def _plain(value: Any) -> str:
    return "/".join(f"{share:g}" for share in value.values()) if isinstance(value, dict) else str(value).lower()


def _repeated(instances: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    """How many texts are there more than once, and how many test texts are training texts too."""
    texts = [(tuple(a), tuple(b or ())) for a, b in zip(instances["tokens"], instances["tokens_b"], strict=True)]
    repeated = sum(count - 1 for count in Counter(texts).values())
    if repeated:
        training = {text for text, split in zip(texts, instances["split"], strict=True) if split == "train"}
        tested = [text for text, split in zip(texts, instances["split"], strict=True) if split == "test"]
        both = sum(text in training for text in tested)
        yield f" repeated: {repeated} texts repeat another; {both} of {len(tested)} test texts are also in train"


def show_rows(prepared: "Prepared", width: int) -> Iterator[str]:
    """Rows from all over the dataset as models read them, cut to the width; words of evidence are in asterisks."""
    table, classes = prepared.instances, prepared.summary["classes"]
    count = len(table["split"])
    chosen = sorted({k * (count - 1) // (SHOWN_ROWS - 1) for k in range(SHOWN_ROWS)})
    longest = max(map(len, classes))
    for k in chosen:
        marks = table["evidence"][k] or [False] * len(table["tokens"][k])
        pairs = list(zip(table["tokens"][k], marks, strict=True))[1:-1]
        text = " ".join(f"*{word}*" if marked else word for word, marked in pairs)
        if table["tokens_b"][k]:
            text += f" | {' '.join(table['tokens_b'][k][1:-1])}"
        line = f" {table['split'][k]:5} {classes[table['label'][k]]:{longest}} {text}"
        yield line if len(line) <= width else f"{line[: width - 1]}…"
