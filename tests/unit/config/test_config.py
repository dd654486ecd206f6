import re
from pathlib import Path

import pytest

from plumbline.cli import main
from plumbline.config.annotations import annotate, generated_files
from plumbline.config.names import RESERVED, check_name
from plumbline.config.recipes import Training
from plumbline.config.resolve import read_config, resolve
from plumbline.config.runs import list_runs, scorecard_gaps
from plumbline.config.seeds import cut_block, parse_seeds
from plumbline.errors import PlumblineError
from plumbline.registry import KINDS, Registry

PROJECT = Path(__file__).parents[3]


def study(**changes):
    config = {
        "datasets": {"movie": {}},
        "models": {"bilstm-tanh": {}},
        "measures": ["attention", "gradient"],
        "protocols": ["agreement"],
    }
    return {**config, **changes}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"dataset": {}}, r"`dataset` \(set to {}\) is not a known key; did you mean 'datasets'\?"),
        ({"datasets": {"moive": {}}}, r"`datasets.moive`: There is no dataset 'moive'; did you mean 'movie'\?"),
        ({"seeds": ["0-2", "2"]}, r"`seeds` is \['0-2', '2'\]: seed 2 occurs twice"),
        ({"seeds": ["3-1"]}, "'3-1' is not a block of seeds"),
        ({"seeds": 3}, r"`seeds` is 3: 3 is one seed; write '0-2' for 3 seeds, or \['3'\] for this one\."),
        (
            {"compute": {"jobs": {"moive": {}}}},
            r"`compute.jobs` names 'moive', which is not a dataset of the study; did you mean 'movie'\?",
        ),
        ({"compute": {"jobs": {"movie": {"seeds": 0}}}}, "`compute.jobs.movie.seeds` is 0"),
        (
            {"compute": {"jobs": {"movie": {"parts": 2}}}},
            r"`compute.jobs.movie.parts` \(set to 2\) is not a known key; choose from: attribution_parts",
        ),
        (
            {"models": {"bilstm-tanh": {"hiden": 3}}},
            r"`models.bilstm-tanh.hiden` \(set to 3\).*did you mean 'hidden'\?",
        ),
        ({"models": {"bilstm-tanh": {"hidden": "big"}}}, "`models.bilstm-tanh.hidden` is 'big'"),
        (
            {"models": {"bilstm-tanh": {"encoder": "lstm"}}},
            r"`models.bilstm-tanh.encoder` is 'lstm'; did you mean 'bilstm'\?",
        ),
        ({"models": {"bilstm-tanh": {"training": {"epoch": 3}}}}, r"training.epoch` .*did you mean 'epochs'\?"),
        (
            {"models": {"bilstm-tanh": {"training": {"epochs": 0}}}},
            r"training.epochs` is 0: it must be 1 or more",
        ),
        (
            {"datasets": {"movie": {"preparation": {"embedding": {"dim": 3}}}}},
            r"embedding.dim` .*did you mean 'dimensions'",
        ),
        (
            {"models": {"bilstm-tanh": {"training": {"epochs": 1}}}},
            r"training` .*`first_eligible_epoch` is 2, but `epochs` is 1; lower `first_eligible_epoch`\.",
        ),
        ({"models": {"bow": {"kind": "bag-of-word"}}}, r"`models.bow.kind`: .*did you mean 'bag-of-words'\?"),
        ({"models": {"b/d": {"kind": "bag-of-words"}}}, "a name may contain only letters"),
        ({"explain": ["tset"]}, r"`explain.0` is 'tset'; did you mean 'test'\?"),
        (
            {"protocols": {"agreement": {"statistics": ["kendal"]}}},
            r"statistics.0` is 'kendal'; did you mean 'kendall'\?",
        ),
        (
            {"measures": {"gradient": {"target": "golden"}}},
            "`measures.gradient.target` is 'golden'; did you mean",
        ),
        (
            {"protocols": {"erasure": {"beam": 0}}},
            r"beam` is 0; it must be 1 or more\. `beam`: Width of the search .* more exact\.$",
        ),
        (
            {"protocols": {"erasure": {"draws": "many"}}},
            r"draws` is 'many': it must be a whole number\. `draws`: Random draws per text of the soft metrics; ",
        ),
        ({"protocols": {"erasure": {"bean": 5}}}, r"`protocols.erasure.bean` .*did you mean 'beam'\?$"),
        ({"models": {"bilstm-tanh": {"training": {"precision": "float16"}}}}, "Choose from: tf32, float32, bfloat16."),
        ({"compute": {"slots_per_gpu": "auto"}}, "`compute.slots_per_gpu` is 'auto': it must be a whole number."),
        ({"compute": []}, r"`compute` is \[\]: it must be keys and values."),
        (
            {"models": {"bilstm-tanh": {"measures": ["gradeint"]}}},
            r"names 'gradeint', which is not defined in the study; did you mean 'gradient'\?",
        ),
        (
            {"adversaries": ["atefa"]},
            r"^`adversaries.atefa` has no `objective`, and its name 'atefa' is not one either; set `objective`: did "
            r"you mean 'attefa'\?$",
        ),
        (
            {"adversaries": {"attefa": {"of": ["bilstm"]}}},
            r"`adversaries.attefa.of` names 'bilstm', which is not defined in the study; did you mean",
        ),
        (
            {"adversaries": {"attefa": {"datasets": ["sst"]}}},
            r"`adversaries.attefa.datasets` names 'sst', which is not defined in the study; choose from: movie\.",
        ),
        (
            {"adversaries": {"attefa": {"base_seed": 3}}, "seeds": ["0-1", "7"]},
            r"^`adversaries.attefa.base_seed` is 3; choose one of the base model's seeds \(0-1, 7\)\.$",
        ),
        (
            {"adversaries": {"attefa": {"strength": [0.1]}}},
            "`adversaries.attefa.strength`: the objective 'attefa' has no strength; remove it.",
        ),
        (
            {"adversaries": {"wiegreffe-pinter": {"strength": [-1]}}},
            r"`adversaries.wiegreffe-pinter.strength` is \[-1\]: it must contain different numbers, each 0 or more",
        ),
        ({"adversaries": {"attefa": {"of": []}}}, "`adversaries.attefa.of` is \\[\\]: it must not be empty"),
        (
            {"adversaries": {"mine": {"objective": "atefa"}}},
            r"`adversaries.mine.objective` is 'atefa', which does not exist; did you mean 'attefa'\?",
        ),
        (
            {"adversaries": {"attefa": {"training": {"select_by": "roc_auc"}}}},
            "`adversaries.attefa.training.select_by` is 'roc_auc'; adversaries select by loss, so omit it.",
        ),
        ({"adversaries": {"attefa": {"seed": [1]}}}, r"`adversaries.attefa.seed` .*did you mean 'seeds'\?"),
        (
            {"adversaries": {"attefa": {"training": {"epoch": 3}}}},
            r"`adversaries.attefa.training.epoch` .*did you mean 'epochs'\?",
        ),
        (
            {"adversaries": {"attefa": {"of": ["bow"]}}, "models": {"bow": {"kind": "bag-of-words"}}},
            "`adversaries.attefa.of`: model 'bow' provides no attention; remove it from the list.",
        ),
        (
            {"models": ["bilstm-tanh", "average-uniform"], "adversaries": {"attefa": {"of": ["average-uniform"]}}},
            "`adversaries.attefa.of`: the attention of model 'average-uniform' is uniform and not trained",
        ),
        (
            {"adversaries": ["attefa"], "models": {"bilstm-tanh": {}, "bilstm-tanh.attefa": {"kind": "cnn-tanh"}}},
            "`adversaries.attefa`: two models are named 'bilstm-tanh.attefa'; rename one.",
        ),
        (
            {"adversaries": {"wiegreffe-pinter": {}, "wiegreffe-pinter.0.1": {"objective": "attefa"}}},
            "`adversaries.wiegreffe-pinter.0.1`: two models are named 'bilstm-tanh.wiegreffe-pinter.0.1'; rename one.",
        ),
        (
            {"models": {"bilstm-tanh": {}, "given": {"kind": "cnn-tanh", "attention_of": "bilstm-than"}}},
            r"`models.given.attention_of` names 'bilstm-than', which is not a model of the study; did you mean "
            r"'bilstm-tanh'\?",
        ),
        (
            {"models": {"bilstm-tanh": {"attention_of": "bilstm-tanh"}}},
            "`models.bilstm-tanh.attention_of` names 'bilstm-tanh'; a model cannot take its attention from itself.",
        ),
        (
            {"models": {"bag-of-words": {}, "cnn-tanh": {"attention_of": "bag-of-words"}}},
            "`models.cnn-tanh.attention_of`: model 'bag-of-words' does not provide single-head attention; choose "
            "another model.",
        ),
        (
            {"models": {"cnn-tanh": {}, "bilstm-heads": {"attention_of": "cnn-tanh"}}},
            "`models.bilstm-heads.attention_of`: model 'bilstm-heads' does not provide single-head attention; choose "
            "another model.",
        ),
        (
            {
                "models": {
                    "a": {"kind": "cnn-tanh", "attention_of": "b"},
                    "b": {"kind": "cnn-tanh", "attention_of": "a"},
                }
            },
            "`models.a.attention_of`: model 'b' takes its attention from another model; name that other model instead.",
        ),
        (
            {"protocols": {"adversary": {"kind": "agreement"}}},
            "`protocols.adversary`: 'adversary' is reserved; choose another.",
        ),
    ],
)
def test_error_is_one_sentence_with_key_value_and_hint(changes, sentence):
    with pytest.raises(PlumblineError, match=sentence) as caught:
        resolve(study(**changes))
    assert "\n" not in str(caught.value)


