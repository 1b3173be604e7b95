"""Draws who imports whom, from the source itself: an arrow from each part of the package to those it imports."""

import ast
from pathlib import Path

from matplotlib.figure import Figure

import layout
from fewnode.experiment.figures import INK

SOURCE = Path(__file__).parents[1] / "src" / "fewnode"
LEFT_OUT = {"__init__", "__main__", "errors"}
"""The first two tie the others together, and everyone may raise an error."""


def part(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports():
    """For each part (a module or a folder) the parts that it imports, wherever in the code it does so."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        own = found.setdefault(part(path), set())
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fewnode":
                own |= set(node.module.split(".")[1:2] or [alias.name for alias in node.names])
            elif isinstance(node, ast.Import):
                own |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("fewnode.")}
    for importer, imported in layout.stated()["layers"]["lazy"]:  # drawn, these would make a circle
        found[importer].discard(imported)
    kept = {name: (seen & found.keys()) - LEFT_OUT - {name} for name, seen in found.items() if name not in LEFT_OUT}
    return dict(sorted(kept.items()))


def heights(graph):
    """How far above the ground a part stands: one above the highest that it imports."""
    found = {}

    def height(name, below=()):
        if name in below:
            raise ValueError(f"a circle of imports: {' → '.join([*below, name])}")
        if name not in found:  # each part once: there are millions of ways down
            found[name] = 1 + max((height(other, (*below, name)) for other in graph[name]), default=-1)
        return found[name]

    return {name: height(name) for name in graph}


def reachable(graph):
    """For each part all that it imports, also by way of others."""
    level, found = heights(graph), {}
    for name in sorted(graph, key=level.get):
        found[name] = graph[name].union(*(found[other] for other in graph[name]))
    return found


def arrows(graph):
    """The imports to draw: those that do not follow from others by way of a third part."""
    reach = reachable(graph)
    return [(a, b) for a in graph for b in graph[a] if not any(b in reach[c] for c in graph[a] - {b})]


def places(graph):
    """x and y of each part: rows by height, each row ordered by the middle of what it imports."""
    level = heights(graph)
    place = {}
    for row in range(max(level.values()) + 1):
        names = [name for name in graph if level[name] == row]

        def middle(name):
            below = [place[other][0] for other in graph[name]]
            return sum(below) / len(below) if below else 0.0

        names.sort(key=lambda name: (middle(name), name))
        for i, name in enumerate(names):
            place[name] = ((i + 1) / (len(names) + 1) + (0.03 if row % 2 else -0.03) * (len(names) == 1), row)
    return place


def diagram():
    graph = imports()
    place = places(graph)
    figure = Figure(figsize=(8, 6.4))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.axis("off")
    ax.set(xlim=(0, 1), ylim=(-0.5, max(y for _, y in place.values()) + 0.5))
    for a, b in arrows(graph):
        style = {"arrowstyle": "-|>", "color": "#8899aa", "lw": 0.9, "shrinkA": 9, "shrinkB": 9}
        ax.annotate("", place[b], place[a], arrowprops=style)
    for name, at in place.items():
        box = {"boxstyle": "round,pad=0.35", "fc": "#4477aa22", "ec": "#4477aa"}
        ax.text(*at, name, color=INK, ha="center", va="center", bbox=box)
    return figure
