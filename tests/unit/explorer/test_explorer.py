"""The data of the explorer from small handmade tables: the instances, their explanations and their files."""

import base64
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from plumbline.attribution.files import stream_importances
from plumbline.attribution.schemas import ATTRIBUTIONS
from plumbline.config.schema import Report
from plumbline.data.schemas import MASKS
from plumbline.errors import DamagedError, PlumblineError
from plumbline.explorer.blocks import ExplorerOptions, SeedBlock, ShownVariant, find_blocks
from plumbline.explorer.build import BLOCK, CHUNK, build_explorer, choose
from plumbline.explorer.examples import (
    TextScores,
    agreement_by_text,
    choose_instances,
    common_tokens,
    downsampled,
    most_probable,
    saliency_map,
)
from plumbline.explorer.masked import masking_curves
from plumbline.explorer.retest import read_reliability
from plumbline.explorer.rows import ChosenInstances, InstanceRows
from plumbline.models.schemas import ATTENTION
from plumbline.report.embed import data_script, embedded
from plumbline.store import stream_table
from tests import explored
from tests.explored import MEASURES, SIDE, Tables, everything, importances, large, masks, point, predictions
from tests.reports import HOSTILE, LEVELS, summary, table

FOUR = ExplorerOptions(4, ["test"])
ALL = ExplorerOptions("all", ["test"])


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    (tmp_path / "tables").mkdir()
    return Tables(tmp_path / "tables")


