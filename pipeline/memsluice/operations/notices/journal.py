"""What was told, and what is still to be sent: one SQLite file in the home, which survives a process that is killed.

A notice, and up to when its subject is told with it, become durable together before anything is sent. So each notice is
written once; one whose process died between the sending and the noting of it is sent again, under the same id.
"""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from memsluice.deployment import sqlite
from memsluice.deployment.paths import private_file, using
from memsluice.errors import ConfigError
from memsluice.operations.held.entries import DAY_MS
from memsluice.operations.notices.judging import Notice, NoticeKind

FILE = "notices.sqlite3"
WHAT = "the journal of notices"
DELETE = "delete it, and what is open is told once more"
BUSY_S_MAX = 10.0
FIRST_WAIT_MS = 30_000
WAIT_MS_MAX = 3_600_000
ATTEMPTS_MAX = 14
"""Attempts at one delivery; with the waits between them about eight hours."""
DONE_KEPT_MS = 7 * DAY_MS
"""How long a delivery that ended is kept, by when it was last tried."""
TOLD_KEPT_MS = 60 * DAY_MS
"""How long a subject is remembered: longer than a held write may wait."""
DUE_MAX = 200
"""Deliveries over one channel that are tried in one round."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS told (subject TEXT PRIMARY KEY, up_to_ms INTEGER NOT NULL, at_ms INTEGER NOT NULL)
  WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS deliveries (
  notice TEXT NOT NULL, channel TEXT NOT NULL, made_ms INTEGER NOT NULL, body BLOB NOT NULL, attempts INTEGER NOT NULL,
  due_ms INTEGER NOT NULL, state TEXT NOT NULL, PRIMARY KEY (notice, channel)) WITHOUT ROWID;
DROP INDEX IF EXISTS by_due;
CREATE INDEX IF NOT EXISTS by_channel ON deliveries (state, channel, made_ms);
"""
WAITING, SENT, GIVEN_UP = "waiting", "sent", "given up"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A notice that is to be sent over one channel, when it was made (Unix ms), and how often that was tried."""

    notice: Notice
    channel: str
    made_ms: int
    attempts: int


def wait_ms(attempts: int) -> int:
    """Return how long to wait after so many failed attempts: twice as long each time."""
    return int(min(FIRST_WAIT_MS * 2 ** max(0, attempts - 1), WAIT_MS_MAX))


class Journal:
    """The journal of one home, for one process at a time (``notices run`` holds a lock) and any number of its threads.

    Every use raises ConfigError where the file cannot be used, or is damaged: what was told must not be forgotten in
    silence.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        self._lock = threading.RLock()
        with using(self._path):
            private_file(self._path)
        with self._in_words():
            self._connection = sqlite3.connect(
                self._path, isolation_level=None, timeout=BUSY_S_MAX, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.executescript(SCHEMA)

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()

    def told(self) -> dict[str, int]:
        """Return up to when (Unix ms) each subject was told."""
        with self._in_words():
            return dict(self._connection.execute("SELECT subject, up_to_ms FROM told").fetchall())

    def add(self, notices: Iterable[Notice], channels: Sequence[str], now_ms: int) -> int:
        """Remember notices as told, and what is to be sent over which channel; return how many were new."""
        new = 0
        with self._transaction() as connection:
            for one in notices:
                connection.execute("INSERT OR REPLACE INTO told VALUES (?, ?, ?)", (one.subject, one.up_to_ms, now_ms))
                for channel in channels:
                    row = (one.id, channel, now_ms, orjson.dumps(one), now_ms, WAITING)
                    done = connection.execute("INSERT OR IGNORE INTO deliveries VALUES (?, ?, ?, ?, 0, ?, ?)", row)
                    new += done.rowcount
        return new // max(1, len(channels))

    def due(self, channel: str, now_ms: int) -> list[Delivery]:
        """Return at most DUE_MAX deliveries over a channel that are to be tried now, the oldest first.

        Each channel is asked about by itself: what waits for one that takes nothing keeps nothing from another.
        """
        with self._in_words():
            found = self._connection.execute(
                "SELECT body, made_ms, attempts FROM deliveries WHERE state = ? AND channel = ? AND due_ms <= ? "
                "ORDER BY made_ms LIMIT ?",
                (WAITING, channel, now_ms, DUE_MAX),
            ).fetchall()
        return [Delivery(_notice(body), channel, made_ms, attempts) for body, made_ms, attempts in found]

    def sent(self, delivery: Delivery, now_ms: int) -> None:
        """Note that a notice was taken."""
        self._ended(delivery, SENT, now_ms)

    def failed(self, delivery: Delivery, now_ms: int) -> bool:
        """Note that one was not, and when it is tried again; return False where it is given up."""
        attempts = delivery.attempts + 1
        if attempts >= ATTEMPTS_MAX:
            self._ended(delivery, GIVEN_UP, now_ms)
            return False
        with self._transaction() as connection:
            connection.execute(
                "UPDATE deliveries SET attempts = ?, due_ms = ? WHERE notice = ? AND channel = ?",
                (attempts, now_ms + wait_ms(attempts), delivery.notice.id, delivery.channel),
            )
        return True

    def dropped(self, channels: Sequence[str], now_ms: int) -> int:
        """Give up what waits for channels that the settings have no more; return how many there were."""
        known = ", ".join("?" * len(channels))
        with self._transaction() as connection:
            return connection.execute(
                f"UPDATE deliveries SET state = ?, due_ms = ? WHERE state = ? AND channel NOT IN ({known})",  # noqa: S608
                (GIVEN_UP, now_ms, WAITING, *channels),
            ).rowcount

    def waiting(self) -> tuple[int, int | None]:
        """Return how many deliveries wait, and since when (Unix ms) the oldest does."""
        with self._in_words():
            (row,) = self._connection.execute(
                "SELECT count(*), min(made_ms) FROM deliveries WHERE state = ?", (WAITING,)
            ).fetchall()
        return row[0], row[1]

    def forget(self, now_ms: int) -> None:
        """Let go what ended, or was told, long ago."""
        with self._transaction() as connection:
            connection.execute(
                "DELETE FROM deliveries WHERE state <> ? AND due_ms <= ?", (WAITING, now_ms - DONE_KEPT_MS)
            )
            connection.execute("DELETE FROM told WHERE at_ms <= ?", (now_ms - TOLD_KEPT_MS,))

    def _ended(self, delivery: Delivery, state: str, now_ms: int) -> None:
        with self._transaction() as connection:
            connection.execute(
                "UPDATE deliveries SET state = ?, attempts = attempts + 1, due_ms = ? WHERE notice = ? AND channel = ?",
                (state, now_ms, delivery.notice.id, delivery.channel),
            )

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            if isinstance(error, sqlite3.DatabaseError) and sqlite.damaged(error):
                raise ConfigError(f"{WHAT} {self._path} is damaged: {DELETE}") from error
            raise ConfigError(sqlite.in_words(WHAT, self._path, error)) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._in_words():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise


def _notice(body: bytes) -> Notice:
    value = orjson.loads(body)
    return Notice(**{**value, "kind": NoticeKind(value["kind"])})
