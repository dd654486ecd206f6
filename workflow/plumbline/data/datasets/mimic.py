"""Discharge summaries of MIMIC-III (Johnson et al. 2016), two tasks, cleaned as in Jain & Wallace (2019)."""

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from plumbline.data.corpus import SPLITS, Corpus, Example, stratified_splits
from plumbline.data.sources import declared_files, read_lines
from plumbline.data.tokenize import NUMBER
from plumbline.errors import PlumblineError
from plumbline.registry import dataset
from plumbline.runtime.progress import Progress, shown

CATEGORY, DESCRIPTIONS = "Discharge summary", ("Report", "Addendum")
DIABETES, ACUTE, CHRONIC = "25000", "2851", "2852"  # ICD-9 codes 250.00, 285.1 and 285.2 as the tables write them
TEST, DEV = (0.2, 12939), (0.15, 13448)  # share and seed of the splits of Anemia
IDENTITY = "<DE>"
FIELD_LIMIT = 10_000_000  # characters of a field, so that an unclosed quote does not read the rest of the file
TOKENIZER_TEXTS = 2000  # texts after which the tokenizer is replaced
# Tokens are separated by single spaces, also inside a mark and a run.
_MARK = re.compile(r"\[ ?\* ?\*.*?\* ?\* ?\]")
_RUN = re.compile(r"([^a-zA-Z0-9])(?:\s*\1)+\s*")


class DischargeNote(NamedTuple):
    """A discharge summary or an addendum to one."""

    admission: int
    addendum: bool
    date: str
    text: str


class Stay(NamedTuple):
    """An admission's patient and ICD-9 codes."""

    subject: int
    codes: set[str]


