"""The report from small handmade tables: its sections, its numbers, and that no text of a dataset becomes markup."""

import base64
import hashlib
import json
import random
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from plumbline.protocols.counterfactual import BINS
from plumbline.registry import Registry
from plumbline.report import about, adversary, agreement, counterfactual, published, tables
from plumbline.report.build import Content, embedded, page
from plumbline.report.examples import Block, Rival, Told, choose_texts, collect, common_tokens, most_probable, taus
from plumbline.report.inputs import read_blocks, read_figures, read_tables
from plumbline.report.manifest import manifest
from plumbline.report.pictures import KINDS, order, picture, slim
from plumbline.report.truth import rationales_table, truth_table
from plumbline.store import ARTEFACTS, write_table

HOSTILE = [
    "<script>alert(1)</script>",
    "</script>",
    "<!--",
    "\"'&amp;",
    "<img src=x onerror=alert(1)>",
    "שלום",
    "👩‍🔬",
    "a\u2028b",
]
CLASSES = ["negative", "<b>positive</b>"]
MEASURES = ["attention", "gradient"]
WHOLE = ["attefa-violins", "correlation-matrices", "mean-differences", "rule-graph"]
BY_CELL = [kind for kind in KINDS if kind not in WHOLE]
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><circle id="a" r="4"/></svg>'


class Elements(HTMLParser):
    """All elements of a page, with their attributes, the text of each script and all other text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._in_script = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = self._in_script and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data
        else:
            self.text += data


def table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    schema = ARTEFACTS[name].schema
    return pa.Table.from_pylist([{field.name: row.get(field.name) for field in schema} for row in rows], schema)


def block(model: str = "bilstm-tanh", seeds: tuple[int, ...] = (0, 1), texts: int = 6) -> Block:
    """Texts of eight words; the even ones are negative, and texts 4 and 5 are predicted wrongly. Only the odd ones have
    an adversary at the smaller epsilon."""
    rng = np.random.default_rng(0)
    keys = [{"seed": seed, "split": "test", "instance": i} for seed in seeds for i in range(texts)]
    told = [[0.9, 0.1] if (key["instance"] % 2 == 0) == (key["instance"] < 4) else [0.2, 0.8] for key in keys]
    predictions = [key | {"label": key["instance"] % 2, "probabilities": p} for key, p in zip(keys, told, strict=True)]
    importances = [
        (measure, table("attributions", [key | {"scores": rng.normal(size=len(HOSTILE)).tolist()} for key in keys]))
        for measure in MEASURES
    ]
    adversaries = [
        key
        | {"predicted_class": 0, "length": 8, "epsilon": epsilon, "feasible": int(epsilon > 0.01) + key["instance"] % 2}
        | {"jsd": 0.51234, "change": 0.012345, "adversary": [0.125] * 8}
        for key in keys
        for epsilon in (0.05, 0.01)
    ]
    return Block("sst", model, table("predictions", predictions), importances, table("adversaries", adversaries))


def instances(texts: int = 6) -> pa.Table:
    rows = [
        {"split": "test", "instance": i, "label": i % 2, "tokens": ["<sos>", *HOSTILE], "ids": list(range(9))}
        | {"maskable": [False] + [True] * 8, "tokens_b": ["<sos>", "who", "<is>", "?", "<eos>"]}
        | {"maskable_b": [False, True, True, True, False], "evidence": [False] * 7 + [True] * 2}
        for i in range(texts)
    ]
    return table("instances", rows)


def summary() -> dict[str, Any]:
    split = {"instances": 6, "instances_per_class": dict.fromkeys(CLASSES, 3), "mean_length": 8.0}
    split |= {"shortest": 8, "longest": 8, "unknown_share": 0.125}
    dropped = {"length filter": {"test": 2}, "limit": {"test": 0}}
    return {"dataset": "sst", "classes": CLASSES, "splits": {"test": split, "train": split}, "dropped": dropped}


def agreement_frame() -> pd.DataFrame:
    rows = [
        {"dataset": "sst", "variant": "plain", "model": "bilstm-tanh", "seed": seed, "measure_a": "attention"}
        | {"measure_b": "gradient", "statistic": "kendall", "predicted_class": label, "n": 3, "dropped": 1}
        | {"tokens": "text"}
        | {"mean": 0.2 + 0.2 * seed, "std": 0.1, "significant_fraction": 0.5, "status": "ok"}
        for seed in range(2)
        for label in ("0", "1", "all")
    ]
    return table("agreement", rows).to_pandas()


CELL = {"dataset": "sst", "variant": "plain", "model": "bilstm-tanh"}


def permutation_frame() -> pd.DataFrame:
    """Two seeds; the second has three texts of four in the first bin, the first seed one of four."""
    rows = [
        CELL | {"seed": seed, "predicted_class": label, "max_attention_bin": bin_, "n": n, "median_change_mean": mean}
        for label in ("0", "all")
        for seed, one in enumerate((1, 3))
        for bin_, n, mean in (("all", 4, 0.3 + 0.2 * seed), (BINS[0], one, 0.1 + 0.4 * seed), (BINS[3], 4 - one, 0.9))
    ]
    return table("permutation", rows).to_pandas()


def adversarial_frame() -> pd.DataFrame:
    rows = [
        CELL
        | {"seed": seed, "predicted_class": label, "max_attention_bin": bin_, "n": 4, "epsilon": epsilon}
        | {"feasible_fraction": 0.5 + 5 * epsilon, "jsd_mean": 0.3 + 0.1 * seed}
        for label in ("0", "all")
        for seed in range(2)
        for bin_ in ("all", BINS[0])
        for epsilon in (0.05, 0.01)
    ]
    return table("adversarial_attention", rows).to_pandas()


def adversary_frame() -> pd.DataFrame:
    """AtteFa's adversary from three seeds, of which the last diverged where dev chooses, and one by strength."""
    line = CELL | {"adversary": "attefa", "objective": "attefa", "base_seed": 0, "epochs": 9, "status": "ok"}
    rows = [
        line
        | {"seed": seed, "selected_on": split, "epoch": 4 + seed, "f1": 0.7 + 0.1 * seed, "tvd": 0.05 + 0.1 * seed}
        | {"jsd": 0.4 + 0.2 * seed, "attefa": 0.2 + 0.4 * seed}
        for split in ("dev", "test")
        for seed in range(2)
    ]
    lost = {"epoch": None, "f1": None, "tvd": None, "jsd": None, "attefa": None, "status": "undefined"}
    rows.append(rows[0] | lost | {"seed": 2, "reason": "training diverged"})
    swept = {"adversary": "<sweep>", "objective": "wiegreffe-pinter", "strength": 0.001, "selected_on": "train"}
    rows += [rows[0] | swept, rows[0] | swept | lost | {"strength": 0.1}]
    return table("adversary", rows).to_pandas()


