"""Options and work that go beyond one machine's memory, or beyond one machine: blocks, and who makes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

import typer

from fewnode.cli.options import MORE
from fewnode.cli.output import note

if TYPE_CHECKING:
    from pathlib import Path

    from fewnode.embedding import workers as pools


class Backend(StrEnum):
    local = "local"
    ray = "ray"


Memory = typer.Option(
    None,
    "--memory",
    help="Stay within so much, such as 6G: everything is read from disk in blocks.",
    rich_help_panel=MORE,
)
BackendOption = typer.Option(
    Backend.local, "--backend", help="Where the work is done: local, or ray (a cluster).", rich_help_panel=MORE
)
Address = typer.Option(
    None,
    "--address",
    help="Of the Ray cluster: HOST:PORT; default: RAY_ADDRESS, one running here, or a new one.",
    rich_help_panel=MORE,
)
Workers = typer.Option(1, "--workers", min=1, help="Processes that work at the same time.", rich_help_panel=MORE)
Resume = typer.Option(
    False, "--resume", help="Go on with the blocks that an unfinished run has left.", rich_help_panel=MORE
)


def keep_memory(memory: str | None) -> int | None:
    """The limit that the user set, kept from now on."""
    from fewnode._system.memory import keep_within, parse_size

    limit = parse_size(memory) if memory else None
    keep_within(limit)
    return limit


@contextmanager
def working(
    backend: Backend, address: str | None, workers: int, limit: int | None, folder: Path, quiet: bool
) -> Iterator[pools.Workers]:
    """Who makes blocks: processes here, or of a cluster, if each of its nodes sees the folder."""
    from fewnode.embedding.workers import Workers, connected

    said: set[tuple[str, int]] = set()

    def report(what: str, done: int, total: int) -> None:
        tenth = 10 * done // max(1, total)
        if (what, tenth) not in said:
            said.add((what, tenth))
            note(f"{what}: {done}/{total} blocks", quiet)

    if backend is Backend.local:
        yield Workers(workers, limit, report)
    else:
        with connected(address, folder, partial(note, quiet=quiet)) as ray:
            yield Workers(workers, limit, report, ray)


def name_unused(backend: Backend, address: str | None, quiet: bool) -> None:
    """Say that the address of a cluster is not used without one."""
    if backend is Backend.local and address is not None:
        note("--address not used: for --backend ray", quiet)
