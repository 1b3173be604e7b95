"""The process: one socket, one event loop, and a way out that loses no answer."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from fewnode.errors import FewnodeError
from fewnode.serve.app import Service
from fewnode.serve.session import Session

BACKLOG = 1024


def bind(host: str, port: int) -> socket.socket:
    """The socket, before anything slow is done; port 0 means any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise FewnodeError(f"{host}:{port} cannot be served on: {error.strerror}; choose another --port") from None
    return listener


class Server(uvicorn.Server):
    """uvicorn with our way of leaving."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def run(service: Service, listener: socket.socket, load: Callable[[], Session], say: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. The model is loaded while `live` answers already."""
    config = uvicorn.Config(
        service.app,
        http="httptools",
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
    )
    server = Server(config)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for sent in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sent, leave)
        serving = asyncio.create_task(server.serve([listener]))
        try:
            service.open(await service.desk.aside(load))
            say("ready")
            await serving
        finally:
            server.should_exit = True
            await serving
            service.desk.close()

    def leave() -> None:
        service.health.leaving = True
        server.should_exit = True

    asyncio.run(main())
