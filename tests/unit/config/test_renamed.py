"""A config or plug-in that uses an old name is refused with the new one."""

import json

import pytest

from plumbline.config.resolve import resolve
from plumbline.errors import RENAMED, PlumblineError, nearest
from plumbline.registry import FACTS, KINDS, Registry

NAMES = json.loads(RENAMED.read_text(encoding="utf-8"))
STUDY = {"datasets": ["movie"], "models": ["bilstm-tanh"], "measures": ["attention", "gradient"]}


def test_either_the_old_or_the_new_name_exists():
    declarations = [declaration for kind in KINDS for declaration in Registry().all(kind)]
    names = {declaration.name for declaration in declarations} | {fact for facts in FACTS.values() for fact in facts}
    names |= {option for declaration in declarations for option in declaration.options}
    values = " ".join(option.annotation for declaration in declarations for option in declaration.options.values())
    for old, new in NAMES.items():
        exists = [name in names or repr(name) in values for name in (old, new)]
        assert exists.count(True) == 1, (old, new)


@pytest.mark.parametrize(("old", "new"), NAMES.items())
def test_an_old_name_is_answered_with_the_new_one_where_that_is_allowed(old, new):
    assert nearest(old, ["something", new]) == f"it was renamed to '{new}'."
    assert "renamed" not in nearest(old, ["something"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"pieces": "joined"},
            "`protocols.agreement.pieces` (set to 'joined') is not a known key; it was renamed to 'subwords'.",
        ),
        (
            {"subwords": "joined"},
            "`protocols.agreement.subwords` is 'joined'; it was renamed to 'summed'. Choose from: separate, summed. "
            "`subwords`: Whether subwords are ranked on their own (`separate`), or words by the sum of their "
            "subwords (`summed`).",
        ),
    ],
)
def test_an_old_option_is_refused(options, sentence):
    with pytest.raises(PlumblineError) as caught:
        resolve({**STUDY, "protocols": {"agreement": options}})
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("dataset", "pieces_training={}", "subword_training"),
        ("measure", "tells=[]", "covers"),
        ("table", "asks=[]", "params"),
    ],
)
def test_an_old_fact_of_a_plugin_is_refused(kind, old, new, tmp_path):
    plugin = tmp_path / "mine.py"
    plugin.write_text(f'from plumbline.registry import {kind}\n\n@{kind}("mine", {old})\ndef mine(): ...\n')
    with pytest.raises(
        PlumblineError,
        match=f"states '{old.partition('=')[0]}', which is not a known argument; it was renamed to '{new}'",
    ):
        resolve({**STUDY, "plugins": [str(plugin)]})


def test_an_old_dataset_is_refused():
    with pytest.raises(PlumblineError, match=r"There is no dataset 'pictures'; it was renamed to 'image-folder'\."):
        resolve({**STUDY, "datasets": {"mine": {"kind": "pictures"}}})
