"""What is in a dataset, and what became of the tables that it was made from: plain values, and a screen of text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from fewnode.dataset import Dataset
from fewnode.engine import loops
from fewnode.errors import FewnodeError, visible

PARTS = ("train", "valid", "test")
PIECE = 1 << 20
"""Edges that are looked at at a time where nodes are in several classes."""
FEW = 10
"""The paper's Figure 1 counts the classes with fewer labelled nodes than this."""
WIDTH, MAX_LINES = 80, 30
MAX_LISTED = 220
"""Characters of a list of columns: three lines."""


def statistics(data: Dataset) -> dict[str, Any]:
    """Everything that is counted, as plain values: what `fewnode data info --json` prints."""
    graph, sizes = data.graph, data.class_sizes
    stored = graph.x.nnz if hasattr(graph.x, "nnz") else graph.x.size
    inside = [c for part in PARTS for c in data.split.part(part)]
    by_size = [int(c) for c in np.argsort(-sizes, kind="stable") if sizes[c]]
    facts = {
        "name": data.name,
        "nodes": graph.n,
        "edges": graph.n_edges,
        "directed": graph.directed,
        "attributes": graph.n_features,
        "attributes_per_node": float(stored / max(1, graph.n)),
        "labelled": int(data.labelled_mask.sum()),
        "isolated": graph.n - int(np.count_nonzero(graph.degree + np.bincount(graph.adj.indices, minlength=graph.n))),
        "degree": {
            "mean": float(graph.degree.mean()) if graph.n else 0.0,
            "median": float(np.median(graph.degree)) if graph.n else 0.0,
            "max": int(graph.degree.max(initial=0)),
        },
        "homophily": edge_homophily(data, graph.adj),
        "classes": {part: len(data.split.part(part)) for part in PARTS},
        "class_sizes": {data.class_names[c]: int(sizes[c]) for c in by_size},
        "few_shot_classes": {"under": FEW, "share": float((sizes[by_size] < FEW).mean()) if by_size else 0.0},
        "outside_split": {data.class_names[c]: int(sizes[c]) for c in by_size if c not in inside},
        "largest_tasks": {part: possible_tasks(data, part) for part in PARTS},
        "sha256": data.sha256,
    }
    relations = []
    for relation in graph.relations:
        spread = np.quantile(relation.adj.data, (0, 0.5, 1)).tolist() if relation.weighted else None
        relations.append(
            {
                "name": relation.name,
                "directed": relation.directed,
                "edges": relation.n_edges,
                "homophily": edge_homophily(data, relation.adj),
                "weights": dict(zip(("min", "median", "max"), spread, strict=True)) if spread else None,
            }
        )
    if relations:
        facts["relations"] = relations
    if data.kind is not None:
        kinds = np.bincount(data.kind, minlength=len(data.kind_names)).tolist()
        facts["kinds"] = dict(zip(data.kind_names, kinds, strict=True))
    if data.labels is not None:
        counts = np.diff(data.labels.indptr)
        facts["several_classes"] = {"nodes": int((counts > 1).sum()), "most": int(counts.max(initial=0))}
    return facts


def edge_homophily(data: Dataset, adj: sp.csr_array) -> float | None:
    """The share of edges between labelled nodes whose ends have the same class; None if there is no such edge.

    Of nodes that are in several classes one has to be the same.
    """
    if data.labels is None:
        same, known = loops.same_label(adj.indptr, adj.indices, data.y)
    else:
        target, source = adj.tocoo().coords
        there = data.labelled_mask[target] & data.labelled_mask[source]
        target, source, labels = target[there], source[there], data.labels.astype(np.int8)
        known, same = target.size, 0
        for low in range(0, known, PIECE):
            part = slice(low, low + PIECE)
            same += int((labels[target[part]].multiply(labels[source[part]]).sum(axis=1) > 0).sum())
    return float(same / known) if known else None


