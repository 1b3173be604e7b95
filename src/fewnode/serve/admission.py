"""Who is served when: short work in turn on the event loop, long work in one thread, a bounded queue before each."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Busy(Exception):
    """The queue is full: come again in a moment."""


class Admission:
    """Between two turns the event loop looks for news, so a request that finds the queue full learns that at once.

    A queue may grow to `burst` until somebody has to be refused. Then each place in it may be only time that everybody
    waits: it has no more than `short`, the one being served among them, as long as of those who ask within `calm`
    seconds more than half are refused. After a pause of the machine fewer are, and all is well again.
    """

    def __init__(self, short: int = 1, burst: int = 64, long: int = 8, calm: float = 0.25) -> None:
        self.short, self.burst, self.long, self.calm = short, burst, long, calm
        self._overload, self._since = False, 0.0
        self._asked = self._refused = 0
        self.in_hand = self.in_thread = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._serving = False
        self._current: Turn | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="long")

    def _refuse(self) -> bool:
        now = time.monotonic()
        if self._overload and now - self._since >= self.calm:
            self._overload = 2 * self._refused > self._asked
            self._since, self._asked, self._refused = now, 0, 0
        full = self.in_hand >= (self.short if self._overload else self.burst)
        if full and not self._overload:
            self._overload, self._since, self._asked, self._refused = True, now, 0, 0
        self._asked += 1
        self._refused += full
        return full

    async def turn(self) -> Turn:
        """Wait for a turn on the event loop; `Busy` if too many wait already."""
        if self._refuse():
            raise Busy
        self.in_hand += 1
        mine = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        if not self._serving:
            self._serving = True
            asyncio.get_running_loop().call_soon(self._next)
        try:
            await mine
        except BaseException:
            self.in_hand -= 1
            if mine.done() and not mine.cancelled():
                self._next()
            raise
        self._current = Turn(self)
        return self._current

    def _next(self) -> None:
        while self._waiting:
            first = self._waiting.popleft()
            if not first.done():
                first.set_result(None)
                return
        self._serving = False

    def _over(self) -> None:
        self.in_hand -= 1
        self._current = None
        asyncio.get_running_loop().call_soon(self._next)

    async def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do long work in the thread while others have their turns."""
        if self.in_thread >= self.long:
            raise Busy
        if self._current is not None:
            self._current.end()
        self.in_thread += 1
        loop, future = asyncio.get_running_loop(), self._thread.submit(work, *args, **kwargs)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._leave_thread))
        return await asyncio.wrap_future(future)

    def _leave_thread(self) -> None:
        """Work that nobody waits for any more still takes its place in the thread until it is done."""
        self.in_thread -= 1

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)


class Turn:
    """Ends once, however many times it is told to."""

    def __init__(self, admission: Admission) -> None:
        self._admission: Admission | None = admission

    def end(self) -> None:
        if self._admission is not None:
            admission, self._admission = self._admission, None
            admission._over()
