"""The pictures of *How it works*, drawn by the code that they explain, on the tables of examples/tables.py."""

import runpy
import textwrap
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import fewnode
from fewnode.episodes import EpisodeSampler
from fewnode.experiment.figures import INK, axes

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#aa3377")
"""Paul Tol's bright scheme; the same class has the same colour everywhere."""
GREY = "#8899aa"
ASKED = {
    "vpn": fewnode.Class(yes=["openvpn", "tinc"], no=["nmap"], text="encrypted tunnels"),
    "mail": ["postfix", "mutt"],
}
"""The classes of *How an answer is made*."""


def drawn():
    data = tables()
    torch.set_num_threads(1)
    gpn, plus = (fewnode.Estimator(name, way=5, shot=5).fit(data) for name in ("gpn", "gpn-plus"))
    task, small = EpisodeSampler(data, "test", 3, 5, 4, seed=1)[0], EpisodeSampler(data, "test", 2, 5, 6, seed=1)[0]
    return {
        "episode": episode(data, task),
        "receptive_field": receptive_field(data, small),
        "prototypes": prototypes(data, gpn, small),
        "maps": maps(data, gpn, plus),
        "answers": plus.ask(data, ASKED).judge().plot(),
    }


def tables():
    """The packages of examples/tables.py, read as `fewnode data import` reads them."""
    script = Path(__file__).parents[1] / "examples" / "tables.py"
    with TemporaryDirectory() as place, chdir(place):
        runpy.run_path(str(script))
        return fewnode.read_tables("nodes.csv", "edges.csv", id="package", label="section")


def names_of(data, task):
    return [data.class_names[data.y[task.support[task.support_y == c][0]]] for c in range(task.n_way)]


def bare(figure, *where, title=""):
    ax = figure.add_subplot(*where)
    ax.set_title(title, color=INK, fontsize=11)
    ax.set(xticks=[], yticks=[])
    for side in ax.spines.values():
        side.set_color(GREY)
    return ax


def episode(data, task):
    """A task as the sampler draws it: support nodes with their class, and query nodes without."""
    figure = Figure(figsize=(8, 2.9))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.axis("off")
    ax.set(xlim=(0, 12.6), ylim=(-0.6, 3.4))
    ax.text(3.3, 3.1, "support: five nodes a class, labelled", color=INK, ha="center")
    ax.text(10.0, 3.1, "query: which class is each of these?", color=INK, ha="center")
    for c, name in enumerate(names_of(data, task)):
        ax.text(-0.1, 2.3 - c, name, color=COLOURS[c], weight="bold", va="center")
        ax.text(1.3, 2.3 - c, wrap(data, task.support[task.support_y == c], 52), color=INK, va="center", fontsize=8.5)
    asked = np.random.default_rng(2).permutation(task.query)
    for row in range(3):
        ax.text(8.0, 2.3 - row, wrap(data, asked[row::3], 38), color=INK, va="center", fontsize=8.5)
    ax.plot([7.75, 7.75], [-0.3, 3.2], color=GREY, lw=0.8)
    return figure


def wrap(data, nodes, width):
    """Names of nodes on as many lines as they need."""
    return textwrap.fill(", ".join(data.node_name(node) for node in nodes), width, break_on_hyphens=False)


def receptive_field(data, task):
    """What a training step reads: two hops around its support and query nodes."""
    few = sorted(np.concatenate([task.support, task.query]), key=lambda v: abs(data.graph.degree[v] - 4))[:3]
    seeds = np.array(few)
    near = reached(data.graph.adj, seeds)
    far = reached(data.graph.adj, near)
    place = spring(data.graph.adj, far, seeds)
    figure = Figure(figsize=(8, 3.6))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.axis("off")
    pairs = np.argwhere(np.triu(data.graph.adj[far][:, far].toarray()))
    inner = np.isin(far[pairs], near).all(axis=1)
    for chosen, width in ((~inner, 0.35), (inner, 0.9)):
        ax.add_collection(LineCollection(place[pairs[chosen]], colors=GREY, linewidths=width, zorder=1))
    for inside, size, colour in ((far, 9, GREY), (near, 26, COLOURS[0]), (seeds, 80, COLOURS[1])):
        ax.scatter(*place[np.searchsorted(far, inside)].T, s=size, color=colour, zorder=2)
    for v, point in zip(seeds, place[np.searchsorted(far, seeds)], strict=True):
        ax.annotate(data.node_name(v), point, (0, 9), textcoords="offset points", ha="center", color=INK)
    said = f"{len(seeds)} nodes, {len(near)} within one hop, {len(far)} within two, of {data.graph.n:,}"
    ax.text(0.5, -0.02, said, transform=ax.transAxes, ha="center", color=INK)
    return figure