def seed_variance_frame() -> pd.DataFrame:
    rows = [
        CELL
        | {"base_seed": 10, "seed": seed, "max_attention_bin": bin_, "n": 4}
        | {"tvd_mean": 0.1 * seed, "jsd_mean": 0.2 * seed + (bin_ != "all")}
        for seed in (1, 2)
        for bin_ in ("all", BINS[0])
    ]
    return table("seed_variance", rows).to_pandas()


def reproduction_frame() -> pd.DataFrame:
    line = {"study": "J&W", "table": "T2", "dataset": "sst", "model": "bilstm-tanh", "measure_a": "attention"}
    line |= {"measure_b": "gradient", "predicted_class": "1", "metric": "kendall_tau", "published": 0.40, "n_seeds": 2}
    rows = [
        line | {"ours": 0.3, "ours_spread": 0.1, "tolerance": 0.11, "within": True, "note": "<i>fine</i>"},
        line | {"ours": 0.9, "ours_spread": 0.1, "tolerance": 0.11, "within": False},
        line | {"metric": "vocab_size", "model": None, "published": 13686.0, "predicted_class": None},
    ]
    return table("reproduction", rows).to_pandas()


@pytest.fixture(scope="module")
def content() -> Content:
    study = {
        "name": "A <study> & more",
        "datasets": {"sst": {"kind": ""}},
        "plugins": [],
        "seeds": ["0-1"],
        "explain": ["test"],
    }
    study |= {"models": {"bilstm-tanh": {"kind": "", "training": {"epochs": 6}, "measures": None, "datasets": None}}}
    study["models"]["bag-of-words"] = {"kind": ""}
    study |= {"measures": {measure: {"kind": ""} for measure in MEASURES}, "protocols": {"agreement": {}}}
    performance = [
        {"dataset": "sst", "variant": "plain", "model": "bilstm-tanh", "seed": seed, "split": split, "metric": "f1"}
        | {"value": 0.8 + 0.02 * seed, "status": "ok"}
        for seed in range(2)
        for split in ("train", "test")
    ]
    timings = [
        {
            "rule": "train",
            "dataset": "sst",
            "model": "bilstm-tanh",
            "seconds": 2.5,
            "device": "cpu",
            "startup_seconds": 1.0,
        }
        | {"peak_rss": 100.0, "peak_gpu": 0.0, "rows": 6, "rows_per_second": 2.4}
    ]
    return Content(
        study=study,
        cells=[{"dataset": "sst", "variant": "plain", "model": "bilstm-tanh", "seeds": "0-1", "measures": MEASURES}],
        excluded=[{"dataset": "", "model": "bag-of-words", "measure": "attention", "reason": "no <attention> there"}],
        summaries=[summary()],
        performance=table("performance", performance).to_pandas(),
        reproduction=reproduction_frame(),
        timings=table("timings", timings).to_pandas(),
        agreement=agreement_frame(),
        permutation=permutation_frame(),
        adversarial_attention=adversarial_frame(),
        adversary=adversary_frame(),
        seed_variance=seed_variance_frame(),
        figures={f"{kind}/sst/{model}": SVG for kind in BY_CELL for model in ("bilstm-tanh", "bag-of-words")}
        | dict.fromkeys(WHOLE, SVG),
        parts={"bilstm-tanh": {"encoder": "bilstm", "attention": "tanh"}, "bag-of-words": {}},
        examples=collect([block()], [summary()], {"sst": instances()}, "test", 4, {"sst": "question"}),
        versions={"python": "3.11"},
    )


@pytest.fixture(scope="module")
def html(content: Content) -> str:
    return page(content)


def test_the_page_has_all_its_sections(html: str) -> None:
    found = [attributes["id"] for tag, attributes in Elements(html).tags if tag == "section"]
    wanted = ["what-ran", "published", "performance", "agreement", "permutation", "adversarial-attention"]
    wanted += ["adversarial-models", "seed-variance", "figures", "examples", "timings", "about"]
    assert found == wanted
    assert all(f'href="#{name}"' in html for name in wanted)


def test_text_of_datasets_is_never_markup(html: str) -> None:
    elements = Elements(html)
    assert [tag for tag, _ in elements.tags].count("script") == 2
    assert "alert(1)" not in elements.scripts[1]
    # Every image is a figure of ours, so the hostile one is none; and no element reacts to an event by an attribute.
    assert all(
        attributes["src"].startswith("data:image/svg+xml,%3Csvg") for tag, attributes in elements.tags if tag == "img"
    )
    assert not [name for _, attributes in elements.tags for name in attributes if name.startswith("on")]
    for text in ("<b>positive</b>", "<i>fine</i>", "no <attention> there", "A <study>"):
        assert text not in html
    for token in HOSTILE[:5]:
        assert token not in html.split('id="data">')[1].split("</script>")[0]


def test_the_data_come_back_as_they_were(html: str, content: Content) -> None:
    data = json.loads(Elements(html).scripts[0])
    assert data["examples"] == content.examples
    assert data["examples"][0]["texts"][0]["tokens"] == ["<sos>", *HOSTILE]
    assert data["measures"] == {"attention": "#0072B2", "gradient": "#D55E00"}
    assert json.loads(embedded(HOSTILE)) == HOSTILE


def test_nothing_is_loaded_from_elsewhere(html: str) -> None:
    for tag, attributes in Elements(html).tags:
        for name in ("src", "href", "action", "data", "srcset"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), (tag, attributes)
    # An image names the language it is written in, and cannot load anything.
    rest = re.sub(r' src="data:image/[^"]*"', "", html)
    assert not re.search(r"url\(|@import|https?://|fetch\(|XMLHttpRequest|innerHTML|eval\(", rest)


def test_only_the_pages_own_script_may_run(html: str) -> None:
    script = html.rsplit("<script>", 1)[1].split("</script>")[0]
    policy = next(a["content"] for tag, a in Elements(html).tags if a.get("http-equiv") == "Content-Security-Policy")
    assert f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in (policy or "")