def test_missing_key():
    with pytest.raises(PlumblineError, match="`datasets` is missing"):
        resolve({"models": {}, "measures": {}})


def test_a_protocol_scores_the_datasets_that_it_names():
    changes = {"datasets": ["movie", "mock-1"], "models": ["average-tanh", "bilstm-tanh"]}
    protocols = {"agreement": {}, "permutation": {"datasets": ["mock-1"]}}
    scored = list_runs(resolve(study(**changes, protocols=protocols))).scored
    assert {(cell.dataset, cell.model) for cell in scored["permutation"]} == {
        ("mock-1", "average-tanh"),
        ("mock-1", "bilstm-tanh"),
    }
    assert len(scored["agreement"]) == 2 * len(scored["permutation"])
    with pytest.raises(
        PlumblineError,
        match=(
            r"`protocols\.agreement\.datasets` names 'movi', which is not defined in the study; did you mean 'movie'"
        ),
    ):
        resolve(study(protocols={"agreement": {"datasets": ["movi"]}}))
    with pytest.raises(PlumblineError, match=r"trained on a manipulated dataset of `datasets` \(movie\)"):
        list_runs(resolve(study(**changes, protocols={"ground_truth": {"datasets": ["movie"]}})))


def test_runs_list_reasons_for_excluded_pairs():
    runs = list_runs(resolve(study(models=["bilstm-tanh", "bag-of-words"], seeds=["0-1", "7"])))
    assert [(c.model, c.seeds) for c in runs.cells] == [
        ("bag-of-words", "0-1"), ("bag-of-words", "7"), ("bilstm-tanh", "0-1"), ("bilstm-tanh", "7"),
    ]  # fmt: skip
    assert runs.measures == {"bilstm-tanh": ["attention", "gradient"], "bag-of-words": []}
    assert runs.excluded[0].reason == "measure 'attention' needs attention, which model 'bag-of-words' does not provide"


