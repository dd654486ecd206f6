"""Texts with words shaded by attention and by adversarial attention (Jain & Wallace 2019, appendix D)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from plumbline.data.schemas import INSTANCES
from plumbline.figures import style
from plumbline.figures.conventions import ADVERSARY, SECOND_TEXTS
from plumbline.figures.drawing import Drawing
from plumbline.figures.layout import text_width
from plumbline.protocols.attention.figures import DIVERGENCES, read_scores
from plumbline.protocols.attention.schemas import ADVERSARIES
from plumbline.registry import figure
from plumbline.store import read_table

TEXT = ["seed", "split", "instance", "epsilon"]
# The columns to read of the tables `adversaries` and `instances`, in the order of the tables.
WEIGHTS = [
    *("seed", "split", "instance", "predicted_class", "epsilon", "jsd", "change"),
    *("attention", "adversary", "probabilities", "adversary_probabilities"),
]
WORDS = ["split", "instance", "tokens", "maskable", "tokens_b"]
# Preferred lengths of texts, and the most words drawn of a text.
READABLE = range(5, 31)
MOST_WORDS = 32
# Words on either side of a word with a large weight that are drawn with it.
CONTEXT = 3
LONGEST_WORD = 24
# Number of shades, and opacity of the word with the largest weight, on which dark text is still readable.
SHADES = 12
DARKEST = 0.62

# Margin, width of the labels, line height, font size and space between words, in points.
EDGE = 6.0
LABELS = 56.0
LINE = 14.0
SIZE = 7.5
SPACE = 3.2


@dataclass(frozen=True)
class AttackedText:
    """A text with its attention and adversarial attention, and the model's output under both.

    `second` is the question or hypothesis, if any; `before` and `after` are the probability of the predicted class
    under both, and `then` is the class predicted under the adversary, if it differs.
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

    @classmethod
    def from_rows(cls, row: Mapping[str, Any], instance: Mapping[str, Any], classes: Sequence[str]) -> "AttackedText":
        """The text of a row of `adversaries` and a row of `instances`."""
        before, after = row["probabilities"], row["adversary_probabilities"]
        predicted, then = int(np.argmax(before)), int(np.argmax(after))
        return cls(
            f"{row['split']} {row['instance']}, seed {row['seed']}",
            [word for word, free in zip(instance["tokens"], instance["maskable"], strict=True) if free],
            # Without its start and end tokens.
            list(instance["tokens_b"][1:-1]) if instance["tokens_b"] is not None else [],
            np.asarray(row["attention"], dtype=float),
            np.asarray(row["adversary"], dtype=float),
            classes[predicted],
            float(before[predicted]),
            float(after[predicted]),
            float(row["change"]),
            float(row["jsd"]),
            "" if then == predicted else classes[then],
        )


def choose_texts(divergences: pd.DataFrame, count: int = 4) -> pd.DataFrame:
    """The rows to draw: the most divergent adversaries of readable texts, of each predicted class in turn.

    Only feasible rows of the smallest epsilon are used, and each text once. The shortest text comes first.
    """
    smallest = divergences["epsilon"] == divergences["epsilon"].min()
    rows = divergences[smallest & (divergences["feasible"] > 0)]
    # Between nearly equal divergences the shorter text is preferred.
    keys = {"unreadable": ~rows["length"].isin(READABLE), "negative_jsd": -rows["jsd"].round(2)}
    rows = rows.assign(**keys).sort_values(["unreadable", "negative_jsd", "length", "split", "instance", "seed"])
    rows = rows.drop_duplicates(["split", "instance"])
    turn = rows.groupby("predicted_class").cumcount()
    chosen = rows.assign(turn=turn).sort_values(["unreadable", "turn", "negative_jsd"], kind="stable").head(count)
    return chosen.sort_values(["length", "split", "instance"])


