"""All nodes embedded again in the background, where too much has changed since that was done last."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from fewnode.serve.online import OnlineNetwork
from fewnode.serve.state import State

LOG = logging.getLogger("fewnode.serve")
DRIFT_BOUND = 0.1
"""The mean share of a node's neighbourhood that may have changed before all nodes are embedded again."""


class BackgroundRefresh:
    """At most one thread that embeds all nodes; meanwhile the service goes on with what it has."""

    def __init__(
        self,
        embed: Callable[[State], OnlineNetwork],
        catch_up: Callable[[OnlineNetwork], OnlineNetwork],
        swap: Callable[[OnlineNetwork], None],
        bound: float,
    ) -> None:
        """`embed` makes the network of a state, `catch_up` brings it to the present one, `swap` goes on with it."""
        self._embed, self._catch_up, self._swap, self.bound = embed, catch_up, swap, bound
        self.changing = threading.RLock()
        """Held by whoever changes what the service answers by."""
        self.done = 0
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def prepare(self, online: OnlineNetwork) -> None:
        """Make what rows of new nodes need, so that the first change does not wait for it."""
        self._start(online.settle)

    def look(self, online: OnlineNetwork, state: State) -> None:
        """Begin with the network of this state if its drift has passed the bound, unless it was begun already."""
        if online.drift > self.bound and not self.running:
            self._start(lambda: self._again(state))

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the thread, if there is one; whether it has ended."""
        if self._thread is not None:
            self._thread.join(seconds)
        return not self.running

    def told(self, online: OnlineNetwork) -> dict[str, Any]:
        """For people: how far the network has drifted, and what is done about it."""
        changed = 0 if online.overlay is None else len(online.overlay.nodes)
        return {
            "drift": round(online.drift, 6),
            "drift_bound": self.bound,
            "changed_rows": changed,
            "refreshing": self.running,
            "refreshed": self.done,
        }

    def _start(self, work: Callable[[], object]) -> None:
        self._thread = threading.Thread(target=self._run, args=(work,), name="refresh")
        self._thread.start()

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:
            # the service goes on with what it has; the next change tries again
            LOG.warning("not all nodes could be embedded again: %s", error)

    def _again(self, state: State) -> None:
        made = self._embed(state)
        made.settle()
        made = self._catch_up(made)  # most of what has changed since, while others may go on changing
        with self.changing:
            self._swap(self._catch_up(made))
            self.done += 1
