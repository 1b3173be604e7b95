"""Options and work that go beyond one machine's memory, or beyond one machine: blocks, and who makes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fewnode.cli.output import Quiet
from fewnode.options import Options, option

if TYPE_CHECKING:
    from fewnode.embedding.workers import Workers


class Cluster(Options):
    """Who does the work: processes here, or those of a cluster."""

    backend: Literal["local", "ray"] = option("Where the work is done: local, or ray (a cluster).", "local", rare=True)
    address: str | None = option(
        "Of the Ray cluster: HOST:PORT; default: RAY_ADDRESS, one running here, or a new one.", rare=True
    )
    workers: int = option("Processes that work at the same time.", 1, rare=True, ge=1)

    @property
    def several(self) -> bool:
        """Whether more than this process works."""
        return self.backend == "ray" or self.workers > 1

    def name_unused(self, say: Quiet) -> None:
        if self.backend == "local" and self.address is not None:
            say.note("--address not used: for --backend ray")


class Blocks(Cluster):
    """How much memory there is, and who makes blocks if they have to fit into it."""

    memory: str | None = option("Stay within so much, such as 6G: everything is read from disk in blocks.", rare=True)

    def limit(self) -> int | None:
        """The limit in bytes, kept from now on."""
        return keep_memory(self.memory)

    @contextmanager
    def open(self, folder: Path, say: Quiet) -> Iterator[Workers]:
        """Workers: processes here, or of a cluster, if each of its nodes sees the folder."""
        from fewnode.embedding.workers import Workers, connected

        limit = self.limit()

        if self.backend == "local":
            yield Workers(self.workers, limit, say.progress())
        else:
            with connected(self.address, folder, say.note) as ray:
                yield Workers(self.workers, limit, say.progress(), ray)


def keep_memory(memory: str | None) -> int | None:
    """The limit that the user set, kept from now on."""
    from fewnode._system.memory import keep_within, parse_size

    limit = parse_size(memory) if memory else None
    keep_within(limit)
    return limit