def reached(adj, nodes):
    """Some nodes and their neighbours, in order."""
    return np.union1d(nodes, adj[nodes].indices)


def spring(adj, nodes, seeds, steps=150):
    """Places for nodes: neighbours pull, all push (Fruchterman & Reingold), the asked nodes stand in a row."""
    near = adj[nodes][:, nodes].toarray() > 0
    place = np.random.default_rng(0).normal(size=(nodes.size, 2)) * [1.5, 0.7]
    fixed = np.searchsorted(nodes, seeds)
    row = np.stack([np.linspace(-1.6, 1.6, seeds.size), np.zeros(seeds.size)], axis=1)
    for step in range(steps):
        place[fixed] = row
        gap = place[:, None] - place[None]
        length = np.maximum(np.linalg.norm(gap, axis=2), 0.02)
        force = 0.012 / length**2 - near * length / 0.35 * 0.3
        move = (gap / length[:, :, None] * force[:, :, None]).sum(axis=1)
        size = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-9)
        place += move / size * np.minimum(size, 0.15 * (1 - step / steps))
    place[fixed] = row
    return place


def plane(z):
    """The two leading directions of some points."""
    mean = z.mean(axis=0)
    return mean, np.linalg.eigh((z - mean).T @ (z - mean))[1][:, -2:]


def prototypes(data, model, task):
    """One task through GPN: support nodes with their β, prototypes, and queries on either side of the middle.

    The first axis runs from prototype to prototype, the second along what varies most across it.
    """
    z = np.asarray(model.embedding(data.graph), dtype=np.float64)
    names = names_of(data, task)
    beta = model.explain(data.graph, task.support, [names[c] for c in task.support_y], task.query).beta
    share = np.where(np.arange(2)[:, None] == task.support_y, beta, 0.0)
    middle = share @ z[task.support]
    along = (middle[1] - middle[0]) / np.linalg.norm(middle[1] - middle[0])
    shown = z[np.concatenate([task.support, task.query])] - middle.mean(axis=0)
    across = plane(shown - np.outer(shown @ along, along))[1][:, -1]

    def at(points):
        return (points - middle.mean(axis=0)) @ np.stack([along, across], axis=1)

    figure, ax = axes((8, 3.6))
    for c, name in enumerate(names):
        own = np.flatnonzero(task.support_y == c)
        for point in at(z[task.support[own]]):
            ax.plot(*np.stack([at(middle[c]), point]).T, color=COLOURS[c], lw=0.8, zorder=1)
        ax.scatter(*at(z[task.support[own]]).T, s=60, color=COLOURS[c], label=f"{name}: support nodes with β")
        ax.scatter(*at(middle[c]), marker="X", s=150, color=COLOURS[c], zorder=3, label=f"{name}: prototype")
        asked = at(z[task.query[task.query_y == c]])
        ax.scatter(*asked.T, s=45, facecolor="none", edgecolor=COLOURS[c], zorder=2, label=f"{name}: query nodes")
    ax.axvline(0, color=GREY, lw=0.8, ls="--")
    ax.set(xticks=[], yticks=[])
    figure.legend(loc="lower center", ncols=2, frameon=False, labelcolor=INK, fontsize=9)
    figure.subplots_adjust(bottom=0.24)
    given = at(z[task.support])
    for point, weight in zip(given, beta, strict=True):
        ax.annotate(f"{weight:.2f}", point, (6, 4), textcoords="offset points", color=INK, fontsize=8.5)
    return figure


def maps(data, gpn, plus):
    """The same five test classes in both embeddings."""
    chosen = list(data.split.test[:5])
    figure = Figure(figsize=(8, 3.6))
    for k, (title, model) in enumerate((("GPN", gpn), ("GPN+", plus))):
        ax = bare(figure, 1, 2, k + 1, title=title)
        z = np.asarray(model.embedding(data.graph))
        mean, axis = plane(z[np.isin(data.y, chosen)])
        for c, label in enumerate(chosen):
            at = (z[data.y == label] - mean) @ axis
            ax.scatter(*at.T, s=9, color=COLOURS[c], label=data.class_names[label], alpha=0.8, lw=0)
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=5, frameon=False, labelcolor=INK, markerscale=2.5)
    figure.subplots_adjust(bottom=0.12, wspace=0.08)
    return figure
