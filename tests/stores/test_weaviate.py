"""The store on a real Weaviate: the contract, and what is its own: zones, keys and roles, a server that is away."""

import os
import signal
import socket
from contextlib import contextmanager, suppress
from dataclasses import replace
from uuid import uuid4

import pytest
from tests.patience import HANG_S, until
from tests.stores.build import T0, axis, entry
from tests.stores.contract import ANA, OtherEncoderContract, StoreContract, contents

from memsluice.devstack import control
from memsluice.devstack.roles import apply_roles
from memsluice.errors import StoreError, StoreUnavailable
from memsluice.events.models import Zone
from memsluice.stores.base import StoreAnswer
from memsluice.stores.weaviate import rpc
from memsluice.stores.weaviate.admin import client, limit_reader
from memsluice.stores.weaviate.rpc import Address
from memsluice.stores.weaviate.store import WeaviateStore, address_of
from memsluice.stores.weaviate.wire import COLLECTIONS
from memsluice.topics.names import WEAVIATE_ADMIN, WEAVIATE_LAND, WEAVIATE_RECALL

pytestmark = [pytest.mark.stack, pytest.mark.usefixtures("patient")]
IMPATIENT = {"QUERY_TIMEOUT_S": rpc.QUERY_TIMEOUT_S, "INSERT_TIMEOUT_S": rpc.INSERT_TIMEOUT_S}
"""How long a call waits otherwise."""


@pytest.fixture
def land(stack):
    """The store with land's key."""
    made = WeaviateStore.of(stack.connection, WEAVIATE_LAND)
    yield made
    made.close()


@pytest.fixture
def reader(stack):
    """The store with a reader's key."""
    made = WeaviateStore.of(stack.connection, WEAVIATE_RECALL)
    yield made
    made.close()


@pytest.fixture
def tenant():
    """A tenant that no other test uses."""
    return f"t-{uuid4().hex[:12]}"


@contextmanager
def impatient():
    """Have calls wait no longer than they do outside of tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name, limit_s in IMPATIENT.items():
            patch.setattr(rpc, name, limit_s)
        yield


@contextmanager
def frozen(stack):
    """Stop the server's process for a while, as a machine that hangs would."""
    (server,) = [row for row in control.status(stack.home) if row.name == "weaviate"]
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


class TestWeaviateStore(StoreContract):
    @pytest.fixture
    def store(self, stack):
        """Return a store with land's key, which may also read."""
        made = WeaviateStore.of(stack.connection, WEAVIATE_LAND)
        yield made
        made.close()


class TestWeaviateStoreOfAnotherEncoder(OtherEncoderContract):
    @pytest.fixture
    def store(self, stack, monkeypatch):
        """Return a store with collections of its own, which are made by its first object and removed afterwards."""
        names = {zone: f"Memsluice{uuid4().hex[:8]}{zone.value.title()}" for zone in Zone}
        for zone, name in names.items():
            monkeypatch.setitem(COLLECTIONS, zone, name)
        made = WeaviateStore.of(stack.connection, WEAVIATE_LAND)
        yield made
        made.close()
        with client(address_of(stack.connection, WEAVIATE_ADMIN)) as admin:
            admin.collections.delete(list(names.values()))


def test_each_zone_is_a_collection_of_its_own(stack, land, tenant) -> None:
    """A search for guidance can not return a tainted vector: it lies in another collection altogether."""
    land.upsert([entry(tenant, "data", zone=Zone.EXTERNAL), entry(tenant, "guide", event_id="e2")])
    with client(address_of(stack.connection, WEAVIATE_ADMIN)) as admin:
        held = {
            zone: [item.properties["content"] for item in admin.collections.use(name).with_tenant(tenant).iterator()]
            for zone, name in COLLECTIONS.items()
        }
    assert held == {Zone.GUIDANCE: ["guide"], Zone.EXTERNAL: ["data"]}


def test_a_readers_key_reads_and_can_not_write(land, reader, tenant) -> None:
    """Whoever takes a reader's key changes nothing: the database refuses, not only our code."""
    item = entry(tenant, "kept")
    land.upsert([item])
    assert contents(reader, tenant) == ["kept"]
    (result,) = reader.upsert([replace(item, content="changed", version=7)])
    assert result.outcome is StoreAnswer.UNAVAILABLE
    with pytest.raises(StoreError):
        reader.upsert([entry(f"{tenant}-new", "x")])
    with pytest.raises(StoreError):
        reader.delete(tenant, Zone.GUIDANCE, [item.object_id])
    assert contents(land, tenant) == ["kept"]


def test_a_wrong_key_is_refused_and_said_so(stack, land, tenant) -> None:
    """A key that was changed on the server is no outage: the error names the refusal."""
    land.upsert([entry(tenant, "kept")])
    wrong = WeaviateStore(replace(address_of(stack.connection, WEAVIATE_LAND), key="not-a-key"))
    with pytest.raises(StoreError, match="refused"):
        contents(wrong, tenant)
    wrong.close()


