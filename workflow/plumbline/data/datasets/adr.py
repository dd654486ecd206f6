"""Tweets about adverse drug reactions (Nikfarjam et al. 2015) in the file of Jain & Wallace (2019)."""

from pathlib import Path

from plumbline.data.corpus import SPLITS, Corpus, Example, draw_dev
from plumbline.data.sources import declared_files, read_csv
from plumbline.errors import PlumblineError
from plumbline.registry import dataset

COLUMNS = ["text", "label", "exp_split"]


@dataset(
    "adr",
    files={"all": "adr/adr.csv"},
    source="the authors of Jain & Wallace (2019), who hand it out on request "
    "(https://github.com/successar/AttentionExplanation says how)",
    licence="not public; as the authors allow",
    counts={"train": 14452, "dev": 2551, "test": 4251},
    preparation={
        "longer_than": 5,
        "shorter_than": 100,
        "minimum_document_frequency": 2,
        "embedding": {"kind": "file", "path": "vectors/wiki.simple.vec", "missing": "zeros"},
    },
)
def adr(raw: Path, seed: int) -> Corpus:
    """Tweets that name a drug, with or without an adverse reaction to it; words are separated by spaces in the file.

    If the file has no split `dev`, it is the study's 15% of the training tweets. `seed` has no effect.
    """
    (path,) = declared_files(__file__, "adr", raw).values()
    rows = list(read_csv(path))
    if not rows or sorted(rows[0][1]) != sorted(COLUMNS):
        raise PlumblineError(f"'{path}' does not start with the columns {', '.join(COLUMNS)}: get the file again.")
    indices = [rows[0][1].index(column) for column in COLUMNS]
    examples = []
    for number, row in rows[1:]:
        if len(row) != len(COLUMNS):
            raise PlumblineError(f"'{path}', line {number} has {len(row)} of 3 columns: get the file again.")
        text, label, split = (row[k] for k in indices)
        if label not in {"0", "1"} or split not in SPLITS:
            raise PlumblineError(
                f"'{path}', line {number} has label '{label}' and split '{split}'; they must be 0 or 1 and one of "
                f"{', '.join(SPLITS)}."
            )
        examples.append(Example(split, int(label), text.split()))
    if not any(example.split == "dev" for example in examples):
        examples = draw_dev(examples)
    return Corpus(examples, ["no reaction", "reaction"])
