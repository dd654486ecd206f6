from pathlib import Path

import pytest

from plumbline.cli import main
from plumbline.config.reference import annotate, generated
from plumbline.config.runs import list_runs
from plumbline.config.study import parse_seeds, read_config, resolve
from plumbline.errors import PlumblineError

PROJECT = Path(__file__).parents[2]


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
        ({"dataset": {}}, r"`dataset` \(set to {}\) is not a key that is known here; did you mean 'datasets'\?"),
        ({"datasets": {"moive": {}}}, r"`datasets.moive`: There is no dataset 'moive'; did you mean 'movie'\?"),
        ({"seeds": ["0-2", "2"]}, r"`seeds` is \['0-2', '2'\]: seed 2 stands twice"),
        ({"seeds": ["3-1"]}, "'3-1' is not a block of seeds"),
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
            r"training.epochs` is 0: .*greater than or equal to 1",
        ),
        (
            {"datasets": {"movie": {"preparation": {"embedding": {"dim": 3}}}}},
            r"embedding.dim` .*did you mean 'dimensions'",
        ),
        (
            {"models": {"bilstm-tanh": {"training": {"epochs": 1}}}},
            r"training` .*`first_eligible_epoch` is 2, but `epochs` is 1; lower it\.",
        ),
        ({"models": {"bow": {"kind": "bag-of-word"}}}, r"`models.bow.kind`: .*did you mean 'bag-of-words'\?"),
        ({"models": {"b/d": {"kind": "bag-of-words"}}}, "a name may hold letters"),
        ({"explain": ["tset"]}, r"`explain.0` is 'tset'; did you mean 'test'\?"),
        (
            {"protocols": {"agreement": {"statistics": ["kendal"]}}},
            r"statistics.0` is 'kendal'; did you mean 'kendall'\?",
        ),
        (
            {"measures": {"gradient": {"target": "golden"}}},
            "`measures.gradient.target` is 'golden'; did you mean",
        ),
        ({"models": {"bilstm-tanh": {"training": {"precision": "float16"}}}}, "Known are: tf32, float32, bfloat16."),
        ({"compute": {"slots_per_gpu": "auto"}}, "`compute.slots_per_gpu` is 'auto': it must be a whole number."),
        ({"compute": []}, r"`compute` is \[\]: it must be keys and values."),
        ({"models": {"bilstm-tanh": {"measures": ["gradeint"]}}}, r"names 'gradeint'; did you mean 'gradient'\?"),
    ],
)
def test_fault_is_one_sentence_with_key_value_and_nearest(changes, sentence):
    with pytest.raises(PlumblineError, match=sentence) as caught:
        resolve(study(**changes))
    assert "\n" not in str(caught.value)


def test_missing_key():
    with pytest.raises(PlumblineError, match="`datasets` is missing"):
        resolve({"models": {}, "measures": {}})


def test_runs_list_reasons_for_excluded_pairs():
    runs = list_runs(resolve(study(models=["bilstm-tanh", "bag-of-words"], seeds=["0-1", "7"])))
    assert [(c.model, c.seeds) for c in runs.cells] == [
        ("bag-of-words", "0-1"), ("bag-of-words", "7"), ("bilstm-tanh", "0-1"), ("bilstm-tanh", "7"),
    ]  # fmt: skip
    assert runs.measures == {"bilstm-tanh": ["attention", "gradient"], "bag-of-words": []}
    assert runs.excluded[0].reason == "measure 'attention' needs attention, which model 'bag-of-words' does not provide"


def test_measure_that_no_model_can_have_is_refused():
    with pytest.raises(PlumblineError, match=r"`measures\.attention` can explain no model of this study"):
        list_runs(resolve(study(models=["bag-of-words"])))


def test_measure_that_a_model_names_but_cannot_have_is_refused():
    models = {"bilstm-tanh": {}, "bag-of-words": {"measures": ["attention"]}}
    with pytest.raises(PlumblineError, match=r"`models\.bag-of-words\.measures`: measure 'attention' needs attention"):
        list_runs(resolve(study(models=models)))