def test_one_of_several_needs_may_be_enough():
    models = ["bilstm-tanh", "bilstm-heads", "bag-of-words"]
    runs = list_runs(resolve(study(models=models, seeds=["0-1"], protocols=["seed_variance"])))
    assert [cell.model for cell in runs.scored["seed_variance"]] == ["bilstm-heads", "bilstm-tanh"]
    reason = "protocol 'seed_variance' needs either attention or heads, which model 'bag-of-words' does not provide"
    assert reason in [line.reason for line in runs.excluded]


def test_measure_that_no_model_supports_is_refused():
    with pytest.raises(PlumblineError, match=r"`measures\.attention` cannot explain any model of this study"):
        list_runs(resolve(study(models=["bag-of-words"])))


def test_measure_that_a_model_lists_but_does_not_support_is_refused():
    models = {"bilstm-tanh": {}, "bag-of-words": {"measures": ["attention"]}}
    with pytest.raises(PlumblineError, match=r"`models\.bag-of-words\.measures`: measure 'attention' needs attention"):
        list_runs(resolve(study(models=models)))


def test_an_option_may_add_a_need():
    measures = {"gradient-attached": {}, "held": {"kind": "gradient-attached", "attention": "detached"}}
    runs = list_runs(resolve(study(models=["bilstm-tanh", "bag-of-words"], measures=measures)))
    assert runs.measures == {"bilstm-tanh": ["gradient-attached", "held"], "bag-of-words": ["gradient-attached"]}


def test_protocol_needs_enough_measures():
    with pytest.raises(
        PlumblineError, match=r"protocol .agreement. compares at least 2 measures, but model .bilstm-tanh. has 1"
    ):
        list_runs(resolve(study(measures=["attention"])))
    runs = list_runs(resolve(study(models=["bilstm-tanh", "bag-of-words"])))
    assert [cell.model for cell in runs.scored["agreement"]] == ["bilstm-tanh"]


