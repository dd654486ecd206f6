"""A Song of (Dis)agreement as a whole small study: pairs, special tokens and subwords, explained in samples."""

import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from plumbline.data.instances import draw_sample

from .conftest import JUDGED, copy_project, planned_jobs, run_snakemake, write_config

pytestmark = pytest.mark.studies
SEEDS, SAMPLE = (0, 1), 12
KEY = ["seed", "split", "instance"]
PARTS = {"text": ["scores"], "texts": ["scores", "pair"], "all": ["scores", "pair", "specials"]}
TABLES = ("agreement", "of-words", "reproduction", "quirks", "timings")
AFTER = {"score", *(f"table:{name}" for name in TABLES), "draw_agreement", *JUDGED, "report", "explorer"}
CONFIG = {
    # Models of a few steps are at chance.
    "least_above_chance": None,
    "name": "small song",
    "plugins": ["rephrased.py"],
    "datasets": {
        "rephrased": {},
        "mock-2": {
            "train": 96, "dev": 32, "test": 24, "shortest": 4, "longest": 8,
            "preparation": {"embedding": {"dimensions": 12}},
        },
    },
    "models": {
        "bilstm-shared": {
            "hidden": 8, "training": {"epochs": 3},
            "measures": ["attention", "lime", "deep-lift", "deep-shap", "grad-x-diff", "deep-shap-published"],
        },
        "transformer-tanh": {
            "hidden": 8, "datasets": ["mock-2"], "training": {"epochs": 3},
            "measures": ["attention", "rollout", "attention-flow", "integrated-gradient-pad"],
        },
        "minilm-song": {
            "checkpoint": "checkpoint", "datasets": ["rephrased"], "training": {"epochs": 1},
            "measures": ["rollout", "deep-lift"],
        },
    },
    "seeds": ["0-1"],
    "measures": {
        "attention": {}, "rollout": {}, "attention-flow": {}, "lime": {"samples": 30},
        "integrated-gradient-pad": {"steps": 5}, "deep-lift": {}, "deep-shap": {}, "grad-x-diff": {},
        "deep-shap-published": {},
    },
    "sample": SAMPLE,
    "protocols": {
        "agreement": {"tokens": ["text", "texts", "all"]},
        "of-words": {"kind": "agreement", "tokens": ["texts"], "subwords": "summed"},
    },
    "report": {"examples": 2},
}  # fmt: skip
CELLS = [("rephrased", "bilstm-shared"), ("mock-2", "transformer-tanh"), ("rephrased", "minilm-song")]


@pytest.fixture(scope="module")
def song(tmp_path_factory, tiny_bert) -> Path:
    """The study after one whole run."""
    folder = copy_project(tmp_path_factory.mktemp("song") / "study")
    shutil.copy2(Path(__file__).with_name("rephrased.py"), folder)
    shutil.copytree(tiny_bert, folder / "checkpoint")
    write_config(folder, CONFIG)
    done = run_snakemake(folder, "all", "--cores", "3")
    assert done.returncode == 0, done.stdout
    return folder


@pytest.fixture
def study(song, tmp_path) -> Path:
    """The finished study to change."""
    return shutil.copytree(song, tmp_path / "study", symlinks=True)


def texts_of(folder: Path, dataset: str, model: str) -> pd.DataFrame:
    """The test texts that a model reads."""
    of = "plain/subwords/minilm-song" if model == "minilm-song" else "plain"
    texts = pd.read_parquet(folder / f"results/data/{dataset}/{of}/instances.parquet")
    return texts[texts["split"] == "test"].reset_index(drop=True)


def importances_of(folder: Path, dataset: str, model: str) -> dict[str, pd.DataFrame]:
    """The importances of each seed and instance, by measure."""
    cell = folder / f"results/attributions/{dataset}/plain/{model}/0-1"
    tables = [
        of for path in sorted(cell.glob("*.parquet")) for of in pd.read_parquet(path).groupby("measure", observed=True)
    ]
    assert len(dict(tables)) == len(tables), "a measure is in one file"
    return {measure: table.set_index(KEY) for measure, table in tables}


@pytest.mark.parametrize(("dataset", "model"), CELLS)
def test_each_seed_explains_the_texts_that_it_draws(song, dataset, model):
    texts = texts_of(song, dataset, model)
    drawn = {seed: texts["instance"][draw_sample(texts["split"].to_numpy(), SAMPLE, seed)].tolist() for seed in SEEDS}
    assert drawn[0] != drawn[1] and all(len(set(numbers)) == SAMPLE < len(texts) for numbers in drawn.values())
    keys = [(seed, "test", instance) for seed in SEEDS for instance in drawn[seed]]
    found = importances_of(song, dataset, model)
    assert sorted(found) == sorted(CONFIG["models"][model]["measures"])
    for measure, table in found.items():
        assert table.index.tolist() == keys, measure
    scored = pd.read_parquet(song / f"results/scores/agreement/{dataset}/plain/{model}/0-1.parquet")
    assert set(scored.set_index(KEY).index) == set(keys)


