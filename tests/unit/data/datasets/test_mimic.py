"""Diabetes and anemia, on notes and diagnoses in the format of MIMIC-III."""

import os
import re
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from plumbline.config.recipes import Preparation
from plumbline.data.corpus import SPLITS, Corpus, Example, stratified_splits
from plumbline.data.datasets.mimic import DEV, TEST, anemia, clean_notes, diabetes, discharge_notes
from plumbline.data.embeddings import word2vec_epochs
from plumbline.data.note_vectors import write_note_vectors
from plumbline.data.prepare import prepare
from plumbline.data.vector_file import read_vectors
from plumbline.errors import PlumblineError
from plumbline.registry import Registry
from tests.pipeline.publishers import write_mimic

HEADER = (
    '"ROW_ID","SUBJECT_ID","HADM_ID","CHARTDATE","CHARTTIME","STORETIME","CATEGORY","DESCRIPTION","CGID","ISERROR",'
    '"TEXT"\n'
)
CODES = '"ROW_ID","SUBJECT_ID","HADM_ID","SEQ_NUM","ICD9_CODE"\n'
REPORT = """Admission Date:  [**2151-7-16**]       Discharge Date:  [**2151-8-4**]

Service:
HISTORY OF PRESENT ILLNESS:  Mr. [**Known lastname 1829**] is an 86 year-old with ""severe"" COPD.
------------
Seen at[**Hospital1 18**]on 5mg!!
"""
# Marks end at the closing asterisks, however they stick to words; 5mg is split by the tokenizer.
WORDS = (
    "admission date : <DE> discharge date : <DE> service : history of present illness : mr. <DE> is an qqq year - old "
    'with " severe " copd . - seen at <DE> on qqq mg !'
)


def note(
    admission: object,
    text: str,
    kind: str = "Report",
    *,
    date: str = "2151-08-04",
    category: str = "Discharge summary",
    error: str = "",
) -> str:
    return f'174,22532,{admission},"{date}",,,"{category}","{kind}",,{error},"{text}"\n'


def write(raw: Path, notes: str, codes: str, **lists: str) -> Path:
    (raw / "mimic3").mkdir(exist_ok=True)
    (raw / "mimic3/NOTEEVENTS.csv").write_bytes((HEADER + notes).encode())
    (raw / "mimic3/DIAGNOSES_ICD.csv").write_bytes((CODES + codes).encode())
    for split in SPLITS:
        (raw / f"mimic3/{split}_50_hadm_ids.csv").write_text(lists.get(split, ""))
    return raw


NOTES = (
    note(101, "Later addendum.", "Addendum", date="2151-08-09")
    + note(102, "Slept well.", category="Nursing/other")
    + note(101, "First addendum.", "Addendum", date="2151-08-05")
    + note(102, "Dev text.")
    + note(101, REPORT, date="2151-08-07")
    + note("", "No admission.")
    + note(103, "Not requested.")
    + note(101, "Wrong patient.", error="1")
    + note(101, "Not a kind of summary.", "Draft")
    + note(104, "Test text.")
    + note(105, "Not coded.")
)
DIAGNOSES = '1,9,101,1,"25000"\n2,9,101,2,"4019"\n3,8,102,1,"25001"\n4,7,104,1,\n5,7,104,2,"4019"\n6,7,106,1,"4019"\n'


def test_diabetes_by_hand(tmp_path: Path) -> None:
    raw = write(tmp_path, NOTES, DIAGNOSES, train="101\n105\n", dev="102\n106\n", test="104\n")
    corpus = diabetes(raw, 0)
    assert corpus.classes == ["no diabetes", "diabetes"]
    # By patient; the report comes before its addenda, and these by date.
    assert corpus.examples == [
        Example("test", 0, ["test", "text", "."]),
        Example("dev", 0, ["dev", "text", "."]),
        Example("train", 1, [*WORDS.split(), "first", "addendum", ".", "later", "addendum", "."]),
    ]
    assert corpus.dropped == {"no diagnosis": {"train": 1}, "no discharge summary": {"dev": 1}}


