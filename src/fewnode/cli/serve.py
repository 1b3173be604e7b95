"""`fewnode serve`."""

from __future__ import annotations

import secrets
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fewnode.cli.options import options
from fewnode.cli.output import Quiet, Threads
from fewnode.cli.source import Source
from fewnode.errors import FewnodeError
from fewnode.options import Options, option

if TYPE_CHECKING:
    from fewnode.dataset import Dataset
    from fewnode.model.estimator import Estimator


class Address(Options):
    """Where it is served, and to whom."""

    port: int = option("0: any that is free.", 8000, ge=0, le=65535)
    host: str = option("Address to listen on; default: this machine only.", "127.0.0.1")
    token: str | None = option("What askers must know; default: random.", env="FEWNODE_TOKEN")
    state: Path | None = option("Where changes are kept; default: in the run, or beside the dataset.")


@options(Source, Address, Threads, Quiet)
def serve(source: Source, at: Address, threads: Threads, say: Quiet) -> None:
    """Serve a model over HTTP, with a page to name new classes on: by pointing at a few nodes, by a sentence, or both.

    The link that is printed holds a token; whoever has none is refused. Only this machine can reach the service
    unless --host says otherwise. Registered classes, new nodes and edges outlive the process, in one SQLite file.
    SIGTERM answers what was accepted, then ends.

    \b
    Example:
      fewnode serve --data debian
      fewnode serve --run run --port 8000

    Without a service: `fewnode predict` and `fewnode suggest`.
    """
    try:
        from fewnode.service import access, http, server
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("fewnode"):
            raise
        raise FewnodeError(f"serving needs the package {error.name}: pip install 'fewnode[serve]'") from None
    from fewnode.formats.sources import load
    from fewnode.model.recognise import is_kept, untrained
    from fewnode.service.desk import Desk
    from fewnode.service.log import Log, usual_place

    if at.token is not None and (len(at.token) < 16 or not at.token.isascii() or not at.token.isalnum()):
        raise FewnodeError("--token: expected at least 16 letters and digits")
    threads.use()

    def opened() -> tuple[Estimator | None, Dataset]:
        """The dataset and, where somebody trained it, its model."""
        if source.run is None and source.method is None and source.data is not None:
            return None, load(source.data)
        return source.open(say)

    with server.bind(at.host, at.port) as listener:
        port, first = listener.getsockname()[1], [opened()]
        data = first[0][1]
        place = at.state or usual_place(source.run, source.data, data.name)
        with closing(Log(place)) as log:
            service = http.Service(access.rules(at.token or secrets.token_hex(24), at.host, port))
            host = f"[{at.host}]" if ":" in at.host else at.host
            typer.echo(f"http://{host}:{port}/?token={service.rules.token}")
            say.note(f"{data.name}: {data.graph}; loading. Classes and answers are kept in {place}")

            def made() -> tuple[Estimator, Dataset, bool]:
                """A model that nobody trained reads the whole network first; the service answers meanwhile."""
                model, data = first.pop() if first else opened()
                service.health.stage = f"embedding {data.graph.n:,} nodes"
                if model is None and not is_kept(data):
                    say.note("the first start reads the whole network, about 20 s for 60,000 nodes; it is kept")
                return model or untrained(data), data, source.run is not None

            server.run(service, listener, lambda: Desk(made, log), say.note)
