"""Tables in files: every format is read alike, and faults name the file, the line and what to write."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plumbline.data.tabular import TableFile
from plumbline.errors import PlumblineError

ROWS = [
    {"id": "1", "body": 'She said "good", twice', "stars": "5"},
    {"id": "2", "body": "two\nlines; naïve", "stars": "1"},
    {"id": "3", "body": "tab\tinside", "stars": "4"},
]


def write(path: Path, rows: list[dict] = ROWS, separator: str = ",", encoding: str = "utf-8") -> str:
    """A table in the format of the file's ending."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding=encoding)
    else:
        with path.open("w", newline="", encoding=encoding) as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter=separator)
            writer.writeheader()
            writer.writerows(rows)
    return str(path)


def read(table: TableFile) -> list[dict]:
    return [{key: row.values[key] for key in ("body", "stars")} for row in table.rows(["body", "stars"])]


EXPECTED = [{"body": row["body"], "stars": row["stars"]} for row in ROWS]


@pytest.mark.parametrize(
    ("name", "separator"),
    [
        ("a.csv", ","),
        ("a.csv", ";"),
        ("a.csv", "\t"),
        ("a.csv", "|"),
        ("a.tsv", "\t"),
        ("a.jsonl", ""),
        ("a.parquet", ""),
    ],
)
def test_every_format_gives_the_same_rows(name, separator, tmp_path):
    table = TableFile(write(tmp_path / name, separator=separator or ","))
    assert read(table) == EXPECTED
    assert table.columns() == ["id", "body", "stars"]


def test_rows_know_their_first_line(tmp_path):
    rows = list(TableFile(write(tmp_path / "a.csv")).rows(["body"]))
    # The second row has two lines.
    assert [row.number for row in rows] == [2, 3, 5]
    assert rows[2].where == f"'{tmp_path / 'a.csv'}', line 5"
    assert next(TableFile(write(tmp_path / "a.parquet")).rows(["body"])).where.endswith("a.parquet', row 1")


def test_a_stated_format_and_separator_override_the_ending_and_the_heading(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("body,stars;x\ngood,1;2\n")
    assert TableFile(str(path), format="csv", separator=";").columns() == ["body,stars", "x"]
    assert next(TableFile(str(path), format="csv", separator=";").rows(["x"])).values == {"x": "2"}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1252", "utf-16"])
def test_other_encodings(encoding, tmp_path):
    path = write(tmp_path / "a.csv", encoding=encoding)
    stated = "utf-8" if encoding == "utf-8-sig" else encoding
    assert read(TableFile(path, encoding=stated)) == EXPECTED


def test_a_very_long_text_is_read(tmp_path):
    path = write(tmp_path / "a.csv", [{"body": "word " * 50_000, "stars": "1"}])
    assert len(read(TableFile(path))[0]["body"]) == 250_000


def fault(table: TableFile, columns: tuple[str, ...] = ("body", "stars")) -> str:
    with pytest.raises(PlumblineError) as error:
        list(table.rows(columns))
    assert "\n" not in str(error.value)
    return str(error.value)


def test_bytes_of_another_encoding_are_refused_with_their_line_and_the_option(tmp_path):
    path = write(tmp_path / "a.csv", encoding="cp1252")
    assert fault(TableFile(path)) == (
        f"'{path}', line 4 is not utf-8 text: write its `encoding:`, such as cp1252 (Windows) or latin-1, or save it "
        "as UTF-8."
    )
    wide = write(tmp_path / "b.csv", encoding="utf-16")
    assert "line 1 is not utf-8 text: write `encoding: utf-16`" in fault(TableFile(wide))


def test_a_missing_column_is_named_with_those_there_are(tmp_path):
    path = write(tmp_path / "a.csv")
    assert fault(TableFile(path), ("boddy",)) == (
        f"'{path}' has no column 'boddy'; did you mean 'body'? Its columns are id, body, stars."
    )
    assert fault(TableFile(path), ("xxxx",)) == f"'{path}' has no column 'xxxx'; choose from: body, id, stars."
    (tmp_path / "b.csv").write_text("body,body\na,b\n")
    assert "has two columns 'body'; rename one." in fault(TableFile(str(tmp_path / "b.csv")))


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.csv", "body,stars\na,1\nb,2,3\n", "line 3: the row has 3 fields, but the header has 2"),
        ("a.csv", 'body,stars\na,1\n"b,2\nc,3\n', "line 3: the row cannot be read (unexpected end of data); double"),
        ("a.csv", 'body,stars\n"a"b,1\n', "line 2: the row cannot be read"),
        ("a.csv", "", "has no column 'body'; none is available."),
        ("a.jsonl", '{"body": "a", "stars": 1}\n{"body": }\n', "line 2 is not JSON: Expecting value"),
        ("a.jsonl", '[{"body": "a", "stars": 1}]\n', "line 1 is not an object; write one object, {...}, on each line."),
        ("a.jsonl", "[\n", "line 1 is not JSON; write one object"),
        ("a.parquet", "body,stars\n", "is not Parquet"),
    ],
)  # fmt: skip
def test_an_unreadable_line_is_named(name, content, complaint, tmp_path):
    (tmp_path / name).write_text(content)
    assert complaint in fault(TableFile(str(tmp_path / name)))


def test_plain_quotation_marks_are_characters(tmp_path):
    (tmp_path / "a.tsv").write_text('body\tstars\n"so\t1\nsaid "no\t2\n')
    table = TableFile(str(tmp_path / "a.tsv"), quotes=False)
    assert read(table) == [{"body": '"so', "stars": "1"}, {"body": 'said "no', "stars": "2"}]


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    assert "does not exist" in fault(TableFile(str(tmp_path / "none.csv")))
    assert "is a folder; give a file" in fault(TableFile(str(tmp_path), format="csv"))