def test_too_few_measures_for_the_scorecard_are_named():
    def gaps(**changes):
        resolved = resolve(study(**changes))
        return scorecard_gaps(resolved, list_runs(resolved))

    assert gaps() == []
    # The random measure may have another name, and degraded measures do not count.
    measures = {"noise": {"kind": "random"}, "attention": {}, "worse": {"kind": "degraded", "of": "attention"}}
    measures["worse"]["share"] = [0.5, 1]
    models = ["bilstm-tanh", "average-tanh", "bag-of-words"]
    agreement, erasure = gaps(measures=measures, models=models, protocols=["agreement", "erasure"])
    # bag-of-words has the random measure alone, for which agreement leaves it out.
    assert erasure.startswith("`protocols.erasure` adds no score of model 'bag-of-words' to the scorecard: it needs 1")
    assert agreement == (
        "`protocols.agreement` adds no score of models 'bilstm-tanh', 'average-tanh' to the scorecard: it needs 2 "
        "measures or more besides random, but there is 1; add a measure, or remove the protocol."
    )
    (sentence,) = gaps(measures=["random"], protocols=["erasure"])
    assert "`protocols.erasure` adds no score of model 'bilstm-tanh'" in sentence and "there is none; add" in sentence


def test_tokens_that_a_measure_does_not_score_are_refused():
    def run(tokens, measures, dataset="mock-1", model="average-tanh"):
        protocols = {"agreement": {"tokens": tokens}}
        config = study(datasets=[dataset], models=[model], measures=measures, protocols=protocols)
        return list_runs(resolve(config))

    message = (
        r"`protocols\.agreement\.tokens` ranks special tokens, which measure 'leave-one-out' of model 'average-tanh' "
        r"does not score; change `tokens` or the options of the measure, or remove the measure\."
    )
    with pytest.raises(PlumblineError, match=message):
        run(["text", "all"], ["random", "leave-one-out"])
    with pytest.raises(PlumblineError, match="ranks second texts, which measure 'lime'"):
        run(["texts"], {"random": {}, "lime": {"texts": "first"}}, "stories")
    with pytest.raises(PlumblineError, match="ranks special tokens, which measure 'lime'"):
        run(["all"], {"random": {}, "lime": {"specials": False}})
    with pytest.raises(PlumblineError, match=r"`protocols\.agreement\.tokens` is empty; write \[text\]"):
        run([], ["random", "lime"])
    # Single texts have no second text to score.
    assert run(["text", "texts"], ["random", "leave-one-out"]).scored
    assert run(["all"], ["random", "lime", "deep-lift", "occlusion"], "stories").scored


def test_protocol_may_not_take_the_name_of_a_table():
    with pytest.raises(PlumblineError, match=r"`protocols\.timings`: 'timings' is reserved"):
        resolve(study(protocols={"timings": {"kind": "agreement"}}))


def test_adversaries_are_named_by_model_entry_and_strength():
    adversaries = {"attefa": {"base_seed": 7, "seeds": "3-4"}, "far": {"objective": "wiegreffe-pinter"}}
    adversaries["near"] = {"objective": "wiegreffe-pinter", "strength": [0, 1e-5], "of": ["cnn-tanh"]}
    models = ["bilstm-tanh", "cnn-tanh", "bag-of-words"]
    derived = resolve(study(models=models, adversaries=adversaries, seeds=["0-1", "5,7"])).derived
    strengths = ["0", "0.0001", "0.0002", "0.0005", "0.0008", "0.001", "0.01", "0.1"]
    assert list(derived) == [
        "bilstm-tanh.attefa", "cnn-tanh.attefa", *(f"bilstm-tanh.far.{s}" for s in strengths),
        *(f"cnn-tanh.far.{s}" for s in strengths), "cnn-tanh.near.0", "cnn-tanh.near.1e-05",
    ]  # fmt: skip
    attefa, near = derived["cnn-tanh.attefa"], derived["cnn-tanh.near.1e-05"]
    assert (attefa.base, attefa.base_seed, attefa.base_block, attefa.seeds) == ("cnn-tanh", 7, "5,7", ["3-4"])
    assert (attefa.objective, attefa.strength, attefa.adversary) == ("attefa", None, "attefa")
    assert (near.base, near.base_seed, near.base_block, near.seeds) == ("cnn-tanh", 0, "0-1", ["0-1", "5,7"])
    assert (near.objective, near.strength, near.adversary) == ("wiegreffe-pinter", 1e-5, "near")