def test_tables_are_readable_without_sight(html: str) -> None:
    tags = Elements(html).tags
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in tags if tag == "th")
    assert all(attributes.get("alt") for tag, attributes in tags if tag == "img")
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {attributes["aria-labelledby"] for tag, attributes in tags if tag == "table"} <= set(ids)


def test_the_page_says_what_was_left_out_and_how_it_compares(html: str) -> None:
    assert "no &lt;attention&gt; there" in html
    assert html.count("1 of 2 cells within tolerance; 1 more could not be judged.") == 2
    assert "0.810 ± 0.010" in html
    assert "sst: length filter, 2 of test" in html


def test_a_study_with_nothing_to_compare_or_to_show(content: Content) -> None:
    bare = Content(
        content.study,
        content.cells,
        [],
        content.summaries,
        content.performance,
        content.reproduction.iloc[:0],
        content.timings,
    )
    html = page(bare)
    assert "there is nothing to compare" in html and "had to be left out" in html
    assert 'id="permutation"' not in html and 'id="adversarial-attention"' not in html
    assert 'id="adversarial-models"' not in html and 'id="seed-variance"' not in html and "Adversaries:" not in html
    assert "has no agreement protocol" in html and "draws no figures" in html and "No example texts" in html


def test_reproduction_marks_what_is_within_and_what_is_not() -> None:
    rows = published.reproduction_table(reproduction_frame(), {"sst": CLASSES}).rows
    assert [row[9].mark for row in rows] == ["good", "bad", "faint"]
    assert rows[0][2].text == "mean τ, attention and gradient" and rows[0][3].text == CLASSES[1]
    assert (rows[0][6].text, rows[0][7].text) == ("0.30 ± 0.10", "−0.100")
    # A tenth below by a tolerance of .11; far above is put at the end of the axis.
    assert rows[0][7].at == pytest.approx(0.5 - 0.1 / 0.11 / 6) and rows[1][7].at == 1.0
    assert rows[2][4].text == "13\u202f686" and rows[2][5].text == rows[2][6].text == "–"


def test_reproduction_of_two_studies_tells_them_apart_and_leaves_single_seeds_out() -> None:
    line = {"study": "AtteFa", "table": "T3", "dataset": "sst", "model": "bilstm-tanh", "metric": "AtteFa"}
    line |= {"published": 0.0764, "published_spread": 0.01, "ours": 0.08, "ours_spread": 0.02, "n_seeds": 9}
    rows = [line | {"selected_on": "test", "tolerance": 0.03, "within": True}, line | {"selected_on": "dev"}]
    rows += [line | {"table": "T5", "seed": seed, "selected_on": "test"} for seed in (10, 90754789)]
    frame = pd.concat([reproduction_frame(), table("reproduction", rows).to_pandas()], ignore_index=True)
    shown = published.reproduction_table(frame, {"sst": CLASSES})
    assert (
        shown.columns[:4] == ["study", "dataset", "model", "quantity"]
        and shown.columns[min(shown.numbers)] == "published"
    )
    assert [row[0].text for row in shown.rows] == ["J&W"] * 3 + ["AtteFa"] * 2
    assert [row[3].text for row in shown.rows[3:]] == ["AtteFa, chosen on test", "AtteFa, chosen on dev"]
    assert shown.rows[3][5].text == "0.076 ± 0.010" and "2 numbers of single seeds" in shown.caption
    assert published.verdict(frame) == "2 of 3 cells within tolerance; 2 more could not be judged."


def test_agreement_is_gathered_over_seeds() -> None:
    data = agreement.all_rows(agreement_frame(), {"sst": CLASSES})
    assert data["words"]["predicted_class"] == [CLASSES[1], "all", CLASSES[0]]
    row = data["rows"][0]
    assert row[6:] == pytest.approx([0.3, 0.1, 0.1, 0.5, 6, 2])
    overview = agreement.overview(agreement_frame())
    assert overview is not None and overview.rows[0][2].text == "0.30 ± 0.10"
    assert agreement.overview(agreement_frame().assign(measure_a="random")) is None


def ranked_twice() -> pd.DataFrame:
    """Agreement over all tokens too, where it is .1 higher."""
    frame = agreement_frame()
    wider = frame.assign(tokens="all", mean=frame["mean"] + 0.1)
    return pd.concat([wider, frame], ignore_index=True)


def test_which_tokens_were_ranked_is_told_where_there_is_a_choice() -> None:
    data = agreement.all_rows(ranked_twice(), {"sst": CLASSES})
    # From the fewest to the most, whatever the order of the rows.
    assert data["words"]["tokens"] == ["words of the text", "all tokens"] and list(data["titles"])[-1] == "tokens"
    means = {(row[5], row[6]): row[7] for row in data["rows"]}
    assert means == pytest.approx({(label, tokens): 0.3 + 0.1 * tokens for label in range(3) for tokens in range(2)})
    shown = agreement.overview(ranked_twice())
    assert shown is not None and shown.rows[0][2].text == "0.30 ± 0.10"
    assert "Ranked are the words of the text." in shown.caption
    one = agreement.overview(agreement_frame())
    assert one is not None and "Ranked" not in one.caption
    assert "tokens" not in agreement.all_rows(agreement_frame(), {"sst": CLASSES})["words"]


def test_examples_are_spread_and_the_same_for_all_models() -> None:
    assert choose_texts(block().predictions, "test", 4) == choose_texts(block().predictions, "test", 4)
    chosen = choose_texts(block(texts=6).predictions, "test", 4)
    # One right and one wrong of each class: 4 and 5 are the wrong ones.
    assert {4, 5} <= set(chosen) and {number % 2 for number in chosen if number < 4} == {0, 1}
    blocks = [block("a", (0,)), block("b", (0, 1)), block("a", (1,))]
    (example,) = collect(blocks, [summary()], {"sst": instances()}, "test", 4)
    assert list(example["models"]) == ["a", "b"]
    assert list(example["models"]["a"]["seeds"]) == ["0", "1"]
    assert len(example["models"]["a"]["seeds"]["1"]) == len(example["texts"]) == 4
    assert collect([block()], [summary()], {"sst": instances()}, "test", 0) == []


