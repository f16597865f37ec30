"""A vector store in memory that keeps the contract of :class:`memsluice.stores.base.VectorStore`, and its faults."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from memsluice.envelope.codec import Vector
from memsluice.envelope.space import Space
from memsluice.errors import StoreError
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
    defect,
    first_space,
)


class MemoryStore:
    """The store itself. One thread."""

    def __init__(self) -> None:
        self.partitions: dict[Partition, dict[str, StoredObject]] = {}
        self._spaces: dict[Zone, Space] = {}

    def upsert(self, objects: Sequence[StoredObject], *, overwrite: bool = False) -> list[UpsertResult]:
        """Write objects; see the protocol."""
        if len(objects) > UPSERT_MAX:
            raise StoreError(f"{len(objects)} objects in one upsert, at most {UPSERT_MAX} allowed")
        held = self.space()
        space = first_space(objects, held)
        best: dict[tuple[Partition, str], int] = {}
        for item in objects:
            name = (item.partition, item.object_id)
            best[name] = max(item.version, best.get(name, -1))
        return [self._write(item, space, best[item.partition, item.object_id], overwrite) for item in objects]

    def _write(self, item: StoredObject, space: Space | None, best: int, overwrite: bool) -> UpsertResult:
        if why := defect(item, space):
            return UpsertResult(item.object_id, StoreAnswer.REFUSED, why)
        there = self.partitions.get(item.partition, {}).get(item.object_id)
        newer = there is not None and there.version > item.version and not overwrite
        if newer or best > item.version:
            return UpsertResult(item.object_id, StoreAnswer.OLDER)
        if space is not None:
            self._spaces.setdefault(item.zone, space)
        self.partitions.setdefault(item.partition, {})[item.object_id] = replace(item, model="")
        return UpsertResult(item.object_id, StoreAnswer.LANDED)

    def _held(self, tenant: str, zone: Zone) -> dict[str, StoredObject]:
        return self.partitions.get((tenant, zone), {})

    def _eligible(self, tenant: str, zone: Zone, scope: Scope, namespace: str, now_ms: int) -> list[StoredObject]:
        return [
            item
            for item in self._held(tenant, zone).values()
            if item.namespace == namespace
            and scope.admits(item.visibility, item.owner)
            and (item.expires_ms is None or item.expires_ms > now_ms)
        ]

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
        """Return the nearest objects; see the protocol."""
        check_extent(k)
        return self._nearest(tenant, zone, vector, scope, namespace, now_ms)[:k]

    def nearest_ids(
        self, tenant: str, zone: Zone, vector: Vector, scope: Scope, namespace: str, now_ms: int
    ) -> list[str]:
        """Return the ids of the nearest objects; see the protocol."""
        found = self._nearest(tenant, zone, vector, scope, namespace, now_ms)
        return [hit.object.object_id for hit in found[:SEARCHED_MAX]]

    def _nearest(self, tenant: str, zone: Zone, vector: Vector, scope: Scope, namespace: str, now_ms: int) -> list[Hit]:
        held = self.space()
        if held is not None and len(vector) != held.dimensions:
            raise StoreError(f"the question has {len(vector)} dimensions, the store's vectors {held.dimensions}")
        found = [
            Hit(item, float(np.dot(item.vector, vector) / np.linalg.norm(item.vector)))
            for item in self._eligible(tenant, zone, scope, namespace, now_ms)
        ]
        found.sort(key=lambda hit: -hit.similarity)
        return found

    def candidates(self, tenant: str, zone: Zone, scope: Scope, namespace: str, now_ms: int) -> int:
        """Return how many objects a search chooses from."""
        return len(self._eligible(tenant, zone, scope, namespace, now_ms))

    def held(self, tenant: str, zone: Zone, ids: Sequence[str]) -> dict[str, StoredObject]:
        """Return objects as they lie there."""
        there = self._held(tenant, zone)
        return {one: there[one] for one in ids if one in there}

    def held_of(self, asked: Mapping[Partition, Sequence[str]]) -> dict[Partition, dict[str, StoredObject]]:
        """Return what each partition holds."""
        return {partition: self.held(*partition, ids) for partition, ids in asked.items()}

    def page(self, tenant: str, zone: Zone, after: str, limit: int) -> list[StoredObject]:
        """Return the next objects by id."""
        there = self._held(tenant, zone)
        return [there[one] for one in sorted(there) if one > after][:limit]

    def drop(self, tenant: str) -> None:
        """Remove a tenant."""
        for zone in Zone:
            self.partitions.pop((tenant, zone), None)

    def versions(self, tenant: str, zone: Zone, ids: Sequence[str]) -> dict[str, int]:
        """Return versions."""
        return {one: item.version for one, item in self.held(tenant, zone, ids).items()}

    def admissions(self, tenant: str, zone: Zone, ids: Sequence[str]) -> dict[str, str]:
        """Return admissions."""
        return {one: item.admission for one, item in self.held(tenant, zone, ids).items()}

    def delete(self, tenant: str, zone: Zone, ids: Sequence[str], *, seen: Mapping[str, Seen] = UNSEEN) -> int:
        """Remove objects."""
        there = self._held(tenant, zone)
        stated = {one: Seen(there[one].event_id, there[one].version) for one in ids if one in there}
        gone = [one for one, says in stated.items() if seen.get(one, says) == says]
        for one in gone:
            del there[one]
        return len(gone)

    def count(self, tenant: str, zone: Zone) -> int:
        """Return how many there are."""
        return len(self._held(tenant, zone))

    def tenants(self) -> list[str]:
        """Return the tenants, sorted."""
        return sorted({tenant for tenant, _zone in self.partitions})

    def space(self, zone: Zone | None = None) -> Space | None:
        """Return what encoder the vectors are of."""
        if zone is not None:
            return self._spaces.get(zone)
        return next(iter(self._spaces.values()), None)

    def close(self) -> None:
        """Do nothing."""


Around = Callable[[str, Sequence[StoredObject], Callable[[Sequence[StoredObject]], Any]], Any]
"""Makes a call of the store its own way: is given the method's name, what is written, and the call."""


