"""The fine-tuned transformer against transformers itself, and its recipe against PyTorch's optimiser."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensor, FakeTensorMode
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    DistilBertConfig,
    get_linear_schedule_with_warmup,
)

from plumbline.config.checkpoints import find_checkpoint
from plumbline.config.recipes import Training
from plumbline.conformance import example_instances
from plumbline.data.instances import Instances
from plumbline.data.subwords import load_tokenizer
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch, collate
from plumbline.models.block import build_model, trained_models
from plumbline.models.budget import Budget
from plumbline.models.evaluator import Evaluator
from plumbline.models.transformer import SongTransformer, TransformerClassifier, value_and_output_projections
from plumbline.registry import Registry
from plumbline.store import write_tensors
from plumbline.training.learner import Learner, parameter_groups
from plumbline.training.optimisers import AdamW, AmsGrad, LinearRate
from plumbline.training.trainer import BlockSpec, split_rows, train_block

DECLARATION = Registry().get("model", "roberta")
RECIPE = Training(**DECLARATION.training)
MINILM = Registry().get("model", "minilm").options["checkpoint"].default
SONG = Registry().get("model", "distilbert")
BERTS = pytest.mark.parametrize("checkpoint", ["tiny_checkpoint", "tiny_bert"])
ALL = pytest.mark.parametrize("checkpoint", ["tiny_checkpoint", "tiny_bert", "tiny_distilbert"])
SINGLE_AND_PAIRED = pytest.mark.parametrize("paired", [False, True])


@pytest.fixture(scope="session")
def tiny_distilbert(tmp_path_factory, tiny_bert):
    """The folder of a small DistilBERT, which distinguishes second texts from first ones only by their position."""
    tokenizer = load_tokenizer(str(tiny_bert))
    shape = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 64}
    config = DistilBertConfig(vocab_size=len(tokenizer), initializer_range=0.3, **shape)
    folder = tmp_path_factory.mktemp("distilbert")
    torch.manual_seed(0)
    AutoModel.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(checkpoint, request):
    return str(request.getfixturevalue(checkpoint))


def minilm():
    """The folder of MiniLM."""
    folder = find_checkpoint(MINILM)
    if folder == MINILM:
        pytest.skip(f"the package {MINILM} is not installed")
    return folder


def rows_of(folder, count=9, seed=0):
    """Texts of 1 to 20 random subwords and questions of 1 to 7, as `tokenize_subwords` lays them out."""
    config = AutoConfig.from_pretrained(folder)
    tokenizer = load_tokenizer(folder)
    random = np.random.default_rng(seed)

    def drawn(most):
        return random.integers(5, config.vocab_size, size=random.integers(1, most + 1))

    first, last = [tokenizer.cls_token_id], [tokenizer.sep_token_id]
    texts = [np.concatenate([first, drawn(20), last]).astype(np.int32) for _ in range(count)]
    seconds = [np.concatenate([drawn(7), last]).astype(np.int32) for _ in range(count)]
    return texts, seconds


def same_weights(folder, classes, **made):
    """The model, and transformers' own with the same weights."""
    torch.manual_seed(3)
    model = TransformerClassifier(None, classes, checkpoint=folder).eval()
    torch.manual_seed(3)
    other = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=classes, **made).eval()
    return model, other


def rows_for_transformers(checkpoint, texts, seconds=None):
    """What transformers is given of each text, or of each text and its second one, without padding."""
    for place, text in enumerate(texts):
        row = text if seconds is None else np.concatenate([text, seconds[place]])
        given = {"input_ids": torch.from_numpy(row).long()[None]}
        if checkpoint == "tiny_bert":
            given["token_type_ids"] = (torch.arange(len(row)) >= len(text)).long()[None]
        yield given


def own_places(batch):
    """Where the tokens of each row lie, [B, T]."""
    return batch.present if batch.pair is None else torch.cat([batch.present, batch.pair.present], dim=1)


