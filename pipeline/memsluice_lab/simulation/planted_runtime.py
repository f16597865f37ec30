"""Bugs in what moves the bytes: acknowledgement, fence, transactions, recovery."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any
from unittest.mock import patch

from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.structs import TopicPartition

from memsluice.gate.state.kinds import ENTRY
from memsluice.runtimes.kafka import consumer_thread, fence, lanes
from memsluice.runtimes.kafka.fence import Fence
from memsluice.runtimes.kafka.lanes import Lane
from memsluice.runtimes.kafka.packing import Packing
from memsluice.runtimes.kafka.restore import restore
from memsluice.runtimes.kafka.state import StateRows
from memsluice.topics import names
from memsluice_lab.simulation.consumer import Consumer
from memsluice_lab.simulation.worker import TopicReader

Patches = Iterator[Any]
"""What ``patch`` returned, one a change."""
SET_BACK = 3
"""How many records are read again."""


def set_back(topic: str = names.EVENTS, records: int = SET_BACK) -> Any:
    """Have the stage that reads a topic begin so many records before its committed place, as after an operator set the
    group's offsets back."""
    honest = Consumer.base_offset

    async def base_offset(self: Any, tp: Any) -> tuple[int, bool]:
        place, committed = await honest(self, tp)
        if tp.topic == topic and committed:
            place = max(place - records, await self.log_start(tp))
        return place, committed

    return patch.object(Consumer, "base_offset", base_offset)


def ack_out_of_order() -> Patches:
    """*seal* takes what came last first, and commits its offset before what came earlier was sent."""
    honest = Lane._next

    async def last(self: Any) -> list[Any]:
        if self._owner.spec.name != "seal" or not self._queue:
            return await honest(self)
        return [self._queue.pop()]

    yield patch.object(Lane, "_next", last)


def fence_removed() -> Patches:
    """Every owner has a transactional id of its own: the broker refuses nobody."""
    numbers = count()
    yield patch.object(fence, "transactional_id", lambda app_id, partition: f"{app_id}-{partition}-{next(numbers)}")


def round_robin() -> Patches:
    """A partition's topics are dealt to several workers, as Faust does by itself: they open each other's fences."""
    yield patch.object(consumer_thread, "RangePartitionAssignor", RoundRobinPartitionAssignor)


def restore_before_fence() -> Patches:
    """A worker restores its rows first and shuts the former owner out afterwards."""
    honest = Lane._run

    async def run(self: Any) -> None:
        if self._rows is not None:
            await self._rows.restore(self._given_up)
            self._rows.restore = _nothing
        await honest(self)

    yield patch.object(Lane, "_run", run)


async def _nothing(_given_up: Any) -> None:
    return None


class _Sending(Packing):
    """What sends otherwise than a packing does."""

    def __init__(self, send: Callable[..., Any], flush: Callable[[], Any]) -> None:
        self.send, self.flush = send, flush  # type: ignore[method-assign]


def not_persisted(kind: str, which: Callable[[bytes | None], bool] = lambda _value: True) -> Patches:
    """Rows of a kind are decided with and never sent to the changelog."""
    honest, part = Lane._send, b"\0" + kind.encode() + b"\0"

    async def send(self: Any, result: Any, packing: Any) -> Any:
        async def selected(topic: str, partition: int, key: Any, value: Any, headers: Any = ()) -> Any:
            if self._rows is not None and topic == self._rows.changelog and part in key and which(value):
                key = b"lost\0" + key
            return await packing.send(topic, partition, key, value, headers)

        return await honest(self, result, _Sending(selected, packing.flush))

    yield patch.object(Lane, "_send", send)


def revoked(value: bytes | None) -> bool:
    """Whether an entry's row says that it was revoked, or lies in memory no more."""
    if value is None:
        return False
    row = ENTRY.load(value)
    return bool(row.revoked) or not row.landed


def settle_before_commit() -> Patches:
    """Local rows are written as soon as they are sent, not once they are committed."""
    honest = Fence.transact

    async def commit(self: Any, batch: Any) -> None:
        written: list[Any] = []

        async def work(packing: Any) -> None:
            for result in batch:
                rows = await self._send(result, packing)
                written.append(rows)
                if self._rows is not None and result.rows is not None and rows:
                    await packing.flush()
                    self._rows.state.settle(result.rows, rows[-1].offset)

        offsets = lanes._offsets(batch)
        await honest(self._fence, work, offsets)
        if not self._closed:
            for where, place in offsets.items():
                self._owner.app.consumer.committed_at(where, place)
            for result in batch:
                self._owner.release(result.message)
            self._done(len(batch))

    yield patch.object(Lane, "_commit", commit)


def outputs_after_commit() -> Patches:
    """Outputs are sent when rows and offset are committed, in a transaction of their own."""
    honest = Lane._commit

    async def commit(self: Any, batch: Any) -> None:
        outputs = [one for result in batch for one in result.outputs]
        for result in batch:
            result.outputs = ()
        await honest(self, batch)

        async def late(packing: Any) -> None:
            for one in outputs:
                await packing.send(one.topic, one.partition, one.key, one.value, one.headers)

        await self._fence.transact(late, {})

    yield patch.object(Lane, "_commit", commit)


def commit_before_ack() -> Patches:
    """The offset is committed first, and then what the records led to."""
    honest = Fence.transact

    async def transact(self: Any, work: Any, offsets: dict[TopicPartition, int]) -> None:
        await honest(self, lanes._nothing, offsets)
        await honest(self, work, offsets)

    yield patch.object(Fence, "transact", transact)


def restore_uncommitted() -> Patches:
    """Recovery reads what was never committed, too."""

    def read(self: Any, partition: int, from_offset: int = 0) -> Any:
        yield from self._broker.log(self.name, partition).fetch(from_offset, 1_000_000, committed=False)[0]

    def restored(*arguments: Any) -> int:
        with patch.object(TopicReader, "read", read):
            return restore(*arguments)

    yield patch.object(lanes, "restore", restored)


def restore_stale() -> Patches:
    """Recovery begins some rows behind where the local store stands."""

    def restored(state: StateRows, partition: int, open_log: Any, given_up: Any) -> int:
        stands = state.stands
        with patch.object(state, "stands", lambda number: None if (at := stands(number)) is None else at + 3):
            try:
                return restore(state, partition, open_log, given_up)
            except Exception:
                return 0

    yield patch.object(lanes, "restore", restored)


def overlay_kept() -> Patches:
    """What was decided and not committed stays in memory when the partitions go."""
    yield patch.object(StateRows, "discard", lambda self, partition=None: None)
