import ast
import os
from pathlib import Path

import pytest

from plumbline.registry import DESCRIPTION, FACTS, Kind, Registry, load
from plumbline.runtime.provenance import code_hash, content_hash, module_file, reachable

SCRIPTS = Path(__file__).parents[3] / "workflow" / "scripts"


def names(script: str) -> set[str]:
    return {"/".join(path.parts[-2:]) for path in reachable(SCRIPTS / f"{script}.py")}


def test_training_does_not_reach_scores_figures_or_report():
    assert "training/trainer.py" in names("train")
    rooms = ("protocols", "figures", "report", "tables", "papers", "attribution")
    beyond = {name for name in names("train") if name.split("/")[0] in rooms}
    assert beyond == {"attribution/files.py", "attribution/schemas.py"}, "by which retraining reads importances"


def test_jobs_reach_no_schema_of_tables_that_they_neither_read_nor_write():
    schemas = {path for path in reachable(SCRIPTS / "prepare.py") if path.name == "schemas.py"}
    assert {path.parent.name for path in schemas} == {"data"}
    assert not [name for name in names("attribute") if name.startswith(("protocols/", "papers/", "config/resolve"))]


def test_scoring_reaches_statistics_through_the_protocol():
    protocol = module_file("plumbline.protocols.agreement.score")
    assert protocol is not None
    assert module_file("plumbline.protocols.agreement.rank_statistics") in reachable(protocol)


def test_measures_do_not_reach_each_other():
    gradient = module_file("plumbline.attribution.gradient")
    assert gradient is not None
    assert module_file("plumbline.attribution.leave_one_out") not in reachable(gradient, SCRIPTS / "attribute.py")


def test_only_meaning_counts(tmp_path: Path):
    path = tmp_path / "a.py"
    hashes = []
    for text in ('"""Doc."""\nx = 1\n', "# comment\nx   =  1\n", '"""Other doc."""\n\n\nx = 1  # why\n', "x = 2\n"):
        path = tmp_path / f"{len(hashes)}.py"
        path.write_text(text)
        hashes.append(code_hash(path))
    assert hashes[0] == hashes[1] == hashes[2] != hashes[3]


def test_the_version_number_does_not_count(tmp_path: Path):
    hashes = []
    for text in ('__version__ = "1.0.0"\nx = 1\n', '__version__ = "2.0.0"\nx = 1\n', 'version = "1.0.0"\nx = 1\n'):
        path = tmp_path / f"{len(hashes)}.py"
        path.write_text(text)
        hashes.append(code_hash(path))
    assert hashes[0] == hashes[1] != hashes[2]


def test_all_versions_of_python_hash_alike(tmp_path: Path):
    """Their syntax trees differ: 3.12 has type parameters, and an empty string after a nested format."""
    path = tmp_path / "a.py"
    path.write_text(
        "class Net:\n    width: int = 3\n\n    def show(self, x):\n"
        '        return f"{x:>{self.width}} of {x!r}", None, [], lambda: x\n'
    )
    assert code_hash(path) == "8f3c5c90bebbfdee", "the hash of 3.11, 3.12 and 3.13"


