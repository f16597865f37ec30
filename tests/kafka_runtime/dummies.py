"""Small real stages the runtime is tested with: a stamping batch stage and a counting, redo-safe stateful one."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from memsluice.envelope.partition_orders import Missing
from memsluice.envelope.seals import Waited
from memsluice.errors import GapError, MalformedEvent, SealError
from memsluice.events.records import Output, Record, RowChange, Rows
from memsluice.stages.base import Step
from memsluice.stages.dead_letter import dead_letters
from memsluice.stages.overflow import Intake
from memsluice.stages.quota import Quota

SLOW_S = 0.02


class HeldFence:
    """Stands in for a fence whose broker does not answer a commit until it is told to."""

    def __init__(self, fences: "HeldFences", partition: int) -> None:
        self.partition = partition
        self._fences = fences

    async def open(self) -> None:
        """Open at once."""

    async def transact(self, work: Callable[[Any], Awaitable[None]], offsets: dict[Any, int]) -> None:
        """Send, and wait for the commit."""
        sent: list[SimpleNamespace] = []

        async def send(*_: Any) -> SimpleNamespace:
            sent.append(SimpleNamespace(offset=len(sent)))
            return sent[-1]

        await work(SimpleNamespace(send=send, flush=None))
        self._fences.records += len(sent)
        self._fences.arrived.set()
        await self._fences.commits.wait()

    async def close(self) -> None:
        """Let go."""


class HeldFences:
    """The fences of a runner. ``commits`` is set by the test."""

    def __init__(self, runner: Any) -> None:
        self.commits, self.arrived, self.records = asyncio.Event(), asyncio.Event(), 0
        runner.lanes._make_fence = lambda partition: HeldFence(self, partition)

    async def sent(self, records: int) -> None:
        """Wait until so many records were sent."""
        while self.records < records:
            self.arrived.clear()
            await self.arrived.wait()


class Stamp:
    """Sends every record on, with its intake position as one header more. ``note`` counts batches."""

    def __init__(self, target: str, *, sleep_s: float = 0.0) -> None:
        self._target = target
        self._sleep_s = sleep_s

    def process(self, batch: Sequence[Record]) -> list[list[Output]]:
        """Return one output a record, on the record's partition."""
        if self._sleep_s:
            time.sleep(self._sleep_s)
        return [
            [
                Output(
                    self._target,
                    record.partition,
                    record.key,
                    record.value,
                    (*record.headers, ("position", f"{record.topic}/{record.partition}/{record.offset}".encode())),
                )
            ]
            for record in batch
        ]


class Quotas(Stamp):
    """A Stamp whose keys have quotas. What is moved says whose it is in a header, and a marker stands for it."""

    def __init__(self, target: str, overflow: str, per_s: int, burst: int) -> None:
        super().__init__(target)
        self._overflow = overflow
        self._quota = Quota(per_s, burst)

    def process(self, batch: Sequence[Record]) -> list[list[Output]]:
        """Stamp every record as of its intake."""
        return super().process([self.came(one).record if one.topic == self._overflow else one for one in batch])

    def quota(self, tenant: str) -> Quota | None:
        """Return the same for all but "free"."""
        return None if tenant == "free" else self._quota

    def lane(self, record: Record) -> str | None:
        """Return the key."""
        return (record.key or b"").decode()

    def may_wait(self, record: Record, tenant: str) -> bool:
        """Tell that everything may."""
        return True

    def came(self, record: Record) -> Intake:
        """Return a moved record as it was."""
        topic, offset = (record.headers[-1][1] or b"").decode().rsplit("/", 1)
        if record.headers[-1][0] != "moved":
            raise SealError("was not moved")
        before = replace(record, topic=topic, offset=int(offset), headers=record.headers[:-1])
        return Intake(before, self.lane(before) or "", Waited(record.timestamp_ms, None))

    def moved(self, record: Record, tenant: str, after: int | None) -> list[Output]:
        """Return the record for the overflow, and a marker."""
        header = ("moved", f"{record.topic}/{record.offset}".encode())
        return [
            Output(self._overflow, record.partition, record.key, record.value, (*record.headers, header)),
            Output(self._target, record.partition, b"marker", record.key, (("position", b"-"),)),
        ]

    def is_counted(self, topic: str) -> bool:
        """Tell that everything is."""
        return True

    def sender(self, outputs: list[Output]) -> str | None:
        """Return the key of what was stamped."""
        return (outputs[-1].key or b"").decode()


class Blocked(Stamp):
    """Like Stamp, but blocks for ever while the file ``gate`` exists (a sink that is down)."""

    def __init__(self, target: str, gate: Path) -> None:
        super().__init__(target)
        self._gate = gate
        self.never = threading.Event()

    def process(self, batch: Sequence[Record]) -> list[list[Output]]:
        """Wait until the gate file is gone, then stamp."""
        while self._gate.exists():
            self.never.wait(0.05)
        return super().process(batch)


