"""`fewnode serve`."""

from __future__ import annotations

import secrets
from collections.abc import Callable
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

    if token is not None and (len(token) < 16 or not token.isascii() or not token.isalnum()):
        raise FewnodeError("--token: expected at least 16 letters and digits")
    set_threads(threads)
    with bind(host, port) as listener:
        port = listener.getsockname()[1]
        opened = _opened(run, data, method, quiet)
        place = state or usual_place(run, data, opened[0].name)
        with closing(Log(place)) as log:
            service = Service(rules(token or secrets.token_hex(24), host, port))
            shown = f"[{host}]" if ":" in host else host
            typer.echo(f"http://{shown}:{port}/?token={service.rules.token}")
            note(f"{opened[0].name}: {opened[0].graph}; loading. Classes and answers are kept in {place}", quiet)
            first = [opened]

            def load() -> tuple[Estimator, Dataset, bool]:
                dataset, model = first.pop() if first else _opened(run, data, method, quiet)
                service.health.stage = f"embedding {dataset.graph.n:,} nodes"
                return model(), dataset, run is not None

            run_server(service, listener, lambda: Desk(load, log), lambda what: note(what, quiet))


def _opened(
    run: Path | None, data: str | None, method: str | None, quiet: bool
) -> tuple[Dataset, Callable[[], Estimator]]:
    """The dataset, and what makes the model: without a run that can take long, so the service answers meanwhile."""
    if run is not None or data is None or method is not None:
        model, dataset = open_model(run, data, method, quiet)
        return dataset, lambda: model
    from fewnode.formats.sources import load
    from fewnode.model.recognise import is_kept, untrained

    dataset = load(data)
    if not is_kept(dataset):
        note("the first start reads the whole network, about 20 s for 60,000 nodes; it is kept for the next one", quiet)
    return dataset, lambda: untrained(dataset)
