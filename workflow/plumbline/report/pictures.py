"""Figures as the report holds them: where each belongs, what it says, and its SVG text made small."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote


class Kind(NamedTuple):
    """The experiment that a kind of figure belongs to, and its caption, which also tells who cannot see it."""

    experiment: str
    caption: str


# Where the captions lie that Snakemake's own report reads.
CAPTIONS = "workflow/captions"
# In the order in which pages show them.
KINDS = {
    "scorecard": Kind(
        "scorecard",
        "Every measure (rows) by every criterion of the study (columns), the darker the better it stands among the "
        "measures; for one dataset and model with the values, for all of them with the mean place, 1 being the best.",
    ),
    "meta-evaluation": Kind(
        "scorecard",
        "How alike every two criteria rank the measures: Kendall τ, the mean over datasets and models, with its 95 % "
        "interval. Near 1 two protocols would choose the same measures, near 0 they have nothing to say to each other.",
    ),
    "tau-histogram": Kind(
        "correlation", "Kendall τ between attention and each other measure, text by text, by predicted class."
    ),
    "tau-matrix": Kind("correlation", "Mean Kendall τ of every pair of measures."),
    "correlation-matrices": Kind(
        "correlation",
        "Mean Kendall τ of every pair of a model’s measures over the texts of all seeds, with the standard deviation "
        "over them in small print, dataset beside dataset (Neely et al.’s Tables 1 and 2).",
    ),
    "permutation": Kind(
        "permutation",
        "How much the output changes when attention is shuffled among the words, by the largest weight that a word had "
        "(Jain & Wallace’s Figure 6). Near 0 the model does not care which words the attention is on.",
    ),
    "jsd-histogram": Kind(
        "adversarial attention",
        "How far attention can be moved while the output changes by no more than ε; JSD is 0 for the same weights and "
        "ln 2 for weights on other words altogether (Figure 7). Texts without such an adversary are not feasible and "
        "count as 0.",
    ),
    "jsd-violins": Kind(
        "adversarial attention",
        "How far attention can be moved while the output changes by no more than ε, by the largest weight that a word "
        "had (Figure 8).",
    ),
    "adversarial-texts": Kind(
        "adversarial attention",
        "Texts whose words are shaded by the attention, and by an adversary of it that leaves the output all but the "
        "same (appendix D).",
    ),
    "jsd-tvd-plane": Kind(
        "adversarial models",
        "How different the attention of adversaries is from their base model’s (JSD, to the right) and how different "
        "their output is (TVD, upwards): a curve by the strength λ of Wiegreffe & Pinter’s objective, a star for "
        "AtteFa’s, crosses for the base model from other seeds. Low and far right other attention gives the same "
        "output; along each straight line AtteFa is the same.",
    ),
    "seed-variance": Kind(
        "seed variance",
        "How far other seeds alone move attention, text by text: median JSD by the largest weight that a word had "
        "(left), and against the change in output that comes with it (right). 0 is the same attention, ln 2 attention "
        "on other words altogether.",
    ),
    "roar-curves": Kind(
        "masking and retraining",
        "Scores of models trained anew after words were masked, by how much is masked: a line for each measure that "
        "says which words go first, a dashed one for masking at random, and a dotted one where everything is masked; "
        "bands are 95 % intervals over seeds (Recursive ROAR’s Figures 4 and 7 to 9). The further a line is below "
        "random, the more faithful the measure. Where there is a second row, its models see only which words are "
        "masked: above its dotted line, chance, the masks give the class away.",
    ),
    "sparsity": Kind(
        "masking and retraining",
        "The share of a text’s importance that its most important words have together, by their number (left) and as a "
        "percentage of the text (right); a line for each measure (Madsen et al.’s Figures 5 and 6). Where a line rises "
        "early, few words have most of the importance.",
    ),
    "faithfulness": Kind(
        "masking and retraining",
        "Faithfulness of every measure with its 95 % interval, by dataset and model: full circles for the recursive "
        "strategy, hollow ones for the other, pale diamonds as published. Right of 0 masking by the measure costs more "
        "than masking at random; at 0 it costs as much.",
    ),
    "synthetic-roar": Kind(
        "masking and retraining",
        "Accuracy of a regression after so many features were removed, of which few are of use (Madsen et al.’s Figure "
        "3). Removal by importances that are computed anew each time follows the truth, useful features first; by "
        "those of the first fit it lags behind; worst is useless features first.",
    ),
    "attefa-violins": Kind(
        "adversarial models",
        "AtteFa by dataset and base model, a dot for each seed of the adversary: full where dev chose the epoch, "
        "hollow where test did; diamonds are published. Near 0 other attention gives the same output, near 1 it does "
        "not.",
    ),
    "mean-differences": Kind(
        "correlation",
        "Whose ranking agrees more with leave-one-out, and where (Jain & Wallace’s Figures 3 to 5; as there, of a "
        "BiLSTM and an average encoder with tanh attention).",
    ),
    "attribution-by-region": Kind(
        "ground truth",
        "The share of importance on the region that the label follows, against the region’s share of the picture "
        "(Zhou et al.’s Figure 5): full points for manipulated pictures, hollow ones for the others. A measure that "
        "finds the region is near the top; on the rising line it knows nothing of it.",
    ),
    "attribution-by-accuracy": Kind(
        "ground truth",
        "The share of importance on the region while models learn to use it, against their accuracy, a line for each "
        "model (Zhou et al.’s Figure 6). It should rise with the accuracy.",
    ),
    "attribution-by-visibility": Kind(
        "ground truth",
        "The share of importance on the region by how visible the manipulation is, a line for each region (Zhou et "
        "al.’s Figure 7).",
    ),
    "attribution-by-reassignment": Kind(
        "ground truth",
        "The share of importance on the region by how many labels were kept, and so follow the picture too (Zhou et "
        "al.’s Figure 8). The shaded band is where the region’s share in the Shapley values must be.",
    ),
    "attribution-by-group": Kind(
        "ground truth",
        "The share of importance on each group of words, beside its share of the words, which is what chance gets "
        "(Zhou et al.’s Table 1, for every measure).",
    ),
    "word-attribution": Kind(
        "ground truth", "The importance of each word of single texts; coloured words are those that the label follows."
    ),
    "saliency": Kind(
        "ground truth",
        "Pictures under the importance that each measure gives their pixels; the outline is the region that the label "
        "follows, and the number its share of the importance.",
    ),
    "rationale-curves": Kind(
        "rationales",
        "Precision and recall of the words that rationale models select, against the share that they select, with the "
        "best that could be: for all texts together (solid) and with the same share of each (dashed; Zhou et al.’s "
        "Figures 15 to 18).",
    ),
    "truth-found": Kind(
        "ground truth",
        "How much of the truth each measure finds: the share of importance on it, beside its share of words or pixels, "
        "and how many of as many top words belong to it.",
    ),
    "rule-graph": Kind(
        "",
        "The rules of the workflow. An arrow runs from a rule to one that needs its files; a dashed one where a rule "
        "reads what came of it for another model.",
    ),
}


# How words of their names are written.
SPELT = {"tau": "τ", "jsd": "JSD", "tvd": "TVD", "attefa": "AtteFa", "roar": "ROAR"}


def spelt(kind: str) -> str:
    """The name of a kind in words."""
    words = " ".join(SPELT.get(word, word) for word in kind.split("-"))
    return words if words[0] in "τ" else words[0].upper() + words[1:]


def captions(project: Path) -> dict[Path, str]:
    """The captions for Snakemake's own report, each in its file."""
    return {project / CAPTIONS / f"{kind}.rst": f"{of.caption}\n" for kind, of in KINDS.items()}