@ALL
@SINGLE_AND_PAIRED
def test_logits_and_gradients_are_transformers_own(folder, checkpoint, paired):
    model, other = same_weights(folder, 3)
    texts, seconds = rows_of(folder)
    batch = collate(texts, None, "cpu", seconds if paired else None)
    embedded = model.embedding(batch.ids).detach().requires_grad_()
    logits = model(batch, embedded).logits
    (slope,) = torch.autograd.grad(logits[:, 1].sum(), embedded)
    torch.testing.assert_close(model(batch).logits, logits, atol=0, rtol=0)
    assert logits.std(0).min() > 0.02, "texts must differ for the comparison to tell"
    for place, given in enumerate(rows_for_transformers(checkpoint, texts, seconds if paired else None)):
        text, vectors = texts[place], []
        handle = other.get_input_embeddings().register_forward_hook(
            lambda module, inputs, output, kept=vectors: kept.append(output.detach().requires_grad_()) or kept[0]
        )
        reference = other(**given).logits
        handle.remove()
        torch.testing.assert_close(logits[place], reference[0], atol=1e-5, rtol=1e-5)
        (expected,) = torch.autograd.grad(reference[0, 1], vectors[0])
        torch.testing.assert_close(slope[place, : len(text)], expected[0, : len(text)], atol=1e-5, rtol=1e-4)
        assert slope[place, len(text) :].abs().sum() == 0, "padding has no part in it"


@ALL
@SINGLE_AND_PAIRED
def test_vectors_are_those_that_transformers_computes_from(folder, checkpoint, paired):
    model, other = same_weights(folder, 3)
    texts, seconds = rows_of(folder)
    batch = collate(texts, None, "cpu", seconds if paired else None)
    vectors = model.vectors(batch).detach().requires_grad_()
    logits = model.read(batch, vectors).logits
    torch.testing.assert_close(logits, model(batch).logits, atol=0, rtol=0)
    (slope,) = torch.autograd.grad(logits[:, 1].sum(), vectors)
    own = own_places(batch)
    assert vectors.shape == (*own.shape, 16) and slope[~own].abs().sum() == 0
    for place, given in enumerate(rows_for_transformers(checkpoint, texts, seconds if paired else None)):
        kept = []
        handle = other.base_model.embeddings.register_forward_hook(
            lambda module, inputs, output, kept=kept: kept.append(output.detach().requires_grad_()) or kept[0]
        )
        reference = other(**given).logits
        handle.remove()
        torch.testing.assert_close(vectors[place, own[place]], kept[0][0], atol=1e-6, rtol=1e-5)
        (expected,) = torch.autograd.grad(reference[0, 1], kept[0])
        torch.testing.assert_close(slope[place, own[place]], expected[0], atol=1e-5, rtol=1e-4)


@ALL
def test_reading_other_vectors_gives_another_output_and_leaves_nothing_behind(folder):
    model, _ = same_weights(folder, 3)
    batch, answers = collate(rows_of(folder)[0], None), [np.array([0, 2])] * 9
    before, vectors = model(batch).logits, model.vectors(batch)
    assert (model.read(batch, vectors.flip(0)).logits - before).abs().max() > 0.01
    with pytest.raises(RuntimeError):
        model.read(batch, vectors[:, 1:])
    assert not model.encoder.base_model.embeddings._forward_hooks
    assert torch.equal(model(batch).logits, before)
    barred = model.read(collate(rows_of(folder)[0], None, "cpu", None, answers), vectors).logits
    assert torch.equal(barred[:, 1], torch.full((9,), -torch.inf)) and torch.equal(barred[:, [0, 2]], before[:, [0, 2]])


