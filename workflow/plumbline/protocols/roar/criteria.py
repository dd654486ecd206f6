"""ROAR and Recursive ROAR on the scorecard."""

import pandas as pd

from plumbline.config.variants import PLAIN
from plumbline.protocols.criteria import KEYS, VALUES, Measures
from plumbline.registry import criterion


@criterion("Recursive ROAR", table="faithfulness", direction="higher", range=[-1, 1], strategy="recursive", order=51)
@criterion("ROAR", table="faithfulness", direction="higher", range=[-1, 1], order=50)
def masking_faithfulness(table: pd.DataFrame, measures: Measures, *, strategy: str = "roar") -> pd.DataFrame:
    """Faithfulness of each seed, by relative levels if the table has them."""
    rows = table[(table["strategy"] == strategy) & (table["status"] == "ok")]
    rows = rows[rows["unit"] == ("relative" if (rows["unit"] == "relative").any() else "absolute")]
    rows = rows.explode("per_seed", ignore_index=True).assign(variant=PLAIN)
    seed = rows.groupby(KEYS, observed=True).cumcount()
    return rows.assign(seed=seed, value=rows["per_seed"].astype(float))[VALUES]
