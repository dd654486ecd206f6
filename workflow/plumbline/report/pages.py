"""The pages of the report: which a study has, and which tables and figures stand on each. It imports nothing heavy."""

from collections.abc import Collection
from typing import NamedTuple


class Page(NamedTuple):
    """A page by the name of its file. A study has it if it has one of its `tables`, which are kinds; a page that asks
    for none is there always. `figures` are kinds too."""

    name: str
    title: str
    about: str
    tables: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    group: str = ""


PROTOCOLS = "Protocols"
PAGES = [
    Page("index", "Overview", "What ran, on what, and what came out."),
    Page(
        "scorecard",
        "Scorecard",
        "Every measure against every protocol, and whether the protocols agree.",
        ("scorecard", "meta_evaluation"),
        ("scorecard", "meta-evaluation"),
    ),
    Page(
        "attention",
        "Attention",
        "Does attention agree with gradients and leave-one-out, and does the output notice other attention?",
        ("permutation", "adversarial_attention", "agreement"),
        ("tau-histogram", "mean-differences", "permutation", "jsd-histogram", "jsd-violins", "adversarial-texts"),
        PROTOCOLS,
    ),
    Page(
        "disagreement",
        "Disagreement",
        "Do any two measures put the words of a text in the same order?",
        ("agreement",),
        ("tau-matrix", "correlation-matrices"),
        PROTOCOLS,
    ),
    Page(
        "adversaries",
        "Adversaries",
        "Can a model attend to other words and say the same, and how far does chance alone move attention?",
        ("adversary", "seed_variance"),
        ("attefa-violins", "jsd-tvd-plane", "seed-variance"),
        PROTOCOLS,
    ),
    Page(
        "masking",
        "Masking",
        "Does masking what a measure calls important hurt more than masking at random, after training anew?",
        ("roar", "faithfulness", "sparsity", "synthetic_roar"),
        ("faithfulness", "roar-curves", "sparsity", "synthetic-roar"),
        PROTOCOLS,
    ),
    Page(
        "truth",
        "Ground truth",
        "Does importance fall where it must, on data made so that this is known?",
        ("ground_truth", "rationales", "trace"),
        (
            "truth-found",
            "attribution-by-region",
            "attribution-by-accuracy",
            "attribution-by-visibility",
            "attribution-by-reassignment",
            "attribution-by-group",
            "word-attribution",
            "saliency",
            "rationale-curves",
        ),
        PROTOCOLS,
    ),
    Page(
        "erasure",
        "Erasure",
        "Does the output fall without the important words, and stay with them alone?",
        ("erasure",),
        group=PROTOCOLS,
    ),
    Page("other", "Other protocols", "The tables of this study's own protocols.", group=PROTOCOLS),
    Page("reproduction", "Published numbers", "Every published number that the study has one for, and ours beside it."),
    Page("explorer", "Explorer", "Single instances under all measures."),
    Page("timings", "Timings", "What the study took."),
    Page("about", "About", "Measures, metrics, software and rules.", figures=("rule-graph",)),
]
# Tables that every study has, and one of which the page of published numbers tells.
USUAL = ("performance", "reproduction", "timings", "quirks")
KNOWN = frozenset(kind for page in PAGES for kind in page.tables) | frozenset(USUAL)


def pages_of(tables: Collection[str], attends: bool = True) -> list[Page]:
    """The pages of a study by the kinds of its tables. `attends`: whether attention is among its measures, without
    which agreement has nothing to say about it."""
    return [page for page in PAGES if _belongs(page, set(tables), attends)]


def _belongs(page: Page, tables: set[str], attends: bool) -> bool:
    if page.name == "other":
        return bool(tables - KNOWN)
    if page.name == "attention" and not attends:
        tables = tables - {"agreement"}
    return not page.tables or bool(tables.intersection(page.tables))


def page_of(kind: str) -> str:
    """The page of a kind of figure; one that is not known stands on the page of the experiment that its name begins
    with, or on the overview."""
    names = [page.name for page in PAGES if kind in page.figures or kind.startswith(f"{page.name}-")]
    return names[0] if names else "index"
