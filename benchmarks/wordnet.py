"""WordNet as two tables: senses with their words, and the pointers between them with their kinds.

    apt-get install wordnet-base
    python benchmarks/wordnet.py --out wordnet
    fewnode data import --nodes wordnet/nodes.csv --edges wordnet/edges.csv --id sense --label file --text text \\
      --relation kind --directed --out wordnet/data

The format is that of the manual page wndb(5): a line a sense, with the lexicographer's file that it is from, its words,
its pointers and its gloss. The file is its class. A pair of pointers that are each other's inverse is one edge.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path("/usr/share/wordnet")
PARTS = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
KINDS = {
    "@": "kind of",
    "@i": "instance of",
    "#m": "member of",
    "#p": "part of",
    "#s": "made into",
    "+": "derived from",
    "&": "similar to",
    ";c": "of the topic",
    "^": "see also",
    "!": "opposite of",
    "=": "attribute of",
    "\\": "pertains to",
    "$": "in a group with",
    "*": "entails",
    ">": "causes",
    ";r": "of the region",
    ";u": "used as",
    "<": "participle of",
}
"""Pointers that are kept; the others are the inverse of one of them."""
BOTH_WAYS = "+&!$^="
"""Of these there is one each way: the first is kept."""


def senses(folder: Path) -> Iterator[tuple[str, str, str, list[tuple[str, str]]]]:
    """Each sense: its name, its class, its text, and its pointers with their kinds."""
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text("latin-1").splitlines():
            if line.startswith(" "):  # the licence
                continue
            data, _, gloss = line.partition(" | ")
            offset, file, _, count, *rest = data.split()
            words = [word.replace("_", " ") for word in rest[: 2 * int(count, 16) : 2]]
            rest = rest[2 * int(count, 16) :]
            pointers = [tuple(rest[i : i + 3]) for i in range(1, 1 + 4 * int(rest[0]), 4)]
            found = [(f"{PARTS[pos]}{target}", symbol) for symbol, target, pos in pointers if symbol in KINDS]
            yield f"{part}{offset}", f"{part} {file}", f"{'; '.join(words)}: {gloss.strip()}", found


def write(folder: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    seen = set()
    with (out / "nodes.csv").open("w", newline="") as nodes, (out / "edges.csv").open("w", newline="") as edges:
        node, edge = csv.writer(nodes), csv.writer(edges)
        node.writerow(["sense", "file", "text"])
        edge.writerow(["source", "target", "kind"])
        for name, file, text, pointers in senses(folder):
            node.writerow([name, file, text])
            for target, symbol in pointers:
                if (symbol in BOTH_WAYS and (target, name, symbol) in seen) or (name, target, symbol) in seen:
                    continue
                seen.add((name, target, symbol))
                edge.writerow([name, target, KINDS[symbol]])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    write(options.folder, options.out)
