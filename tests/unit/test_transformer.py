"""The fine-tuned transformer against transformers itself, and its recipe against PyTorch's optimiser."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification, get_linear_schedule_with_warmup

from plumbline.config.recipes import Training
from plumbline.conformance import example_instances
from plumbline.data.instances import Instances
from plumbline.data.pieces import find_checkpoint, load_tokeniser
from plumbline.errors import PlumblineError
from plumbline.models.amsgrad import AdamW, AmsGrad, LinearRate
from plumbline.models.batch import Batch, collate
from plumbline.models.block import build, trained_models
from plumbline.models.budget import Budget
from plumbline.models.evaluator import Evaluator
from plumbline.models.learner import Learner, parameter_groups
from plumbline.models.trainer import split_rows, train_block
from plumbline.models.transformer import TransformerClassifier
from plumbline.registry import Registry
from plumbline.store import write_tensors

DECLARATION = Registry().get("model", "roberta")
RECIPE = Training(**DECLARATION.training)
BOTH = pytest.mark.parametrize("checkpoint", ["tiny_checkpoint", "tiny_bert"])


@pytest.fixture
def folder(checkpoint, request):
    return str(request.getfixturevalue(checkpoint))


def rows_of(folder, count=9, seed=0):
    """Texts of 1 to 20 random pieces and questions of 1 to 7, as `cut_into_pieces` lays them out."""
    config = AutoConfig.from_pretrained(folder)
    tokeniser = load_tokeniser(folder)
    random = np.random.default_rng(seed)

    def drawn(most):
        return random.integers(5, config.vocab_size, size=random.integers(1, most + 1))

    first, last = [tokeniser.cls_token_id], [tokeniser.sep_token_id]
    texts = [np.concatenate([first, drawn(20), last]).astype(np.int32) for _ in range(count)]
    seconds = [np.concatenate([drawn(7), last]).astype(np.int32) for _ in range(count)]
    return texts, seconds


def same_weights(folder, classes):
    """The model, and transformers' own with the same weights."""
    torch.manual_seed(3)
    model = TransformerClassifier(None, classes, checkpoint=folder).eval()
    torch.manual_seed(3)
    other = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=classes).eval()
    return model, other


@BOTH
@pytest.mark.parametrize("paired", [False, True])
def test_logits_and_gradients_are_transformers_own(folder, checkpoint, paired):
    model, other = same_weights(folder, 3)
    texts, seconds = rows_of(folder)
    batch = collate(texts, None, "cpu", seconds if paired else None)
    embedded = model.embedding(batch.ids).detach().requires_grad_()
    logits = model(batch, embedded).logits
    (slope,) = torch.autograd.grad(logits[:, 1].sum(), embedded)
    torch.testing.assert_close(model(batch).logits, logits, atol=0, rtol=0)
    assert logits.std(0).min() > 0.02, "texts must differ for the comparison to tell"
    for place, text in enumerate(texts):
        row = np.concatenate([text, seconds[place]]) if paired else text
        given = {"input_ids": torch.from_numpy(row).long()[None]}
        if checkpoint == "tiny_bert":
            given["token_type_ids"] = (torch.arange(len(row)) >= len(text)).long()[None]
        vectors = []
        handle = other.get_input_embeddings().register_forward_hook(
            lambda module, inputs, output, kept=vectors: kept.append(output.detach().requires_grad_()) or kept[0]
        )
        told = other(**given).logits
        handle.remove()
        torch.testing.assert_close(logits[place], told[0], atol=1e-5, rtol=1e-5)
        (expected,) = torch.autograd.grad(told[0, 1], vectors[0])
        torch.testing.assert_close(slope[place, : len(text)], expected[0, : len(text)], atol=1e-5, rtol=1e-4)
        assert slope[place, len(text) :].abs().sum() == 0, "padding has no part in it"


def test_tokenisers_own_pairs_are_what_bert_reads(tiny_bert):
    model, other = same_weights(str(tiny_bert), 2)
    tokeniser = load_tokeniser(str(tiny_bert))
    both = tokeniser("the film was good", "was it ?", return_tensors="pt", return_token_type_ids=True)
    second = both["token_type_ids"][0].bool()
    ids = both["input_ids"][0].numpy()
    batch = collate([ids[~second]], None, "cpu", [ids[second]])
    torch.testing.assert_close(model(batch).logits, other(**both).logits, atol=1e-6, rtol=1e-5)


