"""Neighbour sampling behind PyG's interface, for modules whose exact receptive field is too large.

PyG's own samplers need its compiled add-ons; this one needs none, and reads a memory-mapped network where it is.
`GPN(fanout=…)` samples by the same kernel, without PyG.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import BaseSampler, EdgeSamplerInput, NodeSamplerInput, SamplerOutput

from fewnode import kernels
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, is_sparse
from fewnode.nn import as_tensor


class NeighbourSampler(BaseSampler):  # type: ignore[misc]
    """At most `fanouts[h]` neighbours, chosen alike, of each node first met at hop h; every call is another choice.

    `node_loader` gives the arcs the weights that make up for those left out.
    """

    def __init__(self, graph: Graph, fanouts: Sequence[int], seed: int = 0) -> None:
        if not fanouts or min(fanouts) < 1:
            raise FewnodeError(f"fanouts {list(fanouts)}: expected at least one, each at least 1")
        self.graph, self.fanouts, self.seed, self.calls = graph, tuple(fanouts), seed, 0

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> SamplerOutput:
        adj = self.graph.adj
        nodes = index.node.numpy()
        place = {int(node): i for i, node in enumerate(nodes)}
        found, row, column = list(nodes), [], []
        frontier, counts, arcs = nodes, [nodes.size], []
        for hop, fanout in enumerate(self.fanouts):
            key = int(np.random.SeedSequence((self.seed, self.calls, hop)).generate_state(1, np.uint64)[0])
            ones = np.broadcast_to(np.float32(1), adj.indices.shape)
            rows = (adj.indptr[:-1], adj.indptr[1:], adj.indices, ones)
            indptr, indices, _ = kernels.pack_some(*rows, frontier, fanout, np.uint64(key))
            met = [node for node in dict.fromkeys(indices.tolist()) if node not in place]
            place |= {node: len(found) + i for i, node in enumerate(met)}
            found += met
            row += [place[node] for node in indices.tolist()]
            column += np.repeat([place[int(node)] for node in frontier], np.diff(indptr)).tolist()
            frontier = np.array(met, np.int64)
            counts.append(len(met))
            arcs.append(indices.size)
        self.calls += 1
        tensors = (torch.tensor(part, dtype=torch.long) for part in (found, row, column))
        return SamplerOutput(*tensors, None, None, counts, arcs, metadata=(index.input_id, index.time))

    def sample_from_edges(self, index: EdgeSamplerInput, neg_sampling: Any = None) -> SamplerOutput:
        raise FewnodeError("edges are not classified here; sample from nodes")


def node_loader(graph: Graph, nodes: Tensor, fanouts: Sequence[int], seed: int = 0, **more: Any) -> NodeLoader:
    """Batches of the nodes with their sampled neighbourhoods: PyG's `Data`, the nodes asked for first.

    `edge_weight` is Â's entry times the neighbours that the arc stands for, and `loop_weight` Â's diagonal: with both,
    the expected aggregate of a node is that of all its neighbours. `more` goes to `NodeLoader`, such as `batch_size`.
    """
    if is_sparse(graph.x):
        raise FewnodeError("sparse attributes: use GPN(fanout=…), or make them dense")
    scale = torch.from_numpy((graph.degree + 1.0) ** -0.5).float()
    degree = torch.from_numpy(graph.degree)

    def weigh(batch: Any) -> Any:
        source, target = batch.edge_index
        own, ids = scale[batch.n_id], batch.n_id
        kept = torch.bincount(target, minlength=ids.numel())
        share = degree[ids] / kept.clamp(min=1)
        batch.edge_weight = own[source] * own[target] * share[target]
        batch.loop_weight = own.square()
        return batch

    data = Data(x=as_tensor(graph.x), edge_index=torch.empty(2, 0, dtype=torch.long))
    sampler = NeighbourSampler(graph, fanouts, seed)
    return NodeLoader(data, sampler, input_nodes=nodes, transform=weigh, **more)