def test_an_adversary_trains_as_its_base_model_but_for_its_objective():
    own = {"batch_size": 8, "patience": 3, "first_eligible_epoch": 2}
    models = {"bilstm-tanh": {"hidden": 6, "training": own}}
    adversaries = {"attefa": {"training": {"epochs": 5}}, "wiegreffe-pinter": {"strength": [0.1]}}
    datasets = {"movie": {"training": {"learning_rate": 0.5}}}
    resolved = resolve(study(datasets=datasets, models=models, adversaries=adversaries))
    usual = resolved.trainings["movie", "bilstm-tanh"].model_dump()
    assert usual["batch_size"] == 8 and usual["learning_rate"] == 0.5
    changes = {"patience": 10, "class_weights": "none", "reduction": "mean", "select_by": "loss"}
    changes["first_eligible_epoch"] = 1
    expected = {
        "bilstm-tanh.attefa": {"epochs": 5, "select_on": "dev", "also_select_on": ["test"]},
        "bilstm-tanh.wiegreffe-pinter.0.1": {"epochs": 80, "select_on": "train", "also_select_on": []},
    }
    for name, more in expected.items():
        assert resolved.trainings["movie", name].model_dump() == usual | changes | more
        assert resolved.model_options["movie", name]["hidden"] == 6
        assert resolved.declarations["model", name].name == "bilstm-tanh"


def test_adversaries_run_where_their_base_models_do():
    models = {"bilstm-tanh": {"datasets": ["movie"]}, "average-tanh": {}, "cnn-tanh": {"datasets": []}}
    models["bag-of-words"] = {}
    changes = {"datasets": ["movie", "stories", "mock-1"], "models": models, "seeds": ["0-1", "2"]}
    adversaries = {"attefa": {"seeds": ["5"]}, "far": {"objective": "attefa", "datasets": ["movie", "mock-1"]}}
    runs = list_runs(resolve(study(**changes, adversaries=adversaries)))
    found = [(cell.model, cell.dataset, cell.seeds) for cell in sorted(runs.adversaries, key=lambda cell: cell.model)]
    assert found == [
        *(("average-tanh.attefa", dataset, "5") for dataset in ("mock-1", "movie", "stories")),
        *(("average-tanh.far", dataset, seeds) for dataset in ("mock-1", "movie") for seeds in ("0-1", "2")),
        ("bilstm-tanh.attefa", "movie", "5"), ("bilstm-tanh.far", "movie", "0-1"), ("bilstm-tanh.far", "movie", "2"),
    ]  # fmt: skip
    assert not {cell.model for cell in runs.cells} & {cell.model for cell in runs.adversaries}
    with pytest.raises(
        PlumblineError,
        match=(
            r"^`adversaries\.attefa`: no model of this study has trained attention; remove it or add such a model\.$"
        ),
    ):
        list_runs(resolve(study(models=["bag-of-words"], measures=["gradient-attached"], adversaries=["attefa"])))


def test_models_with_anothers_attention_train_but_are_not_explained_or_scored():
    models = {"bilstm-tanh": {"datasets": ["movie"]}, "average-tanh": {"attention_of": "bilstm-tanh"}}
    models |= {"cnn-tanh": {"attention_of": "bilstm-tanh.attefa"}, "cnn-dot": {}}
    changes = {"datasets": ["movie", "mock-1"], "protocols": ["permutation"]}
    resolved = resolve(study(**changes, models=models, adversaries={"attefa": {"seeds": ["8-9"]}}))
    one, other = (resolved.derived[name] for name in ("average-tanh", "cnn-tanh"))
    assert (one.base, one.base_seed, one.base_block, one.objective) == ("bilstm-tanh", 0, "0", "guided")
    assert (other.base, other.base_seed, other.base_block) == ("bilstm-tanh.attefa", 8, "8-9")
    runs = list_runs(resolved)
    trained = [(cell.dataset, cell.model) for cell in runs.cells]
    assert [model for dataset, model in trained if dataset == "movie"] == sorted(models)
    assert [model for dataset, model in trained if dataset == "mock-1"] == ["cnn-dot"]
    assert runs.measures["average-tanh"] == runs.measures["cnn-tanh"] == []
    assert {cell.model for cell in runs.scored["permutation"]} == {"bilstm-tanh", "cnn-dot"}
    assert {cell.model for cell in runs.adversaries} == {"bilstm-tanh.attefa", "cnn-dot.attefa"}
    reason = "model 'cnn-tanh' takes its attention from 'bilstm-tanh.attefa'"
    assert reason in {excluded.reason for excluded in runs.excluded}
    models["cnn-tanh"]["measures"] = ["attention"]
    with pytest.raises(PlumblineError, match=rf"`models\.cnn-tanh\.measures`: {reason}; remove it from the list\."):
        list_runs(resolve(study(models=models, datasets=["movie"], adversaries=["attefa"])))


