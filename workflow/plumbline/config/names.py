"""Which names the entries of a study may have: they become folders, wildcards, addresses and labels."""

import re

from plumbline.errors import PlumblineError

# What every study may have beside its protocols' tables.
TABLES = (
    *("performance", "adversary", "roar", "faithfulness", "sparsity", "synthetic_roar", "reproduction", "timings"),
    *("quirks", "trace", "scorecard", "meta_evaluation"),
)
RULES = (
    *(
        "all",
        "tables",
        "figures",
        "bring",
        "download",
        "fetch_vader",
        "mimic_vectors",
        "prepare",
        "manipulate",
        "embed",
    ),
    *("tokenize_subwords", "train", "retrain", "extract_attention", "attribute", "attribute_masked", "cheap"),
    *("score", "score_models", "trace", "table", "report", "explorer"),
    *("draw_agreement", "draw_attention", "draw_adversary", "draw_roar", "draw_ground_truth", "draw_scorecard"),
)
# Folders beside those of entries, the file of cheap measures, and what stands for everything in tables.
WORDS = (
    *(
        "plain",
        "unmasked",
        "positions",
        "recursive",
        "relative",
        "absolute",
        "subwords",
        "checkpoints",
        "cheap",
        "none",
    ),
)
RESERVED = frozenset((*TABLES, *RULES, *WORDS))
SAFE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9_-])?")
# With what is put before and behind it, a name must not be longer than a file's may be.
LONGEST = 64


def check_name(name: str, where: str) -> None:
    """Refuse a name that is reserved or unsafe; `where` is its place in the config."""
    if name in RESERVED:
        raise PlumblineError(f"`{where}`: '{name}' is a name that plumbline itself uses; choose another.")
    if len(name) > LONGEST:
        raise PlumblineError(f"`{where[:LONGEST]}…`: a name may have {LONGEST} characters at most, not {len(name)}.")
    if not SAFE.fullmatch(name):
        raise PlumblineError(
            f"`{where}`: a name may hold letters from a to z, digits, '-', '_' and '.' only, and must begin with a "
            "letter or digit and not end with '.'."
        )
