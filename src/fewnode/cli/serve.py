"""`fewnode serve`."""

from __future__ import annotations

import secrets
from collections.abc import Callable
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
    transductive: bool = option("Unless a request says otherwise.", False)


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
      fewnode serve --run demo/run

    Without a service: `fewnode predict` and `fewnode suggest`.
    """
    try:
        from fewnode.service.access import rules
        from fewnode.service.http import Service
        from fewnode.service.server import bind
        from fewnode.service.server import run as run_server
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("fewnode"):
            raise
        raise FewnodeError(f"serving needs the package {error.name}: pip install 'fewnode[serve]'") from None
    from fewnode.service.desk import Desk
    from fewnode.service.log import Log, usual_place
    from fewnode.service.moment import MODES

    token, host = at.token, at.host
    if token is not None and (len(token) < 16 or not token.isascii() or not token.isalnum()):
        raise FewnodeError("--token: expected at least 16 letters and digits")
    threads.use()
    with bind(host, at.port) as listener:
        port = listener.getsockname()[1]
        opened = _opened(source, say)
        place = at.state or usual_place(source.run, source.data, opened[0].name)
        with closing(Log(place)) as log:
            service = Service(rules(token or secrets.token_hex(24), host, port))
            shown = f"[{host}]" if ":" in host else host
            typer.echo(f"http://{shown}:{port}/?token={service.rules.token}")
            say.note(f"{opened[0].name}: {opened[0].graph}; loading. Classes and answers are kept in {place}")
            first = [opened]

            def load() -> tuple[Estimator, Dataset, bool]:
                dataset, model = first.pop() if first else _opened(source, say)
                service.health.stage = f"embedding {dataset.graph.n:,} nodes"
                return model(), dataset, source.run is not None

            run_server(service, listener, lambda: Desk(load, log, MODES[at.transductive]), say.note)


def _opened(source: Source, say: Quiet) -> tuple[Dataset, Callable[[], Estimator]]:
    """The dataset, and what makes the model: without a run that can take long, so the service answers meanwhile."""
    if source.run is not None or source.data is None or source.method is not None:
        model, dataset = source.open(say)
        return dataset, lambda: model
    from fewnode.formats.sources import load
    from fewnode.model.recognise import is_kept, untrained

    dataset = load(source.data)
    if not is_kept(dataset):
        say.note("the first start reads the whole network, about 20 s for 60,000 nodes; it is kept for the next one")
    return dataset, lambda: untrained(dataset)
