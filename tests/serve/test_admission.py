"""Who is served when, without a service: turns, the thread for long work, and full queues."""

from __future__ import annotations

import asyncio
import threading
from unittest.mock import Mock

import pytest

from fewnode.serve import admission as admission_module
from fewnode.serve.admission import Admission, Busy


def test_who_gives_up_waiting_loses_nobody_elses_turn() -> None:
    """One is served, two wait; the first of them goes away, before and after it was called."""

    async def queue(called: bool) -> tuple[int, bool]:
        admission = Admission()
        first = await admission.turn()
        impatient, patient = (asyncio.create_task(admission.turn()) for _ in range(2))
        await asyncio.sleep(0)
        if called:
            first.end()
            await asyncio.sleep(0)  # the next one is called, and has not yet woken up
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        if not called:
            first.end()
        turn = await asyncio.wait_for(patient, 60)
        turn.end()
        turn.end()
        await asyncio.sleep(0.01)
        admission.close()
        return admission.in_hand, admission._serving

    assert asyncio.run(queue(called=False)) == (0, False)
    assert asyncio.run(queue(called=True)) == (0, False)


def test_a_full_queue_refuses_at_once() -> None:
    async def crowd() -> None:
        admission = Admission(burst=1)
        turn = await admission.turn()
        with pytest.raises(Busy):
            await admission.turn()
        turn.end()
        admission.close()

    asyncio.run(crowd())


def test_a_queue_that_overflowed_is_short_until_few_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Mock()
    monkeypatch.setattr(admission_module, "time", clock)
    admission = Admission(short=1, burst=3, calm=0.25)
    for now, waiting, refused_ in (
        (0.1, 2, False),
        (7.0, 2, False),
        (7.0, 3, True),  # from now on there is one place
        (7.1, 1, True),
        (7.24, 0, False),
        (7.25, 1, True),  # 2 of 3 were refused: it stays so
        (7.25, 0, False),
        (7.49, 1, True),
        (7.5, 1, True),  # 2 of 3 again
        (7.5, 0, False),
        (7.75, 2, False),  # 1 of 2: all is well again
        (7.75, 3, True),
        (7.76, 0, False),
        (7.99, 1, True),
        (7.99, 0, False),
        (8.0, 2, False),  # 2 of 4, who were counted anew
    ):
        clock.monotonic.return_value = now
        admission.in_hand = waiting
        assert admission._refuse() == refused_, (now, waiting)
    admission.close()


def test_how_many_may_wait_unless_told_otherwise() -> None:
    admission = Admission()
    assert (admission.short, admission.burst, admission.long, admission.calm) == (1, 64, 8, 0.25)
    assert (admission.in_hand, admission.in_thread) == (0, 0)
    admission.close()


def test_turns_come_in_the_order_of_asking() -> None:
    async def one(admission: Admission, name: str, served: list[str]) -> None:
        turn = await admission.turn()
        served.append(f"{name} of {admission.in_hand}")
        turn.end()

    async def queue() -> list[str]:
        admission, served = Admission(), list[str]()
        await asyncio.gather(*(one(admission, name, served) for name in "abc"))
        await asyncio.sleep(0)
        await one(admission, "d", served)
        admission.close()
        return served

    assert asyncio.run(queue()) == ["a of 3", "b of 2", "c of 1", "d of 1"]


def test_one_is_served_at_a_time_whoever_leaves() -> None:
    async def queue() -> None:
        admission = Admission()
        first = await admission.turn()
        impatient, patient = (asyncio.create_task(admission.turn()) for _ in range(2))
        await asyncio.sleep(0.01)
        impatient.cancel()
        await asyncio.sleep(0.01)
        assert impatient.cancelled()
        assert not patient.done()
        first.end()
        (await asyncio.wait_for(patient, 60)).end()
        admission.close()

    asyncio.run(queue())


def test_long_work_is_done_aside_while_others_have_their_turns() -> None:
    def work(start: threading.Event, *, name: str) -> str:
        assert start.wait(60)
        return f"{name} in {threading.current_thread().name.split('_')[0]}"

    async def queue() -> None:
        admission, start = Admission(long=2), threading.Event()
        turn = await admission.turn()
        first = asyncio.create_task(admission.aside(work, start, name="a"))
        await asyncio.sleep(0)
        assert (admission.in_hand, admission.in_thread) == (0, 1)
        second = asyncio.create_task(admission.aside(work, start, name="b"))
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await admission.aside(work, start, name="c")
        (await asyncio.wait_for(admission.turn(), 60)).end()
        turn.end()
        assert (admission.in_hand, admission.in_thread) == (0, 2)
        start.set()
        assert [await first, await second] == ["a in long", "b in long"]
        assert admission.in_thread == 0
        admission.close()

    asyncio.run(queue())


class Slow:
    """Work that has begun, and goes on until it is told to end."""

    def __init__(self) -> None:
        self.begun, self.end, self.done = threading.Event(), threading.Event(), 0

    def __call__(self) -> None:
        self.begun.set()
        assert self.end.wait(60)
        self.done += 1


def test_work_that_nobody_waits_for_keeps_its_place_until_it_is_done() -> None:
    async def queue() -> None:
        admission, slow = Admission(long=1), Slow()
        left = asyncio.create_task(admission.aside(slow))
        await asyncio.to_thread(slow.begun.wait, 60)
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        with pytest.raises(Busy):
            await admission.aside(int)
        slow.end.set()
        async with asyncio.timeout(60):
            while admission.in_thread:
                await asyncio.sleep(0.001)
        assert await admission.aside(int) == 0
        admission.close()

    asyncio.run(queue())


def test_closing_ends_its_work_and_begins_no_other() -> None:
    async def queue() -> int:
        admission, slow = Admission(), Slow()
        tasks = [asyncio.create_task(admission.aside(slow)) for _ in range(2)]
        await asyncio.to_thread(slow.begun.wait, 60)
        threading.Timer(0.02, slow.end.set).start()
        admission.close()
        done = slow.done
        await asyncio.gather(*tasks, return_exceptions=True)
        return done

    assert asyncio.run(queue()) == 1
