"""Weaviate as the store: one multi-tenant collection a zone, one Weaviate tenant a tenant.

The two zones are two collections, so a search for guidance cannot return what lies in the external zone. ``land``
creates collections and tenants when the first object for them arrives; roles are given by the stack or the operator.

Versions are compared by reading before writing. Weaviate has no conditional write, so this holds for one writer a
tenant, which the partitions of memory.accepted.v1 ensure; during a rebalance a worker that lost a partition can still
have one insert in flight. The freshness index at recall is what finds an old version put back.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TypeVar

from memsluice.deployment.connection import Connection
from memsluice.envelope.codec import Vector
from memsluice.envelope.space import Space
from memsluice.errors import AnswerTooLarge, StoreError, StoreUnavailable
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
    newest,
)
from memsluice.stores.weaviate.admin import (
    create_collection,
    create_tenants,
    finds_versions,
    remove_tenant,
    space_of_collection,
)
from memsluice.stores.weaviate.client import search_get_pb2
from memsluice.stores.weaviate.object_errors import at_fault
from memsluice.stores.weaviate.rpc import Address, Rpc
from memsluice.stores.weaviate.wire import (
    COLLECTIONS,
    admission_of,
    bare,
    candidates_request,
    delete_request,
    hit_of,
    look_up_request,
    nearest_request,
    object_of,
    page_request,
    results_of,
    search_request,
    to_wire,
    version_of,
    whole_request,
)

DETAIL_CHARS_MAX = 200
SIDE_BY_SIDE = 32
"""Look-ups under way at once."""
_T = TypeVar("_T")
_LookUp = Callable[[str, Zone, Sequence[str]], search_get_pb2.SearchRequest]
_Reply = Callable[[], search_get_pb2.SearchReply]
_Read = Callable[[search_get_pb2.SearchResult, Partition], _T]
_VERSION: _LookUp = partial(look_up_request, name="version")
_ADMISSION: _LookUp = partial(look_up_request, name="admission")


class WeaviateStore:
    """A :class:`~memsluice.stores.base.VectorStore` on a Weaviate server. Safe to use from several threads."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._rpc: Rpc | None = None
        self._known: set[Partition] = set()
        self._by_version: dict[Zone, bool] = {}
        """Whether a zone's collection can be asked for objects of a version."""
        self._space: Space | None = None
        """Of all collections, for writing; a reader asks about one, and seldom."""

    @classmethod
    def of(cls, connection: Connection, user: str) -> "WeaviateStore":
        """Return the store of a deployment, used with ``user``'s API key. Does not connect yet."""
        return cls(address_of(connection, user))

    def close(self) -> None:
        """Drop the connection; calls in flight end with StoreUnavailable. A later call connects anew."""
        with self._lock:
            rpc, self._rpc, self._space = self._rpc, None, None
            self._known.clear()
            self._by_version.clear()
        if rpc is not None:
            rpc.close()

    def _connected(self) -> Rpc:
        with self._lock:
            if self._rpc is None:
                self._rpc = Rpc(self._address)
            return self._rpc

    def upsert(self, objects: Sequence[StoredObject], *, overwrite: bool = False) -> list[UpsertResult]:
        """Write objects, each with its own outcome (see the protocol). Raises StoreUnavailable, StoreError."""
        if len(objects) > UPSERT_MAX:
            raise StoreError(f"{len(objects)} objects in one upsert, at most {UPSERT_MAX} allowed")
        space = first_space(objects, self.space())
        results = [UpsertResult(item.object_id, StoreAnswer.OLDER) for item in objects]
        usable = []
        for position, item in enumerate(objects):
            if reason := defect(item, space):
                results[position] = UpsertResult(item.object_id, StoreAnswer.REFUSED, reason)
            else:
                usable.append(position)
        chosen = newest((position, objects[position]) for position in usable)
        try:
            if space is not None:
                self._write(objects, chosen, results, space, overwrite=overwrite)
        except StoreUnavailable:
            self.close()  # the next attempt gets a new channel
            raise
        _copy_to_equals(objects, usable, chosen, results)
        return results

    def _write(
        self,
        objects: Sequence[StoredObject],
        chosen: list[int],
        results: list[UpsertResult],
        space: Space,
        *,
        overwrite: bool,
    ) -> None:
        rpc = self._connected()
        self._create_missing(rpc, {objects[position].partition for position in chosen}, space)
        held = {} if overwrite else self._held_versions(rpc, [objects[position] for position in chosen])
        to_send = []
        for position in chosen:
            item = objects[position]
            if held.get((*item.partition, item.object_id), -1) <= item.version:
                to_send.append(position)
        if not to_send:
            return
        errors = rpc.insert([to_wire(objects[position]) for position in to_send])
        for number, position in enumerate(to_send):
            results[position] = self._judge(objects[position], errors.get(number))

    def _judge(self, item: StoredObject, error: str | None) -> UpsertResult:
        if error is None:
            return UpsertResult(item.object_id, StoreAnswer.LANDED)
        detail = error[:DETAIL_CHARS_MAX]
        if not at_fault(error):
            with self._lock:
                self._known.discard(item.partition)
                self._space = None
            return UpsertResult(item.object_id, StoreAnswer.UNAVAILABLE, detail)
        return UpsertResult(item.object_id, StoreAnswer.REFUSED, detail)

    def space(self, zone: Zone | None = None) -> Space | None:
        """Return the encoder whose vectors the collections hold, or that of ``zone``; None while there are none."""
        if zone is not None:
            return space_of_collection(self._address, COLLECTIONS[zone])
        with self._lock:
            known = self._space
        if known is None:
            known = self._recorded_space()
            with self._lock:
                self._space = known
        return known

    def _recorded_space(self) -> Space | None:
        found, refused = set[Space](), list[StoreError]()
        for name in COLLECTIONS.values():
            try:
                space = space_of_collection(self._address, name)
            except StoreUnavailable:
                self.close()
                raise
            except StoreError as error:  # a reader may be let into one zone alone
                refused.append(error)
                continue
            found |= set() if space is None else {space}
        if len(refused) == len(COLLECTIONS):
            raise refused[0]
        if len(found) > 1:
            both = " and ".join(sorted(map(str, found)))
            raise StoreError(f"the collections of Weaviate hold vectors of several encoders: {both}")
        return next(iter(found), None)

    def _create_missing(self, rpc: Rpc, needed: set[Partition], space: Space) -> None:
        """Create the partitions that are not known to exist.

        Raises StoreUnavailable where another worker created a collection for another encoder in the meantime.
        """
        for zone in {zone for _tenant, zone in needed - self._known}:
            present = set(rpc.tenants(COLLECTIONS[zone]))
            missing = sorted({tenant for tenant, where in needed if where is zone} - present)
            if not present:
                create_collection(self._address, COLLECTIONS[zone], space)
                if space_of_collection(self._address, COLLECTIONS[zone]) != space:
                    raise StoreUnavailable("another worker made the collection for another encoder")
            if missing:
                create_tenants(self._address, COLLECTIONS[zone], missing)
            with self._lock:
                self._known |= {(tenant, zone) for tenant in present} | {(tenant, zone) for tenant in missing}

    def _held_versions(self, rpc: Rpc, items: Sequence[StoredObject]) -> dict[tuple[str, Zone, str], int]:
        """Return the versions in the store."""
        ids: dict[Partition, list[str]] = defaultdict(list)
        for item in items:
            ids[item.partition].append(item.object_id)
        return {
            (*partition, object_id): version
            for partition, versions in _look_up(rpc, ids, _VERSION, version_of).items()
            for object_id, version in versions.items()
        }

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
        """Return the nearest objects (see the protocol); the one collection of ``zone`` is touched, no other."""
        return self._hits(search_request(tenant, zone, vector, k, scope, namespace, now_ms), k, (tenant, zone))

    def search_whole(self, tenant: str, zone: Zone, vector: Vector, k: int) -> list[Hit]:
        """Return the nearest objects of a whole partition (see the protocol)."""
        return self._hits(search_request(tenant, zone, vector, k, None, "", 0), k, (tenant, zone))

    def nearest_ids(
        self, tenant: str, zone: Zone, vector: Vector, scope: Scope, namespace: str, now_ms: int
    ) -> list[str]:
        """Return the ids of the nearest objects (see the protocol), without the objects: those are large."""
        request = nearest_request(tenant, zone, vector, SEARCHED_MAX, scope, namespace, now_ms)
        reply = self._guarded(partial(self._connected().search, request))
        return [result.metadata.id for result in reply.results]

    def _hits(self, request: search_get_pb2.SearchRequest, k: int, partition: Partition) -> list[Hit]:
        check_extent(k)
        reply = self._guarded(partial(self._connected().search, request))
        return [hit_of(result, partition) for result in results_of(reply)]

    def _guarded(self, call: Callable[[], _T]) -> _T:
        try:
            return call()
        except AnswerTooLarge:  # what is planted for one tenant must not end the calls of the others
            raise
        except StoreUnavailable:
            self.close()
            raise

    def versions(self, tenant: str, zone: Zone, ids: Sequence[str]) -> dict[str, int]:
        """Return the versions of objects that are there."""
        return self._looked_up({(tenant, zone): ids}, _VERSION, version_of)[tenant, zone]

    def admissions(self, tenant: str, zone: Zone, ids: Sequence[str]) -> dict[str, str]:
        """Return the admissions of objects that are there."""
        return self._looked_up({(tenant, zone): ids}, _ADMISSION, admission_of)[tenant, zone]

    def candidates(self, tenant: str, zone: Zone, scope: Scope, namespace: str, now_ms: int) -> int:
        """Return how many objects a search has to choose from, as the inverted index has them."""
        return self._connected().counted(candidates_request(tenant, zone, scope, namespace, now_ms))

    def held(self, tenant: str, zone: Zone, ids: Sequence[str]) -> dict[str, StoredObject]:
        """Return objects that are there, as they lie there."""
        return self.held_of({(tenant, zone): ids})[tenant, zone]

    def held_of(self, asked: Mapping[Partition, Sequence[str]]) -> dict[Partition, dict[str, StoredObject]]:
        """Return what each partition holds; SIDE_BY_SIDE look-ups run at the same time."""
        return self._looked_up(asked, whole_request, object_of)

    def _looked_up(
        self, asked: Mapping[Partition, Sequence[str]], request: _LookUp, read: _Read[_T]
    ) -> dict[Partition, dict[str, _T]]:
        if any(len(ids) > UPSERT_MAX for ids in asked.values()):
            raise StoreError(f"more than {UPSERT_MAX} ids of one partition")
        return _look_up(self._connected(), asked, request, read)

    def page(self, tenant: str, zone: Zone, after: str, limit: int) -> list[StoredObject]:
        """Return the next objects by id."""
        rpc, request = self._connected(), page_request(tenant, zone, after, limit)
        try:
            reply = rpc.search(request)
        except AnswerTooLarge:
            if limit > 1:
                raise
            reply = rpc.search(bare(request))
        return [object_of(result, (tenant, zone)) for result in results_of(reply)]

    def drop(self, tenant: str) -> None:
        """Remove a tenant's partition of either zone."""
        for zone, collection in COLLECTIONS.items():
            with self._lock:
                self._known.discard((tenant, zone))
            remove_tenant(self._address, collection, tenant)

    def delete(self, tenant: str, zone: Zone, ids: Sequence[str], *, seen: Mapping[str, Seen] = UNSEEN) -> int:
        """Remove objects (see the protocol); return how many there were.

        A collection that an older version of memsluice made is not asked for versions: there, an entry that was landed
        again by a command, under its own event id, can be taken for the one that was seen.
        """
        if not ids:
            return 0
        by_version = bool(seen) and self._finds_versions(zone)
        return self._connected().delete(delete_request(tenant, zone, ids, seen, by_version=by_version))

    def _finds_versions(self, zone: Zone) -> bool:
        with self._lock:
            known = self._by_version.get(zone)
        if known is None:
            known = finds_versions(self._address, COLLECTIONS[zone])
            with self._lock:
                self._by_version[zone] = known
        return known

    def count(self, tenant: str, zone: Zone) -> int:
        """Return how many objects the partition holds."""
        return self._connected().count(COLLECTIONS[zone], tenant)

    def tenants(self) -> list[str]:
        """Return the tenants with a partition in either zone."""
        rpc = self._connected()
        return sorted({tenant for collection in COLLECTIONS.values() for tenant in rpc.tenants(collection)})


