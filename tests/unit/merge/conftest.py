"""Folders of finished runs without artefacts: what a merge knows before it reads any."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plumbline.config.resolve import resolve
from plumbline.merge.runs import FinishedRun, read_run
from plumbline.runtime.job import plain_values

STUDY: dict[str, Any] = {
    "name": "whole",
    "datasets": {"reviews": {}, "mock-2": {"train": 96}},
    "models": {"average-tanh": {"hidden": 8}, "bag-of-words": {}},
    "seeds": ["0-1"],
    "measures": ["random", "leave-one-out", "attention"],
    "protocols": {"agreement": {"statistics": ["kendall"]}},
}


@pytest.fixture
def make(tmp_path) -> Callable[..., Path]:
    """The folder of a run of a study with other values of some keys, as the report's job leaves its manifest."""

    def folder(name: str, **changed: Any) -> Path:
        study = resolve({**copy.deepcopy(STUDY), **changed}).study
        results = tmp_path / name / "results"
        results.mkdir(parents=True)
        order = {section: list(getattr(study, section)) for section in ("datasets", "models", "measures")}
        manifest = {"study": plain_values(study.model_dump()), "order": order}
        (results / "manifest.json").write_text(json.dumps(manifest, sort_keys=True))
        return tmp_path / name

    return folder


@pytest.fixture
def run(make) -> Callable[..., FinishedRun]:
    return lambda name, **changed: read_run(make(name, **changed))