@BOTH
@pytest.mark.parametrize("paired", [False, True])
def test_logits_depend_on_no_padding_and_no_other_row(folder, paired):
    model, _ = same_weights(folder, 3)
    texts, seconds = rows_of(folder)
    whole = model(collate(texts, None, "cpu", seconds if paired else None)).logits
    for place in range(len(texts)):
        one = collate(texts[place : place + 1], None, "cpu", seconds[place : place + 1] if paired else None)
        torch.testing.assert_close(model(one).logits[0], whole[place], atol=2e-6, rtol=1e-5)

        def widened(batch):
            more = torch.nn.functional.pad
            return Batch(
                more(batch.ids, (0, 9), value=7), *(more(f, (0, 9)) for f in (batch.present, batch.attendable))
            )

        wide = replace(widened(one), pair=widened(one.pair) if paired else None)
        torch.testing.assert_close(model(wide).logits[0], whole[place], atol=2e-6, rtol=1e-5)


def test_only_classes_that_may_be_the_answer_are_given_probability(tiny_checkpoint):
    model, _ = same_weights(str(tiny_checkpoint), 4)
    texts, seconds = rows_of(str(tiny_checkpoint), 2)
    free = model(collate(texts, None, "cpu", seconds)).logits
    barred = model(collate(texts, None, "cpu", seconds, [np.array([0, 2]), np.array([3])])).logits
    allowed = torch.tensor([[True, False, True, False], [False, False, False, True]])
    assert torch.equal(barred, free.masked_fill(~allowed, -torch.inf))


@BOTH
def test_dropout_is_for_training_alone(folder):
    model, _ = same_weights(folder, 2)
    batch = collate(rows_of(folder)[0], None)
    assert torch.equal(model(batch).logits, model(batch).logits)
    model.train()
    assert not torch.equal(model(batch).logits, model(batch).logits)


@BOTH
def test_seeds_draw_the_output_and_nothing_else(folder):
    states = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        states.append(TransformerClassifier(None, 2, checkpoint=folder).state_dict())
    differing = {name for name, tensor in states[0].items() if not torch.equal(tensor, states[2][name])}
    assert differing and all("classifier" in name or "pooler" in name for name in differing)
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())
    given = AutoModelForSequenceClassification.from_pretrained(folder).get_input_embeddings().weight
    assert torch.equal(states[0]["embedding.weight"], given)


@BOTH
@pytest.mark.parametrize("paired", [False, True])
def test_stored_models_come_back(folder, paired, tmp_path):
    texts, seconds = rows_of(folder)
    free = [np.array([False, *[True] * (len(text) - 2), False]) for text in texts]
    label = np.arange(len(texts), dtype=np.int32) % 2
    instances = Instances(np.array(["test"] * len(texts)), np.arange(len(texts)), label, texts, free)
    instances = replace(instances, pair=seconds) if paired else instances
    options = {"checkpoint": folder}
    models = {seed: build(DECLARATION.pointer, options, None, 2, trainable=True) for seed in (4, 5)}
    state = {f"{seed}/{name}": tensor for seed, model in models.items() for name, tensor in model.state_dict().items()}
    places = {tensor.data_ptr() for tensor in state.values()}
    assert len(places) == len(state), "no tensor is stored twice"
    assert not any("word_embeddings" in name for name in state)
    write_tensors(tmp_path / "weights", state)
    for evaluator in trained_models(tmp_path / "weights", DECLARATION.pointer, options, 2, [4, 5], 500):
        expected = Evaluator(models[evaluator.seed], 0, 500).probabilities(instances)
        assert np.array_equal(evaluator.probabilities(instances), expected)
        alone = Evaluator(models[evaluator.seed], 0, 31).probabilities(instances)
        np.testing.assert_allclose(alone, expected, atol=1e-6)


