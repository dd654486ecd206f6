"""Attention flow: the maximum flow from each token to the output with attention weights as edge capacities."""

from typing import Literal

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from plumbline.attribution.importances import Importances, ScoreBuffer
from plumbline.attribution.inputs import feature_mask
from plumbline.attribution.rollout import mixing_matrices
from plumbline.data.instances import Instances
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure
from plumbline.runtime.progress import Progress

# The solver takes integers up to this.
LARGEST = np.iinfo(np.int32).max


def flow(capacities: np.ndarray, readout: np.ndarray) -> np.ndarray:
    """The maximum flow from the readout to each token below the first layer, [S].

    capacities: [layers, S, S], first layer first, of the edges from token i of a layer to token j of the one below it;
    readout: [S], of the edges from the source to the tokens of the last layer.

    One graph serves all tokens, which differ only in the edges from the first layer to the token: a sink replaces the
    token, and the other tokens, which have no outgoing edges, are left out. Capacities are rounded to integers in units
    of the source's total capacity, which bounds the flow through any edge, divided by 2³¹ - 1, so that nothing
    overflows. The error of a flow is at most one unit per edge of its minimum cut.
    """
    layers, size, _ = capacities.shape
    unit = readout.sum() / LARGEST
    whole = np.rint(np.minimum(capacities / unit, LARGEST)).astype(np.int32)
    # Rounded down, so that their sum does not exceed the largest integer.
    source = np.floor(readout / unit).astype(np.int32)
    whole[-1, source == 0] = 0
    # Node 0 is the source, followed by the tokens of the layers, last layer first, and the sink.
    tokens, sink = np.arange(1, layers * size + 1, dtype=np.int32).reshape(layers, size), layers * size + 1
    layer, row, column = np.nonzero(whole[:0:-1])
    edges = (
        np.concatenate([source, whole[:0:-1][layer, row, column], whole[0, :, 0]]),
        np.concatenate([np.zeros_like(tokens[0]), tokens[layer, row], tokens[-1]]),
        np.concatenate([tokens[0], tokens[layer + 1, column], np.full_like(tokens[0], sink)]),
    )
    graph = csr_array((edges[0], edges[1:]), shape=(sink + 1, sink + 1))
    flows = np.empty(size)
    for token in range(size):
        # The edges to the sink come last, in token order.
        graph.data[-size:] = whole[0, :, token]
        flows[token] = maximum_flow(graph, 0, sink).flow_value * unit
    return flows


@measure(
    "attention-flow",
    needs=["layers"],
    range=[0, 1],
    equation="φ_t / Σ_s φ_s, φ_t = maximum flow from r to (0, t) with capacities Â_l = (Ā_l + I) / 2",
    cost="One or two forward passes per text and a maximum flow for each of its tokens, on the CPU: 0.02 s for 40 "
    "tokens and six layers, 4 s for 240.",
    misleads="It ignores values, feed-forward layers and the class: the same scores explain any output. Without a "
    "bottleneck all of the readout can flow to many tokens, which then tie.",
    citation="Abnar & Zuidema (2020), Quantifying Attention Flow in Transformers. ACL.",
)
@torch.no_grad()
def attention_flow(
    evaluator: Evaluator,
    instances: Instances,
    *,
    texts: Literal["first", "both"] = "both",
    specials: bool = True,
) -> Importances:
    """The maximum flow from the readout to each token, in the graph of all layers' tokens with attention weights as the
    capacities of the edges to the layer below (Abnar & Zuidema 2020).

    Layers and readout are those of rollout. Flows are divided by their sum over all tokens, including special tokens
    and second texts even if these are not scored. They are exact up to the rounding of capacities, which is far below
    1e-6 of the readout. Tokens that can receive all of the readout tie.
    """
    buffer = ScoreBuffer(instances, texts, specials)
    progress = Progress(len(instances), f"seed {evaluator.seed}", "text")

    def work(index: np.ndarray, batch: Batch) -> None:
        mixed = mixing_matrices(evaluator.model.layers(batch)).cpu().numpy()
        readout = evaluator.model.readout(batch).double().cpu().numpy()
        present = feature_mask(batch).cpu().numpy()
        scores = np.zeros(present.shape)
        for row, tokens in enumerate(present):
            flows = flow(mixed[row][:, tokens][:, :, tokens], readout[row, tokens])
            scores[row, tokens] = flows / flows.sum()
            progress.update()
        buffer.add(index, batch, torch.from_numpy(scores))

    evaluator.each(instances, work)
    progress.close()
    return buffer.importances(explained=False)
