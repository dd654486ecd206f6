"""The drawing of the packages shows their import layers, summaries and imports."""

import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest

from plumbline.cli import main
from plumbline.planning.packages import package_imports, packages_svg, rows_of, without_implied
from plumbline.project import PROJECT

DRAWN = PROJECT / "docs" / "images" / "packages.svg"
CONTRACT = """
[[tool.importlinter.contracts]]
type = "forbidden"

[[tool.importlinter.contracts]]
type = "layers"
layers = ["plumbline.cli", "plumbline.data | plumbline.report", "plumbline.store", "plumbline.errors"]
"""
FILES = {
    "cli.py": '"""Commands. They start fast."""\ndef main():\n    from plumbline.data.read import text\n',
    "data/__init__.py": '"""Datasets,\nread & prepared."""\n',
    "data/read.py": "from plumbline import errors\nfrom plumbline.store import table\nimport torch\n",
    "report/__init__.py": '"""Pages."""\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n'
    "    import plumbline.errors\n",
    "store/__init__.py": '"""Artefacts."""\nfrom plumbline.store.schema import Schema\n',
    "store/schema.py": "",
    "errors.py": '"""Exceptions."""\n',
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    (tmp_path / "Snakefile").touch()
    (tmp_path / "pyproject.toml").write_text(CONTRACT)
    for name, text in FILES.items():
        path = tmp_path / "workflow" / "plumbline" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_imports_are_those_of_all_files_and_functions_but_not_of_type_checkers(clone: Path) -> None:
    packages = ["errors", "store", "data", "report", "cli"]
    imports = package_imports(clone / "workflow" / "plumbline", packages)
    assert imports == {"errors": set(), "store": set(), "data": {"errors", "store"}, "report": set(), "cli": {"data"}}


def test_imports_that_follow_from_others_are_left_out() -> None:
    imports = {"a": set(), "b": {"a"}, "c": {"a", "b"}, "d": {"a", "c"}, "e": {"a"}}
    assert without_implied(imports) == {"a": set(), "b": {"a"}, "c": {"b"}, "d": {"c"}, "e": {"a"}}


def test_layers_share_a_row_unless_one_imports_the_other() -> None:
    imports = {"a": set(), "b": set(), "c": {"a"}, "d": {"c"}, "e": set()}
    assert rows_of([["a"], ["b"], ["c"], ["d", "e"]], imports) == [["a", "b"], ["c"], ["d", "e"]]


def test_each_package_is_a_box_above_what_it_imports(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(clone)
    assert main(["graph", "--packages", "packages.svg"]) == 0
    texts = ET.parse("packages.svg").getroot().iter("{http://www.w3.org/2000/svg}text")
    drawn = [(text.get("class"), text.text) for text in texts if text.get("class")]
    assert drawn == [
        ("name", "cli"), ("summary", "Commands."), ("imports", "↓ data"),
        ("name", "data"), ("summary", "Datasets, read & prepared."), ("imports", "↓ errors, store"),
        ("name", "report"), ("summary", "Pages."),
        ("name", "errors"), ("summary", "Exceptions."),
        ("name", "store"), ("summary", "Artefacts."),
    ]  # fmt: skip


def test_every_package_of_the_library_has_a_summary_and_a_layer() -> None:
    root = ET.fromstring(packages_svg(PROJECT))
    kinds = [text.get("class") for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert all(after == "summary" for before, after in pairwise(kinds) if before == "name")
    names = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text") if text.get("class") == "name"}
    library = PROJECT / "workflow" / "plumbline"
    assert names == {path.stem for path in library.iterdir() if not path.name.startswith("_")}


def test_the_drawing_of_the_architecture_page_is_up_to_date() -> None:
    assert DRAWN.read_text(encoding="utf-8") == packages_svg(PROJECT), (
        "draw it again: plumbline graph --packages docs/images/packages.svg"
    )


def test_a_folder_without_layers_is_refused(
    clone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(clone)
    (clone / "pyproject.toml").unlink()
    assert main(["graph", "--packages", "packages.svg"]) == 1
    assert "run this command in a clone" in capsys.readouterr().err
    assert not Path("packages.svg").exists()
