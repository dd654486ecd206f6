"""Degraded measures in the config: the measures of an entry, what they inherit, their jobs and tables, and refusals."""

from pathlib import Path
from typing import Any

import pytest

from plumbline.config.resolve import resolve
from plumbline.config.resolved import Resolved
from plumbline.config.runs import list_runs
from plumbline.dag.study import StudyDag
from plumbline.errors import PlumblineError
from plumbline.registry import PACKAGE

LADDER = {"of": "gradient", "share": [0.25, 1]}
RUNGS = ["gradient.degraded.0.25", "gradient.degraded.1"]


def study(**changes: Any) -> dict[str, Any]:
    config: dict[str, Any] = {
        "datasets": ["mock-2"],
        "models": ["average-tanh"],
        "measures": {"degraded": LADDER, "gradient": {}, "leave-one-out": {}, "random": {}},
        "protocols": ["agreement"],
    }
    return config | changes


def resolved(**changes: Any) -> Resolved:
    return resolve(study(**changes))


def dag(**changes: Any) -> StudyDag:
    return StudyDag(resolved(**changes), [Path()], PACKAGE.parent / "scripts")


def with_ladder(**ladder: Any) -> dict[str, Any]:
    return {"measures": {"gradient": {}, "leave-one-out": {}, "random": {}, "degraded": ladder}}


def test_an_entry_is_a_measure_for_each_base_and_share_after_its_base():
    assert list(resolved().study.measures) == ["gradient", *RUNGS, "leave-one-out", "random"]
    assert resolved().options["measure", RUNGS[0]] == {"of": "gradient", "share": 0.25}
    both = resolved(**with_ladder(of=["gradient", "leave-one-out"], share=0.5)).study.measures
    assert list(both) == [
        "gradient", "gradient.degraded.0.5", "leave-one-out", "leave-one-out.degraded.0.5", "random",
    ]  # fmt: skip
    named = resolved(measures={"gradient": {}, "worse": {"kind": "degraded", "of": "gradient", "share": 0}})
    assert list(named.study.degraded) == ["gradient.worse.0"]
    assert named.declarations["measure", "gradient.worse.0"].name == "degraded"


def test_a_resolved_study_is_resolved_to_itself():
    models = {"average-tanh": {"measures": ["gradient", "degraded", "random"]}, "cnn-tanh": {}}
    once = resolved(models=models).study
    assert resolve(once.model_dump()).study == once


def test_in_lists_the_entry_stands_for_its_measures():
    models = {"average-tanh": {"measures": ["gradient", "degraded", "random"]}, "cnn-tanh": {}}
    roar = {"relative": {"levels": [50], "measures": ["degraded", RUNGS[0]]}}
    runs = list_runs(resolved(models=models, roar=roar))
    assert runs.measures["average-tanh"] == ["gradient", *RUNGS, "random"]
    masked = {masked.measure for masked in runs.masked.values()}
    assert masked == {*RUNGS, "random"}


def test_a_study_without_degraded_measures_is_unchanged():
    config = study(measures=["gradient", "random"])
    assert list(resolve(config).study.measures) == ["gradient", "random"] and not resolve(config).study.degraded


def test_needs_and_covered_tokens_are_those_of_the_base():
    measures = {
        "attention-gradient": {"kind": "gradient", "attention": "detached"},
        "integrated-gradient-pad": {"specials": False},
        "mutual-information": {},
        "degraded": {"of": ["attention-gradient", "integrated-gradient-pad", "mutual-information"], "share": 0.5},
    }
    declared = resolved(measures=measures).declarations
    facts = {name: declared["measure", f"{name}.degraded.0.5"].facts for name in measures if name != "degraded"}
    assert "attention" in facts["attention-gradient"]["needs"]
    assert facts["integrated-gradient-pad"]["needs"] == ["gradient"]
    assert facts["integrated-gradient-pad"]["covers"] == ["pair"]
    assert facts["mutual-information"]["splits"] == ["train"]
    assert all(of["pixels"] == declared["measure", name].pixels for name, of in facts.items())


def test_a_model_without_what_the_base_needs_is_not_explained():
    models = {"average-tanh": {}, "bag-of-words": {}}
    measures = {"attention": {}, "random": {}, "degraded": {"of": "attention", "share": 0.5}}
    runs = list_runs(resolved(models=models, measures=measures))
    assert runs.measures == {
        "average-tanh": ["attention", "attention.degraded.0.5", "random"],
        "bag-of-words": ["random"],
    }