class Count:
    """Counts a key's records. Redo-safe: the redo row is written first, the position row last.

    Rows: ``r/<offset>`` the output's bytes, ``c/<key>`` the count, ``x/<key>`` padding, ``t/<key>`` there while the
    count is odd, ``p`` the last offset. A record whose redo row is
    there re-emits those bytes and writes all its rows again. From the offset ``slow_from`` on each takes ``SLOW_S``:
    whoever ends or stops the worker in mid-stream has time for it.
    """

    def __init__(self, target: str, *, padding: int = 0, poison_bytes: int = 0, slow_from: int | None = None) -> None:
        self._target = target
        self._padding = padding
        self._poison_bytes = poison_bytes
        self._slow_from = slow_from
        self.forgotten: list[int] = []

    def process(self, record: Record, rows: Rows) -> Step:
        """Return the count as output and five rows as changes."""
        if self._slow_from is not None and record.offset >= self._slow_from:
            time.sleep(SLOW_S)
        key = record.key or b""
        redo = b"r/%020d" % record.offset
        known = rows.get(redo)
        counted = int(known.split(b" ")[1]) if known is not None else int(rows.get(b"c/" + key) or b"0") + 1
        line = b"%d %d %s" % (record.offset, counted, key)
        size = self._padding
        if self._poison_bytes and record.value == b"poison":
            size = self._poison_bytes
        changes = (
            RowChange(redo, line),
            RowChange(b"c/" + key, str(counted).encode()),
            RowChange(b"x/" + key, b"x" * size),
            RowChange(b"t/" + key, b"odd" if counted % 2 else None),
            RowChange(b"p", str(record.offset).encode()),
        )
        return Step((Output(self._target, record.partition, record.key, line, record.headers),), changes)

    def forget(self, partition: int) -> None:
        """Note it."""
        self.forgotten.append(partition)


class Clock:
    """Sends the record's timestamp on."""

    def __init__(self, target: str) -> None:
        self._target = target

    def process(self, batch: Sequence[Record]) -> list[list[Output]]:
        """Return one output a record."""
        return [[Output(self._target, r.partition, r.key, str(r.timestamp_ms).encode())] for r in batch]


class Shelf:
    """Puts and deletes rows, and sends what a scan finds *before* the next record's changes."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._listed = b""

    def process(self, record: Record, rows: Rows) -> Step:
        """Change two rows; the output lists the shelf with this record's changes merged in by hand."""
        i = record.offset
        changes = [RowChange(b"a/%03d" % (i % 40), b"%d" % i), RowChange(b"b/other", b"-")]
        shelf = dict(rows.scan(b"a/", 1000))
        shelf[changes[0].key] = changes[0].value or b""
        if i % 3 == 0:
            gone = b"a/%03d" % (i * 7 % 40)
            changes.append(RowChange(gone, None))
            shelf.pop(gone, None)
        if len(shelf) > 25:
            assert list(rows.scan(b"a/", 5)) == sorted(rows.scan(b"a/", 1000))[:5]
        line = b",".join(k + b"=" + v for k, v in sorted(shelf.items())[:25])
        return Step((Output(self._target, record.partition, record.key, line),), changes)

    def forget(self, partition: int) -> None:
        """Nothing is cached."""


class Broken(Stamp):
    """Raises at the record with the value ``poison``."""

    def process(self, batch: Sequence[Record]) -> list[list[Output]]:
        """Stamp, or raise."""
        if any(record.value == b"poison" for record in batch):
            raise ValueError("the stage does not know what to do")
        return super().process(batch)


class Astray(Stamp):
    """Sends to a topic that its spec does not name."""

    def __init__(self, target: str) -> None:
        super().__init__(f"{target}-elsewhere")


class Letters:
    """Makes every record a dead letter, on the target topic."""

    def __init__(self, target: str) -> None:
        self._target = target

    def process(self, batch: Sequence[Record]) -> list[list[Output]]:
        """Return the parts of each record's dead letter."""
        error = MalformedEvent("refused", field="value")
        return [[replace(letter, topic=self._target) for letter in dead_letters(record, error)] for record in batch]


class Follows:
    """Follows another topic's offsets, which its records' values tell: row ``p`` is the last. Tells what is skipped."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._known: dict[int, Missing] = {}

    def process(self, record: Record, rows: Rows) -> Step:
        """Send the value on and note it. Raises GapError where one was skipped."""
        here, last = int(record.value or b"0"), int(rows.get(b"p") or b"-1")
        known = self._known.get(record.partition)
        if known is not None and known.first == last + 1:
            last = known.last
        if here > last + 1:
            raise GapError(f"intake: offset {here} after {last}", topic="intake", first=last + 1, last=here - 1)
        out = Output(self._target, record.partition, record.key, record.value)
        return Step((out,), (RowChange(b"p", str(here).encode()),))

    def acknowledge(self, partition: int, missing: Missing) -> None:
        """Take these for passed."""
        self._known[partition] = missing

    def forget(self, partition: int) -> None:
        """Forget what was acknowledged."""
        self._known.pop(partition, None)
