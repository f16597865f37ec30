"""Small real stages the runtime is tested with: a stamping batch stage and a counting, redo-safe stateful one."""

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from memsluice.errors import MalformedEvent
from memsluice.events.records import Output, Record, RowChange, Rows
from memsluice.stages.base import Step
from memsluice.stages.dead_letter import dead_letters


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
    there re-emits those bytes and writes all its rows again.
    """

    def __init__(self, target: str, *, padding: int = 0, poison_bytes: int = 0) -> None:
        self._target = target
        self._padding = padding
        self._poison_bytes = poison_bytes
        self.forgotten: list[int] = []

    def process(self, record: Record, rows: Rows) -> Step:
        """Return the count as output and five rows as changes."""
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
