"""The embedded store: the contract, and what is its own."""

import sqlite3
from contextlib import closing

import pytest
from tests.stores.build import T0, axis, entry
from tests.stores.contract import ANA, OTHER, OtherEncoderContract, StoreContract, contents, other_axis

from memsluice.envelope.space import DEFAULT
from memsluice.errors import StoreError, StoreUnavailable
from memsluice.events.models import Zone
from memsluice.stores.base import Scope, StoreAnswer
from memsluice.stores.faiss.store import FaissStore


class TestFaissStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        """Return a store in a new file."""
        made = FaissStore(tmp_path / "store.db")
        yield made
        made.close()


def test_a_store_in_memory_needs_no_file(tmp_path, monkeypatch) -> None:
    """ ":memory:" serves experiments and writes nothing to the disk."""
    monkeypatch.chdir(tmp_path)
    store = FaissStore(":memory:")
    store.upsert([entry("acme", "here")])
    assert contents(store, "acme") == ["here"]
    assert list(tmp_path.iterdir()) == []


def test_another_process_sees_what_was_written(tmp_path) -> None:
    """`memsluice recall` reads the file that the running demo writes: what is acknowledged there is found here."""
    writer, reader = FaissStore(tmp_path / "s.db"), FaissStore(tmp_path / "s.db")
    writer.upsert([entry("acme", "one")])
    assert contents(reader, "acme") == ["one"]
    writer.upsert([entry("acme", "two", axis(1), event_id="e2")])
    assert contents(reader, "acme") == ["one", "two"]
    reader.delete("acme", Zone.GUIDANCE, [entry("acme", "one").object_id])
    assert contents(writer, "acme") == ["two"]


def test_rows_that_somebody_damaged_do_not_stop_a_search(tmp_path) -> None:
    """Text in a number's column, bytes that are no UTF-8, a vector cut short: the rest is found."""
    store = FaissStore(tmp_path / "s.db")
    store.upsert([entry("acme", f"c{n}", axis(n), event_id=f"e{n}", principal="ana") for n in range(4)])
    with sqlite3.connect(tmp_path / "s.db") as other:
        other.execute("UPDATE store_objects SET tier = 'high', content = CAST(x'ff00' AS TEXT) WHERE event_id = 'e1'")
        other.execute("UPDATE store_objects SET vector = x'0011' WHERE event_id = 'e2'")
        other.execute("UPDATE store_objects SET vector = 'text', version = 1.5 WHERE event_id = 'e3'")
    hits = store.search("acme", Zone.GUIDANCE, axis(0), 10, ANA, "default", T0)
    assert {hit.object.event_id: hit.object.tier for hit in hits} == {"e0": 3, "e1": -1}


def test_a_damaged_file_is_a_failure_that_says_what_to_do(tmp_path) -> None:
    """Damage does not pass: the error is not the one that promises a later success, and names file and remedy."""
    (tmp_path / "s.db").write_text("this is no database, and longer than a header of one would have to be" * 20)
    store = FaissStore(tmp_path / "s.db")
    for use in (
        lambda: store.search("acme", Zone.GUIDANCE, axis(0), 1, Scope(), "default", T0),
        lambda: store.upsert([entry("acme", "one")]),
        lambda: store.count("acme", Zone.GUIDANCE),
        lambda: store.versions("acme", Zone.GUIDANCE, ["x"]),
    ):
        with pytest.raises(StoreError, match=r"s\.db is damaged.*restore") as found:
            use()
        assert not isinstance(found.value, StoreUnavailable)


def test_a_store_that_another_process_holds_may_answer_later(tmp_path, monkeypatch) -> None:
    """A lock passes: the error is the one after which the same request may succeed."""
    monkeypatch.setattr("memsluice.stores.faiss.store.BUSY_TIMEOUT_S", 0.01)
    store = FaissStore(tmp_path / "s.db")
    store.upsert([entry("acme", "one")])
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="in use by another process"):
            store.upsert([entry("acme", "two")])


class TestFaissStoreOfAnotherEncoder(OtherEncoderContract):
    @pytest.fixture
    def store(self, tmp_path):
        """Return a store in a new file."""
        made = FaissStore(tmp_path / "store.db")
        yield made
        made.close()


def test_a_file_that_names_no_encoder_is_of_the_default_one(tmp_path) -> None:
    """A store of before there was a choice is read as ever, and refuses another encoder's vectors; an empty one takes
    any."""
    store = FaissStore(tmp_path / "s.db")
    assert store.space() is None
    store.upsert([entry("acme", "here")])
    with closing(sqlite3.connect(tmp_path / "s.db")) as older:
        older.execute("DROP TABLE store_encoder")
        older.commit()
    assert store.space() == DEFAULT
    assert contents(store, "acme") == ["here"]
    (refused,) = store.upsert([entry("acme", "other", other_axis(0), model=OTHER.model, event_id="e2")])
    assert refused.outcome is StoreAnswer.REFUSED
    store.delete("acme", Zone.GUIDANCE, [entry("acme", "here").object_id])
    assert store.space() is None
    store.close()
