"""`evaluate` and `explain` against transformers, the registered measures and the definitions of the protocols."""

import copy
import warnings

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

import plumbline
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.models.transformer import TransformerClassifier
from plumbline.registry import Registry, load

from .conftest import LABELS, TEXTS


def probability(classifier, ids, target):
    """The probability of a class for the ids of a text, by transformers."""
    model, tokenizer = classifier
    ids = torch.tensor([[tokenizer.cls_token_id, *ids, tokenizer.sep_token_id]])
    with torch.no_grad():
        return model(input_ids=ids).logits[0].double().softmax(-1)[target].item()


def subwords(classifier, text):
    return classifier[1](text, add_special_tokens=False)["input_ids"]


@pytest.fixture(scope="module")
def predicted(classifier):
    """The classes that the model predicts."""
    return [int(np.argmax([probability(classifier, subwords(classifier, text), c) for c in (0, 1)])) for text in TEXTS]


@pytest.mark.parametrize("measure", ["gradient-norm", "integrated-gradient", "lime", "rollout"])
def test_explain_equals_the_registered_measure(classifier, saved_classifier, measure):
    explained = plumbline.explain(*classifier, TEXTS, measures=[measure], seeds=[4, 7], progress=False).importances
    assert explained["seed"].tolist() == [4] * len(TEXTS) + [7] * len(TEXTS)
    ids = [np.array(classifier[1](text)["input_ids"], dtype=np.int32) for text in TEXTS]
    flags = [np.array([False, *[True] * (len(row) - 2), False]) for row in ids]
    count = np.arange(len(TEXTS))
    instances = Instances(np.array(["test"] * len(TEXTS)), count, np.zeros(len(TEXTS), np.int32), ids, flags)
    model = TransformerClassifier(None, 2, checkpoint=str(saved_classifier), head="own").requires_grad_(False)
    declaration = Registry().get("measure", measure)
    options = {name: option.default for name, option in declaration.options.items()}
    for seed in (4, 7):
        expected = load(declaration.pointer)(Evaluator(model, seed), instances, **options)
        own = explained[explained["seed"] == seed]
        for found, scores, tokens, row in zip(own["scores"], expected.scores, own["tokens"], ids, strict=True):
            np.testing.assert_array_equal(found, np.float32(scores))
            assert tokens == classifier[1].convert_ids_to_tokens(row)[1:-1]
        if expected.target is not None:
            assert own["target"].tolist() == expected.target.tolist()


def test_leave_one_out_is_the_change_of_the_probabilities(classifier):
    found = plumbline.explain(*classifier, TEXTS, measures=["leave-one-out"], progress=False).importances
    for text, scores in zip(TEXTS, found["scores"], strict=True):
        ids = subwords(classifier, text)
        whole = probability(classifier, ids, 0)
        changes = [2 * abs(whole - probability(classifier, ids[:i] + ids[i + 1 :], 0)) for i in range(len(ids))]
        np.testing.assert_allclose(scores, changes, atol=1e-6)


def test_erasure_is_the_fall_without_the_top_half_of_the_words(classifier, evaluated):
    rows = evaluated.table("erasure").query("metric == 'comprehensiveness' and ratio == 50").set_index("measure")
    assert {*rows.index} == {"random", "gradient-norm", "leave-one-out", "lengths"}
    for measure in ("random", "gradient-norm", "leave-one-out"):
        falls = []
        scores = evaluated.importances.query(f"measure == '{measure}'")["scores"]
        for text, row in zip(TEXTS, scores, strict=True):
            ids = np.array(subwords(classifier, text))
            whole = [probability(classifier, ids, target) for target in (0, 1)]
            target = int(np.argmax(whole))
            kept = np.sort(np.argsort(-row, kind="stable")[int(np.ceil(len(ids) / 2)) :])
            falls.append(whole[target] - probability(classifier, ids[kept], target))
        assert rows.loc[measure, "mean"] == pytest.approx(np.mean(falls), abs=1e-6)
    scored = evaluated.scorecard["comprehensiveness"]
    # The area with one ratio and the whole text.
    assert scored["gradient-norm"] == pytest.approx(rows.loc["gradient-norm", "mean"] / 2, abs=1e-9)


