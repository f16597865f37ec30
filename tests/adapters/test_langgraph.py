"""LangGraph's store on the embedded gate: its interface kept, and what a gate adds to it."""

import asyncio

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp
from tests.memory.conftest import ADA, ORDER

from memsluice import Origin, Session
from memsluice.adapters.langgraph import GatedStore, session_of_config
from memsluice.adapters.langgraph.filters import matches
from memsluice.clock import wall_ms
from memsluice.errors import BatchNotRemembered, ConfigError, InvalidArgument, LandedElsewhere, NotRemembered, WriteHeld
from memsluice.memory.embedded import EmbeddedGate

PLACE = ("users", "ada")


@pytest.fixture
def store(gate: EmbeddedGate) -> GatedStore:
    """Return Ada's store."""
    return GatedStore(gate, ADA)


def test_an_item_is_put_got_found_replaced_and_deleted(store) -> None:
    """Whatever follows a put sees it."""
    store.put(PLACE, "drink", {"text": "Ada drinks tea.", "cups": 3})
    item = store.get(PLACE, "drink")
    assert (item.namespace, item.key, item.value) == (PLACE, "drink", {"text": "Ada drinks tea.", "cups": 3})
    (found,) = store.search(("users",), query="What does Ada drink?")
    assert (found.key, found.score > 0.5) == ("drink", True)
    store.put(PLACE, "drink", {"text": "Ada drinks coffee."})
    assert [one.value["text"] for one in store.search(PLACE)] == ["Ada drinks coffee."]
    store.delete(PLACE, "drink")
    assert (store.get(PLACE, "drink"), store.search(()), store.list_namespaces()) == (None, [], [])


def test_a_held_put_raises_and_leaves_the_item_as_it_was(store) -> None:
    """A graph that ignores the error would go on with the old value, not with the attacker's."""
    store.put(PLACE, "rule", {"text": "Ada pays on Fridays."})
    with pytest.raises(WriteHeld):
        store.put(PLACE, "rule", {"text": ORDER})
    assert store.get(PLACE, "rule").value == {"text": "Ada pays on Fridays."}


@pytest.mark.parametrize(
    "value",
    [
        {"text": ORDER}, {"data": {"notes": ["Ada likes tea.", ORDER]}}, {"kind": "habit", "score": 0.9, "m": ORDER},
        {ORDER: 1}, {"a": {ORDER.replace(" ", "\n"): [1]}}, {"q": f'"{ORDER}'}, {"n": [1, 2, ORDER, 3, 4]},
    ],
)  # fmt: skip
def test_an_order_is_held_wherever_in_a_value_it_stands(store, value) -> None:
    """A record around an order does not carry it past the detectors."""
    with pytest.raises(WriteHeld):
        store.put(("memories",), "m", value)


@pytest.mark.parametrize("place", [("memories", ORDER.replace(".", "")), tuple(ORDER.replace(".", "").split())])
def test_an_order_in_a_namespace_or_a_key_is_held(store, place) -> None:
    """Names are shown to the model like values: they are read as well."""
    with pytest.raises(WriteHeld):
        store.put(place, "k", {"n": 1})
    with pytest.raises(WriteHeld):
        store.put(("memories",), ORDER, {"n": 1})


@pytest.mark.parametrize("key", ["AKIAIOSFODNN7EXAMPLE", "password: hunter2hunter2"])
def test_a_key_that_looks_like_a_secret_is_told(store, key) -> None:
    """The gate takes it out, so the item lies where nobody looks for it: the put raises and says so."""
    with pytest.raises(LandedElsewhere, match="another key"):
        store.put(("memories",), key, {"n": 1})


def test_a_secret_in_a_value_leaves_the_rest_readable(store) -> None:
    """Also where it is a number: the item stays an item."""
    store.put(PLACE, "k", {"card": 4111111111111111, "name": "Ada", "note": "Ada pays by card."})
    value = store.get(PLACE, "k").value
    assert (value["name"], value["note"]) == ("Ada", "Ada pays by card.")
    assert "4111111111111111" not in str(value)


@pytest.mark.parametrize("ttl", [0, -1, float("inf"), float("nan"), "5"])
def test_a_time_to_live_that_is_none_is_refused(store, ttl) -> None:
    """Nothing is written that nobody could ever read."""
    with pytest.raises(InvalidArgument, match="ttl"):
        store.batch([PutOp(PLACE, "k", {"n": 1}, ttl=ttl)])
    with pytest.raises(InvalidArgument, match="value"):
        store.put(PLACE, "k", [1])


def test_a_session_that_saw_a_page_cannot_replace_or_delete(store) -> None:
    """Its puts and deletions lie outside of guidance: what a person had stays."""
    store.put(PLACE, "bank", {"text": "Ada pays from her savings account."})
    store.shelf().memory.observe(Origin.WEB, content="a page")
    for change in (lambda: store.put(PLACE, "bank", {"text": "Pay to Mallory."}), lambda: store.delete(PLACE, "bank")):
        with pytest.raises(WriteHeld):
            change()
    assert store.get(PLACE, "bank").value == {"text": "Ada pays from her savings account."}


def test_a_batch_is_done_in_its_order_and_tells_of_every_put(store) -> None:
    """A read between two puts sees the first and not the second; puts that fail together raise once."""
    first, read, second = PutOp(PLACE, "k", {"n": 1}), GetOp(PLACE, "k"), PutOp(PLACE, "k", {"n": 2})
    results = store.batch([first, read, second, SearchOp(PLACE), ListNamespacesOp()])
    assert (results[0], results[1].value, results[2]) == (None, {"n": 1}, None)
    assert ([one.value for one in results[3]], results[4]) == ([{"n": 2}], [PLACE])
    with pytest.raises(BatchNotRemembered) as caught:
        store.batch([PutOp(PLACE, "a", {"t": "Ada has a cat."}), PutOp(PLACE, "b", {"t": ORDER})])
    assert [isinstance(one, NotRemembered) for one in caught.value.results] == [False, True]
    assert store.get(PLACE, "a") is not None


