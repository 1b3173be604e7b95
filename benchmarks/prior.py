"""Make `embedding/prior.toml` again: what several networks teach GPN+ about weights of views, being sure, and outliers.

    python benchmarks/prior.py --data-dir ../shared/data --out src/fewnode/embedding/prior.toml
    python benchmarks/prior.py --data-dir ../shared/data --without cora_ml citeseer     what the others teach

Of networks with base classes only those are looked at, so that no test class decides anything.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

import fewnode
from fewnode.embedding.projection import ViewProjection, sampled
from fewnode.embedding.sources import STRUCTURE
from fewnode.embedding.views import prior
from fewnode.episodes import TaskSampler
from fewnode.graph import Graph, Ints
from fewnode.method import space_of
from fewnode.methods.plus import GPNPlus
from fewnode.recognition.calibration import MODES, calibration_tasks, fit_temperature, logistic, membership_rows
from fewnode.recognition.prototypes import RIDGE, SCALE
from fewnode.tasks import named_tasks

NETWORKS = (
    "uai", "amazon_photo", "citeseer", "cora_ml", "blogcatalog", "amazon_clothing_test20", "coauthor_cs", "wikispeedia",
    "debian",
)  # fmt: skip
WAYS, TASKS, STEPS = (2, 5, 10, 20), 12, 150


def known_classes(data: fewnode.Dataset) -> list[Ints]:
    """The nodes of each base class, or of every class where the network has no base classes."""
    chosen = data.split.train + data.split.valid or tuple(range(len(data.class_names)))
    return [nodes for c in chosen if (nodes := np.flatnonzero(data.y == c)).size >= 6]


def view_kernels(graph: Graph, members: list[Ints], seed: int) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Of some tasks: cosines of support and queries with the support in each view of the prior, and both labels."""
    method = GPNPlus(views="attributes", seed=seed)
    tasks = calibration_tasks(members, min(10, len(members)), count=TASKS)
    kernels: list[list[torch.Tensor]] = [[] for _ in tasks]
    mixture = method._weighed(graph, [], [], {})  # the views themselves, before they are joined
    for place, tiles in mixture.diffused(graph):
        h = tiles.whole()
        rank = next(view.rank for view in mixture.weight if view[:2] == place)
        z = ViewProjection.of(h[sampled(graph.n)]).read_all(h, [rank])[0]
        for own, task in zip(kernels, tasks, strict=True):
            rows = torch.from_numpy(z[np.concatenate([task.support, task.query])])
            own.append(rows @ rows[: task.support.size].T)
    labels = [(torch.from_numpy(task.support_y), torch.from_numpy(task.query_y)) for task in tasks]
    return [(torch.stack(own), *both) for own, both in zip(kernels, labels, strict=True)]


def learn_weights(networks: list[list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]]) -> list[float]:
    """Shares of the views that make the answers of ridge regression likeliest; each network counts the same."""
    level = torch.zeros(networks[0][0][0].shape[0], requires_grad=True)
    optimiser = torch.optim.Adam([level], lr=0.05)
    for _ in range(STEPS):
        loss = torch.zeros(())
        for tasks in networks:
            for kernels, y, query_y in tasks[:: max(1, len(tasks) // 12)]:
                k = torch.einsum("m,mij->ij", torch.softmax(level, 0), kernels)
                target = torch.nn.functional.one_hot(y).float() - 1 / (int(y.max()) + 1)
                alpha = torch.linalg.solve(k[: y.numel()] + RIDGE * torch.eye(y.numel()), target)
                score = SCALE * k[y.numel() :] @ alpha
                loss = loss + torch.nn.functional.cross_entropy(score, query_y) / len(tasks) / len(networks)
        loss = loss + 0.01 * level.square().sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return torch.softmax(level.detach(), 0).tolist()


def calibrate(names: list[str], data_dir: Path) -> tuple[dict[str, dict[str, float]], dict[str, float], list[float]]:
    """Temperatures of both modes, the sense for outliers and the shares of views, over all these networks."""
    answers: dict[str, list[np.ndarray]] = {mode: [] for mode in MODES}
    episodes, near, rows, weights, shares, kernels = [], [], [], [], [], []
    for name in names:
        data = fewnode.load(name if name == "debian" else data_dir / f"{name}.npz")
        members = known_classes(data)
        space = space_of(GPNPlus().fit(data.graph, TaskSampler.none(), TaskSampler.none()), data.graph)
        ways = [way for way in WAYS if way <= len(members)]
        named = [task for way in (2, 5, 10) for task in named_tasks(data, members, way, TASKS)]
        own = [task for way in ways for task in calibration_tasks(members, way, count=TASKS)] + named
        for mode in MODES:
            answers[mode] += space.answer_tasks([task.task for task in own], mode == MODES[1])
        episodes += own
        near += [space.closest(space.look(task.query), space.labelled(task.task)) for task in own]
        told = membership_rows(space, members, 5, named)
        if told is not None:
            rows.append(told[0])
            weights.append(told[1])
        shares.append(float(np.mean([nodes.size for nodes in members])) / data.graph.n)
        kernels.append(view_kernels(data.graph, members, 0))
        print(name, len(own), "tasks", flush=True)
    temperatures = {mode: asdict(fit_temperature(answers[mode], episodes, near)) for mode in MODES}
    outliers = logistic(np.concatenate(rows), np.concatenate(weights) / len(rows), float(np.median(shares)))
    return temperatures, asdict(outliers), learn_weights(kernels)


def written(learned: dict[str, float], temperatures: dict, outliers: dict[str, float], names: list[str]) -> str:
    """The file as people read it."""
    views = prior()["views"]

    def table(values: dict[str, float]) -> str:
        return "{ " + ", ".join(f'"{name}" = {value:g}' for name, value in values.items()) + " }"

    lines = [
        "# What other networks taught GPN+. `python benchmarks/prior.py` makes it again; see research/notes.",
        f"# From {', '.join(names)}.",
        "",
        "[views] # the weight τ of each view, and the effective rank it is read at",
        f"rank = {views['rank']}",
        f"attributes = {table(learned)}",
        f"structure = {table(views[STRUCTURE])}",
        f"structure_rank = {views['structure_rank']}",
    ]
    for mode in MODES:
        lines += ["", f"[temperature.{mode}]", *(f"{name} = {value:.4g}" for name, value in temperatures[mode].items())]
    return (
        "\n".join([*lines, "", "[membership]", *(f"{name} = {value:.4g}" for name, value in outliers.items())]) + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--without", nargs="*", default=[])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    names = [name for name in NETWORKS if name not in given.without]
    temperatures, outliers, shares = calibrate(names, given.data_dir)
    weights = prior()["views"]["attributes"]
    total = sum(weights.values())
    learned = {name: round(total * share, 2) for name, share in zip(weights, shares, strict=True)}
    text = written(learned, temperatures, outliers, names)
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
