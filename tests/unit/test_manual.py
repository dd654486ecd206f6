"""The generated pages of the reference hold everything that a user may name."""

import re

import pytest

from plumbline.arguments import parser
from plumbline.config.names import TABLES
from plumbline.config.schema import Study
from plumbline.manual import WIDTH, reference_pages
from plumbline.project import PROJECT
from plumbline.registry import KINDS, Registry
from plumbline.registry.meanings import option_meanings

PAGES = {
    path.relative_to(PROJECT / "docs" / "reference").as_posix(): text for path, text in reference_pages(PROJECT).items()
}


def headings(page):
    return re.findall(r"^## `(.*)`$", PAGES[page], re.M)


@pytest.mark.parametrize("kind", KINDS)
def test_every_registered_object_has_a_section_with_its_options(kind):
    page = f"options/{kind}s.md"
    others = ["adversary", "roar"] if kind == "protocol" else []
    assert sorted(headings(page)) == sorted([*Registry().names(kind), *others])
    for declaration in Registry().all(kind):
        section = re.split(r"^## ", PAGES[page].partition(f"## `{declaration.name}`\n")[2], flags=re.M)[0]
        text = " ".join(section.split())
        for option, meaning in option_meanings(declaration).items():
            assert re.search(rf"- option `{option}` \([^)].*?\): {re.escape(meaning)}", text), (
                declaration.name,
                option,
            )


def test_every_key_has_its_meaning():
    for key, field in Study.model_fields.items():
        (entry,) = re.findall(rf"^- `{key}` \((.*)", PAGES["configuration.md"].split("\n## ")[1], re.M)
        assert field.description.split()[0] in entry + PAGES["configuration.md"]


def test_every_command_has_its_arguments():
    commands = parser()._subparsers._group_actions[0].choices
    assert headings("commands.md") == [f"plumbline {name}" for name in commands]
    text = " ".join(PAGES["commands.md"].split())
    for command in commands.values():
        assert command.description.endswith(".")
        assert all(line.startswith(f"  {command.prog} ") for line in command.epilog.split("\n")[1:])
        for action in command._actions[1:]:
            assert action.help, action.dest
            assert f"`{(action.option_strings or [action.dest.upper()])[0]}" in text, action.dest
            assert " ".join(action.help.split()) in text, action.dest


def test_every_table_has_its_columns():
    assert {*TABLES, *Registry().names("protocol")} - {*headings("tables.md")} == set()
    assert "`measure_a` text, `measure_b` text, `statistic` text" in " ".join(PAGES["tables.md"].split())


def test_every_dataset_has_its_licence():
    listed = re.findall(r"^- `(.+?)`: \S", PAGES["licences.md"], re.M)
    assert listed == Registry().names("dataset")
    assert all(dataset.licence and dataset.source for dataset in Registry().all("dataset"))


def test_lines_break_at_spaces():
    for name, page in PAGES.items():
        assert all(len(line) <= WIDTH or " " not in line.strip("- ") for line in page.split("\n")), name