def test_an_option_may_bring_a_need():
    measures = {"gradient-attached": {}, "held": {"kind": "gradient-attached", "attention": "detached"}}
    runs = list_runs(resolve(study(models=["bilstm-tanh", "bag-of-words"], measures=measures)))
    assert runs.measures == {"bilstm-tanh": ["gradient-attached", "held"], "bag-of-words": ["gradient-attached"]}


def test_protocol_needs_enough_measures():
    with pytest.raises(
        PlumblineError, match=r"protocol .agreement. compares at least 2 measures, and model .bilstm-tanh. has 1"
    ):
        list_runs(resolve(study(measures=["attention"])))
    runs = list_runs(resolve(study(models=["bilstm-tanh", "bag-of-words"])))
    assert [cell.model for cell in runs.scored["agreement"]] == ["bilstm-tanh"]


def test_protocol_may_not_take_the_name_of_a_table():
    with pytest.raises(PlumblineError, match=r"`protocols\.timings`: a table of every study has that name"):
        resolve(study(protocols={"timings": {"kind": "agreement"}}))


def test_recipes_merge_declaration_and_config():
    resolved = resolve(study(datasets={"sst": {"preparation": {"embedding": {"path": "vectors/other.txt"}}}}))
    recipe = resolved.preparations["sst"]
    assert (recipe.longer_than, recipe.embedding.kind, recipe.embedding.path) == (5, "file", "vectors/other.txt")


def test_entries_may_share_a_kind():
    measures = {"gradient": {}, "gradient-of-logit": {"kind": "gradient", "function": "logit"}}
    resolved = resolve(study(measures=measures))
    assert resolved.options["measure", "gradient-of-logit"]["function"] == "logit"
    assert resolved.options["measure", "gradient"]["function"] == "probability"


@pytest.mark.parametrize(("block", "seeds"), [("0", [0]), ("0-3", [0, 1, 2, 3]), ("10,50,257", [10, 50, 257])])
def test_seed_blocks(block, seeds):
    assert parse_seeds(block) == seeds


def test_generated_files_are_up_to_date():
    stale = [path.name for path, text in generated(PROJECT).items() if path.read_text(encoding="utf-8") != text]
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


def test_command_line_says_one_sentence(tmp_path, capsys):
    config = tmp_path / "broken.yaml"
    config.write_text("datasets: [movie\n")
    assert main(["runs", str(config)]) == 1
    assert "is not valid YAML" in capsys.readouterr().err
    assert main(["runs", str(PROJECT / "config.yaml")]) == 0
    assert "left out: measure 'attention'" in capsys.readouterr().out


@pytest.mark.parametrize("tokens", ["lots", 0, True, 2.5])
def test_a_token_budget_is_auto_or_a_number(tokens):
    with pytest.raises(PlumblineError, match=r"`compute\.token_budget` is .*: must be 'auto' or a whole number"):
        resolve(study(compute={"token_budget": tokens}))
    assert resolve(study(compute={"token_budget": 512})).study.compute.token_budget == 512
    assert resolve(study()).study.compute.token_budget == "auto"


def test_nothing_behind_compute_means_the_defaults():
    assert resolve(study(compute=None, report=None)).study.compute.slots_per_gpu == 1


def test_runs_finds_plugins_beside_the_config_file(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(
        "from plumbline.registry import measure\n\n"
        '@measure("late", cheap=True, equation="t")\ndef late(evaluator, instances):\n    """Late words."""\n'
    )
    (tmp_path / "my.yaml").write_text(
        "plugins: [mine.py]\ndatasets: [movie]\nmodels: [bag-of-words]\nmeasures: [late, random]\n"
    )
    assert main(["runs", str(tmp_path / "my.yaml")]) == 0
    assert "late, random" in capsys.readouterr().out