def test_cleaner_by_hand() -> None:
    texts = [
        "BP 120/80,\tHR ____ [** 12 **] wow... (see (below)) a--b",
        "Dr.[**Last Name (STitle) **]'s [**Name (NI) 5**], [**2118-6-2**][**2118-6-3**]",
        "[**Open mark",
        "",
    ]
    assert [" ".join(words) for words in clean_notes(texts)] == [
        "bp qqq , hr _ <DE> wow . ( see ( below ) a - b",
        "dr. <DE> 's <DE> , <DE> <DE>",
        "[ * open mark",
        "",
    ]


def anemia_files(raw: Path, acute: int = 20, chronic: int = 20) -> Path:
    """Admissions with acute, with chronic, with another and with both kinds; the last one has no summary."""
    codes = [["2851"]] * acute + [["28521"], ["28529"]] * (chronic // 2) + [["2859"], ["2851", "28522"], ["2851"]]
    rows = [(1000 + k, code) for k, some in enumerate(codes) for code in some]
    notes = "".join(note(1000 + k, f"Text {'a' * k} .") for k in range(len(codes) - 1))
    return write(raw, notes, "".join(f'{k},{2000 - k},{k},1,"{code}"\n' for k, code in rows))


def test_anemia_by_hand(tmp_path: Path) -> None:
    corpus = anemia(anemia_files(tmp_path), 0)
    assert corpus.classes == ["chronic", "acute"]
    assert corpus.dropped == {"both kinds of anemia": {"all": 1}, "no discharge summary": {"all": 1}}
    # Chronic before acute, each by patient, whose numbers fall as those of admissions rise.
    assert [len(example.tokens[1]) for example in corpus.examples if example.tokens[1] != "."] == [
        *range(39, 19, -1),
        *range(19, 0, -1),
    ]
    assert [example.label for example in corpus.examples] == [0] * 20 + [1] * 20
    assert Counter((example.split, example.label) for example in corpus.examples) == {
        ("train", 0): 14, ("train", 1): 13, ("dev", 0): 2, ("dev", 1): 3, ("test", 0): 4, ("test", 1): 4
    }  # fmt: skip


def test_anemia_splits_are_drawn_with_the_seeds_of_the_study() -> None:
    from sklearn.model_selection import train_test_split

    labels = [0] * 60 + [1] * 90
    rest, test = train_test_split(range(150), stratify=labels, test_size=0.2, random_state=12939)
    train, dev = train_test_split(rest, stratify=[labels[k] for k in rest], test_size=0.15, random_state=13448)
    splits = stratified_splits(labels, TEST, DEV)
    for name, drawn in (("train", train), ("dev", dev), ("test", test)):
        assert [k for k, split in enumerate(splits) if split == name] == sorted(drawn)


def test_declared_preparations_are_recipes() -> None:
    for name, longer_than in (("diabetes", 6), ("anemia", None)):
        declaration = Registry().get("dataset", name)
        recipe = Preparation(**declaration.preparation)
        assert (recipe.longer_than, recipe.shorter_than, recipe.minimum_document_frequency) == (longer_than, 4000, 5)
        assert recipe.embedding.path == "mimic3/discharge_summaries.300d.vec"
        assert recipe.embedding.missing == "normal"
    assert Registry().get("dataset", "diabetes").counts == {"train": 8066, "dev": 1573, "test": 1729}


def test_the_notes_are_streamed(tmp_path: Path) -> None:
    path = write(tmp_path, "", "") / "mimic3/NOTEEVENTS.csv"
    other = note(7, "Slept well.\n" * 400, category="Nursing/other")
    with path.open("a") as file:
        for number in range(600):
            file.write(other)
            if number % 150 == 0:
                file.write(note(number, "Seen."))
    assert path.stat().st_size > 2_800_000
    list(discharge_notes(path))  # Whatever is made once is not of the notes.
    tracemalloc.start()
    found = [note.admission for note in discharge_notes(path)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == [0, 150, 300, 450]
    assert peak < 500_000


def damaged(raw: Path, **changes: str) -> Path:
    write(raw, NOTES, DIAGNOSES, train="101\n", dev="102\n", test="104\n")
    for name, content in changes.items():
        (raw / "mimic3" / f"{name}.csv").write_text(content, encoding="latin-1")
    return raw


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "NOTEEVENTS",
            HEADER.replace('"TEXT"', '"NOTE"'),
            ", line 1 does not name the column TEXT: the file is not from MIMIC-III v1.4, download it again.",
        ),
        (
            "DIAGNOSES_ICD",
            "",
            ", line 1 does not name the column SUBJECT_ID: the file is not from MIMIC-III v1.4, download it again.",
        ),
        (
            "NOTEEVENTS",
            HEADER + note(101, "One\ntwo.") + "174,22532,101\n",
            ", line 4 has 3 of 11 fields: the file is truncated or damaged, download it again.",
        ),
        (
            "NOTEEVENTS",
            (HEADER + note(101, "One\ntwo."))[:-4],
            ", line 3 is not CSV (unexpected end of data): the file is truncated or damaged, download it again.",
        ),
        (
            "NOTEEVENTS",
            HEADER + note(101, "A \xb5g."),
            ", after line 0, is not UTF-8 text: unpack the file if it is compressed, or download it again if it is "
            "damaged.",
        ),
        (
            "NOTEEVENTS",
            HEADER + note("x101", "One."),
            ", line 2 has 'x101' for the id of an admission (HADM_ID), which must be a number: download the file "
            "again.",
        ),
        (
            "DIAGNOSES_ICD",
            CODES + '1,9,one,1,"4019"\n',
            ", line 2 has 'one' for the id of an admission (HADM_ID), which must be a number: download the file again.",
        ),
        (
            "dev_50_hadm_ids",
            "102\nHADM_ID\n",
            ", line 2 has 'HADM_ID' for the id of an admission, which must be a number: download the file again.",
        ),
        (
            "test_50_hadm_ids",
            "104\n101\n",
            ", line 2 names admission 101, which is already in split 'train': download the lists again.",
        ),
        (
            "NOTEEVENTS",
            HEADER + note(103, "Another."),
            " contains no discharge summary of an admission that is listed in '{folder}' and has a diagnosis: download "
            "these files again.",
        ),
    ],
)
def test_bad_files_are_refused_in_one_sentence(tmp_path: Path, name: str, content: str, sentence: str) -> None:
    raw = damaged(tmp_path, **{name: content})
    with pytest.raises(PlumblineError) as caught:
        diabetes(raw, 0)
    folder = raw / "mimic3"
    assert str(caught.value) == f"'{folder / name}.csv'{sentence.format(folder=folder)}"