def test_rungs_share_the_job_of_their_base_and_have_one_of_their_own_for_masking():
    measures = with_ladder(of=["gradient", "leave-one-out"], share=0.5)
    graph = dag(**measures, roar={"relative": {"levels": [50], "strategies": ["roar"]}})
    assert graph.groups.of("gradient.degraded.0.5") == "cheap"
    assert graph.groups.of("leave-one-out.degraded.0.5") == "leave-one-out"
    cell = next(iter(graph.runs.cells))
    params = graph.params.measures(cell, "leave-one-out")
    assert list(params) == ["leave-one-out", "leave-one-out.degraded.0.5"]
    assert list(params["leave-one-out.degraded.0.5"]["bases"]) == ["leave-one-out"]
    masked = next(cell for cell, of in graph.runs.masked.items() if of.measure == "gradient.degraded.0.5")
    below = graph.paths.importances_below(masked)
    assert below == "results/attributions/mock-2/unmasked/average-tanh/0/gradient.degraded.0.5.parquet"
    unmasked = type(cell)("mock-2", "unmasked", "average-tanh", "0")
    (alone,) = graph.params.measures(unmasked, "gradient.degraded.0.5").values()
    assert alone["options"] == {"of": "gradient", "share": 0.5}
    assert alone["bases"]["gradient"]["options"]["target"] == "gold"


def test_the_table_exists_only_with_degraded_measures():
    assert "sensitivity" in dag().parts.tables and "sensitivity" in [page.name for page in dag().parts.pages]
    assert "sensitivity" not in dag(measures=["gradient", "leave-one-out", "random"]).parts.tables
    facts = dag().table_params("sensitivity")["facts"]
    assert facts == {
        "degraded": {
            name: {"of": "gradient", "share": share} for name, share in zip(RUNGS, LADDER["share"], strict=True)
        }
    }
    kinds = dag().facts.measure_kinds()
    assert kinds[RUNGS[0]] == "degraded" and kinds["gradient"] == "gradient"


def test_imported_importances_are_an_input_of_the_job(tmp_path: Path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "theirs.parquet"
    pq.write_table(pa.table({"split": ["test"], "instance": [0], "scores": [[1.0]]}), path)
    measures = {"theirs": {"kind": "imported", "path": str(path)}, "random": {}}
    measures |= {"degraded": {"of": "theirs", "share": 0.5}}
    graph = dag(measures=measures, models={"average-tanh": {"measures": ["degraded", "random"]}, "cnn-tanh": {}})
    assert graph.groups.measures("plain", "average-tanh", "theirs") == ["theirs.degraded.0.5"]
    assert graph.paths.imported(graph.runs.cells[0], "theirs") == [str(path)]
    with pytest.raises(PlumblineError, match=r"'theirs.degraded.0.5' *reads them from a file"):
        resolved(measures=measures, roar={"relative": {"measures": ["degraded"]}})


@pytest.mark.parametrize(
    ("ladder", "message"),
    [
        (
            {"of": "gradinet", "share": 1},
            "`measures.degraded.of` names 'gradinet', which is not a measure of the study; did you mean 'gradient'?",
        ),
        (
            {"of": ["gradient", "degraded"], "share": 1},
            "`measures.degraded.of` names 'degraded', which is not a measure of the study; ",
        ),
        ({"of": "gradient", "share": 2}, "`measures.degraded.share` is 2: it must be a number from 0 to 1"),
        ({"of": "gradient", "share": [0.5, -0.1]}, "`measures.degraded.share` is [0.5, -0.1]: it must be a number"),
        ({"of": "gradient", "share": [0.5, 0.5]}, "`measures.degraded.share` is [0.5, 0.5]: it must be a number"),
        ({"of": "gradient", "share": "half"}, "`measures.degraded.share.0` is 'half': it must be a number."),
        ({"of": "gradient", "share": []}, "`measures.degraded.share` is []: it must not be empty."),
        ({"of": "gradient"}, "`measures.degraded.share` is missing"),
        ({"share": 1}, "`measures.degraded.of` is missing"),
        ({"of": "gradient", "shares": 1, "share": 1}, "`measures.degraded.shares` (set to 1) is not a known key; "),
    ],
)
def test_wrong_entries_are_refused_in_a_sentence(ladder: dict[str, Any], message: str):
    with pytest.raises(PlumblineError) as refusal:
        resolved(**with_ladder(**ladder))
    assert str(refusal.value).startswith(message), refusal.value


def test_two_measures_of_one_name_are_refused():
    measures = {"gradient": {}, "gradient.degraded.1": {"kind": "random"}, "degraded": {"of": "gradient", "share": 1}}
    with pytest.raises(PlumblineError, match=r"`measures.degraded`: two measures are named 'gradient.degraded.1'"):
        resolved(measures=measures)
