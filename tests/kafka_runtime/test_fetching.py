"""How fetches are answered: at the first record, or, in a flood, with what has gathered."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread

from memsluice.runtimes.kafka.batching import BatchRunner
from memsluice.runtimes.kafka.consumer_thread import FETCH_GATHER_BYTES
from memsluice.runtimes.kafka.faults import Faults
from memsluice.runtimes.kafka.overflow import FLOOD_S, HELD_MAX, Found, Overflow
from memsluice.stages.quota import Quota

from .fetching import INTAKE, OVERFLOW, Fetching, nothing, runner_of
from .harness import NOWHERE
from .test_parts import Overflowing, Relabelled, _message, _spec


def test_a_fetch_gathers_while_a_tenant_over_its_quota_sends_and_is_answered_at_once_again_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the client really asks for: a request for each event of a noisy tenant would be everybody's processors."""
    flood = iter((False, True, False))

    async def scene() -> list[tuple[int, int]]:
        fetching = Fetching(runner_of(fetch_gathers=lambda: next(flood)), INTAKE)
        asked = []
        for _ in range(3):
            await fetching.consumer._getmany({INTAKE}, 0.01)
            [request] = fetching.asks()
            asked.append((request._max_wait_ms, request._min_bytes))
        return asked

    monkeypatch.setattr(AIOKafkaConsumerThread, "_fetch_records", nothing)
    assert asyncio.run(scene()) == [(500, 1), (20, FETCH_GATHER_BYTES), (500, 1)]


def test_what_waits_of_a_tenant_keeps_no_request_for_the_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """aiokafka asks a broker for nothing while it has records that nobody takes: of an overflow of which enough is held
    back it has none, also where that became enough with what was fetched last."""
    held, comes = HELD_MAX - 1, 1
    overflow = SimpleNamespace(topic="o", room=lambda _partition: HELD_MAX - held)

    async def fetched(*_arguments: Any, **_options: Any) -> dict[Any, Any]:
        return {OVERFLOW: [SimpleNamespace(offset=number) for number in range(comes)]}

    async def scene() -> list[set[str]]:
        nonlocal held, comes
        runner = runner_of(fetch_gathers=lambda: False)
        runner.overflow = overflow
        fetching = Fetching(runner, INTAKE, OVERFLOW)
        topics = []
        for there, fresh in ((HELD_MAX - 2, 1), (HELD_MAX - 1, 1), (HELD_MAX, 0), (HELD_MAX - 1, 0)):
            held, comes = there, fresh
            await fetching.consumer._getmany({INTAKE, OVERFLOW}, 0.01)
            [request] = fetching.asks()
            topics.append({topic for topic, _ in request.topics})
        return topics

    monkeypatch.setattr(AIOKafkaConsumerThread, "_fetch_records", fetched)
    assert asyncio.run(scene()) == [{"a", "o"}, {"a"}, {"a"}, {"a", "o"}]


def test_it_is_a_flood_while_events_are_moved_and_not_while_they_wait() -> None:
    """What is left of a flood takes minutes to go on: for so long nobody else's fetch has to gather anything."""
    now_s = 100.0
    stage = Overflowing()
    stage.quota = lambda _tenant: Quota(1, 1)  # type: ignore[method-assign]
    overflow = Overflow("o", stage, lambda: now_s, 0)
    overflow._found(0, Found({}, None))  # type: ignore[arg-type]
    overflow.choose(_message(0))
    straight = overflow.is_flooded()
    overflow.choose(_message(1))
    moved = overflow.is_flooded()
    now_s += FLOOD_S
    assert (straight, moved, overflow.is_flooded(), overflow.waiting()) == (False, True, False, {0: 1})


def test_a_stage_without_quotas_gathers_no_fetch() -> None:
    """Nobody is over a quota there."""

    async def scene() -> tuple[bool, bool]:
        without = BatchRunner(_spec(), Relabelled(), Faults(), None, NOWHERE)
        spec = replace(_spec(), inputs=("a", "o"), outputs=("c", "o"), stage=Overflowing(), overflow="o")
        runner = BatchRunner(spec, Overflowing(), Faults(), None, NOWHERE)
        assert runner.overflow is not None
        runner.overflow._found(0, Found({}, None))  # type: ignore[arg-type]
        runner._choose(_message(0))
        runner._choose(_message(1))
        return without.fetch_gathers(), runner.fetch_gathers()

    assert asyncio.run(scene()) == (False, True)


@pytest.mark.parametrize("overtaken", [False, True])
def test_a_partition_that_is_assigned_anew_as_it_is_reopened_is_not_set_back(overtaken: bool) -> None:
    """A rebalance between the look at the commit and the step back: whoever has the partition now seeks for itself, and
    what was committed meanwhile is not fetched once more as if it were new."""

    async def scene() -> None:
        runner = runner_of(generation=1)
        runner.parked = {0: object()}
        fetching = Fetching(runner, INTAKE)
        consumer, back = fetching.consumer, []
        consumer._committed_offset = {INTAKE: 9}

        async def base(_tp: Any) -> tuple[int, bool]:
            if overtaken:
                runner.generation, runner.parked = 2, {}
            return 5, True

        async def call(_method: Any, bases: Any) -> None:
            back.append(bases)

        consumer.base_offset = base
        fetching.thread.go_back, fetching.thread.call_thread = None, call
        await consumer.reopen([INTAKE])
        assert back == ([] if overtaken else [{INTAKE: 5}])
        assert consumer._committed_offset == {INTAKE: 9 if overtaken else 5}
        assert runner.turns == ({} if overtaken else {0: 1})

    asyncio.run(scene())
