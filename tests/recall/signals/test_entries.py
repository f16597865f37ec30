"""An entry that suddenly answers many principals, or moves in the order of nearness, is told of; steady use is not."""

import random
from hashlib import blake2b

import pytest

from memsluice.recall.signals.entries import EntryPolicy, EntryWatch
from memsluice.recall.signals.seen import Seen, Signal, SignalKind, mark
from memsluice.recall.signals.watch import RecallWatch

HOUR_MS, T0 = 3_600_000, 1_780_000_000_000
DAYS = 3
PRINCIPALS = [f"person-{number}" for number in range(30)]
NOTES = [f"note-{number}" for number in range(40)]


def hour(watch: EntryWatch, at: int, chance: random.Random, *front: str, share: float = 1.0) -> list[Signal]:
    """Have everybody ask two questions in an hour. ``front`` are nearest in so many of the answers."""
    found, now_ms = [], T0 + at * HOUR_MS
    for person in PRINCIPALS:
        for _ in range(2):
            first = front if chance.random() < share else ()
            own = chance.choices(NOTES, [1 / (place + 1) for place in range(len(NOTES))], k=5)
            objects = tuple(dict.fromkeys([*first, *own]))[:5]
            found += watch.see(Seen("acme", person, chance.getrandbits(60), objects), now_ms)[0]
    return found


def watched(chance: random.Random, days: int = DAYS) -> tuple[EntryWatch, list[Signal]]:
    """Return what has seen ordinary days, and what it said of them."""
    watch = EntryWatch("acme", EntryPolicy(), T0)
    return watch, [signal for at in range(24 * days) for signal in hour(watch, at, chance)]


@pytest.mark.parametrize("seed", range(3))
def test_ordinary_days_are_quiet(seed) -> None:
    """Some entries are asked for all the time and most are not: 30 people, 40 notes, a week, and no signal."""
    assert watched(random.Random(seed), days=7)[1] == []


@pytest.mark.parametrize("seed", range(3))
def test_a_new_entry_that_answers_everybody_is_told_of_once_an_hour(seed) -> None:
    """A poisoned entry that is near to whatever is asked is told of within its first hour, by its name."""
    chance = random.Random(seed)
    watch, _ = watched(chance)
    found = [one for one in hour(watch, 24 * DAYS, chance, "poison") if one.kind is SignalKind.POPULAR]
    assert [one.subject for one in found] == ["poison"]
    assert found[0].hits <= 12  # long before all thirty were given it


def test_one_person_makes_no_entry_popular() -> None:
    """Who asks a thousand times is one principal."""
    chance = random.Random(1)
    watch, _ = watched(chance)
    found = []
    for number in range(1_000):
        seen = Seen("acme", "person-1", number, ("mine", "note-1"))
        found += watch.see(seen, T0 + 24 * DAYS * HOUR_MS)[0]
    assert SignalKind.POPULAR not in {one.kind for one in found}


@pytest.mark.parametrize("seed", range(3))
def test_the_entry_that_is_pushed_from_its_place_is_told_of(seed) -> None:
    """What used to be the nearest suddenly stands behind another: the fall is told, and a return is a rise."""
    chance = random.Random(seed)
    watch = EntryWatch("acme", EntryPolicy(), T0)
    before = [one for at in range(24 * DAYS) for one in hour(watch, at, chance, "rule", share=0.3)]
    assert [one for one in before if one.subject == "rule"] == []
    pushed = hour(watch, 24 * DAYS, chance, "poison", "rule", share=0.5)
    assert {(one.subject, one.kind) for one in pushed} >= {("rule", SignalKind.RANK_FALL)}


def test_an_entry_that_rises_to_the_front_is_told_of() -> None:
    """A rarely nearest entry is suddenly the nearest of all: something changed about the questions, or about it."""
    chance = random.Random(4)
    watch = EntryWatch("acme", EntryPolicy(), T0)
    for at in range(24 * DAYS):
        hour(watch, at, chance, "rule", "quiet", share=0.3)
    assert SignalKind.RANK_RISE in {
        one.kind for one in hour(watch, 24 * DAYS, chance, "quiet") if one.subject == "quiet"
    }


def test_few_of_many_is_no_crowd() -> None:
    """An old entry that nobody had asked for and a handful of many do now is not popular: many principals are."""
    chance = random.Random(5)
    watch, _ = watched(chance)
    found = [one for number in range(5) for one in hour(watch, 24 * DAYS + number, chance, "party", share=0.05)]
    assert [one for one in found if one.subject == "party"] == []


def test_nothing_is_said_while_a_tenant_is_learned() -> None:
    """A service that has just started knows no past, and does not call all of it sudden."""
    watch = EntryWatch("acme", EntryPolicy(), T0)
    assert hour(watch, 0, random.Random(1), "poison") == []


def test_memory_is_bounded_and_what_was_not_counted_is_said() -> None:
    """However many entries and principals there are, no more are held; an answer that found no room says so."""
    policy = EntryPolicy(entries_max=50, marks_max=200)
    watch = EntryWatch("acme", policy, T0)
    whole = [watch.see(Seen("acme", f"p-{at}", at, (f"e-{at}", f"f-{at}")), T0)[1] for at in range(500)]
    assert whole[0]
    assert not whole[-1]
    assert len(watch._entries) <= 50
    assert len(watch._marks) + len(watch._principals) <= 200
    assert watch.see(Seen("acme", "p", 1, ("e",)), T0 + HOUR_MS)[1]  # the next hour begins with room


def test_a_tenant_says_nothing_of_another_and_only_so_many_are_watched() -> None:
    """Tenants share no counts; the one that asked longest ago is forgotten first, and learned anew."""
    watch = RecallWatch(EntryPolicy(learn_ms=0), tenants_max=2)
    for tenant in ("a", "b"):
        for number in range(4):
            assert watch.see(Seen(tenant, f"p-{number}", number, ("one",)), T0) == ([], True)
    watch.see(Seen("c", "p", 1, ("one",)), T0)
    assert set(watch._tenants) == {"b", "c"}


def test_marks_tell_parts_apart_and_outlast_a_process() -> None:
    """They rest on the strings alone: no process's own secret, and two names are not one longer name."""
    assert mark("a", "b") == mark("a", "b")
    assert mark("a", "b") != mark("ab")
    assert mark("tenant") == int.from_bytes(blake2b(b"tenant", digest_size=8).digest(), "big")
