"""Weaviate's gRPC interface with deadlines that hold, over weaviate-client's own protocol messages.

The client's high-level calls do not fit a stage that must neither hang nor lose one object of 64: a search against a
closed port sleeps 63 s inside the client, an insert 15 s; a batch of which every object failed loses which failed
why; and refused objects are logged with their content.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic, sleep
from typing import Any

import grpc  # type: ignore[import-untyped]

from memsluice.errors import AnswerTooLarge, StoreError, StoreUnavailable
from memsluice.stores.weaviate.client import (
    aggregate_pb2,
    batch_delete_pb2,
    batch_pb2,
    search_get_pb2,
    tenants_pb2,
    weaviate_pb2_grpc,
)

QUERY_TIMEOUT_S = 5.0
INSERT_TIMEOUT_S = 15.0
MESSAGE_BYTES_MAX = 96 * 1024 * 1024
"""Above the largest batch: UPSERT_MAX objects of 32 KiB content, or SEARCH_MAX of them found."""

REMEDY = "`memsluice stack status` says whether it runs or hangs, and what to do then, or see the store's own log"
"""What to do about a store that does not answer."""

_OPTIONS = (
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.use_local_subchannel_pool", 1),  # a rebuilt channel must not inherit the old one's reconnect back-off
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)
_PARTITION_MISSING = ("tenant not found", "could not find class", "class not found")
"""The tenant, or nobody yet, has written to this zone: an empty answer."""
_REFUSALS = ("rbac: ", "forbidden", "unauthorized", "vector lengths don't match")
"""What says that the key is at fault, or the question's vector, and not the transport."""
_INACTIVE = "tenant not active"
"""What somebody may set a tenant to, with an administrator's key."""
_BEING_MADE = "non-existing index"
"""What it says for a moment of a collection that stands in its schema already, at its making or after a start."""
BEING_MADE_PAUSE_S = 0.1
_TOO_LARGE = "larger than max"
"""What gRPC says, on either side, of a message beyond its bound."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where Weaviate listens, and the API key."""

    host: str
    http_port: int
    grpc_port: int
    key: str
    secure: bool = False


class _Late(StoreUnavailable):
    """No answer came before its deadline."""


class _BeingMade(StoreUnavailable):
    """The collection is being made."""


