"""Agreement on the scorecard."""

import pandas as pd

from plumbline.protocols.agreement.selections import fewest_tokens, overall_taus
from plumbline.protocols.agreement.twins import first_twin
from plumbline.protocols.criteria import KEYS, Measures
from plumbline.registry import criterion


@criterion("agreement", table="agreement", direction="higher", range=[-1, 1], least_measures=2, order=10)
def agreement(table: pd.DataFrame, measures: Measures) -> pd.DataFrame:
    """Mean τ of a measure with all others except random, degraded ones and its own twins; twins among the others count
    once. A degraded measure is compared with those that its base is compared with."""
    taus = fewest_tokens(overall_taus(table))
    taus = taus[(taus["measure_a"] != measures.random) & (taus["measure_b"] != measures.random)]
    sides = ("measure_a", "measure_b"), ("measure_b", "measure_a")
    rows = pd.concat([taus.assign(measure=taus[own], other=taus[other]) for own, other in sides], ignore_index=True)
    rows = rows[~rows["other"].isin(list(measures.degraded))]
    cells = list(zip(*(rows[key].astype(str) for key in ("dataset", "variant", "model")), strict=True))
    for column in ("measure", "other"):
        bases = [measures.degraded.get(name, name) for name in rows[column].astype(str)]
        groups = [first_twin(measures.twins, cell, base) for cell, base in zip(cells, bases, strict=True)]
        rows = rows.assign(**{f"{column}_group": groups})
    rows = rows[rows["measure_group"] != rows["other_group"]]
    means = rows.groupby([*KEYS, "seed", "other_group"], observed=True)["mean"].mean()
    return means.groupby([*KEYS, "seed"], observed=True).mean().rename("value").reset_index()
