"""Agreement on the scorecard."""

import pandas as pd

from plumbline.protocols.agreement.selections import fewest_tokens, overall_taus
from plumbline.protocols.agreement.twins import first_twin
from plumbline.protocols.criteria import KEYS, Measures
from plumbline.registry import criterion


@criterion("agreement", table="agreement", direction="higher", range=[-1, 1], order=10)
def agreement(table: pd.DataFrame, measures: Measures) -> pd.DataFrame:
    """Mean τ of a measure with all others except random and its own twins; twins among the others count once."""
    taus = fewest_tokens(overall_taus(table))
    taus = taus[(taus["measure_a"] != measures.random) & (taus["measure_b"] != measures.random)]
    sides = ("measure_a", "measure_b"), ("measure_b", "measure_a")
    rows = pd.concat([taus.assign(measure=taus[own], other=taus[other]) for own, other in sides], ignore_index=True)
    cells = list(zip(*(rows[key].astype(str) for key in ("dataset", "variant", "model")), strict=True))
    for column in ("measure", "other"):
        names = zip(cells, rows[column].astype(str), strict=True)
        rows[f"{column}_group"] = [first_twin(measures.twins, cell, name) for cell, name in names]
    rows = rows[rows["measure_group"] != rows["other_group"]]
    groups = rows.groupby([*KEYS, "seed", "other_group"], observed=True)["mean"].mean()
    return groups.groupby([*KEYS, "seed"], observed=True).mean().rename("value").reset_index()
