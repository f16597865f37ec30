"""When what waited for its tenant's quota goes on: behind those who are within theirs, and not behind them for ever."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from memsluice.runtimes.kafka import batching
from memsluice.runtimes.kafka.batching import BatchRunner, _Item
from memsluice.runtimes.kafka.faults import Faults
from memsluice.runtimes.kafka.overflow import Found
from memsluice.runtimes.kafka.spec import Tuning
from memsluice.stages.quota import TURN_EVENTS, Quota

from . import virtual_time
from .dummies import HeldFences
from .harness import NOWHERE
from .test_parts import Overflowing, _message, _spec

THREADS = 2
WAITING = 2 * THREADS * TURN_EVENTS


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no test end its waiting by the clock but those that say so."""
    monkeypatch.setattr(batching, "PATIENCE_S", 1_000.0)


async def _holding(per_s: int = 2**16) -> BatchRunner:
    """Return a runner that holds back events of one tenant, of which its quota gives so many a second: a power of two,
    by which a turn's events take its time to the last bit."""
    stage = Overflowing()
    stage.quota = lambda _tenant: Quota(per_s, 1)  # type: ignore[method-assign]
    spec = replace(
        _spec(),
        inputs=("a", "o"),
        outputs=("c", "o"),
        stage=stage,
        overflow="o",
        tuning=Tuning(threads=THREADS),
    )
    runner = BatchRunner(spec, stage, Faults(), None, NOWHERE)
    HeldFences(runner)
    runner.lanes._make_rows = lambda _partition: None
    await runner.begin({0})
    assert runner.overflow is not None
    runner.overflow._found(0, Found(Counter({"acme": WAITING}), None))
    for offset in range(WAITING):
        runner.overflow.hold(runner.generation, _message(100 + offset))
    return runner


async def _queued(runner: BatchRunner, busy: bool) -> tuple[int, int]:
    """Have a batch out and an event queued, or neither; return what is queued meanwhile, and what waits in the end."""
    if busy:
        await runner._queue_up(runner.generation, _message(1), lambda _message: None)
        runner._at_work.append([_Item(runner.generation, _message(0))])
    going_on = asyncio.ensure_future(runner._go_on())
    await asyncio.sleep(0.05)
    meanwhile = len(runner._queue)
    for _ in range(20):
        runner._queue.clear()
        runner._room.set()
        runner._at_work.clear()
        runner._returned_one.set()
        await asyncio.sleep(0.01)
    going_on.cancel()
    assert runner.overflow is not None
    left = runner.overflow.waiting()[0]
    await runner.stop()
    return meanwhile, left


def test_what_waited_goes_behind_those_who_are_within_their_quota() -> None:
    """In one batch with it, or behind it in both threads, a neighbour's event would wait for the encoder to read it."""

    async def scene() -> tuple[int, int]:
        return await _queued(await _holding(), busy=True)

    assert virtual_time.run(scene()) == (1, 0)


def test_what_waited_goes_on_at_once_where_nobody_else_is_there_a_turn_a_thread() -> None:
    """Events of one turn share a commit of each stage, and whoever comes meanwhile goes before the next one."""

    async def scene() -> tuple[int, int]:
        return await _queued(await _holding(), busy=False)

    assert virtual_time.run(scene()) == (THREADS * TURN_EVENTS, 0)


def test_what_waits_of_a_tenant_without_a_quota_goes_on_as_fast_as_the_stage_can() -> None:
    """An operator took the quota away: turns would keep a thread idle and the tenant waiting."""

    async def scene() -> tuple[int, int]:
        runner = await _holding()
        runner.stage.quota = lambda _tenant: None
        return await _queued(runner, busy=False)

    assert virtual_time.run(scene()) == (WAITING, 0)


def test_a_stage_that_is_never_without_others_gives_each_tenant_its_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the neighbours keep it: what is due when patience is over goes on, of each partition, and not one
    turn of one of them."""
    monkeypatch.setattr(batching, "PATIENCE_S", 0.01)

    async def scene() -> dict[int, int]:
        runner = await _holding()
        overflow = runner.overflow
        assert overflow is not None
        overflow._found(1, Found(Counter({"acme": WAITING}), None))
        for offset in range(WAITING):
            overflow.hold(runner.generation, _message(100 + offset, partition=1))
        await runner._queue_up(runner.generation, _message(1), lambda _message: None)
        going_on = asyncio.ensure_future(runner._go_on())
        while overflow.due() != (None, None):  # whoever waits for ever hangs here
            await asyncio.sleep(0.01)
        going_on.cancel()
        await runner.stop()
        return overflow.waiting()

    assert virtual_time.run(scene()) == {0: 0, 1: 0}


def test_a_turn_takes_what_its_quota_gives_and_no_more_where_patience_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience is about whose turn it is, not about how much."""
    monkeypatch.setattr(batching, "PATIENCE_S", 0.01)

    async def scene() -> int:
        runner = await _holding(per_s=1)
        await runner._queue_up(runner.generation, _message(1), lambda _message: None)
        going_on = asyncio.ensure_future(runner._go_on())
        await asyncio.sleep(0.1)
        going_on.cancel()
        await runner.stop()
        return len(runner._queue) - 1

    assert virtual_time.run(scene()) == 1
