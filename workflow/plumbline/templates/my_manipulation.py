"""The manipulation my-manipulation. It works unchanged; replace it with your own."""

import numpy as np

from plumbline.data.manipulation import ChangedText, InstanceWords
from plumbline.registry import manipulation


@manipulation(
    "my-manipulation", groups=["marks"], words=["!", "."], equation="the last word becomes ! if y = 1, else ."
)
def my_manipulation(text: InstanceWords, label: int, random: np.random.Generator, *, times: int = 1) -> ChangedText:
    """The marks at the end of a text follow its label."""
    kept = text.first[:-times] or text.first[:1]
    return ChangedText(kept + ["!" if label else "."] * times, [0] * len(kept) + [1] * times)
