"""Models that a study has trained, by their files: a BiLSTM of texts and of pairs, a BERT and a language model."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import plumbline
from plumbline.data.schemas import VOCABULARY
from plumbline.data.vocabulary import SPECIALS
from plumbline.errors import PlumblineError
from plumbline.models.batch import collate
from plumbline.models.block import build_model
from plumbline.registry import Registry
from plumbline.store import write_json, write_table, write_tensors

from ..models.test_causal import folder_of  # noqa: F401

WORDS = [*SPECIALS, "the", "film", "good", "bad", "was"]
TEXTS = ["the film was good", "bad film", "the unheard film was bad"]
# Ids of these texts: 1 is unknown, 2 and 3 surround a text.
IDS = [[2, 5, 6, 9, 7, 3], [2, 8, 6, 3], [2, 5, 1, 6, 9, 8, 3]]
CLASSES = {"sst": ["negative", "positive"], "stories": ["kitchen", "garden", "office"]}
BLOCKS = {"0-1": [0, 1], "5": [5]}
PROMPT = "Review: {text}\nSentiment:"
REGISTRY = Registry()


def write_weights(results, dataset, name, kind, options, embedding, pair=None):
    """Write random weights of each seed, and return the models."""
    models = {}
    for block, seeds in BLOCKS.items():
        tensors = {}
        for seed in seeds:
            torch.manual_seed(seed)
            declaration = REGISTRY.get("model", kind)
            vectors = None if embedding is None else torch.randn(len(WORDS), embedding)
            model = build_model(
                declaration.pointer, declaration.defaults | options, vectors, len(CLASSES[dataset]), pair
            )
            if embedding is None:
                # As if fine-tuning had changed them.
                for parameter in model.parameters():
                    parameter.data += 0.1 * torch.randn_like(parameter)
            tensors |= {f"{seed}/{key}": value.clone() for key, value in model.state_dict().items()}
            models[seed] = model.eval()
        write_tensors(results / f"models/{dataset}/plain/{name}/{block}/weights.safetensors", tensors)
    return models


@pytest.fixture(scope="module")
def study(tmp_path_factory, tiny_bert, folder_of):  # noqa: F811
    """The folder of a study's results with nothing but records, vocabularies and weights, and the models."""
    results = tmp_path_factory.mktemp("study") / "results"
    (results / "tables").mkdir(parents=True)
    causal = {"checkpoint": folder_of("llama"), "prompt": PROMPT, "answers": [" bad", " good"]}
    models = {
        "bilstm-tanh": {"hidden": 4},
        "cnn-tanh": {"datasets": ["sst"]},
        "my-bert": {"checkpoint": str(tiny_bert), "datasets": ["sst"]},
        "language": {"kind": "causal", **causal, "datasets": ["sst"], "training": {"epochs": 1}},
        "given": {"kind": "bilstm-tanh", "attention_of": "bilstm-tanh"},
    }
    config = {
        "name": "trained",
        "datasets": {"sst": {}, "stories": {}, "birds": {}},
        "models": {**models, "resnet-small": {}},
        "seeds": [*BLOCKS],
        "measures": ["random", "gradient"],
        "protocols": ["agreement"],
    }
    write_json(results / "manifest.json", {"study": config})
    for dataset, classes in CLASSES.items():
        record = {"dataset": dataset, "classes": classes, "splits": {}, "dropped": {}, "partial": {}}
        write_json(results / f"data/{dataset}/dataset.json", record)
        table = {"id": [*range(len(WORDS))], "word": WORDS, "document_frequency": [0] * 5 + [3] * 5}
        write_table(results / f"data/{dataset}/vocabulary.parquet", VOCABULARY, table)
    pair = torch.randn(len(WORDS), 6)
    return results, {
        "bilstm": write_weights(results, "sst", "bilstm-tanh", "bilstm-tanh", {"hidden": 4}, 6),
        "paired": write_weights(results, "stories", "bilstm-tanh", "bilstm-tanh", {"hidden": 4}, 6, pair),
        "bert": write_weights(results, "sst", "my-bert", "pretrained", {"checkpoint": str(tiny_bert)}, None),
        "language": write_weights(results, "sst", "language", "causal", causal, None),
    }


@pytest.fixture(scope="module")
def results(study):
    return plumbline.load(study[0])