def test_too_few_admissions_with_anemia_are_refused(tmp_path: Path) -> None:
    raw = anemia_files(tmp_path, acute=1, chronic=4)
    with pytest.raises(PlumblineError) as caught:
        anemia(raw, 0)
    assert str(caught.value) == (
        f"'{raw / 'mimic3/NOTEEVENTS.csv'}' contains discharge summaries of 1 admissions with acute anemia and 4 with "
        "chronic, too few to split: download the complete files of MIMIC-III."
    )


@pytest.mark.parametrize(
    ("reader", "last"), [(diabetes, "'mimic3/test_50_hadm_ids.csv'"), (anemia, "'mimic3/DIAGNOSES_ICD.csv'")]
)
def test_missing_files_are_named_with_how_to_get_them(
    tmp_path: Path, reader: Callable[[Path, int], Corpus], last: str
) -> None:
    with pytest.raises(PlumblineError) as caught:
        reader(tmp_path, 0)
    assert f"and {last}, which are not in the folder" in str(caught.value)
    assert "https://physionet.org/content/mimiciii/1.4/ (credentialed access" in str(caught.value)


@pytest.mark.parametrize("reader", [diabetes, anemia])
def test_files_for_the_whole_workflow(tmp_path: Path, reader: Callable[[Path, int], Corpus]) -> None:
    write_mimic(tmp_path)
    name = reader.__name__
    declaration = Registry().get("dataset", name)
    recipe = Preparation(**declaration.preparation)
    summary = prepare(reader(tmp_path, 0), recipe, name, declaration.counts).summary
    assert sum(split["instances"] for split in summary["splits"].values()) == (200 if name == "diabetes" else 198)
    assert all(split["unknown_share"] == 0 for split in summary["splits"].values())
    assert all(min(split["instances_per_class"].values()) >= 5 for split in summary["splits"].values())


