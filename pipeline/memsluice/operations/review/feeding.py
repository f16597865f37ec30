"""What the topics hold since the last time goes into the index; every record's seal is verified first.

Rows, and the place up to which a topic was read, become durable together, a batch at a time. So a process that is
killed goes on where its last batch ended, and of two that feed at once each batch counts once: whoever finds that the
place moved meanwhile reads on from there.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple, Protocol

from memsluice.events.records import Record
from memsluice.operations.held.entries import DAY_MS
from memsluice.operations.review.database import Database
from memsluice.operations.review.grouping import IDLE_MS_MAX
from memsluice.operations.review.taking import Taker, TakesAudit, TakesHeld
from memsluice.readers.base import TopicReader
from memsluice.topics.names import AUDIT, QUARANTINE

BATCH = 500
"""Records that go into the index together."""
LAPSED_KEPT_MS = 7 * DAY_MS
"""How long the row of a lapsed write is kept, without its preview."""
MARK_BYTES = 16
UNVERIFIED = "unverified"
_PLACED = "SELECT next, mark FROM places WHERE topic = ? AND part = ?"
_PLACE = """
INSERT INTO places VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET next = excluded.next, mark = excluded.mark, unverified = unverified + excluded.unverified
"""


class Desk(Protocol):
    """What is read (:class:`memsluice.operations.held.desk.HeldDesk`)."""

    @property
    def held(self) -> TopicReader:
        """The quarantine topic."""

    @property
    def audit(self) -> TopicReader:
        """The audit topic."""


@dataclass(frozen=True, slots=True)
class FedCounts:
    """What a feeding took in: held writes, commands about them, records whose seals do not verify, and the partitions
    whose topics had been made anew, so that they were read from the beginning."""

    entries: int = 0
    rulings: int = 0
    unverified: int = 0
    begun_anew: tuple[int, ...] = ()

    def plus(self, other: "FedCounts") -> "FedCounts":
        """Return what both took in."""
        return FedCounts(
            self.entries + other.entries,
            self.rulings + other.rulings,
            self.unverified + other.unverified,
            (*self.begun_anew, *other.begun_anew),
        )


class Place(NamedTuple):
    """Up to where a topic was read: the next offset, and a mark of the record before it (b"": there is none)."""

    next: int = 0
    mark: bytes = b""


class _MadeAnew(Exception):
    """The topic is not the one that was read before."""


class _Moved(Exception):
    """Another process fed meanwhile."""


class Feeder:
    """Feeds an index. It remembers where topics ended the last time, and reads nothing where they end there still."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._read_to: dict[tuple[str, int], tuple[int, Place]] = {}

    def feed(self, desk: Desk, partition: int, takes_held: TakesHeld, takes_audit: TakesAudit) -> FedCounts:
        """Read a partition of both topics to its present end. Raises BrokerUnavailable, ConfigError, StateError."""
        tally = Counter[str]()
        begun_anew: tuple[int, ...] = ()
        while True:
            audit_end = desk.audit.end(partition)  # first: by then a command's write lies in the quarantine
            held_end = desk.held.end(partition)
            try:
                self._read(QUARANTINE, desk.held, partition, held_end, takes_held, tally)
                self._read(AUDIT, desk.audit, partition, audit_end, takes_audit, tally)
            except _MadeAnew:
                self.forget(partition)
                begun_anew, tally = (partition,), Counter()
            except _Moved:
                continue
            else:
                return FedCounts(tally[QUARANTINE], tally[AUDIT], tally[UNVERIFIED], begun_anew)

    def _read(
        self, topic: str, reader: TopicReader, partition: int, end: int, taker: Taker[Any], tally: Counter[str]
    ) -> None:
        """Read one topic, and count what was new in it by its name, and what did not verify."""
        found = self._database.rows(_PLACED, (topic, partition))
        place = Place(*found[0]) if found else self._first(topic, reader, partition, end)
        if found and self._read_to.get((topic, partition)) == (end, place):
            return
        behind = _behind(reader, partition, place, end)
        while records := list(islice(behind, BATCH)):
            prepared, wrong = taker.prepare(records)
            tally[topic] += self._put(topic, partition, place, records, taker, prepared, wrong)
            tally[UNVERIFIED] += wrong
            place = Place(records[-1].offset + 1, mark_of(records[-1]))
        if not found and not place.mark:
            self._put(topic, partition, place, [], taker, [], 0)  # nothing yet: it begins here the next time
        self._read_to[topic, partition] = end, place

    def _first(self, topic: str, reader: TopicReader, partition: int, end: int) -> Place:
        """Return where a topic is begun that was never read: the audit where the oldest held write was held."""
        if topic == QUARANTINE:
            return Place()
        ((oldest_ms,),) = self._database.rows("SELECT min(held_ms) FROM entries WHERE part = ?", (partition,))
        return Place(end if oldest_ms is None else reader.at(partition, oldest_ms))

    def _put(
        self, topic: str, partition: int, place: Place, records: list[Record], taker: Taker[Any],
        prepared: list[Any], unverified: int,
    ) -> int:  # fmt: skip
        last = Place(records[-1].offset + 1, mark_of(records[-1])) if records else place
        with self._database.transaction() as connection:
            found = connection.execute(_PLACED, (topic, partition)).fetchone()
            if found is not None and Place(*found) != place:
                raise _Moved
            new = taker.put(connection, prepared)
            connection.execute(_PLACE, (topic, partition, *last, unverified))
        return new

    def forget(self, partition: int) -> None:
        """Know nothing any more of a partition."""
        with self._database.transaction() as connection:
            for table in ("entries", "places"):
                connection.execute(f"DELETE FROM {table} WHERE part = ?", (partition,))  # noqa: S608
            connection.execute("DELETE FROM live WHERE tenant NOT IN (SELECT tenant FROM entries)")

    def expire(self, now_ms: int) -> None:
        """Let go what lapsed by a time (Unix ms): previews at once, rows a week later, and groups nobody can join."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM entries WHERE until_ms <= ?", (now_ms - LAPSED_KEPT_MS,))
            connection.execute("UPDATE entries SET preview = '' WHERE until_ms <= ? AND preview <> ''", (now_ms,))
            connection.execute("DELETE FROM live WHERE joined_ms <= ?", (now_ms - IDLE_MS_MAX,))


def _behind(reader: TopicReader, partition: int, place: Place, end: int) -> Iterator[Record]:
    """Yield the records from a place to an end; the record before the place must be the one that it was.

    Raises _MadeAnew where it is another one, or is missing though older ones are there: the topic was made anew.
    """
    if place.next > end:
        raise _MadeAnew
    for record in reader.read(partition, place.next - bool(place.mark)):
        if record.offset >= end:
            return
        if record.offset < place.next:
            if mark_of(record) != place.mark:
                raise _MadeAnew
            place = Place(place.next)
        elif place.mark:
            break
        else:
            yield record
    else:
        return
    if (oldest := next(reader.read(partition), None)) is not None and oldest.offset < place.next:
        raise _MadeAnew
    yield from _behind(reader, partition, Place(place.next), end)


def mark_of(record: Record) -> bytes:
    """Return what tells a record from any other at its offset."""
    parts = (str(record.offset).encode(), str(record.timestamp_ms).encode(), record.key or b"", record.value or b"")
    return blake2b(b"\0".join(parts), digest_size=MARK_BYTES).digest()
