"""The last lines of a run."""

import pandas as pd
import pytest

from plumbline.papers.schemas import REPRODUCTION
from plumbline.runtime.summary import durations, left_out, ran, reproduced, summary
from plumbline.store import write_table

LOG = """Building DAG of jobs...

[Mon Nov 16 23:59:50 2026]
localrule prepare:
    input: raw/a
    output: results/data/a
    jobid: 4
    reason: Missing output files: jobid: 9

[Mon Nov 16 23:59:52 2026]
rule attribute_together_1:
    output: b
    jobid: 14
    wildcards: dataset=a

[Mon Nov 16 23:59:58 2026]
Error in rule attribute_together_1:
    message: None
    jobid: 14
    output: b

Trying to restart job 14.
[Tue Nov 17 00:00:00 2026]
localrule attribute_together_1:
    output: b
    jobid: 14

[Tue Nov 17 00:00:20 2026]
Finished jobid: 4 (Rule: prepare)
1 of 3 steps (33%) done
[Tue Nov 17 00:01:05 2026]
Finished jobid: 14 (Rule: attribute_together_1)
[Tue Nov 17 00:01:05 2026]
localrule all:
    input: b
    jobid: 0
[Tue Nov 17 00:01:06 2026]
Finished jobid: 0 (Rule: all)
"""


def test_jobs_take_from_their_last_start_to_their_end():
    assert durations(LOG) == ([("prepare", 30.0), ("attribute_together", 65.0)], 76.0)
    assert durations("nothing of a job") == ([], 0.0)


def test_what_ran():
    assert ran(LOG, 1) == [
        "plumbline: 2 jobs done in 1:16; 1 was up to date.",
        "  Jobs: prepare 1, attribute_together 1.",
        "  Longest: attribute_together, 1:05 of 1:35 of all jobs together.",
    ]
    assert ran("", 0) == ["plumbline: 0 jobs done in 0:00."]


def test_many_rules_are_not_all_named():
    told = "".join(f"[Mon Nov 16 23:59:50 2026]\nFinished jobid: {n} (Rule: rule{n % 12})\n" for n in range(25))
    assert ran(told.replace("rule0)", "train)"), 0)[1].startswith("  Jobs: train 3, rule")
    assert ran(told, 0)[1].endswith("others 8.")


def test_reasons_that_differ_in_names_alone_are_told_once():
    lacking = [f"measure 'm{n}' needs heads, which model 'a' does not provide" for n in range(4)]
    told = left_out([*lacking, lacking[0], "model 'b' reads pictures", "model 'c' is of 'd'", "model 'e' cannot", "no"])
    assert told[0] == f"  Left out: {lacking[0]} (3 more of the kind)."
    assert told[1:3] == ["  Left out: model 'b' reads pictures.", "  Left out: model 'c' is of 'd'."]
    assert told[3] == "  Left out for other reasons: 2 pairs; `plumbline runs` lists them all."
    assert all(len(line) <= 120 for line in left_out(["model 'x' does " + "this and " * 40]))
    assert left_out([]) == []


@pytest.fixture
def compared(tmp_path):
    """A table of published numbers of which two are judged and one is met."""
    row = {field.name: None for field in REPRODUCTION.schema}
    row |= {"study": "s", "table": "t", "dataset": "d", "metric": "f1", "published": 0.5, "note": ""}
    frame = pd.DataFrame([{**row, "within": within} for within in (True, False, None)])
    (tmp_path / "tables").mkdir()
    write_table(tmp_path / "tables/reproduction.parquet", REPRODUCTION, frame.to_dict("list"))
    return tmp_path


def test_published_numbers_are_counted(compared):
    (told,) = reproduced(compared)
    assert "1 of 2" in told and "within tolerance" in told
    (compared / "tables/reproduction.parquet").write_bytes(b"cut off")
    assert reproduced(compared) == []
    assert reproduced(compared / "nowhere") == []


def test_the_whole_is_short_and_names_what_there_is(compared):
    (compared / "report").mkdir()
    (compared / "report/index.html").write_text("")
    reasons = [f"model '{n}' has reason {'x' * n}" for n in range(30)]
    told = summary(LOG, 3, reasons, compared).splitlines()
    assert told[-1] == f"  See {compared}/report/index.html, {compared}/tables."
    assert len(told) <= 15
    assert summary(LOG, 3, [], compared / "nowhere").splitlines() == ran(LOG, 3)
