"""The process: one socket, one event loop, and a way out that loses no answer."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import uvicorn
from anyio.to_thread import current_default_thread_limiter
from starlette.concurrency import run_in_threadpool

from fewnode.errors import FewnodeError
from fewnode.service.desk import Desk
from fewnode.service.http import Service

BACKLOG, MAX_REQUESTS, THREADS = 1024, 256, 8
"""Connections that wait, and requests that are worked on, before others are told to come again; threads for them."""
IDLE_SECONDS, LEAVING_SECONDS, GRACE_SECONDS = 30, 0.5, 70
"""How long a connection may be idle; how long new requests are answered after readiness has turned false; and how long
those that were accepted may take then."""


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


class Server(uvicorn.Server):
    """uvicorn, but signals are ours: it would end itself by them once more, and the exit status would not be 0."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def run(service: Service, listener: socket.socket, load: Callable[[], Desk], say: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. The model is loaded while `live` answers already."""
    sys.setswitchinterval(0.0005)  # long work in a thread must not keep short work waiting for the interpreter
    with suppress(ModuleNotFoundError):  # Windows
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(_run(service, listener, load, say))


async def _run(service: Service, listener: socket.socket, load: Callable[[], Desk], say: Callable[[str], None]) -> None:
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # what is worth a line is said by `access`, escaped
    current_default_thread_limiter().total_tokens = THREADS
    config = uvicorn.Config(
        service.app,
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        limit_concurrency=MAX_REQUESTS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = Server(config)
    loop = asyncio.get_running_loop()

    def leave() -> None:
        if service.health.leaving:
            server.should_exit = server.force_exit = True
            return
        say("leaving: answering what was accepted")
        service.health.leaving = True
        loop.call_later(LEAVING_SECONDS, setattr, server, "should_exit", True)

    with suppress(NotImplementedError):  # Windows: uvicorn's own way of leaving stays
        for sent in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sent, leave)
    serving = asyncio.create_task(server.serve([listener]))
    loading = asyncio.create_task(run_in_threadpool(load))
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
