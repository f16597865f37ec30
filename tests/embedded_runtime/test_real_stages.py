"""The real stages on the embedded runtime, killed at any point: the same verdicts, objects and rows as without."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.encoders import minilm

from memsluice.encoder import Encoder
from memsluice.events.models import Zone
from memsluice.events.records import Headers
from memsluice.gate.policy import model
from memsluice.runtimes.embedded import Embedded, SeededScheduler, StepLimits
from memsluice.stages.land import LandStage
from memsluice.stages.screen import ScreenStage
from memsluice.stages.seal import SealStage
from memsluice.stores.faiss.store import FaissStore
from memsluice.topics.names import ACCEPTED, AUDIT, DEAD_LETTER, EVENTS, PARTITIONS, QUARANTINE, STORE
from memsluice_lab import cast
from memsluice_lab.streams import Published, events_of, signed

OUTPUTS = (AUDIT, ACCEPTED, QUARANTINE, DEAD_LETTER, STORE)
NOW_MS = 1_772_470_000_000
DAY_MS = 86_400_000
LAST_MS = 1_772_492_400_000
"""2026-03-02, 23:00 UTC: the last event's append time."""
WRITES = (
    ("user", "The greenhouse is watered on Mondays and Thursdays."),
    ("agent", "Put the greenhouse rota on the board."),
    ("web", "Nursery: olive trees are reduced this week."),
    ("user", "The greenhouse key hangs in the porch."),
    ("agent", "Noted who has the greenhouse key this week."),
    ("tool", "Rain gauge: 11 millimetres since yesterday."),
)


class Crash(BaseException):
    """The simulated death of the process."""


class CrashAt:
    """Raises at the n-th point."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, point: str) -> None:
        """Count, and raise at the chosen point."""
        self.left -= 1
        if self.left == 0:
            raise Crash(point)


def lines() -> list[dict[str, Any]]:
    """Return two tenants' small streams, woven together."""
    made = []
    for seq in range(24):
        source, text = WRITES[seq % 6]
        kind = "query" if seq % 8 == 5 else "observe" if seq % 8 == 7 else "write"
        made.append(
            {
                "seq": seq,
                "kind": kind,
                "source": "web" if kind == "observe" else source,
                "text": f"{text} ({seq // 6})",
                "tenant": ("north", "south")[seq % 2],
                "session": f"s{seq // 4}-{seq % 2}",
                "agent": "helper",
                "principal": "willa",
                "parents": [seq - 2] if seq % 5 == 4 else [],
                "time": f"2026-03-02T{seq:02d}:00:00+00:00",
            }
        )
    return made


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """The real encoder; texts repeat, so their vectors are remembered."""
    return minilm()


class Bench:
    """One log file and one store, opened by one process after the other."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        self._folder = folder
        self._encoder = encoder
        self._keyring, self._registry, self._signers = cast.in_memory(["north", "south"], seed="crash")

    def start(self, **options: Any) -> tuple[Embedded, FaissStore]:
        """Open log and store with fresh stages, as a new process would."""
        store = FaissStore(self._folder / "store.db")
        chosen = model.default()
        runtime = Embedded(
            self._folder / "log.db",
            seal=SealStage(lambda: self._keyring, lambda: self._registry, self._encoder, PARTITIONS, lambda: NOW_MS),
            screen=ScreenStage(lambda: self._keyring, chosen.of, PARTITIONS, lambda: NOW_MS),
            land=LandStage(lambda: self._keyring, store, PARTITIONS, lambda: NOW_MS - DAY_MS),
            now_ms=lambda: NOW_MS,
            durable=False,
            **options,
        )
        return runtime, store

    def feed(self, runtime: Embedded) -> None:
        """Append the events, one of them damaged."""
        for item in events_of(lines()):
            assert isinstance(item, Published)
            key, value, headers = signed(item, self._signers)
            value = value[:-20] if item.seq == 9 else value
            runtime.append(EVENTS, key, value, headers, append_ms=item.append_ms)


Outputs = dict[str, list[tuple[int, int, bytes | None, bytes | None, Headers]]]


def live(value: bytes) -> bool:
    """Whether a row has not expired when the last event was appended."""
    row = orjson.loads(value)
    return not isinstance(row, dict) or row.get("x") is None or row["x"] > LAST_MS


def found(runtime: Embedded, store: FaissStore) -> tuple[Outputs, list[Any], dict[str, int]]:
    """Return every output record, every live state row, and how many objects each partition of the store has.

    When an expired row is swept depends on how work was cut into pieces; it counts as absent from its expiry on.
    """
    outputs = {
        topic: [(r.partition, r.offset, r.key, r.value, r.headers) for r in runtime.read(topic)] for topic in OUTPUTS
    }
    rows = [
        [(key, value) for key, value in runtime.log.rows(partition).scan(b"", 10_000) if live(value)]
        for partition in range(PARTITIONS)
    ]
    counts = {f"{tenant}/{zone}": store.count(tenant, zone) for tenant in ("north", "south") for zone in Zone}
    return outputs, rows, counts


class Calm(tuple[Any, ...]):
    """What an undisturbed run gives; short in a failure's report."""

    def __repr__(self) -> str:
        return "<calm>"


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory, encoder: Encoder) -> Calm:
    """An undisturbed run."""
    bench = Bench(tmp_path_factory.mktemp("calm"), encoder)
    runtime, store = bench.start()
    bench.feed(runtime)
    runtime.run_until_idle()
    result = found(runtime, store)
    runtime.close()
    store.close()
    assert {len(result[0][topic]) > 0 for topic in (AUDIT, ACCEPTED, DEAD_LETTER, STORE)} == {True}
    return Calm([result])


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), crashes=st.lists(st.integers(1, 200), min_size=1, max_size=5))
def test_no_crash_changes_a_verdict_or_doubles_an_object(
    tmp_path_factory: pytest.TempPathFactory, encoder: Encoder, calm: "Calm", seed: int, crashes: list[int]
) -> None:
    """Killed anywhere and restarted, on any schedule: the same verdict bytes in the same order, the same objects."""
    bench = Bench(tmp_path_factory.mktemp("crash"), encoder)
    runtime, store = bench.start()
    bench.feed(runtime)
    runtime.close()
    limits = StepLimits(seal=7, screen=5, land=3)
    for number, crash in enumerate([*crashes, 0]):
        runtime, store = bench.start(hook=CrashAt(crash), scheduler=SeededScheduler(seed + number), limits=limits)
        try:
            runtime.run_until_idle()
        except Crash:
            runtime.close()
            store.close()
    if crashes:
        runtime.close()
        store.close()
        runtime, store = bench.start()
        runtime.run_until_idle()
    same = found(runtime, store) == calm[0]
    runtime.close()
    store.close()
    assert same
