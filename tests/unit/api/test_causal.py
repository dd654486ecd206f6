"""A causal language model with a prompt and answers, in memory."""

import numpy as np
import pytest
import torch

import plumbline
from plumbline.errors import PlumblineError

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
        protocols=["agreement"],
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


def test_a_causal_model_needs_a_prompt(causal):
    with pytest.raises(PlumblineError, match="is a causal language model; give a `prompt`"):
        plumbline.explain(*causal, TEXTS)
    with pytest.raises(PlumblineError, match="the same word"):
        plumbline.explain(*causal, TEXTS, prompt=PROMPT, answers=[" good", " good"])


def test_the_written_config_fine_tunes_it(causal, tmp_path):
    found = plumbline.explain(
        *causal, TEXTS, [1, 0, 1], measures=["random"], prompt=PROMPT, answers=ANSWERS, progress=False
    )
    training = [f"{word} {i}" for i in range(20) for word in ("good", "bad")]
    text = found.to_config(tmp_path / "my.yaml", training, ["positive", "negative"] * 20).read_text()
    assert text.count("kind: causal") == 2 and "epochs: 1" in text
