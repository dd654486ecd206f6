"""Wrong arguments are refused in one sentence, before any model runs."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import plumbline
from plumbline.errors import PlumblineError

from .conftest import LABELS, TEXTS

FAULTS = {
    "no texts": ({"texts": []}, "`texts` is empty"),
    "one string": ({"texts": "good film"}, "`texts` must be a list, not str"),
    "a number": ({"texts": [1, 2], "labels": [0, 1]}, "`texts[0]` is a int; each must be a string"),
    "empty text": ({"texts": ["good", " "], "labels": [0, 1]}, "`texts[1]` has no word"),
    "some pairs": ({"texts": ["good", ("a", "b")], "labels": [0, 1]}, "`texts[1]` has 2 texts; all must be single"),
    "no labels": ({"labels": None}, "`labels` is missing: give the class of each text, or call `explain`"),
    "few labels": ({"labels": [0]}, "`labels` has the length 1, but there are 6 texts"),
    "number of no class": ({"labels": [2] * 6}, "`labels[0]` is 2, but the model has 2 classes, numbered from 0"),
    "name of no class": (
        {"labels": ["goood"] * 6},
        "neither the name nor the index of a class of the model; did you mean 'good'?",
    ),
    "misspelt measure": ({"measures": ["gradient-nrm"]}, "did you mean 'gradient-norm'?"),
    "measure of attention": (
        {"measures": ["attention"]},
        "`measures` names 'attention', which needs attention, which the model does",
    ),
    "measure of training texts": (
        {"measures": ["random", "gradient-norm", "mutual-information"]},
        "Measure 'mutual-information' needs texts of the split 'train', which a study has; leave it out",
    ),
    "one measure for two": (
        {"measures": ["random"], "protocols": ["agreement"]},
        "compares at least 2 measures, but the model has 1",
    ),
    "one measure besides random": (
        {"protocols": ["agreement"]},
        "`protocols` names 'agreement', which needs 2 measures or more besides random, but `measures` has 1, so it",
    ),
    "random importances alone": (
        {"measures": ["random"], "protocols": ["erasure"]},
        "'erasure', which needs one measure or more besides random, but `measures` has none, so it",
    ),
    "a table in place of a column": (
        {"texts": pd.DataFrame({"body": ["a b"]})},
        "give one of its columns, such as frame['body']",
    ),
    "half a seed": ({"seeds": 1.5}, "`seeds` is 1.5; it must be a whole number or a list of them."),
    "one class": (
        {"labels": [1] * 6, "least_above_chance": 0.2},
        "`labels` has one class only, 'good', so the accuracy cannot exceed chance",
    ),
    "measures as a string": ({"measures": "random"}, "`measures` is a string; write a list, such as ['random']"),
    "misspelt option": ({"measures": {"lime": {"sampels": 3}}}, "did you mean 'samples'?"),
    "misspelt protocol": ({"protocols": ["erasur"]}, "did you mean 'erasure'?"),
    "roar": (
        {"protocols": ["roar"]},
        "`result.to_config('my.yaml')`, set `roar` there and run `plumbline run my.yaml`",
    ),
    "ground truth": ({"protocols": ["ground_truth"]}, "trains models on manipulated texts"),
    "masked erasure": ({"protocols": {"m": {"kind": "masked_erasure"}}}, "trained with masked words"),
    "adversaries": ({"protocols": ["adversary"]}, "set `adversaries` there"),
    "evidence without marks": (
        {"protocols": ["evidence"]},
        "`protocols` names 'evidence', which needs `evidence`, a flag for each word of each text between white space",
    ),
    "evidence of other length": (
        {"evidence": [[1]] * 6},
        "`evidence` of text 0 holds 1 flags, but the text has 9 words",
    ),
    "own of other length": (
        {"importances": {"mine": [[1.0]] * 6}},
        "`importances['mine'][0]` has the shape [1]; text 0 has 9 words, which are 13 subwords",
    ),
    "own of few texts": ({"importances": {"mine": [[1.0]]}}, "`importances['mine']` has the length 1"),
    "own that is no number": ({"importances": {"mine": [["a"]] * 6}}, "must be a list of numbers"),
    "own that is not finite": ({"importances": {"mine": [[float("nan")] * 9] * 6}}, "is not finite"),
    "own of a measure's name": ({"importances": {"random": [[1.0]] * 6}}, "both name 'random'; rename one"),
    "unknown device": ({"device": "gpu"}, "`device` is 'gpu', which torch does not know"),
    "token budget": ({"token_budget": 0}, "`token_budget` is 0: it must be None or a whole number"),
    "prompt of an encoder": (
        {"prompt": "{text}:", "answers": [" a", " b"]},
        "`model` is saved as a BertForSequenceClassification; ",
    ),
    "prompt and answers of an encoder": (
        {"prompt": "{text}:", "answers": [" a", " b"]},
        "or leave out `prompt` and `answers` for an encoder.",
    ),
    "unknown words": ({"words": "none"}, "`words` is 'none'; choose from: cased, cleaned, spaces"),
    "unknown source": (
        {"evidence": [[1] * len(text.split()) for text in TEXTS], "evidence_source": "model"},
        "`evidence_source` is 'model'; choose from: human, rule",
    ),
    "negative seed": ({"seeds": -1}, "`seeds` is [-1]: seeds are whole numbers from 0, such as 0 or [0, 1, 2]."),
    "measures of no list": ({"measures": None}, "`measures` is None; write a list of names"),
    "own of no name": ({"importances": {"a/b": [[1.0]]}}, "`importances['a/b']`: a name may contain only"),
    "target between classes": (
        {"measures": {"gradient-norm": {"target": 0.5}}},
        "`measures.gradient-norm.target` is 0.5; choose from: gold, predicted, or a whole number.",
    ),
    "target by name": (
        {"measures": {"gradient-norm": {"target": "good"}}},
        "is 'good'; did you mean 'gold'? Choose from: predicted, gold, or a whole number.",
    ),
    "target of no class": (
        {"measures": {"gradient-norm": {"target": 2}}},
        "`measures.gradient-norm.target` is 2, but the model has 2 classes, numbered from 0.",
    ),
    "prompt alone": ({"prompt": "{text}:"}, "needs both `prompt`, with {text}, and `answers`"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_arguments_are_refused(classifier, fault):
    arguments, message = FAULTS[fault]
    given = {"texts": TEXTS, "labels": LABELS, "measures": ["random", "gradient-norm"], "progress": False} | arguments
    with pytest.raises(PlumblineError, match=re.escape(message)):
        plumbline.evaluate(*classifier, **given)


def test_models_that_cannot_classify_are_refused(classifier, tiny_bert, tmp_path):
    with pytest.raises(PlumblineError, match="has no classification head"):
        plumbline.explain(str(tiny_bert), texts=TEXTS)
    with pytest.raises(PlumblineError, match="`tokenizer` is a NoneType"):
        plumbline.explain(classifier[0], texts=TEXTS)
    with pytest.raises(PlumblineError, match="`model` is a Linear"):
        plumbline.explain(torch.nn.Linear(1, 1), classifier[1], TEXTS)
    with pytest.raises(PlumblineError, match="leave out `tokenizer`, and name the arguments `texts=` and `labels=`"):
        plumbline.evaluate(str(tiny_bert), TEXTS, LABELS)


@pytest.mark.parametrize("name", ["./my-model", "~/my-model", "models/mine", "a/b/c", Path("my-model")])
def test_a_missing_folder_is_refused_without_asking_the_hub(name, tmp_path, monkeypatch):
    def ask(*_, **__):
        raise AssertionError("the hub is asked")

    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", ask)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    with pytest.raises(PlumblineError, match=r"^`model`: there is no folder '.*(my-model|mine|a/b/c)'"):
        plumbline.explain(name, texts=TEXTS)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(PlumblineError, match=r"^`model`: the folder '.*' has no config.json; save the model there"):
        plumbline.explain(str(tmp_path), texts=TEXTS)


def test_a_shortened_list_of_measures_says_so(classifier):
    with pytest.raises(PlumblineError) as refused:
        plumbline.explain(*classifier, TEXTS, measures=["attention"], progress=False)
    found = re.search(
        r"supported measures: (.*) and (\d+) more; `plumbline list measures` describes", str(refused.value)
    )
    assert found and len(found[1].split(", ")) == 6 and int(found[2]) > 0


def test_texts_and_labels_may_be_arrays(classifier):
    given = np.array(TEXTS), torch.tensor(LABELS)
    found = plumbline.explain(*classifier, *given, measures=["random"], progress=False)
    assert found.instances["label"].tolist() == [("bad", "good")[label] for label in LABELS]


def test_the_gold_class_needs_labels(classifier):
    gold = {"gradient-norm": {"target": "gold"}}
    with pytest.raises(PlumblineError, match="which needs `labels`"):
        plumbline.explain(*classifier, TEXTS, measures=gold, progress=False)
    found = plumbline.explain(*classifier, TEXTS, LABELS, measures=gold, progress=False)
    assert found.importances["target"].tolist() == LABELS
