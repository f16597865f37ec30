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

from .dummies import HeldFences
from .harness import NOWHERE
from .test_parts import Overflowing, _message, _spec

THREADS = 2
WAITING = 2 * THREADS * TURN_EVENTS


async def _holding() -> BatchRunner:
    """Return a runner that holds back what one tenant may have at once, by its quota."""
    stage = Overflowing()
    stage.quota = lambda _tenant: Quota(100_000, 1)  # type: ignore[method-assign]
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
        runner._out.append([_Item(runner.generation, _message(0))])
    going_on = asyncio.ensure_future(runner._go_on())
    await asyncio.sleep(0.05)
    meanwhile = len(runner._queue)
    for _ in range(20):
        runner._queue.clear()
        runner._room.set()
        runner._out.clear()
        runner._handed_on.set()
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

    assert asyncio.run(scene()) == (1, 0)


def test_what_waited_goes_on_at_once_where_nobody_else_is_there_a_turn_a_thread() -> None:
    """Events of one turn share a commit of each stage, and whoever comes meanwhile goes before the next one."""

    async def scene() -> tuple[int, int]:
        return await _queued(await _holding(), busy=False)

    assert asyncio.run(scene()) == (THREADS * TURN_EVENTS, 0)


def test_what_waits_of_a_tenant_without_a_quota_goes_on_as_fast_as_the_stage_can() -> None:
    """An operator took the quota away: turns would keep a thread idle and the tenant waiting."""

    async def scene() -> tuple[int, int]:
        runner = await _holding()
        runner.stage.quota = lambda _tenant: None
        return await _queued(runner, busy=False)

    assert asyncio.run(scene()) == (WAITING, 0)


def test_a_stage_that_never_rests_holds_up_what_waited_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant over its quota has a right to its quota, however busy its neighbours keep the stage."""
    monkeypatch.setattr(batching, "PATIENCE_S", 0.01)

    async def scene() -> int:
        runner = await _holding()
        return (await _queued(runner, busy=True))[0]

    assert asyncio.run(scene()) > 1
