"""The Snakemake commands of the documentation are valid."""

import re
import shlex
from pathlib import Path

import pytest
from snakemake.cli import get_argument_parser

PROJECT = Path(__file__).parents[3]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
COMMANDS = [
    (page.name, shlex.split(line, comments=True)[1:])
    for page in PAGES
    for line in re.findall(r"^    (snakemake .*)$", page.read_text(encoding="utf-8").replace("\\\n", ""), re.M)
]


@pytest.mark.parametrize(("page", "arguments"), COMMANDS, ids=lambda value: value if isinstance(value, str) else None)
def test_commands_name_their_target(page: str, arguments: list[str]) -> None:
    """Some options of Snakemake, such as `--configfile`, also take a target that follows them."""
    parsed = get_argument_parser().parse_args(arguments)
    assert parsed.targets == ["all"], page
    for file in parsed.configfile:
        assert file == Path("my.yaml") or (PROJECT / file).is_file(), f"{page} names {file}, which does not exist"


def test_commands_are_found() -> None:
    assert {"README.md", "jain-wallace.md", "song-of-disagreement.md"} <= {page for page, _ in COMMANDS}
