"""Options and work that go beyond one machine's memory, or beyond one machine: blocks, and who makes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

import typer

from fewnode.cli.output import note

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fewnode.represent.room import Runner


class Backend(StrEnum):
    local = "local"
    ray = "ray"


Memory = typer.Option(None, "--memory", help="Stay within so much, such as 6G: everything is read from disk in blocks.")
BackendOption = typer.Option(Backend.local, "--backend", help="Where the work is done: local, or ray (a cluster).")
Address = typer.Option(
    None, "--address", help="Of the Ray cluster: HOST:PORT; default: RAY_ADDRESS, one running here, or a new one."
)
Workers = typer.Option(1, "--workers", min=1, help="With --backend ray: how many work at the same time.")
Resume = typer.Option(False, "--resume", help="Go on with the blocks that an unfinished run has left.")


def keep_memory(memory: str | None) -> int | None:
    """The limit that the user set, kept from now on."""
    from fewnode.machine.memory import keep_within, parse_size

    limit = parse_size(memory) if memory else None
    keep_within(limit)
    return limit


@contextmanager
def block_bar(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Blocks done of all: a line for each tenth of them."""
    said: set[tuple[str, int]] = set()

    def report(what: str, done: int, total: int) -> None:
        tenth = 10 * done // max(1, total)
        if (what, tenth) not in said:
            said.add((what, tenth))
            note(f"{what}: {done}/{total} blocks", quiet)

    yield report


@contextmanager
def block_runner(
    backend: Backend, address: str | None, workers: int, limit: int | None, folder: Path, quiet: bool
) -> Iterator[Runner]:
    """Who makes blocks: this process, or the cluster, if each of its nodes sees the folder."""
    if backend is Backend.local:
        from fewnode.represent.room import here

        yield here
        return
    from fewnode.scale import cluster

    with cluster.connected(address, folder, partial(note, quiet=quiet)) as ray:
        yield cluster.block_runner(ray, workers, limit)


def name_unused(backend: Backend, address: str | None, workers: int, quiet: bool) -> None:
    """Say which options of a cluster are not used without one."""
    given = [name for name, value in (("--address", address is not None), ("--workers", workers > 1)) if value]
    if backend is Backend.local and given:
        note(f"{' and '.join(given)} not used: for --backend ray", quiet)
