"""What the registry tells a reader about measures and protocols: equation, direction, cost, limits and references."""

import re
from pathlib import Path

import pytest

from plumbline.cli import show_registered
from plumbline.conformance import check
from plumbline.errors import PlumblineError
from plumbline.manual import direction, objects_page
from plumbline.registry import DESCRIPTION, KINDS, Registry
from plumbline.registry.meanings import described_options, docstrings_of, option_meanings

REGISTRY = Registry()
DESCRIBED = [*REGISTRY.all("measure"), *REGISTRY.experiments()]
# A control of this project, and scores of any method.
WITHOUT_PAPER = {"degraded", "imported"}
REFERENCES = {
    (declaration.kind, declaration.name, reference)
    for kind in ("measure", "protocol", "table", "manipulation", "model")
    for declaration in REGISTRY.all(kind)
    for reference in declaration.citation
}
PLUGIN = """
from plumbline.registry import measure, metric, protocol

@metric("mine", direction="lower", range=[0, 1], unit="share", equation="x")
def mine(x): ...

@measure("other", citation=["A (2001), B. C.", "D (2002), E. F."], misleads="Never.")
@measure("first", citation="A (2001), B. C.", cost="None.")
def first(evaluator, instances): ...

@protocol("compared", metrics=["mine", "kendall"])
class Compared: ...
"""


def plugin(folder: Path, *change: str) -> Registry:
    path = folder / "plugin.py"
    path.write_text(PLUGIN.replace(*change) if change else PLUGIN)
    return Registry([path])


@pytest.mark.parametrize("declaration", DESCRIBED, ids=lambda declaration: declaration.name)
def test_every_measure_and_protocol_describes_itself(declaration):
    lacking = [fact for fact in DESCRIPTION if not declaration.facts[fact]]
    assert lacking == (["citation"] if declaration.name in WITHOUT_PAPER else [])
    for fact, most in (("cost", 1), ("misleads", 3)):
        text = declaration.facts[fact]
        assert text[0].isupper() or text[0] == "`"
        assert text.endswith(".") and 1 <= len(re.findall(r"[.?](?= |$)", text)) <= most, text
        assert len(text) < 320


def test_no_two_measures_have_the_same_summary():
    summaries = [measure.summary for measure in REGISTRY.all("measure")]
    assert all(summaries) and len({*summaries}) == len(summaries)


@pytest.mark.parametrize("kind", KINDS)
def test_every_option_has_a_meaning_of_one_short_sentence(kind):
    for declaration in REGISTRY.all(kind):
        meanings = option_meanings(declaration)
        assert [*meanings] == [*declaration.options], declaration.name
        for text in meanings.values():
            assert text[0].isupper() or text[0] in "`kz", (declaration.name, text)
            assert text.endswith(".") and not re.search(r"\w[.?] ", text) and len(text) < 180, (declaration.name, text)


def test_every_described_option_exists():
    """Docstrings describe no option that was renamed or removed."""
    options: dict[str, set[str]] = {}
    for declaration in (declaration for kind in KINDS for declaration in REGISTRY.all(kind)):
        for docstring in docstrings_of(declaration):
            options.setdefault(docstring, set()).update(declaration.options)
    assert {name for docstring in options for name in {*described_options(docstring)} - options[docstring]} == set()


def test_the_closest_docstring_describes_an_option(tmp_path):
    path = tmp_path / "plugin.py"
    own = "Options:\n        power: Exponent,\n            above 0.\n    "
    path.write_text(
        '"""Mine.\n\nOptions:\n    power: Of the file.\n    target: Class.\n"""\n'
        "from plumbline.registry import measure\n\n@measure('mine')\n"
        "def mine(evaluator, instances, *, power: float = 1.0, target: str = 'gold', samples: int = 1):\n"
        f'    """A score.\n\n    {own}"""\n'
    )
    # `samples` is described for measures of the library alone.
    assert option_meanings(Registry([path]).get("measure", "mine")) == {
        "power": "Exponent, above 0.",
        "target": "Class.",
    }


def test_references_have_authors_a_year_and_a_title_and_are_written_alike():
    by_work: dict[str, set[str]] = {}
    for *where, reference in REFERENCES:
        parts = re.fullmatch(r"(?P<work>[A-Z].+ \((?:19|20)\d\d\), .{12})(?P<title>.+)\.", reference)
        assert parts, (where, reference)
        by_work.setdefault(parts["work"], set()).add(reference)
    assert {work: forms for work, forms in by_work.items() if len(forms) > 1} == {}


