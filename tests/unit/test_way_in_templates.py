"""What `plumbline new` writes works as it is."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from plumbline.cli import main

PROJECT = Path(__file__).parents[2]
KINDS = ("dataset", "manipulation", "measure", "model", "protocol")
STUDY = {
    "name": "one's own",
    "datasets": {"whole-dataset": {"preparation": {"embedding": {"dimensions": 8}}}},
    "manipulations": {"whole-manipulation": {"r": 0.5}},
    "models": {"whole-model": {"hidden": 8, "training": {"epochs": 2}}},
    "measures": ["leave-one-out", "whole-measure"],
    "protocols": ["ground_truth", "whole-protocol"],
}


def write(kind: str, folder: Path, whose: str = "mine") -> Path:
    assert main(["new", kind, f"{whose}-{kind}", "--folder", str(folder)]) == 0
    return folder / f"{whose}_{kind}.py"


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_conforms_and_passes_its_own_test(kind, tmp_path, capsys, monkeypatch):
    path = write(kind, tmp_path)
    told = capsys.readouterr().out
    for step in (
        f"$EDITOR {path}",
        f"plumbline check {path}",
        f"plugins: [{path}]",
        f"{kind}s:\n         mine-{kind}:",
    ):
        assert step in told
    monkeypatch.delenv("PLUMBLINE_DATA", raising=False)
    assert main(["check", str(path), "--raw", str(tmp_path / "raw")]) == 0
    assert capsys.readouterr().out.startswith(f"{kind} mine-{kind}: conforms")
    assert "my" not in path.read_text().lower().split() and f"my_{kind}" not in path.read_text()
    # pytest itself, in this process, so that nothing is imported anew.
    assert pytest.main(["-q", "-p", "no:cacheprovider", str(path.with_name(f"test_{path.name}"))]) == 0


SPOILT = {
    "dataset": ("CLASSES.index(label)", "1 - CLASSES.index(label)", "test_texts_keep_their_labels"),
    "manipulation": ('"!" if label', '"!" if not label', "test_the_last_words_follow_the_label"),
    "measure": ("lengths**power", "lengths", "test_scores_are_the_lengths_of_word_vectors"),
    "model": ("nn.Tanh()", "nn.Threshold(1e9, 0)", "test_it_learns_a_few_texts_by_heart"),
    "protocol": (".max() / total", ".min() / total", "test_its_table_holds_the_mean_share_of_the_most_important_word"),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_the_test_of_a_template_can_fail(kind, tmp_path):
    path = write(kind, tmp_path, "spoilt")
    right, wrong, test = SPOILT[kind]
    assert path.read_text().count(right) == 1
    path.write_text(path.read_text().replace(right, wrong))
    own = path.with_name(f"test_{path.name}")
    assert pytest.main(["-q", "-p", "no:cacheprovider", str(own), "-k", test]) == pytest.ExitCode.TESTS_FAILED


REFUSED = {
    ("measure", "Late Words"): "'Late Words' cannot be the name of a measure: write small letters, digits and dashes, "
    "with a letter first, as in 'my-measure'.",
    ("measure", "attention"): "'attention' cannot be the name of a measure: plumbline has one of that name; choose "
    "another.",
    ("protocol", "timings"): "'timings' cannot be the name of a protocol: plumbline has one of that name; choose "
    "another.",
    ("model", "torch"): "'torch' cannot be the name of a model: 'torch' means something else in Python; choose "
    "another.",
    ("dataset", "class"): "'class' cannot be the name of a dataset: 'class' means something else in Python; choose "
    "another.",
    ("measure", "np"): "'np' cannot be the name of a measure: 'np' is a word of the template; choose another.",
}  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), REFUSED)
def test_names_that_cannot_be_are_refused(kind, name, tmp_path, capsys):
    assert main(["new", kind, name, "--folder", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"plumbline: {REFUSED[kind, name]}\n"
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path, capsys):
    own = tmp_path / "test_another_measure.py"
    own.write_text("mine")
    assert main(["new", "measure", "another-measure", "--folder", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"plumbline: '{own}' is there already; choose another name or folder.\n"
    assert own.read_text() == "mine" and list(tmp_path.iterdir()) == [own]
    assert main(["new", "measure", "another-measure", "--folder", str(own)]) == 1
    assert capsys.readouterr().err == f"plumbline: '{own}' is a file; name a folder.\n"


@pytest.mark.studies
def test_a_study_of_templates_alone_runs(tmp_path):
    """Every kind at once, through the whole workflow."""
    plugins = [str(write(kind, tmp_path, "whole")) for kind in KINDS]
    raw = tmp_path / "raw" / "whole-dataset"
    raw.mkdir(parents=True)
    lines = [f"{['bad', 'good'][i % 2]}\tfilm {i % 7} was {['dull', 'great'][i % 2]} again\n" for i in range(160)]
    (raw / "all.tsv").write_text("".join(lines))
    (tmp_path / "my.yaml").write_text(yaml.safe_dump({**STUDY, "plugins": plugins, "raw": str(tmp_path / "raw")}))
    tables = {name: f"results/tables/{name}.parquet" for name in ("performance", *STUDY["protocols"])}
    ran = subprocess.run(
        [sys.executable, "-m", "snakemake", *tables.values(), "--cores", "2", "--snakefile", str(PROJECT / "Snakefile"),
         "--configfile", str(tmp_path / "my.yaml"), "--directory", str(tmp_path)],
        cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    found = {name: pq.ParquetFile(tmp_path / path).read().to_pandas() for name, path in tables.items()}
    assert set(found["performance"]["variant"]) == {"plain", "whole-manipulation"}
    assert set(found["ground_truth"]["group"]) == {"marks", "other"}
    own = found["whole-protocol"]
    assert set(own["measure"]) == {"leave-one-out", "whole-measure"}
    assert own["mean"].between(0, 1).all() and (own["n"] > 0).all()
