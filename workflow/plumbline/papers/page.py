"""The page of published numbers."""

from plumbline.papers.comparison import reproduction_table, study_table, verdict
from plumbline.papers.quirks_page import numbers_table, quirks_table
from plumbline.registry import page
from plumbline.report.content import Content
from plumbline.report.page import Page, Section, made
from plumbline.report.tables import plain


@page(
    "reproduction",
    title="Published numbers",
    about="Every published number that the study has one for, and ours beside it.",
    group="",
    tables=["reproduction", "quirks"],
    order=90,
)
def reproduction_page(content: Content) -> Page:
    """Published numbers, and those that rest on quirks."""
    frames = content.tables
    reproduction = frames["reproduction"]
    sections = [
        Section("by-study", "By study", tables={"studies": study_table(reproduction)}),
        Section(
            "all",
            "All numbers",
            tables={"reproduction": reproduction_table(reproduction, content.classes)},
            axis="tolerance",
        ),
        Section(
            "on-quirks",
            "Published numbers that rest on quirks",
            "Some published numbers come from a quirk of the code that made them, or of the print. The correct way is "
            "the default here, and the quirk a named option; a study that has both shows what the quirk does.",
            {
                "quirks": made(frames, "quirks", quirks_table),
                "quirky": made(frames, "quirks", numbers_table),
            },
        ),
    ]
    return Page(sections, finding=verdict(plain(reproduction)))