def test_a_limited_reader_reads_its_tenant_and_zone_only(stack, land, reader, tenant) -> None:
    """The database itself keeps a reader from other tenants and zones (seed 002, pattern 4)."""
    other = f"{tenant}-x"
    land.upsert([entry(tenant, "mine"), entry(other, "theirs"), entry(tenant, "data", zone=Zone.EXTERNAL)])
    admin, role = address_of(stack.connection, WEAVIATE_ADMIN), f"reader-{tenant}"
    try:
        limit_reader(admin, WEAVIATE_RECALL, role, [tenant], [Zone.GUIDANCE])
        assert contents(reader, tenant) == ["mine"]
        for asked in ({"tenant": other}, {"tenant": tenant, "zone": Zone.EXTERNAL}):
            with pytest.raises(StoreError, match="forbidden"):
                contents(reader, **asked)
    finally:
        with client(admin) as made:
            made.roles.delete(role)
        apply_roles(stack.connection)
    assert contents(reader, other) == ["theirs"]


def test_a_partition_that_was_removed_is_made_again(stack, land, tenant) -> None:
    """land does not go on believing in a partition that an operator has dropped."""
    land.upsert([entry(tenant, "before")])
    with client(address_of(stack.connection, WEAVIATE_ADMIN)) as admin:
        admin.collections.use(COLLECTIONS[Zone.GUIDANCE]).tenants.remove([tenant])
    first = land.upsert([entry(tenant, "after")])[0].outcome
    again = land.upsert([entry(tenant, "after")])[0].outcome
    assert (first, again) == (StoreAnswer.UNAVAILABLE, StoreAnswer.LANDED)
    assert contents(land, tenant) == ["after"]


def test_an_object_that_the_server_refuses_leaves_the_others_landed(land, tenant) -> None:
    """An error of the server's own about one object is that object's alone."""
    batch = [entry(tenant, f"c{n}", axis(n), event_id=f"e{n}") for n in range(64)]
    batch[40] = replace(batch[40], object_id="no-uuid")
    results = land.upsert(batch)
    assert [n for n, result in enumerate(results) if result.outcome is not StoreAnswer.LANDED] == [40]
    assert results[40].outcome is StoreAnswer.REFUSED
    assert "UUID" in results[40].detail
    assert land.count(tenant, Zone.GUIDANCE) == 63


def test_nobody_listening_is_unavailable_at_once() -> None:
    """A closed port is an answer: no sleeping inside a library, so that a worker can stop meanwhile. Whichever of the
    two ports a call needs first, the error has the address
    that `stack status` shows, and what to do."""
    with socket.socket() as http, socket.socket() as rpc:
        ports = []
        for held in (http, rpc):
            held.bind(("127.0.0.1", 0))  # taken, and not listening: every connection is refused
            ports.append(held.getsockname()[1])
        store = WeaviateStore(Address("127.0.0.1", *ports, "key"))
        both = rf"\(gRPC: {ports[1]}\) "
        for call, asked in (
            (lambda: store.upsert([entry("acme")]), ""),
            (store.space, ""),
            (lambda: contents(store, "acme"), both),
            (store.tenants, both),
        ):
            words = f"Weaviate at 127.0.0.1:{ports[0]} {asked}.*memsluice stack status"
            with pytest.raises(StoreUnavailable, match=words):
                call()
        store.close()


@pytest.mark.timeout(900)
def test_a_server_that_hangs_is_unavailable_and_back_afterwards(stack, land, tenant) -> None:
    """A call has a deadline, and the store works again without being made anew."""
    land.upsert([entry(tenant, "before")])
    with impatient(), frozen(stack), pytest.raises(StoreUnavailable):
        land.upsert([entry(tenant, "meanwhile", axis(1), event_id="e2")])
    after = entry(tenant, "after", axis(2), event_id="e3")

    def lands() -> bool:
        with suppress(StoreUnavailable):  # a connection that is being made anew
            return land.upsert([after])[0].outcome is StoreAnswer.LANDED
        return False

    until(lands, "the store takes writes again")
    assert contents(land, tenant)[0] == "before"


def test_closing_ends_a_call_in_flight(stack, land, tenant, monkeypatch) -> None:
    """SIGTERM during an outage: the waiting call ends when the store is closed, not at its deadline."""
    import threading

    land.upsert([entry(tenant, "before")])
    ended: list[BaseException] = []
    asked, searched = threading.Event(), rpc.Rpc._searched

    def told(*arguments):
        asked.set()
        return searched(*arguments)

    def ask() -> None:
        try:
            land.search(tenant, Zone.GUIDANCE, axis(0), 1, ANA, "default", T0)
        except StoreUnavailable as error:
            ended.append(error)

    with frozen(stack):
        monkeypatch.setattr(rpc, "QUERY_TIMEOUT_S", 2 * HANG_S)
        monkeypatch.setattr(rpc.Rpc, "_searched", told)
        for _ in range(20):  # a call on a connection that is being made anew may be refused at once: ask again
            ended.clear()
            asked.clear()
            thread = threading.Thread(target=ask, daemon=True)
            thread.start()
            assert asked.wait(HANG_S)
            thread.join(1.0)
            if thread.is_alive():
                break
        assert thread.is_alive()
        land.close()
        thread.join(HANG_S)  # well below the call's own deadline
        assert not thread.is_alive()
    assert len(ended) == 1
