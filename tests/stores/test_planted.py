"""Planted objects that make a server's answers too large, or late: on a server that has nothing else to do."""

import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from tests.patience import HANG_S
from tests.stores.build import T0, axis
from tests.stores.contract import ANA

from memsluice.errors import AnswerTooLarge, StoreUnavailable
from memsluice.events.models import Zone
from memsluice.stores.weaviate import rpc
from memsluice.stores.weaviate.client import aggregate_pb2, search_get_pb2, weaviate_pb2_grpc
from memsluice.stores.weaviate.rpc import Address
from memsluice.stores.weaviate.store import WeaviateStore
from memsluice.stores.weaviate.wire import OBJECT_BYTES_MAX

ANSWER_BYTES_MAX = 3 * OBJECT_BYTES_MAX
DEADLINE_S = 2.5
IDS = [f"0000000{number}-0000-4000-8000-000000000000" for number in range(8)]


class Server(weaviate_pb2_grpc.WeaviateServicer):
    """Holds admissions by id, of whatever length; can be made late with some answers, or with all."""

    def __init__(self) -> None:
        self.held = {one: f"admission {number}" for number, one in enumerate(IDS)}
        self.late_from, self.waits = 1_000, {"Search": 0.0, "Aggregate": 0.0}
        self.asked: list[int] = []
        self.counted = 0
        self.unmade = 0
        self.waiting, self.go_on = threading.Event(), threading.Event()

    def Search(self, request, context):
        """Answer with the objects that the ids, or the cursor, are for, and their admissions where those are asked."""
        self.asked.append(request.limit)
        if len(self.asked) <= self.unmade:
            context.abort(grpc.StatusCode.UNKNOWN, "vector search: tried to browse non-existing index for Zone")
        if request.tenant == "globex":
            self.waiting.set()
            self.go_on.wait(HANG_S)
        if request.limit >= self.late_from:
            self.go_on.wait(self.waits["Search"])
        ids = request.filters.value_text_array.values or [one for one in self.held if one > request.after]
        reply = search_get_pb2.SearchReply()
        for one in list(ids)[: request.limit]:
            result = reply.results.add()
            result.metadata.id = one
            if "admission" in request.properties.non_ref_properties:
                result.properties.non_ref_props.fields["admission"].text_value = self.held[one]
        return reply

    def Aggregate(self, request, context):
        """Answer how many there are."""
        self.counted += 1
        self.go_on.wait(self.waits["Aggregate"])
        return aggregate_pb2.AggregateReply(
            single_result=aggregate_pb2.AggregateReply.Single(objects_count=len(self.held))
        )


@pytest.fixture
def server(monkeypatch):
    """The server, and ``server.store`` that is used with it; an answer may have three times an entry's largest size."""
    monkeypatch.setattr(rpc, "_OPTIONS", (("grpc.max_receive_message_length", ANSWER_BYTES_MAX),))
    monkeypatch.setattr(rpc, "QUERY_TIMEOUT_S", HANG_S)
    monkeypatch.setattr(rpc, "INSERT_TIMEOUT_S", HANG_S)
    made, listener = Server(), grpc.server(ThreadPoolExecutor(16))
    weaviate_pb2_grpc.add_WeaviateServicer_to_server(made, listener)
    port = listener.add_insecure_port("127.0.0.1:0")
    listener.start()
    made.store = WeaviateStore(Address("127.0.0.1", 1, port, "key"))
    yield made
    made.go_on.set()
    made.store.close()
    listener.stop(None).wait()


@pytest.fixture
def soon(monkeypatch) -> None:
    """Deadlines as short as a busy machine allows: what is answered at once is answered within them."""
    monkeypatch.setattr(rpc, "QUERY_TIMEOUT_S", DEADLINE_S)


def search(store: WeaviateStore, tenant: str) -> list[str]:
    """Return the ids that a search finds."""
    return [hit.object.object_id for hit in store.search(tenant, Zone.GUIDANCE, axis(0), 8, ANA, "default", T0)]


