"""Names that the entries of a study may have; they become folders, wildcards, links and labels."""

import re

from plumbline.errors import PlumblineError

# Tables that a study may have in addition to those of its protocols.
TABLES = (
    "performance", "adversary", "constant_output", "roar", "faithfulness", "sparsity", "synthetic_roar",
    "reproduction", "timings", "quirks", "trace", "scorecard", "meta_evaluation", "trust", "trust_common",
    "sensitivity", "masked_faithfulness",
)  # fmt: skip
RULES = (
    "all", "tables", "figures", "bring", "download", "fetch_vader", "mimic_vectors", "prepare", "manipulate", "embed",
    "tokenize_subwords", "train", "retrain", "extract_attention", "attribute", "attribute_masked", "attribute_part",
    "join_importances", "join_masked_importances", "cheap",
    "score", "score_models", "trace", "table", "report", "explorer",
    "draw_agreement", "draw_attention", "draw_adversary", "draw_roar", "draw_ground_truth", "draw_erasure",
    "draw_evidence", "draw_randomised_weights", "draw_scorecard", "draw_sensitivity",
    "draw_masked_erasure", "draw_papers",
)  # fmt: skip
# Folders next to those of entries, the file of cheap measures, and `none`, the wildcard pattern without names.
WORDS = (
    "plain", "unmasked", "positions", "recursive", "relative", "absolute", "subwords", "checkpoints", "cheap", "none",
)  # fmt: skip
RESERVED = frozenset((*TABLES, *RULES, *WORDS))
SAFE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9_-])?")
# File names hold a name with prefixes and suffixes, and file systems limit their length.
LONGEST = 64


def check_name(name: str, where: str) -> None:
    """Refuse a name that is reserved or unsafe; `where` is its key in the config."""
    if name in RESERVED:
        raise PlumblineError(f"`{where}`: '{name}' is reserved; choose another name.")
    if len(name) > LONGEST:
        raise PlumblineError(f"`{where[:LONGEST]}…`: a name may have at most {LONGEST} characters, not {len(name)}.")
    if not SAFE.fullmatch(name):
        raise PlumblineError(
            f"`{where}`: a name may contain only letters from a to z, digits, '-', '_' and '.', must start with a "
            "letter or digit and must not end with '.'."
        )
