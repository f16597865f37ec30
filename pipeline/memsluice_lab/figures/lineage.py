"""What lineage costs at a million known entries of one tenant: time a write, and room an entry.

The store is the one that Faust workers have (RocksDB with their options), read as they read it. The rows are those that
real decisions leave, under other ids and digests.
"""

import json
import random
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import rocksdict

from memsluice.client import requests
from memsluice.client.requests import Session
from memsluice.envelope.registry import Role
from memsluice.envelope.seals import Identity
from memsluice.errors import StateError
from memsluice.events.limits import ID_CHARS_MAX, PARENTS_MAX
from memsluice.events.models import Origin, Tier, Write
from memsluice.gate.checks import monitor, sessions
from memsluice.gate.state.kinds import ENTRY, SessionRow
from memsluice.gate.state.rows import TenantRows, dump
from memsluice.runtimes.kafka.state import PartitionRows, StateRows
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.model.actions import Actor, Observe
from memsluice_lab.model.actions import Write as Written
from memsluice_lab.model.compare import T0
from memsluice_lab.model.production import TENANT, Decided, policy

ENTRIES = 1_000_000
SAMPLE = 2_000
BATCH = 10_000
PARENTS = 2
"""Of the write that is timed: of 1,000 writes of the real streams, 999 name two at most, and 966 none."""
OTHERS = (0, 1, 4, 16, PARENTS_MAX)
WRITES, ROUNDS = 5_000, 5
HEX = frozenset("0123456789abcdef")
BYTES_BOUND = 10_240
"""No entry's row is larger, whatever its ids, causes and parents: a test fills every field to its limit, among them 64
parents with ids of 128 characters."""


class OnDisk:
    """One partition's rows as a worker has them on its disk."""

    def __init__(self, folder: Path) -> None:
        self.state = StateRows(folder)
        self.state.open(0)
        self.database = self.state.store(0)

    def rows(self) -> PartitionRows:
        """Return read access as *screen* has it."""
        return self.state.rows(0)

    def fill(self, entries: Iterator[tuple[bytes, bytes]]) -> None:
        """Write entries in batches, and have them on disk."""
        batch, waiting = rocksdict.WriteBatch(raw_mode=True), 0
        for key, value in entries:
            batch.put(key, value)
            waiting += 1
            if waiting == BATCH:
                self.database.write(batch)
                batch, waiting = rocksdict.WriteBatch(raw_mode=True), 0
        self.database.write(batch)
        self.database.flush()


def sampled() -> list[dict[str, Any]]:
    """Return the lineage rows of real decisions: people, agents before and after they saw something, tools, pages."""
    core, chance, names = Decided(policy(strict=False, hold_contained=False)), random.Random(5), ["-"]  # noqa: S311
    now_ms = T0
    for number in range(SAMPLE):
        actor = Actor(f"session-{number % 97}", f"agent-{number % 5}", f"person-{number % 97}")
        source, tier = (("user", Tier.USER_OBSERVED), ("agent", Tier.USER_OBSERVED), ("tool", Tier.EXTERNAL_TOOL),
                        ("web", Tier.EXTERNAL_WEB))[chance.choices(range(4), (4, 4, 1, 1))[0]]  # fmt: skip
        parents = tuple(sorted({chance.choice(names[-200:]) for _ in range(chance.choice((0, 0, 1, 3)))} - {"-"}))
        now_ms += 1_000
        if number % 10 == 0:
            origin = chance.choice((Origin.OPEN, Origin.OPEN, Origin.WEB, Origin.TOOL))
            core.decide(Observe(name_of(chance), actor, origin), now_ms)
        names.append(name_of(chance))
        core.decide(Written(names[-1], actor, source, tier, f"note {number}", parents=parents), now_ms)
    found = [json.loads(value) for key, value in core.rows.items() if key.startswith(ENTRY.key(TENANT))]
    return [{**row, "x": None} for row in found]


def name_of(chance: random.Random) -> str:
    """Return an event id as producers make them: a UUID's 36 characters."""
    text = f"{chance.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def entries(count: int, rows: list[dict[str, Any]], chance: random.Random) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values of ``count`` entries; digests and object ids are each entry's own."""
    for number in range(count):
        row = dict(rows[number % len(rows)])
        for field, value in row.items():
            if isinstance(value, str) and len(value) >= 32 and HEX.issuperset(value.replace("-", "")):
                fresh = f"{chance.getrandbits(4 * len(value)):0{len(value)}x}"
                row[field] = name_of(chance) if "-" in value else fresh
        yield ENTRY.key(TENANT, entry_name(number)), dump(row)


def entry_name(number: int) -> str:
    """Return the event id of a numbered entry: they lie all over the key space, as random ids do."""
    return name_of(random.Random(number))  # noqa: S311 - a name, no secret


