"""The thread that fetches: what it is asked ends, also without a broker, and what breaks in it is heard of."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from memsluice.errors import BrokerUnavailable, StateError
from memsluice.runtimes.kafka import consumer_thread, overrides
from memsluice.runtimes.kafka.consumer_thread import StageConsumerThread
from memsluice.runtimes.kafka.overrides import StageConsumer

from .fetching import INTAKE, Fetching, nothing, runner_of


def test_a_stop_waits_for_nothing_that_is_queued_for_the_clients_thread() -> None:
    """With the broker away each such call takes its whole timeout, one after the other: the worker would end for it."""

    async def scene() -> tuple[list[bool], bool]:
        loop = asyncio.get_running_loop()
        thread = object.__new__(StageConsumerThread)
        promises = [loop.create_future() for _ in range(3)]
        queue = asyncio.Queue[Any]()
        for promise in promises:
            queue.put_nowait(SimpleNamespace(promise=promise))

        async def stop() -> None:
            promises.append(loop.create_future())
            queue.put_nowait(SimpleNamespace(promise=promises[-1]))  # it was on its way

        thread._consumer = None
        thread._method_queue = SimpleNamespace(_queue=queue, stop=stop)
        await thread.on_thread_stop()
        await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await thread.call_thread(nothing)
        return [promise.cancelled() for promise in promises], queue.empty()

    assert asyncio.run(scene()) == ([True] * 4, True)


def test_what_the_client_is_asked_is_bounded_and_an_idle_lane_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """aiokafka asks for a committed offset for ever; the thread has two hands, and fetches with one of them."""

    async def hangs(*_arguments: Any) -> None:
        await asyncio.Event().wait()

    async def scene() -> int | None:
        fetching = Fetching(runner_of(), INTAKE)
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
