"""A checkpoint named in the config as a model, which types it may be of, and a checkpoint's own output."""

import json
import shutil
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

from plumbline.config.external import locate_files
from plumbline.config.recipes import Training
from plumbline.config.resolve import resolve
from plumbline.config.runs import list_runs
from plumbline.conformance import example_instances
from plumbline.errors import PlumblineError
from plumbline.models.batch import collate
from plumbline.models.block import trained_models
from plumbline.models.pretrained import PlaceholderWeights
from plumbline.models.transformer import TransformerClassifier
from plumbline.registry import Registry
from plumbline.store import write_tensors
from plumbline.training.trainer import BlockSpec, train_block

POINTER = Registry().get("model", "pretrained").pointer
SIZES = {
    "vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 64, "initializer_range": 0.3,
}  # fmt: skip
NAMED = ["bad", "none", "good"]
ROWS = [np.array([2, 7, 8, 9, 3], dtype=np.int32), np.array([2, 17, 3], dtype=np.int32)]


def config_of(kind: str, **others: Any) -> Any:
    """A small model of a type; one that counts places from where padding stands has it at 1."""
    sizes: dict[str, Any] = {**SIZES, **others}
    if kind in ("albert", "electra"):
        sizes["embedding_size"] = 8
    if kind not in ("albert", "bert", "distilbert", "electra", "ernie"):
        sizes["pad_token_id"] = 1
    return AutoConfig.for_model(kind, **sizes)


def logits_of(model: Any) -> torch.Tensor:
    """The logits of transformers' own model for each row alone."""
    with torch.no_grad():
        return torch.cat([model(input_ids=torch.from_numpy(row).long()[None]).logits for row in ROWS])


@pytest.fixture
def classifier(tmp_path, tiny_bert):
    """The folder of a small BERT that classifies, and its own output."""
    folder = shutil.copytree(tiny_bert, tmp_path / "classifier")
    config = AutoConfig.from_pretrained(tiny_bert, id2label=dict(enumerate(NAMED)), num_labels=3)
    torch.manual_seed(5)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    model.save_pretrained(folder)
    return folder, logits_of(model)