CODE = """from typing import TYPE_CHECKING
from pydantic import BaseModel, Field
from plumbline.registry import measure
if TYPE_CHECKING:
    from {hidden}

class Recipe(BaseModel):
    size: int = Field({size}, gt=0, description="{described}")

@measure("mine", equation="{equation}", cheap={cheap})
def mine(evaluator, instances):
    return None
"""
DEFAULTS = {"hidden": "a import b", "size": 1, "described": "How large.", "equation": "x", "cheap": True}


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"hidden": "plumbline.models.trainer import Trainer"}, True),
        ({"described": "The size."}, True),
        ({"equation": "|x|"}, True),
        ({"size": 2}, False),
        ({"cheap": False}, False),
    ],
)
def test_descriptions_and_code_for_type_checkers_do_not_count(tmp_path: Path, change: dict[str, object], same: bool):
    before, after = tmp_path / "before.py", tmp_path / "after.py"
    before.write_text(CODE.format(**DEFAULTS))
    after.write_text(CODE.format(**DEFAULTS | change))
    assert (code_hash(before) == code_hash(after)) == same
    names = {path.name for path in reachable(before)}
    assert {path.name for path in reachable(after)} == names ^ {"before.py", "after.py"}


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        *((kind, DESCRIPTION) for kind in ("measure", "protocol", "table")),
        *((kind, {"metrics": []}) for kind in ("protocol", "table")),
        *((kind, {"summary": ""}) for kind in ("dataset", "manipulation", "model", "measure")),
        ("manipulation", {"equation": "", "citation": []}),
        ("model", {"citation": []}),
    ],
)
def test_what_only_describes_an_object_does_not_count(tmp_path: Path, kind: str, facts: dict[str, object]):
    """Neither a change of it nor its absence: no job is run again when a reference is corrected."""
    assert facts.items() <= FACTS[kind].items()

    def declared(number: int, stated: str) -> str:
        path = tmp_path / f"{number}.py"
        path.write_text(f"@{kind}('mine'{stated})\ndef mine(evaluator):\n    return None\n")
        return code_hash(path)

    bare = declared(0, "")
    for number, fact in enumerate(facts, start=1):
        values = ["['kendall']", "['spearman']"] if fact == "metrics" else ["'Some text.'", "'Other text.'"]
        assert {declared(10 * number + i, f", {fact}={value}") for i, value in enumerate(values)} == {bare}
    assert declared(1000, ", option='other'") != bare


@pytest.mark.parametrize("kind", ["measure", "protocol"])
def test_jobs_of_the_library_do_not_depend_on_descriptions(tmp_path: Path, kind: Kind):
    """A file of the library without its descriptions has the same hash."""
    for number, path in enumerate({declaration.path for declaration in Registry().all(kind)}):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [call for node in ast.walk(tree) for call in getattr(node, "decorator_list", [])]
        for call in calls:
            if isinstance(call, ast.Call):
                call.keywords = [keyword for keyword in call.keywords if keyword.arg not in (*DESCRIPTION, "metrics")]
        stripped = tmp_path / f"{number}.py"
        stripped.write_text(ast.unparse(tree), encoding="utf-8")
        assert code_hash(stripped) == code_hash(path)


def test_files_that_a_plugin_imports_from_its_folder_count(tmp_path: Path):
    (tmp_path / "helper_of_mine.py").write_text("FACTOR = 2\n")
    plugin = tmp_path / "my_plugin.py"
    plugin.write_text(
        "from helper_of_mine import FACTOR\nimport numpy as np\n\ndef doubled(x):\n    return FACTOR * x\n"
    )
    assert reachable(plugin) == {plugin, tmp_path / "helper_of_mine.py"}
    assert load(f"{plugin}:doubled")(21) == 42


def test_the_content_of_data_counts_and_its_date_and_place_do_not(tmp_path: Path):
    for folder in ("one", "other"):
        (tmp_path / folder / "a").mkdir(parents=True)
        (tmp_path / folder / "a" / "x.csv").write_text("1")
    first = content_hash(str(tmp_path / "one"))
    assert first == content_hash(str(tmp_path / "other"))
    os.utime(tmp_path / "one" / "a" / "x.csv", (1, 1))
    (tmp_path / "one" / ".git").mkdir()
    (tmp_path / "one" / ".git" / "x").write_text("hidden")
    assert content_hash(str(tmp_path / "one")) == first
    (tmp_path / "one" / "a" / "x.csv").rename(tmp_path / "one" / "a" / "y.csv")
    renamed = content_hash(str(tmp_path / "one"))
    (tmp_path / "other" / "a" / "x.csv").write_text("2")
    assert len({first, renamed, content_hash(str(tmp_path / "other"))}) == 3
    files = [str(tmp_path / "one" / "a" / "y.csv"), str(tmp_path / "absent.csv")]
    assert content_hash(*files) != content_hash(files[0])
