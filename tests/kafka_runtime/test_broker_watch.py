"""What a worker says while its broker is away, and that it stops then."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from faust.transport.drivers import aiokafka as driver
from structlog.testing import capture_logs

from memsluice.runtimes.kafka.broker_watch import BrokerWatch, quiet_libraries
from memsluice.runtimes.kafka.consumer_thread import StageConsumerThread


def watch_of(*answers: bool) -> BrokerWatch:
    """Return a watch of a broker that answers, or not, each time it is asked."""
    left: Iterator[bool] = iter(answers)

    def ask() -> None:
        if not next(left):
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    return BrokerWatch("broker:9092", ask)


def test_a_worker_says_once_that_the_broker_is_away_and_once_that_it_is_back() -> None:
    """However often the broker was asked meanwhile, there are two lines, and they name its address."""
    watch = watch_of(True, False, False, False, True, True)
    with capture_logs() as lines:
        for _ in range(6):
            asyncio.run(watch.look())
    assert [(line["log_level"], line["broker"]) for line in lines] == [("warning", "broker:9092")] * 2
    assert "does not answer" in lines[0]["event"]
    assert "answers again" in lines[1]["event"]


def test_a_broker_that_never_answered_is_told_too() -> None:
    """A worker that is started while the broker is away is not silent."""
    with capture_logs() as lines:
        asyncio.run(watch_of(False).look())
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("Unable connect to node with id %s: %s", (1, "[Errno 111]")),
        ("Unable to update metadata from %s", ([1],)),
        ("Group Coordinator Request failed: %s", ("[Error 15]",)),
        ("Failed fetch messages from %s: %s", (1, "NodeNotReadyError")),
        ("Heartbeat send request failed: %s. Will retry.", ("x",)),
        ("Error sending %s to node %s [%s] -- marking coordinator dead", ("OffsetCommitRequest_v2", 1, "x")),
        ("Cannot send %r to %s: %r", ("AddOffsetsToTxnRequest", 1, "RequestTimedOutError()")),
        ("Attempt to join group failed due to fatal error: %s", ("INCONSISTENT_GROUP_PROTOCOL",)),
        ("Timer commit is overlapping (interval=0.25 runtime=13.06)", ()),
    ],
)
def test_a_library_line_about_a_retry_is_kept_at_debug(
    line: str, about: tuple[object, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """Thousands of such lines would hide the one that counts; whoever looks for them finds them at DEBUG."""
    logger = logging.getLogger("aiokafka.tried")
    quiet_libraries()
    with caplog.at_level(logging.DEBUG):
        logger.error(line, *about)
    assert [record.levelno for record in caplog.records] == [logging.DEBUG]


def test_any_other_line_of_a_library_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """What is not tried again is told at its own level."""
    logger = logging.getLogger("aiokafka.tried")
    quiet_libraries()
    logger.error("Topic %s is not authorized for this client", "memory.sealed.v1")
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_the_consumer_stops_though_aiokafka_cancels_its_own_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a fetch waiting to be tried again, aiokafka's stop ends in a cancellation; the thread goes on to its end."""
    closed = list[str]()

    async def cancelled(_self: Any) -> None:
        raise asyncio.CancelledError

    class Client:
        async def close(self) -> None:
            closed.append("client")

    class Consumer:
        _client = Client()

    monkeypatch.setattr(driver.AIOKafkaConsumerThread, "on_thread_stop", cancelled)
    thread = object.__new__(StageConsumerThread)
    thread._consumer = Consumer()
    asyncio.run(thread.on_thread_stop())
    assert closed == ["client"]
