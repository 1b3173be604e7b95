"""What a user should know of tables that were read, though nothing is wrong with them."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from fewnode.datasets.edges import Edges
from fewnode.datasets.encode import Encoding
from fewnode.datasets.labels import several_in_a_cell
from fewnode.datasets.memberships import Classes, ClassRules
from fewnode.datasets.near_misses import describe_near_miss
from fewnode.datasets.rows import NodeRows
from fewnode.naming import two_alike


def about_missing(rows: NodeRows, encoding: Encoding) -> dict[str, Any]:
    """Which words said that a value is missing, and which columns have a flag that says so."""
    words = {column: rows.missing_words(column) for column in encoding.columns}
    return {"missing_words": {column: found for column, found in words.items() if found}, "flags": [*encoding.flags]}


def table_warnings(rows: NodeRows, edges: Edges, left: int) -> list[str]:
    """What may not be as the user thinks, though nothing is wrong with the tables. `left`: edges of the network."""
    found = []
    spaced = pc.sum(pc.not_equal(pc.utf8_trim_whitespace(rows.ids), rows.ids)).as_py()
    if spaced:
        names = "node id has spaces around it" if spaced == 1 else "node ids have spaces around them"
        found.append(f"{spaced:,} {names}; ids are compared as they are written")
    for table in edges.tables:
        found += [f"{table['file']}: {describe_near_miss(each)}; not matched" for each in table["near_misses"]]
        found += [f"{table['file']}: {each}" for each in table["without"]]
    if edges.tables and not left:
        found.append("no edge is left, so no node has a neighbour")
    return found


def class_warnings(classes: Classes, rules: ClassRules) -> list[str]:
    told = [two_alike(classes.names)]
    if rules.separator is None and classes.labels is None:
        told.append(several_in_a_cell(classes.y, classes.names))
    return [each for each in told if each]
