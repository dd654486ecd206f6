"""Sentences from film reviews with mean human ratings (Hutto & Gilbert 2014), two classes."""

from pathlib import Path

from plumbline.data.corpus import Corpus, Example, split_by_seed
from plumbline.data.sources import declared_files, read_lines
from plumbline.data.tokenize import clean
from plumbline.errors import PlumblineError
from plumbline.registry import dataset

SHARES = {"train": 0.8, "dev": 0.1, "test": 0.1}
EXTREME = 4.0


def parse_snippet(line: str) -> tuple[float, str]:
    """The rating and the text of a line ``id TAB rating TAB text``; raises ValueError otherwise."""
    fields = line.split("\t", 2)
    if len(fields) < 3:
        raise ValueError(f"has {len(fields)} of the 3 fields id, rating and text")
    try:
        rating = float(fields[1])
    except ValueError:
        rating = float("nan")
    if not -EXTREME <= rating <= EXTREME:
        raise ValueError(f"has '{fields[1]}' instead of a rating from -4 to 4")
    return rating, fields[2]


@dataset(
    "movie",
    files={"snippets": "vader/movieReviewSnippets_GroundTruth.txt"},
    source="the source distribution of the Python package vaderSentiment 3.3.2 (`plumbline.data.fetch` fetches it)",
    licence="MIT",
    preparation={
        "longer_than": 5,
        "minimum_document_frequency": 2,
        "embedding": {"kind": "word2vec", "dimensions": 100, "missing": "uniform"},
    },
)
def movie(raw: Path, seed: int, *, minimum_rating: float = 0.0) -> Corpus:
    """Sentences from film reviews, positive or negative by the sign of their mean rating from -4 to 4.

    The splits, 80/10/10%, are drawn by `seed`.

    Options:
        minimum_rating: Absolute rating above which a sentence is kept, 0 to below 4; higher keeps clearer opinions.
    """
    if not 0 <= minimum_rating < EXTREME:
        raise PlumblineError(f"`minimum_rating` is {minimum_rating:g}; it must be at least 0 and below {EXTREME:g}.")
    path = declared_files(__file__, "movie", raw)["snippets"]
    rows: list[tuple[int, str]] = []
    lines = 0
    for number, line in read_lines(path):
        lines += 1
        try:
            rating, text = parse_snippet(line)
        except ValueError as error:
            raise PlumblineError(
                f"'{path}', line {number} {error}: correct the line or download the file again."
            ) from None
        if abs(rating) > minimum_rating:
            rows.append((int(rating > 0), text))
    splits = split_by_seed(len(rows), SHARES, seed)
    cleaned = clean(text for _, text in rows)
    examples = [Example(split, label, words) for split, (label, _), words in zip(splits, rows, cleaned, strict=True)]
    weak = lines - len(rows)
    dropped = {f"rating within {minimum_rating:g} of 0": {"all": weak}} if weak else {}
    return Corpus(examples, ["negative", "positive"], dropped=dropped)
