"""What the embedded log and the embedded store have in common: SQLite's failures in words, and reading without writing.

Both are one SQLite file each. A failure names the file, says what happened, and what to do about it.
"""

import sqlite3
from contextlib import suppress
from pathlib import Path

from memsluice.deployment.space import MIB, Room

BASIC = 0xFF
"""SQLite's extended result codes have the plain one in their lowest byte."""
BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
ROOM_BYTES_MIN = MIB
"""With less the index of SQLite's log (32 KiB at a time), or the log itself, may have no room."""
NOT_WRITABLE = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM})
RESTORE = (
    "stop what uses the home and restore the home's files from one backup. The home of a demo is made anew by "
    "`memsluice demo --fresh`"
)
"""What to do about a damaged file. Log and store belong together: each says what the other has."""


def busy(error: sqlite3.Error) -> bool:
    """Whether another process holds the file, so that the same request may succeed later."""
    return _code(error) in BUSY


def damaged(error: sqlite3.Error) -> bool:
    """Whether the file is none of SQLite's, or its pages contradict one another."""
    return _code(error) in DAMAGED


def in_words(what: str, path: object, error: sqlite3.Error) -> str:
    """Return what failed, where, why, and what to do: ``the embedded log /x/embedded.db is damaged (…): restore …``."""
    code, file = _code(error), f"{what} {path}"
    if code in BUSY:
        return f"{file} is in use by another process ({error}): try again, or end the process that holds it"
    if code in DAMAGED:
        return f"{file} is damaged ({error}): {RESTORE}"
    if code in NOT_WRITABLE:
        return f"{file} cannot be written ({error}): this user needs write permission for the file and its folder"
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _no_room(path)):
        return f"{file} cannot grow ({error}): free some space on its disk"
    if code == sqlite3.SQLITE_IOERR:
        return f"{file} cannot be read or written ({error}): look for errors of its disk in the system's log"
    if "no such table" in str(error):
        return f"{file} is empty or was written by another program ({error}): {RESTORE}"
    return f"{file} failed: {error}"


def _no_room(path: object) -> bool:
    """Whether the file's disk is full: what SQLite keeps beside a file fails there as any other error of a disk."""
    with suppress(OSError):
        return Room.of(Path(str(path))).free < ROOM_BYTES_MIN
    return False


def _code(error: sqlite3.Error) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)  # none where the module itself raised
    return None if code is None else code & BASIC


def for_reading(path: Path, timeout_s: float) -> sqlite3.Connection:
    """Open a file that is there, to read only: nothing in it changes, and it may lie where nobody here can write.

    Beside a file in WAL mode SQLite keeps an index, which it cannot make in a folder that is not writable. Such a
    file is read as one that nobody changes, unless a ``-wal`` beside it holds what the file itself has not yet.
    Raises sqlite3.Error.
    """
    address, log = path.resolve().as_uri(), path.with_name(f"{path.name}-wal")
    try:
        return _asked(f"{address}?mode=rw", timeout_s)
    except sqlite3.OperationalError as error:
        if _code(error) not in NOT_WRITABLE or (log.exists() and log.stat().st_size):
            raise
        return _asked(f"{address}?mode=ro&immutable=1", timeout_s)


def _asked(address: str, timeout_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=timeout_s)
    try:
        connection.execute("PRAGMA query_only = 1")
        connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def problem(what: str, path: Path, timeout_s: float) -> str:
    """Return what is wrong with a file, and what to do; "" where every page of it is as it should be."""
    if not path.stat().st_size:
        return f"{what} {path} is empty: {RESTORE}"
    try:
        connection = for_reading(path, timeout_s)
        try:
            (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        return in_words(what, path, error)
    return "" if said == "ok" else f"{what} {path} is damaged ({' '.join(str(said).split())}): {RESTORE}"
