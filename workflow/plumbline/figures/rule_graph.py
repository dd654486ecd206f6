"""A workflow's rule graph, drawn from the DOT text that `snakemake --rulegraph dot` prints, without graphviz.

Layered drawing after Sugiyama, Tagawa & Toda (1981): every rule in a layer above the rules that need it, an edge that
spans several layers bent at a waypoint in each, and the layers ordered so that few edges cross.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path

from plumbline.errors import PlumblineError
from plumbline.figures import style

NODE = re.compile(r'^\s*(\w+)\s*\[\s*label\s*=\s*"((?:[^"\\]|\\.)*)"')
EDGE = re.compile(r"^\s*(\w+)\s*->\s*(\w+)")

# Inches: the height of a box, the distance between layers and that between boxes of a layer.
BOX = 0.3
LAYER = 0.66
GAP = 0.22
WAYPOINT = 0.1
# Sweeps that order the layers, and sweeps that move boxes towards their neighbours; more change nothing.
ORDERINGS = 24
SETTLINGS = 300


@dataclass(frozen=True)
class Layout:
    """Boxes and waypoints by layer, top to bottom, each with its x; and every edge as the places it passes."""

    layers: list[list[str]]
    x: dict[str, float]
    width: dict[str, float]
    edges: list[list[str]]


def parse_dot(text: str) -> nx.DiGraph:
    """The rules and which of them needs which, by the rules' names."""
    names: dict[str, str] = {}
    edges: list[tuple[str, str]] = []
    for line in text.splitlines():
        if node := NODE.match(line):
            # Snakemake writes a rule's wildcards after its name, on lines of their own.
            names[node[1]] = node[2].split("\\n")[0].replace('\\"', '"')
        elif edge := EDGE.match(line):
            edges.append((edge[1], edge[2]))
    if not names or any(end not in names for edge in edges for end in edge):
        raise PlumblineError("The rule graph cannot be drawn: the text is not what 'snakemake --rulegraph dot' prints.")
    graph = nx.DiGraph()
    graph.add_nodes_from(names.values())
    graph.add_edges_from((names[before], names[after]) for before, after in edges)
    return graph


def turned_back(graph: nx.DiGraph) -> list[tuple[str, str]]:
    """The edges that lead back to the rule at which their circle begins: a model may read another model, or the rule
    itself one level below.

    It is the one with the most before it outside the circle. What is left of a circle may hold another.
    """
    left, found = graph.copy(), []
    while not nx.is_directed_acyclic_graph(left):
        back = [edge for circle in nx.strongly_connected_components(left) for edge in _closing(left, circle)]
        left.remove_edges_from(back)
        found += back
    return sorted(found)


def _closing(graph: nx.DiGraph, circle: set[str]) -> list[tuple[str, str]]:
    """The edges of a circle into the rule at which it begins."""
    outside = graph.subgraph(set(graph) - circle)
    before = {rule: {p for p in graph.predecessors(rule) if p in outside} for rule in circle}
    begun = {rule: len(ps.union(*(nx.ancestors(outside, p) for p in ps))) for rule, ps in before.items()}
    first = max(sorted(circle), key=begun.__getitem__)
    return [(rule, first) for rule in graph.predecessors(first) if rule in circle]


def layers_of(graph: nx.DiGraph) -> dict[str, int]:
    """The layer of every rule, 0 at the bottom: the longest way from it to a rule that nothing needs."""
    layer: dict[str, int] = {}
    for rule in reversed(list(nx.lexicographical_topological_sort(graph))):
        layer[rule] = max((layer[after] + 1 for after in graph.successors(rule)), default=0)
    return layer


def lay_out(graph: nx.DiGraph) -> Layout:
    """Places for a graph's rules. An edge that a longer way through other rules implies is left out."""
    essential = nx.transitive_reduction(graph)
    essential.add_nodes_from(graph.nodes)
    layer = layers_of(essential)
    width = {rule: 0.3 + 0.078 * len(rule) for rule in essential}
    edges = []
    for before, after in sorted(essential.edges):
        between = [f"{before}\n{after}\n{level}" for level in range(layer[before] - 1, layer[after], -1)]
        layer |= {waypoint: layer[before] - 1 - step for step, waypoint in enumerate(between)}
        width |= dict.fromkeys(between, WAYPOINT)
        edges.append([before, *between, after])
    chain = nx.DiGraph()
    chain.add_nodes_from(layer)
    chain.add_edges_from(step for edge in edges for step in pairwise(edge))
    layers = ordered_layers(chain, layer)
    return Layout(layers, _places(chain, layers, width), width, edges)


def ordered_layers(chain: nx.DiGraph, layer: dict[str, int]) -> list[list[str]]:
    """The layers, top to bottom, each sorted by the mean place of its neighbours; the best of many sweeps is kept."""
    tops = range(max(layer.values()), -1, -1)
    layers = [sorted(name for name in layer if layer[name] == level) for level in tops]
    best, fewest = [list(row) for row in layers], crossings(chain, layers)
    for sweep in range(ORDERINGS):
        down = sweep % 2 == 0
        for level in range(1, len(layers)) if down else range(len(layers) - 2, -1, -1):
            place = {name: i for i, name in enumerate(layers[level - 1 if down else level + 1])}
            current = {name: i for i, name in enumerate(layers[level])}
            neighbours = chain.predecessors if down else chain.successors
            centre = {name: np.mean([place[n] for n in neighbours(name)] or [current[name]]) for name in layers[level]}
            layers[level] = sorted(layers[level], key=lambda name, c=centre, i=current: (c[name], i[name]))  # type: ignore[misc]
        if (crossed := crossings(chain, layers)) < fewest:
            best, fewest = [list(row) for row in layers], crossed
    return best


