"""One version everywhere, and the files that a release needs."""

import re
import tomllib

import yaml

from plumbline import __version__
from plumbline.project import PROJECT

TEMPLATES = PROJECT / ".github" / "ISSUE_TEMPLATE"


def test_versions_agree():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text(encoding="utf-8"))
    (newest, *_) = re.findall(r"^## (\S+)", (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert {project["version"], citation["version"], newest} == {__version__}


def test_the_licence_is_the_same_everywhere():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text(encoding="utf-8"))
    assert project["license"] == citation["license"] == "MIT"
    assert (PROJECT / "LICENSE").read_text(encoding="utf-8").startswith("MIT License")


def test_every_study_of_the_mission_is_cited():
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text(encoding="utf-8"))
    titles = {reference["title"] for reference in citation["references"]}
    assert "Attention is not Explanation" in titles and len(titles) >= 5


def test_issue_templates_are_complete():
    names = set()
    for file in TEMPLATES.glob("*.md"):
        _, header, body = file.read_text(encoding="utf-8").split("---\n", 2)
        assert {"name", "about"} <= yaml.safe_load(header).keys() and body.strip(), file.name
        names.add(file.stem)
    assert names == {"fault", "number", "method"}


def test_the_readme_is_short():
    lines = (PROJECT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 120 and max(map(len, lines)) <= 120
