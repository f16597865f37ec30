"""The count of what lies in memory: against what really lies there, over random sequences with crashes."""

import random
from collections import Counter
from typing import Any

from tests.gate.build import T0, MemoryRows
from tests.gate.landed import Shop

from memsluice.events.models import Tier, Zone
from memsluice.events.records import RowChange
from memsluice.gate.policy.model import DAY_MS
from memsluice.gate.state import entry_counts
from memsluice.gate.state.kinds import ENTRY, LYING
from memsluice.gate.state.rows import dump
from memsluice.stages.base import Step
from memsluice.telemetry.entry_counts import PREFIX, Lying
from memsluice_lab.model.compare import Pair
from memsluice_lab.model.walk import Walk


def counts(rows: Any, now_ms: int) -> Counter[str]:
    """Return what the rows say of each zone."""
    found: Counter[str] = Counter()
    for key, value in rows.scan(PREFIX, 10_000):
        row = LYING.load(value)
        if row.expires_ms is None or row.expires_ms > now_ms:
            found[entry_counts.read(key[len(PREFIX) :].decode())[1]] += row.number
    return found


def test_the_count_is_what_lies_there() -> None:
    """After every action of 60 sequences the rows say how many entries lie in each zone: never fewer, and no more
    unless something expired within the span in which that still counts. A crash changes nothing about it."""
    exact = 0
    for seed in range(60):
        chance = random.Random(seed)
        pair = Pair(staged=True)
        walk, ends = Walk(chance, pair.model), set[tuple[int, int]]()
        for _ in range(40):
            assert pair.step(walk.draw()) == ""
            shelf, now = pair.production.shelf.values(), pair.model.now
            ends |= {
                (item.until, entry_counts.ends_ms(item.tier, item.until)) for item in shelf if item.until is not None
            }
            there = Counter(str(item.zone) for item in shelf if item.until is None or item.until > now)
            said = counts(pair.production.rows, now)
            assert all(said[zone] >= there[zone] for zone in Zone), (seed, said, there)
            if not any(until <= now < end for until, end in ends):
                assert said == there, seed
                exact += 1
    assert exact > 500


def test_an_entry_is_counted_until_the_span_ends_in_which_it_expires() -> None:
    """Spans are a row's whole width: 10 minutes for what came from the web, a week for what a person verified."""
    end = entry_counts.ends_ms(Tier.EXTERNAL_WEB, T0 + 1)
    assert end is not None
    assert T0 < end <= T0 + 600_001
    assert entry_counts.ends_ms(Tier.USER_VERIFIED, 7 * DAY_MS) == 7 * DAY_MS
    assert entry_counts.ends_ms(Tier.OPERATOR, None) is None


def test_a_worker_that_starts_reads_what_the_rows_say() -> None:
    """The gauge begins with the partition's rows at its first record, follows changes, and forgets with it."""
    shop, rows = Shop(), MemoryRows()
    shop.write()
    before = MemoryRows(shop.rows)
    changes = {("entry", "e0"): ENTRY.load(before.pop(b"acme\0entry\0e0"))}
    ((row_id, value),) = entry_counts.counted(before, "acme", T0, changes)
    assert value is not None
    assert value.number == 1
    lying = Lying(lambda: T0)
    change = RowChange(PREFIX + row_id.encode(), dump(value))
    lying.see(3, rows, Step(changes=(change,)))
    assert lying.count(Tier.USER_OBSERVED, "guidance") == 1
    rows.put(change.key, change.value)
    again = Lying(lambda: T0)
    again.see(3, rows, Step())
    assert again.count(Tier.USER_OBSERVED, "guidance") == 1
    assert again.count(Tier.USER_OBSERVED, "external") == 0
    assert Lying(lambda: T0).count(Tier.USER_OBSERVED, "guidance") == 0
    late = Lying(lambda: T0 + 40 * DAY_MS)
    late.see(3, rows, Step())
    assert late.count(Tier.USER_OBSERVED, "guidance") == 0
    again.changed(3, (RowChange(change.key, None),))
    again.changed(4, (change,))  # of a partition whose rows nobody read
    assert again.count(Tier.USER_OBSERVED, "guidance") == 0
    lying.forget(3)
    assert lying.count(Tier.USER_OBSERVED, "guidance") == 0
