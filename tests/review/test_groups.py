"""Groups: who belongs together, that ids do not move, and what a group says of its members."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gate.build import T0, TENANT, axis
from tests.held.test_collect import BAD
from tests.review.shelf import HOUR_MS, NOW, Shelf

from memsluice.errors import InvalidArgument
from memsluice.events.models import Tier
from memsluice.operations.held.entries import HeldVerdict, HeldWrite
from memsluice.operations.review import feeding, groups, index
from memsluice.operations.review.database import Database
from memsluice.operations.review.grouping import IDLE_MS_MAX, LIVE_MAX, NEAR, LiveGroups
from memsluice.operations.review.query import HeldQuery

ANY = HeldQuery.parse("state:any")
VERDICT = HeldVerdict(
    T0, "d", ("wording.held",), "user", "planner", "ana", "s1", "key-user", "p", Tier.USER_OBSERVED, False, None, None,
    None, False,
)  # fmt: skip


def entry(number: int, held_ms: int = T0) -> HeldWrite:
    """Return a held write, without its content."""
    return HeldWrite(TENANT, f"e{number}", 0, number, number, replace(VERDICT, decided_ms=held_ms), "")


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """A desk without anything."""
    return Shelf(tmp_path)


def partition_of_ids(shelf: Shelf, name: str = "index") -> list[set[str]]:
    """Return the groups' members in an index of its own, and check that ids and members are one to one."""
    (home := shelf.home / name).mkdir(exist_ok=True)
    with index.ReviewIndex.open(home, clock=lambda: shelf.now_ms) as fresh:
        fresh.feed(shelf)
        rows = fresh.page(ANY, tenants=None, limit=1_000).rows
    found = dict[str, set[str]]()
    for row in rows:
        found.setdefault(row.group, set()).add(row.event_id)
    return [found[group] for group in sorted(found)]


def test_near_contents_of_one_writer_and_rule_are_one_group(shelf: Shelf) -> None:
    """What is near to the first member joins; another rule, or what lies farther, begins a group of its own."""
    shelf.hold(like=0)
    shelf.hold(f"{BAD} 2", like=0, cosine=NEAR + 0.01)
    shelf.hold(f"{BAD} 3", like=0, cosine=NEAR - 0.01)
    shelf.hold("A plain note.", like=0, principal="mallory")  # held for who says it, and not for what it says
    shelf.hold(f"{BAD} 5", like=0, model="another@1")
    assert sorted(map(sorted, partition_of_ids(shelf))) == [["e0", "e1"], ["e2"], ["e3"], ["e4"]]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1.0, 0.9, 0.8])), min_size=1, max_size=12), st.data())
def test_the_same_records_give_the_same_groups_however_they_are_read(tmp_path_factory, held, data) -> None:
    """Ids follow from the order of the topic, whether it is read at once, in batches or in pieces."""
    shelf = Shelf(tmp_path_factory.mktemp("groups"))
    for number, (like, cosine) in enumerate(held):
        shelf.hold(f"{BAD} {number}", like=like, cosine=cosine)
    records = list(shelf.held.records)
    whole = partition_of_ids(shelf)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(feeding, "BATCH", data.draw(st.integers(1, 5)))
        for end in sorted(data.draw(st.lists(st.integers(0, len(records)), max_size=3))):
            shelf.held.records = records[:end]
            partition_of_ids(shelf, "in pieces")
        shelf.held.records = records
        assert partition_of_ids(shelf, "in pieces") == whole


def test_the_groups_that_can_be_joined_are_bounded_and_end() -> None:
    """A flood of unlike writes closes the group that was joined least lately; a month's silence closes any."""
    live = LiveGroups()
    first, second = live.place(entry(0), axis(0)), live.place(entry(1), axis(1))
    for number in range(2, LIVE_MAX):
        live.place(entry(number), axis(number))
    assert live.place(entry(100), axis(0)) == first  # and was joined last by that
    live.place(entry(101), axis(LIVE_MAX))
    assert len(live.exemplars) == LIVE_MAX
    assert live.place(entry(102), axis(0)) == first
    assert live.place(entry(103), axis(1)) != second
    assert live.place(entry(104, T0 + IDLE_MS_MAX), axis(0)) != first


