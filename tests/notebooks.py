"""Runs the notebooks of docs/tutorials/ without Jupyter: `python -m tests.notebooks` stores their outputs in them."""

import ast
import base64
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs" / "tutorials"
NOTEBOOKS = sorted(DOCS.glob("*.ipynb"))
# Methods by which an object displays itself, and the type of what they return.
DISPLAYED = {"_repr_html_": "text/html", "_repr_png_": "image/png"}


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _shown(value: Any) -> dict[str, Any]:
    """A value as Jupyter displays it."""
    data: dict[str, Any] = {"text/plain": _lines(repr(value))}
    for method, kind in DISPLAYED.items():
        shown = getattr(value, method, lambda: None)()
        if shown is not None:
            data[kind] = base64.b64encode(shown).decode() if isinstance(shown, bytes) else _lines(shown)
    return data


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _run_cell(source: str, namespace: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """The outputs of a cell: what it prints, and the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed), redirect_stderr(io.StringIO()):
        exec(compile(tree, f"cell {number}", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        shown = {"data": _shown(value), "metadata": {}}
        outputs.append({"output_type": "execute_result", "execution_count": number, **shown})
    return outputs


def run_notebook(path: Path) -> dict[str, Any]:
    """The notebook with the outputs of a new run in its folder."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with _working_in(path.parent):
        for number, cell in enumerate(code, start=1):
            cell["outputs"] = _run_cell("".join(cell["source"]), namespace, number)
            cell["execution_count"] = number
    return notebook


if __name__ == "__main__":
    for path in [Path(name) for name in sys.argv[1:]] or NOTEBOOKS:
        path.write_text(json.dumps(run_notebook(path), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