@pytest.mark.parametrize(
    ("labels", "order"), [([], [0, 1, 2]), ([2, 0, 1], [2, 0, 1]), (["good", "bad"], [2, 0]), (["none", 0], [1, 0])]
)
def test_own_output_is_that_of_the_checkpoint_class_by_class(classifier, labels, order, tmp_path):
    folder, expected = classifier
    options = {"checkpoint": str(folder), "head": "own", "labels": labels}
    model = TransformerClassifier(None, len(order), **options).eval()
    with torch.no_grad():
        found = model(collate(ROWS, None)).logits
    torch.testing.assert_close(found, expected[:, order], atol=1e-6, rtol=1e-6)
    write_tensors(tmp_path / "weights.safetensors", {f"0/{k}": v for k, v in model.state_dict().items()})
    (stored,) = trained_models(tmp_path / "weights.safetensors", POINTER, options, len(order), [0], 10_000)
    with torch.no_grad():
        torch.testing.assert_close(stored.model(collate(ROWS, None)).logits, found, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_new_output_is_drawn_even_if_the_checkpoint_has_one(classifier, classes):
    outputs, bodies = [], []
    for seed in (0, 1):
        torch.manual_seed(seed)
        model = TransformerClassifier(None, classes, checkpoint=str(classifier[0])).eval()
        outputs.append(model.encoder.classifier.weight)
        bodies.append(model.encoder.base_model.pooler.dense.weight)
    own = AutoModelForSequenceClassification.from_pretrained(classifier[0])
    assert outputs[0].shape == (classes, 16) and not torch.equal(*outputs)
    assert torch.equal(*bodies) and torch.equal(bodies[0], own.base_model.pooler.dense.weight)
    assert classes != 3 or not torch.equal(outputs[0], own.classifier.weight)


def test_a_new_head_of_several_layers_is_drawn_as_for_a_checkpoint_without_one(tmp_path):
    config = config_of("roberta", hidden_size=64, initializer_range=0.02, num_labels=2)
    headed = AutoModelForSequenceClassification.from_config(config)
    for weights in headed.classifier.parameters():
        torch.nn.init.constant_(weights, 5.0)
    headed.save_pretrained(tmp_path)
    torch.manual_seed(1)
    head = TransformerClassifier(None, 2, checkpoint=str(tmp_path)).encoder.classifier
    for layer in (head.dense, head.out_proj):
        assert 0.01 < layer.weight.std() < 0.03 and layer.weight.requires_grad
        assert layer.bias.tolist() == [0.0] * len(layer.bias)


def test_placeholder_weights_are_like_drawn_ones():
    def layers():
        return torch.nn.Linear(300, 200), torch.nn.Embedding(3, 7)

    torch.manual_seed(0)
    with PlaceholderWeights():
        large, small = layers()
    torch.manual_seed(0)
    drawn, other = layers()
    # The bound of a linear layer's weights.
    assert 0.95 / 300**0.5 < large.weight.abs().max() <= 1 / 300**0.5
    assert abs(large.weight.std() / drawn.weight.std() - 1) < 0.05 and large.weight.requires_grad
    assert torch.linalg.matrix_rank(large.weight) > 1 and not torch.equal(large.weight, drawn.weight)
    assert small.weight.std() > 0.5 and other.weight.shape == small.weight.shape
    few = 2**14
    assert torch.equal(large.weight.flatten()[:few], large.weight.flatten()[few : 2 * few])


def test_no_epoch_leaves_the_checkpoint_as_it_is(classifier):
    folder, _ = classifier
    instances = example_instances(12, splits=("train", "dev", "test"))
    options = {"checkpoint": str(folder), "head": "own", "labels": ["bad", "good"]}
    training = Training(epochs=0, schedule="linear", optimiser="adamw")
    spec = BlockSpec(POINTER, options, {}, instances.by_split(), 2, training)
    weights, history, predictions = train_block(spec, [0, 4], 10_000)
    model = TransformerClassifier(None, 2, **options).eval()
    for name, tensor in model.state_dict().items():
        assert torch.equal(weights[f"0/{name}"], tensor) and torch.equal(weights[f"4/{name}"], tensor)
    assert history["metric"] == ["chosen_epoch"] * 2 and history["value"] == [0, 0]
    with torch.no_grad():
        probabilities = model(collate(instances.ids, instances.maskable)).logits.softmax(-1).numpy()
    np.testing.assert_allclose(np.array(predictions["probabilities"])[:12], probabilities, atol=1e-6)


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        ([], 2, r"has the outputs bad, none, good, but the dataset has 2 classes; name the output"),
        (["bad", "god"], 2, r"`labels` names 'god', which is not an output of .*did you mean 'good'\?"),
        ([0, 3], 2, r"`labels` names 3, which is not an output of"),
        ([0, 1], 3, r"the dataset has 3 classes"),
    ],
)
def test_outputs_that_do_not_fit_are_refused(classifier, labels, classes, message):
    with pytest.raises(PlumblineError, match=message):
        TransformerClassifier(None, classes, checkpoint=str(classifier[0]), head="own", labels=labels)


def test_a_checkpoint_with_one_output_for_two_classes_is_refused(tmp_path, tiny_bert):
    folder = shutil.copytree(tiny_bert, tmp_path / "regression")
    config = AutoConfig.from_pretrained(tiny_bert, num_labels=1)
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    message = r"has one output, but the dataset has 2 classes, and each needs an output; leave out `head: own`\.$"
    with pytest.raises(PlumblineError, match=message):
        TransformerClassifier(None, 2, checkpoint=str(folder), head="own")


def test_a_checkpoint_without_a_classification_head_has_none_to_keep(tiny_bert):
    with pytest.raises(PlumblineError, match=r"has no classification head; leave out `head: own`\."):
        TransformerClassifier(None, 2, checkpoint=str(tiny_bert), head="own")


# The config.


def study(entry: dict[str, Any], places=(), **changes: Any) -> Any:
    config = {"datasets": ["sst"], "models": {"my-bert": entry}, "measures": ["random", "gradient-norm"], **changes}
    return resolve(locate_files(config, list(places)))


