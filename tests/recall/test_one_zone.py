"""A recall for guidance touches no external partition: asserted on the store client's own requests, on a real store."""

import uuid
from typing import Any

import pytest
from tests.stores.build import RING, T0, axis, entry

from memsluice.connection import Connection
from memsluice.events.models import Zone
from memsluice.recall.recaller import Recaller
from memsluice.stores.weaviate import WeaviateStore
from memsluice.topics.names import WEAVIATE_LAND, WEAVIATE_RECALL


class Wire:
    """Stands between the store and its client's channel, keeps every request, and passes it on."""

    def __init__(self, store: WeaviateStore) -> None:
        self.requests: list[Any] = []
        opened = store._connected

        def connected() -> Any:
            rpc = opened()
            return _Calls(rpc, self.requests)

        store._connected = connected  # type: ignore[method-assign]


class _Calls:
    def __init__(self, rpc: Any, requests: list[Any]) -> None:
        self._rpc, self._requests = rpc, requests

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._rpc, name)

        def kept(request: Any, *more: Any) -> Any:
            self._requests.append((name, request))
            return call(request, *more)

        return kept


@pytest.mark.stack
def test_a_recall_for_guidance_asks_no_external_partition(stack: Any, encoder: Any) -> None:
    """Every request on the wire names the guidance collection and the tenant; research asks the external one alone."""
    tenant = f"wire-{uuid.uuid4().hex[:10]}"
    landing = WeaviateStore.of(Connection.load(stack.home), WEAVIATE_LAND)
    landing.upsert([entry(tenant, "a note", axis(0)), entry(tenant, "a page", axis(0), zone=Zone.EXTERNAL)])
    landing.close()
    store = WeaviateStore.of(Connection.load(stack.home), WEAVIATE_RECALL)
    wire = Wire(store)
    recaller = Recaller(
        store=store, encoder=encoder, keys=lambda: RING, permits=lambda _: None, publish=lambda _: None,
        now_ms=lambda: T0, new_id=lambda: "r-1",
    )  # fmt: skip
    for zone in (Zone.GUIDANCE, Zone.EXTERNAL):
        wire.requests.clear()
        found = recaller.recall(tenant, "note?", agent="a", principal="ana", session="s-1", zone=zone)
        assert [one.content for one in found.entries] == ["a note" if zone is Zone.GUIDANCE else "a page"]
        assert wire.requests
        for _, request in wire.requests:
            assert (request.collection.lower().endswith(zone.value), request.tenant) == (True, tenant)
            other = Zone.EXTERNAL if zone is Zone.GUIDANCE else Zone.GUIDANCE
            assert other.value not in str(request).lower()
    store.close()
