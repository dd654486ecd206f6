"""Encoders of every family against transformers itself, with measures, and refusals of all others."""

import re

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients
from transformers import AutoModelForSequenceClassification

from plumbline.attribution.deep_lift import deep_lift
from plumbline.attribution.importances import AttributionOptions
from plumbline.attribution.lime import lime
from plumbline.attribution.path import integrated_gradient_pad
from plumbline.attribution.rollout import rollout
from plumbline.attribution.value_norm import attention_x_value_norm
from plumbline.conformance.checkpoints import save_checkpoint
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.batch import collate
from plumbline.models.evaluator import Evaluator
from plumbline.models.transformer import TransformerClassifier
from tests.unit.models.conftest import FAMILIES

LENGTHS, PAIRS = (3, 12, 14, 5), (4, 1, 6, 2)
# One with sliding windows and rotary positions, one with relative ones.
RECENT = ["modernbert", "deberta-v3"]


def rows(lengths, seed):
    random = np.random.default_rng(seed)
    return [random.integers(5, 39, size=length).astype(np.int32) for length in lengths]


def models_of(folder):
    """Our model and transformers' own with the same weights."""
    torch.manual_seed(3)
    ours = TransformerClassifier(None, 3, checkpoint=folder).eval()
    torch.manual_seed(3)
    other = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3, attn_implementation="eager").eval()
    weights = {key.removeprefix("encoder."): value for key, value in ours.state_dict().items() if "encoder." in key}
    other.load_state_dict(weights, strict=False)
    with torch.no_grad():
        other.get_input_embeddings().weight.copy_(ours.embedding.weight)
    return ours, other


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_computes_what_transformers_computes(family, paired, folder_of):
    ours, other = models_of(folder_of(family))
    texts, seconds = rows(LENGTHS, 0), rows(PAIRS, 1)
    batch = collate(texts, None, "cpu", seconds if paired else None)
    with torch.no_grad():
        logits = ours(batch).logits
        again = ours.read(batch, ours.vectors(batch)).logits
        for i, text in enumerate(texts):
            row = np.concatenate([text, seconds[i]]) if paired else text
            given = {"input_ids": torch.from_numpy(row).long()[None]}
            if ours.types:
                given["token_type_ids"] = (torch.arange(len(row)) >= len(text)).long()[None].clamp(max=ours.types - 1)
            torch.testing.assert_close(logits[i], other(**given).logits[0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(again, logits, atol=1e-6, rtol=1e-6)
    present = batch.present if batch.pair is None else torch.cat([batch.present, batch.pair.present], dim=1)
    layers, width = ours.layers(batch), present.shape[1]
    assert layers.shape == (len(texts), 2, 2, width, width)
    torch.testing.assert_close(layers.sum(-1)[:, 0, 0][present], torch.ones(int(present.sum())))
    for i, own in enumerate(present):
        assert layers[i][:, :, own][..., ~own].abs().sum() == 0, "no token attends to padding"


@pytest.mark.parametrize("family", ["bert", "roberta", "deberta-v3", "modernbert"])
def test_pairs_that_are_wider_together_than_any_of_them(family, folder_of):
    """Of 64 positions each row needs 54, but both texts padded are 100 tokens wide."""
    ours, _ = models_of(folder_of(family))
    texts, seconds = rows((50, 4), 0), rows((4, 50), 1)
    batch = collate(texts, None, "cpu", seconds)
    with torch.no_grad():
        alone = [ours(collate(texts[i : i + 1], None, "cpu", seconds[i : i + 1])).logits[0] for i in range(2)]
        torch.testing.assert_close(ours(batch).logits, torch.stack(alone), atol=1e-5, rtol=1e-5)
        vectors = ours.vectors(batch)
        torch.testing.assert_close(ours.read(batch, vectors).logits, torch.stack(alone), atol=1e-5, rtol=1e-5)
    assert vectors.shape[:2] == (2, 100)
    assert ours.layers(batch).shape[-2:] == (100, 100) and ours.readout(batch).argmax(1).tolist() == [0, 0]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_output_reads_the_tokens_that_readout_names(family, folder_of):
    ours, _ = models_of(folder_of(family))
    # Otherwise the last layer computes the token that is read alone.
    ours._first_token = []
    batch, states = collate(rows(LENGTHS, 0), None), []
    layers = [part for part in ours.encoder.modules() if isinstance(part, torch.nn.ModuleList)]
    last = max(layers, key=len)[-1] if family != "albert" else layers[-1][-1]
    part = last[-1] if isinstance(last, torch.nn.ModuleList) else last

    def keep(module, inputs, output):
        hidden = output[0] if isinstance(output, tuple) else output
        states.append(hidden.requires_grad_())

    handle = part.register_forward_hook(keep)
    logits = ours(batch).logits
    handle.remove()
    (slopes,) = torch.autograd.grad(logits[:, 0].sum(), states[-1])
    read = slopes.abs().sum(-1) > 1e-9
    assert torch.equal(read, ours.readout(batch) > 0)
    torch.testing.assert_close(ours.readout(batch).sum(1), torch.ones(len(LENGTHS)))


def instances_of(texts):
    maskable = [np.arange(len(text)) % len(text) != 0 for text in texts]
    count = len(texts)
    return Instances(np.array(["test"] * count), np.arange(count), np.zeros(count, np.int32), texts, maskable)


@pytest.mark.parametrize("family", RECENT)
def test_measures_of_recent_encoders(family, folder_of):
    """Integrated gradients are Captum's, DeepLIFT's scores sum to the change, and no result depends on the batch."""
    folder = folder_of(family)
    ours, _ = models_of(folder)
    instances, options = instances_of(rows(LENGTHS, 0)), AttributionOptions(function="logit", target=1)
    evaluator = Evaluator(ours.requires_grad_(False), 0, 10_000)
    found = integrated_gradient_pad(evaluator, instances, options=options, sign="signed", tolerance=0)
    for i in range(len(instances)):
        batch = collate([instances.ids[i]], None)
        vectors = ours.vectors(batch)
        baseline = ours.vectors(collate([np.zeros(len(instances.ids[i]), np.int32)], None))
        method = IntegratedGradients(lambda rows, batch=batch: ours.read(batch.repeat(len(rows)), rows).logits[:, 1])
        expected = method.attribute(vectors, baseline, n_steps=50, method="gausslegendre").sum(-1)[0].numpy()
        words = instances.maskable[i]
        np.testing.assert_allclose(found.scores[i], expected[words], atol=1e-5)
        np.testing.assert_allclose(found.specials[i], expected[~words], atol=1e-5)
        lifted = deep_lift(evaluator, instances.take([i]), options=options, sign="signed")
        with torch.no_grad():
            change = ours.read(batch, vectors).logits[0, 1] - ours.read(batch, baseline).logits[0, 1]
        np.testing.assert_allclose(lifted.scores[0].sum() + lifted.specials[0].sum(), float(change), atol=1e-5)
    for measure in (lambda texts: lime(evaluator, texts, samples=50), lambda texts: rollout(evaluator, texts)):
        together, alone = measure(instances), [measure(instances.take([i])) for i in range(len(instances))]
        for scores, single in zip(together.scores, alone, strict=True):
            np.testing.assert_allclose(scores, single.scores[0], atol=1e-5)


@pytest.mark.parametrize(
    ("family", "projection"), [("bert", "value"), ("distilbert", "v_lin"), ("roberta", "value"), ("eurobert", "v_proj")]
)
def test_attention_times_value_norms_by_hand(family, projection, folder_of):
    ours, other = models_of(folder_of(family))
    instances = instances_of(rows(LENGTHS, 0))
    found = attention_x_value_norm(Evaluator(ours.requires_grad_(False), 0, 10_000), instances)
    for i, text in enumerate(instances.ids):
        values: list[torch.Tensor] = []
        hooks = [
            module.register_forward_hook(lambda *given, found=values: found.append(given[-1][0].detach()))
            for name, module in other.named_modules()
            if name.endswith(f".{projection}")
        ]
        with torch.no_grad():
            out = other(input_ids=torch.from_numpy(text).long()[None], output_attentions=True)
        for hook in hooks:
            hook.remove()
        # Two heads of eight numbers in each of two layers; EuroBERT averages over tokens, the others read the first.
        read = torch.ones(len(text)) / len(text) if family == "eurobert" else torch.eye(len(text))[0]
        expected = sum(
            (read @ weights[0, head]) * value[:, 8 * head : 8 * head + 8].pow(2).sum(-1).sqrt()
            for weights, value in zip(out.attentions, values, strict=True)
            for head in range(2)
        )
        words = torch.from_numpy(instances.maskable[i])
        np.testing.assert_allclose(found.scores[i], (expected / 4)[words], atol=1e-6)
        np.testing.assert_allclose(found.specials[i], (expected / 4)[~words], atol=1e-6)
    assert ours.encoder.config._attn_implementation == "sdpa", "as before"


@pytest.mark.parametrize("family", FAMILIES)
def test_value_norms_are_of_the_values_or_refused(family, folder_of):
    """A longer value vector is a larger norm; where the library does not show values, a sentence says so."""
    ours, _ = models_of(folder_of(family))
    batch = collate(rows(LENGTHS, 0), None)
    with torch.no_grad():
        if not getattr(ours.encoder, "_supports_attention_backend", False):
            with pytest.raises(PlumblineError, match="does not show the value vectors of its attention"):
                ours.value_norms(batch)
            return
        norms = ours.value_norms(batch)
        alone = [ours.value_norms(collate([text], None))[0] for text in rows(LENGTHS, 0)]
    assert norms.shape == (len(LENGTHS), 2, 2, max(LENGTHS)) and norms[0][..., : LENGTHS[0]].min() > 0
    for i, length in enumerate(LENGTHS):
        torch.testing.assert_close(norms[i][..., :length], alone[i], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "options", "reason"),
    [
        ("fnet", {}, "has the type 'fnet', whose output depends on the padding after a text; use another model."),
        (
            "convbert",
            {},
            "has the type 'convbert', whose output depends on the padding after a text; use another model.",
        ),
        ("canine", {}, "has the type 'canine', which cannot read word vectors in place of tokens ("),
        (
            "bart",
            {"d_model": 16},
            "has the type 'bart', an encoder with a decoder; use an encoder such as BERT, ModernBERT",
        ),
        ("gpt2", {}, "has the type 'gpt2', a causal language model; save it with `AutoModelForCausalLM`, and write"),
    ],
)
def test_others_are_refused_in_a_sentence(kind, options, reason, tmp_path):
    torch.manual_seed(0)
    save_checkpoint(tmp_path, kind, **{"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, **options})
    with pytest.raises(PlumblineError, match=re.escape(f"The checkpoint '{tmp_path}' {reason}")):
        TransformerClassifier(None, 3, checkpoint=str(tmp_path))
