"""Objects, filters and replies of the two collections as Weaviate's protocol has them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from memsluice.envelope.codec import Vector
from memsluice.events.limits import RECORD_BYTES_MAX
from memsluice.events.models import Visibility, Zone
from memsluice.stores.base import Hit, Partition, Scope, Seen, StoredObject
from memsluice.stores.weaviate.client import (
    aggregate_pb2,
    base_pb2,
    base_search_pb2,
    batch_delete_pb2,
    batch_pb2,
    search_get_pb2,
)

COLLECTIONS: dict[Zone, str] = {Zone.GUIDANCE: "MemsluiceGuidance", Zone.EXTERNAL: "MemsluiceExternal"}
VECTOR_NAME = "default"
NEVER_MS = 2**53 - 1
"""Stored as ``expires_ms`` of what never expires: one range filter serves all, and a double holds it exactly."""
OBJECT_BYTES_MAX = 2 * RECORD_BYTES_MAX
"""No entry is so large: what is written fits into one record of the intake, and admission and vector take less."""
_BEFORE_ALL = "00000000-0000-0000-0000-000000000000"
"""Without a cursor the server would not promise the order of ids."""
PROPERTIES = (
    "version",
    "visibility",
    "owner",
    "namespace",
    "event_id",
    "tier",
    "expires_ms",
    "content",
    "admission",
)

_Filters = base_pb2.Filters


def _where(name: str) -> base_pb2.FilterTarget:
    return base_pb2.FilterTarget(property=name)


def _quoted(text: str) -> str:
    """Return the text between marks: Weaviate trims white space off what it indexes, and "ann " is not "ann"."""
    return f"<{text}>"


def _unquoted(text: str) -> str:
    """Return what was quoted; text that nobody quoted stays as it is, and will agree with no admission."""
    return text[1:-1] if text.startswith("<") and text.endswith(">") and len(text) > 1 else text


def _equal(name: str, value: str) -> base_pb2.Filters:
    return _Filters(operator=_Filters.OPERATOR_EQUAL, target=_where(name), value_text=value)


def _all(*filters: base_pb2.Filters) -> base_pb2.Filters:
    return _Filters(operator=_Filters.OPERATOR_AND, filters=filters)


def _any_id(ids: Sequence[str]) -> base_pb2.Filters:
    return _Filters(
        operator=_Filters.OPERATOR_CONTAINS_ANY, target=_where("_id"), value_text_array=base_pb2.TextArray(values=ids)
    )


def _in_scope(scope: Scope) -> base_pb2.Filters:
    options = [_equal("visibility", Visibility.SHARED.value)] if scope.shared else []
    for visibility, owner in ((Visibility.PRINCIPAL, scope.principal), (Visibility.SESSION, scope.session)):
        if owner:
            options.append(_all(_equal("visibility", visibility.value), _equal("owner", _quoted(owner))))
    return _Filters(operator=_Filters.OPERATOR_OR, filters=options) if len(options) > 1 else options[0]


def _vectors(vector: Vector) -> list[base_pb2.Vectors]:
    data = vector.astype("<f4").tobytes()
    kind = base_pb2.Vectors.VECTOR_TYPE_SINGLE_FP32
    return [base_pb2.Vectors(name=VECTOR_NAME, vector_bytes=data, type=kind)]


def to_wire(item: StoredObject) -> batch_pb2.BatchObject:
    """Return the message that inserts or replaces an object."""
    wire = batch_pb2.BatchObject(
        collection=COLLECTIONS[item.zone], uuid=item.object_id, tenant=item.tenant, vectors=_vectors(item.vector)
    )
    wire.properties.non_ref_properties.update(
        {
            "version": item.version,
            "visibility": item.visibility,
            "owner": _quoted(item.owner),
            "namespace": _quoted(item.namespace),
            "event_id": item.event_id,
            "tier": item.tier,
            "expires_ms": NEVER_MS if item.expires_ms is None else item.expires_ms,
            "content": item.content,
            "admission": item.admission,
        }
    )
    return wire


def _permitted(scope: Scope, namespace: str, now_ms: int) -> base_pb2.Filters:
    if now_ms <= 0:  # nothing expires before; a range that holds for all takes the store as long as the search
        return _all(_equal("namespace", _quoted(namespace)), _in_scope(scope))
    unexpired = _Filters(
        operator=_Filters.OPERATOR_GREATER_THAN, target=_where("expires_ms"), value_int=min(now_ms, NEVER_MS - 1)
    )
    return _all(_equal("namespace", _quoted(namespace)), unexpired, _in_scope(scope))


def search_request(
    tenant: str, zone: Zone, vector: Vector, k: int, scope: Scope | None, namespace: str, now_ms: int
) -> search_get_pb2.SearchRequest:
    """Return the search for the nearest objects of one zone in scope, namespace and time; without a scope, in all."""
    request = nearest_request(tenant, zone, vector, k, scope, namespace, now_ms)
    request.properties.CopyFrom(search_get_pb2.PropertiesRequest(non_ref_properties=PROPERTIES))
    request.metadata.CopyFrom(search_get_pb2.MetadataRequest(uuid=True, distance=True, vectors=[VECTOR_NAME]))
    return request


def nearest_request(
    tenant: str, zone: Zone, vector: Vector, k: int, scope: Scope | None, namespace: str, now_ms: int
) -> search_get_pb2.SearchRequest:
    """Return the same search, which answers with ids alone."""
    return search_get_pb2.SearchRequest(
        collection=COLLECTIONS[zone],
        tenant=tenant,
        limit=k,
        near_vector=base_search_pb2.NearVector(vectors=_vectors(vector)),
        filters=None if scope is None else _permitted(scope, namespace, now_ms),
        properties=search_get_pb2.PropertiesRequest(),
        metadata=search_get_pb2.MetadataRequest(uuid=True),
        uses_123_api=True,
        uses_125_api=True,
        uses_127_api=True,
    )


def candidates_request(
    tenant: str, zone: Zone, scope: Scope, namespace: str, now_ms: int
) -> aggregate_pb2.AggregateRequest:
    """Return the question how many objects a search chooses from."""
    filters = _permitted(scope, namespace, now_ms)
    return aggregate_pb2.AggregateRequest(
        collection=COLLECTIONS[zone], tenant=tenant, objects_count=True, filters=filters
    )


def whole_request(tenant: str, zone: Zone, ids: Sequence[str]) -> search_get_pb2.SearchRequest:
    """Return the look-up of whole objects by id."""
    return _whole(tenant, zone, len(ids), filters=_any_id(ids))


def page_request(tenant: str, zone: Zone, after: str, limit: int) -> search_get_pb2.SearchRequest:
    """Return the request for the next objects of a partition by id."""
    return _whole(tenant, zone, limit, after=after or _BEFORE_ALL)


def _whole(tenant: str, zone: Zone, limit: int, **chosen: Any) -> search_get_pb2.SearchRequest:
    return search_get_pb2.SearchRequest(
        collection=COLLECTIONS[zone],
        tenant=tenant,
        limit=limit,
        properties=search_get_pb2.PropertiesRequest(non_ref_properties=PROPERTIES),
        metadata=search_get_pb2.MetadataRequest(uuid=True, vectors=[VECTOR_NAME]),
        uses_123_api=True,
        uses_125_api=True,
        uses_127_api=True,
        **chosen,
    )


def bare(request: search_get_pb2.SearchRequest) -> search_get_pb2.SearchRequest:
    """Return the same request for nothing but the ids of what is there."""
    asked = search_get_pb2.SearchRequest()
    asked.CopyFrom(request)
    asked.properties.CopyFrom(search_get_pb2.PropertiesRequest())
    asked.metadata.CopyFrom(search_get_pb2.MetadataRequest(uuid=True))
    return asked


def look_up_request(tenant: str, zone: Zone, ids: Sequence[str], name: str) -> search_get_pb2.SearchRequest:
    """Return the look-up of one property of objects by id."""
    return search_get_pb2.SearchRequest(
        collection=COLLECTIONS[zone],
        tenant=tenant,
        limit=len(ids),
        filters=_any_id(ids),
        properties=search_get_pb2.PropertiesRequest(non_ref_properties=[name]),
        metadata=search_get_pb2.MetadataRequest(uuid=True),
        uses_123_api=True,
        uses_125_api=True,
        uses_127_api=True,
    )


def delete_request(
    tenant: str, zone: Zone, ids: Sequence[str], seen: Mapping[str, Seen], *, by_version: bool
) -> batch_delete_pb2.BatchDeleteRequest:
    """Return the deletion of objects by id, of those ``seen`` while they state what they were seen with: the version
    counts where the collection can be asked for it (``by_version``)."""

    def while_it_states(one: str) -> base_pb2.Filters:
        event_id, version = seen[one]
        stated = [_equal("event_id", event_id)]
        if by_version:
            stated.append(_Filters(operator=_Filters.OPERATOR_EQUAL, target=_where("version"), value_int=version))
        return _all(_any_id([one]), *stated)

    filters = [while_it_states(one) for one in ids if one in seen]
    if others := [one for one in ids if one not in seen]:
        filters.append(_any_id(others))
    chosen = filters[0] if len(filters) == 1 else _Filters(operator=_Filters.OPERATOR_OR, filters=filters)
    return batch_delete_pb2.BatchDeleteRequest(collection=COLLECTIONS[zone], tenant=tenant, filters=chosen)


def results_of(reply: search_get_pb2.SearchReply) -> Iterator[search_get_pb2.SearchResult]:
    """Yield what was found. What is larger than any entry comes bare: it agrees with no admission, and who keeps many
    answers keeps no more than as many entries."""
    for result in reply.results:
        if result.ByteSize() <= OBJECT_BYTES_MAX:
            yield result
        else:
            yield search_get_pb2.SearchResult(metadata=search_get_pb2.MetadataResult(id=result.metadata.id))


def version_of(result: search_get_pb2.SearchResult, _partition: Partition) -> int:
    """Return the version of an object; -1 for one that has none, written by somebody else."""
    return _Fields(result.properties).number("version", default=-1)


def admission_of(result: search_get_pb2.SearchResult, _partition: Partition) -> str:
    """Return the admission of an object, as it lies there; "" for one that has none."""
    return _Fields(result.properties).text("admission")


class _Fields:
    """Properties of one result, of whatever type somebody with access to the store gave them."""

    def __init__(self, properties: search_get_pb2.PropertiesResult) -> None:
        self._fields = properties.non_ref_props.fields

    def text(self, name: str) -> str:
        value = self._fields.get(name)
        return value.text_value if value is not None else ""

    def number(self, name: str, default: int) -> int:
        value = self._fields.get(name)
        return value.int_value if value is not None and value.HasField("int_value") else default


def hit_of(result: search_get_pb2.SearchResult, partition: Partition) -> Hit:
    """Return what a search found, as far as it can be read; nothing in it is believed."""
    return Hit(object_of(result, partition), similarity=1.0 - result.metadata.distance)


def object_of(result: search_get_pb2.SearchResult, partition: Partition) -> StoredObject:
    """Return a whole object, as far as it can be read; nothing in it is believed."""
    fields, vectors = _Fields(result.properties), result.metadata.vectors
    data = vectors[0].vector_bytes if vectors else b""
    expires_ms = fields.number("expires_ms", default=0)
    tenant, zone = partition
    return StoredObject(
        object_id=result.metadata.id,
        version=fields.number("version", default=-1),
        tenant=tenant,
        zone=zone,
        visibility=fields.text("visibility"),
        owner=_unquoted(fields.text("owner")),
        namespace=_unquoted(fields.text("namespace")),
        event_id=fields.text("event_id"),
        tier=fields.number("tier", default=-1),
        expires_ms=None if expires_ms == NEVER_MS else expires_ms,
        content=fields.text("content"),
        vector=np.frombuffer(data, dtype="<f4").astype(np.float32),
        admission=fields.text("admission"),
    )
