"""Names of nodes that are nearly right: told with what they differ in, and never matched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_DIFFERENCES: dict[str, Callable[[pa.Array], pa.Array]] = {
    "spaces around it": pc.utf8_trim_whitespace,
    "leading zeros": lambda names: pc.replace_substring_regex(names, r"^(-?)0+(\d)", r"\1\2"),
    "a fraction of zero": lambda names: pc.replace_substring_regex(names, r"^(-?\d+)\.0+$", r"\1"),
    "upper and lower case": pc.utf8_lower,
    "its Unicode form": lambda names: pc.utf8_normalize(names, form="NFKC"),
}


def _without_differences(names: pa.Array) -> pa.Array:
    for normal in (*_DIFFERENCES.values(), pc.utf8_trim_whitespace):
        names = normal(names)
    return names


def near_misses(names: pa.Array, ids: pa.Array) -> list[dict[str, Any]]:
    """Names that would be one of `ids` but for spaces, leading zeros, `.0`, case or Unicode form: counts, examples.

    They are told and never matched: `1` and `01` may be two nodes.

    >>> near_misses(pa.array(["01", "Fox", "cat"]), pa.array(["1", "fox"]))[0]
    {'differs_in': 'leading zeros', 'count': 1, 'example': ['01', '1']}
    """
    found = []
    for difference, normal in {**_DIFFERENCES, "several of these": _without_differences}.items():
        place = pc.index_in(normal(names), value_set=normal(ids))
        hits = pc.is_valid(place)
        count = pc.sum(hits).as_py() or 0
        if count:
            first = pc.index(hits, True).as_py()
            example = [names[first].as_py(), ids[place[first].as_py()].as_py()]
            found.append({"differs_in": difference, "count": count, "example": example})
            names = names.filter(pc.invert(hits))
    return found


def describe_near_miss(miss: Mapping[str, Any]) -> str:
    end, node = miss["example"]
    names = "name differs" if miss["count"] == 1 else "names differ"
    return f"{miss['count']:,} {names} from a node's only in {miss['differs_in']}, as {end!r} from {node!r}"
