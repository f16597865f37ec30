"""A broker in memory: append-only partitions, transactions with epochs, committed offsets, compaction.

What it keeps to is what Kafka promises (KIP-98, and the log of a transactional topic): a transaction's records are
there for a reader of committed records once its marker is, none of them where it was aborted; a reader waits at the
first open transaction; a producer of an older epoch is refused; markers take offsets; compaction keeps each key's last
committed record and moves no offset. Requests arrive one at a time, in the order that the scheduler chooses.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from aiokafka.errors import (
    InvalidProducerEpoch,
    KafkaConnectionError,
    ProducerFenced,
)

from memsluice.events.records import Headers, Record

TP = tuple[str, int]
"""Topic and partition."""
GATHERED_MAX: Final = 1_000_000


class Message(NamedTuple):
    """What a producer sends to one partition."""

    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(slots=True, eq=False)
class Transaction:
    """One transaction: which partitions it touched, and how it ended (None: it is open)."""

    began_s: float
    touched: dict[TP, int] = field(default_factory=dict)
    """First offset of each partition."""
    offsets: dict[str, dict[TP, int]] = field(default_factory=dict)
    """What it commits for groups."""
    committed: bool | None = None


class Entry:
    """One record of the log, or a marker."""

    __slots__ = ("marker", "offset", "record", "transaction")

    def __init__(self, record: Record, transaction: Transaction | None, *, marker: bool = False) -> None:
        self.record = record
        self.offset = record.offset
        self.transaction = transaction
        self.marker = marker


class Log:
    """One partition."""

    def __init__(self, topic: str, partition: int) -> None:
        self.name = (topic, partition)
        self.end = 0
        self.start = 0
        self.entries: list[Entry] = []
        self.gone: list[Entry] = []
        """What compaction removed: for the judge, who wants to know all that was ever said."""
        self.open: dict[int, Transaction] = {}
        """First offset of every open transaction."""

    def append(self, message: Message, append_ms: int, transaction: Transaction | None = None) -> int:
        """Append one record; return its offset."""
        record = Record(*self.name, self.end, message.key, message.value, message.headers, append_ms)
        self.entries.append(Entry(record, transaction))
        if transaction is not None and self.name not in transaction.touched:
            transaction.touched[self.name] = self.end
            self.open[self.end] = transaction
        self.end += 1
        return self.end - 1

    def mark(self, transaction: Transaction, append_ms: int) -> None:
        """Append the marker by which a transaction ends here."""
        del self.open[transaction.touched[self.name]]
        self.entries.append(Entry(Record(*self.name, self.end, None, None, (), append_ms), transaction, marker=True))
        self.end += 1

    def stable(self) -> int:
        """Return the offset before which everything is decided."""
        return min(self.open) if self.open else self.end

    def _from(self, offset: int) -> int:
        if self.end - self.start == len(self.entries):
            return max(0, offset - self.start)
        return bisect_left(self.entries, offset, key=lambda entry: entry.offset)

    def fetch(self, offset: int, most: int, *, committed: bool = True) -> tuple[list[Record], int]:
        """Return the next records that a reader is given, and the offset at which it goes on."""
        found: list[Record] = []
        end = self.stable() if committed else self.end
        entries = self.entries
        for number in range(self._from(offset), len(entries)):
            entry = entries[number]
            if entry.offset >= end or len(found) == most:
                return found, min(entry.offset, end)
            transaction = entry.transaction
            if not entry.marker and (not committed or transaction is None or transaction.committed):
                found.append(entry.record)
        return found, max(offset, end)

    def read(self, offset: int = 0) -> Iterator[Record]:
        """Yield every committed record from an offset on."""
        yield from self.fetch(offset, GATHERED_MAX)[0]

    def compact(self) -> int:
        """Keep the last committed record of each key, and what is not decided; return how many records went."""
        stable, seen = self.stable(), set[bytes | None]()
        kept: list[Entry] = []
        for entry in reversed(self.entries):
            if entry.offset >= stable:
                kept.append(entry)
            elif entry.marker or (entry.transaction is not None and not entry.transaction.committed):
                continue
            elif entry.record.key not in seen:
                seen.add(entry.record.key)
                kept.append(entry)
            else:
                self.gone.append(entry)
        kept.reverse()
        gone, self.entries = len(self.entries) - len(kept), kept
        return gone

    def ever(self) -> list[Record]:
        """Return every record that was ever committed, in order."""
        there = list(self.read(self.start))
        if not self.gone:
            return there
        return sorted([*there, *(entry.record for entry in self.gone)], key=lambda record: record.offset)


@dataclass(slots=True)
class Identity:
    """What the coordinator knows of a transactional id."""

    epoch: int = -1
    open: Transaction | None = None


class Broker:
    """All topics, transactional ids and groups. ``now_ms`` is the broker's own clock (Unix ms)."""

    def __init__(self, now_s: Callable[[], float], now_ms: Callable[[], int]) -> None:
        self._now_s = now_s
        self._now_ms = now_ms
        self._logs: dict[TP, Log] = {}
        self._identities: dict[str, Identity] = defaultdict(Identity)
        self.committed: dict[str, dict[TP, int]] = defaultdict(dict)
        self.down = False
        self.refused = 0
        """Requests of former owners that were refused."""

    def log(self, topic: str, partition: int) -> Log:
        """Return a partition."""
        log = self._logs.get((topic, partition))
        if log is None:
            log = self._logs[topic, partition] = Log(topic, partition)
        return log

    def logs(self, topic: str) -> list[Log]:
        """Return the partitions of a topic that were written to, by number."""
        return [log for name, log in sorted(self._logs.items()) if name[0] == topic]

    def answer(self) -> None:
        """Raise where the broker is away."""
        if self.down:
            raise KafkaConnectionError("the broker is away")

    # --- producing ---

    def produce(self, tp: TP, messages: Iterable[Message]) -> list[int]:
        """Append records of a producer without transactions; return their offsets."""
        self.answer()
        now_ms, log = self._now_ms(), self.log(*tp)
        return [log.append(message, now_ms) for message in messages]

    def identify(self, name: str) -> int:
        """Give a transactional id to who asks: what its former owner had open is aborted. Returns the epoch."""
        self.answer()
        identity = self._identities[name]
        self._end(identity, commit=False)
        identity.epoch += 1
        return identity.epoch

    def produce_in(self, name: str, epoch: int, tp: TP, messages: Iterable[Message]) -> list[int]:
        """Append records to the open transaction, which begins with the first ones."""
        transaction = self._transaction(name, epoch)
        now_ms, log = self._now_ms(), self.log(*tp)
        return [log.append(message, now_ms, transaction) for message in messages]

    def offsets_in(self, name: str, epoch: int, group: str, offsets: dict[TP, int]) -> None:
        """Add a group's offsets to the open transaction."""
        self._transaction(name, epoch).offsets.setdefault(group, {}).update(offsets)

    def end_in(self, name: str, epoch: int, *, commit: bool) -> None:
        """Commit or abort the open transaction."""
        self._check(name, epoch)
        self._end(self._identities[name], commit=commit)

    def expire(self, timeout_s: float) -> None:
        """Abort transactions that are open for so long, and shut out who left them open."""
        for identity in self._identities.values():
            if identity.open is not None and self._now_s() - identity.open.began_s >= timeout_s:
                self._end(identity, commit=False)
                identity.epoch += 1

    def _check(self, name: str, epoch: int) -> None:
        self.answer()
        if epoch != self._identities[name].epoch:
            self.refused += 1
            raise (ProducerFenced if self.refused % 2 else InvalidProducerEpoch)

    def _transaction(self, name: str, epoch: int) -> Transaction:
        self._check(name, epoch)
        identity = self._identities[name]
        if identity.open is None:
            identity.open = Transaction(self._now_s())
        return identity.open

    def _end(self, identity: Identity, *, commit: bool) -> None:
        transaction, identity.open = identity.open, None
        if transaction is None:
            return
        transaction.committed = commit
        now_ms = self._now_ms()
        for tp in transaction.touched:
            self.log(*tp).mark(transaction, now_ms)
        if commit:
            for group, offsets in transaction.offsets.items():
                self.committed[group].update(offsets)

    # --- groups ---

    def is_behind(self, group: str, topics: Iterable[str]) -> bool:
        """Whether there is a record of these topics, committed or under way, that the group has not got past."""
        done = self.committed[group]
        for topic in topics:
            for log in self.logs(topic):
                place = done.get(log.name, log.start)
                if log.open or (place < log.end and log.fetch(place, 1)[0]):
                    return True
        return False
