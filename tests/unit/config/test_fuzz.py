"""Any config is either valid or refused in one sentence."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.config.resolve import read_config
from plumbline.config.schema import Study
from plumbline.errors import PlumblineError
from tests.parsed import parsed

PROJECT = Path(__file__).parents[3]
FILES = [PROJECT / "config.yaml", *sorted((PROJECT / "studies").glob("*.yaml"))]
STUDIES = {path.stem: read_config(path) for path in FILES}
PLACES = [PROJECT, PROJECT / "studies"]
# A small study of everything, so that most examples do not spend their time on a large one.
SMALL: dict[str, Any] = {
    "name": "small",
    "plugins": [str(PROJECT / "tests/pipeline/plugin.py")],
    "datasets": {"mock-2": {"train": 96, "preparation": {"embedding": {"dimensions": 12}}}, "echo": {}, "reviews": {}},
    "manipulations": {"articles": {"datasets": ["reviews"], "r": [0.5, 0.6], "draws": 2}},
    "models": {
        "average-tanh": {"hidden": 8, "training": {"epochs": 3}, "seeds": ["0", "1-2"]},
        "bag-of-words": {"datasets": ["mock-2"], "measures": ["random"]},
        "given": {"kind": "average-tanh", "attention_of": "average-tanh.attefa"},
        "minilm": {"datasets": ["mock-2"], "checkpoint": "sentence-transformers/all-MiniLM-L6-v2"},
    },
    "seeds": ["0-1"],
    "adversaries": {"attefa": {"datasets": ["mock-2"], "of": ["average-tanh"], "training": {"epochs": 3}}},
    "roar": {"relative": {"levels": [50], "models": ["average-tanh"], "measures": ["random", "gradient"]}},
    "measures": {
        "attention": {}, "gradient": {}, "position": {}, "random": {}, "mine": {"kind": "captum", "method": "Lime"},
    },
    "explain": ["test"],
    "protocols": {"agreement": {"statistics": ["kendall"]}, "erasure": {"ratios": [20, 50]}},
    "compute": {"token_budget": 100},
    "report": {"examples": 4},
}  # fmt: skip
WORDS = [*Study.model_fields, "kind", "training", "preparation", "checkpoint", "method", "path", "levels", "between"]

ODD = [
    "mock-2",
    "0-1",
    "~nobody/x",
    "a" * 300,
    "a/b/c",
    "a\nb",
    "\0",
    ".",
    "..",
    "/",
    "$HOME",
    "ü",
    "tests",
    "config.yaml",
]

text = st.one_of(st.text(max_size=8), st.sampled_from(WORDS), st.sampled_from(ODD))
number = st.one_of(st.integers(-3, 3), st.integers(), st.floats())
scalar = st.one_of(st.none(), st.booleans(), number, text)
key = st.one_of(text, text, text, scalar)
value = st.recursive(
    scalar, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(key, inner, max_size=3)), max_leaves=8
)
usual = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


def check(config: dict[Any, Any]) -> None:
    """Either valid or refused in one sentence, also when the raw files must exist, as for a run."""
    try:
        parsed(config, PLACES, raw_there=False)
        parsed(config, PLACES)
    except PlumblineError as error:
        assert str(error).strip() and "\n" not in str(error), repr(str(error))


def positions(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a config with each of its keys."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from positions(value[key])


def mutate(data: st.DataObject, config: dict[str, Any]) -> None:
    """Delete, replace, rename or repeat something."""
    container, at = data.draw(st.sampled_from(list(positions(config))) if config else st.just((config, "name")))
    what = data.draw(st.sampled_from(["delete", "replace", "replace", "replace", "rename", "repeat", "swap"]))
    if what == "replace":
        container[at] = data.draw(value)
    elif what == "swap":
        source, source_at = data.draw(st.sampled_from(list(positions(config))))
        container[at] = copy.deepcopy(source[source_at])
    elif what == "delete":
        del container[at]
    elif isinstance(container, list):
        container.append(copy.deepcopy(container[at]))
    else:
        moved = container.pop(at) if what == "rename" else copy.deepcopy(container[at])
        container[data.draw(key)] = moved


@pytest.fixture(autouse=True)
def without_settings(monkeypatch):
    monkeypatch.delenv("PLUMBLINE_DATA", raising=False)


@given(value)
@settings(usual, max_examples=200)
def test_any_value(config):
    check(config if isinstance(config, dict) else {"name": config})


@given(st.fixed_dictionaries({}, optional={name: value for name in Study.model_fields}))
@settings(usual, max_examples=200)
def test_any_section(sections):
    check({**SMALL, **sections})


@given(st.data())
@settings(usual, max_examples=600)
def test_changes_of_a_small_study(data):
    config = copy.deepcopy(SMALL)
    for _ in range(data.draw(st.integers(1, 3))):
        mutate(data, config)
    check(config)


@pytest.mark.parametrize("study", STUDIES)
@given(data=st.data())
@settings(usual, max_examples=20)
def test_changes_of_the_studies(study, data):
    config = copy.deepcopy(STUDIES[study])
    mutate(data, config)
    check(config)
