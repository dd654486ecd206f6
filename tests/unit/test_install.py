"""What the pages say about installing and running is so, and the image is built from all that the package needs."""

import ast
import re
import shlex
import tomllib

import pytest

from plumbline.arguments import parser
from plumbline.project import PROJECT, study_files

PAGES = [PROJECT / "README.md", PROJECT / "config" / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
# Of plumbline itself, and of the image, whose command it is, on a line of code; and of plumbline within a sentence.
COMMAND = re.compile(
    r"^    (?:plumbline|(?:podman|apptainer) run .*?plumbline(?:\.sif|:cuda)?) (run\b.*)$|`plumbline\s(run\s[^`]+)`",
    re.M,
)
COMMANDS = [
    (page.name, line or within) for page in PAGES for line, within in COMMAND.findall(page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_commands_of_the_pages_are_valid(page: str, line: str) -> None:
    given = shlex.split(line, comments=True)
    options = parser().parse_args(given[: given.index("--")] if "--" in given else given)
    assert options.study in {"my.yaml", "NAME", *study_files(PROJECT)}


def test_commands_are_found() -> None:
    pages = [page for page, _ in COMMANDS]
    assert "README.md" in pages and pages.count("install.md") > 9


def test_every_study_is_described() -> None:
    page = (PROJECT / "docs" / "studies" / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^- `([a-z-]+)`: ", page, re.M)) == {*study_files(PROJECT)} - {"default"}


def copied_files(text: str) -> set[str]:
    """The files and folders that a container file copies into the image."""
    return {source for line in re.findall(r"^COPY (.*) \S+$", text, re.M) for source in line.split()}


def test_the_image_is_built_from_all_that_the_wheel_carries() -> None:
    text = (PROJECT / "envs" / "Containerfile").read_text(encoding="utf-8")
    copied = copied_files(text)
    assert all((PROJECT / source).exists() for source in copied)
    tree = ast.parse((PROJECT / "setup.py").read_text(encoding="utf-8"))
    carried = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FILES"
    )
    assert "rules/*.smk" in carried
    for pattern in carried:
        assert {pattern, pattern.partition("/")[0]} & copied, pattern
    assert {"setup.py", "pyproject.toml", "README.md", "LICENSE", "envs/requirements.lock"} <= copied
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (version,) = re.findall(r"^FROM python:3\.(\d+)-slim$", text, re.M)
    assert project["requires-python"] == ">=3.11,<3.15" and 11 <= int(version) < 15
