"""What the pages tell a reader to type is what it seems."""

import re
import shlex
from pathlib import Path

import pytest
from snakemake.cli import get_argument_parser

PROJECT = Path(__file__).parents[3]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
COMMANDS = [
    (page.name, shlex.split(line, comments=True)[1:])
    for page in PAGES
    for line in re.findall(r"^    (snakemake .*)$", page.read_text(encoding="utf-8").replace("\\\n", ""), re.M)
]


@pytest.mark.parametrize(("page", "arguments"), COMMANDS, ids=lambda told: told if isinstance(told, str) else None)
def test_commands_name_their_target(page: str, arguments: list[str]) -> None:
    """Some of Snakemake's options take all that follows them, such as `--configfile`, a target too."""
    told = get_argument_parser().parse_args(arguments)
    assert told.targets == ["all"], page
    for file in told.configfile:
        assert file == Path("my.yaml") or (PROJECT / file).is_file(), f"{page} names {file}, which is not there"


def test_commands_are_found() -> None:
    assert {"README.md", "jain-wallace.md", "song-of-disagreement.md"} <= {page for page, _ in COMMANDS}
