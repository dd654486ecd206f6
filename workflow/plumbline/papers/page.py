"""The page of published numbers."""

from plumbline.papers.comparison import paper_overview, reproduction_overview, verdict
from plumbline.papers.quirks_page import quirk_numbers_overview, quirks_overview
from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.page import Page, Section, table_of
from plumbline.report.tables import without_categories


@page("reproduction", title="Published numbers", group="", tables=["reproduction", "quirks"], order=90)
def reproduction_page(content: Content) -> Page:
    """Every published number that this study also computes, next to our value."""
    frames, reproduction = content.tables, content.tables["reproduction"]
    sections = [
        Section("by-study", "By study", tables={"studies": paper_overview(reproduction)}),
        Section(
            "all",
            "All numbers",
            tables={"reproduction": reproduction_overview(reproduction, content.classes)},
            axis="tolerance",
        ),
        Section(
            "on-quirks",
            "Published numbers that depend on quirks",
            "Some published numbers depend on an error in the published code or in print (a quirk). In plumbline the "
            "correct behaviour is the default and the quirk is a named option; a study with both shows its effect.",
            {
                "quirks": table_of(frames, "quirks", quirks_overview),
                "quirky": table_of(frames, "quirks", quirk_numbers_overview),
            },
        ),
    ]
    return Page(sections, finding=verdict(without_categories(reproduction)))