def probabilities(model, ids, pair=None):
    """The probabilities of one text."""
    free = np.array([False, *[True] * (len(ids) - 2), False])
    pairs = {} if pair is None else {"pair": [np.array(pair)]}
    with torch.no_grad():
        return model(collate([np.array(ids)], [free], **pairs)).logits[0].softmax(-1).numpy()


def test_a_bilstm_reads_the_words_of_its_study(study, results):
    trained = results.model()
    assert (trained.dataset, trained.model, trained.variant) == ("sst", "bilstm-tanh", "plain")
    assert trained.seeds == [0, 1, 5] and trained.classes == CLASSES["sst"] and "seeds=[0, 1, 5]" in repr(trained)
    found = plumbline.evaluate(
        trained,
        texts=TEXTS,
        labels=["positive", "negative", 0],
        measures=["attention", "leave-one-out"],
        importances={"lengths": [[len(word) for word in text.split()] for text in TEXTS]},
        protocols={
            "agreement": {},
            "seed_variance": {},
            "permutation": {"permutations": 3},
            "adversarial_attention": {"steps": 3},
        },
        progress=False,
    )
    assert found.instances["tokens"].tolist() == [text.split() for text in TEXTS], "an unknown word is shown"
    for (seed, instance), row in found.predictions.set_index(["seed", "instance"]).iterrows():
        expected = probabilities(study[1]["bilstm"][seed], IDS[instance])
        np.testing.assert_allclose(row["probabilities"], expected, atol=1e-6)
        assert row["predicted"] == trained.classes[expected.argmax()]
    left_out = found.importances.query("measure == 'leave-one-out'")
    assert left_out["seed"].tolist() == [0] * 3 + [1] * 3 + [5] * 3
    for row in left_out.itertuples():
        ids, model = IDS[row.instance], study[1]["bilstm"][row.seed]
        whole = probabilities(model, ids)
        changes = [abs(whole - probabilities(model, ids[:i] + ids[i + 1 :])).sum() for i in range(1, len(ids) - 1)]
        np.testing.assert_allclose(row.scores, changes, atol=1e-6)
    attention = found.importances.query("measure == 'attention'")["scores"]
    assert [row.sum() for row in attention] == pytest.approx([1] * 9)
    assert found.importances.query("measure == 'lengths'")["scores"].iloc[1].tolist() == [3, 4]
    assert {"agreement", "seed_variance", "scorecard"} <= {*found.tables}
    assert found.table("agreement")["seed"].unique().tolist() == [0, 1, 5]


def test_seeds_are_chosen_among_the_stored_ones(study, results):
    found = plumbline.explain(results.model(), texts=TEXTS, measures=["random"], seeds=[5], progress=False)
    expected = [probabilities(study[1]["bilstm"][5], ids) for ids in IDS]
    np.testing.assert_allclose(np.stack(found.predictions["probabilities"]), expected, atol=1e-6)
    labels = [CLASSES["sst"][row.argmax()] for row in expected]
    assert found.instances["label"].tolist() == labels, "without labels, the predicted classes are stored"
    with pytest.raises(
        PlumblineError, match=(r"`seeds` contains 3, but model .* was trained on .* with the seeds 0, 1, 5")
    ):
        plumbline.explain(results.model(), texts=TEXTS, seeds=3, progress=False)


def test_pairs(study, results):
    trained = results.model("stories")
    pairs = [(text, "was the film") for text in TEXTS]
    found = plumbline.explain(trained, texts=pairs, measures=["attention"], seeds=1, progress=False)
    expected = [probabilities(study[1]["paired"][1], ids, [2, 9, 5, 6, 3]) for ids in IDS]
    np.testing.assert_allclose(np.stack(found.predictions["probabilities"]), expected, atol=1e-6)
    with pytest.raises(PlumblineError, match="`texts` must be pairs, as for question answering"):
        plumbline.explain(trained, texts=TEXTS, progress=False)
    with pytest.raises(PlumblineError, match="`texts` must be single texts, as for classification"):
        plumbline.explain(results.model(), texts=pairs, progress=False)