def test_a_checkpoint_of_another_kind_is_refused(tmp_path):
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    specials = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 0)
    AutoConfig.for_model("modernbert", vocab_size=20, **shape, **specials).save_pretrained(tmp_path)
    with pytest.raises(PlumblineError, match="is a modernbert, which has no table of positions"):
        TransformerClassifier(torch.zeros(20, 16), 2, checkpoint=str(tmp_path))
    with pytest.raises(PlumblineError, match=re.escape(f"The checkpoint '{tmp_path / 'absent'}' cannot be read")):
        TransformerClassifier(None, 2, checkpoint=str(tmp_path / "absent"))


def test_it_says_nothing_when_it_loads(tiny_checkpoint, capfd):
    TransformerClassifier(None, 2, checkpoint=str(tiny_checkpoint))
    assert capfd.readouterr() == ("", "")


def test_recipe_is_the_studys(tiny_checkpoint):
    assert (RECIPE.epochs, RECIPE.batch_size, RECIPE.learning_rate, RECIPE.beta2) == (3, 16, 2e-5, 0.98)
    assert (RECIPE.optimiser, RECIPE.schedule, RECIPE.warmup, RECIPE.first_eligible_epoch) == (
        "adamw",
        "linear",
        0.06,
        1,
    )
    assert (RECIPE.class_weights, RECIPE.reduction, RECIPE.batching, RECIPE.select_by) == (
        "none",
        "mean",
        "shuffle",
        "roc_auc",
    )
    model = TransformerClassifier(None, 2, checkpoint=str(tiny_checkpoint))
    (decaying, decay), (free, none) = parameter_groups(model, RECIPE)
    assert (decay, none) == (0.01, 0.0)
    named = {id(parameter): name for name, parameter in model.named_parameters()}
    spared = {named[id(parameter)] for parameter in free}
    assert spared == {name for name in named.values() if "bias" in name or "LayerNorm" in name}
    assert {named[id(parameter)] for parameter in decaying} == set(named.values()) - spared


@pytest.mark.parametrize(("steps", "warmup"), [(40, 0), (40, 7), (3, 2)])
def test_the_step_size_is_transformers(steps, warmup):
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
    schedule = get_linear_schedule_with_warmup(optimiser, warmup, steps)
    rate = LinearRate(0.3, steps, warmup, "cpu")
    for _ in range(steps + 2):
        rate.advance()
        assert rate.value.item() == pytest.approx(schedule.get_last_lr()[0], rel=1e-6, abs=1e-9)
        optimiser.step()
        schedule.step()


