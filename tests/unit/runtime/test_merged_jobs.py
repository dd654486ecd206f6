"""The jobs that `snakemake --touch` writes for a merge."""

import json
from types import SimpleNamespace

from snakemake.iocontainers import InputFiles, OutputFiles, Params

from plumbline.runtime.merged_jobs import write_jobs


def job(rule: str, output: dict[str, str], params: dict) -> SimpleNamespace:
    lists = {"input": InputFiles(["a.parquet"]), "output": OutputFiles(fromdict=output)}
    return SimpleNamespace(
        rule=SimpleNamespace(name=rule), wildcards_dict={"seeds": "0-1"}, params=Params(fromdict=params), **lists
    )


def test_jobs_with_a_manifest_have_their_params(tmp_path):
    train = job("train", {"weights": "w", "manifest": "m.json"}, {"seeds": [0, 1], "code": "c0de", "rates": (0.5,)})
    table = job("table", {"parquet": "t.parquet"}, {"code": "c0de"})
    write_jobs(tmp_path / "jobs.json", [train, table])
    keys = {"wildcards": {"seeds": "0-1"}, "inputs": ["a.parquet"]}
    params = {"seeds": [0, 1], "code": "c0de", "rates": [0.5]}
    assert json.loads((tmp_path / "jobs.json").read_text()) == [
        {"rule": "train", **keys, "outputs": ["w", "m.json"], "manifest": "m.json", "params": params},
        {"rule": "table", **keys, "outputs": ["t.parquet"], "manifest": "", "params": {}},
    ]