def test_a_checkpoint_is_a_model_of_its_own(tiny_bert):
    resolved = study({"checkpoint": tiny_bert.name, "training": {"epochs": 2}}, [tiny_bert.parent])
    assert resolved.declarations["model", "my-bert"].name == "pretrained"
    assert tiny_bert.samefile(resolved.options["model", "my-bert"]["checkpoint"])
    assert resolved.trainings["sst", "my-bert"].learning_rate == 2e-5


def test_a_name_of_the_hub_is_left_to_the_job():
    for name in ("bert-base-uncased", "someone/their-bert"):
        assert study({"checkpoint": name}).options["model", "my-bert"]["checkpoint"] == name


def test_a_checkpoint_without_a_head_is_refused_before_any_job(tiny_bert, tmp_path):
    folder = str(tiny_bert)
    config = json.loads((tiny_bert / "config.json").read_text())
    assert not any(name.endswith("ForSequenceClassification") for name in config["architectures"])
    with pytest.raises(PlumblineError, match=r"checkpoint`: '.*' is a \w+, without a head; leave out `head: own`\."):
        study({"checkpoint": folder, "head": "own"})
    shutil.copytree(folder, tmp_path / "headed")
    config["architectures"] = ["BertForSequenceClassification"]
    (tmp_path / "headed/config.json").write_text(json.dumps(config))
    assert study({"checkpoint": str(tmp_path / "headed"), "head": "own"}).options["model", "my-bert"]["head"] == "own"


def damaged(tiny_bert, folder, change):
    shutil.copytree(tiny_bert, folder)
    change(folder)
    return {"checkpoint": str(folder)}


def with_config(text):
    return lambda folder: (folder / "config.json").write_text(text)


def without(*patterns):
    return lambda folder: [path.unlink() for pattern in patterns for path in folder.glob(pattern)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (shutil.rmtree, r"`models.my-bert.checkpoint`: there is no folder '"),
        (without("config.json"), r"has no config.json; save the model there with `save_pretrained`\."),
        (
            with_config(json.dumps({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]})),
            r"is a causal language model \(GPT2LMHeadModel\); write `kind: causal` with a `prompt` and `answers`\.",
        ),
        (with_config("{"), r"the config.json of '.*' is not the config of a model\."),
        (
            without("*token*", "vocab*"),
            r"has no tokenizer \(such as tokenizer.json\); save it there with `tokenizer.save",
        ),
        (without("model.safetensors"), r"has no weights \(such as model.safetensors\)"),
    ],
)
def test_folders_that_are_no_checkpoint_are_refused(tiny_bert, tmp_path, change, message):
    with pytest.raises(PlumblineError, match=message) as caught:
        study(damaged(tiny_bert, tmp_path / "a" / "checkpoint", change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"kind": "pretrained"}, r"`models.my-bert.checkpoint` is missing; model 'pretrained' needs it\."),
        ({"training": {"epochs": 0}}, r"`models.my-bert.training.epochs` is 0: it must be 1 or more, unless"),
        ({"labels": ["a", "b"]}, r"`models.my-bert.labels` names outputs of the checkpoint; set `head: own`"),
        ({"head": "mine"}, r"`models.my-bert.head` is 'mine'"),
        ({"chekpoint": "x"}, r"There is no model 'my-bert'"),
    ],
)
def test_faults_of_the_config_are_reported_before_any_work(tiny_bert, entry, message):
    given = entry if {"kind", "chekpoint"} & {*entry} else {"checkpoint": str(tiny_bert), **entry}
    with pytest.raises(PlumblineError, match=message):
        study(given)


def test_a_model_that_is_not_trained_is_not_retrained(classifier):
    entry = {"checkpoint": str(classifier[0]), "head": "own", "training": {"epochs": 0}}
    resolved = study(entry, roar={"relative": {"levels": [10]}})
    with pytest.raises(PlumblineError, match=r"`roar.relative` retrains models, but model 'my-bert' is not trained"):
        list_runs(resolved)
