"""Results as pandas tables, figures and heat maps; saved and loaded again; and the config that goes on with them."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml
from matplotlib.figure import Figure
from matplotlib.text import Text

import plumbline
from plumbline.config.external import locate_files
from plumbline.config.resolve import resolve
from plumbline.config.runs import list_runs
from plumbline.data.own_rows import own_instances
from plumbline.errors import PlumblineError

from .conftest import LABELS, TEXTS

TRAINING = ["good film", "bad film", "great plot", "dull plot"] * 10, ["good", "bad"] * 20


def test_saved_results_are_loaded_unchanged(evaluated, tmp_path):
    loaded = plumbline.load(evaluated.save(tmp_path / "mine"))
    assert loaded.tables == evaluated.tables == ["agreement", "erasure", "performance", "scorecard"]
    for name in loaded.tables:
        pd.testing.assert_frame_equal(loaded.table(name), evaluated.table(name))
    for name in ("importances", "instances", "predictions", "scorecard"):
        pd.testing.assert_frame_equal(getattr(loaded, name), getattr(evaluated, name))
    assert str(loaded.show(1)) == str(evaluated.show(1))
    assert loaded.figures == evaluated.figures


def test_results_remain_until_the_evaluation_is_deleted(classifier):
    found = plumbline.explain(*classifier, TEXTS[:1], measures=["random"], progress=False)
    folder = found.folder
    assert folder.is_dir() and found.tables == [] and len(found.importances) == 1
    del found
    assert not folder.exists()


def test_scorecard_has_measures_in_rows_and_criteria_in_columns(evaluated):
    long = evaluated.table("scorecard").set_index(["measure", "criterion"])["value"]
    wide = evaluated.scorecard
    assert wide.index.name == "measure" and {*wide.index} == {"random", "gradient-norm", "leave-one-out", "lengths"}
    for measure in wide.index:
        for criterion in wide.columns:
            one, other = wide.loc[measure, criterion], long[measure, criterion]
            assert one == other or (pd.isna(one) and pd.isna(other))


def test_directions_say_which_values_of_the_scorecard_are_better(evaluated):
    assert list(evaluated.directions) == list(evaluated.scorecard)
    assert evaluated.directions["comprehensiveness"] == "higher" and evaluated.directions["sufficiency"] == "lower"


def name_of(classifier):
    """The folder from which transformers read the config of a model in memory."""
    return Path(classifier[0].config.name_or_path).name


def test_the_verdict_is_that_of_the_report(evaluated):
    assert evaluated.verdict[0].startswith("The best measure by ")


def test_an_evaluation_as_text_has_the_accuracy_and_the_scorecard(evaluated, classifier):
    first, measures, protocols, names, *rows = repr(evaluated).splitlines()
    assert first == f"Evaluation of {name_of(classifier)}, 6 texts, accuracy 0.33"
    assert measures == "measures: random, gradient-norm, leave-one-out, lengths"
    assert protocols == "protocols: agreement, erasure"
    assert "agreement ↑" in names and "sufficiency ↓" in names
    value = evaluated.scorecard.loc["lengths", "comprehensiveness"]
    assert any(row.startswith("lengths") and f"{value:.3f}" in row for row in rows)
    explained = plumbline.explain(*classifier, TEXTS[:1], measures=["random"], progress=False)
    assert repr(explained).splitlines() == [
        f"Evaluation of {name_of(classifier)}, 1 text",
        "measures: random",
        "protocols: none",
    ]


def test_importances_begin_with_the_text_and_its_scores(evaluated):
    assert list(evaluated.importances)[:5] == ["instance", "tokens", "measure", "scores", "target"]
    assert {"seed", "split", "dataset", "variant", "model", "pair_tokens", "pair_scores"} < {*evaluated.importances}


def test_figures_name_the_model_and_the_number_of_texts(evaluated, classifier, saved_classifier, tmp_path):
    def titles(figure):
        return [text.get_text() for text in figure.findobj(Text)]

    card = " ".join(titles(evaluated.plot()))
    title = f"{name_of(classifier)}, 6 texts"
    assert title in card and "texts, model" not in card
    assert "interval" not in card, "one seed has none"
    loaded = plumbline.load(evaluated.save(tmp_path / "mine"))
    assert title in " ".join(titles(loaded.plot("tau-matrix")))
    named = plumbline.explain(saved_classifier, texts=TEXTS[:1], measures=["random"], progress=False)
    assert repr(named).startswith(f"Evaluation of {saved_classifier.name}, 1 text\n")


def test_plot_draws_the_figures_of_the_report(evaluated):
    figure = evaluated.plot()
    assert isinstance(figure, Figure) and figure._repr_png_().startswith(b"\x89PNG")
    written = {text.get_text() for axes in figure.axes for text in axes.get_yticklabels()}
    assert {"lengths", "gradient-norm"} <= written
    assert isinstance(evaluated.plot("tau-matrix", dataset="texts", model="model"), Figure)
    with pytest.raises(PlumblineError, match=r"no figure 'tau-matrx'.*did you mean 'tau-matrix'"):
        evaluated.plot("tau-matrx")
    with pytest.raises(PlumblineError, match="no figure 'erasure' of 'movie'; it exists for: texts, model"):
        evaluated.plot("erasure", dataset="movie")


def test_show_shades_words_by_their_share_of_the_largest_score(evaluated):
    shown = evaluated.show(3)
    assert shown.tokens == ["a", "dull", "film"]
    assert shown.shares("lengths").tolist() == [0.25, 1, 1]
    html = shown._repr_html_()
    assert html.count("<tr>") == 4 and "100%" in html and "25%" in html
    assert "lengths        ▂a █dull █film" in str(shown)
    with pytest.raises(PlumblineError, match="no explained instance 99"):
        evaluated.show(99)


def test_heat_maps_escape_words_and_mark_negative_scores():
    shown = plumbline.HeatMap("<t>", ["<b>", "x"], {"m": [-2.0, 1.0]})
    html = shown._repr_html_()
    assert "&lt;b&gt;" in html and "<b>" not in html and "&lt;t&gt;" in html
    assert html.count("underline wavy") == 1 and shown.shares("m").tolist() == [-1, 0.5]


def test_unknown_tables_and_folders_are_refused(evaluated, tmp_path):
    with pytest.raises(PlumblineError, match=r"no table 'erasur'.*did you mean 'erasure'"):
        evaluated.table("erasur")
    with pytest.raises(PlumblineError, match="no folder 'nowhere'"):
        plumbline.load("nowhere")
    with pytest.raises(PlumblineError, match="not the results folder"):
        plumbline.load(tmp_path)
    with pytest.raises(PlumblineError, match="exists and is not empty"):
        evaluated.save(Path(__file__).parent)
    copy = evaluated.save(tmp_path / "part")
    (copy / "manifest.json").unlink()
    unfinished = plumbline.load(copy)
    assert len(unfinished.table("erasure"))
    with pytest.raises(PlumblineError, match="finish the run, or give the config"):
        _ = unfinished.importances


def test_stored_tables_are_drawn_by_the_config_of_their_study():
    project = Path(__file__).parents[3]
    stored = plumbline.load(project / "reproductions/sensitivity-sst", study="sensitivity-sst")
    assert {"scorecard", "detection"} <= set(stored.figures) and "erasure" not in stored.figures, "it has no such table"
    assert isinstance(stored.plot("detection"), Figure)
    wide = stored.scorecard
    assert wide.index.names == ["variant", "model", "measure"], "there is one dataset"
    keys = "criterion == 'agreement' and variant == 'plain' and model == 'bilstm-tanh' and measure == 'attention'"
    (row,) = stored.table("scorecard").query(keys).itertuples()
    assert wide.loc[("plain", "bilstm-tanh", "attention"), "agreement"] == row.value == pytest.approx(0.35, abs=0.01)
    with pytest.raises(PlumblineError, match="has only tables, like a recorded run"):
        _ = stored.importances


def read(path):
    config = yaml.safe_load(path.read_text())
    return config, resolve(locate_files(config, [path.parent]))


def test_the_written_config_is_that_of_a_study(evaluated, tmp_path):
    config, resolved = read(evaluated.to_config(tmp_path / "new" / "my.yaml", *TRAINING))
    runs = list_runs(resolved)
    assert [cell.model for cell in runs.cells] == ["model", "retrained"]
    assert {cell.model for cell in runs.curves} == {"retrained"}, "only a model that is trained can be retrained"
    assert {*config["measures"]} == {"random", "gradient-norm", "leave-one-out", "lengths"}
    assert config["protocols"]["erasure"] == {"ratios": [50], "draws": 0, "longest": 0}
    rows = [json.loads(line) for line in (tmp_path / "new/my-texts.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows if row["split"] == "test"] == TEXTS
    assert [row["label"] for row in rows if row["split"] == "test"] == [("bad", "good")[label] for label in LABELS]
    splits = [split for split, _ in own_instances(resolved, "texts")]
    assert {split: splits.count(split) for split in splits} == {"train": 36, "dev": 4, "test": 6}
    assert (tmp_path / "new/my-checkpoint/model.safetensors").is_file()


def test_the_written_config_draws_splits_without_training_texts(saved_classifier, tmp_path):
    texts, labels = TRAINING
    found = plumbline.evaluate(
        saved_classifier, texts=texts, labels=labels, measures=["gradient-norm"], protocols=["erasure"], progress=False
    )
    config, resolved = read(found.to_config(tmp_path / "my.yaml"))
    assert "random" in config["measures"], "ROAR compares with random masking"
    assert config["models"]["model"]["checkpoint"] == str(saved_classifier)
    splits = [split for split, _ in own_instances(resolved, "texts")]
    assert {split: splits.count(split) for split in splits} == {"train": 32, "dev": 4, "test": 4}


def test_texts_that_cannot_be_split_are_refused(evaluated, tmp_path):
    drawn = (
        r"^Class 'bad' has 3 rows, none of which was drawn for .*: without .* `result.to_config\(path, texts, labels\)`"
    )
    with pytest.raises(PlumblineError, match=drawn):
        evaluated.to_config(tmp_path / "my.yaml")
    given = (
        "^Class 'bad' has 4 rows, none of which was drawn for 'dev': 10% of the training `texts` become the dev split"
    )
    with pytest.raises(PlumblineError, match=given):
        evaluated.to_config(tmp_path / "my.yaml", [*TEXTS, *TRAINING[0]], [0, *[1] * 45])
    with pytest.raises(PlumblineError, match=r"must end in \.yaml"):
        evaluated.to_config(tmp_path / "my.txt", *TRAINING)
    with pytest.raises(PlumblineError, match="`labels` is missing"):
        evaluated.to_config(tmp_path / "my.yaml", TRAINING[0])
    assert not any(tmp_path.iterdir()), "nothing is left"


def test_files_are_not_overwritten_and_labels_not_invented(evaluated, classifier, tmp_path):
    (tmp_path / "my-checkpoint").mkdir()
    with pytest.raises(PlumblineError, match="my-checkpoint' exists; remove it"):
        evaluated.to_config(tmp_path / "my.yaml", *TRAINING)
    assert [path.name for path in tmp_path.iterdir()] == ["my-checkpoint"]
    explained = plumbline.explain(*classifier, TEXTS, measures=["random"], progress=False)
    assert explained.instances["label"].tolist() == explained.predictions["predicted"].tolist()
    assert explained.predictions["label"].tolist() == explained.predictions["predicted"].tolist()
    with pytest.raises(PlumblineError, match="A study needs the class of each text; call `evaluate` with `labels`"):
        explained.to_config(tmp_path / "other.yaml", *TRAINING)


def test_a_config_without_a_measure_to_mask_by_has_no_roar(classifier, tmp_path):
    found = plumbline.explain(*classifier, TEXTS, LABELS, measures=["random"], progress=False)
    assert "roar" not in read(found.to_config(tmp_path / "my.yaml", *TRAINING))[0]