def test_agreement_is_kendalls_tau(evaluated):
    scores = {name: rows["scores"].tolist() for name, rows in evaluated.importances.groupby("measure")}
    rows = evaluated.table("agreement").query("predicted_class == 'all'").set_index(["measure_a", "measure_b"])
    for a, b in [("gradient-norm", "leave-one-out"), ("leave-one-out", "random"), ("lengths", "random")]:
        taus = [kendalltau(*pair).statistic for pair in zip(scores[a], scores[b], strict=True)]
        assert rows.loc[(a, b), "mean"] == pytest.approx(np.mean(taus), abs=1e-6)


def test_performance_is_that_of_the_model(classifier, evaluated):
    predicted = [np.argmax([probability(classifier, subwords(classifier, text), c) for c in (0, 1)]) for text in TEXTS]
    rows = evaluated.table("performance").set_index("metric")["value"]
    assert rows["accuracy"] == pytest.approx(np.mean(np.array(predicted) == LABELS))
    assert evaluated.predictions["predicted"].tolist() == [("bad", "good")[c] for c in predicted]


def test_own_importances_are_those_of_words_or_of_subwords(classifier, evaluated):
    found = evaluated.importances.query("measure == 'lengths'")
    row = found.iloc[4]
    assert row["tokens"][:2] == ["the", "u"] and row["tokens"][-1] == "##e"
    # The tokenizer divides "there" into the, ##r and ##e, and other long words into letters.
    assert row["scores"].tolist() == [3, *12 * [12], *8 * [8], 3, *3 * [5]]
    again = plumbline.evaluate(
        *classifier,
        TEXTS,
        ["good", "bad"] * 3,
        measures=["random"],
        importances={"lengths": found["scores"].tolist()},
        protocols=["reliability"],
        progress=False,
    )
    for column in ("scores", "tokens"):
        for one, other in zip(again.importances.query("measure == 'lengths'")[column], found[column], strict=True):
            assert list(one) == list(other)


def test_own_importances_follow_the_division_into_words(classifier):
    texts = ["dull, bad film", "a great cast"]
    lengths = {"spaces": [[5, 3, 4], [1, 5, 4]], "cased": [[4, 1, 3, 4], [1, 5, 4]]}
    for words, scores in lengths.items():
        found = plumbline.evaluate(
            *classifier, texts, [0, 1], words=words, importances={"length": scores}, measures=["random"],
            protocols=["reliability"], progress=False,
        ).importances  # fmt: skip
        own = found[found["measure"] == "length"]
        # Tokens are the subwords of these words; each has the score of its word.
        assert len(own["tokens"].iloc[0]) == len(own["scores"].iloc[0]) >= len(scores[0])
        assert sorted({*own["scores"].iloc[0]}) == sorted({*scores[0]})
    with pytest.raises(plumbline.PlumblineError, match="text 0 has 4 words"):
        plumbline.evaluate(
            *classifier, texts, [0, 1], words="cased", importances={"length": lengths["spaces"]}, progress=False
        )


def test_the_model_stays_unchanged(classifier):
    model, tokenizer = classifier
    model = copy.deepcopy(model).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    plumbline.evaluate(
        model,
        tokenizer,
        TEXTS[:2],
        [1, 0],
        measures=["random", "gradient-norm"],
        protocols={"randomised_weights": {"texts": 2}},
        progress=False,
    )
    assert model.training and all(parameter.requires_grad for parameter in model.parameters())
    assert isinstance(model.get_input_embeddings(), torch.nn.Embedding)
    assert model.state_dict().keys() == before.keys()
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_a_folder_gives_the_same_as_the_model_in_memory(saved_classifier, evaluated):
    other = plumbline.evaluate(
        str(saved_classifier),
        texts=TEXTS,
        labels=LABELS,
        measures=["random", "gradient-norm", "leave-one-out"],
        protocols={"erasure": {"ratios": [50], "draws": 0, "longest": 0}},
        device="cpu",
        token_budget=64,
        progress=False,
    )
    own = evaluated.scorecard.loc[other.scorecard.index, "comprehensiveness"]
    np.testing.assert_allclose(other.scorecard["comprehensiveness"], own, atol=1e-6)


