"""How often a transaction waits for the broker: aiokafka's sender is changed for it, which another version may undo."""

import asyncio
from typing import Any

import pytest
from aiokafka.structs import TopicPartition

from memsluice.runtimes.kafka.fence import Fence
from memsluice.runtimes.kafka.packing import Packing
from memsluice.runtimes.kafka.spec import StageSpec

from .dummies import Stamp
from .harness import Lab

pytestmark = pytest.mark.stack

ADDED = {"AddPartitionsToTxnRequest", "AddOffsetsToTxnRequest"}
SENT, COMMITTED, ENDED = {"ProduceRequest"}, {"TxnOffsetCommitRequest"}, {"EndTxnRequest"}
ALL = ADDED | SENT | COMMITTED | ENDED
TRIES_MAX = 20


def test_a_transaction_is_four_round_trips(lab: Lab) -> None:
    """Partitions and group are asked for at once; offsets wait for the records: the broker would drop one of both."""
    lab.prepare(1)
    assert asyncio.run(_rounds(lab)) == [ADDED, SENT, COMMITTED, ENDED]


async def _rounds(lab: Lab) -> list[set[str]]:
    """Return what was asked together in the first transaction of which nothing had to be asked twice.

    A transaction that comes at once may find the one before it not ended yet.
    """
    fence = Fence(_spec(lab), lab.connection, 0)
    await fence.open()
    try:
        rounds = _watched(fence)
        await fence.transact(_one(lab), {TopicPartition(lab.source, 0): 1})
        for number in range(TRIES_MAX):
            await asyncio.sleep(0.1 * (number + 1))
            rounds.clear()
            await fence.transact(_one(lab), {TopicPartition(lab.source, 0): number + 2})
            if sum(len(names) for names in rounds) == len(ALL):
                return [set(names) for names in rounds]
        raise AssertionError(f"every one of {TRIES_MAX} transactions asked something twice: {rounds}")
    finally:
        await fence.close()


def _watched(fence: Fence) -> list[list[str]]:
    """Return a list that gets the names of the requests: those that were asked while another was open, together."""
    client = fence._producer.client
    send, rounds, open_ = client.send, list[list[str]](), set[object]()

    async def told(node: int, request: Any, **options: Any) -> Any:
        name, mark = type(request).__name__, object()
        if name in ALL:
            if not open_:
                rounds.append([])
            rounds[-1].append(name)
            open_.add(mark)
        try:
            return await send(node, request, **options)
        finally:
            open_.discard(mark)

    client.send = told
    return rounds


def _one(lab: Lab) -> Any:
    async def work(packing: Packing) -> None:
        await packing.send(lab.target, 0, b"key", b"value", ())

    return work


def _spec(lab: Lab) -> StageSpec:
    return StageSpec(
        name="stamp",
        app_id=lab.group,
        user=lab.user,
        inputs=(lab.source,),
        outputs=(lab.target,),
        kind="batch",
        stage=Stamp(lab.target),
    )
