"""The files that `plumbline new` writes work unchanged."""

from pathlib import Path

import pytest

from plumbline.cli import main

KINDS = ("dataset", "manipulation", "measure", "model", "protocol")


def write(kind: str, folder: Path, whose: str = "mine") -> Path:
    assert main(["new", kind, f"{whose}-{kind}", "--folder", str(folder)]) == 0
    return folder / f"{whose}_{kind}.py"


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_conforms_and_passes_its_own_test(kind, tmp_path, capsys, monkeypatch):
    path = write(kind, tmp_path)
    printed = capsys.readouterr().out
    for step in (
        f"$EDITOR {path}",
        f"plumbline check {path}",
        f"plugins: [{path}]",
        f"{kind}s:\n         mine-{kind}:",
    ):
        assert step in printed
    monkeypatch.delenv("PLUMBLINE_DATA", raising=False)
    assert main(["check", str(path), "--raw", str(tmp_path / "raw")]) == 0
    assert capsys.readouterr().out.startswith(f"{kind} mine-{kind}: conforms")
    assert "my" not in path.read_text().lower().split() and f"my_{kind}" not in path.read_text()
    # In this process, so that nothing is imported again.
    assert pytest.main(["-q", "-p", "no:cacheprovider", str(path.with_name(f"test_{path.name}"))]) == 0


SPOILT = {
    "dataset": ("CLASSES.index(label)", "1 - CLASSES.index(label)", "test_texts_keep_their_labels"),
    "manipulation": ('"!" if label', '"!" if not label', "test_the_last_words_follow_the_label"),
    "measure": ("norms**power", "norms", "test_scores_are_the_norms_of_word_vectors"),
    "model": ("nn.Tanh()", "nn.Threshold(1e9, 0)", "test_it_learns_a_few_texts_by_heart"),
    "protocol": (
        "abs(text).max()",
        "abs(text).min()",
        "test_its_table_holds_the_mean_share_of_the_most_important_word",
    ),
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
    ("measure", "Late Words"): "'Late Words' cannot be the name of a measure: use lower-case letters, digits and "
    "dashes, starting with a letter, as in 'my-measure'.",
    ("measure", "attention"): "'attention' cannot be the name of a measure: plumbline already uses it; choose "
    "another name.",
    ("protocol", "timings"): "'timings' cannot be the name of a protocol: plumbline already uses it; choose "
    "another name.",
    ("model", "torch"): "'torch' cannot be the name of a model: 'torch' is a keyword or module of Python; choose "
    "another name.",
    ("dataset", "class"): "'class' cannot be the name of a dataset: 'class' is a keyword or module of Python; choose "
    "another name.",
    ("measure", "np"): "'np' cannot be the name of a measure: the template uses 'np'; choose another name.",
}  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), REFUSED)
def test_invalid_and_taken_names_are_refused(kind, name, tmp_path, capsys):
    assert main(["new", kind, name, "--folder", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"plumbline: {REFUSED[kind, name]}\n"
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path, capsys):
    existing = tmp_path / "test_another_measure.py"
    existing.write_text("mine")
    assert main(["new", "measure", "another-measure", "--folder", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"plumbline: '{existing}' already exists; choose another name or folder.\n"
    assert existing.read_text() == "mine" and list(tmp_path.iterdir()) == [existing]
    assert main(["new", "measure", "another-measure", "--folder", str(existing)]) == 1
    assert capsys.readouterr().err == f"plumbline: '{existing}' is a file; give a folder.\n"
