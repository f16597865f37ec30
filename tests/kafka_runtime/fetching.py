"""A consumer, its thread, and aiokafka's client, without a broker."""

import asyncio
from types import SimpleNamespace
from typing import Any

from aiokafka.consumer import AIOKafkaConsumer
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.structs import TopicPartition

from memsluice.runtimes.kafka.consumer_thread import StageConsumerThread
from memsluice.runtimes.kafka.overrides import StageConsumer
from memsluice.runtimes.kafka.spec import Tuning

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


def runner_of(**more: Any) -> SimpleNamespace:
    """Return as much of a runner as fetching asks."""
    tuning = Tuning()
    return SimpleNamespace(
        tuning=tuning, fetch_wait_s=tuning.fetch_wait_s, parked={}, turns={}, spec=SimpleNamespace(overflow=""),
        held_back=lambda _topic, _partition: False, overflow=None, **more,
    )  # fmt: skip
