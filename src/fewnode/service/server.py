"""The process: one socket, one event loop, and a way out that loses no answer."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import sys
from collections.abc import Callable
from types import FrameType

import uvicorn
from anyio.to_thread import current_default_thread_limiter
from starlette.concurrency import run_in_threadpool

from fewnode.errors import FewnodeError
from fewnode.service.desk import Desk
from fewnode.service.http import Service

BACKLOG, THREADS = 1024, 8
"""Connections that wait to be accepted, and threads for requests."""
IDLE_SECONDS, LEAVING_SECONDS, GRACE_SECONDS = 30, 0.5, 70
"""How long a connection may be idle; how long new requests are answered after readiness has turned false; and how long
those that were accepted may take then."""


def bind(host: str, port: int) -> socket.socket:
    """The socket, before anything slow is done; port 0 means any that is free."""
    listener = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)  # asyncio sends without delay only where TCP is named
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise FewnodeError(f"cannot serve on {host} port {port}: {error.strerror}; choose another `port`") from None
    return listener


class Server(uvicorn.Server):
    """uvicorn, but a signal first ends readiness alone, a second one everything; the exit status stays 0."""

    def __init__(self, service: Service, say: Callable[[str], None]) -> None:
        """What is worth a line in a log is said by `access`, escaped."""
        quiet = {"access_log": False, "log_config": None, "server_header": False, "proxy_headers": False}
        times = {"timeout_keep_alive": IDLE_SECONDS, "timeout_graceful_shutdown": GRACE_SECONDS}
        others = {"backlog": BACKLOG, "ws": "none", "lifespan": "off"}
        super().__init__(uvicorn.Config(service.app, **quiet, **times, **others))  # type: ignore[arg-type]
        self.health, self.say = service.health, say

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.health.leaving:
            self.should_exit = self.force_exit = True
            return
        self.health.leaving = True
        self.say("leaving: answering what was accepted")
        asyncio.get_running_loop().call_later(LEAVING_SECONDS, setattr, self, "should_exit", True)


def run(service: Service, listener: socket.socket, load: Callable[[], Desk], say: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. The model is loaded while `live` answers already."""
    sys.setswitchinterval(0.0005)  # long work in a thread must not keep short work waiting for the interpreter
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    server = Server(service, say)

    async def serve() -> None:
        current_default_thread_limiter().total_tokens = THREADS
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

    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(serve())
