"""What the end of a run says of its failed jobs."""

import pytest

from plumbline.runtime.failures import Failure, failures, tell

ERROR = """\
RuleException:
CalledProcessError in file "rules/train.smk", line 45:
Command 'set -euo pipefail;  python .snakemake/scripts/tmp.train.py' {how}.
[Mon Nov 16 01:29:20 2026]
Error in rule {rule}:
    message: {message}
    jobid: {job}
    output: results/models/sst/plain/cnn/{job}/weights.safetensors
    log: results/logs/{rule}/sst/plain/cnn/{job}.log (check log file(s) for error details)
"""


def error(job=7, rule="train", how="returned non-zero exit status 1", message="None"):
    return ERROR.format(job=job, rule=rule, how=how, message=message)


@pytest.fixture
def log(tmp_path):
    def write(text, job=7):
        path = tmp_path / f"results/logs/train/sst/plain/cnn/{job}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return write


def test_a_sentence_for_people_is_the_reason(tmp_path, log):
    log("plumbline: The texts are empty.\n")
    name = "results/logs/train/sst/plain/cnn/7.log"
    assert failures(error(), tmp_path) == [Failure("train", " sst/plain/cnn/7", "The texts are empty.", name)]


def test_an_exception_is_told_with_its_notes_and_without_its_traceback(tmp_path, log):
    log(
        'Traceback (most recent call last):\n  File "a.py", line 1, in b\n    c\nValueError: no.\nFrom the measure d.\n'
    )
    assert failures(error(), tmp_path)[0].reason == "ValueError: no. From the measure d."


@pytest.mark.parametrize(
    ("how", "message", "reason"),
    [
        ("returned non-zero exit status 137", "None", "killed by signal 9, perhaps for lack of memory"),
        ("died with <Signals.SIGTERM: 15>", "None", "killed by signal 15"),
        ("returned non-zero exit status 1", "SLURM status is: 'TIMEOUT'.", "SLURM status is: 'TIMEOUT'."),
        ("returned non-zero exit status 1", "None", "it ended without a word"),
    ],
)
def test_a_job_that_could_say_nothing(tmp_path, how, message, reason):
    assert failures(error(how=how, message=message), tmp_path)[0].reason == reason


def test_a_job_that_failed_twice_counts_once_and_one_that_was_finished_later_not_at_all(tmp_path):
    again = error(7) + "Trying to restart job 7.\n" + error(8) + error(7) + error(1)
    again += "[Mon Nov 16 01:30:20 2026]\nFinished jobid: 8 (Rule: train)\nFinished jobid: 17 (Rule: train)\n"
    assert [one.about[-1] for one in failures(again, tmp_path)] == ["7", "1"]


def test_the_end_says_which_and_why():
    told = tell(
        [Failure("train", " sst/plain/cnn/7", "The texts are empty.", "a.log"), Failure("report", "", "No.", "")]
    )
    assert told.splitlines() == [
        "plumbline: 2 jobs failed; what does not need them is done.",
        "  train sst/plain/cnn/7: The texts are empty. (a.log)",
        "  report: No.",
        "  The same command goes on from here.",
    ]


GROUP = """\
[Mon Nov 16 01:29:20 2026]
    message: SLURM-job '12' failed, SLURM status is: 'FAILED'.
    jobs:
        rule embed:
            jobid: 6
        rule train:
            jobid: 7
    [Mon Nov 16 01:29:20 2026]
    Error in rule embed:
        jobid: 6
        output: results/data/sst/embedding.safetensors
        log: results/logs/embed/sst.log (check log file(s) for error details)
    [Mon Nov 16 01:29:20 2026]
    Error in rule train:
        jobid: 7
        output: results/models/sst/plain/cnn/7/weights.safetensors
        log: results/logs/train/sst/plain/cnn/7.log (check log file(s) for error details)
"""


def test_of_a_failed_group_the_job_is_told_that_says_why(tmp_path, log):
    log("plumbline: The texts are empty.\n")
    (failure,) = failures(GROUP, tmp_path)
    assert failure[:3] == ("train", " sst/plain/cnn/7", "The texts are empty.")


def test_of_a_failed_group_in_which_none_says_why_all_are_told(tmp_path):
    told = failures(GROUP, tmp_path)
    assert [one.rule for one in told] == ["embed", "train"]
    assert {one.reason for one in told} == {"SLURM-job '12' failed, SLURM status is: 'FAILED'."}


def test_a_lone_job_that_says_nothing_is_told_beside_a_group_that_does(tmp_path, log):
    log("plumbline: The texts are empty.\n")
    assert [one.rule for one in failures(error(job=9, rule="score") + GROUP, tmp_path)] == ["score", "train"]
