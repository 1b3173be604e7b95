"""What every request passes: who asks, from where, and how much. Nothing behind it runs for a stranger."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import prometheus_client as prometheus
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOG = logging.getLogger("fewnode.service")
MAX_BODY_BYTES, MAX_KEYS, MAX_REQUESTS = 1 << 20, 30_000, 256
"""Of the body of a request: bytes, and keys of all its objects; and requests that are worked on at a time."""
ALWAYS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
ONCE = ("host", "origin", "authorization", "content-type", "content-length", "if-match")
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
BUG = (500, "a bug, not your fault", "the log of fewnode serve has more")
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

    def opens(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.token.encode())


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


def refusal(status: int, error: str, hint: str, **headers: str) -> Response:
    """An answer that says no, in a sentence, with what to do instead."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return JSONResponse({"error": error, "hint": hint}, status, named)


class Refused(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, error: str, hint: str, **headers: str) -> None:
        self.answer = refusal(status, error, hint, **headers)


class Access:
    """Outermost, and plain ASGI: what it refuses costs next to nothing."""

    def __init__(self, app: ASGIApp, rules: Rules, health: Health, registry: prometheus.CollectorRegistry) -> None:
        self.app, self.rules, self.health, self.under_way = app, rules, health, 0
        labels = ["method", "route", "status"]  # routes are templates: no name of a user's is in them
        self.requests = prometheus.Counter("fewnode_requests", "Requests answered.", labels, registry=registry)
        self.seconds = prometheus.Histogram("fewnode_request_seconds", "Time.", ["route"], registry=registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, complete, start = 0, False, time.perf_counter()
        of_page = scope["path"] == "/" or scope["path"].startswith("/static/")

        async def fenced(message: Message) -> None:
            nonlocal status, complete
            if message["type"] == "http.response.start":
                status, headers = message["status"], MutableHeaders(scope=message)
                headers.update(ALWAYS)
                # the page is asked for anew each time, so that a new release is not mixed with an old one
                headers.setdefault("cache-control", "no-cache" if of_page and status in (200, 304) else "no-store")
                if self.health.leaving:
                    headers.setdefault("connection", "close")
            await send(message)
            complete = message["type"] == "http.response.body" and not message.get("more_body")

        request, verb = Request(scope, receive), scope["method"] if scope["method"] in METHODS else "other"
        self.under_way += 1
        try:
            if answer := self._answer(request):
                await answer(scope, receive, fenced)
            else:
                await self.app(scope, _replay(await self._body(request), receive), fenced)
        except Refused as refused:
            await refused.answer(scope, receive, fenced)
        except Exception as error:  # in the log, what a user wrote is escaped: it cannot begin another line
            frames = "".join(traceback.format_tb(error.__traceback__))
            LOG.error("%s %a\n%s%s: %a", verb, scope["path"], frames, type(error).__name__, str(error))
            if status and not complete:
                raise
            if not status:
                await refusal(*BUG)(scope, receive, fenced)
        finally:
            self.under_way -= 1
            own = scope["path"] if scope["path"] in ("/", LIVE, READY) else "other"
            route = str(getattr(scope.get("route"), "path", own))
            self.requests.labels(verb, route, status).inc()
            self.seconds.labels(route).observe(time.perf_counter() - start)

    def _answer(self, request: Request) -> Response | None:
        """What needs nothing that lies behind; None: the request may go on."""
        self._check_origin(request)
        path = request.scope["path"]
        if path == LIVE:
            return JSONResponse({"live": True})
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            given = request.cookies.get(self.rules.cookie, "")
        known = self.rules.opens(given.strip())
        if path == "/" and "token" in request.query_params:  # from the address, which is shown, into a cookie
            if self.rules.opens(request.query_params["token"]):
                cookie = f"{self.rules.cookie}={self.rules.token}; Path=/; HttpOnly; SameSite=Strict"
                return Response(status_code=303, headers={"location": "/", "set-cookie": cookie})
            known = False
        if not known and path == "/":
            return Response(LOCKED_OUT, 401, media_type="text/html")
        if not known:
            hint = "send Authorization: Bearer TOKEN, or open the link that fewnode serve printed"
            raise Refused(401, "the token is missing or wrong", hint, www_authenticate="Bearer")
        if path == READY:
            ready = self.health.ready and not self.health.leaving
            return JSONResponse({"ready": ready}, 200 if ready else 503)
        if self.under_way > MAX_REQUESTS:
            raise Refused(429, "more is asked at once than can be answered", "come again in a second", retry_after="1")
        if not self.health.ready and path != "/" and not path.startswith("/static/"):  # the page is there at once
            why = f"{self.health.stage}, {time.monotonic() - self.health.began:.0f} s"
            raise Refused(503, f"the network is being made ready: {why}", "come again in a second", retry_after="1")
        return None

    def _check_origin(self, request: Request) -> None:
        """Refuse cross-site requests (CSRF) and DNS rebinding."""
        headers, (name, port) = request.headers, request.scope["server"]
        if any(len(headers.getlist(each)) > 1 for each in ONCE):
            raise Refused(400, "a header that may be given once is given twice", "send it once")
        host = headers.get("host", "").lower()
        # where all interfaces are served, also the address that the connection was made to; never a name
        address = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
        if host not in self.rules.hosts and not (self.rules.everywhere and host == address):
            raise Refused(403, "this service does not answer to that Host", "use the address that was printed")
        if headers.get("origin", f"http://{host}").lower() != f"http://{host}":
            raise Refused(403, "this service does not answer pages of other origins", "use the page it serves itself")

    async def _body(self, request: Request) -> bytes:
        """The whole body, before anything waits for it: within its size, its time, and JSON."""
        headers, body = request.headers, b""
        if request.method in ("POST", "PUT"):
            if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
                raise Refused(415, "the body must be JSON", "send Content-Type: application/json")
            if headers.get("content-encoding", "identity").lower() != "identity":
                raise Refused(415, "the body must not be compressed", "send it as it is")
        elif headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
            return body
        too_large = Refused(413, "the body is larger than 1 MB", "send fewer nodes at a time", connection="close")
        if int(headers.get("content-length", "0")) > MAX_BODY_BYTES:
            raise too_large
        try:
            async with asyncio.timeout(self.rules.body_seconds):
                async for part in request.stream():
                    body += part
                    if len(body) > MAX_BODY_BYTES:
                        raise too_large
        except ClientDisconnect:
            raise Refused(400, "the body ended early", "send as much as Content-Length says") from None
        except TimeoutError:
            raise Refused(408, "the body came too slowly", "try again", connection="close") from None
        if len(body) > 1 << 12:
            await run_in_threadpool(check_json, body)  # others are not kept waiting
        else:
            check_json(body)
        return body


def check_json(body: bytes) -> None:
    """Refuse too many keys, and a key that is twice in an object: readers would keep one of its values, and say nothing
    of the other. What is no JSON at all, or too deep to be read, is for those behind to say."""
    keys = 0

    def checked(pairs: list[tuple[str, Any]]) -> None:
        nonlocal keys
        keys += len(pairs)
        if keys > MAX_KEYS:
            raise Refused(422, f"the body has more than {MAX_KEYS:,} keys", "send fewer nodes at a time")
        if len(dict(pairs)) < len(pairs):
            twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise Refused(422, f"{twice[:60]!r} is there twice in one object of the body", "give it once")

    with suppress(ValueError, RecursionError):
        json.loads(body, object_pairs_hook=checked, parse_int=len, parse_float=len)


def _replay(body: bytes, receive: Receive) -> Receive:
    """A body that was read already; after it, whatever comes."""
    parts = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def again() -> Message:
        return next(parts, None) or await receive()

    return again
