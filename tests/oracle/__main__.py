"""`python -m tests.oracle RESULTS`: compute a study anew from what it has stored, and say how far off it is."""

import argparse
import sys
from pathlib import Path

from tests.oracle.run import LIMIT, run

parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
parser.add_argument("results", type=Path, help="the folder of results of a study")
parser.add_argument("--texts", type=int, default=LIMIT, help="how many texts of each seed and split are computed anew")
asked = parser.parse_args()
if not (asked.results / "models").is_dir():
    sys.exit(f"There are no models below '{asked.results}'.")
checks = run(asked.results, asked.texts)
print(checks.table())
sys.exit(bool(checks.failed))
