"""Small files in the forms of publishers whose own may not be passed on: MIMIC-III, the ADR tweets, and CNN.

All texts are drawn from word lists, and words that belong to a class make it learnable.
"""

import csv
import random
from pathlib import Path

SHARES = {"train": 0.7, "dev": 0.15, "test": 0.15}


def _sizes(documents: int) -> dict[str, int]:
    dev, test = (round(documents * SHARES[split]) for split in ("dev", "test"))
    return {"train": documents - dev - test, "dev": dev, "test": test}


def _mixed(draw: random.Random, *parts: tuple[str, int]) -> list[str]:
    """The given number of words of each list, shuffled."""
    words = [word for choice, count in parts for word in draw.choices(choice.split(), k=count)]
    draw.shuffle(words)
    return words


NOTE_COLUMNS = ["ROW_ID", "SUBJECT_ID", "HADM_ID", "CHARTDATE", "CHARTTIME", "STORETIME", "CATEGORY", "DESCRIPTION",
                "CGID", "ISERROR", "TEXT"]  # fmt: skip
CODE_COLUMNS = ["ROW_ID", "SUBJECT_ID", "HADM_ID", "SEQ_NUM", "ICD9_CODE"]
WARD = "patient admitted stable history daily normal discharged home review plan exam clear noted given seen"
SUGAR = {1: "insulin glucose metformin sugars diabetic", 0: "cough wheeze inhaler smoker lungs"}
BLOOD = {1: "bleeding transfused ulcer melena clot", 0: "dialysis renal longstanding tumor weakness"}
CODES = {"diabetes": {1: "25000", 0: "49390"}, "anemia": {1: "2851", 0: "28521"}}


def write_mimic(folder: Path, documents: int = 200, seed: int = 0) -> None:
    """Write mimic3/: notes, diagnoses and lists of admissions, the given number with a discharge summary.

    Each has diabetes or asthma, and acute or chronic anemia; two have both kinds of anemia. There are notes of other
    categories, addenda before their reports, a note that is marked as an error, and an admission without a summary.
    """
    draw = random.Random(seed)
    notes: list[list[object]] = []
    codes: list[list[object]] = []
    admissions = [100_000 + 7 * k for k in range(documents)]
    for k, admission in enumerate(admissions):
        subject, sugar, blood = 10 + k // 2, int(k % 5 < 2), int(k % 3 > 0)
        parts = (SUGAR[sugar], 6), (BLOOD[blood], 6)
        body, extra = _mixed(draw, (WARD, 24), *parts), _mixed(draw, (WARD, 4), *parts)
        head = f"Admission Date:  [**2150-{k % 12 + 1}-{k % 28 + 1}**]\n\nDr. [**Last Name (STitle) {k}**] wrote:\n"
        report = f'{head}"{" ".join(body[:20]).capitalize()}."\n-----\n{" ".join(body[20:])} 3.5 mg.\n'
        day = f"2150-{k % 12 + 1:02}-{k % 28 + 1:02}"
        if k % 4 == 0:
            notes.append([subject, admission, day, "Discharge summary", "Addendum", "", " ".join(extra)])
        notes.append([subject, admission, day, "Discharge summary", "Report", "", report])
        notes.append([subject, admission, day, "Nursing/other", "Report", "", "Pt slept well,\nno complaints."])
        found = [CODES["diabetes"][sugar], CODES["anemia"][blood]] + ([CODES["anemia"][1 - blood]] if k < 2 else [])
        codes += [[subject, admission, number, code] for number, code in enumerate(found, 1)]
    notes.append([9, admissions[0], "2150-01-01", "Discharge summary", "Report", "1", "Wrong patient."])
    notes.append([9, "", "2150-01-01", "Radiology", "CHEST (PORTABLE AP)", "", "No\n\nchange."])
    codes += [[9, 99_999, 1, CODES["diabetes"][0]], [9, 99_999, 2, CODES["anemia"][0]], [9, 99_999, 3, ""]]
    rows = [[a, b, c, "", "", d, e, "", f, g] for a, b, c, d, e, f, g in notes]
    _write_table(folder / "mimic3/NOTEEVENTS.csv", NOTE_COLUMNS, rows)
    _write_table(folder / "mimic3/DIAGNOSES_ICD.csv", CODE_COLUMNS, codes)
    draw.shuffle(admissions)
    for split, size in _sizes(documents).items():
        listed, admissions = admissions[:size], admissions[size:]
        (folder / f"mimic3/{split}_50_hadm_ids.csv").write_text("".join(f"{admission}\n" for admission in listed))


def _write_table(path: Path, columns: list[str], rows: list[list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([number, *row] for number, row in enumerate(rows, 1))


CHAT = "so the my this today just again lol really time day week been on at home"
EFFECTS = "dizzy nausea headache rash insomnia shaky numb sweating"
FINE = "refill pharmacy started prescribed cheaper works helps thanks"
DRUGS = "zolpra mirtaxin #quelor venlorix"


def write_adr(folder: Path, documents: int = 200) -> None:
    """Write adr/adr.csv: tokenized tweets about drugs that do not exist, with (1) or without an adverse reaction."""
    draw = random.Random(1)
    test = round(documents * 0.2)
    rows = []
    for k in range(documents):
        label = int(k % 3 == 0)
        words = _mixed(draw, (CHAT, draw.randint(5, 9)), (EFFECTS if label else FINE, 3), (DRUGS, 1))
        words += draw.choice(["! !", ", ugh", ":)", "."]).split()
        rows.append([f"@someone {' '.join(words)}", label, "test" if k >= documents - test else "train"])
    (folder / "adr").mkdir(parents=True, exist_ok=True)
    with (folder / "adr/adr.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "exp_split"])
        writer.writerows(rows)


ENTITIES = 6
EVENTS = "won lost visited praised joined left called helped"
PRESS = "the in on after a said monday police town match news of to and who was"


def write_cnn(folder: Path, documents: int = 200) -> None:
    """Write cnn/{train,dev,test}.txt in the form of Chen et al. (2016): question, answer, passage, names, blank line.

    A passage names three entities, the answer most often.
    """
    draw = random.Random(2)
    (folder / "cnn").mkdir(parents=True, exist_ok=True)
    for split, size in _sizes(documents).items():
        blocks = []
        for k in range(size):
            answer = k % ENTITIES
            others = draw.sample([entity for entity in range(ENTITIES) if entity != answer], 2)
            named = [f"@entity{entity}" for entity in (answer, answer, answer, answer, *others)]
            words = _mixed(draw, (PRESS, 16), (EVENTS, 5)) + named
            draw.shuffle(words)
            question = f"@placeholder {draw.choice(EVENTS.split())} the {draw.choice(['match', 'town'])} on monday"
            names = [f"@entity{entity}:Name {chr(65 + entity)}" for entity in sorted({answer, *others})]
            blocks.append("\n".join([question, f"@entity{answer}", " ".join(words) + " .", *names]))
        (folder / f"cnn/{split}.txt").write_text("\n\n".join(blocks) + "\n\n")
