"""A typed client of `fewnode serve`, on the standard library alone.

>>> service = fewnode.Client("http://127.0.0.1:8000/?token=…")                        # doctest: +SKIP
>>> service.put_class("vpn", ["openvpn", "wireguard-tools"])                          # doctest: +SKIP
>>> service.put_class("mail", description="send, receive and filter e-mail")          # doctest: +SKIP
>>> service.classify(["strongswan"]).results[0].label                                 # doctest: +SKIP
'vpn'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

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
from fewnode.client.dialogue import Claim as Claim
from fewnode.client.dialogue import ClaimPage as ClaimPage
from fewnode.client.dialogue import DialogueClient
from fewnode.client.dialogue import JournalEntry as JournalEntry
from fewnode.client.dialogue import Kept as Kept
from fewnode.client.dialogue import Question as Question
from fewnode.client.dialogue import ReadList as ReadList
from fewnode.client.dialogue import Trust as Trust
from fewnode.client.wire import ServiceError as ServiceError
from fewnode.client.wire import address, in_address, judging

Support = Mapping[str, Sequence[str]]
"""Classes and the names of their support nodes."""
Descriptions = Mapping[str, str]
"""Classes and a sentence for each; an empty one means that the name speaks."""


class Client(DialogueClient):
    """One connection, kept open; for several threads, take several clients.

    A service that is busy or still loading is asked again for up to `patience` seconds, as it says itself.

    >>> with Client("http://127.0.0.1:9/?token=of-the-link-that-fewnode-serve-printed") as service:
    ...     service.ready()  # nobody is there
    False
    """

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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

    def search(
        self,
        text: str = "",
        offset: int = 0,
        limit: int = 50,
        where: str = "name",
        attribute: str = "",
        value: str = "",
        near: str = "",
    ) -> list[Node]:
        """Nodes by a text in their `name`, in their `text` or in `all`; by an attribute; those nearest to a node."""
        wanted = {"search": text, "in": where, "attribute": attribute, "value": value, "near": near}
        query = urlencode({**wanted, "offset": offset, "limit": limit})
        found = self._ask("GET", f"/api/nodes?{query}")["nodes"]
        return [Node(node["node"], node["class"], node["degree"]) for node in found]

    def node(self, name: str) -> NodeDetails:
        found = self._ask("GET", address("nodes", name))
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
        return registered_class(self._ask("PUT", address("classes", name), body, version))

    def delete_class(self, name: str, version: str | None = None) -> str:
        """Forget a class; the version of what is left."""
        return str(self._ask("DELETE", address("classes", name), version=version)["version"])

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
        body = {**asked, **_classes(support, descriptions), "explain": explain, **judging(mode, closed_set, threshold)}
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
        body = {"nodes": given, "classify": classify, **judging(mode, closed_set, threshold)}
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
        return answer(self._ask("PUT", address("nodes", name), body, version))

    def delete_node(self, name: str, version: str | None = None) -> str:
        """Delete a node and its edges; the version of what is left."""
        return str(self._ask("DELETE", address("nodes", name), version=version)["version"])

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
        body = {"truth": _listed(truth) or {}, **judging(mode, closed_set, threshold)}
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
        how = in_address(judging(mode, closed_set, threshold))
        return str(self._ask("GET", f"/api/export/labels.csv?{urlencode(how)}"))


def _content(row: Row | None, attributes: Row | None, edges: Sequence[str | NewEdge] | None) -> dict[str, Any]:
    cells = {way: dict(given) for way, given in (("row", row), ("attributes", attributes)) if given is not None}
    if edges is None:
        return cells
    return {**cells, "edges": [each if isinstance(each, str) else asdict(each) for each in edges]}


def _listed(support: Support | None) -> dict[str, list[str]] | None:
    return None if support is None else {name: list(nodes) for name, nodes in support.items()}


def _classes(support: Support | None, descriptions: Descriptions | None) -> dict[str, Any]:
    return {"support": _listed(support), "descriptions": None if descriptions is None else dict(descriptions)}
