"""V6: planted crowds, on the embedded components and on the real ones: they cost time, and do not empty an answer."""

from dataclasses import replace
from uuid import uuid4

import pytest
from tests.recall.test_missing import ask, site, travelled
from tests.stores.build import STRANGER, entry

from memsluice.stores.weaviate import rpc

__all__ = ["site"]
TEA = "Ana drinks green tea."
LARGE, MANY_LARGE = 600_000, 200
"""Together more than the 96 MiB that a client takes in one answer; an entry has 32 KiB at most."""
HUGE = 101_000_000
"""More than that in one object; a server takes 104,858,000 bytes in a request."""


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
    planted = replace(entry(site.tenant, "x" * LARGE, near, ring=STRANGER), version=1)
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
    planted = replace(entry(site.tenant, "x" * HUGE, near, ring=STRANGER), version=2**40)
    with monkeypatch.context() as another_client:
        another_client.setattr(rpc, "_OPTIONS", [("grpc.max_send_message_length", -1)])
        for one in (str(uuid4()), stored.object_id):
            site.write_past(replace(planted, object_id=one))
    assert ask(site, encoder, k=1).withheld == {"forged": 2}
    site.swept()
    answer = ask(site, encoder, k=1)
    assert ([found.content for found in answer.entries], answer.withheld) == ([TEA], {})