@ALL
@SINGLE_AND_PAIRED
def test_layers_are_transformers_own(folder, checkpoint, paired):
    model, other = same_weights(folder, 3, attn_implementation="eager")
    texts, seconds = rows_of(folder)
    batch = collate(texts, None, "cpu", seconds if paired else None)
    layers, readout, own = model.layers(batch), model.readout(batch), own_places(batch)
    assert layers.shape == (len(texts), 2, 2, own.shape[1], own.shape[1])
    assert torch.equal(readout, torch.eye(own.shape[1])[[0] * len(texts)])
    for place, given in enumerate(rows_for_transformers(checkpoint, texts, seconds if paired else None)):
        expected = torch.cat(other(**given, output_attentions=True).attentions)
        found = layers[place][..., own[place], :]
        torch.testing.assert_close(found[..., own[place]], expected, atol=1e-6, rtol=1e-5)
        assert found[..., ~own[place]].abs().sum() == 0


def linear(w, name, rows):
    return rows @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def normed(w, name, rows):
    scaled = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-12)
    return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]


def test_uniform_attention_of_a_small_bert_by_hand(tiny_bert, tmp_path):
    """Each token takes the mean of the values of all tokens; queries and keys play no part."""
    config = AutoConfig.from_pretrained(tiny_bert, num_hidden_layers=1)
    torch.manual_seed(0)
    AutoModel.from_config(config).save_pretrained(tmp_path)
    model = TransformerClassifier(None, 3, checkpoint=str(tmp_path), attention="uniform").eval()
    w = {name.removeprefix("encoder.bert."): tensor.double().numpy() for name, tensor in model.state_dict().items()}
    texts, seconds = rows_of(str(tiny_bert))
    logits = model(collate(texts, None, "cpu", seconds)).logits.detach().numpy()
    layer = "encoder.layer.0"
    for place, (text, second) in enumerate(zip(texts, seconds, strict=True)):
        ids, kind = np.concatenate([text, second]), np.repeat([0, 1], [len(text), len(second)])
        words = w["embedding.weight"][ids] + w["embeddings.token_type_embeddings.weight"][kind]
        hidden = normed(w, "embeddings.LayerNorm", words + w["embeddings.position_embeddings.weight"][: len(ids)])
        gathered = linear(w, f"{layer}.attention.self.value", hidden).mean(0, keepdims=True)
        joined = linear(w, f"{layer}.attention.output.dense", gathered) + hidden
        hidden = normed(w, f"{layer}.attention.output.LayerNorm", joined)
        inner = linear(w, f"{layer}.intermediate.dense", hidden)
        inner = inner * torch.special.ndtr(torch.from_numpy(inner)).numpy()
        hidden = normed(w, f"{layer}.output.LayerNorm", linear(w, f"{layer}.output.dense", inner) + hidden)
        pooled = np.tanh(linear(w, "pooler.dense", hidden[:1]))
        np.testing.assert_allclose(logits[place], linear(w, "encoder.classifier", pooled)[0], atol=1e-5)


@ALL
@SINGLE_AND_PAIRED
def test_uniform_layers_are_one_over_the_tokens_and_no_query_is_used(folder, paired):
    model = TransformerClassifier(None, 3, checkpoint=folder, attention="uniform").eval()
    texts, seconds = rows_of(folder)
    batch = collate(texts, None, "cpu", seconds if paired else None)
    layers, own = model.layers(batch), own_places(batch)
    even = own / own.sum(1, keepdim=True)
    torch.testing.assert_close(layers, even[:, None, None, None].expand_as(layers), atol=1e-7, rtol=0)
    model(batch).logits[:, 0].sum().backward()
    slopes = {name: parameter.grad for name, parameter in model.named_parameters() if "layer" in name}
    unused = {name for name in slopes if any(part in name for part in ("query", "key", "q_lin", "k_lin"))}
    assert len(unused) == 2 * 4 and all(slopes[name] is None for name in unused)
    assert all(slope.abs().sum() > 0 for name, slope in slopes.items() if name not in unused)
    softmax = TransformerClassifier(None, 3, checkpoint=folder).eval()
    softmax.load_state_dict(model.state_dict())
    assert (softmax(batch).logits - model(batch).logits).abs().max() > 0.01


