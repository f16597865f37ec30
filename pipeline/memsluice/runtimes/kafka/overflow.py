"""The overflow of a batch stage: who waits on which partition, and what of it goes on when. On the event loop alone.

An event of a tenant over its quota is moved to the overflow topic in the transaction that commits its offset, and so
are all that follow it until the last one there was taken again: a tenant's order stays. The overflow is an input like
any other, but what arrives of it is held back until its tenant's quota allows it; where much is held back, nothing more
of that partition is fetched. Within a partition it goes in the order of the log, so an event may also wait for another
tenant's, which is over its quota too.

Who waits is no state of its own: it is what lies in the overflow from the committed offset on. The lane reads it once
its fence is open, before a record of the partition is taken, when nobody else can add to it.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from contextlib import closing
from enum import Enum
from threading import Event
from typing import Any, Final, NamedTuple

from memsluice.errors import Overtaken
from memsluice.log import get_logger
from memsluice.runtimes.kafka.records import to_record
from memsluice.runtimes.kafka.restore import OpenLog
from memsluice.stages.overflow import Overflowing
from memsluice.stages.quota import TenantLanes

LOG = get_logger(__name__)
HELD_MAX: Final = 128
HELD_BYTES_MAX: Final = 8 * 1024 * 1024
"""Records of a partition, and their bytes, that are held back while more are fetched."""
NAMED_MAX: Final = 5
"""Tenants that wait whom the log names when a partition is taken over."""
FLOOD_S: Final = 1.0
"""For how long after an event was moved more of its kind is expected."""


class Way(Enum):
    """How a record goes on."""

    STRAIGHT = "straight"
    MOVED = "moved"
    WAITED = "waited"
    REFUSED = "refused"
    """Straight, and not counted: the tenant in whose lane it is did not sign it."""


class Chosen(NamedTuple):
    """How a record goes on, whose it is, and, of one that is moved, the offset of the one moved before."""

    way: Way
    tenant: str
    after: int | None = None


class Held(NamedTuple):
    """A record that is held back: of which generation and whose it is, and its append to its intake topic (Unix ms)."""

    generation: int
    message: Any
    tenant: str
    append_ms: int


class Found(NamedTuple):
    """What the overflow of a partition holds: how much of each tenant, and the intake offset of the last."""

    waiting: Counter[str]
    last: int | None


class Restoring:
    """Finds out who waits on one partition; the lane calls :meth:`restore`."""

    def __init__(
        self,
        partition: int,
        committed: Callable[[], Any],
        open_log: OpenLog,
        stage: Overflowing,
        found: Callable[[int, Found], None],
    ) -> None:
        self.restoring = False
        self._partition = partition
        self._committed = committed
        self._open_log = open_log
        self._stage = stage
        self._found = found

    async def restore(self, given_up: Event) -> None:
        """Read the overflow from the committed offset to its end, in a thread that is always waited for."""
        base, _ = await self._committed()  # may be cancelled: whoever is stopped does not wait for a broker
        self.restoring = True
        try:
            found = await asyncio.to_thread(self._read, base, given_up)
        finally:
            self.restoring = False
        if not given_up.is_set():
            self._found(self._partition, found)

    def _read(self, base: int, given_up: Event) -> Found:
        waiting, last = Counter[str](), None
        with closing(self._open_log(given_up)) as log:
            for record in log.read(self._partition, base):
                if given_up.is_set():
                    break
                moved = self._stage.came(record)
                waiting[moved.tenant] += 1
                last = moved.record.offset
        return Found(waiting, last)


class Overflow:
    """The partitions of one assignment. ``wake`` is set whenever something may go on.

    ``unanswered_max``: how many records may be queued and in work, of which it is not known yet who sent them.
    """

    def __init__(self, topic: str, stage: Overflowing, now_s: Callable[[], float], unanswered_max: int) -> None:
        self.topic = topic
        self.wake = asyncio.Event()
        self._stage = stage
        self._now_s = now_s
        self._unanswered_max = unanswered_max
        self._lanes: dict[int, TenantLanes] = {}
        self._last: dict[int, int] = {}
        """Intake offset of the last record that was moved, a partition, where that is known."""
        self._held: dict[int, deque[Held]] = {}
        """What is held back of each partition, in order."""
        self._flood_ends_s = 0.0

    def restoring(self, partition: int, committed: Callable[[], Any], open_log: OpenLog) -> Restoring:
        """Return what finds out who waits on a partition, for its lane."""
        return Restoring(partition, committed, open_log, self._stage, self._found)

    def _found(self, partition: int, found: Found) -> None:
        self._lanes[partition] = TenantLanes(self._stage.quota, found.waiting)
        if found.last is not None:
            self._last[partition] = found.last
        if found.waiting:
            LOG.warning(
                "events wait in the overflow: their tenants are over their quota",
                partition=partition,
                events=found.waiting.total(),
                tenants=len(found.waiting),
                most=dict(found.waiting.most_common(NAMED_MAX)),
            )

    # --- what arrives ---

    def choose(self, message: Any) -> Chosen | None:
        """Say how an intake record goes on. None: straight, and nobody counts it."""
        record = to_record(message)
        tenant, lanes = self._stage.lane(record), self._lanes.get(message.partition)
        if tenant is None or lanes is None:
            return None
        near = lanes.is_near(tenant, record.timestamp_ms, self._unanswered_max)
        known = not record.key  # whose lane it is in was told by who sent it
        if near and not known and not self._stage.may_wait(record, tenant):  # before it is counted: none waits for it
            return Chosen(Way.REFUSED, tenant)
        if lanes.straight(tenant, record.timestamp_ms):
            return Chosen(Way.STRAIGHT, tenant)
        if not lanes.waiting[tenant]:
            LOG.warning("a tenant is over its quota: its events wait", tenant=tenant, partition=message.partition)
        now_s = self._now_s()
        lanes.wait(tenant, now_s)
        self._flood_ends_s = now_s + FLOOD_S
        after = self._last.get(message.partition)
        self._last[message.partition] = message.offset
        return Chosen(Way.MOVED, tenant, after)

    def hold(self, generation: int, message: Any) -> None:
        """Hold a record of the overflow back. Raises SealError for one that the gate did not move there."""
        came = self._stage.came(to_record(message))
        held = Held(generation, message, came.tenant, came.record.timestamp_ms)
        self._held.setdefault(message.partition, deque()).append(held)
        self.wake.set()

    def believe(self, message: Any) -> None:
        """Look at a record that was held back once more. Raises SealError where the gate's keys of now say nothing for
        it; any other record is not looked at."""
        if message.topic == self.topic:
            self._stage.came(to_record(message))

    def held_back(self, topic: str, partition: int) -> bool:
        """Tell whether nothing more of a partition is to be fetched for now."""
        return topic == self.topic and self.room(partition) <= 0

    def room(self, partition: int) -> int:
        """Return how many more records of a partition may be held back; 0 at most where those there are are large."""
        held = self._held.get(partition, ())
        large = sum(len(one.message.value or b"") for one in held) >= HELD_BYTES_MAX
        return 0 if large else HELD_MAX - len(held)

    def is_flooded(self) -> bool:
        """Tell whether a tenant over its quota goes on sending."""
        return self._now_s() < self._flood_ends_s

    # --- what goes on ---

    def due(self) -> tuple[int | None, float | None]:
        """Return the partition whose next record is due first, None where nothing is held, and in how many seconds."""
        first = min(
            (
                (self._lanes[number].due_s(held[0].tenant), number)
                for number, held in self._held.items()
                if held and number in self._lanes
            ),
            default=None,
        )
        return (None, None) if first is None else (first[1], max(0.0, first[0] - self._now_s()))

    def is_limited(self, partition: int) -> bool:
        """Tell whether the tenant of a partition's next record has a quota still."""
        return self._stage.quota(self._held[partition][0].tenant) is not None

    def take(self, partition: int) -> Held:
        """Return the next record of a partition. It counts as waiting until it :meth:`goes_on`."""
        return self._held[partition].popleft()

    def goes_on(self, held: Held, message: Any) -> Chosen:
        """Count off a record that waited, when it is queued and not before: what is queued next of its tenant may go
        straight on if it was the last."""
        lanes = self._lanes[message.partition]
        lanes.go_on(held.tenant, held.append_ms, self._now_s())
        if not lanes.waiting[held.tenant]:
            LOG.info("what waited of a tenant is through", tenant=held.tenant, partition=message.partition)
        return Chosen(Way.WAITED, held.tenant)

    def answered(self, message: Any, chosen: Chosen | None, outputs: list[Any]) -> None:
        """Look at what became of a record: it counts for the tenant that sent it, in whosever lane it was.

        Raises Overtaken where one that was refused is the tenant's after all, by a key that was issued in between.
        """
        lanes = self._lanes.get(message.partition)
        if lanes is None or (chosen is not None and chosen.way is Way.MOVED):
            return
        sender, tenant = self._stage.sender(outputs), None if chosen is None else chosen.tenant
        if chosen is not None and chosen.way is Way.REFUSED and sender == tenant:
            raise Overtaken(f"a key of {tenant} became known between two looks at one of its events")
        if chosen is not None and chosen.way is not Way.REFUSED and sender != tenant:
            lanes.uncount(chosen.tenant, waited=chosen.way is Way.WAITED)
        if sender is not None and sender != tenant and self._stage.is_counted(message.topic):
            lanes.charge(sender, to_record(message).timestamp_ms)

    # --- the end ---

    def drop(self) -> list[tuple[int, Any]]:
        """Hold nothing back any more; return what was, with its generation."""
        dropped = [(one.generation, one.message) for held in self._held.values() for one in held]
        self._held.clear()
        return dropped

    def forget(self, partition: int) -> None:
        """Forget a partition that is parked: it is looked at anew when it begins anew."""
        for known in (self._lanes, self._last, self._held):
            known.pop(partition, None)

    def clear(self) -> None:
        """Forget everything: the partitions were revoked or assigned anew."""
        for known in (self._lanes, self._last, self._held):
            known.clear()

    def waiting(self) -> dict[int, int]:
        """Return how many events wait on each partition."""
        return {number: lanes.waiting.total() for number, lanes in self._lanes.items()}

    def oldest_ms(self) -> int | None:
        """Return when the oldest event that is held back was appended to its intake topic (Unix ms), or None."""
        return min((held[0].append_ms for held in self._held.values() if held), default=None)
