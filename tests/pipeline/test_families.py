"""Recent encoders and causal language models, of random weights, through a small study: every protocol that applies."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.unit.models.test_causal import FAMILIES as CAUSAL
from tests.unit.models.test_causal import save_tokenizer
from tests.unit.models.test_families import FAMILIES as ENCODERS

from .conftest import CONFIG, run_study

pytestmark = pytest.mark.studies
FAMILIES = ["modernbert", "deberta-v3"]
LANGUAGE = ["gpt2", "llama", "qwen2"]
TRAINED = {"epochs": 2, "batch_size": 8}


def model_entries() -> dict[str, dict]:
    prompt = {"kind": "causal", "prompt": "Text: {text}\nClass:"}
    return {
        **{name: {"checkpoint": name, "training": TRAINED, "datasets": ["mock-2"]} for name in FAMILIES},
        "gpt2": {**prompt, "checkpoint": "gpt2", "answers": [" bad", " good"], "datasets": ["mock-2"]},
        "llama": {**prompt, "checkpoint": "llama", "training": TRAINED, "datasets": ["mock-2"]},
        "gpt2-verbs": {"kind": "causal", "checkpoint": "gpt2", "prompt": "{text}", "datasets": ["verbs"]},
        "qwen2": {"kind": "causal", "checkpoint": "qwen2", "prompt": "{text} {pair} Answer:", "datasets": ["stories"]},
    }


CONFIG_OF_FAMILIES = {
    "name": "families",
    "datasets": {
        "mock-2": CONFIG["datasets"]["mock-2"],
        "stories": {"train": 24, "dev": 8, "test": 8, "preparation": {"embedding": {"dimensions": 4}}},
        "verbs": {
            "kind": "table",
            "path": "verbs.csv",
            "text": "prefix",
            "label": "good",
            "answers": ["bad"],
            "tokens": "cased",
            "preparation": {"embedding": {"kind": "random", "dimensions": 4}},
        },
    },
    "models": model_entries(),
    "seeds": ["0"],
    "sample": 6,
    "roar": {"relative": {"levels": [50], "models": ["llama"], "measures": ["input-x-gradient"]}},
    "measures": {
        "input-x-gradient": {"function": "difference"},
        "integrated-gradient-pad": {"function": "difference", "steps": 5, "tolerance": 0},
        "lime": {"samples": 20},
        "leave-one-out": {},
        "rollout": {},
        "random": {},
    },
    "protocols": {
        "agreement": {},
        "erasure": {"ratios": [20, 50], "draws": 1, "longest": 0},
        "randomised_weights": {},
    },
}


def write_verbs(path: Path) -> None:
    """Minimal pairs of subject-verb agreement with a noun in between, which has the other number."""
    nouns, verbs = (("key", "keys"), ("dog", "dogs"), ("child", "children")), (("is", "are"), ("has", "have"))
    rows = [
        (f"The {subject[number]} near the {other[1 - number]}", verb[number], verb[1 - number])
        for subject in nouns
        for other in nouns
        for verb in verbs
        for number in (0, 1)
    ]
    path.write_text("\n".join(map(",".join, [("prefix", "good", "bad"), *rows])) + "\n")


def run_families(folder: Path, tiny_bert: Path) -> None:
    import torch
    from transformers import AutoTokenizer

    from plumbline.conformance.checkpoints import save_checkpoint

    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    for name in FAMILIES:
        kind, options = ENCODERS[name]
        torch.manual_seed(0)
        save_checkpoint(folder / name, kind, **{"pad_token_id": 0, **options, "vocab_size": len(tokenizer)})
        tokenizer.save_pretrained(folder / name)
    for name in LANGUAGE:
        torch.manual_seed(0)
        save_checkpoint(folder / name, name, causal=True, **CAUSAL[name], vocab_size=300, max_position_embeddings=700)
        save_tokenizer(folder / name)
    write_verbs(folder / "verbs.csv")
    run_study(folder, CONFIG_OF_FAMILIES, "all", "--cores", "2")


@pytest.fixture(scope="module")
def study(once, tiny_bert) -> Path:
    return once("families", lambda folder: run_families(folder, tiny_bert))


def table(study: Path, name: str) -> pd.DataFrame:
    return pd.read_parquet(study / "results" / "tables" / f"{name}.parquet")


def test_a_text_may_have_answers_of_its_own(study):
    """Only the right verb and its foil are possible, chance is a half, and a measure explains one against the other."""
    folder = study / "results"
    classes = json.loads((folder / "data/verbs/dataset.json").read_text())["classes"]
    predictions = pd.read_parquet(folder / "models/verbs/plain/gpt2-verbs/0/predictions.parquet")
    numbers = {frozenset((classes.index(a), classes.index(b))) for a, b in (("is", "are"), ("has", "have"))}
    for row in predictions.itertuples():
        possible = np.flatnonzero(row.probabilities)
        assert frozenset(possible) == frozenset(row.answers) and frozenset(possible) in numbers
        assert row.label in possible
    test = predictions[predictions["split"] == "test"]
    performance = table(study, "performance").query("dataset == 'verbs' and split == 'test'")
    reason = performance.loc[performance["metric"] == "above_chance", "reason"].item()
    right = np.mean([np.argmax(row.probabilities) == row.label for row in test.itertuples()])
    assert f"accuracy is {right:.2f} on {len(test)} instances" in reason
    scores = pd.read_parquet(folder / "attributions/verbs/plain/gpt2-verbs/0/integrated-gradient-pad.parquet")["scores"]
    assert len(scores) and all(np.abs(row).max() > 0 for row in scores)


def test_every_model_is_scored_by_every_protocol(study):
    """Models of random weights are at chance, which the tables state; their scores are there all the same."""
    for name, value in (("agreement", "mean"), ("erasure", "mean"), ("randomised_weights", "kendall")):
        rows = table(study, name)
        for model in (*FAMILIES, *LANGUAGE):
            own = rows[rows["model"] == model]
            found = {value for column in own.columns if column.startswith("measure") for value in own[column]}
            assert {"integrated-gradient-pad", "lime", "leave-one-out"} <= found, (name, model)
            assert own[value].notna().any(), (name, model)
    assert set(table(study, "roar")["model"]) == set(table(study, "faithfulness")["model"]) == {"llama"}


def test_words_of_a_prompt_have_no_scores(study):
    folder = study / "results" / "attributions" / "mock-2" / "plain" / "gpt2" / "0"
    rows = pd.read_parquet(folder / "lime.parquet")
    texts = pd.read_parquet(study / "results/data/mock-2/plain/subwords/gpt2/instances.parquet")
    texts = texts[texts["split"] == "test"].set_index("instance")
    assert rows["specials"].isna().all()
    for row in rows.itertuples():
        assert len(row.scores) == texts.loc[row.instance, "maskable"].sum() < len(texts.loc[row.instance, "ids"])


def test_a_language_model_that_is_not_trained_is_used_as_it_is(study):
    history = pd.read_parquet(study / "results/models/mock-2/plain/gpt2/0/history.parquet")
    assert history["epoch"].max() == 0


def test_answers_are_the_names_of_the_classes_by_default(study):
    classes = json.loads((study / "results/data/stories/dataset.json").read_text())["classes"]
    predictions = pd.read_parquet(study / "results/models/stories/plain/qwen2/0/predictions.parquet")
    probabilities = np.stack(predictions["probabilities"].to_numpy())
    assert probabilities.shape[1] == len(classes) == 6
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-5)
    assert probabilities.std(0).min() > 0, "they depend on the text"
