"""The embedded store: objects in SQLite, one exact FAISS index a tenant and zone built from them.

SQLite is what counts: it is written first and in one transaction a batch, an index is only a copy of its vectors and
is built when first asked for, and again when another connection has changed the file.
"""

import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from memsluice.deployment import sqlite
from memsluice.envelope.codec import Vector
from memsluice.envelope.space import Space
from memsluice.errors import StoreError, StoreUnavailable
from memsluice.events.models import Zone
from memsluice.stores.base import (
    SEARCHED_MAX,
    UNSEEN,
    UPSERT_MAX,
    Hit,
    Partition,
    Scope,
    Seen,
    StoreAnswer,
    StoredObject,
    UpsertResult,
    check_extent,
    first_space,
)
from memsluice.stores.faiss.rows import (
    SCHEMA,
    Transaction,
    forget_versions,
    ids_of,
    load,
    permitted,
    record_space,
    space_of_file,
    vector_of,
    write,
)

BUSY_TIMEOUT_S = 10.0
INDEXES_MAX = 1_024
"""Indexes kept in memory; beyond, all are dropped and built again when asked for."""
_IDS_A_STATEMENT = 500
_STATED = "SELECT object_id, event_id, version FROM store_objects WHERE tenant = ? AND zone = ? AND object_id IN ({})"


