"""What memory.store.v1 says of every object, held against the store: by *land* before it writes, and by the sweep.

A compacted log keeps the last record of an object for ever, its withdrawal too. So the log itself is the floor below
which no version of an object may be published again, and nothing here needs to last: a worker reads the log of a
partition when the partition comes to it, and keeps what it read in a temporary SQLite database, which the system
removes with the process. That bounds the memory (the page cache, CACHE_KIB) and takes some 72 bytes of disk an object.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import StoreRecord, stored_of_record
from memsluice.errors import StoreUnavailable
from memsluice.events.models import Zone
from memsluice.events.records import Record
from memsluice.log import get_logger
from memsluice.stores.base import over

CACHE_KIB = 32_768
READ_AT_ONCE = 1_000
"""Records that are read before they are put into the database together, and between two looks at the stop."""
LOOK_EVERY_S = 0.1
"""How long one thread waits for another's reading of a partition between two looks at the stop."""
IDS_A_STATEMENT = 500
_SCHEMA = """
CREATE TABLE known (
    tenant TEXT NOT NULL, zone TEXT NOT NULL, object_id TEXT NOT NULL, version INTEGER NOT NULL,
    withdrawn INTEGER NOT NULL, expires_ms INTEGER, place INTEGER, part INTEGER NOT NULL,
    PRIMARY KEY (tenant, zone, object_id)
) WITHOUT ROWID;
CREATE TABLE said (
    tenant TEXT NOT NULL, zone TEXT NOT NULL, object_id TEXT NOT NULL, version INTEGER NOT NULL,
    withdrawn INTEGER NOT NULL, expires_ms INTEGER, place INTEGER, part INTEGER NOT NULL,
    PRIMARY KEY (tenant, zone, object_id)
) WITHOUT ROWID;
CREATE INDEX said_versions ON said (part, version);
CREATE TABLE unreadable (part INTEGER NOT NULL, object_id TEXT NOT NULL, PRIMARY KEY (part, object_id)) WITHOUT ROWID;
CREATE TABLE ends (part INTEGER PRIMARY KEY, version INTEGER NOT NULL);
CREATE TABLE tenants (part INTEGER NOT NULL, tenant TEXT NOT NULL, PRIMARY KEY (part, tenant)) WITHOUT ROWID;
"""
_PUT = """
INSERT INTO {} VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, zone, object_id) DO UPDATE SET version = excluded.version, withdrawn = excluded.withdrawn,
    expires_ms = excluded.expires_ms, place = coalesce(excluded.place, place)
WHERE excluded.version >= version
"""
_PUT_END = "INSERT INTO ends VALUES (?, ?) ON CONFLICT DO UPDATE SET version = max(version, excluded.version)"
_PUT_TENANT = "INSERT OR IGNORE INTO tenants VALUES (?, ?)"
_KNOWN = "SELECT object_id, version, withdrawn, expires_ms, place FROM {} WHERE tenant = ? AND zone = ?"
_TENANTS = "SELECT tenant FROM tenants WHERE part IN ({}) UNION SELECT tenant FROM said WHERE part IN ({})"
_HIGHEST = "SELECT version FROM ends WHERE part = ? UNION ALL SELECT max(version) FROM said WHERE part = ?"
_UNREADABLE = "SELECT object_id FROM unreadable WHERE part = ? AND object_id IN ({})"
_CONFIRM = "DELETE FROM said WHERE tenant = ? AND zone = ? AND object_id = ? AND version <= ?"


_LOG = get_logger(__name__)
Ended = Callable[[], bool]
"""Is asked by whoever waits, or reads for long; says True once nobody waits for it any more."""


class Reader(Protocol):
    """A reader of one topic (:class:`memsluice.readers.base.TopicReader`), as much of it as is needed here."""

    def read(self, partition: int, from_offset: int = 0) -> Iterator[Record]:
        """Yield what the partition holds from an offset to its present end. Raises BrokerUnavailable."""


class Known(NamedTuple):
    """What the log says of an object. ``expires_ms`` is Unix ms, ``place`` its offset in memory.accepted.v1."""

    version: int
    withdrawn: bool
    expires_ms: int | None
    place: int | None

    def lies(self, now_ms: int) -> bool:
        """Whether the object should lie in the store at this time (Unix ms)."""
        return not self.withdrawn and not over(self.expires_ms, now_ms)