def read(path: Path) -> tuple[str, Any]:
    """The name and the value of a data script."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("plumbline.loaded(") and text.endswith(");\n")
    name, value = json.loads(f"[{text.removeprefix('plumbline.loaded(').removesuffix(');' + chr(10))}]")
    return name, value


def built(folder: Path, *shown: ShownVariant, options: ExplorerOptions = ALL) -> dict[str, Any]:
    """All values of the explorer by their names."""
    build_explorer(folder / "explorer", "study", shown, options)
    return dict(map(read, sorted((folder / "explorer").rglob("*.js"))))


def test_every_file_has_the_name_of_its_path(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    found = built(tmp_path, *everything(tmp_path / "tables"))
    paths = [path.relative_to(tmp_path / "explorer") for path in (tmp_path / "explorer").rglob("*.js")]
    assert {path.with_suffix("").as_posix() for path in paths} == set(found)
    assert [(one["dataset"], one["variant"], one["count"]) for one in found["index"]["sets"]] == [
        ("sst", "plain", 6),
        ("sst", "articles", 6),
        ("dots", "plain", 6),
    ]
    models = found["index"]["sets"][0]["models"]
    assert [(one["model"], one["seeds"], one["subwords"]) for one in models] == [
        ("bilstm", [0, 1], False),
        ("average", [0, 1], False),
        ("roberta", [0, 1], True),
    ]
    assert models[0]["measures"] == MEASURES and models[0]["reference"] == "attention"
    assert found["index"]["measures"] == {
        "attention": "#0072B2",
        "gradient": "#D55E00",
        "grad-cam": "#1098AD",
        "random": "#8C8C8C",
    }
    assert found["0/list/0"]["number"] == list(range(6)) and found["0/list/0"]["length"] == [8] * 6
    assert found["0/0/0/list/0"]["predicted"] == [0, 1, 0, 1, 1, 0]
    assert found["0/0/0/list/0"]["probability"] == [0.9, 0.8, 0.9, 0.8, 0.8, 0.9]


def test_measures_with_draws_have_their_reliability(tmp_path: Path, tables: Tables) -> None:
    cell = {"dataset": "sst", "variant": "plain", "model": "bilstm"}
    rows = [
        cell | {"seed": seed, "measure": measure, "stochastic": measure != "gradient", "n": 4, "kendall": tau}
        for measure, taus in {"gradient": [1.0, 1.0], "random": [0.1, -0.3], "lime": [None, None]}.items()
        for seed, tau in enumerate(taus)
    ]
    rows = [row | {"status": "undefined" if row["kendall"] is None else "ok"} for row in rows]
    reliability = read_reliability([tables.write("reliability", rows)])
    assert reliability == {("sst", "plain", "bilstm"): {"random": -0.1}} and read_reliability([]) == {}
    found = built(tmp_path, *everything(tmp_path / "tables"), options=replace(ALL, reliability=reliability))
    shown = [model["reliability"] for model in found["index"]["sets"][0]["models"]]
    assert shown == [{"random": -0.1}, {}, {}]


def test_the_same_tables_give_the_same_files(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    shown = everything(tmp_path / "tables")
    assert built(tmp_path / "a", *shown) == built(tmp_path / "b", *shown)


def test_no_word_can_end_a_script(tmp_path: Path, tables: Tables) -> None:
    found = built(tmp_path, tables.shown(tables.block()))
    assert found["0/texts/0"][0]["tokens"] == ["<sos>", *HOSTILE]
    written = (tmp_path / "explorer/0/texts/0.js").read_text(encoding="utf-8")
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(embedded(HOSTILE)) == HOSTILE and data_script("a", 1) == 'plumbline.loaded("a",1);\n'


def test_instances_are_spread_over_classes_and_outcomes(tmp_path: Path, tables: Tables) -> None:
    rows = table("predictions", predictions())
    assert choose_instances(rows, "test", 4) == choose_instances(rows, "test", 4)
    chosen = choose_instances(rows, "test", 4)
    # One right and one wrong of each class: 4 and 5 are the wrong ones.
    assert {4, 5} <= set(chosen) and {number % 2 for number in chosen if number < 4} == {0, 1}
    shown = tables.shown(tables.block("a"), tables.block("b"))
    found = built(tmp_path, shown, options=FOUR)
    assert found["0/list/0"]["number"] == chosen and found["index"]["sets"][0]["total"] == 6
    assert len(found["0/texts/0"]) == len(found["0/0/1/explanations/0"]) == len(found["0/1/0/explanations/0"]) == 4
    assert built(tmp_path / "none", shown, options=ExplorerOptions(0, ["test"]))["index"]["sets"] == []


def test_only_what_the_first_seed_has_drawn_is_shown_or_all_that_any_has(tmp_path: Path, tables: Tables) -> None:
    kept = {seed: random.Random(seed).sample(range(6), 3) for seed in (0, 1)}
    rows = [row for row in importances("attention") if row["instance"] in kept[row["seed"]]]
    path = tables.write("attributions", rows)
    shown = tables.shown(tables.block(importances=dict.fromkeys(MEASURES, path)))
    assert choose(shown, ExplorerOptions(9, ["test"], sampled=3)).number.tolist() == sorted(kept[0])
    assert choose(shown, ALL).number.tolist() == sorted({*kept[0], *kept[1]})
    found = built(tmp_path, shown, options=ExplorerOptions(9, ["test"], sampled=3))
    both = [number for number in sorted(kept[0]) if number in kept[1]]
    assert found["0/0/0/list/0"]["explained"] == [1, 1, 1]
    assert found["0/0/1/list/0"]["explained"] == [int(number in both) for number in sorted(kept[0])]
    unexplained = [entry for entry in found["0/0/1/explanations/0"] if not entry["scores"]]
    assert len(unexplained) == 3 - len(both) and not any({"tau", "mean"} & set(entry) for entry in unexplained)


def test_all_instances_are_of_all_splits(tmp_path: Path, tables: Tables) -> None:
    splits = ("train", "test")
    rows = [row | {"split": split} for split in splits for row in predictions()]
    scores = [row | {"split": split} for split in splits for row in importances("gradient")]
    texts = [row | {"split": split} for split in splits for row in explored.instances()]
    block = tables.block(
        predictions=tables.write("predictions", rows), importances={"gradient": tables.write("attributions", scores)}
    )
    shown = tables.shown(block, rows=texts)
    found = built(tmp_path, shown, options=ExplorerOptions("all", splits))
    assert found["0/list/0"]["split"] == [0] * 6 + [1] * 6 and found["index"]["sets"][0]["splits"] == ["train", "test"]
    assert choose(shown, ExplorerOptions(4, splits)).splits == ["test"]
    assert choose(shown, ExplorerOptions(4, ["train"])).splits == ["train"]
    bare = replace(shown, blocks=[replace(block, importances={})])
    assert len(choose(bare, ALL)) == 6 and len(choose(replace(shown, blocks=[]), ALL)) == 0


def test_chunks_and_blocks_hold_every_instance_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plumbline.explorer.build.BLOCK", 40)
    shown = large(tmp_path, 90)
    monkeypatch.setattr("plumbline.explorer.build.CHUNK", 25)
    found = built(tmp_path, shown)
    assert [len(found[f"0/texts/{k}"]) for k in range(4)] == [25, 25, 25, 15]
    assert [len(found[f"0/0/0/list/{k}"]["tau"]) for k in range(3)] == [40, 40, 10]
    every = [one for k in range(4) for one in found[f"0/0/0/explanations/{k}"]]
    rows = [
        row
        for part in stream_importances(shown.blocks[0].importances["gradient"], "gradient", ["scores"])
        for row in part["scores"].to_pylist()
    ]
    assert [one["scores"]["gradient"] for one in every] == [[float(f"{value:.3g}") for value in row] for row in rows]
    means = [one["mean"] for one in every]
    assert [tau for k in range(3) for tau in found[f"0/0/0/list/{k}"]["tau"]] == means
    assert CHUNK == 200 and BLOCK == 20_000


def test_chunks_of_long_texts_are_small(tmp_path: Path, tables: Tables) -> None:
    def size(mean: float, **others: Any) -> int:
        record = summary()
        record["splits"]["test"] |= {"mean_length": mean}
        shown = replace(tables.shown(tables.block()), summary=record, **others)
        return built(tmp_path / str(mean), shown)["index"]["sets"][0]["chunk"]

    assert size(20.0) == 200 and 1 < size(2000.0) < 60 and size(1e9) == 1


def test_tau_of_an_instance() -> None:
    up, down, mine = np.arange(4.0), -np.arange(4.0), np.array([0.0, 1.0, 3.0, 2.0])
    scores = {"attention": TextScores(up), "gradient": TextScores(down), "mine": TextScores(mine)}
    # τ is −1 for the first two, and ±4/6 with the last, in which one pair of six is swapped.
    (found,) = agreement_by_text([scores], "attention")
    assert found == {
        "ranked": "words of the text",
        "mean": -0.333,
        "tau": {"attention": [None, -0.167], "gradient": [-1, -0.833], "mine": [0.667, 0]},
    }
    # Scores without an order are left out of the means.
    for nothing in (np.zeros(4), np.full(4, np.nan)):
        (found,) = agreement_by_text([scores | {"gradient": TextScores(nothing)}], "attention")
        assert found["mean"] == 0.667 and found["tau"]["gradient"] == [None, None]
        assert found["tau"]["mine"] == [0.667, 0.667]
    # Texts of any lengths, of which some have one measure only, and some no reference.
    short = {name: TextScores(text.scores[:1]) for name, text in scores.items()}
    several = agreement_by_text(
        [short, {"mine": scores["mine"]}, scores, {name: scores[name] for name in ("gradient", "mine")}], "attention"
    )
    assert several[0]["mean"] is None and several[0]["tau"] == {name: [None, None] for name in scores}
    assert several[1] == {} and several[2] == agreement_by_text([scores], "attention")[0]
    assert several[3]["mean"] == -0.667 and several[3]["tau"]["mine"] == [None, -0.667]


def test_all_tokens_are_ranked_that_every_measure_scores() -> None:
    one = TextScores(np.array([1.0, 2.0]), np.array([3.0]), np.array([4.0, 5.0]))
    other = TextScores(np.array([6.0, 7.0]), np.array([8.0]), np.array([9.0, 0.0]))

    def ranked(*measures: TextScores, specials: bool = False) -> tuple[str, list[list[float]]]:
        tokens, scores = common_tokens(measures, specials)
        return tokens, scores.tolist()

    assert ranked(one, other) == ("texts", [[1, 2, 3], [6, 7, 8]])
    assert ranked(one, other, specials=True) == ("all", [[1, 2, 3, 4, 5], [6, 7, 8, 9, 0]])
    words = ("text", [[1, 2], [6, 7]])
    assert ranked(one, other._replace(pair=None), specials=True) == words
    # A measure of the text only has fewer special tokens.
    first = other._replace(specials=np.array([9.0]))
    assert ranked(one, first, specials=True) == ranked(one, other)
    alone = [measure._replace(pair=None) for measure in (one, other)]
    assert ranked(*alone) == words
    assert ranked(*alone, specials=True) == ("all", [[1, 2, 4, 5], [6, 7, 9, 0]])


def test_second_texts_and_special_tokens_are_scored(tmp_path: Path, tables: Tables) -> None:
    path = tables.write("attributions", [key | explored.EVERYWHERE for key in explored.keys(6)])
    block = tables.block()
    some = replace(block, importances=block.importances | {"gradient": path})
    for entry in built(tmp_path / "some", tables.shown(some))["0/0/0/explanations/0"]:
        assert entry["pair"] == {"gradient": [-1, 2, 0.25]} and entry["specials"] == {"gradient": [4, 0, 1]}
        assert list(entry["scores"]) == MEASURES and entry["ranked"] == "words of the text"
    shown = tables.shown(replace(block, importances=dict.fromkeys(MEASURES, path)))
    entry = built(tmp_path / "both", shown)["0/0/0/explanations/0"][0]
    assert entry["ranked"] == "words of both texts" and entry["mean"] == entry["tau"]["gradient"][0] == 1
    entry = built(tmp_path / "all", shown, options=replace(ALL, specials=True))["0/0/0/explanations/0"][0]
    assert entry["ranked"] == "all tokens"
    assert not {"pair", "specials"} & set(built(tmp_path / "no", tables.shown(block))["0/0/0/explanations/0"][0])


def test_a_measure_may_have_no_scores_of_a_text(tmp_path: Path, tables: Tables) -> None:
    some = [row for row in importances("gradient") if row["instance"] != 4]
    block = tables.block()
    partial = replace(block, importances=block.importances | {"gradient": tables.write("attributions", some)})
    chunk = built(tmp_path, tables.shown(partial))["0/0/1/explanations/0"]
    assert list(chunk[4]["scores"]) == ["attention"] and not {"tau", "mean", "ranked"} & set(chunk[4])
    assert list(chunk[5]["scores"]) == MEASURES and chunk[5]["tau"]["gradient"][0] == chunk[5]["mean"]


def test_scores_that_are_not_finite_are_none(tmp_path: Path, tables: Tables) -> None:
    rows = importances("gradient")
    rows[0]["scores"][2] = float("nan")
    shown = tables.shown(tables.block(importances={"gradient": tables.write("attributions", rows)}))
    scores = built(tmp_path, shown)["0/0/0/explanations/0"][0]["scores"]["gradient"]
    assert scores[2] is None and scores[3] == float(f"{np.float32(rows[0]['scores'][3]):.3g}")


def test_texts_have_evidence_groups_and_original_labels(tmp_path: Path, tables: Tables) -> None:
    found = built(tmp_path, tables.shown(tables.block()), tables.shown(tables.block(), rows=explored.manipulated()))
    second = {"tokens": ["<sos>", "who", "<is>", "?", "<eos>"], "specials": [0, 4]}
    text = {"tokens": ["<sos>", *HOSTILE], "specials": [0]}
    assert found["0/texts/0"] == [text | {"second": second, "evidence": [7, 8]}] * 6
    groups = {"groups": {"1": 1, "3": 2}}
    assert found["1/texts/0"] == [text | groups | {"original_label": 1}, *[text | groups] * 5]
    # The share on the last two words, which contain the answer, and on the first, which determines the label.
    for variant, truth in ((0, [6, 7]), (1, [0])):
        for entry in found[f"{variant}/0/0/explanations/0"]:
            scores = np.abs(entry["scores"]["gradient"])
            assert entry["truth"]["gradient"] == pytest.approx(scores[truth].sum() / scores.sum(), abs=0.01)


def test_adversarial_attention_is_shown(tmp_path: Path, tables: Tables) -> None:
    path = tables.write("adversaries", explored.adversaries())
    found = built(tmp_path, tables.shown(tables.block("a", adversaries=path), tables.block("b")))
    for number, entry in enumerate(found["0/0/1/explanations/0"]):
        small, large_ = entry["adversaries"]
        assert large_ == {"epsilon": 0.05, "jsd": 0.512, "change": 0.0123, "scores": [0.125] * 8}
        assert small == (large_ | {"epsilon": 0.01} if number % 2 else {"epsilon": 0.01})
    assert "adversaries" not in found["0/1/1/explanations/0"][0]


def test_attention_of_adversarial_models_is_shown(tmp_path: Path, tables: Tables) -> None:
    def attacked(name: str, *heads: list[float]) -> dict[str, Any]:
        adversary = tables.adversary("<attefa>", 1, 5, [0.0] * 7 + [1.0])
        own = tables.write("attention", explored.attention(1, *heads))
        block = tables.block(attention=own, adversarial_models=[adversary])
        return built(tmp_path / name, tables.shown(replace(block, importances={})))

    found = attacked("one", [0.5, 0.5] + [0.0] * 6)
    assert all("adversarial_models" not in entry for entry in found["0/0/0/explanations/0"])
    for entry in found["0/0/1/explanations/0"]:
        attention = entry["adversarial_models"]
        assert attention["heads"] == 1 and attention["scores"] == [0.5, 0.5, 0, 0, 0, 0, 0, 0]
        (model,) = attention["models"]
        assert (model["title"], model["seed"], model["jsd"]) == ("<attefa>", 5, 0.693)
        # Of the class that the base model predicts.
        assert model["probability"] == 0.5 and model["scores"] == [0, 0, 0, 0, 0, 0, 0, 1]
    found = attacked("two", [1.0] + [0.0] * 7, [0.0] * 4 + [1.0] + [0.0] * 3)
    heads = found["0/0/1/explanations/0"][0]["adversarial_models"]
    assert heads["heads"] == 2 and heads["scores"] == [0.5, 0, 0, 0, 0.5, 0, 0, 0]
    broken = attacked("none", [float("nan")] * 8)["0/0/1/explanations/0"][0]["adversarial_models"]
    assert broken["scores"] == [None] * 8 and broken["models"][0]["jsd"] is None


def test_models_with_subwords_have_texts_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    found = built(tmp_path, *everything(tmp_path / "tables"))
    assert found["0/texts/0"][3]["tokens"] == ["<sos>", *HOSTILE]
    assert found["0/2/texts/0"][3] == {
        "tokens": ["<s>", "Ġpie", "ces", "</s>"],
        "specials": [0, 3],
        "second": {"tokens": ["Ġwho3", "Ġis", "?", "</s>"], "specials": [3]},
    }
    assert "0/0/texts/0" not in found and len(found["0/2/0/explanations/0"][0]["scores"]["gradient"]) == 2


def test_masks_of_each_level_are_those_of_the_first_seed(tmp_path: Path, tables: Tables) -> None:
    points = [*tables.masked("gradient", "attention"), *tables.masked("attention", strategy="roar")]
    found = built(tmp_path, tables.shown(tables.block(), masks={"bilstm": points}))
    (model,) = found["index"]["sets"][0]["models"]
    levels = [[level for level, _ in curve["levels"]] for curve in model["curves"]]
    assert levels == [list(LEVELS)] * 3 and model["masks_seed"] == 0
    expected = [("recursive", "attention"), ("recursive", "gradient"), ("roar", "attention")]
    assert [(curve["strategy"], curve["measure"]) for curve in model["curves"]] == expected

    def flags(text: int, level: int) -> list[int]:
        packed = base64.b64decode(found["0/0/masks/0"][f"recursive/relative/gradient/{level}"][text])
        return np.unpackbits(np.frombuffer(packed, np.uint8)).tolist()

    assert flags(1, 50) == [1] * 4 + [0] * 4 and flags(3, 50) == [1] * 5 + [0] * 3 and flags(1, 100) == [1] * 8


def test_curves_may_share_the_masks_of_a_variant_and_a_text_may_have_none(tmp_path: Path, tables: Tables) -> None:
    shared = [point(measure, 100, variant="roar/relative/random/100") for measure in MEASURES]
    path = tables.write("masks", masks(100, texts=5))
    found = built(tmp_path, tables.shown(tables.block(), masks={"bilstm": [(one, path) for one in shared]}))
    (variant,) = found["0/0/masks/0"].values()
    assert [one is None for one in variant] == [False] * 5 + [True]
    assert [curve["levels"] for curve in masking_curves(shared)] == [[[100, "roar/relative/random/100"]]] * 2


def test_images_keep_their_colours_and_maps_their_signs(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    found = built(tmp_path, *everything(tmp_path / "tables"))
    image = found["2/texts/0"][2]
    pixels = np.frombuffer(base64.b64decode(image["pixels"]), np.uint8).reshape(SIDE, SIDE, 3)
    assert image["side"] == SIDE and pixels[0, 0].tolist() == [255, 0, 0] and (pixels[1:] == 80).all()
    region = np.unpackbits(np.frombuffer(base64.b64decode(image["region"]), np.uint8))[: SIDE**2]
    assert region.tolist() == [1] * SIDE + [0] * (SIDE**2 - SIDE)
    entry = found["2/0/0/explanations/0"][2]
    scores = np.float32(importances("random", words=SIDE**2)[2]["scores"])
    top, packed = entry["maps"]["random"]
    steps = np.frombuffer(base64.b64decode(packed), np.int8)
    assert np.abs(steps / 127 * top - np.clip(scores, -top, top)).max() < top / 100
    assert entry["truth"]["random"] == pytest.approx(np.abs(scores[:SIDE]).sum() / np.abs(scores).sum(), abs=0.001)
    assert found["2/0/0/list/0"]["explained"] == [1] * 6 and found["2/0/0/list/0"]["tau"] == [None] * 6
    assert saliency_map(np.zeros(4)) == [1.0, base64.b64encode(bytes(4)).decode()]


def test_large_images_are_downsampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plumbline.explorer.examples.MOST_PIXELS", 2)
    # Three rows and columns become two; the last one averages the remainder.
    assert downsampled(np.arange(9.0).reshape(3, 3)).tolist() == [[2, 3.5], [6.5, 8]]
    colours = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    assert downsampled(colours)[0, 1].tolist() == colours[:2, 2:].mean((0, 1)).tolist()
    assert downsampled(np.eye(2)).tolist() == np.eye(2).tolist()


def test_rows_are_found_whatever_their_order(tmp_path: Path, tables: Tables) -> None:
    rows = importances("gradient") + [row | {"split": "train"} for row in importances("random")]
    shuffled = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    chosen = ChosenInstances.from_numbers({"test": [5, 1, 3]})
    path = tables.write("attributions", shuffled)
    found = InstanceRows(path, ATTRIBUTIONS, ["scores", "pair"], chosen, tmp_path, ("measure", "gradient"))
    assert found.seeds == [0, 1] and len(chosen) == 3
    assert [position for position, _ in found.between(1, 0, 3)] == [0, 1, 2]
    ((_, row),) = found.between(1, 1, 2)
    assert row["pair"] is None and row["scores"].tolist() == np.float32(rows[6 + 3]["scores"]).tolist()
    assert list(found.between(2, 0, 3)) == []


def test_streamed_tables_are_checked_as_others_are(tmp_path: Path, tables: Tables) -> None:
    path = tables.write("masks", masks(50))
    (whole,) = stream_table(path, MASKS, ["seed", "masked"])
    parts = list(stream_table(path, MASKS, ["seed", "masked"], chunk_bytes=100))
    assert len(whole) == sum(map(len, parts)) == 24 and max(map(len, parts)) < 24
    assert pa.concat_tables(parts).to_pylist() == whole.to_pylist() and whole.column_names == ["seed", "masked"]
    with pytest.raises(DamagedError, match="holds 'masks' version 1, not 'attention'"):
        list(stream_table(path, ATTENTION, ["seed"]))
    with pytest.raises(PlumblineError, match="does not exist"):
        list(stream_table(tmp_path / "none.parquet", MASKS, ["seed"]))
    (tmp_path / "cut.parquet").write_bytes(Path(path).read_bytes()[:200])
    with pytest.raises(DamagedError, match="cannot be read as Parquet"):
        list(stream_table(tmp_path / "cut.parquet", MASKS, ["seed"]))


def test_blocks_have_the_files_of_their_cells() -> None:
    fixed = {"adversary": "mine", "objective": "attefa", "strength": None, "base_seed": 1, "seed": 5}
    swept = fixed | {"objective": "mine", "strength": 0.1, "seed": 6}
    plain = {"dataset": "sst", "variant": "plain", "model": "a", "measures": ["x"], "attacked": False}
    plain |= {"shown_adversaries": []}
    attacked = plain | {"variant": "articles", "model": "b", "measures": ["x", "y"], "attacked": True}
    found = find_blocks(
        [plain, attacked | {"shown_adversaries": [fixed, swept]}],
        ["p1", "p2"],
        ["x1", "x2", "y2"],
        ["adversaries"],
        ["own", "l5", "l6"],
        ["p5", "p6"],
    )
    assert found["sst", "plain"] == [SeedBlock("a", "p1", {"x": "x1"}, adversarial_models=[])]
    (block,) = found["sst", "articles"]
    assert block.importances == {"x": "x2", "y": "y2"} and (block.adversaries, block.attention) == (
        "adversaries",
        "own",
    )
    assert [(model.title, model.seed, model.attention, model.predictions) for model in block.adversarial_models] == [
        ("mine (attefa)", 5, "l5", "p5"),
        ("mine, λ\u00a0=\u00a00.1", 6, "l6", "p6"),
    ]


def test_only_the_most_probable_classes_are_shown() -> None:
    assert most_probable(np.array([0.1, 0.2, 0.3, 0.3, 0.1])) == [[2, 0.3], [3, 0.3], [1, 0.2]]
    assert most_probable(np.array([0.25, 0.75])) == [[1, 0.75], [0, 0.25]]


def test_examples_are_all_or_a_number() -> None:
    assert Report().examples == 200 and Report(examples="all").examples == "all" and Report(examples=0).examples == 0
    for wrong in (-1, "some", 1.5):
        with pytest.raises(ValueError):
            Report.model_validate({"examples": wrong})
