from pathlib import Path

import pytest

from plumbline.attribution.importances import AttributionOptions
from plumbline.errors import PlumblineError
from plumbline.registry import Registry, declarations_in, load

PLUGIN = '''
from typing import Literal

import numpy as np
from plumbline.attribution.importances import Importances
from plumbline.registry import measure


@measure("word-length-squared", power=2)
@measure("word-length", needs=["gradient"], equation="L^p")
def word_length(evaluator, instances, *, power: int = 1, sign: Literal["absolute", "signed"] = "absolute"):
    """How long the id of a word is."""
    return Importances([np.arange(m.sum(), dtype=np.float32) ** power for m in instances.maskable])
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "word_length.py"
    path.write_text(PLUGIN)
    return path


def test_declaration_is_read_without_import(tmp_path: Path):
    path = tmp_path / "explosive.py"
    path.write_text("raise RuntimeError\n" + PLUGIN)
    declared = Registry([path]).get("measure", "word-length")
    assert declared.options["power"].default == 1
    assert declared.options["sign"].annotation == "Literal['absolute', 'signed']"
    assert declared.summary == "How long the id of a word is."


def test_stacked_declarations_share_facts_and_preset_options(plugin):
    registry = Registry([plugin])
    squared = registry.get("measure", "word-length-squared")
    assert squared.needs == ["gradient"] and squared.equation == "L^p"
    assert squared.options["power"].default == 2
    assert registry.get("measure", "word-length").options["power"].default == 1


def test_load_imports_library_and_plugin_objects(plugin):
    assert load(Registry([plugin]).get("measure", "word-length").pointer).__name__ == "word_length"
    assert load(Registry().get("measure", "attention").pointer).__name__ == "attention"


def test_misspelt_name_gets_the_nearest():
    with pytest.raises(PlumblineError, match=r"no measure 'atention'; did you mean 'attention'\?"):
        Registry().get("measure", "atention")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("power: int = 1", "power=1"), "option 'power' needs a type and a default"),
        (("power: int", "power: np.ndarray"), "must be typed with"),
        (("power=2", "pwer=2"), "states 'pwer', which is not a known argument; did you mean 'power'"),
        (
            ('"word-length-squared"', "str(1)"),
            r"its name is `str\(1\)`, which is not a literal; .* write the value itself\.",
        ),
        (("def word_length(", "def word_length(("), "is not valid Python"),
        (('"word-length",', '"attention",'), "declared twice"),
    ],
)
def test_faulty_declaration_gets_one_sentence(plugin, change, complaint):
    plugin.write_text(PLUGIN.replace(*change))
    with pytest.raises(PlumblineError, match=complaint):
        Registry([plugin])


@pytest.mark.parametrize(
    ("written", "literal"),
    [
        ('files={s: f"{s}.tsv" for s in ("train", "test")}', "{'train': 'train.tsv', 'test': 'test.tsv'}"),
        ("limits={'power': [1, 2 * 8]}", "{'power': [1, 16]}"),
        ("limits=LIMITS", None),
        ("limits=open('/dev/null')", None),
    ],
)
def test_an_argument_that_is_not_a_literal_is_refused_with_the_literal_to_write(tmp_path, written, literal):
    path = tmp_path / "plugin.py"
    path.write_text(f"@dataset('mine', {written})\ndef mine(raw, seed):\n    pass\n")
    with pytest.raises(PlumblineError) as caught:
        Registry([path])
    name = written.partition("=")[0]
    message = str(caught.value)
    assert f"`{name}` is `" in message and "which is not a literal" in message and "\n" not in message
    assert message.endswith(f"write the value itself: {literal}." if literal else "write the value itself.")


def test_a_fact_that_is_true_or_false_must_be(tmp_path: Path):
    path = tmp_path / "odd.py"
    path.write_text('from plumbline.registry import measure\n\n@measure("odd", cheap="yes")\ndef odd(e, i):\n    ...\n')
    with pytest.raises(PlumblineError, match=r"states cheap='yes'; it must be True or False"):
        list(declarations_in(path))


def test_missing_plugin_file():
    with pytest.raises(PlumblineError, match=r"plug-in file 'nowhere\.py' does not exist"):
        Registry(["nowhere.py"])


GROUPED = '''
from dataclasses import dataclass
from typing import Literal

import numpy as np
from plumbline.attribution.importances import AttributionOptions, Importances
from plumbline.registry import measure


@dataclass(frozen=True)
class Powers:
    power: int = 1
    base: float = 2.0


@measure("grouped-gold", target="gold", power=3)
@measure("grouped", limits={"power": [1, None]})
def grouped(evaluator, instances, *, first: bool = True, options: AttributionOptions = AttributionOptions(),
            powers: Powers = Powers(), last: str = "z"):
    """Its arguments."""
    return first, options, powers, last
'''


def test_fields_of_a_dataclass_are_options_in_its_place(tmp_path: Path):
    path = tmp_path / "grouped.py"
    path.write_text("raise RuntimeError\n" + GROUPED)
    declared = Registry([path]).get("measure", "grouped-gold")
    assert list(declared.options) == [
        "first", "target", "function", "baseline", "texts", "specials", "power", "base", "last"
    ]  # fmt: skip
    assert declared.options["target"].annotation == "Literal['predicted', 'gold'] | int"
    assert declared.options["target"].default == "gold" and declared.options["power"].default == 3
    assert declared.limits == {"power": [1, None]}
    assert Registry([path]).get("measure", "grouped").options["target"].default == "predicted"


def test_a_function_takes_the_fields_of_its_dataclass_as_keywords(tmp_path: Path):
    path = tmp_path / "grouped.py"
    path.write_text(GROUPED)
    measure = load(Registry([path]).get("measure", "grouped").pointer)
    first, options, powers, last = measure(None, None, target=1, specials=False, base=0.5, last="y")
    assert (first, last) == (True, "y") and (powers.power, powers.base) == (1, 0.5)
    assert options == AttributionOptions(target=1, specials=False)
    assert measure(None, None, options=options)[1] == options
    with pytest.raises(TypeError, match="tarqet"):
        measure(None, None, tarqet=1)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("first: bool = True", 'target: str = "a"'), "option 'target' is declared twice"),
        (("= Powers()", "= Powers(power=2)"), "option 'powers: Powers' must be typed with"),
        (("@dataclass(frozen=True)", ""), "option 'powers: Powers' must be typed with"),
        (("power: int = 1", "power: int"), "option 'power' needs a type and a default"),
    ],
)
def test_faulty_dataclass_gets_one_sentence(tmp_path, change, complaint):
    path = tmp_path / "grouped.py"
    path.write_text(GROUPED.replace(*change))
    with pytest.raises(PlumblineError, match=complaint):
        Registry([path])
