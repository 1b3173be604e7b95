"""The process: one socket, one event loop, limits for everybody, and a way out that loses no answer."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fewnode.errors import FewnodeError
from fewnode.machine.system import run_loop
from fewnode.serve.app import Service
from fewnode.serve.session import Session

BACKLOG = 1024


@dataclass(frozen=True)
class ClientLimits:
    """Seconds, bytes and connections that a client may take."""

    header_seconds: float = 10.0
    header_bytes: int = 1 << 16
    idle_seconds: int = 30
    write_seconds: float = 30.0
    connections: int = 1000
    leaving_seconds: float = 0.5
    """How long new requests are still answered after readiness has turned false."""


def bind(host: str, port: int) -> socket.socket:
    """The socket, before anything slow is done; port 0 means any that is free."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)  # asyncio sends without delay only where TCP is named
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise FewnodeError(f"cannot serve on {host} port {port}: {error.strerror}; choose another --port") from None
    return listener


def connection_class(limits: ClientLimits) -> type[HttpToolsProtocol]:
    """uvicorn's connections wait for a header, and for a reader, as long as it takes; these do not."""

    class Connection(HttpToolsProtocol):
        _deadline: asyncio.TimerHandle | None = None
        _reader_deadline: asyncio.TimerHandle | None = None
        _header_bytes = 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                self._make_room()
            if not transport.is_closing():
                self._await_header(limits.header_seconds)

        def _make_room(self) -> None:
            """Whoever has been silent longest goes, else those who say nothing could keep all others out."""
            silent = [other for other in self.connections if getattr(other, "_deadline", None) is not None]
            min(silent, key=lambda other: other._deadline.when(), default=self).transport.abort()  # type: ignore[union-attr]

        def connection_lost(self, exc: Exception | None) -> None:
            self._header_is_there()
            self.resume_writing()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            waiting = self._deadline is not None
            super().data_received(data)
            if waiting and self._deadline is not None:
                self._header_bytes += len(data)
                if self._header_bytes > limits.header_bytes:
                    self.transport.abort()

        def eof_received(self) -> bool:  # type: ignore[override]
            """Whoever has asked and says no more still gets the answer; True keeps our side of the connection open."""
            if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
                return False
            self.cycle.keep_alive = False
            return True

        def on_message_begin(self) -> None:
            super().on_message_begin()
            if self._deadline is None:
                self._await_header(limits.header_seconds)

        def on_headers_complete(self) -> None:
            self._header_is_there()
            super().on_headers_complete()

        def _await_header(self, seconds: float) -> None:
            self._header_bytes = 0
            self._deadline = self.loop.call_later(seconds, self.transport.abort)

        def _header_is_there(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def pause_writing(self) -> None:
            super().pause_writing()
            self._reader_deadline = self.loop.call_later(limits.write_seconds, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._reader_deadline is not None:
                self._reader_deadline.cancel()
                self._reader_deadline = None

        def shutdown(self) -> None:
            """A request may be on its way on an idle connection: it has as long as the last call takes."""
            if self.cycle is None or self.cycle.response_complete:
                self._unset_keepalive_if_required()
                self._header_is_there()
                self._await_header(limits.leaving_seconds)
            else:
                self.cycle.keep_alive = False

    return Connection


class Server(uvicorn.Server):
    """uvicorn, but signals are ours: it would end itself by them once more, and the exit status would not be 0."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def run(
    service: Service,
    listener: socket.socket,
    load: Callable[[], Session],
    say: Callable[[str], None],
    limits: ClientLimits | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT. The model is loaded while `live` answers already."""
    sys.setswitchinterval(0.0005)  # long work in the thread must not keep short work waiting for the interpreter
    run_loop(_run(service, listener, load, say, limits or ClientLimits()))


async def _run(
    service: Service,
    listener: socket.socket,
    load: Callable[[], Session],
    say: Callable[[str], None],
    limits: ClientLimits,
) -> None:
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # what is worth a line is said by `auth`, escaped
    config = uvicorn.Config(
        service.app,
        http=connection_class(limits),
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=round(service.rules.request_seconds + service.rules.body_seconds),
    )
    server = Server(config)
    loop = asyncio.get_running_loop()

    def end() -> None:
        server.should_exit = True

    def leave() -> None:
        if service.health.leaving:
            server.should_exit = server.force_exit = True
            return
        say("leaving: answering what was accepted")
        service.health.leaving = True
        loop.call_later(limits.leaving_seconds, end)

    with suppress(NotImplementedError):  # Windows: uvicorn's own way of leaving stays
        for sent in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sent, leave)
    serving = asyncio.create_task(server.serve([listener]))
    loading = asyncio.create_task(service.admission.aside(load))
    try:
        await asyncio.wait({serving, loading}, return_when=asyncio.FIRST_COMPLETED)
        if loading.done():
            service.open(loading.result())
            gc.collect()
            gc.freeze()  # what stays for good need not be looked through again: that would take 0.1 s in between
            say("ready")
        await serving
    finally:
        server.should_exit = True
        await serving
        loading.cancel()
        service.admission.close()
