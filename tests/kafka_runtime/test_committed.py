"""A group's committed offsets are asked for until the broker can read them."""

import asyncio
from collections import deque
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.cluster import ClusterMetadata
from aiokafka.consumer import consumer
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.errors import GroupAuthorizationFailedError, GroupLoadInProgressError, NotCoordinatorForGroupError
from aiokafka.protocol.commit import OffsetFetchResponse_v3

from memsluice.runtimes.kafka import committed

PLACE = TopicPartition("memory.intake.v1", 0)


class _Starting:
    """A broker's answers to OffsetFetch, one after the other: the fault is in them."""

    def __init__(self, *answers: Any) -> None:
        self.answers = deque(answers)
        self.cluster = ClusterMetadata()

    async def send(self, *_: Any, **__: Any) -> Any:
        return self.answers.popleft()

    async def coordinator_lookup(self, *_: Any) -> int:
        return 1

    async def ready(self, *_: Any, **__: Any) -> bool:
        return True

    def get_random_node(self) -> int:
        return 1


def refused(error: Any) -> Any:
    """The answer of a broker that can not read the group's offsets, as Kafka gives it from version 2 on."""
    return OffsetFetchResponse_v3(0, [], error.errno)


def answered(offset: int) -> Any:
    """The answer of one that can."""
    return OffsetFetchResponse_v3(0, [(PLACE.topic, [(PLACE.partition, offset, "", 0)])], 0)


async def asked(broker: _Starting) -> dict[Any, Any]:
    """What a consumer of the workers learns of the group's offsets."""
    committed.install()
    made = consumer.GroupCoordinator(broker, SubscriptionState(), group_id="memsluice-screen", retry_backoff_ms=1)
    made.coordinator_id = 1
    try:
        return await made.fetch_committed_offsets([PLACE])  # type: ignore[no-any-return]
    finally:
        await made.close()


@pytest.mark.parametrize("error", [GroupLoadInProgressError, NotCoordinatorForGroupError])
def test_offsets_that_cannot_be_read_now_are_asked_for_again(error: Any) -> None:
    """A broker that still loads the group, or is not its coordinator any more, has not said that there are none."""
    broker = _Starting(refused(error), refused(error), answered(225))
    assert asyncio.run(asked(broker))[PLACE].offset == 225


def test_a_group_that_never_committed_has_no_offset() -> None:
    """Minus one, without an error, is what a broker says of a group that is new."""
    assert asyncio.run(asked(_Starting(answered(-1)))) == {}


def test_offsets_that_may_not_be_read_are_an_error() -> None:
    """What will not be over by itself is raised, not waited for."""
    with pytest.raises(GroupAuthorizationFailedError):
        asyncio.run(asked(_Starting(refused(GroupAuthorizationFailedError))))


def test_the_workers_consumer_is_made_with_it() -> None:
    """The name that aiokafka's consumer looks up when it starts is replaced, once and for good."""
    committed.install()
    committed.install()
    assert AIOKafkaConsumer.start.__globals__["GroupCoordinator"] is committed.CommittedCoordinator