def crossings(chain: nx.DiGraph, layers: list[list[str]]) -> int:
    """How many pairs of edges cross between neighbouring layers."""
    total = 0
    for upper, lower in pairwise(layers):
        place = {name: i for i, name in enumerate(lower)}
        ends = [place[after] for name in upper for after in sorted(chain.successors(name), key=place.__getitem__)]
        total += sum(one > other for i, one in enumerate(ends) for other in ends[i + 1 :])
    return total


def _places(chain: nx.DiGraph, layers: list[list[str]], width: dict[str, float]) -> dict[str, float]:
    """An x for everything: the sum of squared sideways steps of all edges is least, with nothing closer than GAP.

    Row after row is put where it is best given the others; the sum is convex and falls each time.
    """
    pull = {name: float(max(chain.degree(name), 1)) for name in chain}
    x: dict[str, float] = {}
    for row in layers:
        x |= _apart(row, dict.fromkeys(row, 0.0), pull, width)
    for sweep in range(SETTLINGS):
        for row in layers if sweep % 2 else reversed(layers):
            wish = {name: float(np.mean([x[n] for n in nx.all_neighbors(chain, name)] or [x[name]])) for name in row}
            x |= _apart(row, wish, pull, width)
    return x


def _apart(row: list[str], wish: dict[str, float], pull: dict[str, float], width: dict[str, float]) -> dict[str, float]:
    """The places nearest to the wished ones, in weighted squares, that keep the row's order and its gaps.

    Less the room that the items before it need, every item only has to stand not left of its neighbour: that is
    isotonic regression, solved by pooling neighbours that are out of order.
    """
    offset = np.cumsum([0.0, *((width[a] + width[b]) / 2 + GAP for a, b in pairwise(row))])
    pools: list[tuple[float, float, int]] = []
    for name, room in zip(row, offset, strict=True):
        mean, weight, size = wish[name] - room, pull[name], 1
        while pools and pools[-1][0] > mean:
            before, mass, count = pools.pop()
            mean = (mean * weight + before * mass) / (weight + mass)
            weight, size = weight + mass, size + count
        pools.append((mean, weight, size))
    level = np.repeat([mean for mean, _, _ in pools], [size for _, _, size in pools])
    return dict(zip(row, (level + offset).tolist(), strict=True))


def rule_graph(dot: str) -> Figure:
    """The figure: rules as boxes from top to bottom, an arrow from each to the rules that need its files."""
    graph = parse_dot(dot)
    back = turned_back(graph)
    graph.remove_edges_from(back)
    layout = lay_out(graph)
    left = min(layout.x[name] - layout.width[name] / 2 for name in layout.x)
    right = max(layout.x[name] + layout.width[name] / 2 for name in layout.x)
    depth = len(layout.layers) * LAYER
    y = {name: -LAYER * level for level, row in enumerate(layout.layers) for name in row}
    with style.look():
        figure = style.new_figure(right - left + 0.3, depth + 0.05)
        # One unit of the axes is one inch, so that boxes fit their names; nothing may be shifted then.
        figure.set_layout_engine("none")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(left - 0.15, right + 0.15), ylim=(LAYER / 2 - depth - 0.025, LAYER / 2 + 0.025))
        axes.set_axis_off()
        for edge in layout.edges:
            _arrow(axes, [(layout.x[name], y[name]) for name in edge])
        for ends in (edge for edge in back if edge[0] != edge[1]):
            _return(axes, *((layout.x[rule] + layout.width[rule] / 2, y[rule]) for rule in ends))
        for rule in sorted(graph):
            _box(axes, rule, layout.x[rule], y[rule], layout.width[rule], final=not list(graph.successors(rule)))
    return figure


def _arrow(axes: Axes, places: list[tuple[float, float]]) -> None:
    """A smooth line through the places: each bend leaves and enters a place vertically."""
    (x, y), *others = places
    points = [(x, y - BOX / 2)]
    codes = [Path.MOVETO]
    for position, (next_x, centre) in enumerate(others):
        next_y = centre + (BOX / 2 + 0.03 if position == len(others) - 1 else 0)
        middle = (points[-1][1] + next_y) / 2
        points += [(points[-1][0], middle), (next_x, middle), (next_x, next_y)]
        codes += [Path.CURVE4] * 3
    axes.add_patch(
        FancyArrowPatch(
            path=Path(points, codes),
            arrowstyle="-|>,head_length=3.2,head_width=1.7",
            color="#9aa2ac",
            linewidth=1,
            shrinkA=0,
            shrinkB=0,
            joinstyle="miter",
            zorder=1,
        )
    )


def _return(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    """A dashed bow on the right, from a rule up to one that also reads what comes of it."""
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            connectionstyle="arc3,rad=0.5",
            arrowstyle="-|>,head_length=3.2,head_width=1.7",
            color="#9aa2ac",
            linestyle=(0, (3, 2)),
            linewidth=1,
            shrinkA=0,
            shrinkB=0,
            zorder=1,
        )
    )


def _box(axes: Axes, rule: str, x: float, y: float, width: float, final: bool) -> None:
    fill, edge, ink = (style.BAR, style.BAR, "white") if final else ("#eef2f5", style.BAR, style.INK)
    round_ = "round,pad=0,rounding_size=0.08"
    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - BOX / 2),
            width,
            BOX,
            boxstyle=round_,
            facecolor=fill,
            edgecolor=edge,
            linewidth=0.9,
            zorder=2,
        )
    )
    axes.text(x, y - 0.005, rule.replace("_", " "), ha="center", va="center", fontsize=8, color=ink, zorder=3)
