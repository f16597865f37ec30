"""A principal that goes through a tenant's memory over days is told of, and nobody else."""

import random

import pytest

from memsluice.recall.signals.seen import Seen, SignalKind
from memsluice.recall.signals.sweeps import BITS, DAY_MS, MOST, SweepPolicy, SweepWatch, different

T0 = 1_780_000_000_000
HOUR_MS = 3_600_000
PEOPLE = [f"person-{number}" for number in range(20)]


def day(watch: SweepWatch, at: int, chance: random.Random, sweeps: int = 0) -> list:
    """Have everybody ask about his own two dozen entries; somebody also asks for ``sweeps`` new ones, 5 an answer."""
    found = []
    for number in range(24):
        now_ms = T0 + at * DAY_MS + number * HOUR_MS
        for person in PEOPLE:
            objects = tuple(f"{person}-{chance.randrange(24)}" for _ in range(5))
            found += watch.see(Seen("acme", person, number, objects), now_ms)[0]
        for _ in range(sweeps // 24 // 5):
            objects = tuple(f"entry-{chance.randrange(5_000)}" for _ in range(5))
            found += watch.see(Seen("acme", "thief", number, objects), now_ms)[0]
    return found


def test_ordinary_days_are_quiet() -> None:
    """Everybody asks every hour for ten days, and reads the same two dozen entries again."""
    watch, chance = SweepWatch(SweepPolicy()), random.Random(1)
    assert [one for at in range(10) for one in day(watch, at, chance)] == []


def test_a_slow_sweep_is_told_of_within_days_and_once_a_day() -> None:
    """120 entries a day, one answer an hour: no rate shows it, the days together do."""
    watch, chance = SweepWatch(SweepPolicy()), random.Random(1)
    said = [day(watch, at, chance, sweeps=120) for at in range(6)]
    assert said[0] == []
    told = [one for found in said for one in found]
    assert {(one.kind, one.subject) for one in told} == {(SignalKind.SWEEP, "thief")}
    assert len(told) <= 5
    assert told[0].hits >= 8 * told[0].usual


def test_what_was_read_a_week_ago_counts_no_more() -> None:
    """The window is of days: who reads much in a year is no thief."""
    watch, chance = SweepWatch(SweepPolicy()), random.Random(1)
    day(watch, 0, chance, sweeps=1_200)
    assert day(watch, 9, chance) == []
    assert watch._given["acme"]["thief"]  # dropped with the next question
    watch.see(Seen("acme", "thief", 1, ()), T0 + 10 * DAY_MS)
    assert watch._given["acme"]["thief"] == {}


def test_with_few_others_nothing_is_unusual() -> None:
    """Two principals are no measure for each other: said in the docs, and kept."""
    watch = SweepWatch(SweepPolicy())
    found = []
    for at in range(3_000):
        found += watch.see(Seen("acme", "thief", at, (f"entry-{at}",)), T0 + at * HOUR_MS // 20)[0]
        found += watch.see(Seen("acme", "other", at, ("entry-1",)), T0 + at * HOUR_MS // 20)[0]
    assert found == []


@pytest.mark.parametrize("number", [1, 50, 500, 4_000])
def test_the_estimate_is_near_what_was_given(number) -> None:
    """Linear counting: within three standard errors, and never past the most."""
    watch = SweepWatch(SweepPolicy())
    for at in range(number):
        watch.see(Seen("acme", "ana", 1, (f"entry-{at}",)), T0)
    estimate = different(watch._given["acme"]["ana"], 0)
    assert estimate == pytest.approx(number, rel=0.07, abs=2)
    assert different({1: 2**BITS - 1}, 0) == MOST


def test_memory_is_bounded() -> None:
    """Principals by the hundred thousand: those who asked last are held."""
    watch = SweepWatch(SweepPolicy(principals_max=100))
    for at in range(1_000):
        watch.see(Seen(f"tenant-{at % 300}", f"p-{at}", 1, ("e",)), T0 + at * HOUR_MS)
    assert sum(map(len, watch._given.values())) == 100
    assert len(watch._checked) <= 100


def test_a_tenant_that_names_ever_more_principals_blinds_itself_alone() -> None:
    """The room is all tenants'; who asks under many names pushes nobody else's principals out of it, and is told of."""
    watch = SweepWatch(SweepPolicy(principals_max=20))
    for at in range(5):
        assert watch.see(Seen("acme", f"p-{at}", 1, ("e",)), T0) == ([], True)
    kept = [watch.see(Seen("noisy", f"p-{at}", 1, ("e",)), T0)[1] for at in range(200)]
    assert list(watch._given["acme"]) == [f"p-{at}" for at in range(5)]
    assert len(watch._given["noisy"]) == 15
    assert kept.count(False) == 185
