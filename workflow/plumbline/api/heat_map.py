"""A text with its tokens shaded by their importance, in a notebook or a terminal."""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from plumbline.figures.conventions import measure_colour

# Bars in place of colours, from no importance to the largest.
BLOCKS = " ▁▂▃▄▅▆▇█"


class HeatMap:
    """One text, a row for each measure: the darker a token, the larger its score relative to the largest of the row.

    Negative scores are underlined. `str` has a bar before each token in place of the colour.
    """

    def __init__(self, title: str, tokens: Sequence[str], scores: Mapping[str, np.ndarray]) -> None:
        self.title, self.tokens, self.scores = title, list(tokens), dict(scores)

    def shares(self, measure: str) -> np.ndarray:
        """The scores of a measure relative to the largest of them without sign [n], from -1 to 1."""
        scores = np.asarray(self.scores[measure], dtype=np.float64)
        largest = np.abs(scores).max(initial=0.0)
        return scores / largest if largest else scores

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align: left; padding-right: 1em">{escape(measure)}</th>'
            f'<td style="text-align: left">{self._tokens(measure)}</td></tr>'
            for measure in self.scores
        )
        return f"<table><caption>{escape(self.title)}</caption>{rows}</table>"

    def _tokens(self, measure: str) -> str:
        colour = measure_colour(measure)
        return " ".join(
            f'<span title="{score:.4g}" style="padding: 0 .2em; border-radius: 3px; '
            f"background: color-mix(in srgb, {colour} {abs(share):.0%}, transparent)"
            f'{"; text-decoration: underline wavy" if share < 0 else ""}">{escape(token)}</span>'
            for token, score, share in zip(self.tokens, self.scores[measure], self.shares(measure), strict=True)
        )

    def __str__(self) -> str:
        width = max(map(len, self.scores), default=0)
        lines = [self.title]
        for measure in self.scores:
            marks = [BLOCKS[round(abs(share) * (len(BLOCKS) - 1))] for share in self.shares(measure)]
            marked = (f"{mark}{token}" for mark, token in zip(marks, self.tokens, strict=True))
            lines.append(f"{measure:{width}}  {' '.join(marked)}")
        return "\n".join(lines)

    __repr__ = __str__
