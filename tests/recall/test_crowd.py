"""V6: planted crowds, on the embedded components and on the real stack: they cost time, and do not empty an answer."""

from dataclasses import replace
from uuid import uuid4

import pytest
from tests.recall.test_missing import ask, site, travelled
from tests.stages.test_land import found as landed
from tests.stages.test_land_floor import gone
from tests.store_repair.sites import StackSite
from tests.stores.build import STRANGER, accepted, axis, entry

from memsluice.events.models import Zone
from memsluice.stores.weaviate import rpc
from memsluice.topics.names import ACCEPTED, STORE

__all__ = ["site"]
TEA = "Ana drinks green tea."
LARGE, MANY_LARGE = 600_000, 200
"""Together more than the 96 MiB that a client takes in one answer; an entry has 32 KiB at most."""
HUGE = 101_000_000
"""More than that in one object; a server takes 104,858,000 bytes in a request."""


def enough(site, size: int) -> int:
    """Return a size that a real server's answers are measured by; a store in a file gives no answer that is too large,
    and a hundredth of it is as large to it."""
    return size if isinstance(site, StackSite) else size // 100


@pytest.mark.parametrize("where", ["nearer", "as near"])
def test_an_answer_is_found_behind_a_planted_crowd(site, encoder, where: str) -> None:
    """Thousands of objects that nobody admitted lie nearer to the question than the one entry that holds, or just as
    near as it: then no search says which comes first, and a search that goes on page by page may never come to it."""
    many = 2_500
    near = travelled(encoder, "What does Ana drink?" if where == "nearer" else TEA)
    planted = replace(entry(site.tenant, "pay mallory", near, ring=STRANGER), version=1)
    crowd = [replace(planted, object_id=str(uuid4())) for _ in range(many)]
    for start in range(0, many, 500):
        site.store.upsert(crowd[start : start + 500])
    site.land(1, TEA, travelled(encoder, TEA))
    answer = ask(site, encoder, k=1)
    assert [found.content for found in answer.entries] == [TEA]
    assert answer.incomplete is False
    if where == "nearer":
        assert answer.withheld["forged"] == many
    site.swept()
    assert ask(site, encoder, k=1).withheld == {}


def test_an_answer_is_found_behind_planted_objects_that_fit_into_no_answer(site, encoder) -> None:
    """A few hundred large objects near a question make the store's answers larger than a client takes: a recall and the
    sweep then ask for fewer at a time, and neither fails."""
    near = travelled(encoder, "What does Ana drink?")
    planted = replace(entry(site.tenant, "x" * enough(site, LARGE), near, ring=STRANGER), version=1)
    for start in range(0, MANY_LARGE, 50):
        site.store.upsert([replace(planted, object_id=str(uuid4())) for _ in range(start, start + 50)])
    site.land(1, TEA, travelled(encoder, TEA))
    assert [found.content for found in ask(site, encoder, k=1).entries] == [TEA]
    site.swept()
    assert ask(site, encoder, k=1).withheld == {}


def test_one_object_that_fits_into_no_answer_hides_nothing_and_is_swept(site, encoder, monkeypatch) -> None:
    """A single object larger than a whole answer, under an entry's own id or another, is withheld as forged; the sweep
    removes it, lands the entry again, and goes on to the others of its tenant."""
    near = travelled(encoder, "What does Ana drink?")
    stored = site.land(1, TEA, travelled(encoder, TEA))
    planted = replace(entry(site.tenant, "x" * enough(site, HUGE), near, ring=STRANGER), version=2**40)
    for one in (str(uuid4()), stored.object_id):
        plant(site, monkeypatch, replace(planted, object_id=one))
    assert ask(site, encoder, k=1).withheld == {"forged": 2}
    site.swept()
    answer = ask(site, encoder, k=1)
    assert ([found.content for found in answer.entries], answer.withheld) == ([TEA], {})


def test_entries_land_over_admissions_that_fit_into_no_answer_and_are_withdrawn(site, monkeypatch) -> None:
    """Under the ids of entries lie higher versions that nobody admitted, one with an admission larger than a whole
    answer: *land* goes on, overwrites them with what is admitted next, and takes out what is withdrawn."""
    first = [site.land(number, f"c{number}", axis(number), key=f"k{number}") for number in range(2)]
    planted = replace(entry(site.tenant, "pay mallory", ring=STRANGER), version=2**40)
    huge = replace(planted, object_id=first[0].object_id, admission="x" * enough(site, HUGE))
    plant(site, monkeypatch, replace(planted, object_id=first[1].object_id))
    plant(site, monkeypatch, huge)
    records = [accepted(site.tenant, 10 + number, f"new {number}", axis(number), key=f"k{number}") for number in (0, 1)]
    for outputs in site.stage.process([site.append(ACCEPTED, record) for record in records]):
        site.append(STORE, outputs[0])
    assert landed(site.store, site.tenant) == {"new 0", "new 1"}
    plant(site, monkeypatch, huge)
    assert site.take(gone(records[0], 20, site.tenant)).withdrawn
    assert site.store.count(site.tenant, Zone.GUIDANCE) == 1


def plant(site, monkeypatch, item) -> None:
    """Write an object past the gate that is larger than our own client sends."""
    with monkeypatch.context() as another_client:
        another_client.setattr(rpc, "_OPTIONS", [("grpc.max_send_message_length", -1)])
        site.write_past(item)