def possible_tasks(data: Dataset, part: str) -> dict[str, Any]:
    """The most ways, and the most shots with as many queries, that every class of a part allows; its smallest class."""
    classes = list(data.split.part(part))
    if not classes:
        return {"way": 0, "shot": 0, "smallest_class": None, "nodes": 0}
    sizes = data.class_sizes[classes]
    smallest, nodes = data.class_names[classes[int(sizes.argmin())]], int(sizes.min())
    return {"way": len(classes), "shot": nodes // 2, "smallest_class": smallest, "nodes": nodes}


# --- for a terminal of 80 columns ---------------------------------------------------------------------------------


def report(data: Dataset, latest: bool = False) -> str:
    """The facts and what became of each table, or of the `latest` ones only: at most thirty lines, warnings last."""
    warnings = warnings_of(data.info, latest).splitlines()
    facts = _guarded(lambda: _facts(statistics(data), data.info))
    tables = _guarded(lambda: (line for info in _told(data.info, latest) for line in _tables(info)))
    room = max(0, MAX_LINES - len(facts) - len(warnings))
    if len(tables) > room:
        more = len(tables) - max(0, room - 1)
        tables = [*tables[: max(0, room - 1)], f"… {more} lines more of this; `as_json` has all"]
    return "\n".join([facts[0], *tables, *facts[1:], *warnings])


def warnings_of(info: Mapping[str, Any], latest: bool = False) -> str:
    """What may not be as the user thinks, a paragraph each."""
    told = _guarded(lambda: (each for one in _told(info, latest) for each in one.get("warnings", ())))
    lines = [line for each in told for line in _wrapped(f"warning: {printable(each, 400)}")]
    if len(lines) > MAX_LINES // 2:
        lines = [*lines[: MAX_LINES // 2 - 1], f"… {len(told)} warnings in all; `as_json` has them"]
    return "\n".join(lines)


def _told(info: Mapping[str, Any], latest: bool) -> list[Mapping[str, Any]]:
    return [info, *info.get("extended", ())][-1 if latest else 0 :]


def _guarded(tell: Callable[[], Iterable[str]]) -> list[str]:
    try:
        return list(map(str, tell()))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):  # the dataset may be from anybody
        raise FewnodeError("what the dataset tells about its tables is not what fewnode wrote") from None


def _facts(facts: Mapping[str, Any], info: Mapping[str, Any]) -> Iterator[str]:
    kind, degree = "directed" if facts["directed"] else "undirected", facts["degree"]
    sizes = _counted(facts["class_sizes"])
    yield f"{printable(facts['name'], 30)}: {facts['nodes']:,} nodes, {facts['edges']:,} {kind} edges"
    if "kinds" in facts:
        yield f"kinds of nodes    {name_some(_counted(facts['kinds']))}"
    yield f"attributes        {facts['attributes']:,}, {facts['attributes_per_node']:.1f} of them a node"
    yield f"labelled nodes    {facts['labelled']:,} in {len(facts['class_sizes'])} classes"
    if several := facts.get("several_classes"):
        yield f"several classes   {several['nodes']:,} nodes, {several['most']} classes at most"
    yield (
        f"degree            mean {degree['mean']:.1f}, median {degree['median']:.0f}, max {degree['max']:,}; "
        f"{facts['isolated']:,} isolated"
    )
    yield f"edge homophily    {_share(facts['homophily'])}"
    given = {each["name"]: each for each in info.get("relations", ())}
    for relation in facts.get("relations", [])[:6]:
        yield from _wrapped(_relation(relation, given.get(relation["name"], relation)))
    if (more := len(facts.get("relations", [])) - 6) > 0:
        yield f"… {more} kinds of edges more"
    for part, task in facts["largest_tasks"].items():
        smallest = f"{printable(task['smallest_class'] or '', 14)} has {task['nodes']:,}"
        most = f"up to {task['way']}-way {task['shot']:,}-shot, as many queries ({smallest})"
        yield f"{part + ' classes':<18}{most if task['way'] else 'none'}"
    if facts["outside_split"]:
        yield f"in no part        {name_some(_counted(facts['outside_split']))}"
    if sizes:
        yield f"largest classes   {name_some(sizes[:6])}"
    if len(sizes) > 6:
        yield f"smallest classes  {name_some(sizes[:5:-1][:6])}"
        few = facts["few_shot_classes"]
        yield f"                  {100 * few['share']:.0f} % of classes have under {few['under']} nodes"


def _relation(facts: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    """A kind of edges: how many, how many within a class, and how their weights were scaled."""
    way = "directed" if facts["directed"] else "undirected"
    text = f"edges {printable(facts['name'], 30)}: {facts['edges']:,} {way}, same class {_share(facts['homophily'])}"
    if told.get("weights"):
        low, middle, high = (told["weights"][name] for name in ("min", "median", "max"))
        text += f", weights {low:g} to {high:g}, median {middle:g}"
    if told.get("scale"):
        text += ", taken as they are" if told["scale"] == "none" else ", taken by their logarithm"
        text += "" if told["scale"] == "none" or told["scale_asked"] else ", for a few are far larger than the rest"
    return text


def _share(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.2f}"


def _counted(sizes: Mapping[str, int]) -> list[str]:
    return [f"{printable(name)} ({size:,})" for name, size in sizes.items()]


def name_some(names: list[str], width: int = 62) -> str:
    """Names, as many as fit into a line, and how many more there are."""
    shown = [printable(name, width - 14) for name in names]
    while len(shown) > 1 and len(", ".join(shown)) > width - 14 * (len(shown) < len(names)):
        shown.pop()
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def printable(name: str, width: int = 24) -> str:
    """A name from a file, without what would move the cursor or colour the terminal."""
    return visible(name[:width].replace("\n", "·"))


def _wrapped(line: str, indent: int = 2) -> list[str]:
    return textwrap.wrap(line, WIDTH, subsequent_indent=" " * indent) or [""]


# --- tables -------------------------------------------------------------------------------------------------------


def _tables(info: Mapping[str, Any]) -> Iterator[str]:
    """What became of the tables of nodes and of edges, or of a published file."""
    told: dict[str, str] = {}
    for table in info.get("nodes", ()):
        new = {name: use for name, use in table["columns"].items() if told.get(name) != use}
        told |= new
        yield f"{printable(table['file'], 50)}: {table['rows']:,} nodes" + ("" if new else ", the same columns")
        for text in _columns(new, info):
            yield from _wrapped(f"  {text}", 4)
    if info.get("repeated_rows"):
        yield f"repeated rows of nodes, counted once: {info['repeated_rows']:,}"
    if absent := [name for name in info.get("missing", ()) if name not in info["columns"]]:
        yield f"in none of the tables, so missing: {name_some(absent, 44)}"
    for table in info.get("edges", ()):
        own = {use: printable(name) for name, use in table["columns"].items()}
        of = f" of kind {printable(table['kind'], 20)}" if table["kind"] else ""
        more = "".join(f", {use} {own[use]}" for use in ("weight", "relation") if use in own)
        file = f"{printable(table['file'], 40)}: {table['rows']:,} edges{of}"
        yield from _wrapped(f"{file}, {own['source']} to {own['target']}{more}")
        if unused := [name for name, use in table["columns"].items() if use == "not used"]:
            yield from _wrapped(f"  not used: {name_some(unused, 50)}")
        yield f"  dropped: {table['self_loops']:,} self-loops, {table['unknown_ends']:,} with an unknown end"
    if info.get("repeated_edges"):
        weighted = any("weights" in each for each in info.get("relations", ()))
        yield f"repeated edges, {'added up' if weighted else 'counted once'}: {info['repeated_edges']:,}"
    if info.get("zero_weights"):
        yield f"edges of weight 0, which are none: {info['zero_weights']:,}"
    if made := info.get("attributes"):
        yield f"made of           {', '.join(f'{n:,} {what}' for what, n in made.items() if n) or 'nothing'}"
    if info.get("new_classes"):
        yield f"new classes, in no part: {name_some(info['new_classes'], 50)}"
    for note in info.get("notes", ()):
        yield from _wrapped(note)
    yield from (f"lines skipped: {count:,} {kind}" for kind, count in info.get("skipped", {}).items())
    for what, more in info.get("difference", {}).items():
        yield f"{what} of the paper: {_plain(info['expected'][what])}, here {_plain(more, '+')}"


def _columns(columns: Mapping[str, str], info: Mapping[str, Any]) -> Iterator[str]:
    """The columns of each role, those of one reason together; then what is missing in them."""
    for role in dict.fromkeys(columns.values()):
        reasons: dict[str, list[str]] = {}
        for name in (name for name, use in columns.items() if use == role):
            why = _unknown(info["labels"]) if role == "label" else "" if role == "id" else info["why"].get(name, "")
            reasons.setdefault(why, []).append(printable(name))
        told = [name_some(names, MAX_LISTED) + (f" ({why})" if why else "") for why, names in reasons.items()]
        yield f"{role:<9} {printable('; '.join(told), 2 * MAX_LISTED)}"
    gaps = []
    for name, use in columns.items():
        words = info["missing_words"].get(name, {})
        count = 0 if use in ("id", "label", "not used") else info["missing"].get(name, sum(words.values()))
        instead = {"numeric": ": the mean", "vector": ": the mean", "category": " or unknown"}.get(use, "")
        flag = " and a flag" if name in info["flags"] else ""
        gaps += [f"{printable(name)} {count:,}{f' ({_words(words)})' if words else ''}{instead}{flag}"] if count else []
    if gaps:
        yield f"missing   {printable(name_some(gaps, MAX_LISTED), 2 * MAX_LISTED)}"


def _words(words: Mapping[str, int]) -> str:
    shown = ", ".join(f"{count:,} {word!r}" for word, count in list(words.items())[:4])
    return shown + (" and others" if len(words) > 4 else "")


def _unknown(labels: Mapping[str, Any]) -> str:
    """How many labels are unknown, and which words said so."""
    if labels.get("several"):
        several = f"{labels['several']:,} nodes are in several classes"
        return f"{several}, {labels['unknown']:,} in none" if labels["unknown"] else several
    if not labels["unknown"]:
        return "all known"
    words, empty = _words(labels["words"]), f"{labels['empty']:,} empty" if labels["empty"] else ""
    keep = "; `missing` '' makes classes of the words" if words else ""
    return f"{labels['unknown']:,} unknown: {', '.join(filter(None, [empty, words]))}{keep}"


def _plain(value: int | list[int], sign: str = "") -> str:
    return "/".join(_plain(each, sign) for each in value) if isinstance(value, list) else f"{value:{sign},}"