def test_vectors_of_notes_are_written_as_text(tmp_path: Path) -> None:
    write_mimic(tmp_path, documents=20)
    target = tmp_path / "vectors/notes.vec"
    write_note_vectors(tmp_path / "mimic3/NOTEEVENTS.csv", target, dimensions=6)
    first, *lines = target.read_text().splitlines()
    words = [line.split(" ")[0] for line in lines]
    assert first == f"{len(lines)} 6"
    # All words that occur twice, but nothing of other notes or of errors.
    assert {"<DE>", "qqq", ".", "patient", "insulin"} <= set(words)
    assert not {"slept", "complaints", "wrong"} & set(words)
    found = read_vectors(tmp_path, "vectors/notes.vec", words, 6)
    assert len(found) == len(words)
    assert all(np.abs(vector).max() > 0 for vector in found.values())
    assert [path.name for path in target.parent.iterdir()] == ["notes.vec"]


def test_epochs_depend_on_the_words_of_the_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gensim.models import Word2Vec

    seen: list[tuple[int, int]] = []
    train = Word2Vec.train

    def spy(self: Word2Vec, texts: object, **options: int) -> object:
        seen.append((options["total_words"], options["epochs"]))
        return train(self, texts, **options)

    monkeypatch.setattr(Word2Vec, "train", spy)
    path = write(tmp_path, note(1, "Good day.\n" * 20) + note(2, "Good night."), "") / "mimic3/NOTEEVENTS.csv"
    write_note_vectors(path, tmp_path / "notes.vec", dimensions=2)
    assert seen == [(63, word2vec_epochs(63))]
    assert re.match(r"3 2\n(\. |good |day )", (tmp_path / "notes.vec").read_text())


VECTORS = """
import sys
from pathlib import Path
from plumbline.data.note_vectors import write_note_vectors
write_note_vectors(Path(sys.argv[1]), Path(sys.argv[2]), dimensions=8)
"""


def test_vectors_of_notes_are_the_same_in_every_process(tmp_path: Path) -> None:
    write_mimic(tmp_path, documents=10)
    notes = tmp_path / "mimic3/NOTEEVENTS.csv"
    # Strings hash otherwise there than in this process, whatever its own seed is.
    other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    with subprocess.Popen(
        [sys.executable, "-c", VECTORS, str(notes), str(tmp_path / "other")],
        env={**os.environ, "PYTHONHASHSEED": other},
    ) as process:
        write_note_vectors(notes, tmp_path / "own", dimensions=8)
    assert process.returncode == 0
    assert (tmp_path / "own").read_bytes() == (tmp_path / "other").read_bytes()


@pytest.mark.parametrize(("notes", "count"), [("", 0), (note(1, "All differ."), 1)])
def test_notes_without_a_repeated_word_are_refused(tmp_path: Path, notes: str, count: int) -> None:
    path = write(tmp_path, notes, "") / "mimic3/NOTEEVENTS.csv"
    with pytest.raises(PlumblineError) as caught:
        write_note_vectors(path, tmp_path / "notes.vec")
    assert str(caught.value) == (
        f"Word vectors cannot be trained on '{path}' because no word occurs twice in its {count} discharge summaries: "
        "download the complete file of MIMIC-III."
    )
    assert not (tmp_path / "notes.vec").exists()
