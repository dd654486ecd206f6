"""Recorded runs, and pages whose numbers are read from them."""

import json
import os
import re
from pathlib import Path
from shutil import copyfile, copytree

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from matplotlib.pyplot import imread

from plumbline.cli import main
from plumbline.config.resolve import resolve
from plumbline.errors import PlumblineError
from plumbline.pages import WIDTH, fill_page
from plumbline.record import _without_folders, overview, record_run

PROJECT = Path(__file__).parents[2]
# The templates of pages and the pages.
PAGES = {page: PROJECT / f"docs/studies/{page.parent.name}.md" for page in PROJECT.glob("reproductions/*/page.md")}
PAGES[PROJECT / "reproductions/findings.md"] = PROJECT / "docs/findings.md"
PAGES |= {
    PROJECT / f"reproductions/{name}.md": PROJECT / f"docs/studies/{name}.md" for name in ("quirks", "results", "trust")
}
FRONT = PROJECT / "reproductions/front-page.md"
PAGES[FRONT] = PROJECT / "README.md"
ROWS = pd.DataFrame(
    {
        "measure": ["lime", "gradient", "none"],
        "value": [0.3125, -0.5, None],
        "ci_low": [0.25, None, None],
        "ci_high": [0.375, None, None],
    }
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A recorded run with one table."""
    (tmp_path / "run/tables").mkdir(parents=True)
    pq.write_table(pa.Table.from_pandas(ROWS, preserve_index=False), tmp_path / "run/tables/erasure.parquet")
    return tmp_path / "run"


def fill(run: Path, text: str) -> str:
    (run / "page.md").write_text(text, encoding="utf-8")
    return fill_page(run / "page.md").partition("-->\n\n")[2]


def test_numbers_are_read_by_the_keys_of_their_rows(run):
    assert fill(run, 'It is {{ value("erasure", "value", measure="lime") | number }}.') == "It is 0.31.\n"
    assert fill(run, '{{ interval("erasure", measure="lime") }}') == "0.31 [0.25, 0.38]\n"
    assert fill(run, '{{ interval("erasure", 1, measure="gradient") }}') == "−0.5\n", "no interval"
    assert fill(run, '{{ rows("erasure", measure=["lime", "gradient"])["value"].sum() | number(4) }}') == "−0.1875\n"


def test_intervals_of_tau_are_read_where_a_table_has_no_value(run):
    pq.write_table(pa.table({"tau": [0.5], "ci_low": [0.25], "ci_high": [1.0]}), run / "tables/trust.parquet")
    assert fill(run, '{{ interval("trust") }}') == "0.50 [0.25, 1.00]\n"
    both = pa.table({"value": [0.75], "tau": [1.0], "ci_low": [0.5], "ci_high": [1.0]})
    pq.write_table(both, run / "tables/sensitivity.parquet")
    assert fill(run, '{{ interval("sensitivity") }}') == "0.75 [0.50, 1.00]\n"


def test_a_page_may_read_several_runs(run):
    other = '{{ recorded("run").interval("erasure", measure="lime") }}'
    assert fill(run, other) == "0.31 [0.25, 0.38]\n", "also from the page of a run"
    (run.parent / "findings.md").write_text(other, encoding="utf-8")
    assert fill_page(run.parent / "findings.md").endswith("0.31 [0.25, 0.38]\n")
    (run.parent / "findings.md").write_text('{{ recorded("runs").rows("erasure") }}', encoding="utf-8")
    with pytest.raises(PlumblineError, match=r"findings\.md, line 1: .*runs' is not a recorded run"):
        fill_page(run.parent / "findings.md")


def test_a_study_that_was_run_in_parts_has_the_rows_of_all(run):
    copytree(run, run / "part")
    rows = ROWS.assign(measure=["shap", "rollout", "flow"], words=3)
    pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), run / "part/tables/erasure.parquet")
    pq.write_table(pa.table({"measure": ["lime"]}), run / "part/tables/roar.parquet")
    (run / "manifest.json").write_text('{"seconds": 1}', encoding="utf-8")
    (run / "part/manifest.json").write_text('{"seconds": 2}', encoding="utf-8")
    # The number of rows shows that each part is read once, and the one table that a part alone has is found.
    both = '{% set all = recorded("run", "part") %}{{ all.rows("erasure") | length }} '
    assert fill(run, both + '{{ all.interval("erasure", measure="shap") }}') == "6 0.31 [0.25, 0.38]\n"
    assert fill(run, both + '{{ all.interval("erasure", measure="lime") }}') == "6 0.31 [0.25, 0.38]\n"
    assert fill(run, both + '{{ all.rows("roar") | length }} {{ all.has("trust") }}') == "6 1 False\n"
    assert fill(run, both + "{{ all.manifest.seconds }}") == "6 1\n", "the first one's"
    assert fill(run, "{{ rows('erasure') | length }}") == "3\n", "the run itself stays as it is"
    with pytest.raises(PlumblineError, match=r"'.*none' is not a recorded run"):
        fill(run, '{{ recorded("run", "none").rows("erasure") }}')
    with pytest.raises(PlumblineError, match="there is no table 'trust' in"):
        fill(run, '{{ recorded("run", "part").rows("trust") }}')
    with pytest.raises(PlumblineError, match="has a part that is named twice"):
        fill(run, '{{ recorded("part", "part").rows("erasure") }}')


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{{ value("erasure", "value", measure="limes") }}', "table 'erasure' has no row with measure 'limes'"),
        (
            '{{ value("erasure", "value") }}',
            "has 3 values with any value; add a key that selects one: these rows differ in m",
        ),
        (
            '{{ rows("erasure", rank=1) }}',
            "table 'erasure' has no column 'rank'; choose from: ci_high, ci_low",
        ),
        ('{{ value("erasure", "valeu", measure="lime") }}', "no column 'valeu'; did you mean 'value'?"),
        ('{{ rows("erasure")["valeu"] }}', "has no attribute 'valeu'"),
        ('{{ interval("erasure", measure="none") }}', "table 'erasure' has no value for measure 'none'."),
        ('{{ rows("roar") }}', "there is no table 'roar'"),
        ("{{ manifest.seconds }}", "'manifest' is undefined"),
        ("{{ 1 + }}", "unexpected"),
    ],
)
def test_a_page_that_cannot_be_filled_is_refused_with_its_line(run, text, sentence):
    with pytest.raises(PlumblineError, match=re.escape(sentence)) as refused:
        fill(run, f"A heading\n\n{text}\n")
    assert "page.md, line 3: " in str(refused.value)


def test_paragraphs_and_items_are_wrapped_and_the_rest_is_kept(run):
    table, code = f"| {'a ' * 100}|", f"    {'b ' * 100}".rstrip()
    lists = f"- one\n  more\n- {'item ' * 40}\n\n1. first\n2. {'item ' * 40}"
    page = fill(run, f"{'word ' * 60}\n\n{lists}\n\n{table}\n\n{code}\n")
    assert table in page and code in page and "- one more\n- item" in page and "\n  item" in page
    assert "1. first\n2. item" in page and "\n   item" in page
    assert [line for line in page.splitlines() if len(line) > WIDTH] == [table, code]


def test_a_finished_run_is_recorded(run, tmp_path, capsys):
    study = {"name": "tiny", "datasets": {"mock-2": {}}, "models": {"average-tanh": {}}, "measures": {"gradient": {}}}
    results = tmp_path / "work/results"
    (results / "tables").mkdir(parents=True)
    pq.write_table(pa.Table.from_pandas(ROWS, preserve_index=False), results / "tables/erasure.parquet")
    with pytest.raises(PlumblineError, match="is not finished: its results have no manifest"):
        record_run(results, tmp_path / "kept")
    with pytest.raises(PlumblineError, match="There is no folder"):
        record_run(tmp_path / "nowhere", tmp_path / "kept")
    (results / "manifest.json").write_text(json.dumps({"study": study, "seconds": 7200.0}))
    os.utime(results / "manifest.json", (0, 0))
    with pytest.raises(PlumblineError, match="is newer than its manifest"):
        record_run(results, tmp_path / "kept")
    os.utime(results / "manifest.json")
    # The folder in which the study ran is as good as its results.
    for folder in (results, results.parent):
        assert main(["record", str(folder), "--into", str(tmp_path / "kept")]) == 0
        assert "3 files" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "kept/tables").iterdir()) == ["erasure.parquet"]
    assert resolve(yaml.safe_load((tmp_path / "kept/study.yaml").read_text())).study.name == "tiny"
    assert fill(tmp_path / "kept", "{{ (manifest.seconds / 3600) | number(1) }} hours") == "2.0 hours\n"
    with pytest.raises(PlumblineError, match="neither empty nor a recorded run"):
        record_run(results, run)


def test_a_page_is_written_to_a_file(run, tmp_path, capsys):
    (run / "page.md").write_text("# {{ rows('erasure') | length }} rows", encoding="utf-8")
    assert main(["fill", str(run / "page.md"), "--into", str(tmp_path / "docs/page.md")]) == 0
    assert (tmp_path / "docs/page.md").read_text().endswith("# 3 rows\n")
    assert main(["fill", str(run / "page.md")]) == 0 and capsys.readouterr().out.endswith("# 3 rows\n")
    (tmp_path / "mine.yaml").write_text("name: mine")
    assert main(["fill", str(run / "page.md"), "--into", str(tmp_path / "mine.yaml")]) == 1
    assert "was not written by `plumbline fill`" in capsys.readouterr().err
    assert (tmp_path / "mine.yaml").read_text() == "name: mine"
    assert main(["fill", str(run / "page.md"), "--into", str(tmp_path / "docs/page.md")]) == 0, (
        "its own may be replaced"
    )
    assert main(["fill", str(run / "none.md")]) == 1 and "There is no template" in capsys.readouterr().err


def test_a_figure_of_the_report_can_be_drawn_from_a_recorded_run(tmp_path):
    recorded = PROJECT / "reproductions/scorecard-minilm"
    (tmp_path / "page.md").write_text(
        '{{ plot("erasure", "Erasure", dataset="sst", model="minilm") }}', encoding="utf-8"
    )
    page = fill_page(tmp_path / "page.md", recorded, tmp_path / "out/page.md")
    name = f"{tmp_path.name}-erasure-sst-minilm.png"
    assert page.endswith(f"![Erasure](images/{name})\n") and (tmp_path / "out/images" / name).stat().st_size > 10_000


def test_published_numbers_stand_beside_ours(run):
    none = dict.fromkeys(("published_low", "published_high", "published_later", "ours_spread"))
    rows = [
        {**none, "dataset": "sst", "published": 0.4, "published_later": 0.34, "ours": 0.381, "ours_spread": 0.01}
        | {"tolerance": 0.08, "within": True},
        {**none, "dataset": "imdb", "published": 0.3, "published_low": 0.2, "published_high": 0.5, "ours": 0.9}
        | {"tolerance": 0.1, "within": False},
        {**none, "dataset": "snli", "published": 0.5, "ours": 0.6, "tolerance": None, "within": None},
    ]
    pq.write_table(pa.Table.from_pylist(rows), run / "tables/reproduction.parquet")
    assert fill(run, '{{ comparison(rows("reproduction"), "dataset") }}').splitlines() == [
        "| dataset | published | later run | ours | tolerance | within |",
        "|---|---|---|---|---|---|",
        "| sst | 0.40 | 0.34 | 0.38 ± 0.01 | 0.08 | yes |",
        "| imdb | 0.30 [0.20, 0.50] | – | 0.90 | 0.10 | **no** |",
        "| snli | 0.50 | – | 0.60 | – | not judged |",
    ]
    rows[0]["note"], rows[1]["note"] = "partial", None
    pq.write_table(pa.Table.from_pylist(rows), run / "tables/reproduction.parquet")
    noted = '{{ comparison(only(rows("reproduction"), within=[true, false]), "dataset", notes=true) }}'
    lines = [line.split(" | ")[-1] for line in fill(run, noted).splitlines()]
    assert lines == ["note |", "|---|---|---|---|---|---|---|", "partial |", " |"]


def test_some_of_several_rows_are_chosen_by_their_values(run):
    assert fill(run, '{{ only(rows("erasure"), measure=["lime", "none"], ci_low=0.25) | length }}') == "1\n"
    assert fill(run, '{{ only(rows("erasure"), measure="attention") | length }}') == "0\n"
    with pytest.raises(PlumblineError, match="the table has no column 'measures'; did you mean 'measure'"):
        fill(run, '{{ only(rows("erasure"), measures="lime") }}')


def test_pictures_are_drawn_next_to_the_page(tmp_path):
    (tmp_path / "study/tables").mkdir(parents=True)
    copyfile(PROJECT / "reproductions/sensitivity-sst/tables/trust.parquet", tmp_path / "study/tables/trust.parquet")
    page, link = tmp_path / "study/page.md", "![Which one?](images/study-trust.png)\n"
    page.write_text('{{ picture("trust", rows("trust"), "Which one?") }}', encoding="utf-8")
    assert fill_page(page).endswith(link) and not list(tmp_path.rglob("*.png"))
    assert fill_page(page, into=tmp_path / "docs/mine.md").endswith(link)
    assert imread(tmp_path / "docs/images/study-trust.png").shape[0] > 100
    page.write_text('{{ picture("trusts", rows("trust"), "Which one?") }}', encoding="utf-8")
    with pytest.raises(PlumblineError, match="no picture 'trusts'; did you mean 'trust'"):
        fill_page(page)


def test_a_run_inside_a_run_has_its_own_figures(tmp_path):
    for name in ("study", "study/beer"):
        copytree(PROJECT / "reproductions/vector-scale/beer", tmp_path / name)
    page = tmp_path / "study/page.md"
    page.write_text(
        '{{ rows("ground_truth") | length }} {{ recorded("beer").rows("reproduction", table="T1") | length }}\n\n'
        '{{ plot("vector-scale", "Scales", run="beer") }}',
        encoding="utf-8",
    )
    filled = fill_page(page, into=tmp_path / "docs/mine.md").partition("-->\n\n")[2]
    assert filled == "252 28\n\n![Scales](images/study-vector-scale-beer.png)\n"
    assert imread(tmp_path / "docs/images/study-vector-scale-beer.png").shape[0] > 100


def test_recorded_runs_are_listed_with_their_counts_and_hours(tmp_path, capsys):
    every = overview(PROJECT / "reproductions").splitlines()
    (line,) = [line for line in every if "| scorecard-minilm |" in line]
    tables = PROJECT / "reproductions/scorecard-minilm/tables"
    seconds = pd.read_parquet(tables / "timings.parquet")["seconds"].sum()
    judged = pd.read_parquet(tables / "reproduction.parquet").query("seed.isna() and within.notna()")
    results = judged[~judged["metric"].str.contains("size|length")]
    assert results.empty and len(judged) == 4, "only sizes of the data are published for this model"
    assert [cell.strip() for cell in line.split("|")[2:5]] == ["", "", f"{seconds / 3600:.2f}"]
    runs = [line.split("|")[1].strip() for line in every[2:]]
    assert {"attefa", "attefa/causes", "zhou/transformer"} < set(runs)
    assert runs == sorted(runs, key=lambda name: name.split("/")), "runs inside of a run follow it"
    assert main(["record", "--list", str(PROJECT / "reproductions")]) == 0 and line in capsys.readouterr().out
    assert main(["record", "--list", str(tmp_path)]) == 1 and "no recorded run" in capsys.readouterr().err


def test_folders_of_the_machine_are_not_recorded():
    study = {"models": {"m": {"checkpoint": "/home/me/minilm", "layers": [1, "/data/x"]}}, "name": "a/b"}
    assert _without_folders(study) == {"models": {"m": {"checkpoint": "minilm", "layers": [1, "x"]}}, "name": "a/b"}


@pytest.mark.parametrize("template", sorted(PAGES), ids=lambda path: PAGES[path].stem)
def test_committed_pages_are_those_of_the_recorded_tables(template, monkeypatch):
    monkeypatch.chdir(PROJECT)
    page = fill_page(template.relative_to(PROJECT))
    assert PAGES[template].read_text(encoding="utf-8") == page, "run make record"


@pytest.mark.parametrize("template", sorted(PAGES), ids=lambda path: PAGES[path].stem)
def test_templates_hold_no_numbers_of_their_own(template):
    text = template.read_text(encoding="utf-8")
    # What comes after the findings of the front page are instructions and studies that are not recorded yet.
    assert literals(text.partition("## Three lines")[0] if template == FRONT else text) == []


def literals(text: str) -> list[str]:
    """The numbers outside expressions; those of code, names such as H200, 0 and 1, and `95 %` are no results, nor are
    years, numbers of tables and figures, and what is said of a paper and its code."""
    sections = "What the study asks|How to run it|Where paper and code differ|All nine quirks"
    text = re.sub(rf"^## ({sections})\n.*?(?=^## |\Z)", "", text, flags=re.M | re.S)
    text = re.sub(r"\b(Tables?|Figures?)\s\d+((,|\sto|\sand)\s\d+(?!,\d))*|\b(19|20)\d\d\b(?![.,]\d)", "", text)
    prose = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", text, flags=re.S)
    prose = re.sub(r"`[^`]*`|^    .*$|\]\([^)]*\)", "", prose, flags=re.M)
    found = re.findall(r"(?<![\w.\-])\d[\d.,]*(?!\w)(?! %)", prose)
    return [number for number in found if number.strip(".,") not in ("0", "1")]


def test_a_number_of_its_own_is_found():
    text = "Of 12 it is {{ value(3) }}, 0.25 on an H200 (`share: 0.5`, τ 1).\n\n    code 7\n\nThen 95 % and bAbI-2, 42."
    text += "\n2019, Tables 2 and 3.\n## Where paper and code differ\n128 units\n## Limits\n7 seeds, Figure 4 and 2,000"
    assert literals(text) == ["12", "0.25", "42.", "7", "2,000"]
