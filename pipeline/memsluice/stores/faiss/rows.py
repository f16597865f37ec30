"""Rows of the embedded store: the table, how an object becomes a row, and how it comes back."""

import sqlite3
from collections.abc import Iterable, Sequence

import numpy as np

from memsluice.envelope.codec import Vector, vector_to_bytes
from memsluice.envelope.space import DEFAULT, Space
from memsluice.errors import MalformedEvent
from memsluice.events.models import Visibility, Zone
from memsluice.stores.base import Scope, StoreAnswer, StoredObject, UpsertResult, defect, exact_vector

SCHEMA = """
CREATE TABLE IF NOT EXISTS store_objects (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL, zone TEXT NOT NULL, object_id TEXT NOT NULL, version INTEGER NOT NULL,
    visibility TEXT NOT NULL, owner TEXT NOT NULL, namespace TEXT NOT NULL, event_id TEXT NOT NULL,
    tier INTEGER NOT NULL, expires_ms INTEGER, content TEXT NOT NULL, vector BLOB NOT NULL, admission TEXT NOT NULL,
    UNIQUE (tenant, zone, object_id)
);
"""
_ENCODER = "CREATE TABLE IF NOT EXISTS store_encoder (model TEXT NOT NULL, dimensions INTEGER NOT NULL)"
_COLUMNS = (
    "object_id, version, tenant, zone, visibility, owner, namespace, event_id, tier, expires_ms, content, vector, "
    "admission"
)
_UPSERT = f"""
INSERT INTO store_objects ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, zone, object_id) DO UPDATE SET
    version = excluded.version, visibility = excluded.visibility, owner = excluded.owner,
    namespace = excluded.namespace, event_id = excluded.event_id, tier = excluded.tier,
    expires_ms = excluded.expires_ms, content = excluded.content, vector = excluded.vector,
    admission = excluded.admission
WHERE excluded.version >= store_objects.version RETURNING number
"""  # noqa: S608 - constants only
NEVER_BEFORE_MS = -(2**63)
"""Nothing has expired then, whatever a row says."""
_PERMITTED = """
SELECT number FROM store_objects WHERE tenant = ? AND zone = ? AND namespace = ?
    AND (expires_ms IS NULL OR expires_ms > ?)
    AND (visibility = ? OR (owner <> '' AND ((visibility = ? AND owner = ?) OR (visibility = ? AND owner = ?))))
"""


class Transaction:
    """BEGIN IMMEDIATE … COMMIT, or ROLLBACK. The connection is in autocommit mode, so this is the whole story."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_rest: object) -> None:
        self._database.execute("COMMIT" if kind is None else "ROLLBACK")


def permitted(
    database: sqlite3.Connection, tenant: str, zone: Zone, scope: Scope, namespace: str, now_ms: int
) -> list[int]:
    """Return the row numbers of what may be searched."""
    shared = Visibility.SHARED if scope.shared else ""
    scopes = (shared, Visibility.PRINCIPAL, scope.principal, Visibility.SESSION, scope.session)
    since_ms = now_ms if now_ms > 0 else NEVER_BEFORE_MS
    return [number for (number,) in database.execute(_PERMITTED, (tenant, zone, namespace, since_ms, *scopes))]


def space_of_file(database: sqlite3.Connection) -> Space | None:
    """Return the encoder of a file's vectors; None where it has none. One with objects that names none is older."""
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "store_encoder" in tables:
        row = database.execute("SELECT model, dimensions FROM store_encoder").fetchone()
        return None if row is None else Space(str(row[0]), int(row[1]))
    if "store_objects" not in tables:  # made, and never opened
        return None
    return DEFAULT if database.execute("SELECT 1 FROM store_objects LIMIT 1").fetchone() else None


def record_space(database: sqlite3.Connection, space: Space) -> None:
    """Write, inside a transaction, what encoder a file's vectors are of; what it says already stays."""
    database.execute(_ENCODER)
    database.execute(
        "INSERT INTO store_encoder SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM store_encoder)",
        (space.model, space.dimensions),
    )


def write(database: sqlite3.Connection, item: StoredObject, space: Space | None) -> tuple[UpsertResult, int | None]:
    """Insert or replace one object unless its row has a higher version; return its outcome and the row's number."""
    if reason := defect(item, space):
        return UpsertResult(item.object_id, StoreAnswer.REFUSED, reason), None
    row = database.execute(
        _UPSERT,
        (
            item.object_id,
            item.version,
            item.tenant,
            item.zone.value,
            item.visibility,
            item.owner,
            item.namespace,
            item.event_id,
            item.tier,
            item.expires_ms,
            item.content,
            vector_to_bytes(item.vector),
            item.admission,
        ),
    ).fetchone()
    if row is None:
        return UpsertResult(item.object_id, StoreAnswer.OLDER), None
    return UpsertResult(item.object_id, StoreAnswer.LANDED), int(row[0])


def forget_versions(database: sqlite3.Connection, objects: Iterable[StoredObject]) -> None:
    """Make the rows of these objects, inside a transaction, older than whatever is written over them next."""
    names = [(item.tenant, item.zone.value, item.object_id) for item in objects]
    database.executemany("UPDATE store_objects SET version = -1 WHERE tenant = ? AND zone = ? AND object_id = ?", names)


def vector_of(data: object, dimensions: int) -> Vector | None:
    """Return the vector of a row, None for what somebody else made of it."""
    try:
        vector = exact_vector(data) if isinstance(data, bytes) else None
    except MalformedEvent:
        return None
    sound = vector is not None and len(vector) == dimensions and np.isfinite(vector).all() and vector.any()
    return vector if sound else None


def _as_it_lies(data: object) -> Vector:
    try:
        return exact_vector(data) if isinstance(data, bytes) else np.zeros(0, dtype=np.float32)
    except MalformedEvent:
        return np.zeros(0, dtype=np.float32)


def ids_of(database: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, str]:
    """Return the object ids of rows."""
    marks = ", ".join("?" * len(numbers))
    statement = f"SELECT number, object_id FROM store_objects WHERE number IN ({marks})"  # noqa: S608 - marks only
    return {number: str(object_id) for number, object_id in database.execute(statement, tuple(numbers))}


def load(database: sqlite3.Connection, numbers: Sequence[int]) -> Iterable[tuple[int, StoredObject]]:
    """Yield rows as objects. What another hand wrote into a column is read as far as it goes, and not believed."""
    marks = ", ".join("?" * len(numbers))
    statement = f"SELECT number, {_COLUMNS} FROM store_objects WHERE number IN ({marks})"  # noqa: S608 - marks only
    for row in database.execute(statement, tuple(numbers)):
        number, object_id, version, tenant, zone, visibility, owner, namespace, event_id, tier = row[:10]
        expires_ms, content, vector, admission = row[10:]
        yield (
            number,
            StoredObject(
                object_id=str(object_id),
                version=version if isinstance(version, int) else -1,
                tenant=str(tenant),
                zone=Zone(zone),
                visibility=str(visibility),
                owner=str(owner),
                namespace=str(namespace),
                event_id=str(event_id),
                tier=tier if isinstance(tier, int) else -1,
                expires_ms=expires_ms if isinstance(expires_ms, int | None) else 0,
                content=str(content),
                vector=_as_it_lies(vector),
                admission=str(admission),
            ),
        )
