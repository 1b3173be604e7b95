"""A typed client of `fewnode serve`, on the standard library alone.

>>> service = fewnode.Client("http://127.0.0.1:8000/?token=…")                        # doctest: +SKIP
>>> service.put_class("vpn", ["openvpn", "wireguard-tools"])                          # doctest: +SKIP
>>> service.classify(["strongswan"]).results[0].label                                 # doctest: +SKIP
'vpn'
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from fewnode.errors import FewnodeError

Support = Mapping[str, Sequence[str]]
"""Classes and the names of their support nodes."""


class ServiceError(FewnodeError):
    """The service said no: `status`, a sentence, and a hint at what to do."""

    def __init__(self, status: int, error: str, hint: str) -> None:
        super().__init__(f"{error} ({hint})" if hint else error)
        self.status, self.hint = status, hint


@dataclass(frozen=True)
class Node:
    """A node: its class is None if the dataset does not know it."""

    name: str
    label: str | None
    degree: int


@dataclass(frozen=True)
class NodeDetails(Node):
    """A node, its most telling attributes, and up to thirty neighbours, by name and class."""

    words: dict[str, float]
    neighbours: dict[str, str | None]
    position: tuple[float, float] | None


@dataclass(frozen=True)
class RegisteredClass:
    """A class and β of its support nodes; None where the method has no β."""

    name: str
    beta: dict[str, float | None]
    position: tuple[float, float] | None
    version: str


@dataclass(frozen=True)
class Prediction:
    """What a node is taken for; `label` is None if it is in none of the classes."""

    node: str
    label: str | None
    probability: float
    """Of that label."""
    probabilities: dict[str, float]
    member: float | None
    """The probability of being in any of the classes; None where the model cannot tell."""
    nearest: list[tuple[str, str]]
    """Support nodes that are most like it, with their classes."""


@dataclass(frozen=True)
class Answer:
    """Predictions, the version of the classes they were made with, and why: β of each class's support nodes."""

    version: str
    results: list[Prediction]
    beta: dict[str, dict[str, float]]
    counts: dict[str, int]
    """How many nodes of the network are taken for each class; empty unless all were asked about."""
    closed_set: bool
    """Whether every node was taken to be in one of the classes."""
    note: str | None
    """Why, where the model cannot tell that a node is in none of them."""
    missing: dict[str, list[str]] = field(default_factory=dict)
    """Of nodes whose rows were given: the columns that they do not have."""
    unknown: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Cells with a category that the dataset does not have; they count as missing."""
    unused: list[str] = field(default_factory=list)
    """Columns that the import left out, and that are left out here as well."""


@dataclass(frozen=True)
class Suggested:
    """A node worth labelling."""

    node: str
    label: str
    probability: float
    why: str


Row = Mapping[str, Any]
"""Cells by column, as the tables have them that the dataset was imported from: text, numbers, categories, vectors."""


@dataclass(frozen=True)
class NewNode:
    """A node to attach; edges lead to nodes that are there or come with it.

    `attributes`, numbers by the name of an attribute, are for datasets that were not imported from tables.
    """

    name: str
    row: Row | None = None
    edges: Sequence[str] = ()
    attributes: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Share:
    """A share of `nodes`, `right` of them, with its 95 % interval (Wilson's)."""

    value: float
    low: float
    high: float
    right: int
    nodes: int


@dataclass(frozen=True)
class Checked:
    """How much of what is claimed is right, by labels that are known; a share of fewer than ten nodes is None."""

    claimed: int
    checked: int
    """Claimed nodes whose label is known."""
    precision: Share | None
    members: int
    """Nodes that are known to be in the class, or in one of the classes."""
    recall: Share | None
    compared_with: str | None = None
    """What the data calls the class; None if nothing says so."""


@dataclass(frozen=True)
class Progress:
    """All classes together, and each of them. Support nodes are left out."""

    overall: Checked
    per_class: dict[str, Checked]
    version: str


class Client:
    """One connection, kept open; for several threads, take several clients.

    A service that is busy or still loading is asked again for up to `patience` seconds, as it says itself.

    >>> with Client("http://127.0.0.1:9/?token=of-the-link-that-fewnode-serve-printed") as service:
    ...     service.ready()  # nobody is there
    False
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 90.0, patience: float = 30.0) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise FewnodeError(f"{url.split('?')[0]!r}: expected the link that fewnode serve printed")
        self.token = token or parse_qs(parts.query).get("token", [""])[0]
        self.patience = patience
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=timeout)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    # --- what there is ---

    def ready(self) -> bool:
        """Whether requests are welcome; False too where nobody answers."""
        try:
            return self._send("GET", "/health/ready", None, {})[0] == 200
        except OSError:
            return False

    def model(self) -> dict[str, Any]:
        """The model, its network and what it can do, as the service says it."""
        return dict(self._ask("GET", "/api/model"))

    def search(self, text: str = "", offset: int = 0, limit: int = 50) -> list[Node]:
        query = urlencode({"search": text, "offset": offset, "limit": limit})
        found = self._ask("GET", f"/api/nodes?{query}")["nodes"]
        return [Node(node["node"], node["class"], node["degree"]) for node in found]

    def node(self, name: str) -> NodeDetails:
        found = self._ask("GET", _address("nodes", name))
        return NodeDetails(
            found["node"],
            found["class"],
            found["degree"],
            {word["word"]: word["weight"] for word in found["words"]},
            {near["node"]: near["class"] for near in found["neighbours"]},
            _place(found["position"]),
        )

    # --- classes ---

    def classes(self) -> list[RegisteredClass]:
        found = self._ask("GET", "/api/classes")
        return [_class({**each, "version": found["version"]}) for each in found["classes"]]

    def put_class(self, name: str, support: Sequence[str], version: str | None = None) -> RegisteredClass:
        """Register a class. With `version`, only if the classes are still the ones of that version."""
        return _class(self._ask("PUT", _address("classes", name), {"support": list(support)}, version))

    def delete_class(self, name: str, version: str | None = None) -> str:
        """Forget a class; the version of what is left."""
        return str(self._ask("DELETE", _address("classes", name), version=version)["version"])

    # --- answers ---

    def classify(
        self,
        nodes: Sequence[str] | None = None,
        support: Support | None = None,
        mode: str | None = None,
        closed_set: bool = False,
        threshold: float | None = None,
        limit: int = 50,
        explain: bool = True,
    ) -> Answer:
        """Classify nodes or, without any, all of them: then the surest `limit` of each class are returned."""
        asked: dict[str, Any] = {"all": True, "limit": limit} if nodes is None else {"nodes": list(nodes)}
        body = {**asked, "support": _listed(support), "explain": explain, **_judging(mode, closed_set, threshold)}
        return _answer(self._ask("POST", "/api/classify", body))

    def suggest(self, count: int = 10, support: Support | None = None, exclude: Sequence[str] = ()) -> list[Suggested]:
        """What to label next; `exclude`: nodes that were looked at and are in none of the classes."""
        body = {"count": count, "support": _listed(support), "exclude": list(exclude)}
        found = self._ask("POST", "/api/suggest", body)["nodes"]
        return [Suggested(node["node"], node["class"], node["probability"], node["why"]) for node in found]

    # --- nodes and edges ---

    def attach(
        self,
        nodes: Sequence[NewNode],
        classify: bool = True,
        mode: str | None = None,
        closed_set: bool = False,
        threshold: float | None = None,
    ) -> Answer:
        """Add nodes to the network and classify them; nothing is trained."""
        given = [{"node": n.name, **_content(n.row, n.attributes, n.edges)} for n in nodes]
        body = {"nodes": given, "classify": classify, **_judging(mode, closed_set, threshold)}
        return _answer(self._ask("POST", "/api/nodes", body))

    def put_node(
        self,
        name: str,
        row: Row | None = None,
        edges: Sequence[str] | None = None,
        attributes: Mapping[str, float] | None = None,
        version: str | None = None,
        classify: bool = True,
    ) -> Answer:
        """Replace a node's row, its edges, or both: what is None stays. A node that is not there is attached."""
        body = {**_content(row, attributes, edges), "classify": classify}
        return _answer(self._ask("PUT", _address("nodes", name), body, version))

    def delete_node(self, name: str, version: str | None = None) -> str:
        """Delete a node and its edges; the version of what is left."""
        return str(self._ask("DELETE", _address("nodes", name), version=version)["version"])

    def change_edges(self, add: Sequence[tuple[str, str]] = (), remove: Sequence[tuple[str, str]] = ()) -> str:
        """Add and remove edges (source, target) between nodes that are there; the version of what is then."""
        body = {
            what: [{"source": source, "target": target} for source, target in edges]
            for what, edges in (("add", add), ("remove", remove))
        }
        return str(self._ask("POST", "/api/edges", body)["version"])

    # --- how well it goes, and tables ---

    def progress(
        self,
        truth: Support | None = None,
        mode: str | None = None,
        closed_set: bool = False,
        threshold: float | None = None,
    ) -> Progress:
        """How much of what the classes claim is right; `truth`: labels that the dataset does not know."""
        body = {"truth": _listed(truth) or {}, **_judging(mode, closed_set, threshold)}
        found = self._ask("POST", "/api/progress", body)
        version, each = found.pop("version"), found.pop("per_class")
        return Progress(_checked(found), {name: _checked(own) for name, own in each.items()}, version)

    def support_csv(self) -> str:
        """The table that `fewnode predict --support` takes."""
        return str(self._ask("GET", "/api/export/support.csv"))

    def labels_csv(self, mode: str | None = None, closed_set: bool = False, threshold: float | None = None) -> str:
        """Every node with its class and probabilities."""
        how = {k: str(v).lower() for k, v in _judging(mode, closed_set, threshold).items() if v is not None}
        return str(self._ask("GET", f"/api/export/labels.csv?{urlencode(how)}"))

    # --- the wire ---

    def _ask(self, method: str, path: str, body: Any = None, version: str | None = None) -> Any:
        headers = {"If-Match": version} if version is not None else {}
        until = time.monotonic() + self.patience
        while True:
            status, kept, content = self._send(method, path, body, headers)
            wait = float(kept.get("retry-after", 1))
            if status not in (429, 503) or time.monotonic() + wait > until:
                break
            time.sleep(wait)
        if status != 200:
            told = json.loads(content) if content.startswith(b"{") else {}
            raise ServiceError(status, told.get("error", f"the service answered {status}"), told.get("hint", ""))
        return json.loads(content) if kept["content-type"] == "application/json" else content.decode()

    def _send(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> tuple[int, dict[str, str], bytes]:
        given = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **headers}
        data = None if body is None else json.dumps(body).encode()
        fresh = self._connection.sock is None
        try:
            return self._exchange(method, path, data, given)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            self._connection.close()
            if fresh or (method, path) == ("POST", "/api/nodes"):  # which must not be done twice
                raise
            return self._exchange(method, path, data, given)  # the connection had been idle for too long
        except BaseException:
            self._connection.close()
            raise

    def _exchange(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        self._connection.request(method, path, data, dict(headers))
        response = self._connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()


def _address(kind: str, name: str) -> str:
    return f"/api/{kind}/{quote(name, safe='')}"


def _content(row: Row | None, attributes: Row | None, edges: Sequence[str] | None) -> dict[str, Any]:
    cells = {way: dict(given) for way, given in (("row", row), ("attributes", attributes)) if given is not None}
    return cells if edges is None else {**cells, "edges": list(edges)}


def _listed(support: Support | None) -> dict[str, list[str]] | None:
    return None if support is None else {name: list(nodes) for name, nodes in support.items()}


def _judging(mode: str | None, closed_set: bool, threshold: float | None) -> dict[str, Any]:
    return {"mode": mode, "closed_set": closed_set, "threshold": threshold}


def _checked(found: Mapping[str, Any]) -> Checked:
    shares = {what: Share(**found[what]) if found[what] else None for what in ("precision", "recall")}
    return Checked(**{**found, **shares})


def _place(position: Any) -> tuple[float, float] | None:
    return None if position is None else (position[0], position[1])


def _class(found: Mapping[str, Any]) -> RegisteredClass:
    beta = {each["node"]: each["beta"] for each in found["support"]}
    return RegisteredClass(found["name"], beta, _place(found["position"]), found["version"])


def _answer(found: Mapping[str, Any]) -> Answer:
    results = [
        Prediction(
            each["node"],
            each["class"],
            each["probability"],
            dict(zip(found["classes"], each["probabilities"], strict=True)),
            each["member"],
            [(near["node"], near["class"]) for near in each["nearest"]],
        )
        for each in found["results"]
    ]
    told = {name: found[name] for name in ("missing", "unknown", "unused") if name in found}
    counts, closed_set = found.get("counts", {}), found.get("closed_set", False)
    return Answer(found["version"], results, found["beta"], counts, closed_set, found.get("note"), **told)
