"""A group's committed offsets are asked for until the broker can read them, and so is a group that takes nobody in."""

import asyncio
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.cluster import ClusterMetadata
from aiokafka.consumer import consumer
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    GroupLoadInProgressError,
    InconsistentGroupProtocolError,
    NotCoordinatorForGroupError,
)
from aiokafka.protocol.commit import OffsetFetchResponse_v3
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from structlog.testing import capture_logs

from memsluice.errors import BeginAnew, ConfigError
from memsluice.runtimes.kafka import coordinator
from memsluice.runtimes.kafka.consumer_thread import StageConsumerThread

from .harness import HANG_S

PLACE = TopicPartition("memory.intake.v1", 0)


class _Starting:
    """A broker's answers, one after the other: the fault is in them."""

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
    coordinator.install()
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
    coordinator.install()
    coordinator.install()
    assert AIOKafkaConsumer.start.__globals__["GroupCoordinator"] is coordinator.StageCoordinator


def joining(error: int) -> Any:
    """The answer to JoinGroup of a broker that takes this member in (0), or not."""
    return SimpleNamespace(
        error_code=error, member_id="me", leader_id="another", generation_id=1, group_protocol="range"
    )


async def member(broker: _Starting) -> Any:
    """A worker's membership, whose own routine joins the group from here on."""
    coordinator.install()
    subscription = SubscriptionState()
    subscription.register_fetch_waiters(set())
    subscription.subscribe({PLACE.topic})
    made = consumer.GroupCoordinator(
        broker, subscription, group_id="memsluice-seal", retry_backoff_ms=1, assignors=(RangePartitionAssignor,)
    )
    made.coordinator_id = 1
    return made


def test_a_group_that_divides_its_partitions_in_another_way_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of an older version keep a newer one out until their sessions are over: it says so once, joins by
    itself, and says that. aiokafka would wait for somebody who takes its error, which Faust never does."""
    monkeypatch.setattr(coordinator, "JOIN_AGAIN_S", 0.01)
    partitions = ConsumerProtocolMemberAssignment(0, [(PLACE.topic, [PLACE.partition])], b"").encode()
    refusals = [joining(InconsistentGroupProtocolError.errno)] * 3
    broker = _Starting(*refusals, joining(0), SimpleNamespace(error_code=0, member_assignment=partitions), answered(7))
    broken = list[BaseException]()

    async def scene() -> set[TopicPartition]:
        made = await member(broker)
        made.broken = broken.append
        await asyncio.wait_for(made._subscription.wait_for_assignment(), HANG_S)
        await made.close()
        return set(made._subscription.assigned_partitions())

    with capture_logs() as lines:
        assert asyncio.run(scene()) == {PLACE}
    assert ["another way" in lines[0]["event"], lines[0]["session_s"], len(lines)] == [True, 10, 2]
    assert lines[1]["event"] == "the group has taken this worker in"
    assert broken == []


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (81, BeginAnew, "no member of its group memsluice-seal any more: KafkaError: "),
        (GroupAuthorizationFailedError.errno, ConfigError, "user seal may not join the group memsluice-seal: "),
    ],
)
def test_what_ends_a_membership_ends_the_stage(
    monkeypatch: pytest.MonkeyPatch, error: int, kind: type[Exception], told: str
) -> None:
    """A stage that is in no group takes no record and would wait for ever: it begins anew, and where that does not
    help, as without a right, the worker ends."""
    failed = list[BaseException]()

    async def started(thread: Any) -> None:
        thread._consumer = SimpleNamespace(_coordinator=await member(_Starting(joining(error))))

    async def scene() -> None:
        thread = object.__new__(StageConsumerThread)
        thread.parent_loop = asyncio.get_running_loop()
        spec = SimpleNamespace(user="seal", app_id="memsluice-seal")
        thread.app = SimpleNamespace(runner=SimpleNamespace(spec=spec, fail=failed.append))
        await thread.on_start()
        while not failed:
            await asyncio.sleep(0)
        await thread._consumer._coordinator.close()

    monkeypatch.setattr(AIOKafkaConsumerThread, "on_start", started)
    asyncio.run(asyncio.wait_for(scene(), HANG_S))
    assert [type(one) for one in failed] == [kind]
    assert told in str(failed[0])


def test_a_membership_that_ends_by_a_fault_of_its_own_ends_the_stage_too() -> None:
    """aiokafka's routine ends with an error that it did not expect, and nothing joins the group again."""
    broken = list[BaseException]()

    async def scene() -> None:
        made = await member(_Starting())  # no answer: what aiokafka calls of ours raises IndexError
        made.broken = broken.append
        await asyncio.gather(made._coordination_task, return_exceptions=True)
        await made.close()

    asyncio.run(asyncio.wait_for(scene(), HANG_S))
    assert "IndexError" in str(broken[0])