def test_larger_scores_are_more_important_and_signs_are_named():
    assert {measure.direction for measure in REGISTRY.all("measure")} == {"higher"}
    for name in ("attention", "gradient-norm", "gradient-vocabulary"):
        assert direction(REGISTRY.get("measure", name)) == "higher is more important"
    assert "`sign: signed`" in direction(REGISTRY.get("measure", "gradient")), "a product has a sign"
    assert direction(REGISTRY.get("measure", "lime")) == (
        "higher is more important; with `sign: signed`, scores below 0 speak against the explained output"
    )


@pytest.mark.parametrize("experiment", REGISTRY.experiments(), ids=lambda declaration: declaration.name)
def test_metrics_of_every_protocol_have_a_direction_and_a_range(experiment):
    metrics = REGISTRY.metrics_of(experiment)
    assert metrics
    assert all(metric.direction in ("higher", "lower") and metric.range and metric.equation for metric in metrics)


def test_experiments_are_all_protocols_roar_and_adversaries():
    names = [declaration.name for declaration in REGISTRY.experiments()]
    assert names == sorted([*REGISTRY.names("protocol"), "roar", "adversary"])


def test_a_plugin_may_describe_itself(tmp_path):
    registry = plugin(tmp_path)
    first, other = (registry.get("measure", name) for name in ("first", "other"))
    assert first.citation == ["A (2001), B. C."] and (first.cost, first.misleads) == ("None.", "")
    # What is not stated again is that of the lowest decorator.
    assert other.citation == ["A (2001), B. C.", "D (2002), E. F."] and (other.cost, other.misleads) == (
        "None.",
        "Never.",
    )
    metrics = registry.metrics_of(registry.get("protocol", "compared"))
    assert [(metric.name, metric.direction) for metric in metrics] == [("mine", "lower"), ("kendall", "higher")]
    assert registry.get("protocol", "compared").citation == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('cost="None."', "cost=3"), "states cost=3; it must be text"),
        (('citation="A (2001), B. C."', "citation=2001"), "states citation=2001; it must be a list"),
        (('citation="A (2001), B. C."', "citation=[2001]"), r"states citation=\[2001\]; it must contain only strings"),
        (('cost="None."', 'cots="None."'), "states 'cots', which is not a known argument; did you mean 'cost'"),
    ],
)
def test_a_faulty_description_gets_one_sentence(tmp_path, change, message):
    with pytest.raises(PlumblineError, match=message):
        plugin(tmp_path, *change)


def test_an_unknown_metric_gets_the_nearest(tmp_path):
    registry = plugin(tmp_path, '"kendall"', '"kendal"')
    with pytest.raises(PlumblineError, match=r"no metric 'kendal'; did you mean 'kendall'\?"):
        registry.metrics_of(registry.get("protocol", "compared"))
    fault = (
        "The protocol 'compared': its declaration states the metric 'kendal', which does not exist; did you mean "
        "'kendall'?"
    )
    assert fault in check("protocol", "compared", registry)
    assert fault not in check("protocol", "compared", plugin(tmp_path))


def test_the_reference_shows_descriptions_first_and_in_order():
    pages = objects_page("measure", REGISTRY) + objects_page("protocol", REGISTRY)
    sections = re.split(r"^## `(.+)`$", pages, flags=re.MULTILINE)
    shown = dict(zip(sections[1::2], sections[2::2], strict=True))
    for name, middle in (("lime-published", "direction"), ("agreement", "metric"), ("roar", "metric")):
        labels = [
            line.removeprefix("- ").split(":")[0].split(" ")[0] for line in shown[name].splitlines() if line[:2] == "- "
        ]
        order = ["equation", middle, "cost", "when", "citation"]
        assert list(dict.fromkeys(labels))[:5] == order
    # An equation with backticks is still code.
    assert "- equation: `` |β_t| as of `lime`, token t of both texts one feature ``\n" in shown["lime-published"]


def test_the_list_of_measures_stays_short(capsys):
    show_registered("measure", [])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(REGISTRY.names("measure"))
    assert not any(measure.cost in line for measure, line in zip(REGISTRY.all("measure"), lines, strict=True))