def test_reliability_and_evidence_and_pairs(classifier):
    pairs = [(text, "was it good ?") for text in TEXTS]
    marked = [[word in ("good", "bad", "great", "dull") for word in text.split()] for text in TEXTS]
    found = plumbline.evaluate(
        *classifier,
        pairs,
        LABELS,
        measures={"perfect": {"kind": "random"}, "lime": {"samples": 20}},
        importances={"marked": marked},
        evidence=marked,
        evidence_source="rule",
        protocols=["reliability", "evidence"],
        progress=False,
    )
    reliability = found.table("reliability").set_index("measure")["kendall"]
    assert reliability["marked"] == 1 and reliability["lime"] < 1
    # Importances that are the evidence itself have the largest AUPRC.
    assert found.table("evidence").set_index("measure").loc["marked", "auprc"] == 1
    assert found.scorecard.loc["marked", "evidence"] == 1 and "plausibility" not in found.scorecard
    assert found.instances["pair_tokens"][0][:2] == ["was", "i"]


def test_a_measure_of_a_plug_in(classifier, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "from plumbline.attribution.importances import Importances\n"
        "from plumbline.registry import measure\n\n\n"
        "@measure('late-words', equation='t')\n"
        "def late_words(evaluator, instances, *, power: float = 1.0):\n"
        '    """The later, the more important."""\n'
        "    return Importances([np.arange(words.sum()) ** power for words in instances.maskable])\n"
    )
    found = plumbline.explain(
        *classifier, TEXTS, measures={"late-words": {"power": 2}}, plugins=[tmp_path / "mine.py"], progress=False
    )
    assert found.importances["scores"][3].tolist() == [0, 1, 4] and "explain" in dir(plumbline)


CHEAP = {"measures": ["random", "gradient-norm"], "progress": False}


def warned(classifier, labels, texts=TEXTS, **arguments):
    """The sentences that an evaluation warns with, and its results."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = plumbline.evaluate(*classifier, texts, labels, **{**CHEAP, "protocols": ["reliability"], **arguments})
    return [str(one.message) for one in caught if one.filename == __file__], found


def test_a_protocol_that_has_too_few_measures_is_warned_of(classifier, predicted):
    sentences, found = warned(classifier, predicted, protocols=["agreement", "reliability"])
    assert len(sentences) == 1 and "'agreement', which needs 2 measures or more besides random" in sentences[0]
    assert list(found.scorecard) == ["reliability"]
    assert warned(classifier, predicted)[0] == []


def test_a_model_at_chance_is_warned_of(classifier, predicted):
    wrong = [1 - label for label in predicted]
    ((sentence,), found) = warned(classifier, wrong)
    assert sentence.startswith("The model's accuracy is 0.00 on 6 texts, and that of guessing 0.") and len(
        found.scorecard.T
    )
    ((sentence,), found) = warned(classifier, wrong, least_above_chance=0.2)
    assert (
        "the model is left out of the scorecard, because the lower bound of its accuracy is less than 0.2 of the way "
        "from chance to 1"
    ) in sentence
    assert found.scorecard.empty
    text = found.plot().texts[0].get_text()
    assert text.endswith("no measure has a score: seed 0 is left out, hardly better than guessing")


def test_labels_of_one_class_are_warned_of(classifier):
    sentences, _ = warned(classifier, [1] * 6)
    assert sentences == [
        "`labels` has one class only, 'good', so the accuracy does not show whether the model is better than guessing; "
        "add texts of another class."
    ]
