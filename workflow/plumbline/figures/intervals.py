"""The intervals of figures."""

import numpy as np
import pandas as pd

NINETY_FIVE = 1.96


def interval(values: pd.DataFrame) -> tuple[float, float]:
    """The mean of `value`, and half the width of its 95 % interval over texts.

    The seeds of a text are not independent, so each text counts once, with the mean over its seeds. With fewer than
    two texts the width is NaN.
    """
    texts = values.groupby(["split", "instance"], observed=True)["value"].mean()
    return float(values["value"].mean()), NINETY_FIVE * standard_error(texts)


def standard_error(texts: pd.Series) -> float:
    """Standard error of the mean of independent values; NaN for fewer than two."""
    return float(texts.std(ddof=1) / np.sqrt(len(texts))) if len(texts) > 1 else float("nan")