def test_tau_of_an_example() -> None:
    up, down, mine = np.arange(4.0), -np.arange(4.0), np.array([0.0, 1.0, 3.0, 2.0])
    told = {"attention": Told(up), "gradient": Told(down), "mine": Told(mine)}
    # τ is −1 of the first two, and of the last, in which one pair of six is turned round, ±4/6.
    found = taus(told, "attention")
    assert found == {
        "ranked": "words of the text",
        "mean": -0.333,
        "tau": {"attention": [None, -0.167], "gradient": [-1, -0.833], "mine": [0.667, 0]},
    }
    # What has no order is left out of the means.
    for nothing in (np.zeros(4), np.full(4, np.nan)):
        found = taus(told | {"gradient": Told(nothing)}, "attention")
        assert found["mean"] == 0.667 and found["tau"]["gradient"] == [None, None]
        assert found["tau"]["mine"] == [0.667, 0.667]
    found = taus({name: Told(one.scores[:1]) for name, one in told.items()}, "attention")
    assert found["mean"] is None and found["tau"] == {name: [None, None] for name in told}
    # The reference may have no scores of a text.
    found = taus({name: told[name] for name in ("gradient", "mine")}, "attention")
    assert found["mean"] == -0.667 and found["tau"]["mine"] == [None, -0.667]


def test_all_tokens_are_ranked_that_every_measure_tells() -> None:
    one = Told(np.array([1.0, 2.0]), np.array([3.0]), np.array([4.0, 5.0]))
    other = Told(np.array([6.0, 7.0]), np.array([8.0]), np.array([9.0, 0.0]))

    def ranked(*told: Told, specials: bool = False) -> tuple[str, list[list[float]]]:
        tokens, scores = common_tokens(told, specials)
        return tokens, scores.tolist()

    assert ranked(one, other) == ("texts", [[1, 2, 3], [6, 7, 8]])
    assert ranked(one, other, specials=True) == ("all", [[1, 2, 3, 4, 5], [6, 7, 8, 9, 0]])
    words = ("text", [[1, 2], [6, 7]])
    assert ranked(one, other._replace(pair=None), specials=True) == words
    # One that tells of the text alone has its specials only.
    first = other._replace(specials=np.array([9.0]))
    assert ranked(one, first, specials=True) == ranked(one, other)
    alone = [told._replace(pair=None) for told in (one, other)]
    assert ranked(*alone) == words
    assert ranked(*alone, specials=True) == ("all", [[1, 2, 4, 5], [6, 7, 9, 0]])


def telling(given: Block, *measures: str) -> Block:
    """The block, some of whose measures tell of the question and of special tokens too: of <sos>, and of the question's
    own two."""
    told = [
        (name, importances if name not in measures else table("attributions", [row | EVERYWHERE for row in rows]))
        for name, importances in given.importances
        for rows in [importances.to_pylist()]
    ]
    return replace(given, importances=told)


EVERYWHERE = {"scores": [0.0] * 7 + [0.5], "pair": [-1.0, 2.0, 0.25], "specials": [4.0, 0.0, 1.0]}


def test_examples_tell_of_second_texts_and_special_tokens() -> None:
    arguments: Any = ([summary()], {"sst": instances()}, "test", 4)
    (example,) = collect([telling(block(), "gradient")], *arguments)
    for told in example["models"]["bilstm-tanh"]["seeds"]["0"]:
        assert told["pair"] == {"gradient": [-1, 2, 0.25]} and told["specials"] == {"gradient": [4, 0, 1]}
        assert list(told["scores"]) == MEASURES and told["ranked"] == "words of the text"
    (example,) = collect([telling(block(), *MEASURES)], *arguments)
    told = example["models"]["bilstm-tanh"]["seeds"]["0"][0]
    assert told["ranked"] == "words of both texts" and told["mean"] == told["tau"]["gradient"][0] == 1
    (example,) = collect([telling(block(), *MEASURES)], *arguments, specials=True)
    assert example["models"]["bilstm-tanh"]["seeds"]["0"][0]["ranked"] == "all tokens"
    (example,) = collect([block()], *arguments)
    assert not {"pair", "specials"} & set(example["models"]["bilstm-tanh"]["seeds"]["0"][0])


def drawn(given: Block, count: int) -> Block:
    """The block after each seed has explained its own sample of the six texts."""
    kept = {seed: random.Random(seed).sample(range(6), count) for seed in (0, 1)}
    told = [
        (name, table("attributions", [row for row in rows.to_pylist() if row["instance"] in kept[row["seed"]]]))
        for name, rows in given.importances
    ]
    return replace(given, importances=told)


def test_only_texts_that_the_first_seed_has_drawn_are_shown() -> None:
    sample = random.Random(0).sample(range(6), 3)
    for count in (2, 4):
        chosen = choose_texts(block().predictions, "test", count, 3)
        assert set(chosen) <= set(sample) and len(chosen) == min(count, 3)
    assert len(choose_texts(block().predictions, "test", 9, 100)) == 6
    (example,) = collect([drawn(block(), 3)], [summary()], {"sst": instances()}, "test", 4, sampled=3)
    seeds = example["models"]["bilstm-tanh"]["seeds"]
    numbers = [text["number"] for text in example["texts"]]
    assert numbers == sorted(sample) and all(list(told["scores"]) == MEASURES for told in seeds["0"])
    both = set(random.Random(1).sample(range(6), 3))
    assert {number for number, told in zip(numbers, seeds["1"], strict=True) if told["scores"]} == both & set(sample)
    assert all("probable" in told and "adversaries" in told for told in seeds["1"])


def test_a_measure_may_have_no_scores_of_a_text() -> None:
    (attention, all_rows), (gradient, rows) = block().importances
    some = rows.filter([row["instance"] != 4 for row in rows.to_pylist()])
    lacking = replace(block(), importances=[(attention, all_rows), (gradient, some)])
    (example,) = collect([lacking], [summary()], {"sst": instances()}, "test", 4)
    explained = example["models"]["bilstm-tanh"]["seeds"]["1"]
    told = {text["number"]: told for text, told in zip(example["texts"], explained, strict=True)}
    assert list(told[4]["scores"]) == ["attention"] and not {"tau", "mean", "ranked"} & set(told[4])
    assert list(told[5]["scores"]) == MEASURES and told[5]["tau"]["gradient"][0] == told[5]["mean"]