@pytest.mark.parametrize(("dataset", "model"), CELLS)
def test_second_texts_and_special_tokens_have_scores(song, dataset, model):
    texts = texts_of(song, dataset, model).set_index("instance")
    for measure, table in importances_of(song, dataset, model).items():
        for (_, _, instance), row in table.iterrows():
            first, second = texts.loc[instance, ["maskable", "maskable_b"]]
            assert (second is None) == (row["pair"] is None) == (dataset == "mock-2")
            second, pair = ([], []) if second is None else (second, row["pair"])
            assert (len(row["scores"]), len(pair)) == (sum(first), sum(second))
            assert len(row["specials"]) == len(first) + len(second) - sum(first) - sum(second) >= 2
            assert np.any(row["specials"]) == (measure != "attention"), "where attention never falls"
            if measure in ("rollout", "attention-flow"):
                assert sum(row["scores"]) + sum(pair) + sum(row["specials"]) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("dataset", "model"), CELLS)
def test_correlations_follow_the_importances(song, dataset, model):
    """Recomputed text by text from the stored files."""
    texts = texts_of(song, dataset, model).set_index("instance")
    found = {measure: table.to_dict("index") for measure, table in importances_of(song, dataset, model).items()}
    of_words = {"scores": texts["word"].to_dict(), "pair": texts["word_b"].to_dict()}

    def ranked(measure: str, key: tuple, tokens: str, joined: bool) -> list[float]:
        values: list[float] = []
        for part in PARTS[tokens]:
            scores = found[measure][key][part]
            words = of_words[part][key[-1]] if joined else None
            if words is not None:
                values += [scores[words == word].sum() for word in range(max(words) + 1)]
            elif scores is not None:
                values += scores.tolist()
        return values

    for protocol, sets, joined in (("agreement", list(PARTS), False), ("of-words", ["texts"], True)):
        stored = pd.read_parquet(song / f"results/scores/{protocol}/{dataset}/plain/{model}/0-1.parquet")
        stored = stored.set_index([*KEY, "measure_a", "measure_b", "tokens"])["value"]
        assert len(stored) == len(SEEDS) * SAMPLE * len(list(combinations(found, 2))) * len(sets)
        for (*key, a, b, tokens), value in stored.items():
            both = [ranked(measure, tuple(key), tokens, joined) for measure in (a, b)]
            expected = kendalltau(*both).statistic
            assert value == pytest.approx(expected, abs=1e-6, nan_ok=True), (key, a, b, tokens)


def test_tables_have_all_kinds_of_tokens(song):
    agreement, words = (pd.read_parquet(song / f"results/tables/{name}.parquet") for name in ("agreement", "of-words"))
    for _, rows in agreement.groupby(["model", "seed", "measure_a", "measure_b"], observed=True):
        assert set(rows["tokens"]) == set(PARTS)
    assert set(words["tokens"]) == {"texts"}
    keys = ["model", "seed", "measure_a", "measure_b", "predicted_class"]
    apart, joined = (rows[rows["tokens"] == "texts"].set_index(keys)["mean"] for rows in (agreement, words))
    pd.testing.assert_series_equal(apart["bilstm-shared"], joined["bilstm-shared"])
    assert (apart["minilm-song"] != joined["minilm-song"]).all(), "its words are of several subwords"


def test_deep_shap_is_deep_lift_but_not_as_published(song):
    agreement = pd.read_parquet(song / "results/tables/agreement.parquet").set_index(["measure_a", "measure_b"])
    same = agreement.loc[("deep-lift", "deep-shap")]
    assert set(same["tokens"]) == set(PARTS) and set(same["seed"]) == set(SEEDS)
    np.testing.assert_allclose(same["mean"], 1, rtol=1e-9)
    assert (same["dropped"] == 0).all()
    published = agreement.loc[("deep-shap-published", "grad-x-diff")]
    assert (published["mean"][published["predicted_class"] == "all"] < 1).all()


def test_the_report_and_figures_exist(song):
    for model in CONFIG["models"]:
        for suffix in ("svg", "pdf", "png"):
            assert (song / f"results/figures/correlation-matrices/{model}.{suffix}").stat().st_size > 5000
    assert "deep-shap-published" in (song / "results/tables/agreement.tex").read_text()
    assert "small song" in (song / "results/report/index.html").read_text()
    page = (song / "results/report/disagreement.html").read_text()
    assert "all tokens" in page and "correlation-matrices" in page


def test_nothing_is_left_to_do(study):
    assert planned_jobs(study) == set()


def test_a_new_measure_runs_its_own_jobs_only(study, reconfigure):
    def edit(config):
        config["measures"]["grad-shap"] = {}
        config["models"]["bilstm-shared"]["measures"].append("grad-shap")

    reconfigure(study, edit)
    assert planned_jobs(study) == {"attribute:grad-shap", *AFTER}


def test_another_sample_is_explained_again_without_training(study, reconfigure):
    reconfigure(study, lambda config: config.update(sample=SAMPLE - 2))
    costly = set(CONFIG["measures"]) - {"attention", "rollout"}
    assert planned_jobs(study) == {"attribute:cheap", *(f"attribute:{measure}" for measure in costly), *AFTER}