def read_texts(
    chosen: pd.DataFrame, adversaries: Iterable[pa.Table], instances: pa.Table, classes: Sequence[str]
) -> list[AttackedText]:
    """The chosen texts, in their order, from tables with the columns `WEIGHTS` and one with `WORDS`."""
    numbers = pa.array(chosen["instance"].unique(), pa.int32())

    def chosen_rows(table: pa.Table, keys: list[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
        rows = table.filter(pc.is_in(table["instance"], numbers)).to_pylist()
        return {tuple(row[key] for key in keys): row for row in rows}

    words = chosen_rows(instances, TEXT[1:3])
    weights = {key: row for table in adversaries for key, row in chosen_rows(table, TEXT).items()}
    keys = chosen[TEXT].itertuples(index=False, name=None)
    return [AttackedText.from_rows(weights[key], words[key[1:3]], classes) for key in keys]


def adversarial_texts(texts: list[AttackedText], title: str, epsilon: float, second: str = "second text") -> Figure:
    """Each text twice, with words shaded by the attention and by the adversary on the same scale."""
    if not texts:
        return style.sentence_figure(
            f"{title}:\nno text has an adversary that changes\nthe output by {epsilon:g} or less."
        )
    width = 72 * style.TWO_COLUMNS
    with style.theme():
        figure = style.new_figure(style.TWO_COLUMNS, 1)
        # All positions are computed here.
        figure.set_layout_engine("none")
        sheet = figure.add_axes((0, 0, 1, 1))
        sheet.set_axis_off()
        writer = LineWriter(sheet, width)
        writer.write(title, EDGE, 9)
        writer.y += LINE + 1
        subtitle = (
            "Attention, and the most different adversarial attention that changes the output by "
            f"{epsilon:g} or less; darker words have more weight."
        )
        writer.write(subtitle, EDGE, 6.5, style.FAINT)
        writer.y += LINE + 5
        for text in texts:
            _draw(writer, text, second)
        figure.set_figheight(writer.y / 72)
        sheet.set(xlim=(0, width), ylim=(writer.y, 0))
    return figure


class LineWriter:
    """Writes lines on axes measured in points from the upper left corner; `y` is the middle of the current line."""

    def __init__(self, sheet: Axes, width: float) -> None:
        self.sheet = sheet
        self.width = width
        self.y = EDGE + 6

    def write(self, text: str, x: float, size: float = SIZE, colour: str = style.INK, **look: Any) -> None:
        """Write literally: a dollar sign does not start a formula."""
        self.sheet.text(x, self.y, text, fontsize=size, color=colour, va="center_baseline", parse_math=False, **look)

    def shade(self, boxes: list[tuple[float, float]], strength: float, colour: str) -> None:
        """Shade intervals of this line, all as one path."""
        top, bottom = self.y - LINE / 2 + 1, self.y + LINE / 2 - 1
        corners = [[(a, top), (b, top), (b, bottom), (a, bottom), (a, top)] for a, b in boxes]
        shape = Path.make_compound_path(*(Path(box, closed=True) for box in corners))
        mixed = [strength * channel + 1 - strength for channel in to_rgb(colour)]
        self.sheet.add_patch(PathPatch(shape, facecolor=mixed, linewidth=0))


def _draw(writer: LineWriter, text: AttackedText, second: str) -> None:
    writer.sheet.plot([EDGE, writer.width - EDGE], [writer.y] * 2, color="#dcdfe3", linewidth=0.6)
    writer.y += LINE - 3
    prediction = f"{_short(text.predicted)} {text.before:.3f} → {text.after:.3f}"
    prediction += f" (now {_short(text.then)})" if text.then else ""
    writer.write(prediction, EDGE, fontweight="bold")
    distances = f"change in output {text.change:.3f},  JSD {text.jsd:.2f}"
    writer.write(distances, EDGE + text_width(prediction, SIZE, weight="bold") + 12)
    writer.write(text.name, writer.width - EDGE, 6.5, style.FAINT, ha="right")
    writer.y += LINE + 1
    if text.second:
        words = [_short(word) for word in text.second]
        _lines(writer, second, words if len(words) <= MOST_WORDS else [*words[:MOST_WORDS], "…"], style.FAINT)
    positions = window(np.maximum(text.attention, text.adversary))
    words = ["…" if i is None else _short(text.words[i]) for i in positions]
    largest = max(float(text.attention.max()), float(text.adversary.max()))
    rows = (("attention", text.attention, style.measure_colour("attention")), ("adversary", text.adversary, ADVERSARY))
    for label, weights, colour in rows:
        _lines(writer, label, words, colour, [0.0 if i is None else weights[i] / largest for i in positions])
        writer.y += 2
    writer.y += 1


def _lines(writer: LineWriter, label: str, words: list[str], colour: str, shares: list[float] | None = None) -> None:
    """A label and the wrapped words to the right of it, shaded by their `shares` of the largest weight."""
    writer.write(label, EDGE, 6.5, colour)
    ink = style.FAINT if shares is None else style.INK
    widths = [text_width(word, SIZE) for word in words]
    for line in wrap_words(widths, SPACE, writer.width - 2 * EDGE - LABELS):
        starts = EDGE + LABELS + np.cumsum([0, *(widths[i] + SPACE for i in line)])
        # The square root makes small weights visible next to large ones.
        levels = [round(SHADES * shares[i] ** 0.5) for i in line] if shares else [0] * len(line)
        for level in sorted({*levels} - {0}):
            boxes = [
                (start - 1.2, start + widths[i] + 1.2)
                for start, i, word_level in zip(starts, line, levels, strict=False)
                if word_level == level
            ]
            writer.shade(boxes, DARKEST * level / SHADES, colour)
        # Word by word, because other file formats may render a whole line slightly wider than measured.
        for start, i in zip(starts, line, strict=False):
            writer.write(words[i], start, colour=ink)
        writer.y += LINE


def wrap_words(widths: Sequence[float], space: float, available: float) -> Iterator[list[int]]:
    """The indices of the words of each line; a word wider than the available width has its own line."""
    line: list[int] = []
    used = 0.0
    for i, width in enumerate(widths):
        if line and used + space + width > available:
            yield line
            line, used = [], 0.0
        used += width + (space if line else 0)
        line.append(i)
    if line:
        yield line


def window(weights: np.ndarray, most: int = MOST_WORDS) -> list[int | None]:
    """The indices of the words to draw, with None for omitted words: all words, or those around the largest weights."""
    if len(weights) <= most:
        return list(range(len(weights)))
    kept: set[int] = set()
    for largest in np.argsort(-weights, kind="stable"):
        around = set(range(max(0, largest - CONTEXT), min(len(weights), largest + CONTEXT + 1)))
        if len(kept | around) > most:
            break
        kept |= around
    indices: list[int | None] = []
    for previous, i in pairwise([-1, *sorted(kept), len(weights)]):
        indices += [i] if i == previous + 1 else [None, i]
    return indices[:-1]


def _short(word: str) -> str:
    """A word without line breaks and other unprintable characters, truncated if long."""
    printable = "".join(letter if letter.isprintable() else "·" for letter in word)
    return printable if len(printable) <= LONGEST_WORD else printable[: LONGEST_WORD - 1] + "…"


@figure(
    "adversarial-texts",
    reads=["scores:adversarial_attention", "datasets:adversarial_attention", "instances:adversarial_attention"],
    params=["tasks"],
    cells="adversarial_attention",
    per=["dataset", "model"],
    page="attention",
    experiment="adversarial attention",
    order=80,
)
def draw_texts(drawing: Drawing) -> Figure:
    """Texts with their words shaded by attention (upper row) and by the most different attention that changes the
    output by at most the smallest ε (lower row; Jain & Wallace’s appendix D). Darker words have more weight, on the
    same scale in both rows. Above a text: the predicted class with its probability under either attention, the change
    in output ½ Σ |Δp|, and the JSD between the two, at most ln 2.
    """
    rows, classes = read_scores(drawing, "adversarial_attention", ADVERSARIES, DIVERGENCES)
    [instances] = drawing.here("instances:adversarial_attention")
    texts = read_texts(
        choose_texts(rows),
        # One file at a time, because the weights of all words need much memory.
        (read_table(file.path, ADVERSARIES, WEIGHTS) for file in drawing.here("scores:adversarial_attention")),
        read_table(instances.path, INSTANCES, WORDS),
        classes,
    )
    second = SECOND_TEXTS.get(drawing.facts["tasks"][drawing.dataset], "second text")
    return adversarial_texts(texts, drawing.title, rows["epsilon"].min(), second)