def test_numbers_for_people() -> None:
    assert [tables.number(v) for v in (1234.5, -0.001, -0.5, None, float("nan"))] == [
        "1\u202f234.50",
        "0.00",
        "−0.50",
        "–",
        "–",
    ]


def test_every_measure_and_metric_is_explained() -> None:
    registry = Registry()
    rows = about.measures_table(registry, {"measures": {"mine": {"kind": "gradient"}}}).rows
    assert {row[0].text for row in rows} == set(registry.names("measure"))
    assert (rows[0][0].text, rows[0][1].text) == ("gradient", "mine")
    assert [row[0].text for row in about.metrics_table(registry).rows] == registry.names("metric")


def test_a_table_of_an_unknown_kind_is_shown_as_it_stands(content: Content) -> None:
    own = pd.DataFrame({"measure": ["<b>lime</b>"], "share": [0.25], "n": [3], "empty": [None]})
    text = page(replace(content, others={"my_own": own}))
    assert '<section id="table-my_own">' in text and "&lt;b&gt;lime&lt;/b&gt;" in text and "0.250" in text
    assert tables.any_table("my_own", own).columns == ["measure", "share", "n"]


def test_figures_carry_their_place() -> None:
    one = picture("tau-matrix/sst/cnn", SVG, {"cnn": {"encoder": "convolution", "attention": "dot"}})
    assert (one.kind, one.dataset, one.model) == ("tau-matrix", "sst", "cnn")
    assert (one.encoder, one.attention, one.experiment) == ("convolution", "dot", "correlation")
    assert unquote(one.source) == "data:image/svg+xml," + SVG.replace('"', "'")
    # A model without these parts stands for its own encoder.
    other = picture("permutation/sst/mine", SVG, {"mine": {}})
    assert (other.encoder, other.attention, other.experiment) == ("mine", "none", "permutation")
    # What is about all datasets of a model can be chosen by none of them.
    whole = picture("correlation-matrices/cnn", SVG, {"cnn": {"encoder": "convolution"}})
    assert (whole.dataset, whole.model, whole.experiment) == ("", "", "correlation")
    new = picture("new-kind", SVG)
    assert (new.caption, new.experiment, new.encoder) == ("new kind", "other", "")
    assert sorted(["new-kind", "permutation", "tau-matrix"], key=order) == ["tau-matrix", "permutation", "new-kind"]


def test_every_figure_of_a_model_can_be_chosen(html: str) -> None:
    figures = [attributes for tag, attributes in Elements(html).tags if tag == "figure"]
    keys = ("dataset", "encoder", "attention", "experiment")
    found = [tuple(figure[f"data-{key}"] for key in keys) for figure in figures if "data-dataset" in figure]
    assert len(found) == 2 * len(BY_CELL)
    assert found.count(("sst", "bilstm", "tanh", "correlation")) == 2
    assert found.count(("sst", "bag-of-words", "none", "adversarial attention")) == 3
    assert all(all(choice) for choice in found)
    # Without scripts all of them are shown.
    assert not any("hidden" in figure for figure in figures)


def opened(html: str, folder: Path, link: str) -> Elements:
    """The page as a browser has it after its script ran."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no Chromium")
    (folder / "index.html").write_text(html, encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom"]
    address = (folder / "index.html").as_uri() + link
    return Elements(subprocess.run([*command, address], capture_output=True, text=True, timeout=60).stdout)


@pytest.mark.browser
@pytest.mark.parametrize(
    ("link", "shown"),
    [
        (
            "",
            {("bilstm", "tanh", KINDS[kind].experiment) for kind in BY_CELL},
        ),
        ("#figures/sst/bilstm/tanh/permutation", {("bilstm", "tanh", "permutation")}),
        ("#figures/*/bag-of-words/none/adversarial%20attention", {("bag-of-words", "none", "adversarial attention")}),
        ("#figures/*/*/*/correlation", {("bilstm", "tanh", "correlation"), ("bag-of-words", "none", "correlation")}),
        # What leads to nothing is passed over.
        ("#figures/sst/bag-of-words/tanh/permutation", {("bag-of-words", "none", "permutation")}),
    ],
)
def test_a_link_opens_the_figures_it_names(html: str, tmp_path: Path, link: str, shown: set[tuple[str, ...]]) -> None:
    figures = [attributes for tag, attributes in opened(html, tmp_path, link).tags if tag == "figure"]
    keys = ("encoder", "attention", "experiment")
    seen = [f for f in figures if "data-dataset" in f and "hidden" not in f]
    assert {tuple(figure[f"data-{key}"] for key in keys) for figure in seen} == shown


@pytest.mark.browser
def test_examples_are_drawn_from_text_alone(html: str, tmp_path: Path) -> None:
    tags = opened(html, tmp_path, "#example/sst/bilstm-tanh/1").tags
    drawn = [attributes.get("class") or "" for tag, attributes in tags if tag == "span"]
    # Eight words of two measures and of two adversaries, the last two of each being evidence.
    assert sum("word" in classes.split() and "special" not in classes for classes in drawn) in (24, 32)
    assert sum("evidence" in classes for classes in drawn) in (6, 8)
    assert [tag for tag, _ in tags].count("img") == 2 * len(BY_CELL) + len(WHOLE)


def words_of(tags: list[tuple[str, dict[str, str | None]]]) -> list[list[dict[str, str | None]]]:
    """The tokens of each line of the examples as they are drawn."""
    lines: list[list[dict[str, str | None]]] = []
    for _, attributes in tags:
        classes = (attributes.get("class") or "").split()
        if "measure" in classes:
            lines.append([])
        elif "word" in classes:
            lines[-1].append(attributes)
    return lines


@pytest.mark.browser
def test_second_texts_and_special_tokens_are_drawn_with_heat(content: Content, tmp_path: Path) -> None:
    bare = replace(telling(block(), "gradient"), adversaries=None)
    examples = collect([bare], [summary()], {"sst": instances()}, "test", 4, {"sst": "question"})
    tags = opened(page(replace(content, examples=examples)), tmp_path, "#example/sst/bilstm-tanh/0").tags
    attention, gradient = words_of(tags)
    assert [("title" in word, "special" in (word["class"] or "")) for word in attention] == [(False, True)] + [
        (True, False)
    ] * 8
    # <sos>, eight words, then <sos>, three words and <eos> of the question.
    assert [word["title"] for word in gradient] == ["4", *["0"] * 7, "0.5", "0", "−1", "2", "0.25", "1"]
    special = [i for i, word in enumerate(gradient) if "special" in (word["class"] or "")]
    assert special == [0, 9, 13]
    assert [i for i, word in enumerate(gradient) if "negative" in (word["class"] or "")] == [10]
    assert len({word["data-position"] for word in gradient}) == 14
    # One scale for all: <sos> has the whole colour, which the question's words come near by their share of it.
    grounds = [re.findall(r"\d+", (word.get("style") or "").split(";")[0]) for word in gradient]
    distance = [255 - int(ground[2]) if ground else 0 for ground in grounds]
    paper = 255 - 0xFA
    whole = distance[0] - paper
    assert [round((d - paper) / whole, 2) if d else 0 for d in distance[9:]] == pytest.approx(
        [0, 0.25, 0.5, 0.0625, 0.25], abs=0.02
    )


@pytest.mark.browser
def test_a_seed_says_that_it_has_not_explained_a_text(content: Content, tmp_path: Path) -> None:
    examples = collect([drawn(block(), 3)], [summary()], {"sst": instances()}, "test", 4, sampled=3)
    html = page(replace(content, examples=examples))
    lacking = next(n for n in random.Random(0).sample(range(6), 3) if n not in random.Random(1).sample(range(6), 3))
    shown = {}
    for seed in "01":
        tags = opened(html, tmp_path, f"#example/sst/bilstm-tanh/{seed}/{lacking}")
        shown[seed] = len(words_of(tags.tags)), "has not explained this text" in tags.text
    # Two measures and two adversaries, of which that of a larger ε is found for all texts; those need no sample.
    assert shown == {"0": (4, False), "1": (2, True)}


@pytest.mark.browser
def test_the_fewest_tokens_are_chosen_first(content: Content, html: str, tmp_path: Path) -> None:
    once = opened(html, tmp_path, "").text
    twice = opened(page(replace(content, agreement=ranked_twice())), tmp_path, "").text
    assert "1 of 1 rows that match, 3 in all." in once and "1 of 1 rows that match, 6 in all." in twice
    # The two words that may be chosen, and the caption of the small table.
    assert "all tokens" not in once and twice.count("all tokens") == 1


def test_figures_are_made_smaller_but_not_others() -> None:
    svg = """<?xml version="1.0"?>
