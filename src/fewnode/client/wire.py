"""One connection to the service: asking, waiting where it says so, and what it says when it refuses."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from fewnode.errors import FewnodeError

ONCE = ("/api/nodes", "/api/undo", "/api/redo")
"""Posts to these must not be made twice."""


class ServiceError(FewnodeError):
    """The service said no: `status`, a sentence, and a hint at what to do."""

    def __init__(self, status: int, error: str, hint: str) -> None:
        super().__init__(f"{error} ({hint})" if hint else error)
        self.status, self.hint = status, hint


class Connection:
    """A service by its link. One that is busy or still loading is asked again, as it says itself."""

    def __init__(self, url: str, token: str | None = None, timeout: float = 90.0, patience: float = 30.0) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise FewnodeError(f"{url.split('?')[0]!r}: expected the link that fewnode serve printed")
        self.token = token or parse_qs(parts.query).get("token", [""])[0]
        self.patience = patience
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=timeout)

    def close(self) -> None:
        self._connection.close()

    def _ask(self, method: str, path: str, body: Any = None, version: str | None = None) -> Any:
        kind, content = self._content(method, path, body, version)
        return json.loads(content) if kind == "application/json" else content.decode()

    def _content(self, method: str, path: str, body: Any = None, version: str | None = None) -> tuple[str, bytes]:
        """What is answered and of which kind it is; a refusal is an error."""
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
        return kept["content-type"], content

    def _send(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> tuple[int, dict[str, str], bytes]:
        given = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **headers}
        data = None if body is None else json.dumps(body).encode()
        fresh = self._connection.sock is None
        try:
            return self._exchange(method, path, data, given)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            self._connection.close()
            if fresh or (method == "POST" and path in ONCE):
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


def address(kind: str, name: str) -> str:
    return f"/api/{kind}/{quote(name, safe='')}"


def judging(mode: str | None, closed_set: bool, threshold: float | None) -> dict[str, Any]:
    return {"mode": mode, "closed_set": closed_set, "threshold": threshold}


def in_address(given: Mapping[str, Any]) -> dict[str, str]:
    """What is said, as an address has it."""
    return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in given.items() if v is not None}
