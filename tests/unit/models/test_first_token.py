"""The last layer for the first token alone, against the whole layer."""

from copy import deepcopy

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from plumbline.attribution.deep_lift import deep_lift
from plumbline.models.batch import collate
from plumbline.models.evaluator import Evaluator
from plumbline.models.first_token import find_first_token_layer, first_token_only
from plumbline.models.transformer import TransformerClassifier
from tests.unit.models.test_families import LENGTHS, PAIRS, instances_of, rows

READING = ["bert", "electra", "roberta", "roberta-prelayernorm", "xlm-roberta"]


def two_ways(folder):
    """A model that computes the first token of its last layer alone, and the same model without that."""
    torch.manual_seed(0)
    model = TransformerClassifier(None, 3, checkpoint=folder).eval()
    assert model._first_token, "the family's last layer is read at the first token"
    whole = deepcopy(model)
    whole._first_token = []
    return model, whole


@pytest.mark.parametrize("family", READING)
def test_logits_and_gradients_are_those_of_the_whole_layer(family, folder_of):
    model, whole = two_ways(folder_of(family))
    batch = collate(rows(LENGTHS, 1), None, "cpu", rows(PAIRS, 2))
    found = []
    for one in (model, whole):
        vectors = one.vectors(batch).detach().requires_grad_()
        logits = one.read(batch, vectors).logits
        found.append((logits, torch.autograd.grad(logits[:, 1].sum(), vectors)[0]))
    for first, full in zip(*found, strict=True):
        torch.testing.assert_close(first, full, rtol=1e-5, atol=1e-6)
    assert found[0][1].abs().sum() > 0


def test_only_the_first_token_passes_through_the_last_layer(folder_of):
    model, whole = two_ways(folder_of("roberta"))
    batch = collate(rows(LENGTHS, 1), None, "cpu")
    widths = []
    for one in (model, whole):
        last = one.encoder.base_model.encoder.layer[-1]
        last.intermediate.register_forward_pre_hook(lambda module, inputs: widths.append(inputs[0].shape[1]))
        one(batch)
    assert widths == [1, max(LENGTHS)]


def test_training_passes_all_tokens(folder_of):
    model, _ = two_ways(folder_of("roberta"))
    widths, last = [], model.encoder.base_model.encoder.layer[-1]
    last.intermediate.register_forward_pre_hook(lambda module, inputs: widths.append(inputs[0].shape[1]))
    model.train()(collate(rows(LENGTHS, 1), None, "cpu"))
    assert widths == [max(LENGTHS)]


def test_a_copy_is_independent(folder_of):
    model, _ = two_ways(folder_of("bert"))
    copy = deepcopy(model)
    with first_token_only(copy._first_token):
        assert copy._first_token[0].first_only and not model._first_token[0].first_only
    assert not copy._first_token[0].first_only


def test_attention_of_all_tokens_is_still_returned(folder_of):
    model, whole = two_ways(folder_of("roberta"))
    batch = collate(rows(LENGTHS, 1), None, "cpu")
    torch.testing.assert_close(model.layers(batch), whole.layers(batch))


def test_deep_lift_is_the_same(folder_of):
    model, whole = two_ways(folder_of("roberta"))
    texts = instances_of(rows(LENGTHS, 1))
    one, other = (deep_lift(Evaluator(each, 0, None, "cpu"), texts).scores for each in (model, whole))
    for first, full in zip(one, other, strict=True):
        assert first == pytest.approx(full, rel=1e-4, abs=1e-6)


def test_heads_that_read_other_tokens_get_the_whole_layer(folder_of):
    encoder = AutoModelForSequenceClassification.from_pretrained(folder_of("roberta"), num_labels=2).eval()
    kind, ids = type(encoder.roberta.encoder.layer[-1].attention.self), torch.tensor([[2, 7, 9, 3]])
    encoder.classifier = Mean(encoder.config.hidden_size)
    before = encoder(ids).logits
    assert find_first_token_layer(encoder) is None
    assert type(encoder.roberta.encoder.layer[-1].attention.self) is kind
    torch.testing.assert_close(encoder(ids).logits, before)


class Mean(torch.nn.Linear):
    """A head over the mean of all tokens."""

    def __init__(self, width):
        super().__init__(width, 2)

    def forward(self, hidden):
        return super().forward(hidden.mean(1))
