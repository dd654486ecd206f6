"""Models at chance, hardly better than guessing: their explanations mean nothing; means and rankings exclude them."""

from collections.abc import Mapping

import pandas as pd

ABOVE_CHANCE, AT_CHANCE = "above_chance", "at chance"
# Adversaries that predict the same class for every text.
COLLAPSED = "collapsed"
# Rows that may be drawn: the numbers of models at chance are valid as such.
DEFINED = ("ok", AT_CHANCE, COLLAPSED)
Model = tuple[str, str, str, int]


def chance_reason(accuracy: float, count: int, chance: float, above: float, least: float) -> str:
    """The reason to exclude a model at chance on `count` instances."""
    return (
        f"the model hardly does better than guessing: its accuracy is {accuracy:.2f} on {count} instances and chance "
        f"{chance:.2f}, so {ABOVE_CHANCE}, at the lower end of its interval, is {above:.2f}, below {least:g}"
    )


def at_chance(performance: pd.DataFrame) -> dict[Model, str]:
    """The dataset, variant, model and seed of each model at chance on the test split, with the reason."""
    test = (performance["metric"] == ABOVE_CHANCE) & (performance["split"] == "test")
    rows = performance[test & (performance["status"] == AT_CHANCE)]
    keys = zip(*(rows[key] for key in ("dataset", "variant", "model", "seed")), strict=True)
    return dict(zip(keys, rows["reason"], strict=True))


def chance_summary(performance: pd.DataFrame) -> list[str]:
    """A sentence about the models at chance that are left out, and one about those that are kept; each if any.

    `least_above_chance` may keep them: null keeps all, and a number below 0 some. Here they are those whose
    `above_chance` is at most 0, as guessing is within the interval of their accuracy.
    """
    excluded = at_chance(performance)
    tested = performance[(performance["metric"] == ABOVE_CHANCE) & (performance["split"] == "test")]
    kept = tested[(tested["status"] == "ok") & (tested["value"] <= 0)]
    sentences = []
    for (dataset, _, model, seed), reason in excluded.items():
        sentences.append(
            f"Left out of the scorecard and of means: {len(excluded)} of {len(tested)} trained models, at chance. For "
            f"{model} on {dataset}, seed {seed}, {reason}: train it longer or with another learning rate, give "
            "more data, or change `least_above_chance` in the config."
        )
        break
    for first in kept.head(1).to_dict("records"):
        sentences.append(
            f"Not surely better than guessing: {len(kept)} of {len(tested)} trained models, which `least_above_chance` "
            f"in the config keeps in the scorecard and in means. For {first['model']} on {first['dataset']}, seed "
            f"{first['seed']}, {ABOVE_CHANCE}, at the lower end of its interval, is {first['value']:.2f}: explanations "
            "of a model that guesses mean little."
        )
    return sentences


def above_chance_rows(name: str, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table without those of models at chance; the table `performance` keeps all."""
    return table if name == "performance" or "status" not in table else table[table["status"] != AT_CHANCE]


def mark_at_chance(table: pd.DataFrame, models: Mapping[Model, str], seed: str = "seed") -> pd.DataFrame:
    """A table with the status and reason of models at chance in their rows; `seed` is the column with their seed.

    A collapsed adversary of such a model is at chance too: it may only imitate the model.
    """
    if not models or "status" not in table:
        return table
    keys = zip(*(table[key] for key in ("dataset", "variant", "model", seed)), strict=True)
    reasons = pd.Series([models.get(key) for key in keys], index=table.index, dtype=object)
    marked = reasons.notna() & table["status"].isin(("ok", COLLAPSED))
    return table.assign(
        status=table["status"].astype(object).where(~marked, AT_CHANCE),
        reason=table["reason"].astype(object).where(~marked, reasons),
    )
