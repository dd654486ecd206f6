"""The progress of an evaluation."""

import re
import sys
from types import ModuleType

import pytest
from huggingface_hub.utils import are_progress_bars_disabled
from transformers import AutoModelForSequenceClassification
from transformers.utils import logging

import plumbline
from plumbline.api.progress import show_progress
from plumbline.data.subwords import without_bars
from plumbline.runtime.progress import Progress

from .conftest import LABELS, TEXTS


@pytest.fixture
def notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))


def test_the_bar_names_the_stages_and_is_removed(classifier, notebook, capsys):
    plumbline.explain(*classifier, TEXTS, measures=["leave-one-out", "gradient-norm"])
    shown = capsys.readouterr().err
    assert "explain by leave-one-out" in shown and "0 of 6 texts" in shown
    assert "0 of 2 measures and protocols" in shown and "1 of 2 measures and protocols" in shown
    assert shown.rpartition("\r")[2].strip() == "", "its line is empty at the end"
    plumbline.explain(*classifier, TEXTS, measures=["leave-one-out"], progress=False)
    assert capsys.readouterr().err == ""


def test_the_bar_counts_what_is_done_and_estimates_nothing(notebook, capsys):
    with show_progress(True, 3) as begin:
        begin("read texts", 0)
        begin("explain by a, b", 2)
        for _ in range(2):
            with Progress(6, "seed 0", "text") as progress:
                progress.update(6)
        begin("score by c", 1)
    counts = [int(count) for count in re.findall(r"(\d) of 3 measures", capsys.readouterr().err)]
    assert counts == sorted(counts) and {0, 2} <= {*counts}


def test_a_log_has_a_line_for_each_stage(classifier, capsys):
    given = {"measures": ["random", "gradient-norm", "leave-one-out"], "protocols": ["agreement"]}
    plumbline.evaluate(*classifier, TEXTS, LABELS, **given)
    lines = [re.sub(r"\d+\.\d s", "N s", line) for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "plumbline: read texts: N s (0 of 4 measures and protocols)",
        "plumbline: predict: N s (0 of 4 measures and protocols)",
        "plumbline: explain by random and 1 more: N s (2 of 4 measures and protocols)",
        "plumbline: explain by leave-one-out: N s (3 of 4 measures and protocols)",
        "plumbline: score by agreement: N s (4 of 4 measures and protocols)",
    ]


def test_a_stage_that_fails_has_no_line(capsys):
    with pytest.raises(ValueError), show_progress(True, 1) as begin:
        begin("predict", 0)
        raise ValueError
    assert capsys.readouterr().err == ""


@pytest.fixture
def bars_of_transformers():
    """Progress bars of transformers, as a user has them by default."""
    shown = logging.is_progress_bar_enabled()
    logging.enable_progress_bar()
    yield
    (logging.enable_progress_bar if shown else logging.disable_progress_bar)()


@pytest.mark.parametrize("terminal", [True, False])
def test_bars_of_transformers_do_not_break_in(terminal, saved_classifier, bars_of_transformers, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    AutoModelForSequenceClassification.from_pretrained(saved_classifier)
    assert "Loading weights" in capsys.readouterr().err
    plumbline.explain(str(saved_classifier), texts=TEXTS[:2], measures=["gradient-norm"])
    assert "Loading weights" not in capsys.readouterr().err
    # Afterwards they are shown again.
    AutoModelForSequenceClassification.from_pretrained(saved_classifier)
    assert "Loading weights" in capsys.readouterr().err


def test_bars_of_downloads_stay_on_a_terminal(bars_of_transformers, monkeypatch):
    with without_bars():
        assert are_progress_bars_disabled()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with without_bars():
        assert not are_progress_bars_disabled() and not logging.is_progress_bar_enabled()
    assert logging.is_progress_bar_enabled() and not are_progress_bars_disabled()


def test_a_user_without_bars_of_transformers_gets_none(bars_of_transformers, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    logging.disable_progress_bar()
    with without_bars():
        assert are_progress_bars_disabled()
    assert are_progress_bars_disabled() and not logging.is_progress_bar_enabled()


def test_what_is_printed_while_a_model_is_saved_is_shown(classifier, bars_of_transformers, capsys, monkeypatch):
    model, tokenizer = classifier
    save = model.save_pretrained
    monkeypatch.setattr(model, "save_pretrained", lambda folder: (print("a notice", file=sys.stderr), save(folder)))
    plumbline.explain(model, tokenizer, TEXTS[:2], measures=["gradient-norm"], progress=False)
    assert capsys.readouterr().err == "a notice\n"