@ALL
@pytest.mark.parametrize("attention", ["softmax", "uniform"])
def test_a_step_reads_no_number_back(folder, attention):
    """Tensors without numbers go through it, so that a step can be recorded."""
    model = SongTransformer(None, 3, checkpoint=folder, attention=attention).train()
    texts, seconds = rows_of(folder)
    with FakeTensorMode(allow_non_fake_inputs=True):
        logits = model(collate(texts, None, "cpu", seconds)).logits
        slopes = torch.autograd.grad(logits.sum(), [*model.parameters()], allow_unused=True)
    assert logits.shape == (len(texts), 3) and isinstance(slopes[0], FakeTensor)


@pytest.mark.parametrize("checkpoint", ["tiny_bert", "tiny_distilbert"])
def test_weights_after_attention_untransposed_by_hand(folder):
    """A layer's self-attention, from its own weights: concat_h(A_h (V W)_h) + b."""
    model = SongTransformer(None, 2, checkpoint=folder, after_attention="untransposed").eval()
    right = SongTransformer(None, 2, checkpoint=folder).eval()
    right.load_state_dict(model.state_dict())
    texts, _ = rows_of(folder)
    batch, kept = collate(texts, None), {}
    values, mixed = value_and_output_projections(model.encoder.base_model)[0]
    values.register_forward_hook(lambda module, inputs, output: kept.update(states=inputs[0]))
    mixed.register_forward_hook(lambda module, inputs, output: kept.update(output=output))
    weights = model.layers(batch)[:, 0]
    b, heads, t, _ = weights.shape
    turned = (kept["states"] @ values.weight.T + values.bias) @ mixed.weight
    parted = turned.reshape(b, t, heads, -1).transpose(1, 2)
    expected = (weights @ parted).transpose(1, 2).reshape(b, t, -1) + mixed.bias
    torch.testing.assert_close(kept["output"], expected)
    assert not torch.allclose(model(batch).logits, right(batch).logits, atol=1e-3)


def test_attention_that_cannot_be_made_uniform_is_refused(tmp_path):
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    torch.manual_seed(0)
    AutoModel.from_config(AutoConfig.for_model("mpnet", vocab_size=40, **shape)).save_pretrained(tmp_path)
    assert TransformerClassifier(None, 2, checkpoint=str(tmp_path)).layers(collate([np.arange(5)], None)).shape[1] == 1
    with pytest.raises(PlumblineError, match="is a mpnet, which does not support uniform attention; use a BERT"):
        TransformerClassifier(None, 2, checkpoint=str(tmp_path), attention="uniform")


def test_layers_of_minilm_are_transformers_own():
    folder = minilm()
    tokenizer = load_tokenizer(folder)
    model, other = same_weights(folder, 2, attn_implementation="eager")
    given = tokenizer("A gripping film, and yet nobody saw it.", return_tensors="pt")
    batch = collate([given["input_ids"][0].numpy()], None)
    with torch.no_grad():
        expected = torch.stack(other(**given, output_attentions=True).attentions, dim=1)
        torch.testing.assert_close(model.layers(batch), expected, atol=1e-6, rtol=1e-5)
    assert expected.shape[1:3] == (6, 12)


def test_tokenizers_own_pairs_are_what_bert_reads(tiny_bert):
    model, other = same_weights(str(tiny_bert), 2)
    tokenizer = load_tokenizer(str(tiny_bert))
    both = tokenizer("the film was good", "was it ?", return_tensors="pt", return_token_type_ids=True)
    second = both["token_type_ids"][0].bool()
    ids = both["input_ids"][0].numpy()
    batch = collate([ids[~second]], None, "cpu", [ids[second]])
    torch.testing.assert_close(model(batch).logits, other(**both).logits, atol=1e-6, rtol=1e-5)


