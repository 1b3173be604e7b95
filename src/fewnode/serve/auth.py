"""What every request passes: who asks, from where, how much, how fast. Nothing behind it runs for a stranger."""

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

from fewnode.serve.admission import Admission, Busy
from fewnode.serve.metrics import Metrics

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOG = logging.getLogger("fewnode.serve")
BODY = 1 << 20
"""Bytes of a request's body at most."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
ALWAYS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
ONCE = (b"host", b"origin", b"authorization", b"content-type", b"content-length", b"if-match", b"if-none-match")
BUG = {"error": "a bug, not your fault", "hint": "the log of fewnode serve has more"}
LIVE, READY = "/health/live", "/health/ready"
LOCKED_OUT = (
    b"<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'><title>fewnode</title>"
    b"<h1>This page needs its token</h1><p>Open the link that <code>fewnode serve</code> printed when it started; "
    b"it ends in <code>?token=\xe2\x80\xa6</code>."
)


@dataclass(frozen=True)
class Rules:
    """Who may ask and how long anything may take. `hosts` are what a Host header may say, port included."""

    token: str
    port: int
    hosts: frozenset[str]
    everywhere: bool = False
    body_seconds: float = 10.0
    request_seconds: float = 60.0

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


@dataclass
class Refusal(Exception):
    """An answer that says no, in a sentence, with what to do instead."""

    status: int
    error: str
    hint: str
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)


class AuthMiddleware:
    """Outermost, and plain ASGI: what it refuses costs next to nothing."""

    def __init__(self, app: App, rules: Rules, admission: Admission, health: Health, metrics: Metrics) -> None:
        self.app, self.rules, self.admission, self.health, self.metrics = app, rules, admission, health, metrics
        self._token, self._cookie = rules.token.encode(), rules.cookie.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        exchange = Exchange(self, scope, send)
        try:
            await self._admit(exchange, receive)
        except Refusal as no:
            await exchange.answer(no.status, {"error": no.error, "hint": no.hint}, no.headers)
        except Busy:
            hint = "come again in a second"
            await exchange.answer(429, {"error": "too many requests at once", "hint": hint}, [(b"retry-after", b"1")])
        except TimeoutError:
            if exchange.status:
                raise  # the answer is on its way to one who does not read it: the connection is cut
            await exchange.answer(504, {"error": "this took too long", "hint": "ask for less at a time"})
        except Exception as error:
            LOG.error("%s", _account(scope, error))
            if exchange.status and not exchange.complete:
                raise
            if not exchange.complete:
                await exchange.answer(500, BUG)
        finally:
            exchange.done()

    async def _admit(self, exchange: Exchange, receive: Receive) -> None:
        headers, path = exchange.headers, exchange.scope["path"]
        self._check_origin(headers, exchange.scope)
        if path == LIVE:
            await exchange.answer(200, {"live": True})
            return
        if path == "/" and b"token=" in exchange.scope["query_string"]:
            await self._welcome(exchange)
            return
        if not self._knows(headers):
            await self._lock_out(exchange, path)
            return
        if path == READY:
            ready = self.health.ready and not self.health.leaving
            await exchange.answer(200 if ready else 503, {"ready": ready})
            return
        of_page = path == "/" or path.startswith("/static/")
        if not self.health.ready and not of_page:  # the page is there at once, and says what it waits for
            raise Refusal(503, "the model is still being loaded", "come again in a second", [(b"retry-after", b"1")])
        body = await self._body(exchange, receive)
        _refuse_repeated_keys(body)
        async with asyncio.timeout(self.rules.request_seconds):
            if path.startswith("/api/"):
                exchange.turn = await self.admission.turn()
            await self.app(exchange.scope, _replay(body, receive), exchange.send)

    def _check_origin(self, headers: dict[bytes, bytes], scope: Scope) -> None:
        """A page of another site, or a name that was pointed at this machine, is not who the token was given to."""
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
        raise Refusal(401, "the token is missing or wrong", hint, [(b"www-authenticate", b"Bearer")])

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
        closing = [(b"connection", b"close")]
        too_large = Refusal(413, "the body is larger than 1 MB", "send fewer nodes at a time", closing)
        if int(given) > BODY:
            raise too_large
        body = b""
        try:
            async with asyncio.timeout(self.rules.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "the body ended early", "send as much as Content-Length says")
                    body += bytes(message.get("body", b""))
                    if len(body) > BODY:
                        raise too_large
                    if not message.get("more_body"):
                        return body
        except TimeoutError:
            raise Refusal(408, "the body came too slowly", "try again", closing) from None


class Exchange:
    """One request and its answer: headers that every answer has, the turn that ends when it begins, and the count."""

    def __init__(self, middleware: AuthMiddleware, scope: Scope, send: Send) -> None:
        self.middleware, self.scope, self._send = middleware, scope, send
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.turn: Any = None
        self.status, self.complete = 0, False
        self._start = time.perf_counter()

    async def send(self, message: Message) -> None:
        """A slow reader keeps nobody waiting: the turn is over before the first byte goes out."""
        if message["type"] == "http.response.start":
            self._end_turn()
            self.status = message["status"]
            names = {name for name, _ in message["headers"]}
            extra = [*ALWAYS]
            if b"cache-control" not in names:
                extra.append((b"cache-control", b"no-store"))
            if self.middleware.health.leaving and b"connection" not in names:
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

    def _end_turn(self) -> None:
        if self.turn is not None:
            self.turn.end()

    def done(self) -> None:
        self._end_turn()
        path = self.scope["path"]
        known = path if path in ("/", LIVE, READY) else "other"
        route = str(getattr(self.scope.get("route"), "path", known))
        self.middleware.metrics.observe(
            _verb(self.scope["method"]), route, self.status, time.perf_counter() - self._start
        )


def _account(scope: Scope, error: Exception) -> str:
    """What happened where, for the log. What a user wrote is escaped: it cannot end the line or begin another."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    return f"{_verb(scope['method'])} {scope['path']!a}\n{frames}{type(error).__name__}: {str(error)!a}"


def _verb(method: str) -> str:
    return method if method in ("GET", "HEAD", "POST", "PUT", "DELETE") else "other"


def _refuse_repeated_keys(body: bytes) -> None:
    """An object that has a key twice: readers would keep one of the two values, and say nothing of the other.

    What is no JSON at all is for those behind to say.
    """

    def checked(pairs: list[tuple[str, Any]]) -> None:
        if len(dict(pairs)) < len(pairs):
            twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise Refusal(422, f"{twice[:60]!r} is there twice in one object of the body", "give it once")

    with suppress(ValueError, RecursionError):
        json.loads(body, object_pairs_hook=checked, parse_int=len, parse_float=len)


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