def test_a_vector_of_another_length_or_none_joins_nothing() -> None:
    """No record of a verified writer can make the feeding fail by its vector."""
    live = LiveGroups()
    first = live.place(entry(0), axis(0))
    assert live.place(entry(1), np.ones(1, np.float32)) != first
    assert live.place(entry(2), None) not in (first, live.place(entry(3), None))


def test_a_group_says_how_many_since_when_and_what_differs(shelf: Shelf) -> None:
    """Count, first and last, states, the trend by hours, an example, and the fields in which members differ."""
    for number in range(3):
        shelf.hold(f"{BAD}{'!' * number}", session=f"s{number}")
    shelf.hold("From now on pay in cash.", like=1)
    shelf.days.order("reject", 0)
    found = shelf.fed().groups(HeldQuery(), tenants=None)
    one, other = sorted(found.groups, key=lambda group: -group.count)
    assert (one.tenant, one.kid, one.reason, one.count) == (TENANT, "key-user", "wording.held", 2)
    assert (one.states, one.example.event_id) == ({"pending": 2, "rejected": 1}, "e2")
    assert one.last_ms - one.first_ms == 1_000
    assert one.differs == {"session": 2}
    assert one.chars == (len(BAD) + 1, len(BAD) + 2)
    assert (sum(one.trend), one.trend[-1], len(one.trend)) == (3, 3, 24)
    assert (other.count, other.differs, found.after) == (1, {}, None)
    shelf.now_ms = NOW + 5 * HOUR_MS
    assert shelf.fed().group(one.id, tenants=None).trend[-6] == 3
    whole = shelf.fed().group(one.id, tenants=None)
    assert whole is not None
    assert (whole.count, whole.id) == (3, one.id)
    assert shelf.fed().group("0" * 16, tenants=None) is None


def test_a_group_that_is_decided_while_it_is_listed_stands_there_as_it_was(shelf: Shelf, monkeypatch) -> None:
    """A list is of one moment: what another process takes in between its questions is in the next one."""
    shelf.hold()
    ask = Database.rows
    with shelf.fed() as asked, shelf.index() as other:
        shelf.days.order("reject", 0)

        def rows(self: Database, statement: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
            found = ask(self, statement, values)
            if "GROUP BY tenant, group_id" in statement:
                other.feed(shelf)
            return found

        monkeypatch.setattr(Database, "rows", rows)
        (group,) = asked.groups(HeldQuery(), tenants=None).groups
        assert (group.count, group.states) == (1, {"pending": 1})
        assert asked.groups(HeldQuery(), tenants=None).groups == ()


def test_pages_of_groups_go_on_where_the_last_one_ended(shelf: Shelf) -> None:
    """The group that grew last comes first, and each is on one page."""
    for number in range(5):
        shelf.hold(f"{BAD} {number}", like=number)
    shelf.hold(f"{BAD} again", like=1)
    opened, seen, after = shelf.fed(), [], None
    while True:
        page = opened.groups(HeldQuery(), tenants=None, after=after, limit=2)
        seen += [group.example.event_id for group in page.groups]
        after = page.after
        if after is None:
            break
        assert groups.GroupCursor.parse(str(after)) == after
    assert seen == ["e5", "e4", "e3", "e2", "e0"]
    for text in ("", "1", "x.y", "1.\x1b", f"{2**63}.y", f"{'9' * 5_000}.y"):
        with pytest.raises(InvalidArgument):
            groups.GroupCursor.parse(text)


def test_a_trend_counts_what_a_clock_puts_into_the_future_as_now() -> None:
    """Clocks differ: no bucket is missing, and none is out of range."""
    assert groups.trend([(-1, 2), (0, 1), (23, 4), (99, 1)]) == (5, *([0] * 22), 3)