def test_no_model_reads_a_base_model_where_that_one_cannot_be(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from plumbline.models.classifier import AttentionClassifier\nfrom plumbline.registry import model\n\n"
        '@model("mine", provides=["attention"], tasks=["classification"])\nclass Mine(AttentionClassifier):\n'
        '    """Reads one text only."""\n'
    )
    changes = {"plugins": [str(tmp_path / "mine.py")], "datasets": ["movie", "stories"], "measures": ["attention"]}
    models = {"mine": {}, "cnn-tanh": {"attention_of": "mine"}, "cnn-dot": {}}
    runs = list_runs(resolve(study(**changes, models=models, protocols=[], adversaries=["attefa"])))
    assert [cell.model for cell in runs.cells if cell.dataset == "stories"] == ["cnn-dot"]
    assert [cell.model for cell in runs.adversaries if cell.dataset == "stories"] == ["cnn-dot.attefa"]


def test_recipes_merge_declaration_and_config():
    resolved = resolve(study(datasets={"sst": {"preparation": {"embedding": {"path": "vectors/other.txt"}}}}))
    recipe = resolved.preparations["sst"]
    assert (recipe.longer_than, recipe.embedding.kind, recipe.embedding.path) == (5, "file", "vectors/other.txt")


ROAR_DATASETS = ["sst", "imdb", "diabetes", "anemia", "snli", "babi-1", "babi-2", "babi-3"]
SINGLE, BABI = ROAR_DATASETS[:4], ROAR_DATASETS[5:]


def roar_study(**models):
    models = models or {"bilstm-softmax": {}, "roberta": {}, "bilstm-tanh": {}}
    return resolve(study(datasets=ROAR_DATASETS, models=models, measures=["random"], protocols=[]))


@pytest.mark.parametrize("dataset", ROAR_DATASETS)
def test_the_bilstm_of_recursive_roar_trains_as_specified(dataset):
    training = roar_study().trainings[dataset, "bilstm-softmax"]
    epochs, size = (8, 32) if dataset in SINGLE else (25, 128) if dataset == "snli" else (100, 50)
    assert (training.epochs, training.batch_size) == (epochs, size)
    assert (training.optimiser, training.learning_rate, training.schedule) == ("amsgrad", 1e-3, "constant")
    # Single texts: no decay of the attention.
    assert (training.weight_decay, training.no_decay) == (1e-5, ["attention"] if dataset in SINGLE else [])
    assert (training.class_weights, training.reduction, training.batching) == ("none", "mean", "shuffle")
    assert (training.select_on, training.select_by) == ("dev", "roc_auc" if dataset in SINGLE else "accuracy")
    assert (training.first_eligible_epoch, training.patience) == (1, None)


@pytest.mark.parametrize("dataset", ROAR_DATASETS)
def test_roberta_trains_as_specified(dataset):
    training = roar_study().trainings[dataset, "roberta"]
    assert (training.epochs, training.batch_size) == (8 if dataset in BABI else 3, 16)
    assert (training.optimiser, training.learning_rate, training.beta2) == ("adamw", 2e-5, 0.98)
    assert (training.schedule, training.warmup) == ("linear", 0.06)
    assert (training.weight_decay, training.no_decay) == (0.01, ["*bias", "*LayerNorm.weight", "*norm.weight"])
    assert (training.class_weights, training.reduction, training.batching) == ("none", "mean", "shuffle")
    assert (training.select_on, training.select_by) == ("dev", "roc_auc" if dataset in SINGLE else "accuracy")
    assert (training.first_eligible_epoch, training.patience) == (1, None)


def test_the_config_overrides_the_training_of_a_subword_model_on_a_dataset():
    models = {"roberta": {"training": {"epochs": 2}}}
    datasets = {"babi-1": {"training": {"batch_size": 4}}, "babi-2": {}}
    trainings = resolve(study(datasets=datasets, models=models, measures=["random"], protocols=[])).trainings
    assert [(t.epochs, t.batch_size) for t in trainings.values()] == [(2, 4), (2, 16)]