class FaissStore:
    """A :class:`~memsluice.stores.base.VectorStore` in a file or ``":memory:"``. Safe to use from several threads."""

    def __init__(self, path: Path | str) -> None:
        self._path = str(path)
        self._lock = threading.RLock()
        self._database: sqlite3.Connection | None = None
        self._indexes: dict[Partition, Any] = {}
        self._seen_changes = -1
        if self._path == ":memory:":
            self._connected()

    def close(self) -> None:
        """Close the file; a later call opens it again. What was in ``":memory:"`` is gone."""
        with self._lock:
            if self._database is not None:
                self._database.close()
            self._database = None
            self._indexes.clear()

    def _connected(self) -> sqlite3.Connection:
        if self._database is None:
            try:
                database = sqlite3.connect(
                    self._path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
                )
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = FULL")
                database.executescript(SCHEMA)
            except sqlite3.Error as error:
                raise self._failed(error) from None
            database.text_factory = lambda data: data.decode("utf-8", "replace")  # somebody else may have written it
            self._database = database
            self._seen_changes = -1
        return self._database

    def _failed(self, error: sqlite3.Error) -> StoreError:
        """Return the error to raise: only a store that another process holds may answer later."""
        kind = StoreUnavailable if sqlite.busy(error) else StoreError
        return kind(sqlite.in_words("the embedded store", self._path, error))

    def upsert(self, objects: Sequence[StoredObject], *, overwrite: bool = False) -> list[UpsertResult]:
        """Write objects in one transaction, each with its own outcome (see the protocol)."""
        if len(objects) > UPSERT_MAX:
            raise StoreError(f"{len(objects)} objects in one upsert, at most {UPSERT_MAX} allowed")
        results = []
        written: dict[int, tuple[Partition, Vector]] = {}
        with self._lock:
            database = self._connected()
            try:
                self._forget_if_changed(database)
                with Transaction(database):
                    if overwrite:
                        forget_versions(database, objects)
                    held = space_of_file(database)
                    space = first_space(objects, held)
                    if held is None and space is not None:
                        record_space(database, space)
                    for item in objects:
                        result, number = write(database, item, space)
                        results.append(result)
                        if number is not None:
                            written[number] = (item.partition, item.vector)
            except sqlite3.Error as error:
                raise self._failed(error) from None
            self._replace(written)
        return _older_in_batch(objects, results)

    def _replace(self, written: dict[int, tuple[Partition, Vector]]) -> None:
        """Bring the indexes that are in memory up to what was written."""
        by_partition: dict[Partition, list[int]] = {}
        for number, (partition, _vector) in written.items():
            if partition in self._indexes:
                by_partition.setdefault(partition, []).append(number)
        for partition, numbers in by_partition.items():
            index, ids = self._indexes[partition], np.array(numbers, dtype=np.int64)
            index.remove_ids(ids)
            index.add_with_ids(np.stack([_unit(written[number][1]) for number in numbers]), ids)

    def _forget_if_changed(self, database: sqlite3.Connection) -> None:
        """Drop the indexes when another connection has written to the file since they were built."""
        (changes,) = database.execute("PRAGMA data_version").fetchone()
        if changes != self._seen_changes or len(self._indexes) > INDEXES_MAX:
            self._indexes.clear()
            self._seen_changes = changes

    def _index(self, database: sqlite3.Connection, partition: Partition, dimensions: int) -> Any:
        index = self._indexes.get(partition)
        if index is None:
            rows = database.execute(
                "SELECT number, vector FROM store_objects WHERE tenant = ? AND zone = ?", (partition[0], partition[1])
            ).fetchall()
            good = [(number, vector) for number, data in rows if (vector := vector_of(data, dimensions)) is not None]
            index = faiss.IndexIDMap2(faiss.IndexFlatIP(dimensions))
            if good:
                ids = np.array([number for number, _vector in good], dtype=np.int64)
                index.add_with_ids(np.stack([_unit(vector) for _number, vector in good]), ids)
            self._indexes[partition] = index
        return index

    def search(
        self,
        tenant: str,
        zone: Zone,
        vector: Vector,
        k: int,
        scope: Scope,
        namespace: str,
        now_ms: int,
    ) -> list[Hit]:
        """Return the exact nearest objects (see the protocol)."""
        check_extent(k)
        with self._lock:
            found = self._nearest(tenant, zone, vector, k, permitted_by=(scope, namespace, now_ms))
            try:
                objects = dict(load(self._connected(), [number for number, _similarity in found]))
            except sqlite3.Error as error:
                raise self._failed(error) from None
        return [Hit(objects[number], similarity) for number, similarity in found if number in objects]

    def nearest_ids(
        self, tenant: str, zone: Zone, vector: Vector, scope: Scope, namespace: str, now_ms: int
    ) -> list[str]:
        """Return the ids of the exact nearest objects (see the protocol)."""
        with self._lock:
            found = self._nearest(tenant, zone, vector, SEARCHED_MAX, permitted_by=(scope, namespace, now_ms))
            try:
                ids = ids_of(self._connected(), [number for number, _similarity in found])
            except sqlite3.Error as error:
                raise self._failed(error) from None
        return [ids[number] for number, _similarity in found if number in ids]

    def _nearest(
        self, tenant: str, zone: Zone, vector: Vector, k: int, *, permitted_by: tuple[Scope, str, int]
    ) -> list[tuple[int, float]]:
        """Return the rows of the nearest objects, nearest first, with their similarities. Under the lock."""
        try:
            database = self._connected()
            self._forget_if_changed(database)
            space = space_of_file(database)
            if space is None:
                return []
            if vector.shape != (space.dimensions,):
                raise StoreError(f"the question has {len(vector)} dimensions, and the store's vectors are of {space}")
            numbers = permitted(database, tenant, zone, *permitted_by)
            index = self._index(database, (tenant, zone), space.dimensions)
        except sqlite3.Error as error:
            raise self._failed(error) from None
        if not numbers or not index.ntotal:
            return []
        return sorted(_similar(index, vector, min(k, len(numbers)), numbers), key=_by_similarity)

    def versions(self, tenant: str, zone: Zone, ids: Sequence[str]) -> dict[str, int]:
        """Return the versions of objects that are there."""
        statement = "SELECT object_id, version FROM store_objects WHERE tenant = ? AND zone = ? AND object_id IN ({})"
        return dict(self._by_id(statement, tenant, zone, ids))

    def admissions(self, tenant: str, zone: Zone, ids: Sequence[str]) -> dict[str, str]:
        """Return the admissions of objects that are there."""
        statement = "SELECT object_id, admission FROM store_objects WHERE tenant = ? AND zone = ? AND object_id IN ({})"
        return {object_id: str(admission) for object_id, admission in self._by_id(statement, tenant, zone, ids)}

    def candidates(self, tenant: str, zone: Zone, scope: Scope, namespace: str, now_ms: int) -> int:
        """Return how many objects a search has to choose from."""
        with self._lock:
            try:
                return len(permitted(self._connected(), tenant, zone, scope, namespace, now_ms))
            except sqlite3.Error as error:
                raise self._failed(error) from None

    def held(self, tenant: str, zone: Zone, ids: Sequence[str]) -> dict[str, StoredObject]:
        """Return objects that are there, as they lie there."""
        statement = "SELECT number, 0 FROM store_objects WHERE tenant = ? AND zone = ? AND object_id IN ({})"
        return self._loaded([number for number, _zero in self._by_id(statement, tenant, zone, ids)])

    def held_of(self, asked: Mapping[Partition, Sequence[str]]) -> dict[Partition, dict[str, StoredObject]]:
        """Return what each partition holds."""
        return {partition: self.held(*partition, ids) for partition, ids in asked.items()}

    def page(self, tenant: str, zone: Zone, after: str, limit: int) -> list[StoredObject]:
        """Return the next objects by id."""
        statement = (
            "SELECT number FROM store_objects WHERE tenant = ? AND zone = ? AND object_id > ? "
            "ORDER BY object_id LIMIT ?"
        )
        found = self._loaded([number for (number,) in self._read(statement, (tenant, zone, after, limit))])
        return [found[object_id] for object_id in sorted(found)]

    def _loaded(self, numbers: Sequence[int]) -> dict[str, StoredObject]:
        found: dict[str, StoredObject] = {}
        with self._lock:
            try:
                for start in range(0, len(numbers), _IDS_A_STATEMENT):
                    rows = load(self._connected(), numbers[start : start + _IDS_A_STATEMENT])
                    found.update((item.object_id, item) for _number, item in rows)
            except sqlite3.Error as error:
                raise self._failed(error) from None
        return found

    def drop(self, tenant: str) -> None:
        """Remove all of a tenant's objects."""
        with self._lock:
            self._read("DELETE FROM store_objects WHERE tenant = ? RETURNING number", (tenant,))
            for zone in Zone:
                self._indexes.pop((tenant, zone), None)

    def delete(self, tenant: str, zone: Zone, ids: Sequence[str], *, seen: Mapping[str, Seen] = UNSEEN) -> int:
        """Remove objects (see the protocol); return how many there were."""
        statement = "DELETE FROM store_objects WHERE tenant = ? AND zone = ? AND object_id IN ({}) RETURNING number, 0"
        with self._lock:
            stated = {one: Seen(*rest) for one, *rest in self._by_id(_STATED, tenant, zone, list(seen))}
            gone = [one for one in ids if one not in seen or stated.get(one) == seen[one]]
            removed = [number for number, _zero in self._by_id(statement, tenant, zone, gone)]
            index = self._indexes.get((tenant, zone))
            if index is not None and removed:
                index.remove_ids(np.array(removed, dtype=np.int64))
        return len(removed)

    def _by_id(self, statement: str, tenant: str, zone: Zone, ids: Sequence[str]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        with self._lock:
            database = self._connected()
            try:
                for start in range(0, len(ids), _IDS_A_STATEMENT):
                    part = ids[start : start + _IDS_A_STATEMENT]
                    marks = ", ".join("?" * len(part))
                    rows += database.execute(statement.format(marks), (tenant, zone, *part)).fetchall()
            except sqlite3.Error as error:
                raise self._failed(error) from None
        return rows

    def space(self, zone: Zone | None = None) -> Space | None:
        """Return the encoder whose vectors the file holds, in every zone; None while it holds none."""
        with self._lock:
            try:
                return space_of_file(self._connected())
            except sqlite3.Error as error:
                raise self._failed(error) from None

    def count(self, tenant: str, zone: Zone) -> int:
        """Return how many objects the partition holds."""
        ((number,),) = self._read("SELECT count(*) FROM store_objects WHERE tenant = ? AND zone = ?", (tenant, zone))
        return int(number)

    def tenants(self) -> list[str]:
        """Return the tenants with an object in either zone."""
        return [tenant for (tenant,) in self._read("SELECT DISTINCT tenant FROM store_objects ORDER BY tenant", ())]

    def _read(self, statement: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._connected().execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise self._failed(error) from None


def _older_in_batch(objects: Sequence[StoredObject], results: list[UpsertResult]) -> list[UpsertResult]:
    """Report as OLDER what a later object of the same batch replaced: it is not in the store."""
    highest: dict[tuple[Partition, str], int] = {}
    for item, result in zip(objects, results, strict=True):
        if result.outcome is StoreAnswer.LANDED:
            name = (item.partition, item.object_id)
            highest[name] = max(item.version, highest.get(name, item.version))
    return [
        UpsertResult(item.object_id, StoreAnswer.OLDER)
        if result.outcome is StoreAnswer.LANDED and item.version < highest[(item.partition, item.object_id)]
        else result
        for item, result in zip(objects, results, strict=True)
    ]


def _unit(vector: Vector) -> Vector:
    """Return the vector at length one, so that the inner product is the cosine."""
    return vector / np.float32(np.sqrt(vector @ vector))


def _by_similarity(found: tuple[int, float]) -> tuple[float, int]:
    return -found[1], found[0]


def _similar(index: Any, vector: Vector, k: int, numbers: Sequence[int]) -> list[tuple[int, float]]:
    selector = faiss.IDSelectorBatch(np.array(numbers, dtype=np.int64))
    parameters = faiss.SearchParameters(sel=selector)  # type: ignore[call-arg]  # added by faiss at import
    similarities, found = index.search(_unit(vector)[None, :], k, params=parameters)
    pairs = zip(found[0], similarities[0], strict=True)
    return [(int(number), float(similarity)) for number, similarity in pairs if number >= 0]
