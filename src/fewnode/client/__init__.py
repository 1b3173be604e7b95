"""A typed client of `fewnode serve`, on the standard library alone.

>>> service = fewnode.Client("http://127.0.0.1:8000/?token=…")                        # doctest: +SKIP
>>> service.put_class("vpn", ["openvpn", "wireguard-tools"])                          # doctest: +SKIP
>>> service.put_class("mail", description="send, receive and filter e-mail")          # doctest: +SKIP
>>> service.classify(["strongswan"]).results[0].label                                 # doctest: +SKIP
'vpn'
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from fewnode.client.answers import (
    Answer,
    Edge,
    NewEdge,
    NewNode,
    Node,
    NodeDetails,
    Progress,
    RegisteredClass,
    Row,
    Suggested,
    answer,
    checked,
    place,
    registered_class,
)
from fewnode.client.answers import Checked as Checked
from fewnode.client.answers import Prediction as Prediction
from fewnode.client.answers import Share as Share
from fewnode.client.answers import SharedWords as SharedWords
from fewnode.errors import FewnodeError

Support = Mapping[str, Sequence[str]]
"""Classes and the names of their support nodes."""
Descriptions = Mapping[str, str]
"""Classes and a sentence for each; an empty one means that the name speaks."""


class ServiceError(FewnodeError):
    """The service said no: `status`, a sentence, and a hint at what to do."""

    def __init__(self, status: int, error: str, hint: str) -> None:
        super().__init__(f"{error} ({hint})" if hint else error)
        self.status, self.hint = status, hint


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
            place(found["position"]),
        )

    # --- classes ---

    def classes(self) -> list[RegisteredClass]:
        found = self._ask("GET", "/api/classes")
        return [registered_class({**each, "version": found["version"]}) for each in found["classes"]]

    def put_class(
        self, name: str, support: Sequence[str] = (), version: str | None = None, description: str | None = None
    ) -> RegisteredClass:
        """A class as it is from now on: by its nodes, by a description, or both. An empty description: the name speaks.

        With `version`, only if the classes are still the ones of that version.
        """
        body = {"support": list(support), "description": description}
        return registered_class(self._ask("PUT", _address("classes", name), body, version))

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
        descriptions: Descriptions | None = None,
    ) -> Answer:
        """Classify nodes or, without any, all of them: then the surest `limit` of each class are returned."""
        asked: dict[str, Any] = {"all": True, "limit": limit} if nodes is None else {"nodes": list(nodes)}
        body = {**asked, **_classes(support, descriptions), "explain": explain, **_judging(mode, closed_set, threshold)}
        return answer(self._ask("POST", "/api/classify", body))

    def suggest(
        self,
        count: int = 10,
        support: Support | None = None,
        exclude: Sequence[str] = (),
        descriptions: Descriptions | None = None,
    ) -> list[Suggested]:
        """What to label next; `exclude`: nodes that were looked at and are in none of the classes."""
        body = {"count": count, **_classes(support, descriptions), "exclude": list(exclude)}
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
        return answer(self._ask("POST", "/api/nodes", body))

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
        return answer(self._ask("PUT", _address("nodes", name), body, version))

    def delete_node(self, name: str, version: str | None = None) -> str:
        """Delete a node and its edges; the version of what is left."""
        return str(self._ask("DELETE", _address("nodes", name), version=version)["version"])

    def change_edges(
        self, add: Sequence[tuple[str, str] | Edge] = (), remove: Sequence[tuple[str, str] | Edge] = ()
    ) -> str:
        """Add and remove edges (source, target) between nodes that are there; the version of what is then."""
        body = {
            what: [asdict(edge if isinstance(edge, Edge) else Edge(*edge)) for edge in edges]
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
        return Progress(checked(found), {name: checked(own) for name, own in each.items()}, version)

    def support_csv(self) -> str:
        """The table that `fewnode predict --support` takes."""
        return str(self._ask("GET", "/api/export/support.csv"))

    def classes_csv(self) -> str:
        """The table that `fewnode predict --classes` takes: the classes that have a description."""
        return str(self._ask("GET", "/api/export/classes.csv"))

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


def _content(row: Row | None, attributes: Row | None, edges: Sequence[str | NewEdge] | None) -> dict[str, Any]:
    cells = {way: dict(given) for way, given in (("row", row), ("attributes", attributes)) if given is not None}
    if edges is None:
        return cells
    return {**cells, "edges": [each if isinstance(each, str) else asdict(each) for each in edges]}


def _listed(support: Support | None) -> dict[str, list[str]] | None:
    return None if support is None else {name: list(nodes) for name, nodes in support.items()}


def _classes(support: Support | None, descriptions: Descriptions | None) -> dict[str, Any]:
    return {"support": _listed(support), "descriptions": None if descriptions is None else dict(descriptions)}


def _judging(mode: str | None, closed_set: bool, threshold: float | None) -> dict[str, Any]:
    return {"mode": mode, "closed_set": closed_set, "threshold": threshold}
