"""What every request passes: who asks, from where, and how much. Nothing behind it runs for a stranger."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import orjson
import prometheus_client as prometheus
from starlette.concurrency import run_in_threadpool

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

LOG = logging.getLogger("fewnode.service")
MAX_BODY_BYTES, MAX_KEYS = 1 << 20, 30_000
"""Of the body of a request: bytes, and keys of all its objects."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
ALWAYS: Headers = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
ONCE = (b"host", b"origin", b"authorization", b"content-type", b"content-length", b"if-match")
BUG = {"error": "a bug, not your fault", "hint": "the log of fewnode serve has more"}
LIVE, READY = "/health/live", "/health/ready"
LOCKED_OUT = (
    b"<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'><title>fewnode</title>"
    b"<h1>This page needs its token</h1><p>Open the link that <code>fewnode serve</code> printed when it started; "
    b"it ends in <code>?token=\xe2\x80\xa6</code>."
)


@dataclass(frozen=True)
class Rules:
    """Who may ask, and how long a body may take. `hosts` are what a Host header may say, port included."""

    token: str
    port: int
    hosts: frozenset[str]
    everywhere: bool = False
    body_seconds: float = 10.0

    @property
    def cookie(self) -> str:
        """Cookies do not know ports, and two services may run on one machine."""
        return f"fewnode-{self.port}"


