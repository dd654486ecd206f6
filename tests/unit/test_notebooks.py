"""The notebooks of docs/tutorials/ run, and hold the outputs of a run."""

import json

import pytest

from ..notebooks import NOTEBOOKS, run_notebook

# Bytes of a notebook with its outputs.
LARGEST = 400_000


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def kinds(cell):
    """The kinds of output of a cell."""
    return [sorted(output.get("data", [output["output_type"]])) for output in cell["outputs"]]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_holds_its_outputs(path):
    stored, new = json.loads(path.read_text(encoding="utf-8")), run_notebook(path)
    assert len(stored["cells"]) <= 10 and path.stat().st_size < LARGEST
    for before, after in zip(code_cells(stored), code_cells(new), strict=True):
        assert before["source"] == after["source"] and kinds(before) == kinds(after), before["source"]
        assert before["execution_count"] == after["execution_count"]


def test_there_are_two_notebooks():
    assert [path.stem for path in NOTEBOOKS] == ["is-it-faithful", "read-a-study"]
