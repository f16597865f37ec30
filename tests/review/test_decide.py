"""Decisions about many: nothing unread is decided, each entry has its result, and a rejection can be taken back."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gate.build import RING, TENANT
from tests.held.test_collect import BAD
from tests.review.shelf import Shelf

from memsluice.errors import BrokerUnavailable, ConfigError, InvalidArgument
from memsluice.events.models import Action
from memsluice.operations.held.collect import HeldReview
from memsluice.operations.held.commands import shown
from memsluice.operations.review.decide import (
    DECIDES,
    ENTRIES_MAX,
    Came,
    DecisionResult,
    Left,
    came_of,
    decide,
    name_of,
    plan,
    taken_back,
)
from memsluice.operations.review.noting import note
from memsluice.operations.review.query import HeldQuery
from memsluice.operations.trace.verdicts import verified

ANY = HeldQuery.parse("state:any")


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """A desk with three held writes."""
    shelf = Shelf(tmp_path)
    for number in range(3):
        shelf.hold(f"{BAD} {number}", like=number, session=f"s{number % 2}")
    return shelf


def opened(shelf: Shelf, query: HeldQuery = ANY) -> list[HeldReview]:
    """Return entries with their contents, oldest first."""
    with shelf.fed() as index:
        return [index.opened(shelf, row) for row in reversed(index.page(query, tenants=None).rows)]


def read(*entries: HeldReview) -> dict:
    """Return what a screen says that shows entries as they are."""
    return {name_of(one.entry): shown(one.entry.write.content) for one in entries}


def run(shelf: Shelf, todo, **options) -> list[DecisionResult]:
    """Decide what a plan has."""
    return decide(shelf, todo, 0.0, clock=lambda: shelf.now_ms, sleep=lambda _: None, **options)


def states(shelf: Shelf) -> dict[str, str]:
    """Return the state of every entry by its id."""
    with shelf.fed() as index:
        return {row.event_id: row.state.value for row in index.page(ANY, tenants=None).rows}


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from(["shown", "shown otherwise", "shown as another", "not shown"]), min_size=1, max_size=6),
    st.sampled_from([Action.RELEASE, Action.REJECT]),
    st.booleans(),
)
def test_nothing_is_decided_whose_content_was_not_shown(tmp_path_factory, how, action, lying) -> None:
    """Whatever a screen says that it showed: that alone is let in or rejected; a plan that lies gets no more."""
    shelf = Shelf(tmp_path_factory.mktemp("shown"))
    for number, _ in enumerate(how):
        shelf.hold(f"{BAD} {number}", like=number)
    entries = opened(shelf)
    told = {}
    for one, (number, way) in zip(entries, enumerate(how), strict=True):
        if way == "shown":
            told |= read(one)
        elif way == "shown otherwise":
            told[name_of(one.entry)] = shown(one.entry.write.content + " ")
        elif way == "shown as another":
            told[name_of(one.entry)] = shown(f"{BAD} {number + 1}")
    made = plan(entries, action, told)
    if lying:  # a plan that nobody made by plan(), of entries whose contents are others than were held
        other = {
            name_of(one.entry): replace(
                one, entry=replace(one.entry, write=one.entry.write.model_copy(update={"content": "harmless"}))
            )
            for one in entries
        }
        kept = {name_of(one.entry) for one in made.todo}
        made = replace(
            made, todo=tuple(one if name_of(one.entry) in kept else other[name_of(one.entry)] for one in entries)
        )
    results = run(shelf, made)
    wanted = {f"e{number}" for number, way in enumerate(how) if way == "shown"}
    decided = {one for one, state in states(shelf).items() if state != "pending"}
    assert decided == {one.seen.entry.event_id for one in results if one.came is Came.DONE} == wanted


def test_a_plan_says_what_is_left_out_and_what_differs(shelf: Shelf) -> None:
    """Whoever decides sees what they decide, what they do not, and why."""
    shelf.days.order("reject", 2)
    entries = opened(shelf)
    told = read(*entries) | {name_of(entries[1].entry): "0" * 64}
    made = plan(entries, Action.RELEASE, told, "read")
    assert [one.entry.event_id for one in made.todo] == ["e0"]
    assert [(one.entry.event_id, why) for one, why in made.left] == [("e1", Left.OTHER), ("e2", Left.STATE)]
    assert [why for _, why in plan(entries[:1], Action.RELEASE, {}).left] == [Left.UNREAD]
    light = replace(entries[0], entry=replace(entries[0].entry, write=None))
    assert [why for _, why in plan([light], Action.RELEASE, told).left] == [Left.UNREAD]
    whole = plan(entries[:2], Action.REJECT, read(*entries)).differs
    assert whole.fields == {"session": {"s0": 1, "s1": 1}}
    assert whole.chars == (len(BAD) + 2,) * 2
    assert whole.held_ms[1] - whole.held_ms[0] == 1_000


def test_a_plan_is_bounded_and_of_an_action_that_decides(shelf: Shelf) -> None:
    """No more than a person reads; and what decides nothing is refused."""
    (one, *_) = opened(shelf)
    many = [replace(one, entry=replace(one.entry, offset=number)) for number in range(ENTRIES_MAX + 1)]
    with pytest.raises(InvalidArgument, match="too many for one plan"):
        plan(many, Action.RELEASE, {})
    with pytest.raises(InvalidArgument, match="decides no held write"):
        plan([one], Action.REVOKE, {})
    assert {*DECIDES} == {Action.RELEASE, Action.REJECT, Action.REOPEN}


def test_each_entry_has_its_result_and_a_conflict_says_so(shelf: Shelf) -> None:
    """What somebody else decided since is a conflict; it keeps no other from being decided."""
    entries = opened(shelf)
    shelf.days.order("reject", 1)
    results = run(shelf, plan(entries, Action.RELEASE, read(*entries)))
    assert [one.came for one in results] == [Came.DONE, Came.CONFLICT, Came.DONE]
    told = r"review.decided: the write was released or rejected before \(it was rejected by command e\d\)"
    assert re.fullmatch(told, results[1].told)
    assert states(shelf) == {"e0": "released", "e1": "rejected", "e2": "released"}


def test_what_a_command_came_to_is_read_in_one_way(shelf: Shelf) -> None:
    """Of decisions, notes and any other command, done, refused, too late or repeated, all who sign are told the same;
    what a note says only to who may read it."""
    days = shelf.days
    days.order("note", 0, reason="Asked ana.", parameters={"claim_s": "60"})  # e3, and so on
    days.order("reject", 1)
    days.order("release", 1)
    days.order("release", 2, digest="0" * 64)
    days.order("release", 2)
    days.order("activate", 2)
    days.order("reject", 1, id="e4")
    audit = [verified(RING, one) for one in shelf.audit.records[::2]][3:]
    came = [came_of(one) for one in audit]
    assert [one for one, _ in came] == ["done", "done", "conflict", "refused", "done", "refused", "conflict"]
    told = [words for _, words in came]
    assert re.fullmatch("claimed by key-reviewer until .* UTC; note: Asked ana.", told[0])
    assert came_of(audit[0], texts=False)[1] == told[0].partition("; note")[0]
    assert (told[1], told[4]) == ("rejected", "released")
    assert told[2].endswith("(it was rejected by command e4)")
    assert told[3].startswith("review.other_digest: ")
    assert told[5].startswith("commands.not_permitted: ")
    assert told[6] == "a command of this id was answered before: look again"
    assert came_of(None) == ("no answer", "the command is in the log, and is decided in its order")


def test_a_note_under_an_id_that_was_answered_before_is_a_conflict(shelf: Shelf) -> None:
    """It is not told of as if its answer were still to come."""
    (one, *_) = opened(shelf)
    options = {"clock": lambda: shelf.now_ms, "sleep": lambda _: None}
    first, again = (note(shelf, one, "Asked.", {}, 0.0, new_id=lambda: "n-1", **options) for _ in range(2))
    assert (first.came, first.told) == (Came.DONE, "note: Asked.")
    assert again.came is Came.CONFLICT


def test_a_rejection_is_taken_back_and_a_release_is_not(shelf: Shelf) -> None:
    """Undo is of what the run rejected and nobody decided since; of a release there is none."""
    entries = opened(shelf)
    released = run(shelf, plan(entries[:1], Action.RELEASE, read(*entries)))
    assert taken_back(released).todo == ()
    rejected = run(shelf, plan(entries[1:], Action.REJECT, read(*entries)))
    back = taken_back(rejected, "by mistake")
    assert [one.entry.event_id for one in back.todo] == ["e1", "e2"]
    run(shelf, replace(back, todo=back.todo[1:]))
    results = run(shelf, back)
    assert [one.came for one in results] == [Came.DONE, Came.CONFLICT]
    assert states(shelf) == {"e0": "released", "e1": "pending", "e2": "pending"}


def test_an_entry_that_was_decided_anew_since_it_was_shown_is_a_conflict(shelf: Shelf) -> None:
    """A decision is bound to how the entry stood on the screen."""
    entries = opened(shelf)
    run(shelf, taken_back(run(shelf, plan(entries, Action.REJECT, read(*entries)))))
    results = run(shelf, plan(entries, Action.RELEASE, read(*entries)))
    assert {one.came for one in results} == {Came.CONFLICT}
    assert results[0].told.startswith("review.stale")


def test_what_is_too_large_to_be_carried_keeps_no_other_back(shelf: Shelf) -> None:
    """It is told of as not sent, and why."""
    entries = opened(shelf)
    entries[1] = replace(entries[1], entry=replace(entries[1].entry, sealed="x" * 2_000_000))
    results = run(shelf, plan(entries, Action.RELEASE, read(*entries)))
    assert [one.came for one in results] == [Came.DONE, Came.NOT_SENT, Came.DONE]
    assert "too large" in results[1].told


def test_a_broker_that_goes_away_leaves_no_entry_without_a_word(shelf: Shelf) -> None:
    """Before anything is published it is an error; after that nobody knows, and each entry says so."""
    entries = opened(shelf)
    todo = plan(entries, Action.REJECT, read(*entries))

    def gone(commands) -> list[str]:
        Shelf.publish(shelf, commands[:1])
        raise BrokerUnavailable("the broker does not answer")

    shelf.publish = gone
    results = run(shelf, todo)
    assert {(one.came, one.told) for one in results} == {
        (Came.NO_ANSWER, "it may be decided yet: the broker does not answer")
    }
    shelf.signer = lambda tenant: (_ for _ in ()).throw(ConfigError(f"no reviewer for {tenant}"))
    with pytest.raises(ConfigError, match=f"no reviewer for {TENANT}"):
        run(shelf, todo)
    assert sorted(states(shelf).values()) == ["pending", "pending", "rejected"]