def read_columns(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """The named columns of each row of a table of MIMIC-III, with the number of the row's last line; streamed."""
    csv.field_size_limit(FIELD_LIMIT)
    with path.open("rb") as file, Progress(path.stat().st_size, path.name, "byte") as progress:
        rows = csv.reader(io.TextIOWrapper(file, encoding="utf-8", newline=""), strict=True)
        try:
            header = [name.upper() for name in next(rows, [])]
            missing = [column for column in columns if column not in header]
            if missing:
                raise PlumblineError(
                    f"'{path}', line 1 does not name the column {missing[0]}: the file is not from MIMIC-III v1.4, "
                    "download it again."
                )
            indices = [header.index(column) for column in columns]
            for row in rows:
                progress.update(file.tell() - progress.done)
                if row and len(row) != len(header):
                    raise PlumblineError(
                        f"'{path}', line {rows.line_num} has {len(row)} of {len(header)} fields: the file is truncated "
                        "or damaged, download it again."
                    )
                if row:
                    yield rows.line_num, [row[k] for k in indices]
        except csv.Error as error:
            raise PlumblineError(
                f"'{path}', line {rows.line_num} is not CSV ({error}): the file is truncated or damaged, download it "
                "again."
            ) from None
        except UnicodeDecodeError:
            raise PlumblineError(
                f"'{path}', after line {rows.line_num}, is not UTF-8 text: unpack the file if it is compressed, or "
                "download it again if it is damaged."
            ) from None


def _number(field: str, what: str, path: Path, line: int) -> int:
    try:
        return int(field)
    except ValueError:
        raise PlumblineError(
            f"'{path}', line {line} has '{field}' for {what}, which must be a number: download the file again."
        ) from None


def discharge_notes(path: Path) -> Iterator[DischargeNote]:
    """The discharge summaries and addenda in NOTEEVENTS.csv that are not marked as errors; streamed."""
    columns = ["CATEGORY", "DESCRIPTION", "ISERROR", "HADM_ID", "CHARTDATE", "TEXT"]
    for line, (category, description, error, admission, date, text) in read_columns(path, columns):
        if category == CATEGORY and description in DESCRIPTIONS and admission and not error:
            number = _number(admission, "the id of an admission (HADM_ID)", path, line)
            yield DischargeNote(number, description != DESCRIPTIONS[0], date, text)


def read_summaries(path: Path, admissions: Collection[int]) -> dict[int, str]:
    """The discharge summary of each of the admissions that has one: the report, then its addenda by date."""
    notes: dict[int, list[DischargeNote]] = {}
    for note in discharge_notes(path):
        if note.admission in admissions:
            notes.setdefault(note.admission, []).append(note)
    return {
        admission: " ".join(note.text for note in sorted(parts, key=lambda note: (note.addendum, note.date)))
        for admission, parts in notes.items()
    }


def read_diagnoses(path: Path) -> dict[int, Stay]:
    """Each admission in DIAGNOSES_ICD.csv that has a code."""
    stays: dict[int, Stay] = {}
    for line, (subject, admission, code) in read_columns(path, ["SUBJECT_ID", "HADM_ID", "ICD9_CODE"]):
        if code:
            number = _number(admission, "the id of an admission (HADM_ID)", path, line)
            patient = _number(subject, "the id of a patient (SUBJECT_ID)", path, line)
            stays.setdefault(number, Stay(patient, set())).codes.add(code)
    return stays


def clean_notes(texts: Iterable[str]) -> Iterator[list[str]]:
    """The words of each note, cleaned by the steps of Jain & Wallace's code in their order.

    Tokenize and lowercase; then `[** ... **]` becomes `<DE>`, a run of one character that character, and a word with a
    digit `qqq`. Marks are replaced after tokenization, which would split `<DE>`, and before digits, because a mark may
    be attached to words.
    """
    import spacy

    tokenizer: Any = None
    for number, text in enumerate(texts):
        if number % TOKENIZER_TEXTS == 0:
            # A tokenizer keeps every string in memory.
            tokenizer = spacy.blank("en").tokenizer
        tokens = " ".join(token.lower_ for token in tokenizer(" ".join(text.split())))
        words = _RUN.sub(r"\1 ", _MARK.sub(f" {IDENTITY} ", tokens)).split()
        # Summaries are long: interned words share their memory.
        yield [sys.intern(NUMBER if any(map(str.isdigit, word)) else word) for word in words]


def has_code(stay: Stay, code: str) -> bool:
    """Whether an admission has a code with this prefix."""
    return any(other.startswith(code) for other in stay.codes)


def listed_splits(files: Mapping[str, Path]) -> dict[int, str]:
    """The split of each admission, from one list of admissions per split."""
    split_of: dict[int, str] = {}
    for split, path in files.items():
        for line, text in read_lines(path):
            admission = _number(text, "the id of an admission", path, line)
            if admission in split_of:
                raise PlumblineError(
                    f"'{path}', line {line} names admission {admission}, which is already in split "
                    f"'{split_of[admission]}': download the lists again."
                )
            split_of[admission] = split
    return split_of


def _corpus(rows: Sequence[tuple[str, int, str]], classes: list[str], dropped: Mapping[str, Counter[str]]) -> Corpus:
    """The corpus of rows (split, label, summary); `dropped` are counts by reason and split."""
    cleaned = shown(clean_notes(text for _, _, text in rows), "tokenize", "text", len(rows))
    examples = [Example(split, label, words) for (split, label, _), words in zip(rows, cleaned, strict=True)]
    return Corpus(examples, classes, dropped={reason: dict(+counts) for reason, counts in dropped.items() if +counts})


@dataset(
    "diabetes",
    files={
        "notes": "mimic3/NOTEEVENTS.csv",
        "diagnoses": "mimic3/DIAGNOSES_ICD.csv",
        "train": "mimic3/train_50_hadm_ids.csv",
        "dev": "mimic3/dev_50_hadm_ids.csv",
        "test": "mimic3/test_50_hadm_ids.csv",
    },
    source="PhysioNet, https://physionet.org/content/mimiciii/1.4/ (credentialed access: apply, do the training, sign "
    "the data use agreement; unpack .csv.gz to .csv), and the lists of admissions from "
    "https://github.com/successar/AttentionExplanation (preprocess/MIMIC),",
    licence="PhysioNet Credentialed Health Data License 1.5.0",
    counts={"train": 8066, "dev": 1573, "test": 1729},
    preparation={
        "longer_than": 6,
        "shorter_than": 4000,
        "minimum_document_frequency": 5,
        "embedding": {"kind": "file", "path": "mimic3/discharge_summaries.300d.vec", "missing": "normal"},
    },
)
def diabetes(raw: Path, seed: int) -> Corpus:
    """Discharge summaries of MIMIC-III, of patients with diabetes (ICD-9 code 250.00) or without.

    The admissions and splits are those of Mullenbach et al. (2018) with one of the 50 most frequent codes, so `seed`
    has no effect. Texts are ordered by patient and admission.
    """
    files = declared_files(__file__, "diabetes", raw)
    split_of = listed_splits({split: files[split] for split in SPLITS})
    stays = read_diagnoses(files["diagnoses"])
    texts = read_summaries(files["notes"], split_of.keys() & stays.keys())
    if not texts:
        raise PlumblineError(
            f"'{files['notes']}' contains no discharge summary of an admission that is listed in "
            f"'{files['train'].parent}' and has a diagnosis: download these files again."
        )
    dropped = {
        "no diagnosis": Counter(split for stay, split in split_of.items() if stay not in stays),
        "no discharge summary": Counter(
            split for stay, split in split_of.items() if stay in stays and stay not in texts
        ),
    }
    ordered = sorted(texts, key=lambda stay: (stays[stay].subject, stay))
    rows = [(split_of[stay], int(has_code(stays[stay], DIABETES)), texts[stay]) for stay in ordered]
    return _corpus(rows, ["no diabetes", "diabetes"], dropped)


@dataset(
    "anemia",
    files={"notes": "mimic3/NOTEEVENTS.csv", "diagnoses": "mimic3/DIAGNOSES_ICD.csv"},
    source="PhysioNet, https://physionet.org/content/mimiciii/1.4/ (credentialed access: apply, do the training, sign "
    "the data use agreement; unpack .csv.gz to .csv)",
    licence="PhysioNet Credentialed Health Data License 1.5.0",
    preparation={
        "shorter_than": 4000,
        "minimum_document_frequency": 5,
        "embedding": {"kind": "file", "path": "mimic3/discharge_summaries.300d.vec", "missing": "normal"},
    },
)
def anemia(raw: Path, seed: int) -> Corpus:
    """Discharge summaries of MIMIC-III, of patients with acute (ICD-9 code 285.1) or chronic anemia (285.2).

    Acute is class 1, as in Jain & Wallace's code and counts; their paper says 0. Admissions with both are left out. The
    splits are drawn with the seeds of their code from the admissions in its order, chronic before acute, then by
    patient and admission; so `seed` has no effect.
    """
    files = declared_files(__file__, "anemia", raw)
    stays = read_diagnoses(files["diagnoses"])
    acute = {stay for stay in stays if has_code(stays[stay], ACUTE)}
    chronic = {stay for stay in stays if has_code(stays[stay], CHRONIC)}
    labels = {stay: int(stay in acute) for stay in acute ^ chronic}
    texts = read_summaries(files["notes"], labels.keys())
    dropped = {
        "both kinds of anemia": Counter(all=len(acute & chronic)),
        "no discharge summary": Counter(all=len(labels) - len(texts)),
    }
    ordered = sorted(texts, key=lambda stay: (labels[stay], stays[stay].subject, stay))
    try:
        splits = stratified_splits([labels[stay] for stay in ordered], TEST, DEV)
    except (ValueError, PlumblineError):
        raise PlumblineError(
            f"'{files['notes']}' contains discharge summaries of {len(acute & texts.keys())} admissions with acute "
            f"anemia and {len(chronic & texts.keys())} with chronic, too few to split: download the complete files of "
            "MIMIC-III."
        ) from None
    rows = [(split, labels[stay], texts[stay]) for split, stay in zip(splits, ordered, strict=True)]
    return _corpus(rows, ["chronic", "acute"], dropped)
