"""What each page's template is given beside its figures: its tables, and what it says in words."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from plumbline.figures.conventions import ordered
from plumbline.papers import page as published
from plumbline.papers import quirks_page as quirks
from plumbline.protocols.adversary import page as adversary
from plumbline.protocols.agreement import page as agreement
from plumbline.protocols.attention import page as counterfactual
from plumbline.protocols.erasure import page as erasure
from plumbline.protocols.ground_truth import page as known
from plumbline.protocols.roar import page as roar
from plumbline.protocols.scorecard import page as scorecard
from plumbline.registry import Registry
from plumbline.report import about, tables
from plumbline.report.content import Content
from plumbline.report.pages import KNOWN
from plumbline.report.tables import Table, number

Tables = Mapping[str, pd.DataFrame]


def made(frames: Tables, kind: str, make: Callable[[pd.DataFrame], Table | None]) -> Table | None:
    """A table made from the one of this kind, if the study has it and there is something to tell."""
    table = make(frames[kind]) if kind in frames else None
    return table if table and table.rows else None


def index(content: Content) -> dict[str, Any]:
    """The overview."""
    frames = content.tables
    return {
        "studies": published.study_table(frames["reproduction"]),
        "seeds": about.seeds_of(content.study),
        "measures": ordered(content.study["measures"]),
        "adversaries": about.entries_of(content.study, "adversaries"),
        "protocols": about.entries_of(content.study, "protocols"),
        "datasets": about.datasets_table(content.summaries),
        "manipulations": about.manipulations_table(content.variants),
        "partial": about.partial(content.summaries),
        "left_out": about.left_out(content.summaries),
        "models": about.models_table(content.study, content.cells),
        "performance": tables.performance_table(frames["performance"]),
        "excluded": sorted({line["reason"] for line in content.excluded}),
        "seconds": number(frames["timings"]["seconds"].sum(), 0),
    }


def card(content: Content) -> dict[str, Any]:
    """The scorecard and the meta-evaluation."""
    return {
        "scorecard": made(content.tables, "scorecard", scorecard.scorecard_table),
        "meta": made(content.tables, "meta_evaluation", scorecard.meta_table),
    }


def attention(content: Content) -> dict[str, Any]:
    """Attention against other measures and other attention."""
    frames = content.tables
    return {
        "overview": made(frames, "agreement", agreement.overview),
        "permutation": made(frames, "permutation", counterfactual.permutation_overview),
        "adversarial_attention": made(frames, "adversarial_attention", counterfactual.adversarial_overview),
    }


def disagreement(content: Content) -> dict[str, Any]:
    """All pairs of measures."""
    return {"agreement": agreement.all_rows(content.tables["agreement"], content.classes)}


def adversaries(content: Content) -> dict[str, Any]:
    """Adversarial models, and what another seed alone does."""
    return {
        "adversary": made(content.tables, "adversary", adversary.adversary_overview),
        "seed_variance": made(content.tables, "seed_variance", adversary.seed_variance_overview),
    }


def masking(content: Content) -> dict[str, Any]:
    """ROAR and Recursive ROAR."""
    frames = content.tables
    return {
        "faithfulness": made(frames, "faithfulness", roar.faithfulness_table),
        "leakage": made(frames, "roar", lambda frame: roar.leakage_table(frame, frames.get("faithfulness"))),
        "costs": made(frames, "timings", roar.cost_table),
    }


def truth(content: Content) -> dict[str, Any]:
    """Known truth, and rationales."""
    return {
        "truth": made(content.tables, "ground_truth", known.truth_table),
        "rationales": made(content.tables, "rationales", known.rationales_table),
    }


def erased(content: Content) -> dict[str, Any]:
    """Comprehensiveness and sufficiency."""
    return {
        "erasure": made(content.tables, "erasure", erasure.erasure_table),
        "curves": made(content.tables, "erasure", erasure.curve_table),
    }


def other(content: Content) -> dict[str, Any]:
    """The tables of which nothing is known."""
    found = sorted(set(content.tables) - KNOWN)
    return {"others": {kind: tables.any_table(kind, content.tables[kind]) for kind in found}}


def reproduction(content: Content) -> dict[str, Any]:
    """Published numbers."""
    frames = content.tables
    return {
        "studies": published.study_table(frames["reproduction"]),
        "reproduction": published.reproduction_table(frames["reproduction"], content.classes),
        "quirks": made(frames, "quirks", quirks.quirks_table),
        "quirky": made(frames, "quirks", quirks.numbers_table),
    }


def timings(content: Content) -> dict[str, Any]:
    """What was heavy."""
    frame = content.tables["timings"]
    return {
        "seconds": number(frame["seconds"].sum(), 0),
        "timings": tables.timings_table(frame),
        "jobs": tables.jobs_table(frame),
    }


def words(content: Content) -> dict[str, Any]:
    """What the words mean, and the software."""
    registry = Registry(content.study.get("plugins", []))
    return {
        "measures": about.measures_table(registry, content.study),
        "metrics": about.metrics_table(registry),
        "versions": content.versions,
    }


VIEWS: dict[str, Callable[[Content], dict[str, Any]]] = {
    "index": index,
    "scorecard": card,
    "attention": attention,
    "disagreement": disagreement,
    "adversaries": adversaries,
    "masking": masking,
    "truth": truth,
    "erasure": erased,
    "other": other,
    "reproduction": reproduction,
    "explorer": lambda content: {},
    "timings": timings,
    "about": words,
}
