"""The sweeper: which rows go, when, and that what it remembers is bounded."""

from itertools import chain
from typing import Any

import pytest
from tests.gate.build import TENANT, MemoryRows

from memsluice.events.records import Rows
from memsluice.gate.state.rows import LATE_MS, dump, row_key
from memsluice.stages import sweep
from memsluice.stages.sweep import EVERY_EVENTS, SCANNED_MAX, Sweeper

NOW_MS = 1_780_000_000_000


def rows_of(*values: Any, tenant: str = TENANT) -> MemoryRows:
    """Return rows of a tenant with these values, in this order."""
    named = enumerate(values)
    return MemoryRows({row_key(tenant, "entry", f"{number:04}"): dump(value) for number, value in named})


def round_of(sweeper: Sweeper, rows: Rows, *, partition: int = 0, tenant: str = TENANT) -> list[int]:
    """Let so many events pass that rows are looked at once; return the numbers of those that go."""
    gone = [change for _ in range(EVERY_EVENTS) for change in sweeper.expired(partition, tenant, rows, NOW_MS)]
    assert all(change.value is None for change in gone)
    return [int(change.key.rsplit(b"\0", 1)[1]) for change in gone]


def test_a_row_goes_once_nobody_may_ask_for_it_and_not_a_moment_before() -> None:
    """Late readers may ask for what expired LATE_MS ago; what has no expiry, or is no mapping, stays for good."""
    values = [{"x": NOW_MS - LATE_MS}, {"x": NOW_MS - LATE_MS + 1}, {"x": None}, {"n": 1}, [1, 2], {"x": 0}]
    assert round_of(Sweeper(), rows_of(*values)) == [0, 5]


def test_rows_are_looked_at_round_and_round_a_few_at_a_time() -> None:
    """A round goes on where the last one ended, meets every row, and begins again."""
    rows, sweeper = rows_of(*[{"x": 0}] * (2 * SCANNED_MAX + 3)), Sweeper()
    rounds = [round_of(sweeper, rows) for _ in range(4)]
    assert [len(some) for some in rounds] == [SCANNED_MAX, SCANNED_MAX, 3, SCANNED_MAX]
    assert [*chain(*rounds[:3])] == list(range(2 * SCANNED_MAX + 3))
    assert rounds[3] == rounds[0]


def test_of_a_tenants_events_one_in_a_few_looks() -> None:
    """Each tenant counts its own events."""
    rows, sweeper = rows_of({"x": 0}), Sweeper()
    looked = [bool(sweeper.expired(0, TENANT, rows, NOW_MS)) for _ in range(2 * EVERY_EVENTS)]
    assert looked == [number % EVERY_EVENTS == 0 for number in range(1, 2 * EVERY_EVENTS + 1)]
    assert sweeper.expired(0, "other", rows, NOW_MS) == []


def test_a_partition_that_is_given_up_is_begun_anew_and_no_other() -> None:
    """Its rows are another owner's meanwhile; places in the other partitions are kept."""
    rows, sweeper = rows_of(*[{"x": 0}] * (SCANNED_MAX + 1)), Sweeper()
    for partition in (0, 1):
        assert len(round_of(sweeper, rows, partition=partition)) == SCANNED_MAX
        sweeper.expired(partition, TENANT, rows, NOW_MS)
    sweeper.forget(1)
    assert [bool(sweeper.expired(0, TENANT, rows, NOW_MS)) for _ in range(EVERY_EVENTS - 1)][-1]
    assert round_of(sweeper, rows, partition=1) == list(range(SCANNED_MAX))


def test_what_is_remembered_of_tenants_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the table full the most idle tenant's place is forgotten: its round begins again, the others' go on."""
    monkeypatch.setattr(sweep, "TENANTS_MAX", 3)
    rows, sweeper = rows_of(*[{"x": 0}] * (SCANNED_MAX + 1)), Sweeper()
    first = round_of(sweeper, rows)
    for tenant in ("b", "c", "d"):
        sweeper.expired(0, tenant, rows_of(tenant=tenant), NOW_MS)
    assert round_of(sweeper, rows) == first
    assert len(sweeper._events) <= 3


def test_a_crowd_of_tenants_that_come_once_starves_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant that goes on writing is swept, however many others come and go beside it."""
    monkeypatch.setattr(sweep, "TENANTS_MAX", 3)
    rows, sweeper = rows_of({"x": 0}), Sweeper()
    swept = 0
    for number in range(2 * EVERY_EVENTS):
        swept += len(sweeper.expired(0, TENANT, rows, NOW_MS))
        sweeper.expired(0, f"passing-{number}", rows_of(tenant=f"passing-{number}"), NOW_MS)
    assert swept
