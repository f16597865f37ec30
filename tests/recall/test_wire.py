"""What a real recall sends to a real Weaviate: every byte on both of its ports, and every call with what it names."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import grpc
import numpy as np
import pytest
from tests.recall.relay import Relay
from tests.stores.build import RING, T0, entry

from memsluice.encoder import Encoder
from memsluice.errors import ConfigError
from memsluice.events.models import Tier, Zone
from memsluice.recall.recaller import Publish, Question, Recaller
from memsluice.stores.base import StoreAnswer
from memsluice.stores.weaviate import rpc as weaviate_rpc
from memsluice.stores.weaviate.store import WeaviateStore, address_of
from memsluice.stores.weaviate.wire import COLLECTIONS
from memsluice.topics.names import WEAVIATE_LAND, WEAVIATE_RECALL

pytestmark = [pytest.mark.stack, pytest.mark.usefixtures("unhurried")]
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


class Stranger:
    """Another encoder than the one that the entries are of."""

    model_id, revision = "acme/stranger", "1"

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return the first axis, once a text."""
        return np.eye(1, self.dimensions, dtype=np.float32).repeat(len(texts), axis=0)


def recaller(store: WeaviateStore, encoder: Encoder, publish: Publish = lambda _: None) -> Recaller:
    """Return what recalls, publishing to nobody."""
    return Recaller(
        store=store, encoder=encoder, keys=lambda: RING, permits=lambda _: None, publish=publish,
        now_ms=lambda: T0, new_id=lambda: "r-1", freshness=None,
    )  # fmt: skip


def named(calls: Calls) -> list[tuple[str, str, str]]:
    """Return the method, collection and tenant of every call."""
    return [(method, request.collection, request.tenant) for method, request in calls.made]


def requested(sent: bytes) -> set[bytes]:
    """Return what was asked for over HTTP, all of it to be read only."""
    lines = re.findall(rb"^([A-Z]+) (\S+) HTTP/1.1\r$", sent, re.MULTILINE)
    assert {method for method, _ in lines} <= {b"GET"}
    return {path for _, path in lines}


def test_a_recall_for_guidance_touches_no_external_partition(wire: Any, tenants: list[str], encoder: Encoder) -> None:
    """Assumption A4: not by filtering what comes back. No byte to the database names the external collection, and the
    one call, also of a reader that asks for the first time, names the asked tenant's guidance."""
    store, calls, http, rpc = wire
    asked, other = tenants
    answer = recaller(store, encoder).ask(Question(asked, QUESTION, "planner", "ana", "s-1"))
    assert [found.content for found in answer.entries] == ["Invoices for the greenhouse go to the office."]
    assert named(calls) == [("/weaviate.v1.Weaviate/Search", COLLECTIONS[Zone.GUIDANCE], asked)]
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
    assert named(calls) == [("/weaviate.v1.Weaviate/Search", COLLECTIONS[Zone.EXTERNAL], tenants[0])]
    assert http.connections == 0


@pytest.mark.parametrize(("zone", "other"), [(Zone.GUIDANCE, EXTERNAL), (Zone.EXTERNAL, GUIDANCE)])
def test_whose_vectors_an_empty_answer_came_from_is_asked_of_one_zone_and_once(
    wire: Any, tenants: list[str], encoder: Encoder, zone: Zone, other: bytes
) -> None:
    """What finds nothing learns from the collection's own description whether another encoder made it: no byte names
    the other zone or another tenant, and the next recall asks nothing of the kind."""
    store, calls, http, rpc = wire
    asked = Question(tenants[0], QUESTION, "planner", "ana", "s-1", namespace="empty", zone=zone)
    reader = recaller(store, encoder)
    assert reader.ask(asked).entries == ()
    searched = ("/weaviate.v1.Weaviate/Search", COLLECTIONS[zone], tenants[0])
    assert named(calls) == [searched]
    said = http.sent
    assert requested(said) == {b"/v1/meta", b"/v1/schema/" + COLLECTIONS[zone].encode()}
    assert reader.ask(asked).entries == ()
    assert (named(calls), http.sent) == ([searched] * 2, said)
    sent = said + rpc.sent
    assert other not in sent
    assert tenants[1].encode() not in sent


@pytest.mark.parametrize("dimensions", [384, 96])
def test_a_reader_of_another_encoder_is_told_so_and_names_its_zone_alone(
    wire: Any, tenants: list[str], dimensions: int
) -> None:
    """Whether its vectors are as long or not: it learns both names, has published nothing, and no byte names the
    external collection or another tenant."""
    store, calls, http, rpc = wire
    published: list[object] = []
    with pytest.raises(ConfigError, match=r"holds vectors of the encoder .*MiniLM.* has the encoder acme/stranger@1"):
        recaller(store, Stranger(dimensions), published.append).ask(
            Question(tenants[0], QUESTION, "planner", "ana", "s-1")
        )
    assert published == []
    assert set(named(calls)) == {("/weaviate.v1.Weaviate/Search", COLLECTIONS[Zone.GUIDANCE], tenants[0])}
    assert requested(http.sent) == {b"/v1/meta", b"/v1/schema/" + GUIDANCE}
    sent = http.sent + rpc.sent
    assert EXTERNAL not in sent
    assert tenants[1].encode() not in sent
