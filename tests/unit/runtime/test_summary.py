"""The summary of a run."""

import pandas as pd
import pytest

from plumbline.papers.comparison import stored_verdict
from plumbline.papers.schemas import REPRODUCTION
from plumbline.runtime.events import JobRecord, LogHandler
from plumbline.runtime.summary import exclusion_summary, job_summary, summary
from plumbline.store import read_table, write_table

BEGAN = 1000.0


def run_of(*jobs: tuple[str, float, float, str]) -> LogHandler:
    """A run whose jobs have a rule, a start, an end and a reason of failure."""
    events = LogHandler(None, None)
    for number, (rule, started, ended, reason) in enumerate(jobs):
        events.jobs[number] = JobRecord(rule, {"dataset": "sst"}, 1, 0, None, [], [rule], ["a.log"], BEGAN + started)
        events.jobs[number].ended, events.jobs[number].failed = BEGAN + ended, bool(reason)
        events.jobs[number].reason = reason
    events.began, events.now = BEGAN, lambda: BEGAN + 76
    return events


RUN = run_of(("prepare", 0, 30, ""), ("attribute", 10, 75, ""), ("all", 75, 76, ""))


def test_finished_jobs():
    assert job_summary(RUN, 1) == [
        "plumbline: 2 jobs done in 1:16; 1 was up to date.",
        "  Jobs: prepare 1, attribute 1.",
        "  Longest: attribute, 1:05 of 1:35 of all jobs together.",
    ]
    assert job_summary(run_of(), 0) == ["plumbline: 0 jobs done in 1:16."]


def test_many_rules_are_not_all_named():
    events = run_of(*((f"rule-{number % 12}", 0, 1, "") for number in range(25)))
    line = job_summary(events, 0)[1]
    assert line.startswith("  Jobs: rule-0 3, rule-") and line.endswith("others 8.")


def test_a_failed_run_names_the_failed_jobs_and_reasons(tmp_path):
    events = run_of(("train", 0, 5, "The texts are empty."), ("report", 0, 5, "No."), ("embed", 0, 5, ""))
    assert summary(events, 0, ["left out"], ["found"], tmp_path, True)[-4:] == [
        "plumbline: 2 jobs failed; all jobs that do not need them are done.",
        "  train sst: The texts are empty. (a.log)",
        "  report sst: No. (a.log)",
        "  The same command continues from here.",
    ]
    assert not any("failed" in line for line in summary(run_of(), 0, [], [], tmp_path, True))


def test_reasons_that_differ_only_in_names_are_shown_once():
    lacking = [f"measure 'm{n}' needs heads, which model 'a' does not provide" for n in range(4)]
    lines = exclusion_summary(
        [*lacking, lacking[0], "model 'b' reads images", "model 'c' is of 'd'", "model 'e' cannot", "no"]
    )
    assert lines[0] == f"  Left out: {lacking[0]} (3 more of the kind)."
    assert lines[1:3] == ["  Left out: model 'b' reads images.", "  Left out: model 'c' is of 'd'."]
    assert lines[3] == "  Left out for other reasons: 2 pairs; `plumbline runs` lists them all."
    assert all(len(line) <= 120 for line in exclusion_summary(["model 'x' does " + "this and " * 40]))
    assert exclusion_summary([]) == []


@pytest.fixture
def compared(tmp_path):
    """A table of three published numbers, of which two are judged and one is within tolerance."""
    row = {field.name: None for field in REPRODUCTION.schema}
    row |= {"study": "s", "table": "t", "dataset": "d", "metric": "f1", "published": 0.5, "note": ""}
    frame = pd.DataFrame([{**row, "within": within} for within in (True, False, None)])
    (tmp_path / "tables").mkdir()
    write_table(tmp_path / "tables/reproduction.parquet", REPRODUCTION, frame.to_dict("list"))
    return tmp_path


def test_a_run_that_judges_no_published_number_does_not_mention_them(compared):
    path = compared / "tables/reproduction.parquet"
    table = read_table(path, REPRODUCTION)
    write_table(path, REPRODUCTION, table.slice(2))
    assert stored_verdict(compared) == []


def test_published_numbers_are_counted(compared):
    (sentence,) = stored_verdict(compared)
    assert "1 of 2" in sentence and "within tolerance" in sentence
    (compared / "tables/reproduction.parquet").write_bytes(b"cut off")
    assert stored_verdict(compared) == []
    assert stored_verdict(compared / "nowhere") == []


def test_the_summary_is_short_and_names_existing_results(compared):
    (compared / "report").mkdir()
    (compared / "report/index.html").write_text("")
    reasons = [f"model '{n}' has reason {'x' * n}" for n in range(30)]
    lines = summary(RUN, 3, reasons, ["1 of 2 is met."], compared, False)
    assert lines[-1] == f"  See {compared}/report/index.html, {compared}/tables."
    assert len(lines) <= 15 and "  1 of 2 is met." in lines
    assert summary(RUN, 3, [], [], compared / "nowhere", False) == job_summary(RUN, 3)
