"""What was understood of the files that a dataset was made from, for a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fewnode.datasets.info import name_some, printable
from fewnode.errors import FewnodeError

WIDTH = 80


def describe_source(info: Mapping[str, Any], latest: bool = False) -> str:
    """What became of every table and column, or of the `latest` ones only. Empty if there is nothing to tell."""
    return _told(_lines, info, latest)


def describe_warnings(info: Mapping[str, Any], latest: bool = False) -> str:
    """What may not be as the user thinks, a paragraph each."""
    return _told(_warnings, info, latest)


def _told(tell: Callable[[Mapping[str, Any], bool], list[str]], info: Mapping[str, Any], latest: bool) -> str:
    try:
        return "\n".join(tell(info, latest))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):  # the dataset may be from anybody
        raise FewnodeError("what the dataset tells about its tables is not what fewnode wrote") from None


def _warnings(info: Mapping[str, Any], latest: bool) -> list[str]:
    told = [info, *info.get("extended", ())][-1 if latest else 0 :]
    warnings = [each for one in told for each in one.get("warnings", ())]
    return [line for each in warnings for line in _wrapped(f"warning: {printable(each, 999)}")]


def _lines(info: Mapping[str, Any], latest: bool) -> list[str]:
    lines = []
    later = info.get("extended", [])
    if "columns" in info and not (latest and later):
        lines += [*_tables(info), f"attributes: {_counts(info['attributes'])}", ""]
    for added in later[-1:] if latest else later:
        lines += _tables(added)
        if added["new_classes"]:
            lines.append(f"new classes, in no part: {name_some(added['new_classes'], 50)}")
        lines.append("")
    if "columns" not in info:
        lines += describe_relations(info)
    lines += [line for note in info.get("notes", []) for line in _wrapped(note)]
    if info.get("skipped"):
        lines += ["lines skipped", *(f"  {count:>9,}  {kind}" for kind, count in info["skipped"].items())]
    if "difference" in info:
        lines += ["against the paper's network", *_differences(info)]
    return lines


def _tables(info: Mapping[str, Any]) -> list[str]:
    lines = []
    for table in info["nodes"]:
        lines += [f"{printable(table['file'], 50)}: {table['rows']:,} nodes", *_columns(table, info["why"], info)]
    if absent := [name for name in info["missing"] if name not in info["columns"]]:
        lines.append(f"in none of the tables, so missing: {name_some(absent, 44)}")
    for table in info["edges"]:
        kind = f" of kind {printable(table['kind'], 30)}" if table["kind"] else ""
        lines += [f"{printable(table['file'], 40)}: {table['rows']:,} edges{kind}", *_columns(table, table["why"])]
        lines.append(f"  dropped: {table['self_loops']:,} self-loops, {table['unknown_ends']:,} with an unknown end")
    if not info["edges"]:
        lines.append("no edges")
    elif info["repeated_edges"]:
        weighted = any("weights" in each for each in info.get("relations", ()))
        how = "added up" if weighted else "counted once"
        lines.append(f"repeated edges, {how}: {info['repeated_edges']:,}")
    return [*lines, *describe_relations(info)]


def describe_relations(info: Mapping[str, Any]) -> list[str]:
    """The kinds of edges, and how their weights were scaled."""
    lines = []
    for each in info.get("relations", ()):
        way = "directed" if each["directed"] else "undirected"
        told = f"relation {printable(each['name'], 30)}: {each['edges']:,} {way} edges"
        lines += _wrapped(told + (_scale(each) if "weights" in each else ""))
    if info.get("zero_weights"):
        lines.append(f"edges of weight 0, which are none: {info['zero_weights']:,}")
    return lines


_SCALES = {"none": "as they are", "log": "by their logarithm"}


def _scale(relation: Mapping[str, Any]) -> str:
    low, middle, high = (relation["weights"][name] for name in ("min", "median", "max"))
    why = "" if relation["scale_asked"] or relation["scale"] == "none" else ", for a few are far larger than the rest"
    return f", weights {low:g} to {high:g}, median {middle:g}, taken {_SCALES[relation['scale']]}{why}"


def _columns(table: Mapping[str, Any], why: Mapping[str, str], nodes: Mapping[str, Any] | None = None) -> Iterable[str]:
    columns = table["columns"]
    width = min(24, max(map(len, columns), default=0))
    for name, use in columns.items():
        reasons = [why[name]] if name in why and use not in ("id", "label") else []
        if nodes and use == "label":
            reasons.append(_unknown(nodes["labels"], len(nodes["nodes"])))
        elif nodes and use not in ("id", "not used") and (told := _missing(nodes, name, use)):
            reasons.append(told)
        because = f" ({printable('; '.join(reasons), 400)})" if reasons else ""
        yield from _wrapped(f"  {printable(name, width):<{width}}  {use}{because}", width + 4)


def _missing(nodes: Mapping[str, Any], name: str, use: str) -> str:
    """How many values are missing, which words said so, and what was taken instead."""
    words = nodes["missing_words"].get(name, {})
    count = nodes["missing"].get(name, sum(words.values()))
    if not count:
        return ""
    kind = "missing or unknown" if use == "category" else "missing"
    kind += " in all tables" if len(nodes["nodes"]) > 1 else ""
    shown = f", {_some_words(words)} among them" if words else ""
    instead = {"numeric": ": the mean", "vector": ": the mean"}.get(use, "")
    return f"{count:,} {kind}{shown}{instead}{' and a flag' * (name in nodes['flags'])}"


def _some_words(words: Mapping[str, int]) -> str:
    shown = ", ".join(f"{count:,} {word!r}" for word, count in list(words.items())[:4])
    return shown + (" and others" if len(words) > 4 else "")


def _unknown(labels: Mapping[str, Any], tables: int) -> str:
    """How many labels are unknown, and which words said so."""
    if labels.get("several"):
        several = f"{labels['several']:,} nodes are in several classes"
        return f"{several}, {labels['unknown']:,} in none" if labels["unknown"] else several
    if not labels["unknown"]:
        return "all known"
    words = _some_words(labels["words"])
    empty = f"{labels['empty']:,} empty" if labels["empty"] else ""
    keep = "; --missing '' makes classes of the words" if words else ""
    in_all = " in all tables" if tables > 1 else ""
    return f"{labels['unknown']:,} unknown{in_all}: {', '.join(filter(None, [empty, words]))}{keep}"


def _counts(attributes: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in attributes.items() if count) or "none"


def _wrapped(line: str, indent: int = 2) -> list[str]:
    return textwrap.wrap(line, WIDTH, subsequent_indent=" " * indent, drop_whitespace=True) or [""]


def _differences(info: Mapping[str, Any]) -> list[str]:
    return [
        f"  {what:<12}{_plain(info['expected'][what]):>16}  {_plain(more, '+'):>14}"
        for what, more in info["difference"].items()
    ]


def _plain(value: int | list[int], sign: str = "") -> str:
    return "/".join(_plain(each, sign) for each in value) if isinstance(value, list) else f"{value:{sign},}"
