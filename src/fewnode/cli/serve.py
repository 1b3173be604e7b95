"""`fewnode serve`."""

from __future__ import annotations

import secrets
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fewnode.cli.output import Quiet, Threads, note, set_threads
from fewnode.cli.predict import OtherData, OwnMethod, Run, open_model
from fewnode.errors import FewnodeError

if TYPE_CHECKING:
    from fewnode.dataset import Dataset
    from fewnode.model.estimator import Estimator


def serve(
    run: Path = Run,
    port: int = typer.Option(8000, "--port", min=0, max=65535, help="0: any that is free."),
    host: str = typer.Option("127.0.0.1", "--host", help="Address to listen on; default: this machine only."),
    token: str = typer.Option(None, "--token", envvar="FEWNODE_TOKEN", help="What askers must know; default: random."),
    state: Path = typer.Option(
        None, "--state", help="Where changes are kept; default: in the run, or beside the dataset."
    ),
    transductive: bool = typer.Option(False, "--transductive", help="Unless a request says otherwise."),
    data: str = OtherData,
    method: str = OwnMethod,
    threads: int = Threads,
    quiet: bool = Quiet,
) -> None:
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
    from fewnode.service.moment import MODES

    if token is not None and (len(token) < 16 or not token.isascii() or not token.isalnum()):
        raise FewnodeError("--token: expected at least 16 letters and digits")
    set_threads(threads)

    def opened() -> tuple[Estimator | None, Dataset]:
        """The dataset and, where it is there or made at once, its model."""
        if run is None and method is None and data is not None:
            return None, load(data)
        return open_model(run, data, method, quiet)

    with server.bind(host, port) as listener:
        port, first = listener.getsockname()[1], [opened()]
        dataset = first[0][1]
        place = state or usual_place(run, data, dataset.name)
        with closing(Log(place)) as log:
            service = http.Service(access.rules(token or secrets.token_hex(24), host, port))
            typer.echo(f"http://{f'[{host}]' if ':' in host else host}:{port}/?token={service.rules.token}")
            note(f"{dataset.name}: {dataset.graph}; loading. Classes and answers are kept in {place}", quiet)

            def ready() -> tuple[Estimator, Dataset, bool]:
                """A model that nobody trained reads the whole network, and the service answers meanwhile."""
                model, data = first.pop() if first else opened()
                service.health.stage = f"embedding {data.graph.n:,} nodes"
                if model is None and not is_kept(data):
                    note("the first start reads the whole network, about 20 s for 60,000 nodes; it is kept", quiet)
                return model or untrained(data), data, run is not None

            server.run(service, listener, lambda: Desk(ready, log, MODES[transductive]), lambda what: note(what, quiet))