def address_of(connection: Connection, user: str) -> Address:
    """Return where a deployment's Weaviate is, with ``user``'s key. Raises ConfigError where there is no such key."""
    return Address(
        host=connection.weaviate_host,
        http_port=connection.weaviate_http_port,
        grpc_port=connection.weaviate_grpc_port,
        key=connection.weaviate_key(user),
        secure=connection.weaviate_secure,
    )


def _look_up(
    rpc: Rpc, asked: Mapping[Partition, Sequence[str]], request: _LookUp, read: _Read[_T]
) -> dict[Partition, dict[str, _T]]:
    """Return what each partition has of the ids; SIDE_BY_SIDE look-ups run at the same time.

    What fits into no answer is asked for by halves. One object that fits into none is larger than any entry: it comes
    bare, and agrees with no admission.
    """

    def found(partition: Partition, ids: Sequence[str], reply: _Reply) -> dict[str, _T]:
        try:
            return _by_id(reply(), partition, read)
        except AnswerTooLarge:
            if len(ids) == 1:
                return _by_id(rpc.search(bare(request(*partition, ids))), partition, read)
        middle, both = len(ids) // 2, dict[str, _T]()
        for half in (ids[:middle], ids[middle:]):
            both |= found(partition, half, partial(rpc.search, request(*partition, half)))
        return both

    answers: dict[Partition, dict[str, _T]] = {partition: {} for partition in asked}
    left = ((partition, ids) for partition, ids in asked.items() if ids)
    while some := list(islice(left, SIDE_BY_SIDE)):
        begun = [(partition, ids, rpc.searching(request(*partition, ids))) for partition, ids in some]
        answers |= {partition: found(partition, ids, reply) for partition, ids, reply in begun}
    return answers


def _by_id(reply: search_get_pb2.SearchReply, partition: Partition, read: _Read[_T]) -> dict[str, _T]:
    return {result.metadata.id: read(result, partition) for result in results_of(reply)}


def _copy_to_equals(
    objects: Sequence[StoredObject], usable: Sequence[int], chosen: Sequence[int], results: list[UpsertResult]
) -> None:
    """Give re-deliveries inside one batch the outcome of the equal object that stands for them."""
    by_name = {(objects[position].partition, objects[position].object_id): position for position in chosen}
    for position in usable:
        best = by_name[(objects[position].partition, objects[position].object_id)]
        if objects[position].version == objects[best].version:
            results[position] = results[best]
