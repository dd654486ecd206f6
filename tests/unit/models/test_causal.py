"""Causal language models as classifiers against transformers itself, and their explanations against Captum."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from plumbline.attribution.deep_lift import deep_lift
from plumbline.attribution.importances import AttributionOptions
from plumbline.attribution.leave_one_out import leave_one_out
from plumbline.attribution.lime import lime
from plumbline.attribution.occlusion import occlusion
from plumbline.attribution.path import integrated_gradient_pad
from plumbline.attribution.predicted_occlusion import occlusion_predicted
from plumbline.attribution.rollout import rollout
from plumbline.config.recipes import Training
from plumbline.conformance.checkpoints import save_checkpoint
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch, collate
from plumbline.models.block import trained_models, with_answers
from plumbline.models.causal import CausalClassifier, answer_tokens
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Registry
from plumbline.store import write_tensors
from plumbline.training.trainer import BlockSpec, train_block

DECLARATION = Registry().get("model", "causal")
GROUPED = {"num_key_value_heads": 1}
FAMILIES: dict[str, dict[str, Any]] = {
    "gpt2": {},
    "llama": {**GROUPED, "tie_word_embeddings": True},
    "qwen2": GROUPED,
    "mistral": {**GROUPED, "sliding_window": 6},
    "gemma2": {**GROUPED, "head_dim": 8, "sliding_window": 8, "final_logit_softcapping": 2.0},
    "gpt_neox": {},
    "opt": {"ffn_dim": 32, "word_embed_proj_dim": 16},
    "bloom": {},
}
SHORT, LONG = [" good", " bad", " the"], [" good", " bad", " fine"]
RECENT = ["gpt2", "llama", "qwen2"]


def save_tokenizer(folder):
    """Bytes, and three words with the space before them."""
    vocabulary = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    merges: list[tuple[str, str]] = []
    for word in ("Ġgood", "Ġbad", "Ġthe"):
        for end in range(1, len(word)):
            if word[: end + 1] not in vocabulary:
                vocabulary[word[: end + 1]] = len(vocabulary)
                merges.append((word[:end], word[end]))
    vocabulary["<|end|>"] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", unk_token="<|end|>")
    fast.save_pretrained(folder)
    return fast


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    """The folder of a small checkpoint of a family."""
    made: dict[str, str] = {}

    def make(family: str) -> str:
        if family not in made:
            folder = tmp_path_factory.mktemp(family)
            torch.manual_seed(0)
            save_checkpoint(folder, family, causal=True, vocab_size=300, **FAMILIES[family])
            save_tokenizer(folder)
            made[family] = str(folder)
        return made[family]

    return make


def rows(lengths=(3, 9, 14, 5), seed=0):
    random = np.random.default_rng(seed)
    return [random.integers(0, 250, size=length).astype(np.int32) for length in lengths]


def log_probability(model, text, answer):
    """The log-probability of an answer's tokens after a text, token by token."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([*text, *answer])[None]).logits[0].log_softmax(-1)
    return sum(float(logits[len(text) - 1 + place, token]) for place, token in enumerate(answer))


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_transformers_whatever_the_padding_and_the_batch(family, folder_of):
    folder = folder_of(family)
    short, long = (
        CausalClassifier(None, 3, checkpoint=folder, prompt="{text}", answers=a).eval() for a in (SHORT, LONG)
    )
    other = AutoModelForCausalLM.from_pretrained(folder).eval()
    assert [len(ids) for ids in short.answer_ids] == [1, 1, 1] and [len(ids) for ids in long.answer_ids] == [1, 1, 5]
    texts = rows()
    width = max(map(len, texts))
    present = torch.stack([torch.arange(width) >= width - len(text) for text in texts])
    ids = torch.stack([torch.from_numpy(np.pad(text, (width - len(text), 0))).long() for text in texts])
    batches = [collate(texts, None), Batch(ids, present, present), collate([*texts, rows((30,), 1)[0]], None)]
    with torch.no_grad():
        for batch in batches:
            found, summed = (model(batch).logits[: len(texts)] for model in (short, long))
            for i, text in enumerate(texts):
                next_token = other(input_ids=torch.from_numpy(text).long()[None]).logits[0, -1]
                torch.testing.assert_close(found[i], next_token[short._first], atol=1e-5, rtol=1e-5)
                expected = [log_probability(other, text.tolist(), answer) for answer in long.answer_ids]
                np.testing.assert_allclose(summed[i].numpy(), expected, atol=1e-5)
    layers, readout = short.layers(batches[0]), short.readout(batches[0])
    assert layers.shape == (4, 2, 2, width, width) and layers.triu(1).abs().max() == 0
    assert readout.argmax(1).tolist() == [len(text) - 1 for text in texts] and readout.sum(1).tolist() == [1] * 4