<svg width="9pt" height="9pt" viewBox="0 0 9 9">
 <metadata><date>today</date></metadata>
 <g id="text_1">
  <!-- a & b -->
  <g style="fill: #22262b" transform="translate(7.123456 8) scale(0.075 -0.075)">
   <path id="DejaVuSans-41" d="M 10.123456 20
L 2.5 -3
z
" transform="scale(0.015625)"/>
   <use xlink:href="#DejaVuSans-41" transform="translate(61.279297 0)"/>
  </g>
 </g>
</svg>"""
    assert slim(svg) == (
        '<svg width="9pt" height="9pt" viewBox="0 0 9 9"><g>'
        '<g style="fill: #22262b" transform="translate(7.12 8) scale(0.075 -0.075)">'
        '<path id="41" d="M10.12 20L2.5 -3z" transform="scale(0.015625)"/>'
        '<use href="#41" x="61.27"/></g></g></svg>'
    )


def test_replaced_attention_is_summed_up() -> None:
    (row,) = counterfactual.permutation_overview(permutation_frame()).rows
    # Seeds count by their texts: one of .1 and three of .5.
    assert [cell.text for cell in row[2:]] == ["4", "0.400 ± 0.100", "0.400", "–", "–", "0.900"]
    assert (row[3].at, row[3].half) == pytest.approx((0.4, 0.1))
    rows = counterfactual.adversarial_overview(adversarial_frame()).rows
    assert [[cell.text for cell in row[2:]] for row in rows] == [
        ["0.01", "4", "55.0 %", "0.350 ± 0.050", "50 %"],
        ["0.05", "4", "75.0 %", "0.350 ± 0.050", "50 %"],
    ]
    assert rows[0][5].at == pytest.approx(0.35 / np.log(2))


def test_examples_show_adversaries_second_texts_and_evidence(content: Content) -> None:
    (example,) = content.examples
    assert example["second"] == "question"
    second = {"tokens": ["<sos>", "who", "<is>", "?", "<eos>"], "scored": [0, 1, 1, 1, 0]}
    assert all(text["second"] == second and text["evidence"] == [7, 8] for text in example["texts"])
    explained = example["models"]["bilstm-tanh"]["seeds"]["1"]
    for text, told in zip(example["texts"], explained, strict=True):
        small, large = told["adversaries"]
        assert large == {"epsilon": 0.05, "jsd": 0.512, "change": 0.0123, "scores": [0.125] * 8}
        assert small == (large | {"epsilon": 0.01} if text["number"] % 2 else {"epsilon": 0.01})
    bare = replace(block(), adversaries=None)
    plain = instances().drop_columns(["tokens_b", "evidence"])
    plain = plain.append_column("tokens_b", pa.nulls(6, pa.list_(pa.string())))
    plain = plain.append_column("evidence", pa.nulls(6, pa.list_(pa.bool_())))
    (example,) = collect([bare], [summary()], {"sst": plain}, "test", 4)
    assert "second" not in example["texts"][0] and "evidence" not in example["texts"][0]
    assert "adversaries" not in example["models"]["bilstm-tanh"]["seeds"]["0"][0]


def pieces(texts: int = 6) -> pa.Table:
    """The same texts for a model with pieces of its own; their second texts are closed, but not opened."""
    rows = [
        {"split": "test", "instance": i, "label": i % 2, "tokens": ["<s>", "Ġpie", "ces", "</s>"], "ids": [0, 7, 8, 2]}
        | {"maskable": [False, True, True, False], "tokens_b": [f"Ġwho{i}", "Ġis", "?", "</s>"]}
        | {"maskable_b": [True, True, True, False], "evidence": [False, False, True, False]}
        for i in range(texts)
    ]
    return table("instances", rows)


def test_models_with_pieces_of_their_own_have_their_own_texts() -> None:
    blocks = [block("bilstm-tanh"), block("roberta", (0,)), block("roberta", (1,))]
    (example,) = collect(
        blocks,
        [summary()],
        {"sst": instances()},
        "test",
        4,
        pieces={("sst", "roberta"): pieces(), ("x", "y"): pieces()},
    )
    assert all(text["tokens"][0] == text["second"]["tokens"][0] == "<sos>" for text in example["texts"])
    assert "texts" not in example["models"]["bilstm-tanh"]
    own = example["models"]["roberta"]["texts"]
    assert list(example["models"]["roberta"]["seeds"]) == ["0", "1"]
    # The same texts in the same order.
    assert [text["number"] for text in own] == [text["number"] for text in example["texts"]]
    assert own[0] == {
        "number": own[0]["number"],
        "label": own[0]["number"] % 2,
        "tokens": ["<s>", "Ġpie", "ces", "</s>"],
        "scored": [0, 1, 1, 0],
        "second": {"tokens": [f"Ġwho{own[0]['number']}", "Ġis", "?", "</s>"], "scored": [1, 1, 1, 0]},
        "evidence": [2],
    }
    (plain,) = collect(blocks, [summary()], {"sst": instances()}, "test", 4)
    assert "texts" not in plain["models"]["roberta"] and plain["texts"] == example["texts"]


def test_pieces_of_a_model_that_chooses_first_do_not_become_those_of_others() -> None:
    blocks = [block("roberta", (0,)), block("bilstm-tanh", (0,))]
    (example,) = collect(blocks, [summary()], {"sst": instances()}, "test", 4, pieces={("sst", "roberta"): pieces()})
    assert example["texts"][0]["tokens"] == ["<sos>", *HOSTILE]
    assert {model: "texts" in told for model, told in example["models"].items()} == {
        "roberta": True,
        "bilstm-tanh": False,
    }


def test_what_adversaries_reached_is_summed_up() -> None:
    shown = adversary.adversary_overview(adversary_frame())
    swept, diverged, dev, test = shown.rows
    assert [row[3].text for row in (dev, test, swept)] == ["dev", "test", "train"]
    assert [row[2].text.replace("\u00a0", " ") for row in shown.rows] == [
        "<sweep> (wiegreffe-pinter), λ = 0.001",
        "<sweep> (wiegreffe-pinter), λ = 0.1",
        "attefa",
        "attefa",
    ]
    reached = ["0.400 ± 0.200", "0.100 ± 0.050", "0.500 ± 0.100", "0.750 ± 0.050", "4.5 ± 0.5"]
    assert [cell.text for cell in test[4:]] == ["2", *reached]
    assert [cell.text for cell in dev[4:]] == ["3, 1 diverged", *reached] and dev[4].mark == "bad"
    assert [cell.text for cell in swept[4:]] == ["1", "0.200", "0.050", "0.400", "0.700", "4.0"]
    assert [cell.text for cell in diverged[4:]] == ["1, 1 diverged", *["undefined"] * 5] and diverged[5].at is None
    assert [cell.at for cell in test[5:9]] == pytest.approx([0.4, 0.2, 0.5 / np.log(2), 0.75])
    assert [cell.half for cell in test[5:9]] == pytest.approx([0.2, 0.1, 0.1 / np.log(2), 0.05])
    assert "optimistic" in shown.caption and "diverged" in shown.caption
    ran = adversary_frame()[lambda frame: frame["status"] == "ok"]
    assert "diverged" not in adversary.adversary_overview(ran).caption


def test_seed_variance_is_summed_up() -> None:
    (row,) = adversary.seed_variance_overview(seed_variance_frame()).rows
    assert [cell.text for cell in row[2:]] == ["10", "2", "4", "0.150 ± 0.050", "0.300 ± 0.100"]
    assert (row[5].at, row[6].at) == pytest.approx((0.3, 0.3 / np.log(2)))


def attention(seed: int, *heads: list[float], texts: int = 6) -> pa.Table:
    row = {
        "seed": seed,
        "split": "test",
        "heads": len(heads),
        "attention": [weight for head in heads for weight in head],
    }
    return table("attention", [row | {"instance": i} for i in range(texts)])


def against(*heads: list[float]) -> Block:
    """A block whose seed 1 has an adversary of seed 5, which attends to the last word."""
    said = [
        {"seed": seed, "split": "test", "instance": i, "label": 0, "probabilities": [0.1 * seed, 1 - 0.1 * seed]}
        for seed in (5, 6)
        for i in range(6)
    ]
    last = Rival("<attefa>", 1, 5, attention(5, [0.0] * 7 + [1.0]), table("predictions", said))
    return replace(block(), attention=attention(1, *heads), rivals=[last])


def test_examples_show_where_adversarial_models_look() -> None:
    (example,) = collect([against([0.5, 0.5] + [0.0] * 6)], [summary()], {"sst": instances()}, "test", 4)
    seeds = example["models"]["bilstm-tanh"]["seeds"]
    assert all("rivals" not in told for told in seeds["0"])
    for told in seeds["1"]:
        assert told["rivals"]["heads"] == 1 and told["rivals"]["scores"] == [0.5, 0.5, 0, 0, 0, 0, 0, 0]
        (rival,) = told["rivals"]["models"]
        assert (rival["title"], rival["seed"], rival["jsd"]) == ("<attefa>", 5, 0.693)
        # Of the class that the base model predicts.
        assert rival["probability"] == 0.5 and rival["scores"] == [0, 0, 0, 0, 0, 0, 0, 1]


def test_heads_are_averaged_and_weights_that_are_none_left_out(content: Content) -> None:
    twice = against([1.0] + [0.0] * 7, [0.0] * 4 + [1.0] + [0.0] * 3)
    # A model that no measure explains is shown where it has adversaries.
    (example,) = collect([replace(twice, importances=[])], [summary()], {"sst": instances()}, "test", 4)
    assert list(example["models"]["bilstm-tanh"]["seeds"]) == ["1"]
    told = example["models"]["bilstm-tanh"]["seeds"]["1"][0]["rivals"]
    assert told["heads"] == 2 and told["scores"] == [0.5, 0, 0, 0, 0.5, 0, 0, 0]
    broken = against([float("nan")] * 8)
    (example,) = collect([broken], [summary()], {"sst": instances()}, "test", 4)
    told = example["models"]["bilstm-tanh"]["seeds"]["1"][0]["rivals"]
    assert told["scores"] == [None] * 8 and told["models"][0]["jsd"] is None
    html = page(replace(content, examples=[example]))
    assert json.loads(Elements(html).scripts[0])["examples"] == [example] and "<attefa>" not in html


@pytest.mark.browser
def test_both_kinds_of_adversaries_are_drawn(content: Content, tmp_path: Path) -> None:
    examples = collect([against([0.5, 0.5] + [0.0] * 6)], [summary()], {"sst": instances()}, "test", 4)
    html = page(replace(content, examples=examples))
    rows = [
        [attributes.get("class") for tag, attributes in opened(html, tmp_path, f"#example/sst/bilstm-tanh/{seed}").tags]
        for seed in (0, 1)
    ]
    assert rows[1].count("measure") == rows[0].count("measure") + 2


def test_of_many_classes_only_some_are_named() -> None:
    assert most_probable([0.1, 0.2, 0.3, 0.3, 0.1]) == [[2, 0.3], [3, 0.3], [1, 0.2]]
    assert most_probable([0.25, 0.75]) == [[1, 0.75], [0, 0.25]]
    answers = {f"answer {i}": 1 for i in range(40)}
    many = summary()
    many["splits"] = {"test": many["splits"]["test"] | {"instances_per_class": answers}}
    assert about.datasets_table([many]).rows[0][3].text == "40 classes"
    assert about.datasets_table([many | {"paired": True}]).rows[0][3].text == "40 answers"


def test_partial_data_are_marked_and_told(content: Content) -> None:
    some = summary() | {"partial": {"test": {"texts": 6, "published": 1821}}}
    sentence = "All numbers about sst rest on partial data: 6 of the 1\u202f821 published test texts were there."
    assert about.partial([some, summary()]) == [sentence]
    marks = {row[1].text: row[1].mark for row in about.datasets_table([some]).rows}
    assert marks == {"train": "", "test, partial": "bad"}
    assert sentence in page(replace(content, summaries=[some])) and "partial data" not in page(content)


def test_files_are_read_by_what_they_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_table("results/tables/mine.parquet", "agreement", dict(agreement_frame()))
    assert list(read_tables(["results/tables/mine.parquet"])) == ["agreement"]
    figure = tmp_path / "results/figures/tau-matrix/sst/v1.5.svg"
    figure.parent.mkdir(parents=True)
    figure.write_text(SVG)
    assert read_figures(["results/figures/tau-matrix/sst/v1.5.svg"]) == {"tau-matrix/sst/v1.5": SVG}


def test_blocks_have_adversaries_where_a_cell_is_attacked(tmp_path: Path) -> None:
    told = block(seeds=(0,))
    write_table(tmp_path / "predictions.parquet", "predictions", told.predictions)
    assert told.adversaries is not None
    write_table(tmp_path / "adversaries.parquet", "adversaries", told.adversaries)
    cells = [{"dataset": "sst", "model": model, "measures": [], "attacked": model == "b"} for model in "ab"]
    predictions = [str(tmp_path / "predictions.parquet")] * 2
    plain, attacked = read_blocks(cells, predictions, [], [str(tmp_path / "adversaries.parquet")])
    assert plain.adversaries is None and attacked.adversaries is not None and len(attacked.adversaries) == 12


def test_blocks_have_rivals_where_a_cell_has_them(tmp_path: Path) -> None:
    for seed in (1, 5, 6):
        write_table(tmp_path / f"{seed}.parquet", "attention", attention(seed, [0.125] * 8))
    write_table(tmp_path / "predictions.parquet", "predictions", block(seeds=(0,)).predictions)
    told = {"adversary": "mine", "objective": "attefa", "strength": None, "base_seed": 1, "seed": 5}
    swept = told | {"objective": "mine", "strength": 0.1, "seed": 6}
    cells = [{"dataset": "sst", "model": "a", "measures": [], "rivals": []}]
    cells += [cells[0] | {"model": "b", "rivals": [told, swept]}]
    predictions = [str(tmp_path / "predictions.parquet")] * 2
    looks = [str(tmp_path / f"{seed}.parquet") for seed in (1, 5, 6)]
    plain, rivalled = read_blocks(cells, predictions, [], [], looks, predictions)
    assert plain.attention is None and not list(plain.rivals)
    assert rivalled.attention is not None and rivalled.attention["seed"][0].as_py() == 1
    titles = [(rival.title, rival.seed, rival.attention["seed"][0].as_py()) for rival in rivalled.rivals]
    assert titles == [("mine (attefa)", 5, 5), ("mine, λ\u00a0=\u00a00.1", 6, 6)]


def test_the_manifest_adds_up_the_jobs(content: Content) -> None:
    told = manifest(content.study, content.excluded, content.timings)
    assert told["seconds"] == 2.5 and told["devices"] == ["cpu"] and told["study"]["name"] == "A <study> & more"
    assert json.loads(json.dumps(told)) == told


def test_the_same_content_gives_the_same_page(content: Content, html: str) -> None:
    assert page(content) == html


def test_the_truth_that_measures_find_is_told_for_all_variants_of_a_manipulation_together():
    rows = [
        {"dataset": "birds", "manipulation": "blur", "variant": variant, "model": "m", "measure": "gradient",
         "truth": truth, "class": class_, "status": "ok", "attributed_fraction": share, "region_fraction": 0.25,
         "found": 0.5, "auc": 0.75, "accuracy": 0.99, "chance_bound": share - 0.4, "undefined": 1}
        for variant, share in (("blur-0", 0.4), ("blur-1", 0.6))
        for truth in (True, False)
        for class_ in ("all", "1")
    ]  # fmt: skip
    table = truth_table(pd.DataFrame(rows))
    (line,) = table.rows
    assert [cell.text for cell in line[:5]] == ["birds (blur)", "m", "gradient", "0.500 ± 0.100", "0.250"]
    assert (line[3].at, line[7].text, line[9].text) == (0.5, "1 of 2", "2")


def test_rationales_are_told_beside_the_best_that_could_be():
    rates = {"target_rate": 0.1, "selection_rate": 0.09, "accuracy": 0.98}
    found = {"precision": 0.8, "optimum_precision": 0.9, "recall": 0.7, "optimum_recall": 1.0}
    row = {"dataset": "beer", "variant": "articles", "model": "rl", **rates, **found}
    (line,) = rationales_table(pd.DataFrame([row])).rows
    assert [cell.text for cell in line[2:]] == ["0.100", "0.090", "0.800", "0.900", "0.700", "1.000", "0.980"]
