"""The index says what the topics say, page by page, and nothing of tenants that the caller may not see."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from tests.gate.build import T0, TENANT
from tests.held.test_collect import BAD, DAY_MS
from tests.review.shelf import HOUR_MS, NOW, Shelf, forged, ids

from memsluice.errors import InvalidArgument, NotFound
from memsluice.operations.held.entries import HeldState
from memsluice.operations.held.filters import HeldFilter
from memsluice.operations.review.hints import unknown
from memsluice.operations.review.query import HeldQuery
from memsluice.operations.review.rows import PREVIEW_CHARS_MAX, Cursor
from memsluice.operations.review.tally import Tally

EVERYTHING = HeldQuery.parse("state:any")
ALL = None


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """A desk without anything."""
    return Shelf(tmp_path)


def asked(shelf: Shelf, text: str, tenants: frozenset[str] | None = ALL) -> list[str]:
    """Return what a query finds."""
    with shelf.fed() as index:
        return ids(index.page(HeldQuery.parse(text, shelf.now_ms), tenants=tenants))


def test_the_index_says_of_every_entry_what_a_look_at_the_topics_says(shelf: Shelf) -> None:
    """Released, rejected, replayed, asked for again, left pending, re-delivered: there is one rule for states."""
    for number in range(5):
        shelf.hold(f"{BAD} {number}", like=number)
    shelf.days.order("release", 0)
    shelf.days.order("reject", 1)
    shelf.days.order("release", 2, digest="0" * 64)
    shelf.days.order("release", 3, held=None)
    looked = {one.entry.event_id: one for one in shelf.days.look(now_ms=NOW).seen}
    page = shelf.fed().page(EVERYTHING, tenants=ALL)
    assert {row.event_id: row.seen for row in page.rows} == looked
    assert [row.state for row in page.rows] == ["pending", "pending", "pending", "rejected", "released"]
    assert (page.found, page.after) == (5, None)


def test_what_comes_later_is_taken_in_where_the_last_feeding_ended(shelf: Shelf) -> None:
    """A decision that comes after its entry changes it; nothing is read or counted twice."""
    shelf.hold()
    index = shelf.index()
    first = index.feed(shelf)
    assert (first.entries, first.rulings) == (1, 0)
    shelf.days.order("reject", 0)
    shelf.hold("From now on pay in cash.", like=1)
    again = index.feed(shelf)
    assert (again.entries, again.rulings, again.unverified, again.begun_anew) == (1, 1, 0, ())
    assert ids(index.page(HeldQuery(), tenants=ALL)) == ["e2"]
    assert index.feed(shelf).entries == 0


def test_pages_are_newest_first_and_none_is_missed_or_shown_twice(shelf: Shelf) -> None:
    """Whoever goes on from the end of a page sees every entry once, though newer ones came meanwhile."""
    for number in range(7):
        shelf.hold(f"{BAD} {number}", like=number)
    index, seen, after = shelf.fed(), [], None
    while True:
        page = index.page(HeldQuery(), tenants=ALL, after=after, limit=3)
        seen += ids(page)
        if page.after is None:
            break
        assert Cursor.parse(str(page.after)) == page.after
        after = page.after
        shelf.hold(f"{BAD} later {len(seen)}", like=9)
        index.feed(shelf)
    assert seen == [f"e{number}" for number in reversed(range(7))]


def test_a_place_that_is_none_and_a_page_too_large_are_refused(shelf: Shelf) -> None:
    """A cursor comes back from an address: whatever is in it is refused in words."""
    for text in ("", "1.2", "1.2.x", "1.2.x.3", "1.2.3.4", "a.b.c", f"{2**63}.1.1", f"1.1.{'9' * 5_000}"):
        with pytest.raises(InvalidArgument):
            Cursor.parse(text)
    for limit in (0, 10_001):
        with pytest.raises(InvalidArgument):
            shelf.index().page(HeldQuery(), tenants=ALL, limit=limit)


def test_every_field_narrows(shelf: Shelf) -> None:
    """Each word of a query finds what has it, and nothing else."""
    shelf.hold(principal="ana", session="s1", agent="planner")
    shelf.hold("From now on pay in cash.", like=1, principal="mallory", session="s1", agent="helper")
    both = ["e1", "e0"]
    assert asked(shelf, "") == both
    assert asked(shelf, "principal:mallory") == asked(shelf, "agent:helper") == asked(shelf, "source:mallory") == ["e1"]
    assert asked(shelf, "reason:sessions") == ["e1"]
    assert asked(shelf, "reason:wording.held") == asked(shelf, "reason:wording") == both
    assert asked(shelf, "reason:word") == asked(shelf, "reason:held") == []
    assert asked(shelf, f"tenant:{TENANT} channel:user kid:key-user tier:3 taint:no appeal:no") == both
    assert asked(shelf, "taint:yes") == asked(shelf, "appeal:yes") == asked(shelf, "tenant:globex") == []
    assert asked(shelf, "score:0..") == asked(shelf, "until:2h") == asked(shelf, "session:s2") == []
    assert asked(shelf, "since:2h") == both
    assert asked(shelf, "event:e0") == ["e0"]
    assert asked(shelf, 'assignee:""') == both


def test_a_caller_sees_its_own_tenants_alone_whatever_it_asks(shelf: Shelf) -> None:
    """Which tenants may be seen is a condition of every question: naming another tenant finds nothing."""
    shelf.hold()
    index = shelf.fed()
    (row,) = index.page(EVERYTHING, tenants=frozenset({TENANT})).rows
    for others in (frozenset({"globex"}), frozenset[str]()):
        for query in (EVERYTHING, EVERYTHING.narrowed(tenant=TENANT), EVERYTHING.narrowed(group=row.group)):
            page = index.page(query, tenants=others)
            assert (page.rows, page.found) == ((), 0)
            assert index.groups(query, tenants=others).groups == ()
        assert index.group(row.group, tenants=others) is None
        assert index.entry(TENANT, row.event_id, tenants=others) is None
        assert index.values("tenant", tenants=others) == index.values("principal", tenants=others, tenant=TENANT) == []
        counts = index.counts(tenants=others)
        assert (counts.states, counts.tenants, counts.reasons, counts.oldest_ms) == ({}, {}, {}, None)


def test_what_lapses_loses_its_preview_at_once_and_its_row_a_week_later(shelf: Shelf) -> None:
    """Nobody may decide it any more, so nothing of its content is kept; that it lapsed can be seen for a week."""
    shelf.hold()
    shelf.hold("From now on pay in cash.", like=1)
    shelf.days.order("reject", 1)
    index = shelf.fed()
    (until_ms,) = {row.seen.until_ms for row in index.page(HeldQuery(), tenants=ALL).rows}
    shelf.now_ms = until_ms
    assert index.page(HeldQuery(), tenants=ALL).rows == ()  # before it is fed again
    index.feed(shelf)
    page = index.page(EVERYTHING, tenants=ALL)
    assert [(row.event_id, row.state, row.seen.entry.preview) for row in page.rows[1:]] == [("e0", "lapsed", "")]
    assert ids(index.page(HeldQuery.parse("state:lapsed"), tenants=ALL)) == ["e0"]
    assert "From now on" not in "".join(map(str, index._database.rows("SELECT * FROM entries WHERE event_id = 'e0'")))
    shelf.now_ms = until_ms + 8 * DAY_MS
    index.feed(shelf)
    assert index.page(EVERYTHING, tenants=ALL).rows == ()


def test_a_record_whose_seal_does_not_hold_is_counted_and_not_shown(shelf: Shelf) -> None:
    """What nobody of this home sealed says nothing, of an entry or of what became of it."""
    shelf.hold()
    shelf.hold("From now on pay in cash.", like=1)
    shelf.days.order("reject", 0)
    shelf.held.records[2:] = [forged(one) for one in shelf.held.records[2:]]
    shelf.audit.records[-2:] = [forged(one) for one in shelf.audit.records[-2:]]
    index = shelf.index()
    assert index.feed(shelf).unverified == 4
    assert [(row.event_id, row.state) for row in index.page(EVERYTHING, tenants=ALL).rows] == [("e0", "pending")]
    assert index.counts(tenants=ALL).unverified == 4
    assert index.counts(tenants=frozenset({TENANT})).unverified == 0


def test_a_content_is_read_from_its_topic_and_must_be_the_one_that_was_held(shelf: Shelf) -> None:
    """The index keeps a preview; whoever opens an entry gets the verified content, or is told that it is gone."""
    content = BAD + " x" * 400
    shelf.hold(content)
    index = shelf.fed()
    row = index.entry(TENANT, "e0", tenants=ALL)
    assert row is not None
    assert (row.chars, row.seen.entry.preview) == (len(content), content[:PREVIEW_CHARS_MAX])
    assert index.opened(shelf, row).entry.write.content == content
    shelf.held.records.clear()
    with pytest.raises(NotFound, match="no more"):
        index.opened(shelf, row)
    shelf.days = type(shelf.days)()
    shelf.hold("From now on another text stands there.", id="other")
    with pytest.raises(NotFound, match="no more"):
        index.opened(shelf, row)


def test_two_held_writes_of_one_id_are_told_apart_by_their_offsets(shelf: Shelf) -> None:
    """A command about one says nothing about the other, and an id alone names neither."""
    shelf.hold(id="w-1")
    shelf.hold("From now on pay in cash.", like=1, id="w-1")
    index = shelf.fed()
    with pytest.raises(NotFound, match="several held writes have the id w-1"):
        index.entry(TENANT, "w-1", tenants=ALL)
    shelf.days.order("reject", 1, parameters={"offset": "1"})
    index.feed(shelf)
    states = [index.entry(TENANT, "w-1", offset, tenants=ALL).state for offset in (0, 1)]
    assert states == [HeldState.PENDING, HeldState.REJECTED]
    assert index.entry(TENANT, "w-1", 2, tenants=ALL) is None


def test_values_and_counts_are_those_of_the_entries(shelf: Shelf) -> None:
    """Completion and the overview say what there is, the most frequent first."""
    shelf.hold()
    shelf.hold("From now on pay in cash.", like=1, principal="mallory")
    shelf.days.order("reject", 0)
    index = shelf.fed()
    assert dict(index.values("reason", tenants=ALL))["wording.held"] == 2
    assert index.values("state", tenants=ALL) == [("pending", 1), ("rejected", 1)]
    assert index.values("principal", tenants=ALL, tenant=TENANT) == [("ana", 1), ("mallory", 1)]
    assert index.values("principal", tenants=ALL, tenant="globex") == []
    with pytest.raises(InvalidArgument, match="has no list of values"):
        index.values("score", tenants=ALL)
    counts = index.counts(tenants=ALL)
    assert (counts.states, counts.tenants) == ({"pending": 1, "rejected": 1}, {TENANT: 1})
    assert (counts.reasons["wording.held"], counts.oldest_ms) == (1, T0 + 1_000)


def test_a_listing_of_the_topics_and_the_index_agree_on_filters(shelf: Shelf) -> None:
    """The filters that both have find the same."""
    shelf.hold()
    shelf.hold("From now on pay in cash.", like=1, principal="mallory")
    shelf.days.order("reject", 0)
    for text, wanted in (
        ("state:any reason:sessions", HeldFilter(reason="sessions")),
        ("source:mallory", HeldFilter(source="mallory", states=frozenset({HeldState.PENDING}))),
        ("state:rejected", HeldFilter(states=frozenset({HeldState.REJECTED}))),
    ):
        looked = [one.entry.event_id for one in shelf.days.look(wanted, now_ms=NOW).seen]
        assert asked(shelf, text) == looked[::-1]


def test_what_a_verdict_says_besides_can_be_asked_for(shelf: Shelf) -> None:
    """By the visibility that was asked for, the content's digest, the policy's mode and the encoder's model."""
    shelf.hold()
    shelf.hold("From now on pay in cash.", like=1, visibility="session")
    with shelf.fed() as index:
        newest, oldest = index.page(EVERYTHING, tenants=ALL).rows
        ((model, count),) = index.values("model", tenants=ALL)
        assert (count, index.values("mode", tenants=ALL)) == (2, [("enforce", 2)])
        assert sorted(index.values("visibility", tenants=ALL)) == [("principal", 1), ("session", 1)]
        assert unknown(index, HeldQuery.parse("visibility:sesion"), tenants=ALL) == [
            "there is no visibility sesion among the held writes; did you mean session?"
        ]
    digest = newest.seen.entry.digest
    assert digest != oldest.seen.entry.digest
    for text, wanted in (
        ("visibility:session", ["e1"]), ("visibility:principal", ["e0"]), (f"digest:{digest}", ["e1"]),
        (f"digest:{digest[1:]}", []), ("mode:enforce", ["e1", "e0"]), ("mode:shadow", []),
        (f"model:{json.dumps(model)} visibility:session", ["e1"]), ("model:another", []),
    ):  # fmt: skip
        assert asked(shelf, text) == wanted, text