def test_an_answer_that_is_too_large_ends_no_other_tenants_call(server) -> None:
    """What is planted for one tenant makes its search ask for less. The others' searches, on the same connection, go
    on: they were ended, and failed."""
    found: list[object] = []

    def ask() -> None:
        try:
            found.append(search(server.store, "globex"))
        except StoreUnavailable as error:
            found.append(error)

    other = threading.Thread(target=ask)
    other.start()
    assert server.waiting.wait(HANG_S)
    server.held = dict.fromkeys(IDS, "x" * ANSWER_BYTES_MAX)
    with pytest.raises(AnswerTooLarge):
        search(server.store, "acme")
    server.held = dict.fromkeys(IDS, "small")
    server.go_on.set()
    other.join(HANG_S)
    assert found == [IDS]


def test_a_collection_that_is_being_made_is_asked_again(server, monkeypatch) -> None:
    """A reader that comes a moment after a tenant's first write, or the store's start, gets its answer. A collection
    that stays away is no empty memory: the store is unavailable."""
    server.unmade = 3
    assert search(server.store, "acme") == IDS
    server.unmade = 1_000
    monkeypatch.setattr(rpc, "QUERY_TIMEOUT_S", DEADLINE_S)
    with pytest.raises(StoreUnavailable, match="non-existing index"):
        search(server.store, "acme")


def test_admissions_are_told_whatever_is_planted_among_them(server) -> None:
    """*land* asks what stands in its way: it is told the others' admissions, and none ("") of an object that fits into
    no answer, or is larger than any entry."""
    whole = dict(server.held)
    server.held |= {IDS[2]: "x" * ANSWER_BYTES_MAX, IDS[5]: "x" * (OBJECT_BYTES_MAX + 1), IDS[6]: "x" * 100_000}
    found = server.store.admissions("acme", Zone.GUIDANCE, IDS)
    assert found == whole | {IDS[2]: "", IDS[5]: "", IDS[6]: server.held[IDS[6]]}
    held = server.store.held("acme", Zone.GUIDANCE, IDS)
    assert {one: item.admission for one, item in held.items()} == found


def test_a_page_that_is_too_large_is_told_from_one_object_that_is(server) -> None:
    """Whoever asks for a page asks for fewer, down to one; that one comes with its id alone, and there it ends."""
    server.held = dict.fromkeys(IDS, "x" * ANSWER_BYTES_MAX)
    with pytest.raises(AnswerTooLarge):
        server.store.page("acme", Zone.GUIDANCE, "", 2)
    (alone,) = server.store.page("acme", Zone.GUIDANCE, IDS[3], 1)
    assert (alone.object_id, alone.admission) == (IDS[4], "")


def test_an_answer_about_several_that_is_late_is_one_that_is_too_large(server, soon) -> None:
    """A server that needs longer than the deadline to gather what is planted, and answers how many there are, is not
    away: pages are asked for with fewer objects, and look-ups by halves. The connection stays."""
    server.late_from, server.waits["Search"] = 4, HANG_S
    with pytest.raises(AnswerTooLarge):
        server.store.page("acme", Zone.GUIDANCE, "", 8)
    assert len(server.store.page("acme", Zone.GUIDANCE, "", 2)) == 2
    with pytest.raises(AnswerTooLarge):
        search(server.store, "acme")
    assert server.store.admissions("acme", Zone.GUIDANCE, IDS) == server.held


def test_a_server_that_answers_nothing_is_unavailable_after_two_deadlines(server, soon) -> None:
    """It is not asked for fewer and fewer: a stage that waits for it can tell, and stop."""
    server.late_from, server.waits = 1, dict.fromkeys(server.waits, HANG_S)
    for limit in (8, 1):
        with pytest.raises(StoreUnavailable) as told:
            server.store.page("acme", Zone.GUIDANCE, "", limit)
        assert not isinstance(told.value, AnswerTooLarge)
    assert (server.asked, server.counted) == ([8, 1], 2)


def test_one_object_that_comes_late_is_no_planted_one(server, soon) -> None:
    """Taken for planted, it would be overwritten or removed because the machine was busy: it is waited for longer."""
    server.late_from, server.waits["Search"] = 1, DEADLINE_S + 1.0
    assert server.store.admissions("acme", Zone.GUIDANCE, IDS[:1]) == {IDS[0]: server.held[IDS[0]]}
