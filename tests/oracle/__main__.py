"""`python -m tests.oracle RESULTS`: recompute a study from its stored results and report the differences."""

import argparse
import sys
from pathlib import Path

from tests.oracle.run import LIMIT, run

parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
parser.add_argument("results", type=Path, help="the folder of results of a study")
parser.add_argument("--texts", type=int, default=LIMIT, help="how many texts of each seed and split are recomputed")
parser.add_argument(
    "--part", action="append", default=[], help="a part to check alone, such as scorecard; may be repeated"
)
asked = parser.parse_args()
if not (asked.results / "models").is_dir():
    sys.exit(f"There are no models below '{asked.results}'.")
checks = run(asked.results, asked.texts, asked.part)
print(checks.table())
sys.exit(bool(checks.failed))
