"""What stands for Faust's consumer, and for the group's coordinator: who reads what, and from where.

The worker's protocol, in the order of the real one (``runtimes/kafka/overrides.py``): when partitions go, drain
and let go; when they come, begin a generation (the lanes open their fences and restore), wait until no former
owner can write, read what is committed, go on from there. Offsets are committed in the transactions.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Protocol

from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from memsluice.events.records import Record
from memsluice_lab.simulation.broker import TP, Broker
from memsluice_lab.simulation.producers import RETRY_S, Wire


class Delivered:
    """What Faust calls a message."""

    __slots__ = ("before", "headers", "key", "offset", "partition", "timestamp", "topic", "tp", "value")

    def __init__(self, record: Record, tp: TopicPartition, before: int | None) -> None:
        self.topic, self.partition, self.offset = record.topic, record.partition, record.offset
        self.key, self.value, self.headers = record.key, record.value, record.headers
        self.timestamp = record.timestamp_ms / 1000
        self.tp = tp
        self.before = before


class _Event:
    __slots__ = ("message",)

    def __init__(self, message: Delivered) -> None:
        self.message = message


class Stream:
    """The records that were fetched and that the stage has not taken yet."""

    def __init__(self) -> None:
        self._events: deque[_Event] = deque()
        self._arrived = asyncio.Event()

    def put(self, message: Delivered) -> None:
        """Add a record."""
        self._events.append(_Event(message))
        self._arrived.set()

    def clear(self) -> None:
        """Drop what is there, as Faust does when partitions are revoked."""
        self._events.clear()

    def __len__(self) -> int:
        return len(self._events)

    def noack(self) -> "Stream":
        """Return itself: the stream acknowledges nothing."""
        return self

    async def events(self) -> AsyncIterator[_Event]:
        """Yield the records, for ever."""
        while True:
            while self._events:
                yield self._events.popleft()
            self._arrived.clear()
            await self._arrived.wait()


class Coordinator(Protocol):
    """What a member asks of its group's coordinator (:class:`memsluice_lab.simulation.groups.Group`)."""

    def ready(self, consumer: "Consumer") -> None:
        """Be told that a member gave up what it had."""


class Consumer:
    """One member of a group."""

    def __init__(self, wire: Wire, spec: Any) -> None:
        self.stream = Stream()
        self.assigned: tuple[TP, ...] = ()
        self.flowing = False
        self.runner: Any = None
        self.group: Coordinator | None = None
        self._wire = wire
        self._broker: Broker = wire.broker
        self._group = spec.app_id
        self._tuning = spec.tuning
        self._orders: deque[tuple[TP, ...] | None] = deque()
        self._ordered = asyncio.Event()
        self.positions: dict[TP, int] = {}
        self._fetched: dict[TP, int] = {}
        self._committed: dict[TP, int] = {}

    # --- what the runner asks for ---

    def untrack(self, message: Any) -> None:
        """Do nothing: what is not released is read again."""

    def untrack_partition(self, partition: int) -> None:
        """Do nothing: as :meth:`untrack`."""

    async def base_offset(self, tp: Any) -> tuple[int, bool]:
        """Return the first offset due, and whether it is the group's commit."""
        name = (tp.topic, tp.partition)
        committed = await self._asked(lambda: self._broker.committed[self._group].get(name))
        return (self._broker.log(*name).start, False) if committed is None else (committed, True)

    async def log_start(self, tp: Any) -> int:
        """Return the offset of the log's first record."""
        return self._broker.log(tp.topic, tp.partition).start

    async def place_if_idle(self, tp: Any) -> int | None:
        """Return the place behind the last record where everything fetched is committed and more was read."""
        name = (tp.topic, tp.partition)
        committed, place = self._committed.get(name) or 0, self.positions.get(name)
        if place is None or place <= committed or len(self.stream):
            return None
        last = self._fetched.get(name)
        return place if last is None or last < committed else None

    def known_behind(self, message: Any) -> int:
        """Return how many offsets of a message's partition, markers among them, were fetched behind it."""
        return max(0, self.positions.get((message.topic, message.partition), 0) - int(message.offset) - 1)

    def known_commit(self, tp: Any) -> int | None:
        """Return what is known to be committed."""
        return self._committed.get((tp.topic, tp.partition))

    def committed_at(self, tp: Any, place: int) -> None:
        """Note what a transaction has committed."""
        self._committed[tp.topic, tp.partition] = place

    async def _asked(self, call: Any) -> Any:
        while True:
            try:
                return await self._wire.ask(call)
            except KafkaError:
                await asyncio.sleep(RETRY_S)

    # --- the assignment ---

    def order(self, partitions: tuple[TP, ...] | None) -> None:
        """Be told by the coordinator: partitions to own, or None to give up those there are."""
        self._wire.loop.call_soon(self._order, partitions)

    def _order(self, partitions: tuple[TP, ...] | None) -> None:
        if partitions is None:
            self.flowing = False
        self._orders.append(partitions)
        self._ordered.set()

    async def serve(self) -> None:
        """Carry out what the coordinator says, one after the other."""
        while True:
            while not self._orders:
                self._ordered.clear()
                await self._ordered.wait()
            partitions = self._orders.popleft()
            if partitions is None:
                await self._give_up()
            else:
                await self._take_over(partitions)

    async def _give_up(self) -> None:
        await self.runner.drain()
        gone, self.assigned = self.assigned, ()
        self.stream.clear()
        await self.runner.revoked({number for _, number in gone})
        if self.group is not None:
            self.group.ready(self)

    async def _take_over(self, partitions: tuple[TP, ...]) -> None:
        self.stream.clear()
        await self.runner.begin({number for _, number in partitions})
        self.assigned = partitions
        await self.runner.fenced_off()
        self.positions, self._fetched, self._committed = {}, {}, {}
        for tp in partitions:
            self.positions[tp], committed = await self.base_offset(TopicPartition(*tp))
            if committed:
                self._committed[tp] = self.positions[tp]
        self.flowing = self.group is not None and not self._orders

    # --- reading ---

    def wants(self) -> list[TP]:
        """Return the partitions that have something to fetch."""
        if not self.flowing or len(self.stream) >= self._tuning.stream_buffer or self._broker.down:
            return []
        return [
            tp
            for tp, place in self.positions.items()
            if place < self._broker.log(*tp).stable() and not self.runner.held_back(*tp)
        ]

    def fetch(self, tp: TP, most: int) -> int:
        """Fetch from a partition; return how many records came."""
        records, self.positions[tp] = self._broker.log(*tp).fetch(self.positions[tp], most)
        place = TopicPartition(*tp)
        for record in records:
            self.stream.put(Delivered(record, place, self._fetched.get(tp)))
            self._fetched[tp] = record.offset
        return len(records)
