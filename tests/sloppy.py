"""Sloppy and hostile tables, as people have them, and what each must give: counts, or a refusal with these words.

Text is a CSV file in UTF-8 unless it says otherwise. A case that does not name its nodes or edges has the plain ones.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from fewnode.machine.delimited import Dialect


class File(NamedTuple):
    """A file whose name matters."""

    name: str
    content: str | bytes


Content = str | bytes | pa.Table | File
NODES = "id,label,size\na,x,1\nb,y,2\nc,x,3\nd,y,4\n"
EDGES = "source,target\na,b\nb,c\nc,d\n"


@dataclass(frozen=True)
class Case:
    """Tables, options of `read_tables`, and what must come of them.

    `gives` may hold nodes, edges, names, classes, unknown (labels), words (for unknown labels), columns, edge_columns,
    missing, features, loops, ends (unknown ones that were dropped), repeated. Warnings are those listed, and no others.
    """

    name: str
    nodes: Content | Sequence[Content] | Mapping[str, Content] = NODES
    edges: Content | Sequence[Content] | Mapping[str, Content] = EDGES
    options: dict[str, Any] = field(default_factory=dict)
    gives: dict[str, Any] = field(default_factory=dict)
    warns: tuple[str, ...] = ()
    refused: str | None = None


def labelled(*labels: str) -> str:
    """Nodes a, b, c … with these classes."""
    return "id,label\n" + "".join(f"{chr(97 + i)},{label}\n" for i, label in enumerate(labels))


def many(*rows: str, header: str, times: int = 10) -> str:
    """The rows again and again behind a running id."""
    every = [row for _ in range(times) for row in rows]
    return f"id,{header}\n" + "".join(f"n{i},{row}\n" for i, row in enumerate(every))


def parquet(**columns: Any) -> pa.Table:
    return pa.table({"id": list("abcd"), "label": list("xyxy"), **columns})


def jsonl(*lines: str) -> File:
    return File("nodes.jsonl", "\n".join(lines))


def lengths(texts: list[str]) -> list[list[float]]:
    """A text encoder."""
    return [[len(text), text.count(" ")] for text in texts]


NAN = float("nan")
LINKED = "source,target\nn0,n1\nn1,n2\n"
FOUR = {"nodes": 4, "edges": 3}
FLOATS = pa.list_(pa.float32())

PLAIN = [
    Case("plain", gives={**FOUR, "classes": ("x", "y"), "features": 1}),
    Case("byte order mark", nodes="\ufeff" + NODES, gives={**FOUR, "names": tuple("abcd")}),
    Case("line ends of Windows", nodes=NODES.replace("\n", "\r\n"), edges=EDGES.replace("\n", "\r\n"), gives=FOUR),
    Case("no line end at the end", nodes=NODES.strip(), edges=EDGES.strip(), gives=FOUR),
    Case("blank lines between", edges="source,target\na,b\n\nb,c\n\n", gives={"edges": 2}),
    Case("columns in another order", edges="weight,to,from\n1,b,a\n", gives={
        "edges": 1, "edge_columns": {"weight": "not used", "to": "target", "from": "source"}}),
    Case("ends by their place", edges="owner,firm\na,b\nb,c\n", gives={
        "edges": 2, "edge_columns": {"owner": "source", "firm": "target"}}),
    Case("spaces around header names", nodes="id , label , size\na,x,1\nb,y,2\nc,x,3\nd,y,4\n", gives=FOUR),
    Case("spaces around labels", nodes=labelled(" x", "x ", "y", " y "), gives={"classes": ("x", "y")}),
    Case("quoted commas", nodes='id,label\na,"x, old"\nb,"x, new"\nc,y\nd,y\n',
         gives={"classes": ("x, new", "x, old", "y")}),
    Case("names like formulas", nodes=labelled("=1+1", "@SUM(A1)", "+x", "'-y"),
         gives={"classes": ("'-y", "+x", "=1+1", "@SUM(A1)")}),
    Case("a very long label", nodes=labelled("x" * 100_000, "y", "y", "y"), gives=FOUR),
    Case("control characters in names", nodes=labelled("\x1b[31mred", "y", "y", "y"), gives=FOUR),
    Case("a class called nothing of the sort", nodes=labelled("none", "Na", "nil", "no"),
         gives={"unknown": 0, "classes": ("Na", "nil", "no", "none")}),
    Case("no label column", nodes="id,size\na,1\nb,2\nc,3\nd,5\n", gives={"classes": (), "unknown": 4}),
    Case("emoji and other scripts", nodes="id,label\na,猫\nb,🐕\nc,猫\nd,🐕\n", gives={"classes": ("猫", "🐕")}),
]  # fmt: skip

WRITTEN = [
    Case("semicolons", nodes=NODES.replace(",", ";"), edges=EDGES.replace(",", ";"), gives={**FOUR, "features": 1}),
    Case("tabs in a file called csv", nodes=NODES.replace(",", "\t"), gives={**FOUR, "features": 1}),
    Case("bars", nodes=NODES.replace(",", "|"), gives={**FOUR, "features": 1}),
    Case("a separator that was said", nodes=NODES.replace(",", ":"), edges=EDGES.replace(",", ":"),
         options={"dialect": Dialect(separator=":")}, gives=FOUR),
    Case("a separator that is wrong", nodes=NODES, options={"dialect": Dialect(separator=";"), "id": "id"},
         refused="no column 'id'"),
    Case("Latin-1 that was said", nodes=NODES.replace("x", "gärtner").encode("latin-1"),
         options={"dialect": Dialect(encoding="latin-1")}, gives={"classes": ("gärtner", "y")}),
    Case("Latin-1 that was not said", nodes=NODES.replace("x", "gärtner").encode("latin-1"), refused="UTF-8"),
    Case("UTF-16 that was said", nodes=NODES.encode("utf-16"), edges=EDGES.encode("utf-16"),
         options={"dialect": Dialect(encoding="utf-16")}, gives=FOUR),
    Case("decimal commas between semicolons", nodes="id;label;size\na;x;1,5\nb;y;2,5\nc;x;3\nd;y;4,25\n",
         gives={**FOUR, "columns": {"size": "numeric"}, "features": 1}),
    Case("thousands and decimal commas", nodes="id;label;size\na;x;1.200,5\nb;y;2,5\nc;x;3\nd;y;4\n",
         gives={"columns": {"size": "numeric"}}),
    Case("a comma that may be either", nodes="id;label;size\na;x;1,200\nb;y;2,500\nc;x;3,100\nd;y;4,000\n",
         refused="--decimal"),
    Case("a comma that was said to be decimal", nodes="id;label;size\na;x;1,200\nb;y;2,500\nc;x;3,100\nd;y;4,000\n",
         options={"dialect": Dialect(decimal=",")}, gives={"columns": {"size": "numeric"}}),
    Case("a cell over several lines", nodes='id,label,text\na,x,"two\nlines"\nb,y,z\nc,x,z\nd,y,z\n',
         refused="--multiline"),
    Case("a cell over several lines that was said", nodes='id,label,text\na,x,"two\nlines"\nb,y,z\nc,x,z\nd,y,z\n',
         options={"dialect": Dialect(multiline=True)}, gives=FOUR),
    Case("two stray quotes swallow an edge", edges='source,target\na,b\n"b,c\nc",d\n', refused="line"),
    Case("two stray quotes swallow a node", nodes='id,label\na,x\n"b,y\nc,x\nd",y\n', refused="line"),
    Case("one quote is never closed", nodes='id,label\na,x\nb,"y\nc,x\nd,y\n', refused="line 3"),
    Case("a row is too short", nodes="id,label\na,x\nb\nc,x\nd,y\n", refused="1 cells, expected 2"),
    Case("a row is too long", nodes="id,label\na,x\nb,y,z\nc,x\nd,y\n", refused="3 cells, expected 2"),
    Case("two columns of one name", nodes="id,label,label\na,x,y\nb,x,y\n", refused="column 'label' is there twice"),
    Case("a NUL byte", nodes=NODES.replace("x", "x\0"), refused="NUL"),
]  # fmt: skip

COMMAS = "id;label;size\na;x;1,5\nb;y;2,5\nc;x;{}\nd;y;4,25\n"
AMOUNTS = "source;target;amount\na;b;1,5\nb;c;2,25\nc;d;{}\n"

EMPTY = [
    Case("a word among decimal commas", edges=AMOUNTS.format("much"), options={"weight": "amount"},
         refused="data row 3, column 'amount': found 'much'"),
    Case("infinity among decimal commas", edges=AMOUNTS.format("inf"), options={"weight": "amount"},
         refused="data row 3, column 'amount': found 'inf'"),
    Case("a decimal point among decimal commas", nodes=COMMAS.format("3.5"), options={"numeric": ["size"]},
         refused="data row 3, column 'size': found '3.5'"),
    Case("an empty file of nodes", nodes="", refused="line 1 is empty"),
    Case("an empty file of edges", edges="", refused="line 1 is empty"),
    Case("nodes without rows", nodes="id,label\n", refused="nodes.csv: no node in it"),
    Case("edges without rows", edges="source,target\n", refused="edges.csv: no edge in it"),
    Case("edges of one column", edges="source\na\n", refused="expected two with the ends of each edge"),
    Case("edges that are only a weight and a kind", edges="amount,kind\n1,pays\n",
         options={"weight": "amount", "relation": "kind"}, refused="edges.csv: no column beside those of weight"),
    Case("an id is empty", nodes="id,label\na,x\n,y\nc,x\nd,y\n", refused="data row 2, column 'id': empty"),
    Case("an id of spaces", nodes="id,label\na,x\n  ,y\nc,x\nd,y\n", refused="data row 2, column 'id': empty"),
    Case("an id twice", nodes="id,label\na,x\nb,y\na,x\nd,y\n",
         refused="data row 3, column 'id': node 'a' is in data row 1 already"),
    Case("an end is empty", edges="source,target\na,b\nb,\n", refused="data row 2, column 'target': empty"),
    Case("labels in two cases", nodes=labelled("vpn", "VPN", "mail", "mail"), gives={"classes": ("VPN", "mail", "vpn")},
         warns=("classes 'VPN' and 'vpn' differ only in case, Unicode form or invisible characters",)),
    Case("self-loops only", edges="source,target\na,a\nb,b\n", gives={"edges": 0, "loops": 2}, warns=("no edge is left",)),
    Case("loops, repetitions and both directions", edges="source,target\na,b\nb,a\na,b\na,a\n",
         gives={"edges": 1, "loops": 1, "repeated": 2}),
    Case("a column without a name", nodes="id,label,\na,x,1\nb,y,2\nc,x,3\nd,y,5\n", gives={"columns": {"": "not used"}}),
    Case("a column without values", nodes="id,label,size\na,x,\nb,y,\nc,x,NA\nd,y,-\n",
         gives={"columns": {"size": "not used"}, "features": 0}),
]  # fmt: skip

IDS = [
    Case("leading zeros in edges", nodes="id,label\n1,x\n2,y\n", edges="source,target\n01,2\n",
         refused="data row 1, column 'source': node '01' is not in"),
    Case("leading zeros in nodes", nodes="id,label\n007,x\n2,y\n", edges="source,target\n7,2\n",
         refused="node '7' is not in"),
    Case("float ids in edges", nodes="id,label\n1,x\n2,y\n", edges="source,target\n1.0,2.0\n",
         refused="node '1.0' is not in"),
    Case("a space before an end", edges="source,target\na, b\n",
         refused="node ' b' is not in"),
    Case("upper case in edges", edges="source,target\nA,b\n", refused="node 'A' is not in"),
    Case("two Unicode forms of one name", nodes="id,label\ncafé,x\nb,y\n", edges="source,target\ncafe\u0301,b\n",
         refused="is not in"),
    Case("two differences at once", edges="source,target\n A,b\n", refused="node ' A' is not in"),
    Case("an end that is nowhere", edges="source,target\na,z\nz,b\n",
         refused="data row 1, column 'target': node 'z' is not in"),
    Case("several ends that are nowhere", edges="source,target\na,z\ny,b\nx,w\na,z\n", refused="; 4 such edges, as 'y', 'x', 'z' (--"),
    Case("unknown ends dropped", edges="source,target\na,z\na,b\n", options={"unknown_ends": "drop"},
         gives={"edges": 1, "ends": 1}, warns=("edges.csv: no node is called 'z'; edges to them are dropped",)),
    Case("near misses dropped", nodes="id,label\n1,x\n2,y\n", edges="source,target\n01,2\n1,2\n",
         options={"unknown_ends": "drop"}, gives={"edges": 1, "ends": 1},
         warns=("edges.csv: no node is called '01'",)),
    Case("1, 01, 1.0 and ' 1' are four nodes", nodes="id,label\n1,x\n01,y\n1.0,x\n 1,y\n",
         edges="source,target\n1,01\n1.0, 1\n", gives={"nodes": 4, "edges": 2, "names": ("1", "01", "1.0", " 1")},
         warns=("1 node id has spaces around it",)),
    Case("a node called NA", nodes="id,label\nNA,x\nnull,y\n", edges="source,target\nNA,null\n",
         gives={"nodes": 2, "edges": 1, "names": ("NA", "null")}),
    Case("edges without a header", edges="a,b\nb,c\nc,d\n", refused="line 1: 'a' and 'b' are nodes"),
    Case("edges without a header, with weights", edges="a,b,0.5\nb,c,0.1\n", refused="--no-header"),
    Case("no header, and it was said", nodes="a,x\nb,y\nc,x\nd,y\n", edges="a,b\nb,c\nc,d\n",
         options={"dialect": Dialect(header=False), "label": "column 2"}, gives={**FOUR, "classes": ("x", "y")}),
    Case("only edges without a header, and it was said", edges="a,b\nb,c\nc,d\n",
         options={"edge_dialect": Dialect(header=False)}, gives=FOUR),
    Case("nodes without a header", nodes="a,x\nb,y\nc,x\nd,y\n", refused="but in its header line: if that line is a node"),
    Case("ends whose names are nodes, but named", nodes=NODES + "s,x,5\nt,y,6\n", edges="s,t\na,b\n",
         options={"source": "s", "target": "t"}, gives={"edges": 1}),
    Case("whole floats in Parquet are ids", nodes=pa.table({"id": [1.0, 2.0], "label": ["x", "y"]}),
         edges=pa.table({"source": [1], "target": [2]}), gives={"names": ("1", "2"), "edges": 1}),
    Case("floats in Parquet that cannot tell ids apart", nodes=pa.table({"id": pa.array([2.0**24, 1], pa.float32())}),
         refused="store the column as integers or text"),
    Case("very large whole numbers", nodes="id,label\n12345678901234567890,x\n12345678901234567891,y\n",
         edges="source,target\n12345678901234567890,12345678901234567891\n", gives={"nodes": 2, "edges": 1}),
]  # fmt: skip

LABELS = [
    Case("empty labels", nodes=labelled("x", "", " ", "y"), gives={"unknown": 2, "words": {}}),
    Case("NA and its kin", nodes=labelled("NA", "NaN", "nan", "None", "NULL", "N/A", "#N/A", "-", "x"),
         gives={"unknown": 8, "classes": ("x",), "words": {"NA": 1, "NaN": 1, "nan": 1, "None": 1, "NULL": 1,
                                                           "N/A": 1, "#N/A": 1, "-": 1}}),
    Case("one more word", nodes=labelled("x", "unknown", "y", "NA"),
         options={"dialect": Dialect(missing=("unknown",))},
         gives={"unknown": 2, "words": {"unknown": 1, "NA": 1}}),
    Case("a class called NA", nodes=labelled("x", "NA", "y", "NA"), options={"dialect": Dialect(missing=("",))},
         gives={"unknown": 0, "classes": ("NA", "x", "y")}),
    Case("NaN in JSON lines", nodes=jsonl('{"id": "a", "label": NaN}', '{"id": "b", "label": "x"}', '{"id": "c"}',
                                          '{"id": "d", "label": null}'), gives={"unknown": 3, "classes": ("x",)}),
    Case("NaN in Parquet", nodes=pa.table({"id": list("abcd"), "label": [1.0, float("nan"), None, 2.0]}),
         gives={"unknown": 2, "classes": ("1", "2")}),
    Case("several classes in a cell, bars", nodes=labelled("casino", "hotel", "casino|hotel", "casino"), gives=FOUR,
         warns=("several classes: 1, as 'casino|hotel'",)),
    Case("several classes in a cell, semicolons", nodes=labelled("a;b", "a", "b", "b ; a"), gives=FOUR,
         warns=("several classes: 2, as 'a;b'",)),
    Case("several classes in a cell, commas", nodes='id,label\na,x\nb,"x, y"\nc,y\nd,y\n', gives=FOUR,
         warns=("several classes: 1, as 'x, y'",)),
    Case("several classes in most cells", nodes=labelled("a|b", "b|c", "c|d", "d|a"), gives=FOUR,
         warns=("several classes: 4, as 'a|b'",)),
    Case("a comma in a class is no list", nodes='id,label\na,"Shoes, Boots"\nb,Food\nc,"Shoes, Boots"\nd,Food\n',
         gives={"classes": ("Food", "Shoes, Boots")}),
    Case("a second column of classes by its name", nodes=many("x,red", "y,blue", "x,blue", header="label,category"),
         edges=LINKED, gives={"columns": {"category": "not used"}, "features": 0},
         warns=("column 'category' is left out, for it may be the answer: it is named like a class. --category category",)),
    Case("both label and class", nodes=many("x,7", "y,8", "x,7", header="label,class"), edges=LINKED,
         gives={"columns": {"label": "label", "class": "not used"}}, warns=("--numeric class makes it an attribute",)),
    Case("a column that tells the class", nodes=many("x,p", "y,q", "z,r", "x,s", header="label,shelf"), edges=LINKED,
         gives={"columns": {"shelf": "not used"}}, warns=("it tells the class of 100 % of the labelled nodes",)),
    Case("class numbers beside class names", nodes=many("x,0", "y,1", "z,2", header="label,code"), edges=LINKED,
         gives={"columns": {"code": "not used"}}, warns=("--numeric code makes it an attribute",)),
    Case("the answer, if it is asked for", nodes=many("x,p", "y,q", "z,r", header="label,shelf"), edges=LINKED,
         options={"category": ["shelf"]}, gives={"columns": {"shelf": "category"}, "features": 3}),
    Case("a column that tells half", nodes=many("x,p", "y,q", "x,q", "y,q", header="label,shelf"), edges=LINKED,
         gives={"columns": {"shelf": "category"}}),
    Case("a rare class is not told by a column of its own kind", nodes=many(*["x,p"] * 39, "y,p", header="label,shelf"),
         edges=LINKED, gives={"columns": {"shelf": "category"}}),
    Case("a label column that is not there", options={"label": "lable"}, refused="no column 'lable' (did you mean 'label'"),
    Case("the label as an attribute", options={"category": ["label"]}, refused="is the id or the label"),
]  # fmt: skip

NUMBERS = [
    Case("N/A among numbers", nodes=NODES.replace("x,1", "x,N/A").replace("y,4", "y,-"),
         gives={"columns": {"size": "numeric"}, "missing": {"size": 2}, "features": 2}),
    Case("blanks among numbers", nodes=NODES.replace("x,1", "x,").replace("y,4", "y, "),
         gives={"columns": {"size": "numeric"}, "missing": {"size": 2}, "features": 2}),
    Case("nothing missing, no flag", gives={"missing": {"size": 0}, "features": 1}),
    Case("an infinite number", nodes=NODES.replace("x,1", "x,1e999"), refused="no finite number"),
    Case("a unit behind a number", nodes=NODES.replace("x,1", "x,4 kB"), options={"numeric": ["size"]},
         refused="data row 1, column 'size': found '4 kB', expected a number"),
    Case("a word of one's own for missing", nodes="id,label,size\n" + "".join(
        f"n{i},{'xy'[i % 2]},{i if i % 9 else 'unknown'}\n" for i in range(60)), edges=LINKED,
        gives={"columns": {"size": "not used"}}),
    Case("a word of one's own for missing that was said", nodes="id,label,size\n" + "".join(
        f"n{i},{'xy'[i % 2]},{i if i % 9 else 'unknown'}\n" for i in range(60)), edges=LINKED,
        options={"dialect": Dialect(missing=("unknown",))}, gives={"columns": {"size": "numeric"}, "missing": {"size": 7}}),
    Case("a column that never varies", nodes="id,label,size\na,x,7\nb,y,7\nc,x,7\nd,y,7\n", gives={"features": 1}),
    Case("numbers of many digits", nodes=parquet(size=[1e300, 2e300, 3e300, 4e300]), gives={"features": 1}),
    Case("whole floats beyond 2^53 as numbers", nodes=parquet(size=[1e17, 2e17, 3e17, 4e17]),
         gives={"columns": {"size": "numeric"}}),
    Case("categories with NA", nodes=many("x,FR", "y,DE", "x,NA", "y,FR", "y,FR", header="label,country"), edges=LINKED,
         gives={"columns": {"country": "category"}, "missing": {"country": 10}, "features": 2}),
]  # fmt: skip

TYPES = [
    Case("dates in Parquet", nodes=parquet(seen=[datetime.date(2020, 1, i) for i in range(1, 5)]),
         gives={"columns": {"seen": "not used"}, "features": 0}),
    Case("times in Parquet", nodes=parquet(seen=pa.array([1, 2, 3, 4], pa.timestamp("s"))),
         gives={"columns": {"seen": "not used"}}),
    Case("booleans in Parquet", nodes=parquet(active=[True, True, False, False]), gives={"columns": {"active": "category"}}),
    Case("dictionaries in Parquet", nodes=parquet(arch=pa.array(["p", "q", "q", "p"]).dictionary_encode()),
         gives={"columns": {"arch": "category"}, "features": 2}),
    Case("decimals in Parquet", nodes=parquet(price=[decimal.Decimal(i) / 4 for i in (1, 2, 3, 5)]),
         gives={"columns": {"price": "numeric"}}),
    Case("structs in Parquet", nodes=parquet(place=[{"x": 1}] * 4), gives={"columns": {"place": "not used"}}),
    Case("lists of words in Parquet", nodes=parquet(tags=[["red", "fox"], ["red", "den"], ["fox"], ["red", "owl", "fox"]]),
         options={"text": ["tags"]}, gives={"columns": {"tags": "text"}},
         warns=("4 of 4 texts have no word that counts: left out are words of too few or too many nodes",)),
    Case("vectors in Parquet", nodes=parquet(v=[[0.1, 0.2, 0.3]] * 2 + [[1.0, 2.0, 3.0]] * 2),
         gives={"columns": {"v": "vector"}, "features": 3}),
    Case("vectors of a fixed size", nodes=parquet(v=pa.array([[1.0, 0], [0, 1], [1, 1], [0, 0]], pa.list_(pa.float32(), 2))),
         gives={"columns": {"v": "vector"}, "features": 2}),
    Case("vectors of unequal length", nodes=parquet(v=pa.array([[1.0, 2], [1], [1, 2], [1, 2]], FLOATS)),
         refused="data row 2, column 'v': a vector of 1 numbers, expected 2"),
    Case("a vector is missing", nodes=parquet(v=pa.array([[1.0, 2], None, [1, 2], [5, 2]], FLOATS)),
         gives={"missing": {"v": 1}, "features": 3}),
    Case("a vector with a hole", nodes=parquet(v=pa.array([[1.0, None], [1, 2], [1, 2], [5, 2]], FLOATS)),
         refused="expected a finite number"),
    Case("a vector with NaN", nodes=parquet(v=pa.array([[1.0, float("nan")], [1, 2], [1, 2], [5, 2]], FLOATS)),
         refused="expected a finite number"),
    Case("vectors of nothing", nodes=parquet(v=pa.array([[], [], [], []], FLOATS)), refused="a vector of 0 numbers, expected at least one"),
    Case("vectors as text", nodes='id,label,v\na,x,"[0.1, 0.2]"\nb,y,"[1, 2]"\nc,x,[3 4]\nd,y,NA\n',
         gives={"columns": {"v": "vector"}, "missing": {"v": 1}, "features": 3}),
    Case("vectors in JSON lines", nodes=jsonl(*(f'{{"id": "{c}", "label": "x", "v": [{i}, 1.5]}}' for i, c in enumerate("abcd"))),
         gives={"columns": {"v": "vector"}, "features": 2}),
    Case("a vector that is named", nodes=parquet(v=pa.array([[1.0, 2]] * 4, FLOATS), w=[1, 2, 3, 4]),
         options={"vector": ["v"]}, gives={"columns": {"v": "vector", "w": "not used"}, "features": 2}),
    Case("a vector that is none", options={"vector": ["size"]}, refused="expected numbers such as [0.1, 0.2]"),
    Case("a key twice in JSON lines", nodes=jsonl('{"id": "a", "label": "x", "id": "b"}'), refused="line 1: key 'id' is there twice"),
    Case("nested objects in JSON lines", nodes=jsonl('{"id": "a", "label": {"is": "x"}}'), refused="line 1, column 'label'"),
    Case("a list instead of an object", nodes=jsonl('["a", "x"]'), refused="expected an object on each line"),
    Case("half a line of JSON", nodes=jsonl('{"id": "a", "la'), refused="line 1: not JSON"),
    Case("keys that come and go", nodes=jsonl('{"id": "a", "label": "x"}', '{"id": "b", "size": 3}', '{"id": "c", "label": "y"}',
                                              '{"id": "d", "size": 4}'), gives={"unknown": 2, "missing": {"size": 2}}),
    Case("Parquet that is none", nodes=File("nodes.parquet", "id,label\na,x\n"), refused="not a readable Parquet file"),
    Case("a kind of file that is not known", nodes=File("nodes.xlsx", b"PK"), refused="unknown kind of table"),
]  # fmt: skip

SEVERAL = [
    Case("two tables of edges", edges=["source,target\na,b\n", "source,target\nc,d\n"], gives={"edges": 2}),
    Case("the same edge in two tables", edges=[EDGES, EDGES], gives={"edges": 3, "repeated": 3}),
    Case("two kinds of edges", edges={"pays": "from,to,amount\na,b,5\n", "owns": EDGES}, gives={"edges": 3, "repeated": 0}),
    Case("one of two tables of edges is empty", edges=["source,target\n", EDGES], gives={"edges": 3}),
    Case("the second table of edges is wrong", edges=[EDGES, "source,target\na,zoo\n"], refused="1.csv: data row 1, column 'target'"),
    Case("two tables of nodes", nodes=["id,label\na,x\nb,y\n", "id,label\nc,x\nd,y\n"], gives={**FOUR, "unknown": 0}),
    Case("two tables of nodes with different columns", nodes=["id,label,size\na,x,1\nb,y,2\n", "id,label,age\nc,x,3\nd,y,4\n"],
         gives={"missing": {"size": 2, "age": 2}, "features": 4}),
    Case("a table of nodes without labels", nodes=["id,label\na,x\nb,y\n", "id,size\nc,1\nd,2\n"], gives={"unknown": 2}),
    Case("a node in two tables", nodes=["id,label\na,x\nb,y\n", "id,label\nc,x\nb,y\nd,x\n"],
         refused="1.csv: data row 2, column 'id': node 'b' is in {folder}/nodes0.csv, data row 2 already"),
    Case("tables of two formats", nodes=["id,label,size\na,x,1.5\nb,y,2\n", pa.table({"id": ["c", "d"], "label": ["x", None], "size": [3, 4]})],
         gives={"unknown": 1, "columns": {"size": "numeric"}, "missing": {"size": 0}}),
    Case("numbers here and words there", nodes=["id,label,size\na,x,1\nb,y,2\n", "id,label,size\nc,x,large\nd,y,small\n"],
         gives={"columns": {"size": "not used"}}),
    Case("vectors of two lengths in two tables", nodes=[
        pa.table({"id": ["a", "b"], "v": pa.array([[1.0], [2]], FLOATS)}),
        pa.table({"id": ["c", "d"], "v": pa.array([[1.0, 2], [3, 4]], FLOATS)})], refused="expected equal lengths"),
    Case("a column that is in no table", nodes=["id,size\na,1\nb,2\n", "id,age\nc,3\nd,4\n"], options={"numeric": ["sise"]},
         refused="no column 'sise' (did you mean 'size'?)"),
    Case("ids of two names", nodes=["id,label\na,x\nb,y\n", "node,label\nc,x\nd,y\n"], gives={"names": tuple("abcd")}),
]  # fmt: skip

BESIDE = [
    Case("vectors beside the table", options={"vectors": [[1.0, 2.0]] * 3 + [[5.0, 2.0]]},
         gives={"columns": {"size": "numeric", "vectors": "vector"}, "features": 3}),
    Case("vectors beside the table, with a hole", options={"vectors": {"v": [[1.0, 2.0]] * 3 + [[NAN, NAN]]}},
         gives={"columns": {"v": "vector"}, "missing": {"v": 1}, "features": 4}),
    Case("too few vectors beside the table", options={"vectors": [[1.0, 2.0]] * 3}, refused="3 vectors for the 4 nodes of"),
    Case("vectors called like a column", options={"vectors": {"size": [[1.0]] * 4}}, refused="there is a column 'size' already"),
    Case("vectors that are words", options={"vectors": [["a"]] * 4}, refused="expected numbers, a row for each node"),
    Case("a vector beside the table with one NaN", options={"vectors": [[1.0, NAN]] * 4}, refused="data row 1, column 'vectors'"),
    Case("a file of vectors that is not there", options={"vectors": "no/such.npy"}, refused="no/such.npy: no such file"),
    Case("texts through an encoder", nodes=parquet(about=["red fox", "red den", None, "an owl"]),
         options={"text": "about", "encoder": lengths}, gives={"missing": {"encoded text": 1}, "features": 4}),
    Case("an encoder without text", options={"encoder": lengths}, refused="an encoder needs text, and no column is"),
    Case("an encoder that makes too few rows", nodes=parquet(about=["red fox", "red den", "fox", "an owl"]),
         options={"text": "about", "encoder": lambda texts: [[1.0]]}, refused="of 4 texts, expected a row of numbers each"),
    Case("a column called as what an encoder makes", nodes=parquet(about=list("abcd"), **{"encoded text": [1, 2, 3, 4]}),
         options={"text": "about", "encoder": lengths}, refused="there is a column 'encoded text' already"),
]  # fmt: skip

AMOUNTS = "source,target,amount,kind,day\na,b,1,pays,2024-01-01\nb,c,2,owns,2024-02-01\nc,d,3,pays,2024-03-01\n"
WEIGHED = {"weight": "amount"}

WEIGHTS = [
    Case("weights", edges=AMOUNTS, options=WEIGHED, gives={**FOUR, "edge_columns": {"amount": "weight", "kind": "not used"}}),
    Case("a column of kinds", edges=AMOUNTS, options={**WEIGHED, "relation": "kind"},
         gives={**FOUR, "edge_columns": {"amount": "weight", "kind": "relation"}}),
    Case("weights in one of two tables", edges=[AMOUNTS, "source,target\na,d\n"], options=WEIGHED, gives={"edges": 4},
         warns=("edges1.csv: no column 'amount': each of its edges weighs 1",)),
    Case("kinds in one of two tables", edges=[AMOUNTS, "source,target\na,d\n"], options={"relation": "kind"}, gives={"edges": 4},
         warns=("edges1.csv: no column 'kind': its edges are of relation 'edges'",)),
    Case("a negative weight", edges=AMOUNTS.replace("b,c,2", "b,c,-2"), options=WEIGHED,
         refused="edges.csv: data row 2, column 'amount': -2 is below 0, expected a weight from 0 on; fill it in, or leave the row out"),
    Case("a missing weight", edges=AMOUNTS.replace("b,c,2", "b,c,"), options=WEIGHED,
         refused="data row 2, column 'amount': empty, expected a weight from 0 on"),
    Case("a weight that is NA", edges=AMOUNTS.replace("b,c,2", "b,c,NA"), options=WEIGHED, refused="data row 2, column 'amount': empty"),
    Case("an infinite weight", edges=AMOUNTS.replace("b,c,2", "b,c,1e999"), options=WEIGHED,
         refused="data row 2, column 'amount': inf is no finite number; fill it in, or leave the row out"),
    Case("a column that is label and kind", edges=AMOUNTS, options={"kind": "label"},
         refused="nodes.csv: column 'label' is the id or the label, so it cannot be the kind of nodes"),
    Case("a weight too large to compute with", edges=AMOUNTS.replace("b,c,2", "b,c,1e200"), options=WEIGHED,
         refused="data row 2, column 'amount': 1e+200 is too far from 1 to compute with"),
    Case("a scale of weights, and no weights", edges=AMOUNTS, options={"weight_scale": "log"},
         refused="there are no weights to scale by 'log': name their column, --weight"),
    Case("weights that are text", edges=AMOUNTS, options={"weight": "kind"},
         refused="data row 1, column 'kind': found 'pays', expected a number; fill it in, or leave the row out"),
    Case("a weight column that is not there", edges=AMOUNTS, options={"weight": "amont"},
         refused="no column 'amont' (did you mean 'amount'?)"),
    Case("weight zero is no edge", edges=AMOUNTS.replace("b,c,2", "b,c,0"), options=WEIGHED, gives={"edges": 2}),
    Case("a scale that is none", edges=AMOUNTS, options={**WEIGHED, "weight_scale": "sqrt"},
         refused="unknown scale 'sqrt' of weights; known are none, log"),
    Case("a kind that is missing", edges=AMOUNTS.replace("owns", ""), options={"relation": "kind"},
         refused="data row 2, column 'kind': empty, expected the kind of the edge; fill it in, or leave the row out"),
    Case("a kind called NA", edges=AMOUNTS.replace("owns", "NA"), options={"relation": "kind"}, gives=FOUR),
    Case("a name and a column of kinds", edges={"pays": AMOUNTS}, options={"relation": "kind"}, refused="leave out the one or the other"),
    Case("direction of a kind that is not there", edges=AMOUNTS, options={"relation": "kind", "directed": ["own"]},
         refused="unknown relation 'own' (did you mean 'owns'?); there are pays, owns"),
    Case("direction of a kind without kinds", edges=AMOUNTS, options={"directed": ["owns"]}, refused="no kinds of edges"),
    Case("weights of nothing", edges="source,target,amount\na,b,0\nb,c,0\n", options={"weight": "amount"}, gives={"edges": 0},
         warns=("no edge is left",)),
    Case("one column for two things", edges=AMOUNTS, options={"weight": "amount", "relation": "amount"}, refused="two of them have one name"),
]  # fmt: skip

MEMBERS = [
    Case("several classes in a cell that was said", nodes=labelled("casino", "hotel", "casino|hotel", "casino"),
         options={"label_separator": "|"}, gives={"classes": ("casino", "hotel"), "unknown": 0}),
    Case("an empty part of a label", nodes=labelled("x", "x||y", "y", "y"), options={"label_separator": "|"},
         refused="data row 2, column 'label': 'x||y' has an empty part, expected classes with '|' between them"),
    Case("a label that ends in the separator", nodes=labelled("x", "x|", "y", "y"), options={"label_separator": "|"},
         refused="data row 2, column 'label': 'x|' has an empty part"),
    Case("a separator of spaces", options={"label_separator": " "}, refused="expected a mark such as | or /"),
    Case("classes that are part of others", nodes=labelled("a/b", "a/c", "a", "d"), options={"hierarchy": "/"},
         gives={"classes": ("a", "a/b", "a/c", "d")}),
    Case("an empty part of a path", nodes=labelled("a/b", "a//c", "a", "d"), options={"hierarchy": "/"},
         refused="data row 2, column 'label': 'a//c' has an empty part, expected classes with '/' between them"),
    Case("a class that is part of itself", options={"hierarchy": {"class": ["x", "y"], "parent": ["y", "x"]}},
         refused="class 'x' is a part of itself"),
    Case("a class of two parents", options={"hierarchy": {"class": ["x", "x"], "parent": ["y", "z"]}},
         refused="data row 2, column 'parent': class 'x' has the parent 'y' already"),
    Case("a label of a node that is nowhere", options={"labels": {"node": ["a", "zoo"], "class": ["x", "y"]}},
         refused="data row 2, column 'node': node 'zoo' is not in"),
    Case("a label that is missing", options={"labels": {"node": ["a", "b"], "class": ["x", ""]}},
         refused="data row 2, column 'class': empty, expected a class"),
    Case("labels in a column and a table", options={"label": "label", "labels": {"node": ["a"], "class": ["x"]}},
         refused="name one of them"),
    Case("kinds of nodes", nodes={"user": "id,label,age\na,x,1\nb,y,2\n", "item": "id,price\nc,3\nd,5\n"},
         gives={**FOUR, "columns": {"kind": "category"}, "missing": {"age": 2, "price": 2}}),
    Case("a kind of node that is missing", nodes="id,label,sort\na,x,p\nb,y,\nc,x,p\nd,y,q\n", options={"kind": "sort"},
         refused="data row 2, column 'sort': empty, expected the kind of the node"),
]  # fmt: skip

CASES = [*PLAIN, *WRITTEN, *EMPTY, *IDS, *LABELS, *NUMBERS, *TYPES, *SEVERAL, *BESIDE, *WEIGHTS, *MEMBERS]