class Sink(MemoryStore):
    """One process's way to the store: every call goes through ``around``, which plays the faults."""

    def __init__(self, store: MemoryStore, around: Around) -> None:
        super().__init__()
        self.partitions, self._spaces = store.partitions, store._spaces
        self._around = around

    def upsert(self, objects: Sequence[StoredObject], *, overwrite: bool = False) -> list[UpsertResult]:
        """As the store's."""
        call = super().upsert
        return self._around("upsert", objects, lambda some: call(some, overwrite=overwrite))  # type: ignore[no-any-return]

    def held(self, tenant: str, zone: Zone, ids: Sequence[str]) -> dict[str, StoredObject]:
        """As the store's."""
        call = super().held
        return self._around("held", (), lambda _: call(tenant, zone, ids))  # type: ignore[no-any-return]

    def page(self, tenant: str, zone: Zone, after: str, limit: int) -> list[StoredObject]:
        """As the store's."""
        call = super().page
        return self._around("page", (), lambda _: call(tenant, zone, after, limit))  # type: ignore[no-any-return]

    def admissions(self, tenant: str, zone: Zone, ids: Sequence[str]) -> dict[str, str]:
        """As the store's."""
        there = super().held
        return self._around(  # type: ignore[no-any-return]
            "admissions", (), lambda _: {one: item.admission for one, item in there(tenant, zone, ids).items()}
        )

    def delete(self, tenant: str, zone: Zone, ids: Sequence[str], *, seen: Mapping[str, Seen] = UNSEEN) -> int:
        """As the store's."""
        call = super().delete
        return self._around("delete", (), lambda _: call(tenant, zone, ids, seen=seen))  # type: ignore[no-any-return]