@pytest.mark.parametrize("family", ["gpt2", "qwen2"])
def test_a_second_text_follows_the_first(family, folder_of):
    model = CausalClassifier(None, 3, checkpoint=folder_of(family), prompt="{text}{pair}", answers=LONG).eval()
    texts, seconds = rows(), rows((2, 6, 1, 4), 1)
    both = collate([np.concatenate(pair) for pair in zip(texts, seconds, strict=True)], None)
    with torch.no_grad():
        found = model(collate(texts, None, "cpu", seconds)).logits
        torch.testing.assert_close(found, model(both).logits, atol=1e-5, rtol=1e-5)
        answers = [np.array([0, 2])] * 4
        barred = model(collate(texts, None, "cpu", seconds, answers)).logits
    assert torch.equal(barred[:, 1], torch.full((4,), -torch.inf))
    torch.testing.assert_close(barred[:, [0, 2]], found[:, [0, 2]])


def instances_of(texts):
    """Texts whose first two and last tokens are the prompt's."""
    maskable = [(np.arange(len(text)) > 1) & (np.arange(len(text)) < len(text) - 1) for text in texts]
    count = len(texts)
    return Instances(np.array(["test"] * count), np.arange(count), np.zeros(count, np.int32), texts, maskable)


@pytest.mark.parametrize("family", RECENT)
@pytest.mark.parametrize("answers", [SHORT, LONG], ids=["short", "long"])
def test_explanations_are_captums_and_add_up_and_leave_the_prompt_alone(family, answers, folder_of):
    model = CausalClassifier(None, 3, checkpoint=folder_of(family), prompt="{text}", answers=answers).eval()
    instances, options = instances_of(rows((5, 9, 14))), AttributionOptions(function="logit", target=1)
    evaluator = Evaluator(model.requires_grad_(False), 0, 10_000)
    found = integrated_gradient_pad(evaluator, instances, options=options, sign="signed", tolerance=0)
    lifted = deep_lift(evaluator, instances, options=options, sign="signed")
    assert found.specials is None and lifted.specials is None, "the words of the prompt are not scored"
    for i, words in enumerate(instances.maskable):
        batch = collate([instances.ids[i]], [words])
        vectors = model.vectors(batch)
        padding = model.embedding(torch.tensor(model.pad_id)).expand_as(vectors)
        baseline = torch.where(torch.from_numpy(words)[None, :, None], padding, vectors)
        method = IntegratedGradients(lambda rows, batch=batch: model.read(batch.repeat(len(rows)), rows).logits[:, 1])
        expected = method.attribute(vectors, baseline, n_steps=50, method="gausslegendre").sum(-1)[0].numpy()
        np.testing.assert_allclose(found.scores[i], expected[words], atol=1e-5)
        with torch.no_grad():
            change = float(model.read(batch, vectors).logits[0, 1] - model.read(batch, baseline).logits[0, 1])
        np.testing.assert_allclose(lifted.scores[i].sum(), change, atol=1e-5)
    for measure in (lambda texts: lime(evaluator, texts, samples=50), lambda texts: rollout(evaluator, texts)):
        together, alone = measure(instances), [measure(instances.take([i])) for i in range(len(instances))]
        for scores, single in zip(together.scores, alone, strict=True):
            np.testing.assert_allclose(scores, single.scores[0], atol=1e-5)