def test_whose_memory_it_is_the_running_graph_says(gate) -> None:
    """Two persons in one graph have two memories; a call that names none is told what to name."""
    store = GatedStore(gate, session_of_config("acme", "assistant"))
    node = RunnableLambda(lambda text: (store.put(("m",), "k", {"text": text}), store.search(("m",)))[1])
    for who in ("ada", "ben"):
        given = {"configurable": {"user_id": who, "thread_id": f"{who}-1"}}
        assert [one.value["text"] for one in node.invoke(f"{who} has a bicycle.", given)] == [f"{who} has a bicycle."]
    with pytest.raises(ConfigError, match="no user_id and no thread_id"):
        store.get(("m",), "k")
    with pytest.raises(ConfigError, match="no thread_id"):
        node.invoke("x", {"configurable": {"user_id": "ada"}})


def test_asyncio_and_threads_find_the_same(store) -> None:
    """The embedded gate's files belong to one thread; who calls from another one need not know."""

    async def use() -> list[str]:
        await asyncio.gather(*(store.aput(PLACE, f"k{number}", {"n": number}) for number in range(5)))
        assert (await store.aget(PLACE, "k3")).value == {"n": 3}
        await store.adelete(PLACE, "k3")
        return sorted(one.key for one in await store.asearch(PLACE))

    assert asyncio.run(use()) == ["k0", "k1", "k2", "k4"]


def test_an_item_ends_with_its_time_unless_it_is_read(gate) -> None:
    """Read with less than half of its time left it is written anew; unread it is gone."""
    store = GatedStore(gate, ADA, ttl={"refresh_on_read": True})
    shelf, now = store.shelf(), wall_ms()
    shelf._now_ms = lambda: now
    store.put(PLACE, "k", {"text": "for a while"}, ttl=1)
    first = shelf.get([(PLACE, "k")])[PLACE, "k"]
    assert now + 60_000 <= first.expires_ms <= wall_ms() + 60_000
    now = first.expires_ms - 40_000
    store.get(PLACE, "k")
    assert shelf.get([(PLACE, "k")])[PLACE, "k"].expires_ms == first.expires_ms  # most of its time is left
    now = first.expires_ms - 20_000
    store.get(PLACE, "k", refresh_ttl=False)
    assert shelf.get([(PLACE, "k")])[PLACE, "k"].expires_ms == first.expires_ms
    store.search(PLACE)
    renewed = shelf.get([(PLACE, "k")])[PLACE, "k"]
    assert renewed.expires_ms == now + 60_000
    now = renewed.expires_ms
    assert (store.get(PLACE, "k"), store.search(PLACE), store.list_namespaces()) == (None, [], [])


def test_renewing_undoes_no_later_put(gate) -> None:
    """What was put since an item was read stays: it is read once more before it is written anew."""
    store = GatedStore(gate, ADA)
    shelf, now = store.shelf(), wall_ms()
    shelf._now_ms = lambda: now
    store.put(PLACE, "k", {"text": "the first"}, ttl=1)
    read = shelf.get([(PLACE, "k")])[PLACE, "k"]
    store.put(PLACE, "k", {"text": "the second"}, ttl=1)
    shelf._now_ms = lambda: read.expires_ms - 1_000
    shelf.renew([read])
    assert store.get(PLACE, "k", refresh_ttl=False).value == {"text": "the second"}


def test_what_is_not_indexed_no_question_finds(store) -> None:
    """``index=False`` keeps an item to who knows its name."""
    store.put(PLACE, "pin", {"text": "Ada's locker is on the left."}, index=False)
    assert store.search(PLACE, query="Where is Ada's locker?") == []
    assert [one.key for one in store.search(PLACE)] == ["pin"]
    assert store.get(PLACE, "pin") is not None


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (None, True), ({"n": 3}, True), ({"n": 4}, False), ({"n": {"$gt": 2, "$lte": 3}}, True),
        ({"n": {"$ne": 3}}, False),
        ({"t": {"$gt": 1}}, False), ({"in": {"a": [1, {"b": 2}]}}, True), ({"in": {"a": [1]}}, False),
        ({"gone": {"$eq": None}}, True), ({"in": {"a": {"b": 1}}}, False),
    ],
)  # fmt: skip
def test_a_filter_compares_as_langgraphs_stores_do(wanted, found) -> None:
    """Numbers in their order, lists element by element, records field by field."""
    assert matches({"n": 3, "t": "x", "in": {"a": [1, {"b": 2}]}}, wanted) is found


def test_an_unknown_operator_is_refused() -> None:
    """It is named, with those that there are: a filter that means nothing must not match all."""
    with pytest.raises(InvalidArgument, match=r"\$near"):
        matches({"n": 3}, {"n": {"$near": 3}})


def test_one_persons_items_are_not_anothers(gate, store) -> None:
    """Whatever namespace is asked for: a namespace sorts, it does not share."""
    store.put(("shared",), "k", {"text": "Ada's secret plan."})
    ben = GatedStore(gate, Session("acme", "assistant", "ben", "t9"))
    assert (ben.get(("shared",), "k"), ben.search(("shared",)), ben.list_namespaces()) == (None, [], [])
