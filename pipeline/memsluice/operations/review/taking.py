"""What the index makes of records: of the quarantine's a row in a group, of the audit's what became of one.

Each taker verifies records (``prepare``: slow, outside of any transaction) and then writes what they say (``put``).
"""

import sqlite3
from binascii import Error as NoBase64
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from memsluice.envelope.codec import vector_from_bytes
from memsluice.envelope.keys import Keyring
from memsluice.errors import MalformedEvent, SealError
from memsluice.events.names import TARGET_HEADER
from memsluice.events.records import Record
from memsluice.operations.held.collect import judged, remember
from memsluice.operations.held.entries import HeldWrite, Ruled, read_entry, read_ruling
from memsluice.operations.review.grouping import Exemplar, GroupKey, LiveGroups, group_id
from memsluice.operations.review.rows import COLUMNS, READ, changing, entry_of, insertion, rulings_from_bytes

_INSERT = f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({', '.join(f':{name}' for name in COLUMNS)})"  # noqa: S608
_KNOWN = "SELECT 1 FROM entries WHERE tenant = ? AND event_id = ? AND offs = ?"
_OF_KEY = "WHERE tenant = ? AND reason = ? AND kid = ? AND model = ?"
_LIVE = f"SELECT group_id, vector, joined_ms FROM live {_OF_KEY} ORDER BY place"  # noqa: S608
_ABOUT = f"SELECT id, {READ} FROM entries WHERE tenant = ? AND event_id = ?"  # noqa: S608
AgeDays = Callable[[str], int]
"""Gives a tenant's age limit for held writes, for verdicts that are too old to say it."""
P = TypeVar("P")


class Taker(Protocol[P]):
    """Makes of a topic's records what the index keeps."""

    def prepare(self, records: Iterable[Record]) -> tuple[list[P], int]:
        """Return what verified records say, and how many did not verify."""

    def put(self, connection: sqlite3.Connection, prepared: Sequence[P]) -> int:
        """Write it inside the running transaction; return how much of it was new."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A held write that was verified: its row but for the group, and what its group follows from."""

    entry: HeldWrite
    values: dict[str, Any]
    key: GroupKey
    vector: bytes | None


class TakesHeld:
    """Takes records of memory.quarantine.v1."""

    def __init__(self, keyring: Keyring, age_days: AgeDays) -> None:
        self._keyring, self._age_days = keyring, age_days

    def prepare(self, records: Iterable[Record]) -> tuple[list[Prepared], int]:
        """Return the held writes of records, without their contents, and how many records did not verify."""
        found, unverified = [], 0
        for record in records:
            try:
                entry = read_entry(self._keyring, record, whole=True)
            except SealError:
                unverified += 1
                continue
            light = replace(entry, write=None, verdict=None, sealed="", vector_text="")
            values = insertion(entry, self._age_days(entry.tenant))
            found.append(Prepared(light, values, GroupKey.of(entry), _bytes(entry.vector_text)))
        return found, unverified

    def put(self, connection: sqlite3.Connection, prepared: Sequence[Prepared]) -> int:
        """Add rows, each in its group; a re-delivery adds none."""
        groups, added = dict[GroupKey, _Kept](), 0
        for one in prepared:
            if connection.execute(_KNOWN, (one.entry.tenant, one.entry.event_id, one.entry.offset)).fetchone():
                continue
            if one.key not in groups:
                groups[one.key] = _Kept.read(connection, one.key)
            connection.execute(_INSERT, {**one.values, "group_id": groups[one.key].place(one)})
            added += 1
        for key, kept in groups.items():
            kept.write(connection, key)
        return added


class _Kept:
    """The groups of a key that may still be joined, with the bytes of their vectors: from them alone cosines are."""

    def __init__(self, live: LiveGroups, vectors: dict[str, bytes]) -> None:
        self.live, self.vectors = live, vectors

    @classmethod
    def read(cls, connection: sqlite3.Connection, key: GroupKey) -> "_Kept":
        found = connection.execute(_LIVE, key).fetchall()
        exemplars = [Exemplar(group, vector_from_bytes(data), joined_ms) for group, data, joined_ms in found]
        return cls(LiveGroups(exemplars), {group: data for group, data, _ in found})

    def place(self, one: Prepared) -> str:
        """Return the id of the group of a held write."""
        if one.vector is None:
            return group_id(one.entry)
        group = self.live.place(one.entry, vector_from_bytes(one.vector))
        self.vectors.setdefault(group, one.vector)
        return group

    def write(self, connection: sqlite3.Connection, key: GroupKey) -> None:
        connection.execute(f"DELETE FROM live {_OF_KEY}", key)  # noqa: S608
        rows = [
            (*key, place, one.group, self.vectors[one.group], one.joined_ms)
            for place, one in enumerate(self.live.exemplars)
        ]
        connection.executemany("INSERT INTO live VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)


def _bytes(vector_text: str) -> bytes | None:
    """Return the bytes of an embedding; None where there is none, or it cannot be read."""
    try:
        data = a2b_base64(vector_text, strict_mode=True)
        vector_from_bytes(data)
    except (NoBase64, ValueError, MalformedEvent):
        return None
    return data


class TakesAudit:
    """Takes records of memory.audit.v1: what was decided about the held writes that the index has."""

    def __init__(self, keyring: Keyring, age_days: AgeDays) -> None:
        self._keyring, self._age_days = keyring, age_days

    def prepare(self, records: Iterable[Record]) -> tuple[list[Ruled], int]:
        """Return the commands about held writes, and how many records did not verify.

        The header only says where to look: what counts is in the seal.
        """
        found, unverified = [], 0
        for record in records:
            if not any(name == TARGET_HEADER for name, _ in record.headers):
                continue
            try:
                ruled = read_ruling(self._keyring, record)
            except SealError:
                unverified += 1
                continue
            if ruled is not None:
                found.append(ruled)
        return found, unverified

    def put(self, connection: sqlite3.Connection, prepared: Sequence[Ruled]) -> int:
        """Write what became of the entries; what is about no held write changes nothing."""
        return sum(self._take(connection, ruled) for ruled in prepared)

    def _take(self, connection: sqlite3.Connection, ruled: Ruled) -> int:
        taken = 0
        for number, *values in connection.execute(_ABOUT, (ruled.tenant, ruled.target)).fetchall():
            entry, rulings = entry_of(values), rulings_from_bytes(values[9])
            if not ruled.about(entry) or any(one.command_id == ruled.command_id for one in rulings):
                continue
            remember(rulings, ruled)
            changes = changing(judged(entry, rulings, 0, self._age_days(entry.tenant)), rulings)
            names = ", ".join(f"{name} = :{name}" for name in changes)
            change = f"UPDATE entries SET {names} WHERE id = :number"  # noqa: S608
            connection.execute(change, {**changes, "number": number})
            taken = 1
        return taken