def test_contrastive_scores_sum_to_the_change_of_the_difference(folder_of):
    model = CausalClassifier(None, 2, checkpoint=folder_of("llama"), prompt="{text}", answers=[" good", " bad"]).eval()
    instances, evaluator = instances_of(rows((5, 9))), Evaluator(model.requires_grad_(False), 0, 10_000)

    def scores(**chosen):
        options = AttributionOptions(**chosen)
        return integrated_gradient_pad(evaluator, instances, options=options, sign="signed", tolerance=0).scores

    difference, of, against = scores(function="difference", target=1), *(
        scores(function="logit", target=target) for target in (1, 0)
    )  # fmt: skip
    for one, other, both in zip(of, against, difference, strict=True):
        np.testing.assert_allclose(one - other, both, atol=1e-5)


@pytest.mark.parametrize("family", RECENT)
def test_shared_weights_are_stored_once_and_come_back(family, folder_of, tmp_path):
    folder = folder_of(family)
    options = {"checkpoint": folder, "prompt": "{text}", "answers": LONG}
    model = CausalClassifier(None, 3, **options).eval()
    with torch.no_grad():
        model.embedding.weight += 0.1
    tied = model.encoder.get_output_embeddings().weight is model.embedding.weight
    assert tied == (family != "qwen2")
    assert ("encoder.lm_head.weight" in model.state_dict()) == (not tied)
    write_tensors(tmp_path / "weights.safetensors", {f"0/{k}": v for k, v in model.state_dict().items()})
    (stored,) = trained_models(tmp_path / "weights.safetensors", DECLARATION.pointer, options, 3, [0], 10_000)
    with torch.no_grad():
        assert torch.equal(stored.model(collate(rows(), None)).logits, model(collate(rows(), None)).logits)


