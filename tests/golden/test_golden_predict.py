"""`predict` and `suggest` on the embedded network of Debian packages: the same 300 nodes in every variant.

`python tests/golden/test_golden_predict.py` writes the committed answers anew.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from doors import commit, committed, differences, done

PAIRS = {"vpn": "openvpn tinc", "mailing": "postfix mutt"}
TEXTS = {"vpn": "encrypted tunnels between networks", "mailing": "send and filter e-mail", "spell": "checks spelling"}
ON_THE_EDGE = 3
"""So many of 300 nodes may have another label: they are as near to one as to the other."""


@dataclass(frozen=True)
class Variant:
    """Classes by nodes in them, nodes not in them and sentences, and the options of `fewnode predict`."""

    options: str = ""
    yes: dict[str, str] = field(default_factory=lambda: PAIRS)
    no: dict[str, str] = field(default_factory=dict)
    text: dict[str, str] = field(default_factory=dict)
    asked: str = "--data debian"


VARIANTS = {
    "nodes": Variant(),
    "nodes, all": Variant("--all"),
    "nodes, closed set": Variant("--closed-set"),
    "nodes, a low threshold": Variant("--threshold 0.1"),
    "sentences": Variant(yes={}, text=TEXTS),
    "names that speak": Variant(yes={}, text={"editor": "", "mail": ""}),
    "nodes and sentences": Variant(text=TEXTS),
    "one class": Variant(yes={"vpn": "openvpn tinc vpnc"}),
    "one sentence": Variant(yes={}, text={"vpn": "encrypted tunnels between networks"}),
    "with a no": Variant(no={"vpn": "nmap wireshark", "mailing": "stunnel4"}),
    "several classes a node": Variant(
        "--multi-label", {"vpn": "openvpn tinc", "server": "openvpn postfix dovecot-core", "mailing": "postfix mutt"}
    ),
    "transductive": Variant("--transductive"),
    "transductive, sentences": Variant("--transductive", text=TEXTS),
    "known shares": Variant("--proportions mailing=0.3,vpn=0.7"),
    "base classes": Variant("--with-base"),
    "base classes, nodes and sentences": Variant("--with-base", text=TEXTS),
    "a run of GPN": Variant(asked="--run run"),
    "a run of GPN, one class": Variant(yes={"vpn": "openvpn tinc vpnc"}, asked="--run run"),
    "a run of GPN, base classes": Variant("--with-base", asked="--run run"),
}
SUGGESTED = {
    "to learn": Variant("--count 8"),
    "to find": Variant("--count 8 --find"),
    "to find, one class with a no": Variant("--count 8 --find", {"vpn": "openvpn tinc"}, {"vpn": "nmap"}),
}


def table(path: Path, header: str, rows: list[str]) -> str:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path.name


def tables(variant: Variant, folder: Path) -> Iterator[str]:
    sides = {"yes": variant.yes, "no": variant.no}
    answers = [f"{v},{c},{side}" for side, of in sides.items() for c, nodes in of.items() for v in nodes.split()]
    if answers:
        yield f"--support={table(folder / 'support.csv', 'node,class,answer', answers)}"
    if variant.text:
        texts = [f"{name},{text}" for name, text in variant.text.items()]
        yield f"--classes={table(folder / 'classes.csv', 'class,description', texts)}"


def answered(command: str, variant: Variant, folder: Path, *more: str) -> list[dict[str, str]]:
    """Rows of the output of a command."""
    given = [*variant.asked.split(), *variant.options.split(), *tables(variant, folder), *more]
    done(command, *given, "--out=out.csv", folder=folder)
    with (folder / "out.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def rows(variant: Variant, asked: list[str], folder: Path) -> list[dict[str, str]]:
    """What is predicted of these nodes, in their order."""
    query = [] if "--all" in variant.options else [f"--query={table(folder / 'asked.csv', 'node', asked)}"]
    by_node = {row["node"]: row for row in answered("predict", variant, folder, *query)}
    return [by_node[node] for node in asked]


def columns(variant: Variant, rows: list[dict[str, str]]) -> dict[str, Any]:
    """Labels and numbers; those of base classes are not looked at."""
    names = [name for name in rows[0] if name in {"probability", "member", *variant.yes, *variant.text}]
    numbers = {name: [round(float(row[name]), 4) for row in rows] for name in names}
    return {"label": {row["node"]: row["label"] for row in rows if row["label"] != "none of these"}, **numbers}


def suggested(variant: Variant, folder: Path) -> dict[str, float]:
    """How sure it is of each node to ask about; their order may change where two are as worthwhile."""
    return {
        row["node"]: row["member"] and round(float(row["member"]), 4) for row in answered("suggest", variant, folder)
    }


def a_run(folder: Path) -> None:
    done("train", "--data=debian", "--method=gpn", "--episodes=20", "--out=run", folder=folder)


def test_debian_is_answered_as_it_was(tmp_path: Path) -> None:
    """In one test, since the network is embedded once in a process."""
    a_run(tmp_path)
    before = committed("predict")
    asked = before.pop("nodes asked about")
    assert list(before) == [*VARIANTS, *SUGGESTED]
    answers = {name: columns(variant, rows(variant, asked, tmp_path)) for name, variant in VARIANTS.items()}
    for name, answer in answers.items():
        relabelled = set(answer.pop("label").items()) ^ set(before[name].pop("label").items())
        assert len({node for node, _ in relabelled}) <= ON_THE_EDGE, name
    assert differences(answers, before) == []
    for name, variant in SUGGESTED.items():
        today = suggested(variant, tmp_path)
        both = today.keys() & before[name].keys()
        assert len(both) >= len(today) - 1
        assert differences({node: today[node] for node in both}, before[name]) == []


def main(folder: Path) -> None:
    a_run(folder)
    every = answered("predict", Variant("--all", text=TEXTS), folder)
    by_chance = sorted(every, key=lambda row: -float(row["member"]))
    asked = sorted({row["node"] for row in [*by_chance[:1000:5], *every[::550]]})[:300]
    answers = {name: columns(variant, rows(variant, asked, folder)) for name, variant in VARIANTS.items()}
    suggestions = {name: suggested(variant, folder) for name, variant in SUGGESTED.items()}
    commit("predict", {"nodes asked about": asked, **answers, **suggestions})


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
