"""Texts under their attention and under an adversary of it, word by word (Jain & Wallace 2019, appendix D)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.textpath import text_to_path

from plumbline.data.schemas import INSTANCES
from plumbline.figures import style
from plumbline.figures.conventions import ADVERSARY, SECOND_TEXTS
from plumbline.figures.drawing import Drawing
from plumbline.protocols.attention.figures import DIVERGENCES, scores_here
from plumbline.protocols.attention.schemas import ADVERSARIES
from plumbline.registry import figure
from plumbline.store import read_table

TEXT = ["seed", "split", "instance", "epsilon"]
# The columns of the table `adversaries` that are drawn, and those of `instances`; in the order of the tables.
WEIGHTS = [
    *("seed", "split", "instance", "predicted_class", "epsilon", "jsd", "change"),
    *("attention", "adversary", "probabilities", "adversary_probabilities"),
]
WORDS = ["split", "instance", "tokens", "maskable", "tokens_b"]
# Lengths of texts that can be read at a glance; at most so many words are drawn of any.
READABLE = range(5, 31)
MOST_WORDS = 32
# Words to either side of a heavy one that are drawn with it.
AROUND = 3
LONGEST_WORD = 24
# Shades between none and the heaviest word; it still lets dark letters be read.
SHADES = 12
DARKEST = 0.62

# Points.
EDGE = 6.0
LABELS = 56.0
LINE = 14.0
SIZE = 7.5
SPACE = 3.2


@dataclass(frozen=True)
class Attacked:
    """A text with the weights of its words before and after, and what the model made of them.

    `second` is the question or hypothesis, if there is one; `after` is the new probability of the predicted class, and
    `then` the class that is predicted instead, if the prediction is not the same.
    """

    name: str
    words: list[str]
    second: list[str]
    attention: np.ndarray
    adversary: np.ndarray
    predicted: str
    before: float
    after: float
    change: float
    jsd: float
    then: str = ""


def choose_texts(divergences: pd.DataFrame, count: int = 4) -> pd.DataFrame:
    """The rows to draw: the most divergent adversaries of readable texts, of each predicted class in turn.

    Only the smallest epsilon counts, where an adversary was found, and each text once. The shortest comes first.
    """
    smallest = divergences["epsilon"] == divergences["epsilon"].min()
    rows = divergences[smallest & (divergences["feasible"] > 0)]
    # Divergences that look the same do not matter; then the shorter text is easier to read.
    keys = {"unreadable": ~rows["length"].isin(READABLE), "less": -rows["jsd"].round(2)}
    rows = rows.assign(**keys).sort_values(["unreadable", "less", "length", "split", "instance", "seed"])
    rows = rows.drop_duplicates(["split", "instance"])
    turn = rows.groupby("predicted_class").cumcount()
    chosen = rows.assign(turn=turn).sort_values(["unreadable", "turn", "less"], kind="stable").head(count)
    return chosen.sort_values(["length", "split", "instance"])


def gather(
    chosen: pd.DataFrame, adversaries: Iterable[pa.Table], instances: pa.Table, classes: Sequence[str]
) -> list[Attacked]:
    """The chosen texts, in their order, from tables with the columns `WEIGHTS` and one with `WORDS`."""
    numbers = pa.array(chosen["instance"].unique(), pa.int32())
    few = instances.filter(pc.is_in(instances["instance"], numbers)).to_pylist()
    words = {(row["split"], row["instance"]): row for row in few}
    rows = {}
    for table in adversaries:
        for row in table.filter(pc.is_in(table["instance"], numbers)).to_pylist():
            rows[tuple(row[key] for key in TEXT)] = row
    keys = chosen[TEXT].itertuples(index=False, name=None)
    return [attacked(rows[key], words[key[1], key[2]], classes) for key in keys]


def attacked(row: Mapping[str, Any], instance: Mapping[str, Any], classes: Sequence[str]) -> Attacked:
    """A text to draw, from a row of `adversaries` and one of `instances`."""
    probabilities, after = row["probabilities"], row["adversary_probabilities"]
    predicted, then = int(np.argmax(probabilities)), int(np.argmax(after))
    words = [word for word, free in zip(instance["tokens"], instance["maskable"], strict=True) if free]
    return Attacked(
        f"{row['split']} {row['instance']}, seed {row['seed']}",
        words,
        # Without the tokens that open and close it.
        list(instance["tokens_b"][1:-1]) if instance["tokens_b"] is not None else [],
        np.asarray(row["attention"], dtype=float),
        np.asarray(row["adversary"], dtype=float),
        classes[predicted],
        float(probabilities[predicted]),
        float(after[predicted]),
        float(row["change"]),
        float(row["jsd"]),
        "" if then == predicted else classes[then],
    )


def adversarial_texts(texts: list[Attacked], title: str, epsilon: float, second: str = "second text") -> Figure:
    """Each text twice, its words shaded by the attention and by the adversary; both on one scale."""
    if not texts:
        return style.sentence_figure(
            f"{title}:\nno text has an adversary that changes\nthe output by {epsilon:g} or less."
        )
    width = 72 * style.TWO_COLUMNS
    with style.theme():
        figure = style.new_figure(style.TWO_COLUMNS, 1)
        # Every place is computed here.
        figure.set_layout_engine("none")
        sheet = figure.add_axes((0, 0, 1, 1))
        sheet.set_axis_off()
        pen = Pen(sheet, width)
        pen.write(title, EDGE, 9)
        pen.down(LINE + 1)
        pen.write(
            "The attention, and the adversary that differs most from it and changes the output by "
            f"{epsilon:g} or less; the darker the more weight.",
            EDGE, 6.5, style.FAINT,
        )  # fmt: skip
        pen.down(LINE + 5)
        for text in texts:
            _draw(pen, text, second)
        figure.set_figheight(pen.y / 72)
        sheet.set(xlim=(0, width), ylim=(pen.y, 0))
    return figure


class Pen:
    """Writes on a sheet that is measured in points from its upper left corner; `y` is the middle of the line."""

    def __init__(self, sheet: Axes, width: float) -> None:
        self.sheet = sheet
        self.width = width
        self.y = EDGE + 6

    def down(self, points: float) -> None:
        """Go to a lower line."""
        self.y += points

    def wide(self, text: str, size: float = SIZE, **font: Any) -> float:
        """The width of a text, as outlines have it."""
        return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=size, **font), False)[0])

    def write(self, text: str, x: float, size: float = SIZE, colour: str = style.INK, **look: Any) -> None:
        """Write as it stands: a dollar sign opens no formula."""
        self.sheet.text(x, self.y, text, fontsize=size, color=colour, va="center_baseline", parse_math=False, **look)

    def shade(self, boxes: list[tuple[float, float]], strength: float, colour: str) -> None:
        """Shade this line from and to each pair of places; all of them are one shape."""
        top, bottom = self.y - LINE / 2 + 1, self.y + LINE / 2 - 1
        corners = [[(a, top), (b, top), (b, bottom), (a, bottom), (a, top)] for a, b in boxes]
        shape = Path.make_compound_path(*(Path(box, closed=True) for box in corners))
        mixed = [strength * channel + 1 - strength for channel in to_rgb(colour)]
        self.sheet.add_patch(PathPatch(shape, facecolor=mixed, linewidth=0))

    def rule(self) -> None:
        """A faint line across."""
        self.sheet.plot([EDGE, self.width - EDGE], [self.y] * 2, color="#dcdfe3", linewidth=0.6)


def _draw(pen: Pen, text: Attacked, second: str) -> None:
    pen.rule()
    pen.down(LINE - 3)
    told = f"{_short(text.predicted)} {text.before:.3f} → {text.after:.3f}"
    told += f" (now {_short(text.then)})" if text.then else ""
    pen.write(told, EDGE, fontweight="bold")
    rest = f"change in output {text.change:.3f},  JSD {text.jsd:.2f}"
    pen.write(rest, EDGE + pen.wide(told, weight="bold") + 12)
    pen.write(text.name, pen.width - EDGE, 6.5, style.FAINT, ha="right")
    pen.down(LINE + 1)
    if text.second:
        words = [_short(word) for word in text.second]
        _lines(pen, second, words if len(words) <= MOST_WORDS else [*words[:MOST_WORDS], "…"], style.FAINT)
    places = window(np.maximum(text.attention, text.adversary))
    words = [_short(text.words[place]) if place is not None else "…" for place in places]
    largest = max(float(text.attention.max()), float(text.adversary.max()))
    rows = (("attention", text.attention, style.measure_colour("attention")), ("adversary", text.adversary, ADVERSARY))
    for label, weights, colour in rows:
        shares = [weights[place] / largest if place is not None else 0.0 for place in places]
        _lines(pen, label, words, colour, shares)
        pen.down(2)
    pen.down(1)


def _lines(pen: Pen, label: str, words: list[str], colour: str, shares: list[float] | None = None) -> None:
    """A label and, right of it, words in as many lines as they need; each with its ground, if shares are given."""
    pen.write(label, EDGE, 6.5, colour)
    ink = style.FAINT if shares is None else style.INK
    widths = [pen.wide(word) for word in words]
    for line in wrapped(widths, SPACE, pen.width - 2 * EDGE - LABELS):
        starts = EDGE + LABELS + np.cumsum([0, *(widths[i] + SPACE for i in line)])
        # A root, so that weights that are spread thin can be seen beside some that are not.
        levels = [round(SHADES * shares[i] ** 0.5) for i in line] if shares else [0] * len(line)
        for level in sorted({*levels} - {0}):
            here = [(start, i) for start, i, of in zip(starts, line, levels, strict=False) if of == level]
            pen.shade([(start - 1.2, start + widths[i] + 1.2) for start, i in here], DARKEST * level / SHADES, colour)
        # Word by word: in another format a whole line may be a little longer than it was measured.
        for start, i in zip(starts, line, strict=False):
            pen.write(words[i], start, colour=ink)
        pen.down(LINE)


def wrapped(widths: Sequence[float], space: float, room: float) -> Iterator[list[int]]:
    """The places of the words of each line; a word that is too wide for any has a line to itself."""
    line: list[int] = []
    used = 0.0
    for place, width in enumerate(widths):
        if line and used + space + width > room:
            yield line
            line, used = [], 0.0
        used += width + (space if line else 0)
        line.append(place)
    if line:
        yield line


def window(weights: np.ndarray, most: int = MOST_WORDS) -> list[int | None]:
    """The places of the words to draw, with None for what is left out: all, or the heaviest and those around them."""
    if len(weights) <= most:
        return list(range(len(weights)))
    kept: set[int] = set()
    for heavy in np.argsort(-weights, kind="stable"):
        around = set(range(max(0, heavy - AROUND), min(len(weights), heavy + AROUND + 1)))
        if len(kept | around) > most:
            break
        kept |= around
    places: list[int | None] = []
    last = -1
    for place in sorted(kept):
        if place > last + 1:
            places.append(None)
        places.append(place)
        last = place
    return places if last == len(weights) - 1 else [*places, None]


def _short(word: str) -> str:
    """A word as it can be drawn: on one line, and not endless."""
    seen = "".join(letter if letter.isprintable() else "·" for letter in word)
    return seen if len(seen) <= LONGEST_WORD else seen[: LONGEST_WORD - 1] + "…"


@figure(
    "adversarial-texts",
    reads=["scores:adversarial_attention", "datasets:adversarial_attention", "instances:adversarial_attention"],
    params=["tasks"],
    cells="adversarial_attention",
    per=["dataset", "model"],
    page="attention",
    experiment="adversarial attention",
    order=80,
    caption=(
        "Texts whose words are shaded by the attention, and by an adversary of it that leaves the output all "
        "but the same (appendix D)."
    ),
)
def draw_texts(drawing: Drawing) -> Figure:
    """Texts under the attention and under an adversary of it."""
    rows, classes = scores_here(drawing, "adversarial_attention", ADVERSARIES, DIVERGENCES)
    [instances] = drawing.here("instances:adversarial_attention")
    texts = gather(
        choose_texts(rows),
        # The weights of all words are many numbers: one file at a time.
        (read_table(file.path, ADVERSARIES, WEIGHTS) for file in drawing.here("scores:adversarial_attention")),
        read_table(instances.path, INSTANCES, WORDS),
        classes,
    )
    second = SECOND_TEXTS.get(drawing.facts["tasks"][drawing.dataset], "second text")
    return adversarial_texts(texts, drawing.title, rows["epsilon"].min(), second)
