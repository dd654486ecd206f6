"""Attention flow: how much could pass from each token to the output if attention weights were the widths of pipes."""

from typing import Literal

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from plumbline.attribution.importances import Importances, ScoreBuffer
from plumbline.attribution.inputs import features
from plumbline.attribution.rollout import mixing
from plumbline.data.instances import Instances
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure
from plumbline.runtime.progress import Progress

# The solver's numbers are whole and no larger than this.
LARGEST = np.iinfo(np.int32).max


def flow(capacities: np.ndarray, readout: np.ndarray) -> np.ndarray:
    """The maximum flow from the readout to each token below the first layer, [S].

    capacities: [layers, S, S], first layer first, of the edges from token i of a layer to token j of the one below it;
    readout: [S], of the edges from the source to the tokens of the last layer.

    One graph serves all tokens, since they differ only in the edges from the first layer to the token: a sink takes
    their place, and nothing leads to the other tokens, from where nothing leads on. Capacities become whole numbers in
    units of a 2³¹st of what the source can give, which is the most that any edge can carry, so that nothing overflows.
    A flow is then off by at most a unit for each edge of its minimum cut.
    """
    layers, size, _ = capacities.shape
    unit = readout.sum() / LARGEST
    whole = np.rint(np.minimum(capacities / unit, LARGEST)).astype(np.int32)
    # Rounded down: together they must not be more than the largest number.
    given = np.floor(readout / unit).astype(np.int32)
    whole[-1, given == 0] = 0
    # The source is node 0; then come the tokens of the layers, last layer first, and then the sink.
    tokens, sink = np.arange(1, layers * size + 1, dtype=np.int32).reshape(layers, size), layers * size + 1
    layer, row, column = np.nonzero(whole[:0:-1])
    edges = (
        np.concatenate([given, whole[:0:-1][layer, row, column], whole[0, :, 0]]),
        np.concatenate([np.zeros_like(tokens[0]), tokens[layer, row], tokens[-1]]),
        np.concatenate([tokens[0], tokens[layer + 1, column], np.full_like(tokens[0], sink)]),
    )
    graph = csr_array((edges[0], edges[1:]), shape=(sink + 1, sink + 1))
    flows = np.empty(size)
    for token in range(size):
        # The edges to the sink are the last, in the order of tokens.
        graph.data[-size:] = whole[0, :, token]
        flows[token] = maximum_flow(graph, 0, sink).flow_value * unit
    return flows


@measure(
    "attention-flow",
    needs=["layers"],
    range=[0, 1],
    equation="φ_t / Σ_s φ_s, φ_t = maximum flow from r to (0, t) with capacities Â_l = (Ā_l + I) / 2",
)
@torch.no_grad()
def attention_flow(
    evaluator: Evaluator,
    instances: Instances,
    *,
    texts: Literal["first", "both"] = "both",
    specials: bool = True,
) -> Importances:
    """The maximum flow to each token from where the output reads, if a layer's tokens are nodes and what they attend to
    is the capacity of the edges to the layer below (Abnar & Zuidema 2020).

    Layers and readout are those of rollout. Flows are divided by their sum over all tokens, special ones and those of a
    second text too, whether they are told or not. They are exact but for the rounding of capacities, which is far below
    1e-6 of the readout. Tokens to which all of the readout can flow tie.
    """
    gathered = ScoreBuffer(instances, texts, specials)
    progress = Progress(len(instances), f"seed {evaluator.seed}", "text")

    def work(index: np.ndarray, batch: Batch) -> None:
        mixed = mixing(evaluator.model.layers(batch)).cpu().numpy()
        readout = evaluator.model.readout(batch).double().cpu().numpy()
        present = features(batch).cpu().numpy()
        scores = np.zeros(present.shape)
        for row, there in enumerate(present):
            flows = flow(mixed[row][:, there][:, :, there], readout[row, there])
            scores[row, there] = flows / flows.sum()
            progress.update()
        gathered.add(index, batch, torch.from_numpy(scores))

    evaluator.each(instances, work)
    progress.close()
    return gathered.importances(explained=False)
