"""A client of `fewnode serve`, over httpx. Its answers are the models of `fewnode.service.answers`."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote, urlsplit

import httpx

from fewnode.errors import FewnodeError
from fewnode.service import answers as a

T = TypeVar("T", bound=a.Told)
Names = Sequence[str]


class ServiceError(FewnodeError):
    """The service said no: `status`, a sentence, and a hint at what to do."""

    def __init__(self, status: int, error: str, hint: str) -> None:
        super().__init__(f"{error} ({hint})" if hint else error)
        self.status, self.hint = status, hint


class Client:
    """A service by its link. One that is busy or still loading is asked again for up to `patience` seconds.

    `more`: other fields of the request, as `/openapi.json` has them, and the `version` that is expected.

    >>> with Client("http://127.0.0.1:9/?token=of-the-link-that-fewnode-serve-printed") as service:
    ...     service.ready()  # nobody is there
    False
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 90.0, patience: float = 30.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise FewnodeError(f"{url.split('?')[0]!r}: expected the link that fewnode serve printed")
        token = token or parse_qs(parts.query).get("token", [""])[0]
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.patience = patience
        self._http = httpx.Client(base_url=f"{parts.scheme}://{parts.netloc}", headers=headers, timeout=timeout)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def ready(self) -> bool:
        """Whether requests are welcome; False too where nobody answers."""
        try:
            return self._http.get("/health/ready").status_code == 200
        except httpx.HTTPError:
            return False

    def model(self) -> a.Model:
        return self.ask(a.Model, "GET", "model")

    def search(self, text: str = "", where: str = "name", **more: Any) -> list[a.FoundNode]:
        """Nodes by a text in their `name`, their `text` or `all`; `more`: `attribute` and `value`, `near`, `limit`."""
        return self.ask(a.Found, "GET", "search", search=text, **{"in": where}, **more).nodes

    def node(self, name: str) -> a.NodeDetails:
        return self.ask(a.NodeDetails, "GET", "nodes", name)

    def classes(self) -> list[a.ClassNow]:
        return self.ask(a.Classes, "GET", "classes").classes

    def put_class(self, name: str, support: Names = (), description: str | None = None, **more: Any) -> a.ClassNow:
        """A class as it is from now on."""
        return self.ask(a.ClassNow, "PUT", "classes", name, support=[*support], description=description, **more)

    def delete_class(self, name: str, **more: Any) -> a.Kept:
        return self.ask(a.Kept, "DELETE", "classes", name, **more)

    def answer(
        self, label: str, yes: Names = (), no: Names = (), asked: Sequence[a.Question] = (), **more: Any
    ) -> a.Kept:
        """Nodes that are in a class, and that are not: all or none, and once, also if it has to be sent again.

        `asked`: the questions that these answer, as `next` gave them; `trust` is estimated from such answers.
        """
        p = {question.node: question.probability for question in asked}
        said = [*((node, "yes") for node in yes), *((node, "no") for node in no)]
        answers = [{"node": node, "class": label, "verdict": to, "probability": p.get(node)} for node, to in said]
        return self.ask(a.Kept, "POST", "answers", answers=answers, id=secrets.token_hex(8), **more)

    def undo(self, **more: Any) -> a.Kept:
        return self.ask(a.Kept, "POST", "undo", **more)

    def redo(self, **more: Any) -> a.Kept:
        return self.ask(a.Kept, "POST", "redo", **more)

    def journal(self, limit: int = 50, offset: int = 0) -> list[a.Entry]:
        return self.ask(a.Journal, "GET", "journal", limit=limit, offset=offset).entries

    def attach(self, nodes: Sequence[Mapping[str, Any]], **more: Any) -> a.Answer:
        """Add nodes to the network and classify them; nothing is trained."""
        return self.ask(a.Answer, "POST", "nodes", nodes=[dict(node) for node in nodes], **more)

    def reload(self) -> a.Reloaded:
        """Have the dataset read again in the background; `model().reload` says when it is done, and what is gone."""
        return self.ask(a.Reloaded, "POST", "reload")

    def classify(self, nodes: Names | None = None, **more: Any) -> a.Answer:
        """Classify nodes or, without any, all of them; `more` is what `Classify` has, such as `support` and `limit`."""
        return self.ask(a.Answer, "POST", "classify", nodes=nodes and [*nodes], all=nodes is None, **more)

    def next(self, label: str | None = None, count: int = 5, **more: Any) -> list[a.Question]:
        """What to ask somebody next; `more`: `order` (`doubt` or `likeliest`), `exclude`, and how nodes are judged."""
        return self.ask(a.Questions, "POST", "next", label=label, count=count, **more).questions

    def why(self, node: str, label: str | None = None) -> a.Why:
        return self.ask(a.Why, "GET", "why", node, label=label)

    def trust(self, label: str | None = None, **more: Any) -> dict[str, a.ClassTrust]:
        return self.ask(a.Trust, "GET", "trust", label=label, **more).classes

    def claims(self, label: str | None = None, **more: Any) -> a.ClaimPage:
        """What the classes claim; `more`: `text`, `attribute` and `value`, `unanswered`, `sort`, `group`, `limit`, …"""
        return self.ask(a.ClaimPage, "GET", "claims", label=label, **more)

    def export(self, name: str, **more: Any) -> bytes:
        """A file: `claims.csv`, `.json` or `.parquet`, `journal.csv` or `.json`, `support.csv`, `labels.csv`, …"""
        return self._send("GET", f"/api/export/{name}", more).content

    def ask(self, kind: type[T], method: str, *path: str, **given: Any) -> T:
        """Any request: `given` is its body or its query. A class is called `label`, since `class` is Python's."""
        address = "/".join(quote(part, safe="") for part in path)
        return kind.model_validate_json(self._send(method, f"/api/{address}", given).content)

    def _send(self, method: str, path: str, given: Mapping[str, Any]) -> httpx.Response:
        said = {{"label": "class"}.get(name, name): value for name, value in given.items() if value is not None}
        headers = {"If-Match": said.pop("version")} if "version" in said else {}
        what: dict[str, Any] = {"params": said} if method in ("GET", "DELETE") else {"json": said}
        until = time.monotonic() + self.patience
        while True:
            try:
                response = self._http.request(method, path, headers=headers, **what)
            except httpx.TransportError as failure:
                raise FewnodeError(f"{self._http.base_url}: {failure}") from None
            wait = float(response.headers.get("retry-after", 1))
            if response.status_code not in (429, 503) or time.monotonic() + wait > until:
                break
            time.sleep(wait)
        if response.status_code == 200:
            return response
        json = response.headers.get("content-type", "").startswith("application/json")
        told = {"error": f"the service answered {response.status_code}", **(response.json() if json else {})}
        raise ServiceError(response.status_code, told["error"], told.get("hint", ""))
