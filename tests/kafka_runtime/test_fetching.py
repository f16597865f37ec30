"""How fetches are answered: at the first record, or, in a flood, with what has gathered."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.consumer import AIOKafkaConsumer
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.structs import TopicPartition
from faust.transport.drivers import aiokafka as driver
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from faust.types import TP

from memsluice.errors import BrokerUnavailable, StateError
from memsluice.runtimes.kafka import consumer_thread, overrides
from memsluice.runtimes.kafka.batching import BatchRunner
from memsluice.runtimes.kafka.consumer_thread import FETCH_GATHER_BYTES, StageConsumerThread
from memsluice.runtimes.kafka.faults import Faults
from memsluice.runtimes.kafka.overflow import FLOOD_S, HELD_MAX, Found, Overflow
from memsluice.runtimes.kafka.overrides import StageConsumer
from memsluice.runtimes.kafka.spec import Tuning
from memsluice.stages.quota import Quota

from .harness import NOWHERE
from .test_parts import Overflowing, Relabelled, _message, _spec

INTAKE, OVERFLOW = TopicPartition("a", 0), TopicPartition("o", 0)


async def nothing(*_arguments: Any, **_options: Any) -> dict[Any, Any]:
    """Fetch nothing."""
    return {}


class Fetching:
    """The consumer, its thread, and aiokafka's own client and fetcher, which no broker answers."""

    def __init__(self, runner: Any, *assigned: TopicPartition) -> None:
        self.client = AIOKafkaConsumer(bootstrap_servers="127.0.0.1:9")
        self.client.assign(assigned)
        self.assignment = self.client._subscription.subscription.assignment
        for tp in assigned:
            self.assignment.state_value(tp).reset_to(0)
        cluster = SimpleNamespace(leader_for_partition=lambda _tp: 1)
        below = SimpleNamespace(cluster=cluster, _loop=self.client._loop, _metadata_max_age_ms=1, close=nothing)
        self.fetcher = self.client._fetcher = Fetcher(below, self.client._subscription)
        self.fetcher._fetch_task.cancel()
        self.thread = object.__new__(StageConsumerThread)
        self.thread.app = SimpleNamespace(runner=runner)
        self.thread.fetched, self.thread.room, self.thread._consumer = {}, {}, self.client
        self.thread.getmany = lambda _active, _timeout: self.thread._fetch_records()
        self.consumer: Any = object.__new__(StageConsumer)
        self.consumer.app, self.consumer._thread, self.consumer._unacked_messages = self.thread.app, self.thread, set()
        self.consumer._at_the_log = asyncio.Lock()

    def asks(self) -> list[Any]:
        """Return the requests that the client would send now."""
        return [request for _, request in self.fetcher._get_actions_per_node(self.assignment)[0]]


def _runner(**more: Any) -> SimpleNamespace:
    tuning = Tuning()
    return SimpleNamespace(
        tuning=tuning, fetch_wait_s=tuning.fetch_wait_s, parked={}, turns={}, spec=SimpleNamespace(overflow=""),
        held_back=lambda _topic, _partition: False, overflow=None, **more,
    )  # fmt: skip


def test_a_fetch_gathers_while_a_tenant_over_its_quota_sends_and_is_answered_at_once_again_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the client really asks for: a request for each event of a noisy tenant would be everybody's processors."""
    flood = iter((False, True, False))

    async def scene() -> list[tuple[int, int]]:
        fetching = Fetching(_runner(fetch_gathers=lambda: next(flood)), INTAKE)
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
        runner = _runner(fetch_gathers=lambda: False)
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


def test_a_stop_waits_for_nothing_that_is_queued_for_the_clients_thread() -> None:
    """With the broker away each such call takes its whole timeout, one after the other: the worker would end for it."""

    async def scene() -> tuple[list[bool], bool]:
        loop = asyncio.get_running_loop()
        thread = object.__new__(StageConsumerThread)
        promises = [loop.create_future() for _ in range(3)]
        queue = asyncio.Queue[Any]()
        for promise in promises:
            queue.put_nowait(SimpleNamespace(promise=promise))
        thread._consumer = None
        thread._method_queue = SimpleNamespace(_queue=queue, stop=nothing)
        await thread.on_thread_stop()
        await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await thread.call_thread(nothing)
        return [promise.cancelled() for promise in promises], queue.empty()

    assert asyncio.run(scene()) == ([True, True, True], True)


def test_what_the_client_is_asked_is_bounded_and_an_idle_lane_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """aiokafka asks for a committed offset for ever; the thread has two hands, and fetches with one of them."""

    async def hangs(*_arguments: Any) -> None:
        await asyncio.Event().wait()

    async def scene() -> int | None:
        fetching = Fetching(_runner(), INTAKE)
        thread, consumer = fetching.thread, fetching.consumer
        fetching.client.committed = fetching.client.beginning_offsets = hangs
        with pytest.raises(BrokerUnavailable, match="did not answer"):
            await thread.committed(INTAKE)
        with pytest.raises(BrokerUnavailable, match="did not answer"):
            await thread.log_start(INTAKE, 0.01)

        async def here(fun: Any, *arguments: Any) -> Any:
            return await fun(*arguments)

        async def place(_tp: Any) -> tuple[int, int]:
            return 9, 3

        thread.call_thread, thread.place = here, place
        consumer._committed_offset, consumer.highwater = {INTAKE: 4}, lambda _tp: 10
        found: int | None = await consumer.place_if_idle(INTAKE)
        return found

    monkeypatch.setattr(consumer_thread, "ANSWER_S", 0.01)
    monkeypatch.setattr(overrides, "IDLE_ANSWER_S", 0.01)
    assert asyncio.run(scene()) is None


@pytest.mark.parametrize(
    ("told", "breaks"), [("on_partitions_assigned", "begin"), ("on_partitions_revoked", "revoked")]
)
def test_an_error_in_a_rebalance_ends_the_stage(monkeypatch: pytest.MonkeyPatch, told: str, breaks: str) -> None:
    """aiokafka logs it and goes on: with partitions of which nothing would ever be taken."""
    failed = list[BaseException]()

    async def broken(_partitions: Any) -> None:
        raise StateError("the rows of a partition could not be closed")

    consumer: Any = object.__new__(StageConsumer)
    runner = SimpleNamespace(
        **{"drain": nothing, "begin": nothing, "revoked": nothing, "fail": failed.append} | {breaks: broken}
    )
    consumer.app = SimpleNamespace(runner=runner)
    monkeypatch.setattr(driver.Consumer, told, nothing)
    with pytest.raises(StateError):
        asyncio.run(getattr(consumer, told)({TP("a", 0)}))
    assert [type(error) for error in failed] == [StateError]


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
