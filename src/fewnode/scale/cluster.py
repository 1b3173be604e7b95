"""More than one machine, by Ray (extra `cluster`): pieces of work go to whoever is free, and come back once each.

What a piece does is what one process does alone, so the results are the same. A worker that dies costs the piece that
it was at: Ray gives that to another. Nothing is kept on the cluster; files are on storage that all nodes share.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import socket
import subprocess  # nosec B404
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fewnode
from fewnode.errors import FewnodeError
from fewnode.machine import memory
from fewnode.machine.files import missing, remove_empty
from fewnode.represent.room import Pieces, Runner

PATIENCE = 28.0
"""Seconds within which a cluster and all of its nodes have answered, or one of them is said not to."""
RETRIES = 3
"""How often a piece of work is given to another worker after its worker has died."""
QUIET = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}


@dataclass(frozen=True)
class Lost:
    """What comes back of a piece of work whose every worker died."""


@dataclass(frozen=True)
class NodeReply:
    """What a node says of itself: its version of the package, if it has it, and whether it sees our file."""

    node: str
    version: str | None
    shares: bool


@contextmanager
def connected(address: str | None, folder: Path, say: Callable[[str], None] = lambda text: None) -> Iterator[Any]:
    """The cluster at `address`, if it answers, and if each node has this package and sees `folder`.

    Without an address: that of RAY_ADDRESS, else a cluster that runs on this machine, else a new one here, which ends
    with us. `say` is told which it is.
    """
    if importlib.util.find_spec("ray") is None:
        raise FewnodeError("--backend ray needs Ray: pip install 'fewnode[cluster]'; --backend local runs without it")
    until = time.monotonic() + PATIENCE
    source = "--address" if address else "RAY_ADDRESS"
    address = address or os.environ.get("RAY_ADDRESS") or None
    if address not in (None, "auto", "local"):
        _knock(address, source)
    elif address != "local" and _answers("auto"):
        address, source = "auto", "running on this machine"
    elif address == "auto":
        raise FewnodeError(f"{source} auto: no Ray cluster runs on this machine; start one with `ray start --head`")
    else:
        address = "local"
    os.environ.update({key: value for key, value in QUIET.items() if key not in os.environ})
    import ray

    dashboard = None if address != "local" else False
    ray.init(address=address, include_dashboard=dashboard, log_to_driver=False, logging_level=logging.ERROR)
    try:
        at = ray.get_runtime_context().gcs_address
        say(f"Ray: a new cluster on this machine ({at})" if address == "local" else f"Ray: cluster {at} ({source})")
        judge(_look_around(ray, folder, until), folder)
        yield ray
    finally:
        ray.shutdown()


def _knock(address: str, source: str) -> None:
    """Refuse an address where no cluster answers: left to itself, Ray would wait for it without an end."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        raise FewnodeError(f"{source} {address}: expected HOST:PORT, such as 10.0.0.1:6379")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
        there = _answers(address)
    except (OSError, OverflowError):
        there = False
    if not there:
        raise FewnodeError(f"{source} {address}: no Ray cluster answers there; start one with `ray start --head`")


def _answers(address: str) -> bool:
    """Whether a cluster is there and well; `auto` is any that runs on this machine."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        asked = subprocess.run(command, timeout=0.7 * PATIENCE, capture_output=True)  # noqa: S603 # nosec B603
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0


def _look_around(ray: Any, folder: Path, until: float) -> list[NodeReply]:
    """Ask every node, until then. The function carries itself: a node without this package can still answer."""
    made = missing(folder)
    folder.mkdir(parents=True, exist_ok=True)
    token = folder.resolve() / f".shared-{uuid.uuid4().hex}"
    token.touch()

    def look(path: str) -> tuple[str | None, bool]:
        import os

        try:
            import fewnode

            version = fewnode.__version__
        except ImportError:
            version = None
        return version, os.path.exists(path)

    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    asked = {
        node: ray.remote(look)
        .options(num_cpus=0, max_retries=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False))
        .remote(str(token))
        for node in nodes
    }
    found, until = [], max(until, time.monotonic() + 0.3 * PATIENCE)  # a slow start is no reason to ask in haste
    try:
        for node, reference in asked.items():
            try:
                found.append(NodeReply(nodes[node], *ray.get(reference, timeout=max(0.1, until - time.monotonic()))))
            except ray.exceptions.RayError:  # it took too long, or the cluster has given the node up by now
                raise FewnodeError(f"node {nodes[node]} of the cluster does not answer") from None
    finally:
        token.unlink(missing_ok=True)
        remove_empty(made)
    return found


def judge(replies: Sequence[NodeReply], folder: Path) -> None:
    """Refuse a cluster with a node that would fail later, or worse, work differently."""
    ours = fewnode.__version__
    if not replies:
        raise FewnodeError("the cluster has no node that is alive")
    for reply in replies:
        if reply.version is None:
            raise FewnodeError(f"node {reply.node} has no fewnode; install version {ours} there")
        if reply.version != ours:
            raise FewnodeError(f"node {reply.node} has fewnode {reply.version}, here it is {ours}; install the same")
        if not reply.shares:
            raise FewnodeError(f"node {reply.node} does not see {folder}; it must be on storage that all nodes share")


def each(
    ray: Any, function: Callable[..., Any], pieces: Mapping[Any, tuple[Any, ...]], workers: int
) -> Iterator[tuple[Any, Any]]:
    """(key, result) of `function(*piece)` for each piece, as they come; at most `workers` at a time.

    What goes wrong in a piece is raised here. One whose worker dies again and again comes back as `Lost`.
    """
    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(function)
    waiting = list(pieces.items())[::-1]
    running: dict[Any, Any] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                key, piece = waiting.pop()
                running[remote.remote(*piece)] = key
            ready, _ = ray.wait(list(running), timeout=5)
            if not ready:
                _check_alive(ray)
            for reference in ready:
                key = running.pop(reference)
                yield key, _result(ray, reference)
    finally:
        for reference in running:
            with suppress(Exception):
                ray.cancel(reference, force=True)


def _result(ray: Any, reference: Any) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise _original(error) from None
    except ray.exceptions.RayError:  # its worker, or the node, has died once more than Ray tries
        return Lost()


def _check_alive(ray: Any) -> None:
    host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError:
        raise FewnodeError(f"the cluster at {host}:{port} is gone; --resume continues on another") from None


def _original(error: Any) -> Exception:
    cause = error.cause
    return cause if isinstance(cause, FewnodeError | OSError | MemoryError) else error


# --- blocks -------------------------------------------------------------------------------------------------------


def block_runner(ray: Any, workers: int, limit: int | None) -> Runner:
    """Files made by the workers of a cluster, each within `limit` bytes."""

    def run(make: Callable[..., None], pieces: Pieces, done: Callable[[], None]) -> None:
        jobs = {path: (make, path, arguments, limit) for path, arguments in pieces.items()}
        for path, result in each(ray, _make, jobs, workers):
            if isinstance(result, Lost):
                raise FewnodeError(f"block {path.name} has killed {RETRIES + 1} workers; --resume tries again")
            done()

    return run


def _make(make: Callable[..., None], path: Path, arguments: tuple[Any, ...], limit: int | None) -> None:
    memory.keep_within(limit)
    make(path, *arguments)
    memory.keep()
