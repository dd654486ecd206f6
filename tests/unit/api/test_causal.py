"""A causal language model with a prompt and answers, in memory."""

import numpy as np
import pytest
import torch

import plumbline
from plumbline.attribution.run import attribute, load_calls
from plumbline.config.recipes import Preparation
from plumbline.data.corpus import Corpus, Example
from plumbline.data.instances import Instances
from plumbline.data.prepare import prepare
from plumbline.data.schemas import INSTANCES
from plumbline.data.subwords import tokenize_subwords
from plumbline.errors import PlumblineError
from plumbline.models.block import build_model, trained_models
from plumbline.registry import Registry
from plumbline.store import read_table, write_table, write_tensors

from ..models.test_causal import folder_of  # noqa: F401

PROMPT, ANSWERS = "Review: {text}\nSentiment:", {"negative": " bad", "positive": " good"}
TEXTS = ["the good film", "the bad film", "good"]


@pytest.fixture
def causal(folder_of):  # noqa: F811
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = folder_of("llama")
    return AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def test_classes_are_the_answers_to_the_prompt(causal):
    found = plumbline.evaluate(
        *causal,
        TEXTS,
        ["positive", "negative", 1],
        measures=["random", "leave-one-out"],
        protocols=["reliability"],
        prompt=PROMPT,
        answers=ANSWERS,
        progress=False,
    )
    model, tokenizer = causal
    answers = [tokenizer(answer)["input_ids"] for answer in ANSWERS.values()]
    for text, row in zip(TEXTS, found.predictions["probabilities"], strict=True):
        ids = torch.tensor([tokenizer(PROMPT.format(text=text))["input_ids"]])
        with torch.no_grad():
            logits = model(input_ids=ids).logits[0, -1]
        np.testing.assert_allclose(row, logits[[answers[0][0], answers[1][0]]].softmax(-1), atol=1e-5)
    assert found.predictions["label"].tolist() == ["positive", "negative", "positive"]
    assert "".join(found.instances["tokens"][1]).replace("Ġ", " ").strip() == TEXTS[1], "the prompt has no scores"


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_importances_are_those_of_the_jobs(folder_of, family, tmp_path):  # noqa: F811
    """The jobs prepare, tokenize_subwords, train without an epoch, and attribute."""
    folder, names = folder_of(family), ["input-x-gradient", "integrated-gradient-pad", "leave-one-out", "lime"]
    registry, answers = Registry(), [*ANSWERS.values()]
    found = plumbline.evaluate(
        folder,
        texts=TEXTS,
        labels=[1, 0, 1],
        measures=names,
        protocols=["agreement"],
        prompt=PROMPT,
        answers=ANSWERS,
        seeds=2,
        progress=False,
    ).importances.set_index(["measure", "instance"])
    corpus = Corpus([Example("test", 0, text.split()) for text in TEXTS], [*ANSWERS], every_class=False)
    write_table(tmp_path / "words", INSTANCES, prepare(corpus, Preparation(), "d", splits=["test"]).instances)
    columns, _ = tokenize_subwords(read_table(tmp_path / "words", INSTANCES), folder, PROMPT)
    write_table(tmp_path / "subwords", INSTANCES, columns)
    instances = Instances.from_table(read_table(tmp_path / "subwords", INSTANCES), ["test"])
    declared = registry.get("model", "causal")
    options = declared.defaults | {"checkpoint": folder, "prompt": PROMPT, "answers": answers}
    state = build_model(declared.pointer, options, None, 2).state_dict()
    write_tensors(tmp_path / "weights", {f"2/{name}": value.clone() for name, value in state.items()})
    models = trained_models(tmp_path / "weights", declared.pointer, options, 2, [2], 512)
    measures = {name: registry.get("measure", name) for name in names}
    calls = {
        name: {"object": measure.pointer, "options": measure.defaults, "splits": [], "bases": {}}
        for name, measure in measures.items()
    }
    expected, _ = attribute(models, instances, load_calls(calls))
    for name in names:
        assert np.ptp(expected[name]["scores"][0]) > 0
        for i, scores in enumerate(expected[name]["scores"]):
            assert len(scores) == instances.maskable[i].sum()
            np.testing.assert_allclose(found.loc[(name, i), "scores"], scores, atol=1e-6, rtol=1e-5)


def test_a_causal_model_needs_a_prompt(causal):
    with pytest.raises(PlumblineError, match="is a causal language model; give a `prompt`"):
        plumbline.explain(*causal, TEXTS)
    with pytest.raises(PlumblineError, match="are the same; give each class a different answer"):
        plumbline.explain(*causal, TEXTS, prompt=PROMPT, answers=[" good", " good"])


def test_the_written_config_fine_tunes_it(causal, tmp_path):
    found = plumbline.explain(
        *causal, TEXTS, [1, 0, 1], measures=["random"], prompt=PROMPT, answers=ANSWERS, progress=False
    )
    training = [f"{word} {i}" for i in range(20) for word in ("good", "bad")]
    text = found.to_config(tmp_path / "my.yaml", training, ["positive", "negative"] * 20).read_text()
    assert text.count("kind: causal") == 2 and "epochs: 1" in text
