"""A small classifier of transformers in memory, and its evaluation."""

import pytest
import torch

import plumbline

TEXTS = [
    "the film was good and the cast was great",
    "a bad plot , a worse ending and a dull cast",
    "great cast , great plot",
    "a dull film",
    "the unbelievable football was there",
    "john was bad and the kitchen was great",
]
LABELS = [1, 0, 1, 0, 1, 0]


@pytest.fixture(scope="session")
def classifier(tiny_bert):
    """A BERT with random weights that classifies, in memory, and its tokenizer."""
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    config = AutoConfig.from_pretrained(tiny_bert, id2label={0: "bad", 1: "good"}, num_labels=2)
    torch.manual_seed(3)
    return AutoModelForSequenceClassification.from_config(config).eval(), AutoTokenizer.from_pretrained(tiny_bert)


@pytest.fixture(scope="session")
def saved_classifier(classifier, tmp_path_factory):
    """The folder of the same checkpoint."""
    folder = tmp_path_factory.mktemp("classifier")
    for part in classifier:
        part.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def evaluated(classifier):
    """An evaluation with importances of one's own: the length of each word."""
    return plumbline.evaluate(
        *classifier,
        TEXTS,
        LABELS,
        measures=["random", "gradient-norm", "leave-one-out"],
        importances={"lengths": [[len(word) for word in text.split()] for text in TEXTS]},
        protocols={"agreement": None, "erasure": {"ratios": [50], "draws": 0, "longest": 0}},
        progress=False,
    )
