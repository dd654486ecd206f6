"""Attention flow on one integer graph, compared with networkx as in the published code."""

from collections.abc import Iterator

import networkx as nx
import numpy as np
import torch
from sizes import Sizes
from timing import Row, compare

from plumbline.attribution.flow import flow
from plumbline.attribution.rollout import mixing_matrices

LAYERS, HEADS = 6, 12


def one_graph_of_all_tokens(capacities: np.ndarray) -> np.ndarray:
    """Flows [S] from the first token of the last layer by definition: a node for each token of each layer, a maximum
    flow for each token of the lowest."""
    graph = nx.DiGraph()
    for layer, above in enumerate(capacities):
        for (i, j), capacity in np.ndenumerate(above):
            graph.add_edge((layer + 1, i), (layer, j), capacity=capacity)
    return np.array([nx.maximum_flow_value(graph, (len(capacities), 0), (0, j)) for j in range(capacities.shape[1])])


def rows(sizes: Sizes) -> Iterator[Row]:
    """One text of several lengths, with random attention of DistilBERT's shape."""
    for length, turns in sizes.flows.items():
        generator = torch.Generator().manual_seed(length)
        scores = 2 * torch.randn(1, LAYERS, HEADS, length, length, generator=generator)
        capacities, readout = mixing_matrices(scores.softmax(-1))[0].numpy(), np.eye(length)[0]
        yield compare(
            f"attention flow, a text of {length} tokens, {LAYERS} layers",
            lambda capacities=capacities: one_graph_of_all_tokens(capacities),
            lambda capacities=capacities, readout=readout: flow(capacities, readout),
            turns,
        )
