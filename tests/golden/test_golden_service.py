"""A working day with the service, over HTTP: classes, answers, undo, lists, new nodes, and the next day.

`python tests/golden/test_golden_service.py` writes the committed answers anew.
"""

from __future__ import annotations

import csv
import json
from io import BytesIO, StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
from doors import commit, committed, differences, done
from served import Served, served, small_network

NODES = [f"{kind}-{i}" for kind in ("vpn", "mail", "game") for i in (2, 6, 7, 11)]
CLAIMED = ("node", "class", "probability", "member", "verdict", "by")


def judged(service: Served, **more: Any) -> dict[str, Any]:
    answer = service.json("/api/classify", {"nodes": NODES, **more})
    return {
        row["node"]: [
            row["class"],
            *(p and round(p, 4) for p in (row["probability"], row["member"], *row["probabilities"])),
        ]
        for row in answer["results"]
    }


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text)))


def claimed(service: Served) -> dict[str, Any]:
    """The list of claims, which each kind of file has."""
    rows = {row["node"]: [row[name] for name in CLAIMED[1:]] for row in table(service.text("/api/export/claims.csv"))}
    by_json = service.json("/api/export/claims.json")["rows"]
    by_parquet = pq.read_table(BytesIO(service.send("/api/export/claims.parquet")[1])).to_pylist()
    for others in (by_json, by_parquet):
        assert {row["node"]: [str(row[name] or "") for name in CLAIMED[1:]] for row in others} == rows
    return {
        node: [label, round(float(probability), 4), round(float(member), 4), *said]
        for node, (label, probability, member, *said) in rows.items()
    }


def asked(service: Served) -> list[list[Any]]:
    questions = service.json("/api/next", {"class": "vpn", "count": 3})["questions"]
    return [[q["node"], q["class"], round(q["probability"], 4)] for q in questions]


def kept(service: Served) -> list[Any]:
    """All that must outlive the process."""
    names = ("support.csv", "classes.csv", "labels.csv", "claims.csv", "journal.csv")
    return [judged(service), *(service.text(f"/api/export/{name}") for name in names)]


def day(folder: Path) -> dict[str, Any]:
    network, answers = small_network(folder), dict[str, Any]()
    with served("--data", network, "--state", folder / "state.sqlite") as service:
        assert service.send("/api/classes", token="0" * 32)[0] == 401
        vpn = {"support": ["vpn-0", "vpn-1"], "description": "tunnel that can encrypt", "by": "Ann"}
        service.json("/api/classes/vpn", vpn, "PUT")
        service.json("/api/classes/mail", {"support": ["mail-0", "mail-5"]}, "PUT")
        answers["classes"] = judged(service)
        answers["closed set"] = judged(service, closed_set=True)
        answers["transductive"] = judged(service, mode="transductive")
        alone = {"support": {"fun": ["game-0"]}, "descriptions": {"fun": "chess board", "type": "serif kerning"}}
        answers["other classes"] = judged(service, **alone)
        said = [("vpn-7", "vpn", "yes"), ("font-2", "vpn", "no"), ("game-3", "vpn", "no"), ("mail-2", "mail", "yes")]
        given = [{"node": node, "class": label, "verdict": verdict} for node, label, verdict in said]
        service.json("/api/answers", {"answers": given, "by": "Bob"})
        answers["answers"] = judged(service)
        answers["questions"] = asked(service)
        trust = service.json("/api/trust")["classes"]
        answers["trust"] = {name: [of["claimed"], *(of["members"] or {}).values()] for name, of in trust.items()}
        why = service.json("/api/why/vpn-5?class=vpn")
        answers["why"] = [sorted(word["word"] for word in why["words"]), why["nearest_example"], why["nearest_counter"]]
        service.json("/api/undo", {"by": "Bob"})
        assert differences(judged(service), answers["classes"]) == []
        service.json("/api/redo", {})
        assert differences(judged(service), answers["answers"]) == []
        answers["claims"] = claimed(service)
        answers["support"] = service.text("/api/export/support.csv")
        answers["descriptions"] = service.text("/api/export/classes.csv")
        by_command(service, network, folder)
        refused(service)
        new = {"node": "new-1", "row": {"about": "encrypt tunnel key", "size": 3}, "edges": ["vpn-2", "vpn-3"]}
        (row,) = service.json("/api/nodes", {"nodes": [new], "by": "Ann"})["results"]
        assert (row["class"], row["member"] > 0.5) == ("vpn", True)
        service.json("/api/classes/spare", {"support": ["font-1"]}, "PUT")
        service.json("/api/classes/spare", method="DELETE")
        before, answers["who"] = kept(service), [row["by"] for row in table(service.text("/api/export/journal.csv"))]
    with served("--data", network, "--state", folder / "state.sqlite") as service:  # the first one was killed
        assert kept(service) == before
        service.json("/api/undo", {})
        assert [row["name"] for row in service.json("/api/classes")["classes"]] == ["vpn", "mail", "spare"]
    return answers


def by_command(service: Served, network: Path, folder: Path) -> None:
    """What the service exports gives the same answers at the command line."""
    tables = {name: folder / f"{name}.csv" for name in ("support", "classes")}
    for name, path in tables.items():
        path.write_text(service.text(f"/api/export/{name}.csv"))
    given = [f"--{name}={path}" for name, path in tables.items()]
    done("predict", "--data", network, *given, "--all", "--out=labels.csv", folder=folder)
    rows = [table(text) for text in ((folder / "labels.csv").read_text(), service.text("/api/export/labels.csv"))]
    assert rows[0] == rows[1]


def refused(service: Served) -> None:
    """Nothing is kept of what is refused."""
    before = kept(service)
    for path, body, method in (
        ("/api/classes/x", {"support": ["nobody"]}, "PUT"),
        ("/api/classes/x", {}, "PUT"),
        ("/api/answers", {"answers": [{"node": "vpn-2", "class": "nothing", "verdict": "yes"}]}, "POST"),
        ("/api/answers", {"answers": [{"node": "vpn-2", "class": "vpn", "verdict": "perhaps"}]}, "POST"),
        ("/api/classify", {"nodes": ["vpn-2"], "treshold": 0.1}, "POST"),
        ("/api/nodes", {"nodes": [{"node": "vpn-2", "row": {}}]}, "POST"),
        ("/api/nodes", {"nodes": [{"node": "new", "row": {"size": "much"}}]}, "POST"),
    ):
        status, answer = service.send(path, body, method)
        assert 400 <= status < 500, (path, answer)
        assert json.loads(answer)["error"]
    assert kept(service) == before


def test_a_day_with_the_service(tmp_path: Path) -> None:
    answers, before = day(tmp_path), committed("service")
    assert list(answers) == list(before)
    assert differences(answers, before) == []


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        commit("service", day(Path(folder)))
