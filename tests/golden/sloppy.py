"""Sloppy and hostile tables, as people have them: files of nodes and of edges, and what is said about them.

Text is a CSV file in UTF-8 unless it says otherwise. A case that does not name its nodes or edges has the plain ones.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

NODES = "id,label,size\na,x,1\nb,y,2\nc,x,3\nd,y,4\n"
EDGES = "source,target\na,b\nb,c\nc,d\n"


class File(NamedTuple):
    """A file whose name matters."""

    name: str
    content: str | bytes | list[list[object]]


Content = str | bytes | pa.Table | File
Contents = Content | Sequence[Content] | Mapping[str, Content]


@dataclass(frozen=True)
class Case:
    """Tables, and the options of `fewnode data import` about them."""

    name: str
    options: str = ""
    nodes: Contents = NODES
    edges: Contents = EDGES
    beside: tuple[File, ...] = ()


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


NAN = float("nan")
LINKED = "source,target\nn0,n1\nn1,n2\n"
FLOATS = pa.list_(pa.float32())
GAPS = "id,label,size\n" + "".join(f"n{i},{'xy'[i % 2]},{i if i % 9 else 'unknown'}\n" for i in range(60))

PLAIN = [
    Case("plain"),
    Case("byte order mark", nodes="\ufeff" + NODES),
    Case("line ends of Windows", nodes=NODES.replace("\n", "\r\n"), edges=EDGES.replace("\n", "\r\n")),
    Case("no line end at the end", nodes=NODES.strip(), edges=EDGES.strip()),
    Case("blank lines between", edges="source,target\na,b\n\nb,c\n\n"),
    Case("columns in another order", edges="weight,to,from\n1,b,a\n"),
    Case("ends by their place", edges="owner,firm\na,b\nb,c\n"),
    Case("spaces around header names", nodes="id , label , size\na,x,1\nb,y,2\nc,x,3\nd,y,4\n"),
    Case("spaces around labels", nodes=labelled(" x", "x ", "y", " y ")),
    Case("quoted commas", nodes='id,label\na,"x, old"\nb,"x, new"\nc,y\nd,y\n'),
    Case("names like formulas", nodes=labelled("=1+1", "@SUM(A1)", "+x", "'-y")),
    Case("a very long label", nodes=labelled("x" * 100_000, "y", "y", "y")),
    Case("control characters in names", nodes=labelled("\x1b[31mred", "y", "y", "y")),
    Case("a class called nothing of the sort", nodes=labelled("none", "Na", "nil", "no")),
    Case("no label column", "--no-label", nodes="id,size\na,1\nb,2\nc,3\nd,5\n"),
    Case("emoji and other scripts", nodes="id,label\na,猫\nb,🐕\nc,猫\nd,🐕\n"),
]  # fmt: skip

WRITTEN = [
    Case("semicolons", nodes=NODES.replace(",", ";"), edges=EDGES.replace(",", ";")),
    Case("tabs in a file called csv", nodes=NODES.replace(",", "\t")),
    Case("bars", nodes=NODES.replace(",", "|")),
    Case("a separator that was said", "--separator :", nodes=NODES.replace(",", ":"), edges=EDGES.replace(",", ":")),
    Case("a separator that is wrong", "--separator ';' --id id", nodes=NODES),
    Case("Latin-1 that was said", "--encoding latin-1", nodes=NODES.replace("x", "gärtner").encode("latin-1")),
    Case("Latin-1 that was not said", nodes=NODES.replace("x", "gärtner").encode("latin-1")),
    Case("UTF-16 that was said", "--encoding utf-16", nodes=NODES.encode("utf-16"), edges=EDGES.encode("utf-16")),
    Case("decimal commas between semicolons", nodes="id;label;size\na;x;1,5\nb;y;2,5\nc;x;3\nd;y;4,25\n"),
    Case("thousands and decimal commas", nodes="id;label;size\na;x;1.200,5\nb;y;2,5\nc;x;3\nd;y;4\n"),
    Case("a comma that may be either", nodes="id;label;size\na;x;1,200\nb;y;2,500\nc;x;3,100\nd;y;4,000\n"),
    Case("a comma that was said to be decimal", "--decimal ,", nodes="id;label;size\na;x;1,200\nb;y;2,500\nc;x;3,100\nd;y;4,000\n"),
    Case("a cell over several lines", nodes='id,label,text\na,x,"two\nlines"\nb,y,z\nc,x,z\nd,y,z\n'),
    Case("a cell over several lines that was said", "--multiline", nodes='id,label,text\na,x,"two\nlines"\nb,y,z\nc,x,z\nd,y,z\n'),
    Case("two stray quotes swallow an edge", edges='source,target\na,b\n"b,c\nc",d\n'),
    Case("two stray quotes swallow a node", nodes='id,label\na,x\n"b,y\nc,x\nd",y\n'),
    Case("one quote is never closed", nodes='id,label\na,x\nb,"y\nc,x\nd,y\n'),
    Case("a row is too short", nodes="id,label\na,x\nb\nc,x\nd,y\n"),
    Case("a row is too long", nodes="id,label\na,x\nb,y,z\nc,x\nd,y\n"),
    Case("two columns of one name", nodes="id,label,label\na,x,y\nb,x,y\n"),
    Case("a NUL byte", nodes=NODES.replace("x", "x\0")),
]  # fmt: skip

COMMAS = "id;label;size\na;x;1,5\nb;y;2,5\nc;x;{}\nd;y;4,25\n"
SUMS = "source;target;amount\na;b;1,5\nb;c;2,25\nc;d;{}\n"

EMPTY = [
    Case("a word among decimal commas", "--weight amount", edges=SUMS.format("much")),
    Case("infinity among decimal commas", "--weight amount", edges=SUMS.format("inf")),
    Case("a decimal point among decimal commas", "--numeric size", nodes=COMMAS.format("3.5")),
    Case("an empty file of nodes", nodes=""),
    Case("an empty file of edges", edges=""),
    Case("nodes without rows", nodes="id,label\n"),
    Case("edges without rows", edges="source,target\n"),
    Case("edges of one column", edges="source\na\n"),
    Case("edges that are only a weight and a kind", "--weight amount --relation kind", edges="amount,kind\n1,pays\n"),
    Case("an id is empty", nodes="id,label\na,x\n,y\nc,x\nd,y\n"),
    Case("an id of spaces", nodes="id,label\na,x\n  ,y\nc,x\nd,y\n"),
    Case("an id twice", nodes="id,label\na,x\nb,y\na,x\nd,y\n"),
    Case("an end is empty", edges="source,target\na,b\nb,\n"),
    Case("labels in two cases", nodes=labelled("vpn", "VPN", "mail", "mail")),
    Case("self-loops only", edges="source,target\na,a\nb,b\n"),
    Case("loops, repetitions and both directions", edges="source,target\na,b\nb,a\na,b\na,a\n"),
    Case("a column without a name", nodes="id,label,\na,x,1\nb,y,2\nc,x,3\nd,y,5\n"),
    Case("a column without values", nodes="id,label,size\na,x,\nb,y,\nc,x,NA\nd,y,-\n"),
]  # fmt: skip

IDS = [
    Case("leading zeros in edges", nodes="id,label\n1,x\n2,y\n", edges="source,target\n01,2\n"),
    Case("leading zeros in nodes", nodes="id,label\n007,x\n2,y\n", edges="source,target\n7,2\n"),
    Case("float ids in edges", nodes="id,label\n1,x\n2,y\n", edges="source,target\n1.0,2.0\n"),
    Case("a space before an end", edges="source,target\na, b\n"),
    Case("upper case in edges", edges="source,target\nA,b\n"),
    Case("two Unicode forms of one name", nodes="id,label\ncafé,x\nb,y\n", edges="source,target\ncafe\u0301,b\n"),
    Case("two differences at once", edges="source,target\n A,b\n"),
    Case("an end that is nowhere", edges="source,target\na,z\nz,b\n"),
    Case("several ends that are nowhere", edges="source,target\na,z\ny,b\nx,w\na,z\n"),
    Case("unknown ends dropped", "--unknown-ends drop", edges="source,target\na,z\na,b\n"),
    Case("near misses dropped", "--unknown-ends drop", nodes="id,label\n1,x\n2,y\n", edges="source,target\n01,2\n1,2\n"),
    Case("1, 01, 1.0 and ' 1' are four nodes", nodes="id,label\n1,x\n01,y\n1.0,x\n 1,y\n", edges="source,target\n1,01\n1.0, 1\n"),
    Case("a node called NA", nodes="id,label\nNA,x\nnull,y\n", edges="source,target\nNA,null\n"),
    Case("edges without a header", edges="a,b\nb,c\nc,d\n"),
    Case("edges without a header, with weights", edges="a,b,0.5\nb,c,0.1\n"),
    Case("no header, and it was said", "--no-node-header --no-header --label 'column 2'", nodes="a,x\nb,y\nc,x\nd,y\n", edges="a,b\nb,c\nc,d\n"),
    Case("only edges without a header, and it was said", "--no-header", edges="a,b\nb,c\nc,d\n"),
    Case("nodes without a header", nodes="a,x\nb,y\nc,x\nd,y\n"),
    Case("ends whose names are nodes, but named", "--source-column s --target-column t", nodes=NODES + "s,x,5\nt,y,6\n", edges="s,t\na,b\n"),
    Case("whole floats in Parquet are ids", nodes=pa.table({"id": [1.0, 2.0], "label": ["x", "y"]}), edges=pa.table({"source": [1], "target": [2]})),
    Case("floats in Parquet that cannot tell ids apart", nodes=pa.table({"id": pa.array([2.0**24, 1], pa.float32())})),
    Case("very large whole numbers", nodes="id,label\n12345678901234567890,x\n12345678901234567891,y\n", edges="source,target\n12345678901234567890,12345678901234567891\n"),
]  # fmt: skip

LABELS = [
    Case("empty labels", nodes=labelled("x", "", " ", "y")),
    Case("NA and its kin", nodes=labelled("NA", "NaN", "nan", "None", "NULL", "N/A", "#N/A", "-", "x")),
    Case("one more word", "--missing=unknown", nodes=labelled("x", "unknown", "y", "NA")),
    Case("a class called NA", "--missing=", nodes=labelled("x", "NA", "y", "NA")),
    Case("NaN in JSON lines", nodes=jsonl('{"id": "a", "label": NaN}', '{"id": "b", "label": "x"}', '{"id": "c"}',
                                          '{"id": "d", "label": null}')),
    Case("NaN in Parquet", nodes=pa.table({"id": list("abcd"), "label": [1.0, float("nan"), None, 2.0]})),
    Case("several classes in a cell, bars", nodes=labelled("casino", "hotel", "casino|hotel", "casino")),
    Case("several classes in a cell, semicolons", nodes=labelled("a;b", "a", "b", "b ; a")),
    Case("several classes in a cell, commas", nodes='id,label\na,x\nb,"x, y"\nc,y\nd,y\n'),
    Case("several classes in most cells", nodes=labelled("a|b", "b|c", "c|d", "d|a")),
    Case("a comma in a class is no list", nodes='id,label\na,"Shoes, Boots"\nb,Food\nc,"Shoes, Boots"\nd,Food\n'),
    Case("a second column of classes by its name", nodes=many("x,red", "y,blue", "x,blue", header="label,category"), edges=LINKED),
    Case("both label and class", nodes=many("x,7", "y,8", "x,7", header="label,class"), edges=LINKED),
    Case("a column that tells the class", nodes=many("x,p", "y,q", "z,r", "x,s", header="label,shelf"), edges=LINKED),
    Case("class numbers beside class names", nodes=many("x,0", "y,1", "z,2", header="label,code"), edges=LINKED),
    Case("the answer, if it is asked for", "--category shelf", nodes=many("x,p", "y,q", "z,r", header="label,shelf"), edges=LINKED),
    Case("a column that tells half", nodes=many("x,p", "y,q", "x,q", "y,q", header="label,shelf"), edges=LINKED),
    Case("a rare class is not told by a column of its own kind", nodes=many(*["x,p"] * 39, "y,p", header="label,shelf"), edges=LINKED),
    Case("a label column that is not there", "--label lable"),
    Case("the label as an attribute", "--category label"),
]  # fmt: skip

NUMBERS = [
    Case("N/A among numbers", nodes=NODES.replace("x,1", "x,N/A").replace("y,4", "y,-")),
    Case("blanks among numbers", nodes=NODES.replace("x,1", "x,").replace("y,4", "y, ")),
    Case("an infinite number", nodes=NODES.replace("x,1", "x,1e999")),
    Case("a unit behind a number", "--numeric size", nodes=NODES.replace("x,1", "x,4 kB")),
    Case("a word of one's own for missing", nodes=GAPS, edges=LINKED),
    Case("a word of one's own for missing that was said", "--missing=unknown", nodes=GAPS, edges=LINKED),
    Case("a column that never varies", nodes="id,label,size\na,x,7\nb,y,7\nc,x,7\nd,y,7\n"),
    Case("numbers of many digits", nodes=parquet(size=[1e300, 2e300, 3e300, 4e300])),
    Case("whole floats beyond 2^53 as numbers", nodes=parquet(size=[1e17, 2e17, 3e17, 4e17])),
    Case("categories with NA", nodes=many("x,FR", "y,DE", "x,NA", "y,FR", "y,FR", header="label,country"), edges=LINKED),
]  # fmt: skip

TYPES = [
    Case("dates in Parquet", nodes=parquet(seen=[datetime.date(2020, 1, i) for i in range(1, 5)])),
    Case("times in Parquet", nodes=parquet(seen=pa.array([1, 2, 3, 4], pa.timestamp("s")))),
    Case("booleans in Parquet", nodes=parquet(active=[True, True, False, False])),
    Case("dictionaries in Parquet", nodes=parquet(arch=pa.array(["p", "q", "q", "p"]).dictionary_encode())),
    Case("decimals in Parquet", nodes=parquet(price=[decimal.Decimal(i) / 4 for i in (1, 2, 3, 5)])),
    Case("structs in Parquet", nodes=parquet(place=[{"x": 1}] * 4)),
    Case("lists of words in Parquet", "--text tags", nodes=parquet(tags=[["red", "fox"], ["red", "den"], ["fox"], ["red", "owl", "fox"]])),
    Case("vectors in Parquet", nodes=parquet(v=[[0.1, 0.2, 0.3]] * 2 + [[1.0, 2.0, 3.0]] * 2)),
    Case("vectors of a fixed size", nodes=parquet(v=pa.array([[1.0, 0], [0, 1], [1, 1], [0, 0]], pa.list_(pa.float32(), 2)))),
    Case("vectors of unequal length", nodes=parquet(v=pa.array([[1.0, 2], [1], [1, 2], [1, 2]], FLOATS))),
    Case("a vector is missing", nodes=parquet(v=pa.array([[1.0, 2], None, [1, 2], [5, 2]], FLOATS))),
    Case("a vector with a hole", nodes=parquet(v=pa.array([[1.0, None], [1, 2], [1, 2], [5, 2]], FLOATS))),
    Case("a vector with NaN", nodes=parquet(v=pa.array([[1.0, float("nan")], [1, 2], [1, 2], [5, 2]], FLOATS))),
    Case("vectors of nothing", nodes=parquet(v=pa.array([[], [], [], []], FLOATS))),
    Case("vectors as text", nodes='id,label,v\na,x,"[0.1, 0.2]"\nb,y,"[1, 2]"\nc,x,[3 4]\nd,y,NA\n'),
    Case("vectors in JSON lines", nodes=jsonl(*(f'{{"id": "{c}", "label": "x", "v": [{i}, 1.5]}}' for i, c in enumerate("abcd")))),
    Case("a vector that is named", "--vector v", nodes=parquet(v=pa.array([[1.0, 2]] * 4, FLOATS), w=[1, 2, 3, 4])),
    Case("a vector that is none", "--vector size"),
    Case("a key twice in JSON lines", nodes=jsonl('{"id": "a", "label": "x", "id": "b"}')),
    Case("nested objects in JSON lines", nodes=jsonl('{"id": "a", "label": {"is": "x"}}')),
    Case("a list instead of an object", nodes=jsonl('["a", "x"]')),
    Case("half a line of JSON", nodes=jsonl('{"id": "a", "la')),
    Case("keys that come and go", nodes=jsonl('{"id": "a", "label": "x"}', '{"id": "b", "size": 3}', '{"id": "c", "label": "y"}',
                                              '{"id": "d", "size": 4}')),
    Case("Parquet that is none", nodes=File("nodes.parquet", "id,label\na,x\n")),
    Case("a kind of file that is not known", nodes=File("nodes.xlsx", b"PK")),
]  # fmt: skip

SEVERAL = [
    Case("two tables of edges", edges=["source,target\na,b\n", "source,target\nc,d\n"]),
    Case("the same edge in two tables", edges=[EDGES, EDGES]),
    Case("two kinds of edges", edges={"pays": "from,to,amount\na,b,5\n", "owns": EDGES}),
    Case("one of two tables of edges is empty", edges=["source,target\n", EDGES]),
    Case("the second table of edges is wrong", edges=[EDGES, "source,target\na,zoo\n"]),
    Case("two tables of nodes", nodes=["id,label\na,x\nb,y\n", "id,label\nc,x\nd,y\n"]),
    Case("two tables of nodes with different columns", nodes=["id,label,size\na,x,1\nb,y,2\n", "id,label,age\nc,x,3\nd,y,4\n"]),
    Case("a table of nodes without labels", nodes=["id,label\na,x\nb,y\n", "id,size\nc,1\nd,2\n"]),
    Case("a node in two tables", nodes=["id,label\na,x\nb,y\n", "id,label\nc,x\nb,y\nd,x\n"]),
    Case("tables of two formats", nodes=["id,label,size\na,x,1.5\nb,y,2\n", pa.table({"id": ["c", "d"], "label": ["x", None], "size": [3, 4]})]),
    Case("numbers here and words there", nodes=["id,label,size\na,x,1\nb,y,2\n", "id,label,size\nc,x,large\nd,y,small\n"]),
    Case("vectors of two lengths in two tables", nodes=[
        pa.table({"id": ["a", "b"], "v": pa.array([[1.0], [2]], FLOATS)}),
        pa.table({"id": ["c", "d"], "v": pa.array([[1.0, 2], [3, 4]], FLOATS)})]),
    Case("a column that is in no table", "--numeric sise", nodes=["id,size\na,1\nb,2\n", "id,age\nc,3\nd,4\n"]),
    Case("ids of two names", nodes=["id,label\na,x\nb,y\n", "node,label\nc,x\nd,y\n"]),
]  # fmt: skip

BESIDE = [
    Case("vectors beside the table", "--vector vectors.npy", beside=(File("vectors.npy", [[1, 2]] * 3 + [[5, 2]]),)),
    Case("vectors beside the table, with a hole", "--vector v.npy", beside=(File("v.npy", [[1, 2]] * 3 + [[NAN, NAN]]),)),
    Case("too few vectors beside the table", "--vector vectors.npy", beside=(File("vectors.npy", [[1, 2]] * 3),)),
    Case("vectors called like a column", "--vector size.npy", beside=(File("size.npy", [[1]] * 4),)),
    Case("vectors that are words", "--vector vectors.npy", beside=(File("vectors.npy", [["a"]] * 4),)),
    Case("a vector beside the table with one NaN", "--vector vectors.npy", beside=(File("vectors.npy", [[1, NAN]] * 4),)),
    Case("a file of vectors that is not there", "--vector no/such.npy"),
]  # fmt: skip

AMOUNTS = "source,target,amount,kind,day\na,b,1,pays,2024-01-01\nb,c,2,owns,2024-02-01\nc,d,3,pays,2024-03-01\n"

WEIGHTS = [
    Case("weights", "--weight amount", edges=AMOUNTS),
    Case("a column of kinds", "--weight amount --relation kind", edges=AMOUNTS),
    Case("weights in one of two tables", "--weight amount", edges=[AMOUNTS, "source,target\na,d\n"]),
    Case("kinds in one of two tables", "--relation kind", edges=[AMOUNTS, "source,target\na,d\n"]),
    Case("a negative weight", "--weight amount", edges=AMOUNTS.replace("b,c,2", "b,c,-2")),
    Case("a missing weight", "--weight amount", edges=AMOUNTS.replace("b,c,2", "b,c,")),
    Case("a weight that is NA", "--weight amount", edges=AMOUNTS.replace("b,c,2", "b,c,NA")),
    Case("an infinite weight", "--weight amount", edges=AMOUNTS.replace("b,c,2", "b,c,1e999")),
    Case("a column that is label and kind", "--kind label", edges=AMOUNTS),
    Case("a weight too large to compute with", "--weight amount", edges=AMOUNTS.replace("b,c,2", "b,c,1e200")),
    Case("a scale of weights, and no weights", "--weight-scale log", edges=AMOUNTS),
    Case("weights that are text", "--weight kind", edges=AMOUNTS),
    Case("a weight column that is not there", "--weight amont", edges=AMOUNTS),
    Case("weight zero is no edge", "--weight amount", edges=AMOUNTS.replace("b,c,2", "b,c,0")),
    Case("a scale that is none", "--weight amount --weight-scale sqrt", edges=AMOUNTS),
    Case("a kind that is missing", "--relation kind", edges=AMOUNTS.replace("owns", "")),
    Case("a kind called NA", "--relation kind", edges=AMOUNTS.replace("owns", "NA")),
    Case("a name and a column of kinds", "--relation kind", edges={"pays": AMOUNTS}),
    Case("direction of a kind that is not there", "--relation kind --directed own", edges=AMOUNTS),
    Case("direction of a kind without kinds", "--directed owns", edges=AMOUNTS),
    Case("weights of nothing", "--weight amount", edges="source,target,amount\na,b,0\nb,c,0\n"),
    Case("one column for two things", "--weight amount --relation amount", edges=AMOUNTS),
]  # fmt: skip

MEMBERS = [
    Case("several classes in a cell that was said", "--label-separator '|'", nodes=labelled("casino", "hotel", "casino|hotel", "casino")),
    Case("an empty part of a label", "--label-separator '|'", nodes=labelled("x", "x||y", "y", "y")),
    Case("a label that ends in the separator", "--label-separator '|'", nodes=labelled("x", "x|", "y", "y")),
    Case("a separator of spaces", "--label-separator=' '"),
    Case("classes that are part of others", "--hierarchy /", nodes=labelled("a/b", "a/c", "a", "d")),
    Case("an empty part of a path", "--hierarchy /", nodes=labelled("a/b", "a//c", "a", "d")),
    Case("a class that is part of itself", "--hierarchy hierarchy.csv", beside=(File("hierarchy.csv", "class,parent\nx,y\ny,x\n"),)),
    Case("a class of two parents", "--hierarchy hierarchy.csv", beside=(File("hierarchy.csv", "class,parent\nx,y\nx,z\n"),)),
    Case("a label of a node that is nowhere", "--labels labels.csv", beside=(File("labels.csv", "node,class\na,x\nzoo,y\n"),)),
    Case("a label that is missing", "--labels labels.csv", beside=(File("labels.csv", "node,class\na,x\nb,\n"),)),
    Case("labels in a column and a table", "--label label --labels labels.csv", beside=(File("labels.csv", "node,class\na,x\n"),)),
    Case("kinds of nodes", nodes={"user": "id,label,age\na,x,1\nb,y,2\n", "item": "id,price\nc,3\nd,5\n"}),
    Case("a kind of node that is missing", "--kind sort", nodes="id,label,sort\na,x,p\nb,y,\nc,x,p\nd,y,q\n"),
]  # fmt: skip

CASES = [*PLAIN, *WRITTEN, *EMPTY, *IDS, *LABELS, *NUMBERS, *TYPES, *SEVERAL, *BESIDE, *WEIGHTS, *MEMBERS]
