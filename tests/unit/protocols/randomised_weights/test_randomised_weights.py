"""Randomised weights: layers of every model, their randomisation, and measures that do or do not depend on them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from plumbline import store
from plumbline.conformance import example_model
from plumbline.conformance.examples import example_explained, needs_pairs
from plumbline.errors import PlumblineError
from plumbline.figures import style
from plumbline.protocols.agreement.by_text import correlate_texts
from plumbline.protocols.criteria import Measures
from plumbline.protocols.randomised_weights.criteria import randomised_weights, weight_dependence
from plumbline.protocols.randomised_weights.figures import randomised_weights as draw
from plumbline.protocols.randomised_weights.layers import layer_groups, randomised
from plumbline.protocols.randomised_weights.page import randomised_weights_overview
from plumbline.protocols.randomised_weights.schemas import RANDOMISED_WEIGHTS, RANDOMISED_WEIGHTS_SCORES
from plumbline.protocols.randomised_weights.score import RandomisedWeights
from plumbline.tables.export import latex
from tests.unit.protocols.cells import REGISTRY, make_cell, params, table_of

LAYERS = {
    "bag-of-words": ["head", "embedding"],
    "bilstm-tanh": ["head", "attention", "encoder", "embedding"],
    "bilstm-heads": ["head", "attention", "encoder", "embedding"],
    "transformer-tanh": [
        "head",
        "attention",
        "encoder.norm",
        "encoder.layers.1",
        "encoder.layers.0",
        "encoder.linear",
        "embedding",
    ],
    "roberta": [
        "encoder.classifier",
        "encoder.roberta.encoder.layer.1",
        "encoder.roberta.encoder.layer.0",
        "encoder.roberta.embeddings",
        "embedding",
    ],
    "resnet-small": ["linear", *(f"blocks.{i}" for i in (3, 2, 1, 0)), "stem"],
    "rationale-rl": ["output", "encoder", "generator", "embedding"],
}


@pytest.mark.parametrize("name", REGISTRY.names("model"))
def test_layers_cover_all_learned_parameters_once_and_end_with_the_word_vectors(name):
    declaration = REGISTRY.get("model", name)
    model = example_model(declaration, paired=needs_pairs(declaration))
    groups = layer_groups(model)
    names = [parameter for group in groups.values() for parameter in group]
    constant = ["embedding.weight"] if declaration.reads == "pixels" else []
    assert sorted([*names, *constant]) == sorted(parameter for parameter, _ in model.named_parameters())
    assert constant or list(groups)[-1] == "embedding"
    assert list(groups) == LAYERS.get(name, list(groups))


def test_layers_of_second_texts_are_those_of_the_first():
    groups = layer_groups(example_model(REGISTRY.get("model", "transformer-tanh"), paired=True))
    assert list(groups) == LAYERS["transformer-tanh"]
    assert groups["embedding"] == ["embedding.weight", "pair_embedding.weight"]
    assert any(name.startswith("pair_encoder.layers.1.") for name in groups["encoder.layers.1"])


def test_randomised_weights_keep_their_scale_and_padding_and_are_restored():
    model = example_model(REGISTRY.get("model", "roberta"))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    names = [name for name, _ in model.named_parameters()]
    padding = model.embedding.padding_idx
    with pytest.raises(RuntimeError, match="inside"), randomised(model, names, 3):
        drawn = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        raise RuntimeError("inside")
    with randomised(model, names[::-1], 3):
        assert all(torch.equal(drawn[name], tensor) for name, tensor in model.state_dict().items())
    with randomised(model, ["embedding.weight"], 4):
        assert not torch.equal(drawn["embedding.weight"], model.embedding.weight)
        assert torch.equal(before[names[-1]], model.state_dict()[names[-1]])
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert torch.equal(drawn["embedding.weight"][padding], before["embedding.weight"][padding])
    changed = [name for name in names if not torch.equal(drawn[name], before[name])]
    # Biases and norms of an untrained model are constant, so they have nothing to draw from.
    assert set(changed) == {name for name in names if before[name].std(correction=0) > 0}
    for name in ("embedding.weight", "encoder.roberta.encoder.layer.0.output.dense.weight"):
        assert drawn[name].std().item() == pytest.approx(before[name].std().item(), rel=0.15)
        assert abs(np.corrcoef(drawn[name].flatten(), before[name].flatten())[0, 1]) < 0.2


def test_measures_that_ignore_the_model_score_0_and_others_depend_on_it():
    measures = {name: params(name) for name in ("attention", "gradient", "mutual-information", "random")}
    cell = make_cell(measures, imported=["theirs"])
    state = {name: tensor.clone() for name, tensor in cell.models()[0].model.state_dict().items()}
    rows = table_of(RandomisedWeights(texts=30), cell)
    assert all(torch.equal(state[name], tensor) for name, tensor in cell.models()[0].model.state_dict().items())
    values = randomised_weights(rows, Measures({}, "random", {})).set_index("measure")["value"]
    assert values[["mutual-information", "random", "theirs"]].tolist() == pytest.approx([0, 0, 0])
    assert values["gradient"] > 0.5
    cascading = rows[rows["mode"] == "cascading"].set_index(["measure", "depth"])
    assert abs(cascading.loc[("gradient", 4), "kendall"]) < 0.15
    assert abs(cascading.loc[("attention", 4), "kendall"]) < 0.15
    # Attention does not read the output layer.
    assert cascading.loc[("attention", 1), "kendall"] == pytest.approx(1)
    assert cascading.loc[("attention", 2), "kendall"] < 0.5
    assert cascading.loc[("gradient", 4), "n"] + cascading.loc[("gradient", 4), "dropped"] == 60


def test_the_first_stage_is_the_same_in_both_modes_and_results_do_not_vary():
    measures = {"gradient": params("gradient"), "lime": params("lime", samples=20)}
    first, again = (table_of(RandomisedWeights(), make_cell(measures, 12, seeds=(0, 1))) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    modes = [first[(first["mode"] == mode) & (first["depth"] == 1)]["kendall"] for mode in ("cascading", "independent")]
    assert modes[0].tolist() == modes[1].tolist()
    assert set(first["stage"]) == set(LAYERS["bilstm-tanh"]) and set(first["seed"]) == {0, 1}
    independent = table_of(RandomisedWeights(stages=["independent"]), make_cell(measures, 12, seeds=(0, 1)))
    pd.testing.assert_frame_equal(independent, first[first["mode"] == "independent"].reset_index(drop=True))


def test_the_explained_class_is_that_of_the_trained_model():
    taus = []
    for target in ("predicted", 0):
        measure = params("grad-x-diff", target=target, sign="signed", function="logit")
        cell = make_cell({"signed": measure}, count=24)
        taus.append(RandomisedWeights(stages=["cascading"]).score(cell)["kendall"])
    (evaluator,) = cell.models()
    # The logits of two classes are opposite, so a change of the explained class would change the sign of τ.
    np.testing.assert_allclose(*taus)
    names = [name for name, _ in evaluator.model.named_parameters()]
    before = evaluator.probabilities(cell.instances()).argmax(1)
    with randomised(evaluator.model, names, evaluator.seed):
        assert (evaluator.probabilities(cell.instances()).argmax(1) != before).any()


def test_correlations_of_texts_by_hand():
    first = [np.array([1.0, 2, 3]), np.array([1.0, 2]), np.array([5.0]), np.array([1.0, 2]), np.array([1.0, np.nan])]
    second = [np.array([1.0, 3, 2]), np.array([2.0, 1]), np.array([5.0]), np.array([1.0, 1]), np.array([1.0, 2])]
    found = correlate_texts(first, second)
    np.testing.assert_allclose(found.kendall[:2], [1 / 3, -1])
    np.testing.assert_allclose(found.spearman[:2], [0.5, -1])
    assert found.columns()["status"].tolist() == ["ok", "ok", "dropped", "dropped", "dropped"]
    reasons = ["fewer than two words", "constant importances", "importances are not finite"]
    assert found.reason[2:].tolist() == reasons


def test_dependence_by_hand():
    assert weight_dependence(pd.Series([1.0, -0.5, 0.0])) == pytest.approx(0.5)


def test_no_stage_is_refused():
    with pytest.raises(PlumblineError, match="`stages` is empty"):
        RandomisedWeights(stages=[])


def test_tables_figure_page_and_latex(tmp_path: Path):
    protocol = RandomisedWeights(texts=10)
    store.write_table(tmp_path / "s.parquet", RANDOMISED_WEIGHTS_SCORES, protocol.score(example_explained(tmp_path)))
    summary = protocol.summarise(store.read_table(tmp_path / "s.parquet", RANDOMISED_WEIGHTS_SCORES))
    cell = {"dataset": "d", "variant": "plain", "model": "average-tanh"}
    store.write_table(tmp_path / "t.parquet", RANDOMISED_WEIGHTS, summary.assign(**cell).to_dict("list"))
    rows = store.read_table(tmp_path / "t.parquet", RANDOMISED_WEIGHTS).to_pandas()
    overview = randomised_weights_overview(rows)
    by_measure = {row[2].text: [cell.text for cell in row] for row in overview.rows}
    assert by_measure["selection"][3:8] == ["head", "1.000 ± 0.000", "embedding", "1.000 ± 0.000", "0.000 ± 0.000"]
    figure = draw(rows, "d, m", "random")
    style.save(figure, tmp_path / "f.png")
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == ["trained", "head", "attention", "encoder", "embedding"]
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[0].get_lines()}
    assert lines["attention"][0] == 1 and np.allclose(lines["selection"], 1)
    text = latex(RANDOMISED_WEIGHTS, rows)
    assert text.index("head") < text.index("encoder") < text.index("embedding") and "1.00" in text


def test_a_tied_output_layer_is_randomised_with_the_word_vectors():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.layers, self.head = (
                nn.Embedding(5, 3),
                nn.ModuleList([nn.Linear(3, 3)]),
                nn.Linear(3, 5),
            )
            self.head.weight = self.embedding.weight

    groups = layer_groups(Tied())
    assert groups == {
        "head": ["head.bias"],
        "layers.0": ["layers.0.weight", "layers.0.bias"],
        "embedding": ["embedding.weight"],
    }
