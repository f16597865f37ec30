"""Small deterministic stages that exercise the runtime: what they decide depends on order and on state."""

from collections.abc import Sequence
from hashlib import sha256

from memsluice.events.records import Output, Record, RowChange, Rows
from memsluice.stages.base import Step
from memsluice.topics.names import ACCEPTED, AUDIT, SEALED, STORE

PARTITIONS = 3


class Relabel:
    """Stands where *seal* stands: one output a record, bound to the record's position."""

    def process(self, batch: Sequence[Record]) -> list[list[Output]]:
        """One sealed record each."""
        return [
            [Output(SEALED, r.partition, r.key, f"{r.topic}:{r.offset}:".encode() + (r.value or b"null"), r.headers)]
            for r in batch
        ]


class Chain:
    """Stands where *screen* stands: a hash chain and a counter, so one record lost, doubled or moved changes all."""

    def __init__(self) -> None:
        self.cache: dict[int, bytes] = {}

    def process(self, record: Record, rows: Rows) -> Step:
        """Chain it; every other record is accepted."""
        before = self.cache.get(record.partition)
        if before is None:
            before = rows.get(b"chain") or b""
        after = sha256(before + (record.value or b"")).hexdigest().encode()
        self.cache[record.partition] = after
        changes = [
            RowChange(b"chain", after),
            RowChange(b"seen/%08d" % record.offset, record.value or b""),
            RowChange(b"seen/%08d" % (record.offset - 2), None),
        ]
        outputs = [Output(AUDIT, record.partition, record.key, after)]
        if record.offset % 2 == 0:
            outputs.append(Output(ACCEPTED, record.partition, record.key, after, record.headers))
        return Step(outputs, changes)

    def forget(self, partition: int) -> None:
        """Drop the cached end of the chain."""
        self.cache.pop(partition, None)


class Shelf:
    """Stands where *land* stands; ``shelf`` outlives a crash, as a vector store does."""

    def __init__(self, shelf: dict[bytes, bytes]) -> None:
        self.shelf = shelf

    def process(self, batch: Sequence[Record]) -> list[list[Output]]:
        """Put each record on the shelf."""
        out = []
        for record in batch:
            key = sha256(record.value or b"").digest()[:8]
            self.shelf[key] = record.value or b""
            out.append([Output(STORE, record.partition, key, record.value)])
        return out