@ALL
@SINGLE_AND_PAIRED
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


@ALL
def test_dropout_is_for_training_alone(folder):
    model, _ = same_weights(folder, 2)
    batch = collate(rows_of(folder)[0], None)
    assert torch.equal(model(batch).logits, model(batch).logits)
    model.train()
    assert not torch.equal(model(batch).logits, model(batch).logits)


@ALL
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


@ALL
@SINGLE_AND_PAIRED
def test_stored_models_come_back(folder, paired, tmp_path):
    texts, seconds = rows_of(folder)
    free = [np.array([False, *[True] * (len(text) - 2), False]) for text in texts]
    label = np.arange(len(texts), dtype=np.int32) % 2
    instances = Instances(np.array(["test"] * len(texts)), np.arange(len(texts)), label, texts, free)
    instances = replace(instances, pair=seconds) if paired else instances
    options = {"checkpoint": folder}
    models = {seed: build_model(DECLARATION.pointer, options, None, 2, trainable=True) for seed in (4, 5)}
    state = {f"{seed}/{name}": tensor for seed, model in models.items() for name, tensor in model.state_dict().items()}
    places = {tensor.data_ptr() for tensor in state.values()}
    assert len(places) == len(state), "no tensor is stored twice"
    assert not any("word_embeddings" in name for name in state)
    write_tensors(tmp_path / "weights", state)
    for evaluator in trained_models(tmp_path / "weights", DECLARATION.pointer, options, 2, [4, 5], 500):
        expected = Evaluator(models[evaluator.seed], 0, 500).probabilities(instances)
        np.testing.assert_allclose(evaluator.probabilities(instances), expected, atol=1e-6)
        alone = Evaluator(models[evaluator.seed], 0, 31).probabilities(instances)
        np.testing.assert_allclose(alone, expected, atol=1e-6)


def test_an_absent_checkpoint_is_refused(tmp_path):
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
    (decaying, decay), (free, none) = parameter_groups(model.named_parameters(), RECIPE)
    assert (decay, none) == (0.01, 0.0)
    named = {id(parameter): name for name, parameter in model.named_parameters()}
    spared = {named[id(parameter)] for parameter in free}
    assert spared == {name for name in named.values() if "bias" in name or "LayerNorm" in name}
    assert {named[id(parameter)] for parameter in decaying} == set(named.values()) - spared


def test_recipe_of_the_song_is_its_studys():
    training = Training(**SONG.training)
    assert (training.epochs, training.patience, training.batch_size, training.first_eligible_epoch) == (40, 5, 64, 1)
    assert (training.optimiser, training.learning_rate, training.beta2) == ("adamw", 1e-5, 0.999)
    assert (training.schedule, training.weight_decay, training.select_by) == ("constant", 0, "accuracy")
    assert (training.class_weights, training.reduction, training.batching) == ("none", "mean", "length-noise")
    for name, attention in (("distilbert", "softmax"), ("distilbert-uniform", "uniform")):
        for song, checkpoint in (
            (name, "distilbert-base-uncased"),
            (name.replace("distilbert", "minilm-song"), MINILM),
        ):
            declaration = Registry().get("model", song)
            assert declaration.training == SONG.training and declaration.provides == SONG.provides
            assert declaration.options["attention"].default == attention
            assert declaration.options["checkpoint"].default == checkpoint


@ALL
def test_dropout_of_the_song_is_its_studys(folder):
    model, plain = SongTransformer(None, 2, checkpoint=folder), TransformerClassifier(None, 2, checkpoint=folder)
    found = {name: part.p for name, part in model.named_modules() if isinstance(part, torch.nn.Dropout)}
    layers, vectors = ({name for name in found if part in name} for part in (".layer.", ".embeddings."))
    output = found.keys() - layers - vectors
    assert len(layers) in (4, 6) and len(vectors) == len(output) == 1
    assert {found[name] for name in layers} == {0.2} and {found[name] for name in output} == {0.1}
    assert all(found[name] == plain.get_submodule(name).p == 0.1 for name in vectors)