def rules(token: str, host: str, port: int) -> Rules:
    """This machine's own names with the served port, and what `--host` says beside them."""
    names = ["127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host.lower()]
    hosts = {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())
    return Rules(token, port, frozenset(hosts), host in ("0.0.0.0", "::"))  # noqa: S104 # nosec B104


@dataclass
class Health:
    """Loading, ready, or about to leave."""

    ready: bool = False
    leaving: bool = False
    stage: str = "reading the dataset"
    """What is done before it is ready."""
    began: float = field(default_factory=time.monotonic)


class Metrics:
    """Requests by route and status, and how long they took. Routes are templates: no name of a user's is in them."""

    def __init__(self) -> None:
        self.registry = prometheus.CollectorRegistry()
        labels = ["method", "route", "status"]
        self.requests = prometheus.Counter("fewnode_requests", "Requests answered.", labels, registry=self.registry)
        self.seconds = prometheus.Histogram("fewnode_request_seconds", "Time.", ["route"], registry=self.registry)

    def gauge(self, name: str, what: str, value: Callable[[], float]) -> None:
        prometheus.Gauge(f"fewnode_{name}", what, registry=self.registry).set_function(value)

    def text(self) -> bytes:
        return prometheus.generate_latest(self.registry)


class Refusal(Exception):
    """An answer that says no, in a sentence, with what to do instead."""

    def __init__(self, status: int, error: str, hint: str, *headers: tuple[bytes, bytes]) -> None:
        self.status, self.told, self.headers = status, {"error": error, "hint": hint}, headers


class Access:
    """Outermost, and plain ASGI: what it refuses costs next to nothing."""

    def __init__(self, app: App, rules: Rules, health: Health, metrics: Metrics) -> None:
        self.app, self.rules, self.health, self.metrics = app, rules, health, metrics
        self._token, self._cookie = rules.token.encode(), rules.cookie.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        exchange = Exchange(scope, send, self.health)
        try:
            await self._admit(exchange, receive)
        except Refusal as no:
            await exchange.answer(no.status, no.told, no.headers)
        except Exception as error:
            LOG.error("%s", _account(scope, error))
            if exchange.status and not exchange.complete:
                raise
            if not exchange.complete:
                await exchange.answer(500, BUG)
        finally:
            self._count(scope, exchange)

    def _count(self, scope: Scope, exchange: Exchange) -> None:
        path = scope["path"]
        known = path if path in ("/", LIVE, READY) else "other"
        route = str(getattr(scope.get("route"), "path", known))
        self.metrics.requests.labels(_verb(scope["method"]), route, exchange.status).inc()
        self.metrics.seconds.labels(route).observe(time.perf_counter() - exchange.start)

    async def _admit(self, exchange: Exchange, receive: Receive) -> None:
        headers, path = exchange.headers, exchange.scope["path"]
        self._check_origin(headers, exchange.scope)
        if path == LIVE:
            await exchange.answer(200, {"live": True})
        elif path == "/" and b"token=" in exchange.scope["query_string"]:
            await self._welcome(exchange)
        elif not self._knows(headers):
            await self._lock_out(exchange, path)
        elif path == READY:
            ready = self.health.ready and not self.health.leaving
            await exchange.answer(200 if ready else 503, {"ready": ready})
        else:
            of_page = path == "/" or path.startswith("/static/")
            if not self.health.ready and not of_page:  # the page is there at once, and says what it waits for
                seconds = time.monotonic() - self.health.began
                why = f"the network is being made ready: {self.health.stage}, {seconds:.0f} s"
                raise Refusal(503, why, "come again in a second", (b"retry-after", b"1"))
            body = await self._body(exchange, receive)
            if len(body) > 1 << 12:
                await run_in_threadpool(check_json, body)  # others are not kept waiting
            else:
                check_json(body)
            await self.app(exchange.scope, _replay(body, receive), exchange.send)

    def _check_origin(self, headers: dict[bytes, bytes], scope: Scope) -> None:
        """Refuse cross-site requests (CSRF) and DNS rebinding."""
        if len(headers) < len(scope["headers"]):
            given = [name for name, _ in scope["headers"]]
            if any(given.count(name) > 1 for name in ONCE):
                raise Refusal(400, "a header that may be given once is given twice", "send it once")
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if host not in self.rules.hosts and not self._is_own_address(host, scope):
            raise Refusal(403, "this service does not answer to that Host", "use the address that was printed")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() != f"http://{host}":
            raise Refusal(403, "this service does not answer pages of other origins", "use the page it serves itself")

    def _is_own_address(self, host: str, scope: Scope) -> bool:
        """Where all interfaces are served, the address that the connection was made to; never a name."""
        name, port = scope["server"]
        return self.rules.everywhere and host == (f"[{name}]:{port}" if ":" in name else f"{name}:{port}")

    def _knows(self, headers: dict[bytes, bytes]) -> bool:
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer":
            return hmac.compare_digest(given.strip(), self._token)
        cookies = (part.strip().partition(b"=") for part in headers.get(b"cookie", b"").split(b";"))
        return any(name == self._cookie and hmac.compare_digest(value, self._token) for name, _, value in cookies)

    async def _welcome(self, exchange: Exchange) -> None:
        """The printed link: the token moves from the address, which is shown and remembered, into a cookie."""
        given = parse_qs(exchange.scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if not hmac.compare_digest(given.encode(), self._token):
            await self._lock_out(exchange, "/")
            return
        cookie = f"{self.rules.cookie}={self.rules.token}; Path=/; HttpOnly; SameSite=Strict"
        await exchange.answer(303, None, [(b"location", b"/"), (b"set-cookie", cookie.encode())])

    async def _lock_out(self, exchange: Exchange, path: str) -> None:
        if path == "/":
            await exchange.answer(401, LOCKED_OUT, [(b"content-type", b"text/html; charset=utf-8")])
            return
        hint = "send Authorization: Bearer TOKEN, or open the link that fewnode serve printed"
        raise Refusal(401, "the token is missing or wrong", hint, (b"www-authenticate", b"Bearer"))

    async def _body(self, exchange: Exchange, receive: Receive) -> bytes:
        """The whole body, before anything waits for it: within its size, its time, and JSON."""
        headers = exchange.headers
        given = headers.get(b"content-length", b"0")
        if exchange.scope["method"] in ("POST", "PUT"):
            if headers.get(b"content-type", b"").split(b";")[0].strip().lower() != b"application/json":
                raise Refusal(415, "the body must be JSON", "send Content-Type: application/json")
            if headers.get(b"content-encoding", b"identity").lower() != b"identity":
                raise Refusal(415, "the body must not be compressed", "send it as it is")
        elif given == b"0" and b"transfer-encoding" not in headers:
            return b""
        closing = (b"connection", b"close")
        too_large = Refusal(413, "the body is larger than 1 MB", "send fewer nodes at a time", closing)
        if int(given) > MAX_BODY_BYTES:
            raise too_large
        body = b""
        try:
            async with asyncio.timeout(self.rules.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "the body ended early", "send as much as Content-Length says")
                    body += bytes(message.get("body", b""))
                    if len(body) > MAX_BODY_BYTES:
                        raise too_large
                    if not message.get("more_body"):
                        return body
        except TimeoutError:
            raise Refusal(408, "the body came too slowly", "try again", closing) from None


class Exchange:
    """One request and its answer, with the headers that every answer has."""

    def __init__(self, scope: Scope, send: Send, health: Health) -> None:
        self.scope, self._send, self.health = scope, send, health
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.status, self.complete, self.start = 0, False, time.perf_counter()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            names = {name for name, _ in message["headers"]}
            extra = [*ALWAYS]
            if b"cache-control" not in names:
                extra.append((b"cache-control", b"no-store"))
            if self.health.leaving and b"connection" not in names:
                extra.append((b"connection", b"close"))
            message = {**message, "headers": [*message["headers"], *extra]}
        await self._send(message)
        self.complete = message["type"] == "http.response.body" and not message.get("more_body")

    async def answer(self, status: int, content: Any, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        body = content if isinstance(content, bytes) else b"" if content is None else orjson.dumps(content)
        given = list(headers)
        if not any(name == b"content-type" for name, _ in given):
            given.append((b"content-type", b"application/json"))
        given.append((b"content-length", str(len(body)).encode()))
        await self.send({"type": "http.response.start", "status": status, "headers": given})
        await self.send({"type": "http.response.body", "body": b"" if self.scope["method"] == "HEAD" else body})


def check_json(body: bytes) -> None:
    """Refuse too many keys, and a key that is twice in an object: readers would keep one of its values, and say nothing
    of the other. What is no JSON at all, or too deep to be read, is for those behind to say."""
    keys = 0

    def checked(pairs: list[tuple[str, Any]]) -> None:
        nonlocal keys
        keys += len(pairs)
        if keys > MAX_KEYS:
            raise Refusal(422, f"the body has more than {MAX_KEYS:,} keys", "send fewer nodes at a time")
        if len(dict(pairs)) < len(pairs):
            twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise Refusal(422, f"{twice[:60]!r} is there twice in one object of the body", "give it once")

    with suppress(ValueError, RecursionError):
        json.loads(body, object_pairs_hook=checked, parse_int=len, parse_float=len)


def _account(scope: Scope, error: Exception) -> str:
    """What happened where, for the log. What a user wrote is escaped: it cannot end the line or begin another."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    return f"{_verb(scope['method'])} {scope['path']!a}\n{frames}{type(error).__name__}: {str(error)!a}"


def _verb(method: str) -> str:
    return method if method in ("GET", "HEAD", "POST", "PUT", "DELETE") else "other"


def _replay(body: bytes, receive: Receive) -> Receive:
    """A body that was read already; after it, whatever comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
