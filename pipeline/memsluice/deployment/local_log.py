"""A durable local log in one SQLite file: topics with partitions, consumer positions, and state rows.

What Kafka is to the workers, in one file: records keep key, value, headers (ordered, repeatable, nullable) and append
time; offsets are dense per (topic, partition) and survive retention. Everything a step does is one transaction.
"""

import base64
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from memsluice.deployment import sqlite
from memsluice.errors import BrokerError, BrokerUnavailable, ConfigError, StateError
from memsluice.events.partition import partition_of
from memsluice.events.records import Headers, Output, Record, RowChange
from memsluice.topics.names import PARTITIONS

FILE_BYTES_MAX = 8 * 1024**3
PAGE_BYTES = 4_096
BUSY_MS_MAX = 10_000
READ_RECORDS_MAX = 1_000
"""Records a read fetches at a time; an iterator holds no more than this in memory."""
ROW_KEY_BYTES_MAX = 1_024
FORMAT = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ends (
  topic TEXT NOT NULL, part INTEGER NOT NULL, next INTEGER NOT NULL, PRIMARY KEY (topic, part)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS records (
  topic TEXT NOT NULL, part INTEGER NOT NULL, offs INTEGER NOT NULL,
  key BLOB, value BLOB, headers BLOB NOT NULL, append_ms INTEGER NOT NULL, PRIMARY KEY (topic, part, offs));
CREATE TABLE IF NOT EXISTS positions (
  stage TEXT NOT NULL, topic TEXT NOT NULL, part INTEGER NOT NULL, next INTEGER NOT NULL,
  PRIMARY KEY (stage, topic, part)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state_rows (
  part INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (part, key)) WITHOUT ROWID;
"""


def _headers_dump(headers: Headers) -> bytes:
    return orjson.dumps([[n, None if v is None else base64.b64encode(v).decode()] for n, v in headers])


def _headers_load(data: bytes) -> Headers:
    return tuple((name, None if text is None else base64.b64decode(text)) for name, text in orjson.loads(data))


@contextmanager
def _translated(path: Path | str) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        kind = BrokerUnavailable if sqlite.busy(error) else BrokerError
        raise kind(sqlite.in_words("the embedded log", path, error)) from error


def _after(prefix: bytes) -> bytes | None:
    """Return the smallest byte string greater than every one that starts with ``prefix`` (None: there is none)."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1]) if trimmed else None


class LocalRows:
    """State rows of one partition (:class:`memsluice.events.records.Rows`), as of the running transaction."""

    def __init__(self, connection: sqlite3.Connection, partition: int) -> None:
        self._connection = connection
        self._partition = partition

    def get(self, key: bytes) -> bytes | None:
        """Return the row's value, or None."""
        found = self._connection.execute(
            "SELECT value FROM state_rows WHERE part = ? AND key = ?", (self._partition, key)
        ).fetchone()
        return None if found is None else bytes(found[0])

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yield at most ``limit`` rows whose key starts with ``prefix`` and lies beyond ``after``, in key order."""
        start = prefix if after is None else max(prefix, after + b"\0")
        stop = _after(prefix)
        bound, values = (" AND key < ?", (stop,)) if stop is not None else ("", ())
        rows = self._connection.execute(
            f"SELECT key, value FROM state_rows WHERE part = ? AND key >= ?{bound} ORDER BY key LIMIT ?",  # noqa: S608
            (self._partition, start, *values, limit),
        ).fetchall()
        yield from ((bytes(key), bytes(value)) for key, value in rows)

    def apply(self, change: RowChange) -> None:
        """Put or delete one row."""
        if len(change.key) > ROW_KEY_BYTES_MAX:
            raise StateError(f"row key of {len(change.key)} bytes, at most {ROW_KEY_BYTES_MAX} allowed")
        if change.value is None:
            self._connection.execute("DELETE FROM state_rows WHERE part = ? AND key = ?", (self._partition, change.key))
        else:
            self._connection.execute(
                "INSERT INTO state_rows VALUES (?, ?, ?) ON CONFLICT (part, key) DO UPDATE SET value = excluded.value",
                (self._partition, change.key, change.value),
            )


class LocalLog:
    """The file. ``path`` may be ":memory:" for experiments. One connection: use it from one thread.

    ``durable`` waits for the disk at every commit (an acknowledged append survives power loss); without it only a
    process crash is survived. Several processes may append at once; SQLite serialises them. ``reading`` opens a file
    that is there and writes nothing, so it works in a home that this user cannot write.
    Raises BrokerError, BrokerUnavailable (locked for longer than 10 s), ConfigError (another partition count).
    """

    def __init__(
        self, path: Path | str, *, partitions: int = PARTITIONS, durable: bool = True, reading: bool = False
    ) -> None:
        self.partitions, self.path = partitions, path
        with _translated(path):
            if reading:
                self._connection = sqlite.for_reading(Path(path), BUSY_MS_MAX / 1000)
            else:
                self._connection = sqlite3.connect(str(path), isolation_level=None, timeout=BUSY_MS_MAX / 1000)
                self._prepare(durable)
            stored = dict(self._connection.execute("SELECT name, value FROM meta").fetchall())
        if stored != {"format": FORMAT, "partitions": partitions}:
            raise ConfigError(f"{path} was written with {stored}, not with {partitions} partitions and format {FORMAT}")

    def _prepare(self, durable: bool) -> None:
        execute = self._connection.execute
        execute(f"PRAGMA page_size = {PAGE_BYTES}")
        execute("PRAGMA journal_mode = WAL")
        execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
        execute(f"PRAGMA max_page_count = {FILE_BYTES_MAX // PAGE_BYTES}")
        self._connection.executescript(_SCHEMA)
        for name, value in (("format", FORMAT), ("partitions", self.partitions)):
            execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (name, value))

    def close(self) -> None:
        """Close the file; a transaction that was open is lost, as it would be in a crash."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is done inside becomes durable together, or not at all."""
        with _translated(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def rows(self, partition: int) -> LocalRows:
        """Return the state rows of a partition."""
        return LocalRows(self._connection, partition)

    def append(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        *,
        append_ms: int,
        partition: int | None = None,
    ) -> tuple[int, int]:
        """Append one record durably and return (partition, offset).

        The default partition is murmur2 of the key, as a producer with ``murmur2_random`` chooses it; 0 without a key.
        """
        if partition is None:
            partition = partition_of(key.decode("utf-8", "surrogateescape"), self.partitions) if key else 0
        with self.transaction():
            return partition, self.put(Output(topic, partition, key, value, headers), append_ms)

    def put(self, output: Output, append_ms: int) -> int:
        """Append one record inside the running transaction and return its offset."""
        if not 0 <= output.partition < self.partitions:
            raise StateError(f"partition {output.partition} of {output.topic} does not exist")
        execute = self._connection.execute
        (offset,) = execute(
            "INSERT INTO ends VALUES (?, ?, 1) ON CONFLICT (topic, part) DO UPDATE SET next = next + 1 "
            "RETURNING next - 1",
            (output.topic, output.partition),
        ).fetchone()
        execute(
            "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                output.topic,
                output.partition,
                offset,
                output.key,
                output.value,
                _headers_dump(output.headers),
                append_ms,
            ),
        )
        return int(offset)

    def fetch(self, topic: str, partition: int, from_offset: int, limit: int) -> list[Record]:
        """Return at most ``limit`` records of one partition, in offset order."""
        with _translated(self.path):
            rows = self._connection.execute(
                "SELECT offs, key, value, headers, append_ms FROM records "
                "WHERE topic = ? AND part = ? AND offs >= ? ORDER BY offs LIMIT ?",
                (topic, partition, from_offset, limit),
            ).fetchall()
        return [
            Record(topic, partition, offset, key, value, _headers_load(headers), append_ms)
            for offset, key, value, headers, append_ms in rows
        ]

    def read(self, topic: str, from_offset: int = 0, *, partition: int | None = None) -> Iterator[Record]:
        """Yield a topic's records, partition by partition, from an offset on (fetched 1,000 at a time)."""
        for number in range(self.partitions) if partition is None else (partition,):
            start = from_offset
            while found := self.fetch(topic, number, start, READ_RECORDS_MAX):
                yield from found
                start = found[-1].offset + 1

    def end(self, topic: str, partition: int) -> int:
        """Return the offset that the next record of this partition will get."""
        with _translated(self.path):
            found = self._connection.execute(
                "SELECT next FROM ends WHERE topic = ? AND part = ?", (topic, partition)
            ).fetchone()
        return int(found[0]) if found else 0

    def position(self, stage: str, topic: str, partition: int) -> int:
        """Return the offset that a stage reads next."""
        with _translated(self.path):
            found = self._connection.execute(
                "SELECT next FROM positions WHERE stage = ? AND topic = ? AND part = ?", (stage, topic, partition)
            ).fetchone()
        return int(found[0]) if found else 0

    def advance(self, stage: str, topic: str, partition: int, offset: int) -> None:
        """Set the offset that a stage reads next, inside the running transaction."""
        self._connection.execute(
            "INSERT INTO positions VALUES (?, ?, ?, ?) "
            "ON CONFLICT (stage, topic, part) DO UPDATE SET next = excluded.next",
            (stage, topic, partition, offset),
        )

    def prune(self, topic: str, *, before_ms: int, consumed_to: Callable[[int], int]) -> int:
        """Delete a topic's records appended before a time **and** consumed; return how many.

        ``consumed_to(partition)`` is the lowest offset a consumer still needs. Offsets are never given out again.
        """
        removed = 0
        with self.transaction():
            for partition in range(self.partitions):
                removed += self._connection.execute(
                    "DELETE FROM records WHERE topic = ? AND part = ? AND offs < ? AND append_ms < ?",
                    (topic, partition, consumed_to(partition), before_ms),
                ).rowcount
        return removed

    def compact(self, topic: str) -> int:
        """Keep only the newest record of every key of a topic (Kafka's compaction); return how many were deleted."""
        with self.transaction():
            return self._connection.execute(
                "DELETE FROM records WHERE topic = ?1 AND key IS NOT NULL AND (part, offs) NOT IN "
                "(SELECT part, MAX(offs) FROM records WHERE topic = ?1 AND key IS NOT NULL GROUP BY part, key)",
                (topic,),
            ).rowcount