class Rpc:
    """One channel. It is dropped and replaced after a failure, never repaired."""

    def __init__(self, address: Address) -> None:
        target = f"{address.host}:{address.grpc_port}"
        self._target = f"{address.host}:{address.http_port} (gRPC: {address.grpc_port})"
        self._channel = (
            grpc.secure_channel(target, grpc.ssl_channel_credentials(), options=_OPTIONS)
            if address.secure
            else grpc.insecure_channel(target, options=_OPTIONS)
        )
        self._stub: Any = weaviate_pb2_grpc.WeaviateStub(self._channel)  # type: ignore[no-untyped-call]
        self._metadata = (("authorization", f"Bearer {address.key}"),)

    def close(self) -> None:
        """Close the channel; calls in flight end with StoreUnavailable."""
        self._channel.close()

    def insert(self, objects: Sequence[batch_pb2.BatchObject]) -> dict[int, str]:
        """Insert or replace; return the errors by position in ``objects``."""
        request = batch_pb2.BatchObjectsRequest(objects=objects)
        reply = self._call(self._stub.BatchObjects, request, INSERT_TIMEOUT_S, None)
        return {error.index: error.error for error in reply.errors}

    def search(self, request: search_get_pb2.SearchRequest) -> Any:
        """Search.

        A late reply about several objects counts as too large, where the store answers how many there are: whoever
        plants large ones makes it late. One about one object says nothing, and is waited for longer.
        """
        return self._found(partial(self._searched, request, QUERY_TIMEOUT_S), request)

    def searching(self, request: search_get_pb2.SearchRequest) -> Callable[[], Any]:
        """Start a search, so that several run at the same time; the function returned waits for its reply.

        One search alone is faster by :meth:`search`: for each that is started the library starts a thread, too.
        """
        absent = search_get_pb2.SearchReply()
        begun = self._started(self._stub.Search, request, QUERY_TIMEOUT_S, absent)
        return lambda: self._found(begun, request)

    def _found(self, begun: Callable[[], Any], request: search_get_pb2.SearchRequest) -> Any:
        try:
            return self._once_made(begun, request)
        except _Late as error:
            self.count(request.collection, request.tenant)
            if request.limit > 1:
                told = f"Weaviate at {self._target} did not gather one answer within {QUERY_TIMEOUT_S:g} s"
                raise AnswerTooLarge(f"{told}: it is busy, or large objects were planted") from error
        return self._searched(request, INSERT_TIMEOUT_S)

    def _searched(self, request: search_get_pb2.SearchRequest, timeout_s: float) -> Any:
        return self._call(self._stub.Search, request, timeout_s, search_get_pb2.SearchReply())

    def _once_made(self, begun: Callable[[], Any], request: search_get_pb2.SearchRequest) -> Any:
        """Wait for a search's reply; ask again, for as long as one may take, while its collection is being made."""
        until = monotonic() + QUERY_TIMEOUT_S
        while True:
            try:
                return begun()
            except _BeingMade:
                if monotonic() >= until:
                    raise
                sleep(BEING_MADE_PAUSE_S)
                begun = partial(self._searched, request, QUERY_TIMEOUT_S)

    def delete(self, request: batch_delete_pb2.BatchDeleteRequest) -> int:
        """Delete what the filter matches; return how many were. Raises StoreUnavailable if some could not be."""
        reply = self._call(self._stub.BatchDelete, request, INSERT_TIMEOUT_S, batch_delete_pb2.BatchDeleteReply())
        if reply.failed:
            raise StoreUnavailable(f"{reply.failed} objects could not be deleted")
        return int(reply.successful)

    def tenants(self, collection: str) -> list[str]:
        """Return the names of a collection's tenants."""
        request = tenants_pb2.TenantsGetRequest(collection=collection)
        reply = self._call(self._stub.TenantsGet, request, QUERY_TIMEOUT_S, tenants_pb2.TenantsGetReply())
        return [tenant.name for tenant in reply.tenants]

    def count(self, collection: str, tenant: str) -> int:
        """Return how many objects a partition holds."""
        return self.counted(aggregate_pb2.AggregateRequest(collection=collection, tenant=tenant, objects_count=True))

    def counted(self, request: aggregate_pb2.AggregateRequest) -> int:
        """Return how many objects a request for a count finds. Those of a filter are looked at one by one."""
        reply = self._call(self._stub.Aggregate, request, QUERY_TIMEOUT_S, aggregate_pb2.AggregateReply())
        return int(reply.single_result.objects_count)

    def _call(self, method: Any, request: Any, timeout_s: float, absent: Any) -> Any:
        """Return the reply of a call, or ``absent`` for a missing partition."""
        return self._waited(partial(method, request, metadata=self._metadata, timeout=timeout_s), timeout_s, absent)

    def _started(self, method: Any, request: Any, timeout_s: float, absent: Any) -> Callable[[], Any]:
        """Start a call; the function returned waits for its reply, as :meth:`_call` does."""
        try:
            future = method.future(request, metadata=self._metadata, timeout=timeout_s)
        except ValueError as error:  # "Cannot invoke RPC on closed channel!"
            raise StoreUnavailable(str(error)) from None
        return lambda: self._waited(future.result, timeout_s, absent)

    def _waited(self, reply: Callable[[], Any], timeout_s: float, absent: Any) -> Any:
        try:
            return reply()
        except grpc.FutureCancelledError:
            raise StoreUnavailable("the connection was closed") from None
        except ValueError as error:  # "Cannot invoke RPC on closed channel!"
            raise StoreUnavailable(str(error)) from None
        except grpc.RpcError as error:
            if absent is not None and any(part in (error.details() or "") for part in _PARTITION_MISSING):
                return absent
            raise self._error(error, timeout_s) from None

    def _error(self, error: Any, timeout_s: float) -> StoreError:
        code, details = error.code(), str(error.details() or "")[:300]
        denied = code in (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED)
        if denied or any(part in details for part in _REFUSALS):
            return StoreError(f"Weaviate at {self._target} refused: {details}")
        if _INACTIVE in details:
            return StoreUnavailable(f"Weaviate at {self._target} refused: {details}; set the tenant active there")
        if code is grpc.StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE in details:
            return AnswerTooLarge(f"what Weaviate at {self._target} found does not fit into one answer: {details}")
        if code is grpc.StatusCode.CANCELLED:
            return StoreUnavailable("the connection was closed")
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return _Late(f"Weaviate at {self._target} did not answer within {timeout_s:g} s: {REMEDY}")
        if code is grpc.StatusCode.UNAVAILABLE:
            return StoreUnavailable(f"Weaviate at {self._target} cannot be reached: {REMEDY}")
        told = f"{code.name.lower().replace('_', ' ')}: {details}"
        kind = _BeingMade if _BEING_MADE in details else StoreUnavailable
        return kind(f"Weaviate at {self._target} could not do what it was asked ({told}): {REMEDY}")