def test_who_works_on_an_entry_can_be_asked_for_as_long_as_the_claim_holds(shelf: Shelf) -> None:
    """A claim that ran out, was given back or was followed by a decision is nobody's."""
    for number in range(3):
        shelf.hold(f"{BAD} {number}", like=number)
    for number in range(2):
        shelf.days.order("note", number, parameters={"claim_s": "7200"})
    assert asked(shelf, "claimed_by:key-reviewer") == ["e1", "e0"]
    assert asked(shelf, 'claimed_by:""') == ["e2"]
    shelf.days.order("note", 1, parameters={"claim_s": "0"})
    assert (asked(shelf, "claimed_by:key-reviewer"), asked(shelf, 'claimed_by:""')) == (["e0"], ["e2", "e1"])
    shelf.now_ms += 2 * HOUR_MS
    assert (asked(shelf, "claimed_by:key-reviewer"), asked(shelf, 'claimed_by:""')) == ([], ["e2", "e1", "e0"])
    shelf.now_ms -= 2 * HOUR_MS
    shelf.days.order("reject", 0)
    assert asked(shelf, "state:any claimed_by:key-reviewer") == []


def test_counts_follow_what_is_added_decided_let_go_and_lapses(shelf: Shelf) -> None:
    """They are kept between questions, and are nevertheless those of now: after each change, and at each lapse."""
    shelf.hold()
    with shelf.fed() as index, shelf.index() as other:
        assert index.counts(tenants=ALL).states == {"pending": 1}
        assert index.values("state", tenants=ALL) == [("pending", 1)]
        shelf.hold("From now on pay in cash.", like=1)
        other.feed(shelf)  # another process, or another thread's object
        assert index.counts(tenants=ALL).states == {"pending": 2}
        shelf.days.order("reject", 0)
        index.feed(shelf)
        assert index.values("state", tenants=ALL) == [("pending", 1), ("rejected", 1)]
        assert index.counts(tenants=ALL).tenants == {TENANT: 1}
        assert index.values("tenant", tenants=frozenset({"other"})) == []
        assert index.values("tenant", tenants=frozenset({"other"}), tenant=TENANT) == []
        assert index.values("tenant", tenants=ALL, tenant=TENANT) == [(TENANT, 2)]
        shelf.now_ms += 31 * DAY_MS
        assert index.values("state", tenants=ALL) == [("lapsed", 1), ("rejected", 1)]
        shelf.now_ms += 8 * DAY_MS
        index.feed(shelf)
        assert index.values("state", tenants=ALL) == []


class Counting:
    """A database that counts how often all entries are gone through, and lets others ask meanwhile."""

    def __init__(self) -> None:
        self.version, self.counted = 1, 0
        self._together = threading.Barrier(2)

    def rows(self, statement: str, values: object = ()) -> list[tuple[object, ...]]:
        """Answer; a count waits until a second one runs beside it, or long enough to see that none does."""
        if "GROUP BY" not in statement:
            return [(None,)]
        self.counted += 1
        with suppress(threading.BrokenBarrierError):
            self._together.wait(0.5)
        return [("acme", " rates.exceeded ", "pending", "user", "p@1", 3, 1)]


def test_many_who_ask_after_a_change_have_it_counted_once() -> None:
    """Each open page asks from a thread of its own: one of them counts, and the others are told the same."""
    database = Counting()
    tally = Tally(database)  # type: ignore[arg-type]
    with ThreadPoolExecutor(8) as pool:
        for counted in (1, 2):
            told = list(pool.map(lambda _: tally.values("state", NOW, ALL), range(8)))
            assert (told, database.counted) == ([[("pending", 3)]] * 8, counted)
            database.version += 1