@pytest.mark.parametrize("ours", [AdamW, AmsGrad])
def test_the_optimiser_is_pytorchs_step_by_step(ours):
    models = [torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    groups = [[(list(m[0].parameters()), 0.4), (list(m[1].parameters()), 0.0)] for m in models]
    theirs = [{"params": parameters, "weight_decay": decay} for parameters, decay in groups[1]]
    common = {"lr": 0.05, "betas": (0.9, 0.98), "eps": 1e-8}
    adam = torch.optim.AdamW(theirs, **common) if ours is AdamW else torch.optim.Adam(theirs, amsgrad=True, **common)
    schedule = get_linear_schedule_with_warmup(adam, 3, 30)
    rate = LinearRate(0.05, 30, 3, "cpu")
    optimiser = ours(groups[0], rate.value, 0.98)
    for step in range(30):
        inputs = torch.randn(8, 4, generator=torch.Generator().manual_seed(step)) * (1 + step % 5)
        for model in models:
            model.zero_grad()
            hidden = model[0](inputs)
            # Every third step the second layer has no gradient.
            (hidden if step % 3 == 0 else model[1](hidden)).square().sum().backward()
        rate.advance()
        optimiser.step()
        adam.step()
        schedule.step()
        for mine, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
            torch.testing.assert_close(mine, other, atol=1e-6, rtol=1e-5)
        optimiser.zero_grad()
        adam.zero_grad()


def planted(folder, split, count, seed):
    """Sentences with one word that alone decides the label."""
    tokeniser = load_tokeniser(folder)
    random = np.random.default_rng(seed)
    ids = []
    for i in range(count):
        words = random.choice(["the", "film", "was", "a", "cast"], size=random.integers(3, 8))
        words[random.integers(len(words))] = "good" if i % 2 else "bad"
        ids.append(np.array(tokeniser(" ".join(words))["input_ids"], dtype=np.int32))
    free = [np.array([False, *[True] * (len(row) - 2), False]) for row in ids]
    label = np.arange(count, dtype=np.int32) % 2
    return Instances(np.array([split] * count), np.arange(count), label, ids, free)


def splits_of(folder, sizes=(320, 60, 60)):
    names = ("train", "dev", "test")
    return {name: planted(folder, name, size, seed) for seed, (name, size) in enumerate(zip(names, sizes, strict=True))}


def accuracy(predictions, split="test"):
    here = np.array(predictions["split"]) == split
    predicted = np.stack(predictions["probabilities"])[here].argmax(1)
    return (predicted == np.array(predictions["label"])[here]).mean()


@BOTH
def test_it_learns_a_planted_word_by_the_recipe(folder, checkpoint):
    training = RECIPE.model_copy(update={"learning_rate": 0.005, "epochs": 12})
    splits = splits_of(folder)
    block = [
        train_block(DECLARATION.pointer, {"checkpoint": folder}, {}, True, splits, 2, training, seeds, 4096)
        for seeds in ([3, 0], [0])
    ]
    assert accuracy(block[1][2]) >= 0.95
    for name, tensor in block[1][0].items():
        assert torch.equal(tensor, block[0][0][name]), "a seed does not depend on those beside it"


def test_a_learner_follows_the_schedule(tiny_checkpoint):
    """Two epochs of a learner, against a loop as everybody writes it, without dropout."""
    folder = str(tiny_checkpoint)
    training = RECIPE.model_copy(update={"learning_rate": 0.01, "epochs": 2, "warmup": 0.2, "batch_size": 8})
    splits = splits_of(folder, (60, 12, 12))
    train = splits["train"]

    def made():
        torch.manual_seed(0)
        model = TransformerClassifier(None, 2, checkpoint=folder)
        for part in model.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
        return model

    learner = Learner(made(), 0, split_rows(splits, 2, training, "cpu"), training, Budget(4096))
    other = made()
    names = {True: [], False: []}
    for name, parameter in other.named_parameters():
        names["bias" in name or "LayerNorm" in name].append(parameter)
    groups = [{"params": names[False], "weight_decay": 0.01}, {"params": names[True], "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.98), eps=1e-8)
    schedule = get_linear_schedule_with_warmup(adam, int(0.2 * 16), 16)
    for _ in range(2):
        steps = learner.begin_epoch()
        other.train()
        for number, count in enumerate(steps):
            index = learner._order[number, :count].numpy()
            learner.step(number)
            batch = collate([train.ids[i] for i in index], None)
            adam.zero_grad()
            labels = torch.from_numpy(train.label[index]).long()
            torch.nn.functional.cross_entropy(other(batch).logits, labels).backward()
            adam.step()
            schedule.step()
            for (name, mine), theirs in zip(learner.model.named_parameters(), other.parameters(), strict=True):
                if name.endswith("key.bias"):
                    continue  # Its gradient is zero but for rounding, which Adam makes large.
                torch.testing.assert_close(mine, theirs, atol=2e-4, rtol=1e-3, msg=f"{name} after step {number}")


def test_a_warmup_without_a_schedule_is_refused():
    with pytest.raises(ValueError, match=r"`warmup` is 0\.1, but `schedule` is constant"):
        Training(warmup=0.1)


def test_second_texts_are_read_by_the_model(tiny_checkpoint):
    model, _ = same_weights(str(tiny_checkpoint), 5)
    instances = example_instances(paired=True)
    told = Evaluator(model, 0, 500).probabilities(instances)
    turned = replace(instances, pair=instances.pair[::-1])
    assert np.abs(Evaluator(model, 0, 500).probabilities(turned) - told).max() > 0.01


def test_minilm_of_its_package_is_fine_tuned():
    name = Registry().get("model", "minilm").options["checkpoint"].default
    folder = find_checkpoint(name)
    if folder == name:
        pytest.skip(f"the package {name} is not installed")
    training = RECIPE.model_copy(update={"learning_rate": 1e-3, "epochs": 2, "batch_size": 8})
    splits = splits_of(folder, (48, 12, 12))
    _, _, predictions = train_block(
        DECLARATION.pointer, {"checkpoint": folder}, {}, True, splits, 2, training, [0], 4096
    )
    assert accuracy(predictions) == 1