def test_the_song_draws_attention_away_in_training_alone(tiny_distilbert):
    """Dropout of the attention, whichever it is, and of nothing else."""
    batch = collate(rows_of(str(tiny_distilbert))[0], None)
    for attention in ("softmax", "uniform"):
        model = SongTransformer(None, 2, checkpoint=str(tiny_distilbert), attention=attention)
        for name, part in model.named_modules():
            if isinstance(part, torch.nn.Dropout) and not name.endswith("attention.dropout"):
                part.p = 0.0
        still = model.eval()(batch).logits
        assert torch.equal(model(batch).logits, still)
        assert (model.train()(batch).logits - still).abs().max() > 0.001


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
    tokenizer = load_tokenizer(folder)
    random = np.random.default_rng(seed)
    ids = []
    for i in range(count):
        words = random.choice(["the", "film", "was", "a", "cast"], size=random.integers(3, 8))
        words[random.integers(len(words))] = "good" if i % 2 else "bad"
        ids.append(np.array(tokenizer(" ".join(words))["input_ids"], dtype=np.int32))
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


def trained(folder, seeds, epochs):
    training = RECIPE.model_copy(update={"learning_rate": 0.005, "epochs": epochs})
    splits = splits_of(folder)
    return train_block(BlockSpec(DECLARATION.pointer, {"checkpoint": folder}, {}, splits, 2, training), seeds, 4096)


@BERTS
def test_it_learns_a_planted_word_by_the_recipe(folder, checkpoint):
    assert accuracy(trained(folder, [0], 12)[2]) >= 0.95


@BERTS
def test_a_seed_does_not_depend_on_those_beside_it(folder, checkpoint):
    together = trained(folder, [3, 0], 2)[0]
    for name, tensor in trained(folder, [0], 2)[0].items():
        assert torch.equal(tensor, together[name])


@pytest.mark.parametrize("name", ["distilbert", "distilbert-uniform"])
def test_the_song_learns_a_planted_word(name, tiny_distilbert, tmp_path):
    declaration, folder = Registry().get("model", name), str(tiny_distilbert)
    options = {key: option.default for key, option in declaration.options.items()} | {"checkpoint": folder}
    training = Training(**declaration.training | {"learning_rate": 0.005, "epochs": 12, "batch_size": 16})
    splits = splits_of(folder)
    weights, _, predictions = train_block(BlockSpec(declaration.pointer, options, {}, splits, 2, training), [0], 4096)
    assert accuracy(predictions) >= 0.95
    write_tensors(tmp_path / "weights", weights)
    (again,) = trained_models(tmp_path / "weights", declaration.pointer, options, 2, [0], 4096)
    here = np.array(predictions["split"]) == "test"
    probabilities = again.probabilities(splits["test"])
    np.testing.assert_allclose(probabilities, np.stack(predictions["probabilities"])[here], atol=1e-6)


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
            index = learner.order[number, :count].numpy()
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
    probabilities = Evaluator(model, 0, 500).probabilities(instances)
    turned = replace(instances, pair=instances.pair[::-1], pair_maskable=instances.pair_maskable[::-1])
    assert np.abs(Evaluator(model, 0, 500).probabilities(turned) - probabilities).max() > 0.01


def test_minilm_of_its_package_is_fine_tuned():
    folder = minilm()
    training = RECIPE.model_copy(update={"learning_rate": 1e-3, "epochs": 2, "batch_size": 8})
    splits = splits_of(folder, (48, 12, 12))
    _, _, predictions = train_block(
        BlockSpec(DECLARATION.pointer, {"checkpoint": folder}, {}, splits, 2, training), [0], 4096
    )
    assert accuracy(predictions) == 1