class _Open:
    """A reader that asks its present user whether to stop."""

    def __init__(self, log: Callable[[Ended], Reader]) -> None:
        self.ended: Ended = bool
        self.reader = log(self._is_ended)

    def _is_ended(self) -> bool:
        return self.ended()


class LogIndex:
    """The last record of every object of the partitions that were read. Safe for several threads: nobody waits while
    another partition is being read.

    What *land* is about to say (:meth:`say`) counts as said, until it is read or :meth:`forget_said`: what comes of a
    transaction that is given up is another owner's to decide.

    ``log`` opens a reader of memory.store.v1, which asks what it is given whether to stop; ``keys`` gives the keyring
    that seals are verified with. Records that do not verify are left out: a stranger's record must not keep an object
    out for ever. But what such a record was about is remembered until a later one verifies (:meth:`unreadable`): it may
    be the gate's own, under a key that is lost or revoked. ``forged`` is told how many there were.
    """

    def __init__(self, log: Callable[[Ended], Reader], keys: Callable[[], Keyring]) -> None:
        self._log = log
        self._keys = keys
        self._lock = threading.RLock()
        """Held for single statements and for what was read together, never for a reading."""
        self._readings: dict[int, threading.Lock] = {}
        self._next: dict[int, int] = {}
        self._idle: list[_Open] = []
        """Readers that nobody uses; there are as many as there were readings at the same time."""
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._database.execute("PRAGMA journal_mode = MEMORY")  # for a disk that is full, not for a crash
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.executescript(_SCHEMA)
        self.unverified = 0
        self.forged: Callable[[int], None] = _ignore

    def catch_up(self, partition: int, ended: Ended = bool) -> None:
        """Read the partition on from where the last reading ended. Raises BrokerUnavailable.

        ``ended`` is asked in between; once it says True, StoreUnavailable or BrokerUnavailable is raised, and the next
        call goes on. What another thread is reading of the partition is waited for.
        """
        with self._alone(partition, ended), self._reader(ended) as reader:
            keyring, batch = self._keys(), list[Record]()
            for record in reader.read(partition, self._next.get(partition, 0)):
                batch.append(record)
                if len(batch) >= READ_AT_ONCE:
                    self._take(partition, batch, keyring)
                    batch = []
                    if ended():
                        raise StoreUnavailable("the reader of the store log was told to stop")
            self._take(partition, batch, keyring)

    @contextmanager
    def _alone(self, partition: int, ended: Ended) -> Iterator[None]:
        with self._lock:
            reading = self._readings.setdefault(partition, threading.Lock())
        while not reading.acquire(timeout=LOOK_EVERY_S):
            if ended():
                raise StoreUnavailable("told to stop while the store log was being read")
        try:
            yield
        finally:
            reading.release()

    @contextmanager
    def _reader(self, ended: Ended) -> Iterator[Reader]:
        with self._lock:
            opened = self._idle.pop() if self._idle else None
        opened = opened or _Open(self._log)
        opened.ended = ended
        try:
            yield opened.reader
        finally:
            with self._lock:
                self._idle.append(opened)

    def _take(self, partition: int, records: Sequence[Record], keyring: Keyring) -> None:
        if not records:
            return
        found, forged = [], []
        verifies = dict[str, bool]()
        """Whether the last record of each object does."""
        for record in records:
            if record.value is None:  # the bytes are erased; what is known of the object stays its floor
                verifies[(record.key or b"").decode(errors="replace")] = True
                continue
            if (stored := stored_of_record(keyring, record)) is None:
                forged.append(record.offset)
            else:
                found.append(stored)
            verifies[(record.key or b"").decode(errors="replace")] = stored is not None
        self._put(partition, found)
        self._remember(partition, verifies)
        self._next[partition] = records[-1].offset + 1
        if forged:
            self.unverified += len(forged)
            self.forged(len(forged))
            _LOG.error("records of the store log do not verify, and count for nothing", partition=partition,
                       records=len(forged), first_offset=forged[0])  # fmt: skip

    def say(self, partition: int, records: Iterable[StoreRecord]) -> None:
        """Take in what the log will say; of an object the highest version counts."""
        rows = _rows(partition, records)
        with self._lock, self._whole():
            self._database.executemany(_PUT.format("said"), rows)

    def forget_said(self, partition: int | None = None) -> None:
        """Know nothing any more of a partition, or (None) of any, but what was read: what was said since is given up,
        or read before it is asked for."""
        with self._lock, self._whole():
            self._database.execute("DELETE FROM said WHERE ? IS NULL OR part = ?", (partition, partition))

    def _put(self, partition: int, records: Iterable[StoreRecord]) -> None:
        """Take in what the log says; of an object the highest version counts."""
        rows = _rows(partition, records)
        if not rows:
            return
        with self._lock, self._whole():
            self._database.executemany(_PUT.format("known"), rows)
            self._database.execute(_PUT_END, (partition, max(row[3] for row in rows)))
            self._database.executemany(_PUT_TENANT, [(partition, one) for one in sorted({row[0] for row in rows})])
            if self._database.execute("SELECT 1 FROM said LIMIT 1").fetchone():
                self._database.executemany(_CONFIRM, [row[:4] for row in rows])

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Have the database take all of it or nothing. On a full disk, as a rule, it is nothing."""
        self._database.execute("BEGIN")
        try:
            yield
            self._database.execute("COMMIT")
        except sqlite3.Error:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")  # the next one can begin
            raise

    def _remember(self, partition: int, verifies: Mapping[str, bool]) -> None:
        forget = [(partition, one) for one, does in verifies.items() if does]
        keep = [(partition, one) for one, does in verifies.items() if not does]
        with self._lock, self._whole():
            self._database.executemany("DELETE FROM unreadable WHERE part = ? AND object_id = ?", forget)
            self._database.executemany("INSERT OR IGNORE INTO unreadable VALUES (?, ?)", keep)

    def unreadable(self, partition: int, ids: Iterable[str]) -> frozenset[str]:
        """Return those of the objects whose last record does not verify: nobody can say what should lie there."""
        wanted, found = list(ids), set[str]()
        with self._lock:
            for start in range(0, len(wanted), IDS_A_STATEMENT):
                part = wanted[start : start + IDS_A_STATEMENT]
                rows = self._database.execute(_UNREADABLE.format(", ".join("?" * len(part))), (partition, *part))
                found.update(one for (one,) in rows)
        return frozenset(found)

    def highest(self, partition: int) -> int:
        """Return the highest version of any object of the partition, -1 where it has none."""
        with self._lock:
            rows = self._database.execute(_HIGHEST, (partition, partition)).fetchall()
        return max((int(version) for (version,) in rows if version is not None), default=-1)

    def known(self, tenant: str, zone: Zone, ids: Sequence[str]) -> dict[str, Known]:
        """Return what the log says of those of the objects that it knows."""
        found: dict[str, Known] = {}
        with self._lock:
            for start in range(0, len(ids), IDS_A_STATEMENT):
                part = ids[start : start + IDS_A_STATEMENT]
                marks = ", ".join("?" * len(part))
                found |= self._asked(f"AND object_id IN ({marks})", (tenant, zone.value, *part))
        return found

    def between(self, tenant: str, zone: Zone, after: str, until: str | None, limit: int) -> dict[str, Known]:
        """Return what the log says of objects whose id lies after ``after`` and not after ``until`` (None: no end)."""
        condition = "AND object_id > ? AND (? IS NULL OR object_id <= ?) ORDER BY object_id LIMIT ?"
        with self._lock:
            found = self._asked(condition, (tenant, zone.value, after, until, until, limit))
        return {one: found[one] for one in sorted(found)[:limit]}

    def _asked(self, condition: str, values: Sequence[object]) -> dict[str, Known]:
        found = dict[str, Known]()
        for table in ("known", "said"):
            rows = self._database.execute(f"{_KNOWN.format(table)} {condition}", values)
            for one, version, withdrawn, expires_ms, place in rows:
                before = found.get(one)
                if before is None or version >= before.version:
                    kept = before.place if before is not None and place is None else place
                    found[one] = Known(version, bool(withdrawn), expires_ms, kept)
        return found

    def tenants(self, partitions: Iterable[int]) -> list[str]:
        """Return the tenants that the log of these partitions tells of, sorted."""
        wanted = sorted(partitions)
        marks = ", ".join("?" * len(wanted))
        with self._lock:
            rows = self._database.execute(_TENANTS.format(marks, marks), (*wanted, *wanted))
            return sorted(tenant for (tenant,) in rows)

    def close(self) -> None:
        """Let the database go."""
        with self._lock:
            self._database.close()


def _ignore(_records: int) -> None:
    return None


def _rows(partition: int, records: Iterable[StoreRecord]) -> list[tuple[Any, ...]]:
    return [
        (one.tenant, one.zone.value, one.object_id, one.version, one.withdrawn, one.expires_ms, one.place, partition)
        for one in records
    ]
