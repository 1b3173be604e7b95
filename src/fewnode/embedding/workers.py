"""Pieces of work for several processes: of this machine by joblib, or of a Ray cluster (extra `cluster`).

What a piece does is what one process does alone, so the results are the same. A worker that dies costs the piece that
it was at, which is then tried again. Nothing is kept on the cluster; files are on storage that all nodes share.
Ray is asked itself, and not as a backend of joblib: its pool of actors (Ray 2.60) breaks down on clusters that are
found by `auto`, binds pieces to workers in advance, and ends with the first worker that dies.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import socket
import subprocess  # nosec B404
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import fewnode
from fewnode._system import memory
from fewnode.errors import FewnodeError

Key = TypeVar("Key", bound=Hashable)
Report = Callable[[str, int, int], None]
"""Is told what is made, how much of it there is, and of how much."""
LOST: Final = object()
"""What comes back of a piece of work whose worker died although it was alone."""
RETRIES = 3
"""How often a piece of work is given to another worker of a cluster after its worker has died."""
PATIENCE = 28.0
"""Seconds that a cluster, and then its nodes, have to answer."""
QUIET = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}


@dataclass(frozen=True, eq=False)
class Workers:
    """So many processes that work at the same time, each within `limit` bytes; a single one is this process itself."""

    count: int = 1
    limit: int | None = None
    report: Report = lambda what, done, total: None
    ray: Any = None
    """The module, connected to a cluster whose processes they are."""

    @property
    def alone(self) -> bool:
        """Whether all is done in this process."""
        return self.count == 1 and self.ray is None

    def each(self, function: Callable[..., Any], pieces: Mapping[Key, tuple[Any, ...]]) -> Iterator[tuple[Key, Any]]:
        """(key, result) of `function(*arguments)` for each piece, as they come; an error in a piece is raised here.

        A piece whose worker dies again although it is alone, or again and again on a cluster, comes back as `LOST`.
        """
        if self.alone:
            yield from ((key, function(*arguments)) for key, arguments in pieces.items())
        elif self.ray is not None:
            yield from self._on_cluster(function, pieces)
        else:
            yield from self._here(function, pieces)

    def _here(self, function: Callable[..., Any], pieces: Mapping[Key, tuple[Any, ...]]) -> Iterator[tuple[Key, Any]]:
        """When a process dies, joblib ends all: those pieces that may have been at work are then tried one by one."""
        from joblib.externals.loky.process_executor import TerminatedWorkerError  # a quarter of a second to import

        left = dict(pieces)
        while left:
            try:
                for key, result in self._in_processes(function, left):
                    del left[key]
                    yield key, result
            except TerminatedWorkerError:
                for key in list(left)[: self.count]:
                    try:
                        yield from self._in_processes(function, {key: left.pop(key)})
                    except TerminatedWorkerError:
                        yield key, LOST

    def _in_processes(
        self, function: Callable[..., Any], pieces: Mapping[Key, tuple[Any, ...]]
    ) -> Iterator[tuple[Key, Any]]:
        import joblib

        work = [joblib.delayed(_work)(key, self.limit, function, arguments) for key, arguments in pieces.items()]
        with joblib.parallel_config("loky", n_jobs=self.count, inner_max_num_threads=1):
            pool = joblib.Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=self.count)
            yield from pool(work)

    def _on_cluster(
        self, function: Callable[..., Any], pieces: Mapping[Key, tuple[Any, ...]]
    ) -> Iterator[tuple[Key, Any]]:
        """Ray gives the piece of a worker that died to another one, and finds nodes that are free."""
        remote = self.ray.remote(num_cpus=1, max_retries=RETRIES)(_work)
        waiting, running = list(pieces.items())[::-1], dict[Any, Key]()
        try:
            while waiting or running:
                while waiting and len(running) < self.count:
                    key, arguments = waiting.pop()
                    running[remote.remote(key, self.limit, function, arguments)] = key
                for reference in self.ray.wait(list(running))[0]:
                    key = running.pop(reference)
                    yield key, self._result(reference)
        finally:
            for reference in running:
                with suppress(Exception):
                    self.ray.cancel(reference, force=True)

    def _result(self, reference: Any) -> Any:
        try:
            return self.ray.get(reference)[1]
        except self.ray.exceptions.RayTaskError as error:
            raise (error.cause if isinstance(error.cause, FewnodeError | OSError | MemoryError) else error) from None
        except self.ray.exceptions.RayError:  # its worker, or the node, has died once more than Ray tries
            return LOST

    def make(self, what: str, function: Callable[..., None], files: Mapping[Path, tuple[Any, ...]]) -> None:
        """Have `function(path, *arguments)` write each file that is missing. A file is there whole or not at all."""
        lacking = {path: (path, *arguments) for path, arguments in files.items() if not path.exists()}
        done = len(files) - len(lacking)
        self.report(what, done, len(files))
        for path, result in self.each(function, lacking):
            if result is LOST:
                raise FewnodeError(f"{path}: it kills every worker that makes it; what else was made is kept")
            done += 1
            self.report(what, done, len(files))


HERE = Workers()
"""This process alone."""


def _work(key: Key, limit: int | None, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Key, Any]:
    memory.keep_within(limit)
    return key, function(*arguments)


# --- a cluster that can be trusted with work --------------------------------------------------------------------------


@contextmanager
def connected(address: str | None, folder: Path, say: Callable[[str], None] = lambda text: None) -> Iterator[Any]:
    """Ray, connected to the cluster at `address`, if that answers and each node can work on what is in `folder`.

    Without an address: that of RAY_ADDRESS, else a cluster that runs on this machine, else a new one here, which ends
    with us. `say` is told which it is.
    """
    if importlib.util.find_spec("ray") is None:
        raise FewnodeError("a cluster needs Ray: pip install 'fewnode[cluster]'; the backend local runs without it")
    source = "`address`" if address else "RAY_ADDRESS"
    address = address or os.environ.get("RAY_ADDRESS") or ""
    start = "start one with `ray start --head`"
    if address not in ("", "auto", "local"):
        if not re.fullmatch(r"[^/]+:[0-9]+", address):
            raise FewnodeError(f"{source} {address}: expected HOST:PORT, such as 10.0.0.1:6379")
        if not _answers(address):  # left to itself, Ray would wait for it without an end
            raise FewnodeError(f"{source} {address}: no Ray cluster answers there; {start}")
    elif address != "local" and _answers("auto"):
        address, source = "auto", "running on this machine"
    elif address == "auto":
        raise FewnodeError(f"{source} auto: no Ray cluster runs on this machine; {start}")
    os.environ.update({key: value for key, value in QUIET.items() if key not in os.environ})
    import ray

    new = address in ("", "local")
    dashboard = False if new else None
    ray.init(address or "local", include_dashboard=dashboard, log_to_driver=False, logging_level=logging.ERROR)
    try:
        at = ray.get_runtime_context().gcs_address
        say(f"Ray: a new cluster on this machine ({at})" if new else f"Ray: cluster {at} ({source})")
        _need_able_nodes(ray, folder)
        yield ray
    finally:
        ray.shutdown()


def _answers(address: str) -> bool:
    """Whether a cluster is there and well; `auto` is any that runs on this machine."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        if address != "auto":  # where nobody listens it is known at once
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), timeout=5).close()
        asked = subprocess.run(command, timeout=0.7 * PATIENCE, capture_output=True)  # noqa: S603 # nosec B603
    except (OSError, OverflowError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


def _need_able_nodes(ray: Any, folder: Path) -> None:
    """Refuse a cluster with a node that would fail later, or worse, work differently.

    The function that every node is asked carries itself: a node without this package can still answer.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    def look(path: str) -> tuple[str, bool]:
        import os

        try:
            import fewnode

            version = fewnode.__version__
        except ImportError:
            version = "none"
        return version, os.path.exists(path)

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(prefix=".shared-", dir=folder.resolve()) as token:
        asked = {}
        for node in (node for node in ray.nodes() if node["Alive"]):
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            remote = ray.remote(look).options(num_cpus=0, max_retries=0, scheduling_strategy=there)
            asked[node["NodeManagerAddress"]] = remote.remote(token.name)
        until = time.monotonic() + PATIENCE
        for node, answer in asked.items():
            try:
                version, shares = ray.get(answer, timeout=max(0.1, until - time.monotonic()))
            except ray.exceptions.RayError:  # it took too long, or the cluster has given the node up by now
                raise FewnodeError(f"node {node} of the cluster does not answer") from None
            if version != (ours := fewnode.__version__):
                raise FewnodeError(f"node {node} has fewnode {version}, here it is {ours}; install that there")
            if not shares:
                raise FewnodeError(f"node {node} does not see {folder}; it must be on storage that all nodes share")
