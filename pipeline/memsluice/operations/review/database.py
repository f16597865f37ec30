"""The file of the index: one SQLite file in the home, made anew where it is damaged or of another form.

Nothing in it is the only copy of anything: all of it is read again from the topics. Several processes may have it open,
and several threads may use one object.
"""

import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from memsluice.deployment import sqlite
from memsluice.deployment.paths import private_file
from memsluice.errors import ConfigError, StateError
from memsluice.log import get_logger
from memsluice.operations.review.rows import COLUMNS, FORM

BUSY_S_MAX = 10.0
CACHE_KIB = 16_384
WHAT = "the index of held writes"
CHANGED = "UPDATE meta SET value = value + 1 WHERE name = 'version'"
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS places (
  topic TEXT NOT NULL, part INTEGER NOT NULL, next INTEGER NOT NULL, mark BLOB NOT NULL, unverified INTEGER NOT NULL,
  PRIMARY KEY (topic, part)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, {", ".join(COLUMNS)}, UNIQUE (tenant, event_id, offs));
CREATE INDEX IF NOT EXISTS by_time ON entries (held_ms, part, record_offs);
CREATE INDEX IF NOT EXISTS by_state ON entries (state, held_ms, part, record_offs);
CREATE INDEX IF NOT EXISTS by_tenant ON entries (tenant, state, held_ms, part, record_offs);
CREATE INDEX IF NOT EXISTS by_group ON entries (tenant, group_id, held_ms, part, record_offs);
CREATE INDEX IF NOT EXISTS by_until ON entries (until_ms);
CREATE TABLE IF NOT EXISTS live (
  tenant TEXT NOT NULL, reason TEXT NOT NULL, kid TEXT NOT NULL, model TEXT NOT NULL,
  place INTEGER NOT NULL, group_id TEXT NOT NULL, vector BLOB NOT NULL, joined_ms INTEGER NOT NULL);
CREATE TRIGGER IF NOT EXISTS more AFTER INSERT ON entries BEGIN {CHANGED}; END;
CREATE TRIGGER IF NOT EXISTS other AFTER UPDATE ON entries BEGIN {CHANGED}; END;
CREATE TRIGGER IF NOT EXISTS fewer AFTER DELETE ON entries BEGIN {CHANGED}; END;
CREATE INDEX IF NOT EXISTS live_by_key ON live (tenant, reason, kid, model, place);
"""
_LOG = get_logger(__name__)


class Database:
    """The file, or where the home cannot be written a temporary one, which goes with the process.

    Raises ConfigError where it cannot be opened, is held by another process for long, or its disk is full.
    """

    def __init__(self, path: Path) -> None:
        self.path: Path | None = path
        self._lock = threading.RLock()
        try:
            private_file(path)
        except OSError:  # read where nobody here can write: a copy for this process alone
            self.path = None
        self._connection = self._opened()

    def _opened(self) -> sqlite3.Connection:
        try:
            return self._connected()
        except sqlite3.DatabaseError as error:
            if not sqlite.damaged(error):
                raise self._in_words(error) from error
            self._remove(str(error))
        try:
            return self._connected()
        except sqlite3.DatabaseError as error:
            raise self._in_words(error) from error

    def _connected(self) -> sqlite3.Connection:
        """Open the file and make what it lacks; a file of another form is emptied first."""
        where = "" if self.path is None else str(self.path)
        connection = sqlite3.connect(where, isolation_level=None, timeout=BUSY_S_MAX, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")  # a power loss may cost the last rows: they are read anew
            connection.execute("PRAGMA secure_delete = ON")  # what lapsed is overwritten, and not only let go
            connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            if not _is_ready(connection):
                connection.execute("BEGIN IMMEDIATE")  # one process at a time makes it
                if not _is_ready(connection):
                    _make(connection)
                connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def _remove(self, why: str) -> None:
        _LOG.error(f"{WHAT} is damaged and is made anew from the topics", problem=why)
        if self.path is not None:
            for name in (self.path.name, f"{self.path.name}-wal", f"{self.path.name}-shm"):
                self.path.with_name(name).unlink(missing_ok=True)
            private_file(self.path)

    def _in_words(self, error: sqlite3.Error) -> ConfigError:
        return ConfigError(sqlite.in_words(WHAT, self.path or "in memory", error))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Say in words what failed. A file that turns out to be damaged is made anew at once, and empty."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if not sqlite.damaged(error):
                raise self._in_words(error) from error
            with suppress(sqlite3.Error):
                self._connection.close()
            self._remove(str(error))
            self._connection = self._opened()
            raise StateError(f"{WHAT} was damaged, and is made anew from the topics: try again") from error

    def rows(self, statement: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Raises StateError (it was damaged: empty now), ConfigError."""
        with self._lock, self._translated():
            return self._connection.execute(statement, tuple(values)).fetchall()

    @property
    def version(self) -> int:
        """A number that is another one whenever any entry was added, changed or let go. Raises as :meth:`rows` does."""
        ((found,),) = self.rows("SELECT value FROM meta WHERE name = 'version'")
        return int(found)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All queries within are of one moment, whatever is written meanwhile. Raises as :meth:`rows` does."""
        with self._lock, self._translated():
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                with suppress(sqlite3.Error):
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")  # nothing was written

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All that is done with the connection becomes durable together, or not at all. Raises as :meth:`rows` does."""
        with self._lock, self._translated():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            self._connection.close()


def _is_ready(connection: sqlite3.Connection) -> bool:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'meta'").fetchall()
    return bool(tables) and connection.execute("SELECT value FROM meta WHERE name = 'form'").fetchall() == [(FORM,)]


def _make(connection: sqlite3.Connection) -> None:
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        connection.execute(f'DROP TABLE "{name}"')
    for statement in SCHEMA.split(";\n"):
        connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('form', ?)", (FORM,))
    # From anywhere on: no version of a file that was made anew is one of the file before.
    connection.execute("INSERT INTO meta VALUES ('version', ?)", (secrets.randbits(48),))


def marks(values: Sequence[Any]) -> str:
    """Return as many question marks as there are values, for a list in a statement."""
    return ", ".join("?" * len(values))