def test_a_subword_model_takes_only_the_selection_metric_from_the_task(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from plumbline.registry import model\n\n"
        '@model("mine", provides=["gradient"], tasks=["inference"], reads="subwords")\nclass Mine:\n'
        '    """Reads subwords and declares no training."""\n'
    )
    changes = {"plugins": [str(tmp_path / "mine.py")], "datasets": ["snli"], "models": ["mine", "bilstm-tanh"]}
    trainings = resolve(study(**changes, measures=["random"], protocols=[])).trainings
    assert trainings["snli", "mine"] == Training(select_by="accuracy")
    assert (trainings["snli", "bilstm-tanh"].epochs, trainings["snli", "bilstm-tanh"].batch_size) == (25, 128)


def test_the_softmax_bilstm_is_smaller_on_babi_unless_the_config_overrides_it():
    models = {"bilstm-softmax": {}, "mine": {"kind": "bilstm-softmax", "hidden": 128}, "bilstm-tanh": {}}
    options = roar_study(**models).model_options
    for model in models:
        small = BABI if model == "bilstm-softmax" else []
        assert {dataset: options[dataset, model]["hidden"] for dataset in ROAR_DATASETS} == {
            dataset: 32 if dataset in small else 128 for dataset in ROAR_DATASETS
        }
    turned = roar_study(turned={"kind": "bilstm-tanh", "output": "softmax"}).model_options
    assert (turned["babi-3", "turned"]["hidden"], turned["snli", "turned"]["hidden"]) == (32, 128)


def test_entries_may_share_a_kind():
    measures = {"gradient": {}, "gradient-of-logit": {"kind": "gradient", "function": "logit"}}
    resolved = resolve(study(measures=measures))
    assert resolved.options["measure", "gradient-of-logit"]["function"] == "logit"
    assert resolved.options["measure", "gradient"]["function"] == "probability"


@pytest.mark.parametrize(("block", "seeds"), [("0", [0]), ("0-3", [0, 1, 2, 3]), ("10,50,257", [10, 50, 257])])
def test_seed_blocks(block, seeds):
    assert parse_seeds(block) == seeds


@pytest.mark.parametrize(
    ("block", "most", "cut"),
    [
        ("0-4", None, ["0-4"]),
        ("0-4", 5, ["0-4"]),
        ("0-4", 4, ["0-2", "3-4"]),
        ("0-4", 2, ["0-1", "2-3", "4"]),
        ("5,1-3", 4, ["5,1-3"]),
        ("5,1-3", 3, ["5,1", "2-3"]),
        ("87,2134,5555", 1, ["87", "2134", "5555"]),
    ],
)
def test_blocks_are_cut_into_equal_ones(block, most, cut):
    assert cut_block(block, most) == cut
    assert [seed for part in cut for seed in parse_seeds(part)] == parse_seeds(block)


def test_a_study_cuts_the_blocks_of_single_datasets():
    models = {"bilstm-tanh": {}, "average-tanh": {"seeds": ["7"]}, "cnn-tanh": {"attention_of": "bilstm-tanh.attefa"}}
    changes = {"datasets": ["movie", "mock-1"], "models": models, "seeds": ["0-2"]}
    changes["adversaries"] = {"attefa": {"of": ["bilstm-tanh"], "base_seed": 2, "seeds": ["3-5"]}}
    whole, cut = (
        resolve(study(**changes, compute={"jobs": {"movie": {"seeds": most}}} if most else {})) for most in (None, 2)
    )
    runs = list_runs(cut)
    found = {(cell.dataset, cell.model): [] for cell in runs.cells + runs.adversaries}
    for cell in runs.cells + runs.adversaries:
        found[cell.dataset, cell.model].append(cell.seeds)
    assert found == {
        ("movie", "bilstm-tanh"): ["0-1", "2"],
        ("movie", "average-tanh"): ["7"],
        ("movie", "cnn-tanh"): ["0-1", "2"],
        ("movie", "bilstm-tanh.attefa"): ["3-4", "5"],
        ("mock-1", "bilstm-tanh"): ["0-2"],
        ("mock-1", "average-tanh"): ["7"],
        ("mock-1", "cnn-tanh"): ["0-2"],
        ("mock-1", "bilstm-tanh.attefa"): ["3-5"],
    }
    for model, blocks in {"bilstm-tanh.attefa": ("2", "0-2"), "cnn-tanh": ("3-4", "3-5")}.items():
        assert (cut.base_block(model, "movie"), cut.base_block(model, "mock-1")) == blocks
        assert whole.base_block(model, "movie") == blocks[1]


