"""What a real recall sends to a real Weaviate: every byte on both of its ports, and every call with what it names."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import grpc
import pytest
from tests.recall.relay import Relay
from tests.stores.build import RING, T0, entry

from memsluice.encoder import Encoder
from memsluice.events.models import Tier, Zone
from memsluice.recall.recaller import Question, Recaller
from memsluice.stores.base import StoreAnswer
from memsluice.stores.weaviate import rpc as weaviate_rpc
from memsluice.stores.weaviate.store import WeaviateStore, address_of
from memsluice.stores.weaviate.wire import COLLECTIONS
from memsluice.topics.names import WEAVIATE_LAND, WEAVIATE_RECALL

pytestmark = pytest.mark.stack
GUIDANCE, EXTERNAL = (COLLECTIONS[zone].encode() for zone in (Zone.GUIDANCE, Zone.EXTERNAL))
QUESTION = "Where do invoices for the greenhouse go?"


class Calls(grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]
    """Keeps the method and the request of every gRPC call that a channel makes."""

    def __init__(self) -> None:
        self.made: list[tuple[str, Any]] = []

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        """Keep a call and make it."""
        self.made.append((details.method, request))
        return continuation(details, request)


@pytest.fixture
def tenants(stack: Any, encoder: Encoder) -> list[str]:
    """Two tenants with an entry in each zone; the external one answers the question best."""
    names = [f"wire-{uuid4().hex[:12]}" for _ in range(2)]
    texts = {Zone.GUIDANCE: "Invoices for the greenhouse go to the office.", Zone.EXTERNAL: QUESTION}
    vectors = dict(zip(texts, encoder.encode(list(texts.values())), strict=True))
    store = WeaviateStore.of(stack.connection, WEAVIATE_LAND)
    for tenant, zone in itertools.product(names, Zone):
        tier, taint = (Tier.USER_OBSERVED, False) if zone is Zone.GUIDANCE else (Tier.EXTERNAL_WEB, True)
        item = entry(tenant, texts[zone], vectors[zone], zone=zone, event_id=zone.value, tier=tier, taint=taint)
        assert store.upsert([item])[0].outcome is StoreAnswer.LANDED
    store.close()
    return names


@pytest.fixture
def wire(
    stack: Any, tenants: list[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[WeaviateStore, Calls, Relay, Relay]]:
    """A reader's store whose every byte passes through relays, and whose calls are kept, once the entries lie there."""
    calls, open_channel = Calls(), grpc.insecure_channel

    def recorded(*arguments: Any, **options: Any) -> Any:
        return grpc.intercept_channel(open_channel(*arguments, **options), calls)

    monkeypatch.setattr(weaviate_rpc.grpc, "insecure_channel", recorded)
    address = address_of(stack.connection, WEAVIATE_RECALL)
    with Relay(address.http_port) as http, Relay(address.grpc_port) as rpc:
        store = WeaviateStore(replace(address, host="127.0.0.1", http_port=http.port, grpc_port=rpc.port))
        yield store, calls, http, rpc
        store.close()


def recaller(store: WeaviateStore, encoder: Encoder) -> Recaller:
    """Return what recalls, publishing to nobody."""
    return Recaller(
        store=store, encoder=encoder, keys=lambda: RING, permits=lambda _: None, publish=lambda _: None,
        now_ms=lambda: T0, new_id=lambda: "r-1",
    )  # fmt: skip


def test_a_recall_for_guidance_touches_no_external_partition(wire: Any, tenants: list[str], encoder: Encoder) -> None:
    """Assumption A4: not by filtering what comes back. No byte to the database names the external collection, and no
    call names another collection or tenant than the asked one's guidance."""
    store, calls, http, rpc = wire
    asked, other = tenants
    answer = recaller(store, encoder).ask(Question(asked, QUESTION, "planner", "ana", "s-1"))
    assert [found.content for found in answer.entries] == ["Invoices for the greenhouse go to the office."]
    assert calls.made
    for method, request in calls.made:
        assert method == "/weaviate.v1.Weaviate/Search"
        assert (request.collection, request.tenant) == (COLLECTIONS[Zone.GUIDANCE], asked)
    sent = http.sent + rpc.sent
    assert GUIDANCE in sent
    assert asked.encode() in sent
    assert EXTERNAL not in sent
    assert b"external" not in sent.lower()
    assert other.encode() not in sent
    assert http.connections == 0


def test_research_mode_is_seen_on_the_same_wire(wire: Any, tenants: list[str], encoder: Encoder) -> None:
    """The recording can tell: a recall for external content names that collection, and no guidance."""
    store, calls, http, rpc = wire
    recaller(store, encoder).ask(Question(tenants[0], QUESTION, "planner", "ana", "s-1", zone=Zone.EXTERNAL))
    sent = http.sent + rpc.sent
    assert EXTERNAL in sent
    assert GUIDANCE not in sent
    assert {request.collection for _, request in calls.made} == {COLLECTIONS[Zone.EXTERNAL]}