def lineage_us(setting: Setting, count: int = ENTRIES) -> Measured:
    """Microseconds of CPU that the lineage of one write takes: its session, its parents, and their maximum."""
    with tempfile.TemporaryDirectory(prefix="memsluice-lineage-") as folder:
        disk = OnDisk(Path(folder))
        rows = sampled()
        disk.fill(entries(count, rows, random.Random(1)))  # noqa: S311 - digests of nothing
        setting.say(f"{count:,} entries lie on disk")
        _microseconds(disk, count, PARENTS)  # unmeasured: the store still tidies up what was written
        spent = {parents: _microseconds(disk, count, parents) for parents in (*OTHERS, PARENTS)}
    found = max(spent)
    table = [
        ("entries known of the tenant", f"{count:,}, lineage rows of {SAMPLE:,} real decisions under other ids"),
        ("store", "RocksDB by rocksdict, with the options of the Faust workers (8 MiB of block cache)"),
    ]
    table += [(f"{parents} parents", f"{spent[parents]:.1f} µs a write") for parents in sorted(spent)]
    assert found == PARENTS_MAX
    return Measured(spent[PARENTS], tuple(table), (_NOTE,))


_NOTE = (
    "CPU time of this process, median of five rounds, every parent another random entry: reading the session's row, "
    "each parent's row, and taking the maximum. Of 1,000 writes of the real streams 999 name at most two parents."
)


def _microseconds(disk: OnDisk, count: int, parents: int) -> float:
    chance = random.Random(parents)  # noqa: S311 - which entries are asked for
    identity = Identity("key", Role.PRODUCER, "agent", Tier.USER_OBSERVED)
    who = Session(TENANT, "agent-1", "person-1", "session-1")
    moment = datetime.fromtimestamp(T0 / 1000, UTC)
    rounds, in_force = [], policy(strict=False, hold_contained=False)
    for _ in range(ROUNDS):
        writes: list[Write] = [
            requests.write(
                "w", moment, who, "note", {"parents": [entry_name(chance.randrange(count)) for _ in range(parents)]}
            )
            for _ in range(WRITES)
        ]
        began = time.process_time()
        for write in writes:
            view = TenantRows(disk.rows(), TENANT, T0)
            session = sessions.load(view, write.session) or SessionRow(agent=write.agent, principal=write.principal)
            found = monitor.label(view, write, identity, session, in_force)
        rounds.append((time.process_time() - began) / WRITES * 1e6)
        if any(cause.startswith("unknown") for cause in found.causes):
            raise StateError("a parent was not found in the store: what was timed is no lineage")
    return float(np.median(rounds))


def lineage_bytes_per_entry(setting: Setting, count: int = ENTRIES) -> Measured:
    """Bytes by which the state grows on disk for one more known entry, at a million."""
    with tempfile.TemporaryDirectory(prefix="memsluice-lineage-") as folder:
        disk, rows = OnDisk(Path(folder)), sampled()
        sizes: list[int] = []

        def measured() -> Iterator[tuple[bytes, bytes]]:
            for key, value in entries(count, rows, random.Random(1)):  # noqa: S311 - digests of nothing
                sizes.append(len(key) + len(value))
                yield key, value

        disk.fill(measured())
        disk.database.compact_range(None, None)
        on_disk = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    spread = np.array(sizes)
    table = (
        ("entries", f"{count:,} of one tenant"),
        (
            "row, key included",
            f"{spread.mean():.0f} bytes mean, {np.quantile(spread, 0.99):.0f} p99, {spread.max()} most",
        ),
        ("row at the limit of every field", f"{largest_row():,} bytes"),
        ("on disk, compacted", f"{on_disk / 2**20:.0f} MiB, {on_disk / count:.0f} bytes an entry"),
    )
    return Measured(float(spread.mean()), table, (_BOUND_NOTE,))


_BOUND_NOTE = (
    "The figure is the row as it is written to the changelog. An entry's row goes when the entry expires: a tenant's "
    "lineage is bounded by its write limits times the lifetime of each tier."
)


def largest_row() -> int:
    """Return the bytes of an entry's row, key included, with every id and cause as long as the wire lets it be."""
    core = Decided(policy(strict=False, hold_contained=False))
    longest = [f"{number:02d}" + "x" * (ID_CHARS_MAX - 2) for number in range(PARENTS_MAX + 1)]
    actor = Actor("s", "a", "p")
    write = Written(longest[0], actor, "agent", Tier.USER_OBSERVED, "note", key="k", parents=tuple(longest[1:]))
    core.decide(write, T0)
    key = ENTRY.key(TENANT, longest[0])
    return len(key) + len(core.rows[key])