def order(kind: str) -> tuple[int, str]:
    """The place of a kind of figure among others; those that are not known here come last."""
    return list(KINDS).index(kind) if kind in KINDS else len(KINDS), kind


# So many pixels are wider than half a page.
WIDE = 620


@dataclass(frozen=True)
class Picture:
    """A figure as a page shows it; what it is about is empty where it is about all of the study."""

    kind: str
    experiment: str
    caption: str
    source: str
    width: int
    height: int
    dataset: str
    model: str
    encoder: str
    attention: str

    @property
    def wide(self) -> bool:
        """Whether it takes the whole width of a page."""
        return self.width > WIDE

    @property
    def title(self) -> str:
        """What it is about, in words."""
        return ", ".join(filter(None, [spelt(self.kind), self.dataset, self.model]))


def picture(path: str, svg: str, parts: Mapping[str, Mapping[str, str]] | None = None) -> Picture:
    """A figure by its path below the folder of figures; `parts` has the encoder and attention of each model, if it has
    them. A model without an encoder counts as one."""
    name, *where = path.split("/")
    kind = KINDS.get(name, Kind("other", name.replace("-", " ")))
    # The size is known before the image is drawn, so that the page does not jump. A point is 4/3 pixels; a screen is
    # read from further away than paper, so that figures are a quarter larger.
    size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    width, height = (round(float(points) * 4 / 3 * 1.25) for points in (size.groups() if size else ("480", "360")))
    of_model = len(where) == 1 and where[0] in (parts or {})
    dataset, model = ["", *where] if of_model else [*where, "", ""][:2]
    of = (parts or {}).get(model, {})
    return Picture(
        name,
        kind.experiment,
        kind.caption,
        file_of(path),
        width,
        height,
        dataset,
        model,
        encoder=of.get("encoder", model),
        attention=of.get("attention", "none" if model else ""),
    )


def file_of(path: str) -> str:
    """The address of a figure's file from a page."""
    return f"figures/{quote(path)}.svg"


def slim(svg: str) -> str:
    """The same figure in fewer letters, as Matplotlib writes many: a report may hold hundreds of figures.

    Places are cut to a hundredth of a point, and a letter's place is an attribute of its own.
    """
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<!DOCTYPE[^>]*>|<\?xml[^>]*\?>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"scale\([^)]*\)|(\d+\.\d\d)\d+", lambda found: found[1] or found[0], svg)
    svg = re.sub(r'<use xlink:href="([^"]*)" transform="translate\(([-\d.]+) 0\)"', r'<use href="\1" x="\2"', svg)
    # Nothing refers to the parts of a figure by these names; to letters it does.
    svg = re.sub(r' id="[a-z0-9]+_\d+"', "", svg)
    svg = re.sub(r'(id="|href="#)DejaVuSans-', r"\1", svg)
    svg = re.sub(r"\s*\n\s*", " ", svg.strip())
    svg = re.sub(r" ?\b([MLQCz]) (?=[-\d\"MLQC])", r"\1", svg)
    return svg.replace("> <", "><")
