"""The progress bar of an evaluation."""

import plumbline

from .conftest import TEXTS


def test_the_bar_names_the_stages_and_is_removed(classifier, capsys):
    plumbline.explain(*classifier, TEXTS, measures=["leave-one-out"])
    shown = capsys.readouterr().err
    assert "explain: leave-one-out" in shown and "0/6 text" in shown
    assert shown.rpartition("\r")[2].strip() == "", "its line is empty at the end"
    plumbline.explain(*classifier, TEXTS, measures=["leave-one-out"], progress=False)
    assert capsys.readouterr().err == ""
