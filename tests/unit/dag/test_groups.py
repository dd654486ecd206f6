"""Groups of measures that share a job."""

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
    """The group of each measure of a study with two plug-ins of the same file name."""
    files = {"a/mine.py": [("early", True), ("late", True), ("slow", False)], "b/mine.py": [("other", True)]}
    for file, measures in files.items():
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text(IMPORT + "".join(MEASURE.format(*fields) for fields in measures))

    def of(*measures):
        config = {
            "plugins": [str(tmp_path / file) for file in files],
            "datasets": ["mock-2"],
            "models": ["average-tanh"],
            "measures": dict(measures),
        }
        resolved = resolve(config)
        groups = MeasureGroups(resolved, list_runs(resolved))
        return {name: groups.of(name) for name, _ in measures}

    return of


def test_cheap_measures_share_a_job_with_those_of_the_same_file(groups):
    names = ("gradient", "early", "leave-one-out", "late", "other", "slow", "random")
    group_of = groups(*((name, None) for name in names))
    assert group_of["gradient"] == group_of["random"] == "cheap"
    assert group_of["early"] == group_of["late"] == "cheap-mine-1" and group_of["other"] == "cheap-mine-2"
    assert group_of["leave-one-out"] == "leave-one-out" and group_of["slow"] == "slow"


def test_another_measure_does_not_change_the_groups_of_the_others(groups):
    few = groups(("early", None), ("other", None))
    more = groups(("random", None), ("slow", None), ("leave-one-out", None), ("early", None), ("other", None))
    assert few.items() <= more.items()


def test_no_group_has_the_name_of_a_measure(groups):
    group_of = groups(("early", None), ("cheap-mine-1", {"kind": "slow"}))
    assert group_of["early"] != group_of["cheap-mine-1"] == "cheap-mine-1"