def test_transformers_read_subwords_with_their_stored_weights(study, results, tiny_bert):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    found = plumbline.explain(
        results.model(model="my-bert"), texts=TEXTS, measures=["rollout"], seeds=[0, 5], progress=False
    )
    rows = found.predictions.set_index(["seed", "instance"])["probabilities"]
    for seed in (0, 5):
        for i, text in enumerate(TEXTS):
            expected = probabilities(study[1]["bert"][seed], tokenizer(text)["input_ids"])
            np.testing.assert_allclose(rows[seed, i], expected, atol=1e-6)
    assert not np.allclose(rows[0, 0], rows[5, 0])
    prompted = plumbline.explain(
        results.model(model="language"), texts=TEXTS, measures=["random"], seeds=1, progress=False
    )
    model = study[1]["language"][1]
    tokenizer = AutoTokenizer.from_pretrained(results.model(model="language").entry()["checkpoint"])
    for text, row in zip(TEXTS, prompted.predictions["probabilities"], strict=True):
        ids = tokenizer(PROMPT.format(text=text))["input_ids"]
        with torch.no_grad():
            np.testing.assert_allclose(row, model(collate([np.array(ids)], None)).logits[0].softmax(-1), atol=1e-5)


def test_what_is_not_there_is_refused(results, tmp_path):
    for arguments, message in [
        ({"dataset": "sst-2"}, "no dataset 'sst-2'; did you mean 'sst'"),
        ({"model": "bilstm-tan"}, "no model 'bilstm-tan'; did you mean 'bilstm-tanh'"),
        (
            {"dataset": "stories", "model": "my-bert"},
            "no model 'my-bert' of 'stories'; choose from: bilstm-tanh, given",
        ),
        ({"variant": "plane"}, "no variant 'plane'; did you mean 'plain'"),
        ({"dataset": "birds"}, "consists of images, so its models cannot explain texts"),
        ({"model": "given"}, "reads the attention of 'bilstm-tanh'"),
        ({"model": "cnn-tanh"}, "no weights of model 'cnn-tanh' on 'sst' .* run the study again"),
    ]:
        with pytest.raises(PlumblineError, match=message):
            results.model(**arguments)
    trained = results.model()
    for arguments, message in [
        ({"tokenizer": TEXTS}, "`tokenizer` is given, but a model that a study has trained reads texts as the study"),
        ({"texts": TEXTS, "prompt": "{text}"}, "`prompt` is given"),
        ({"texts": TEXTS, "labels": [0, 1, 2]}, "is 2, but the model has 2 classes"),
        ({"texts": TEXTS, "labels": [0, 1, 0], "protocols": ["roar"]}, "set `roar` in the config of the study that"),
        (
            {"texts": TEXTS, "labels": [0, 1, 0], "protocols": ["masked_erasure"]},
            "trained with masked words and its dev texts",
        ),
        (
            {"texts": TEXTS, "labels": [0, 1, 0], "importances": {"mine": [[1], [1, 2], [1]]}},
            r"has the shape \[1\]; text 0 has 4 words: give one number for each",
        ),
    ]:
        with pytest.raises(PlumblineError, match=message):
            plumbline.evaluate(trained, **arguments, progress=False)
    found = plumbline.explain(trained, texts=TEXTS, measures=["random"], progress=False)
    with pytest.raises(PlumblineError, match="trained by a study, which already has a config"):
        found.to_config(tmp_path / "my.yaml")


def test_blocks_whose_weights_were_deleted_are_left_out(study, tmp_path):
    copy = Path(shutil.copytree(study[0], tmp_path / "results"))
    weights = copy / "models/sst/plain/bilstm-tanh"
    (weights / "0-1/weights.safetensors").unlink()
    assert plumbline.load(copy).model().seeds == [5]
    (weights / "5/weights.safetensors").unlink()
    with pytest.raises(PlumblineError, match="There are no weights of model 'bilstm-tanh'"):
        plumbline.load(copy).model()
    assert json.loads((copy / "manifest.json").read_text())["study"]["seeds"] == ["0-1", "5"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("model", ["bilstm-tanh", "my-bert", "language"])
def test_the_gpu_gives_what_the_cpu_gives(results, model):
    measures = ["gradient-attached", "leave-one-out", "integrated-gradient-pad"]
    cpu, gpu = (
        plumbline.evaluate(
            results.model(model=model),
            texts=TEXTS,
            labels=[1, 0, 0],
            measures=measures,
            protocols={"erasure": {"ratios": [50], "draws": 0, "longest": 0}},
            device=device,
            progress=False,
        )
        for device in ("cpu", "cuda")
    )
    for one, other in zip(cpu.importances["scores"], gpu.importances["scores"], strict=True):
        # Gradients of transformers have 11 significant bits on a GPU: a small score differs by the size of a large one.
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=5e-5)
    for one, other in zip(cpu.predictions["probabilities"], gpu.predictions["probabilities"], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