@pytest.mark.parametrize("answers", [[" good", " bad"], [" good", " fine"]], ids=["short", "long"])
def test_it_is_used_as_it_is_or_fine_tuned(answers, folder_of):
    """Without an epoch the weights stay; with some, it learns which of two tokens a text holds."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, size=240).astype(np.int32)
    texts = [np.append(random.integers(10, 200, size=5), [220 + label, 7]).astype(np.int32) for label in labels]
    maskable = [np.arange(7) < 6] * 240
    splits = {
        name: Instances(
            np.array([name] * len(labels[part])), np.arange(240)[part], labels[part], texts[part], maskable[part]
        )
        for name, part in {"train": slice(160), "dev": slice(160, 200), "test": slice(200, 240)}.items()
    }
    options = {"checkpoint": folder_of("llama"), "prompt": "{text}", "answers": answers}
    assert DECLARATION.training["epochs"] == 0, "zero-shot is the default"
    accuracies = []
    for epochs in (0, 20):
        changes = {"epochs": epochs, "learning_rate": 5e-3, "batch_size": 8, "schedule": "constant", "warmup": 0.0}
        training = Training(**{**DECLARATION.training, **changes})
        weights, _, predictions = train_block(
            BlockSpec(DECLARATION.pointer, options, {}, splits, 2, training), [0], 10_000
        )
        if not epochs:
            state = CausalClassifier(None, 2, **options).state_dict()
            assert all(torch.equal(weights[f"0/{name}"], tensor) for name, tensor in state.items())
        test = [place for place, split in enumerate(predictions["split"]) if split == "test"]
        hits = [predictions["probabilities"][i].argmax() == predictions["label"][i] for i in test]
        accuracies.append(np.mean(hits))
    assert accuracies[1] > 0.8 > 0.7 > accuracies[0]


def test_leave_one_out_deletes_words_of_the_text_alone(folder_of):
    model = CausalClassifier(None, 3, checkpoint=folder_of("gpt2"), prompt="{text}", answers=SHORT).eval()
    instances, evaluator = instances_of(rows((5, 9))), Evaluator(model.requires_grad_(False), 0, 10_000)
    scores = leave_one_out(evaluator, instances).scores
    for i, text in enumerate(instances.ids):
        with torch.no_grad():
            whole = model(collate([text], None)).logits.softmax(-1)[0]
            fallen = [
                model(collate([np.delete(text, place)], None)).logits.softmax(-1)[0]
                for place in np.flatnonzero(instances.maskable[i])
            ]
        expected = [float((whole - without).abs().sum()) for without in fallen]
        np.testing.assert_allclose(scores[i], expected, atol=1e-6)


def test_classes_are_the_answers_by_default():
    names = ["negative", "positive"]
    assert with_answers({"answers": []}, names) == {"answers": [" negative", " positive"]}
    assert with_answers({"answers": [" no", " yes"]}, names) == {"answers": [" no", " yes"]}
    assert with_answers({"hidden": 3}, names) == {"hidden": 3}


@pytest.mark.parametrize(
    ("answers", "fault"),
    [
        ([" good"], "`answers` has 1 entries, but the dataset has 2 classes; write one for each"),
        ([" good", ""], "The answer '' has no token; write a shorter one, or one that is not empty."),
        (
            [" bad", " bad"],
            "The answer ' bad' is also the start of another answer; write answers of which none begins with another.",
        ),
        ([" bad", " x" * 20], "has more than 16 tokens; write a shorter one"),
    ],
)
def test_unusable_answers_are_refused(answers, fault, folder_of):
    with pytest.raises(PlumblineError, match=re.escape(fault)):
        CausalClassifier(None, 2, checkpoint=folder_of("gpt2"), prompt="{text}", answers=answers)


def test_answers_have_the_tokens_that_follow_the_prompt(tmp_path):
    """A tokenizer that marks the start of every text would give an answer alone another first token."""
    tokenizer = Tokenizer(models.Unigram([("[UNK]", 0.0), ("▁", -5.0), ("▁good", -1.0), ("▁is:", -1.0)], unk_id=0))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")
    assert fast(" good")["input_ids"] == [1, 2]
    assert answer_tokens(fast, "is:", [" good"], 1) == [[2]]
    with pytest.raises(PlumblineError, match="changes the last token of the prompt, 'is: '; end the prompt without"):
        answer_tokens(fast, "is: ", ["good"], 1)


def test_an_encoder_is_refused(tmp_path):
    torch.manual_seed(0)
    save_checkpoint(tmp_path, "bert", causal=True, is_decoder=False)
    with pytest.raises(
        PlumblineError, match="has the type 'bert', which is not a causal language model; leave out `kind: causal`"
    ):
        CausalClassifier(None, 2, checkpoint=str(tmp_path), prompt="{text}", answers=[" 1", " 2"])


@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_heads_that_share_values_share_their_norms(family, folder_of):
    model = CausalClassifier(None, 2, checkpoint=folder_of(family), prompt="{text}", answers=[" good", " bad"]).eval()
    batch = collate([np.arange(3, 9, dtype=np.int32), np.arange(5, 8, dtype=np.int32)], None)
    values: list[torch.Tensor] = []
    for name, module in model.named_modules():
        if name.endswith(".v_proj"):
            module.register_forward_hook(lambda module, inputs, output: values.append(output.detach()))
    with torch.no_grad():
        norms = model.value_norms(batch)
    assert norms.shape[:3] == (2, 2, 2) and len(values) == 2
    for layer, value in enumerate(values):
        for head in range(2):
            torch.testing.assert_close(norms[0, layer, head, :6], value[0, :6].norm(dim=-1))


def predicted_drops(model, text, classes, replacements, special):
    """The drop of the most probable class's probability for each token but the first, by whole passes of transformers'
    model."""

    def probabilities(ids):
        with torch.no_grad():
            return model(input_ids=torch.tensor(ids)[None]).logits[0, -1, classes].double().softmax(-1)

    with torch.no_grad():
        following = model(input_ids=torch.from_numpy(text).long()[None]).logits[0].double().softmax(-1)
    before, drops = probabilities(text.tolist()), []
    target = int(before.argmax())
    for place in range(1, len(text)):
        others = following[place - 1].clone()
        others[[int(text[place]), special]] = 0
        chosen = others.argsort(descending=True)[:replacements].tolist()
        after = [probabilities([*text[:place], token, *text[place + 1 :]])[target] for token in chosen]
        shares = others[chosen] / others[chosen].sum()
        drops.append(float(sum(share * (before[target] - p) for share, p in zip(shares, after, strict=True))))
    return drops


@pytest.mark.parametrize("family", RECENT)
def test_occlusion_with_predicted_tokens_by_whole_passes(family, folder_of, monkeypatch):
    folder = folder_of(family)
    model = CausalClassifier(None, 3, checkpoint=folder, prompt="{text}", answers=SHORT).eval()
    other = AutoModelForCausalLM.from_pretrained(folder).eval()
    texts = rows()
    evaluator = Evaluator(model.requires_grad_(False), 0, 60)
    instances = instances_of(texts)
    for replacements in (1, 4):
        found = occlusion_predicted(evaluator, instances, replacements=replacements, sign="signed").scores
        for text, words, scores in zip(texts, instances.maskable, found, strict=True):
            expected = [np.nan, *predicted_drops(other, text, model._first, replacements, model.special_ids[0])]
            np.testing.assert_allclose(scores, np.array(expected)[words], atol=1e-6)
    monkeypatch.setattr("plumbline.attribution.predicted_occlusion.LOGITS", 1)
    for scores, alone in zip(found, occlusion_predicted(evaluator, instances, replacements=4).scores, strict=True):
        np.testing.assert_allclose(alone, np.abs(scores), atol=1e-6)
    monkeypatch.undo()
    absolute = occlusion_predicted(evaluator, instances, replacements=4).scores
    np.testing.assert_array_equal(np.concatenate(absolute), np.abs(np.concatenate(found)))


def test_a_first_token_which_nothing_predicts_is_replaced_by_the_baseline(folder_of):
    folder = folder_of("gpt2")
    model = CausalClassifier(None, 3, checkpoint=folder, prompt="{text}", answers=SHORT).eval().requires_grad_(False)
    instances = instances_of(rows())
    for words in instances.maskable:
        words[0] = True
    evaluator = Evaluator(model, 0, 10_000)
    found, padded = occlusion_predicted(evaluator, instances).scores, occlusion(evaluator, instances).scores
    assert np.concatenate(padded).min() > 0
    for predicted, baseline in zip(found, padded, strict=True):
        np.testing.assert_allclose(predicted[0], baseline[0], rtol=1e-5)
        assert not np.isclose(predicted[1:], baseline[1:], rtol=1e-3).any()


def test_occlusion_with_predicted_tokens_of_second_texts(folder_of):
    folder = folder_of("llama")
    model = CausalClassifier(None, 3, checkpoint=folder, prompt="{text}{pair}", answers=SHORT).eval()
    evaluator = Evaluator(model.requires_grad_(False), 0, 10_000)
    texts, seconds = rows(), rows((2, 6, 1, 4), 1)
    joined = instances_of([np.concatenate(both) for both in zip(texts, seconds, strict=True)])
    instances = instances_of(texts)
    whole = [np.ones(len(text), bool) for text in seconds]
    for place, (words, second) in enumerate(zip(joined.maskable, whole, strict=True)):
        words[:] = np.concatenate([instances.maskable[place], second])
    split = replace(instances, pair=seconds, pair_maskable=whole)
    together, apart = occlusion_predicted(evaluator, joined), occlusion_predicted(evaluator, split)
    for expected, first, second in zip(together.scores, apart.scores, apart.pair, strict=True):
        np.testing.assert_allclose(np.concatenate([first, second]), expected, atol=1e-6)