def test_blocks_whose_seeds_are_compared_stay_whole():
    changes = {"datasets": ["movie", "mock-1"], "seeds": ["0-2"], "compute": {"jobs": {"movie": {"seeds": 2}}}}
    with pytest.raises(PlumblineError, match=r"^`compute\.jobs\.movie\.seeds` splits .* 'seed_variance' compares"):
        list_runs(resolve(study(**changes, protocols=["seed_variance"])))
    runs = list_runs(resolve(study(**changes, protocols={"seed_variance": {"datasets": ["mock-1"]}})))
    assert [cell.seeds for cell in runs.scored["seed_variance"]] == ["0-2"]


def test_generated_files_are_up_to_date():
    stale = [path.name for path, text in generated_files(PROJECT).items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `make generate`"


def test_annotate_replaces_stale_comments():
    text = annotate("name: x\n# stale\nseeds: ['0']\n")
    assert "stale" not in text and text.count("# Blocks of seeds") == 1
    assert annotate(text) == text


@pytest.mark.parametrize(
    "path", [PROJECT / "config.yaml", *sorted((PROJECT / "studies").glob("*.yaml"))], ids=lambda p: p.name
)
def test_shipped_configs_are_valid(path):
    assert list_runs(resolve(read_config(path))).cells


def test_command_line_reports_one_sentence(tmp_path, capsys):
    config = tmp_path / "broken.yaml"
    config.write_text("datasets: [movie\n")
    assert main(["runs", str(config)]) == 1
    assert "is not valid YAML" in capsys.readouterr().err
    assert main(["runs", str(PROJECT / "config.yaml")]) == 0
    assert "left out: protocol 'permutation'" in capsys.readouterr().out


@pytest.mark.parametrize("tokens", ["lots", 0, True, 2.5])
def test_a_token_budget_is_auto_or_a_number(tokens):
    with pytest.raises(PlumblineError, match=r"`compute\.token_budget` is .*: it must be 'auto' or a whole number"):
        resolve(study(compute={"token_budget": tokens}))
    assert resolve(study(compute={"token_budget": 512})).study.compute.token_budget == 512
    assert resolve(study()).study.compute.token_budget == "auto"


def test_an_empty_compute_section_means_the_defaults():
    assert resolve(study(compute=None, report=None)).study.compute.slots_per_gpu == 1


def test_runs_finds_plugins_next_to_the_config_file(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(
        "from plumbline.registry import measure\n\n"
        '@measure("late", cheap=True, equation="t")\ndef late(evaluator, instances):\n    """Late words."""\n'
    )
    (tmp_path / "my.yaml").write_text(
        "plugins: [mine.py]\ndatasets: [movie]\nmodels: [bag-of-words]\nmeasures: [late, random]\n"
    )
    assert main(["runs", str(tmp_path / "my.yaml")]) == 0
    assert "late, random" in capsys.readouterr().out


def test_names_of_rules_and_tables_are_reserved():
    project = Path(__file__).parents[3]
    files = [project / "Snakefile", *(project / "rules").glob("*.smk")]
    texts = [file.read_text() for file in files]
    rules = {name for text in texts for name in re.findall(r"^ *rule (\w+):", text, re.MULTILINE)}
    rules |= {name for text in texts for name in re.findall(r"^ *use rule \w+ as (\w+) with:", text, re.MULTILINE)}
    assert {"train", "retrain", "attribute", "attribute_masked", "table"} < rules <= RESERVED
    drawing = {f"draw_{figure.path.parent.name}" for figure in Registry().all("figure")}
    assert len(drawing) > 4 and drawing <= RESERVED
    tables = set(Registry().names("table"))
    assert len(tables) > 8 and tables <= RESERVED
    own = {name for kind in KINDS if kind != "metric" for name in Registry().names(kind)}
    # A table of one's own has a name of its own and states its kind.
    assert own & RESERVED == {"table"}, "registered objects are usable under their own names"


@pytest.mark.parametrize("section", ["datasets", "models", "measures", "protocols"])
def test_reserved_names_are_refused_everywhere(section):
    for name in ("scorecard", "quirks", "trace", "meta_evaluation", "train"):
        with pytest.raises(PlumblineError, match=f"`{section}.{name}`: '{name}' is reserved"):
            check_name(name, f"{section}.{name}")
