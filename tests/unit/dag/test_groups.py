"""Which measures share a job."""

import pytest

from plumbline.config.resolve import resolve
from plumbline.config.runs import list_runs
from plumbline.dag.groups import MeasureGroups

MEASURE = """
@measure("{0}", cheap={1}, equation="t")
def {0}(evaluator, instances):
    \"\"\"A measure.\"\"\"
"""
IMPORT = "from plumbline.registry import measure\n"


@pytest.fixture
def groups(tmp_path):
    """The group of each measure of a study that has two plug-ins with files of one name."""
    files = {"a/mine.py": [("early", True), ("late", True), ("slow", False)], "b/mine.py": [("other", True)]}
    for file, measures in files.items():
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text(IMPORT + "".join(MEASURE.format(*about) for about in measures))

    def of(*measures):
        config = {
            "plugins": [str(tmp_path / file) for file in files],
            "datasets": ["mock-2"],
            "models": ["average-tanh"],
            "measures": dict(measures),
        }
        resolved = resolve(config)
        found = MeasureGroups(resolved, list_runs(resolved))
        return {name: found.of(name) for name, _ in measures}

    return of


def test_cheap_measures_share_a_job_with_those_of_their_own_file(groups):
    names = ("gradient", "early", "leave-one-out", "late", "other", "slow", "random")
    found = groups(*((name, None) for name in names))
    assert found["gradient"] == found["random"] == "cheap"
    assert found["early"] == found["late"] == "cheap-mine-1" and found["other"] == "cheap-mine-2"
    assert found["leave-one-out"] == "leave-one-out" and found["slow"] == "slow"


def test_another_measure_leaves_the_groups_of_the_others_alone(groups):
    few = groups(("early", None), ("other", None))
    more = groups(("random", None), ("slow", None), ("leave-one-out", None), ("early", None), ("other", None))
    assert few.items() <= more.items()


def test_no_group_has_the_name_of_a_measure(groups):
    found = groups(("early", None), ("cheap-mine-1", {"kind": "slow"}))
    assert found["early"] != found["cheap-mine-1"] == "cheap-mine-1"
