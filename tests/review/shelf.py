"""A desk whose topics are in memory: held writes and decisions about them, as *screen* sends them."""

from dataclasses import dataclass, field
from pathlib import Path

from tests.gate.build import PARTITION, RING, T0, axis, sealed
from tests.held.test_collect import BAD, Days, Tape
from tests.stages.test_screen import write

from memsluice.events.names import EventType
from memsluice.events.records import Record
from memsluice.operations.review.index import ReviewIndex
from memsluice.topics.names import AUDIT, QUARANTINE

HOUR_MS = 3_600_000
NOW = T0 + HOUR_MS // 2


class Keys:
    """A key store of the tests' keyring."""

    def keyring(self):
        """Return the keyring."""
        return RING


@dataclass
class Shelf:
    """The desk of a review: what *screen* made of writes and commands, and an index of it in a home."""

    home: Path
    days: Days = field(default_factory=Days)
    now_ms: int = NOW
    keys: Keys = field(default_factory=Keys)

    @property
    def held(self) -> Tape:
        """The quarantine."""
        return self.days.tapes[QUARANTINE]

    @property
    def audit(self) -> Tape:
        """The audit."""
        return self.days.tapes[AUDIT]

    def hold(self, content: str = BAD, like: int = 0, cosine: float = 1.0, **fields) -> None:
        """Have a write held, whose embedding has this cosine to one axis."""
        vector = axis(99 - like, like, cosine) if cosine < 1 else axis(like)
        self.days.see(write, content=content, vector=vector, **fields)

    def signer(self, tenant: str) -> str:
        """Return the key id that signs."""
        return "key-reviewer"

    def publish(self, commands) -> list[str]:
        """Have the gate decide commands, as the reviewer's key signed them."""
        for command in commands:
            fields = command.model_dump(mode="json", exclude={"tenant"})
            self.days.see(lambda offset, **f: sealed("reviewer", EventType.COMMAND, offset, **f), **fields)
        return ["memory.commands.v1" for _ in commands]

    def settle(self) -> None:
        """Do nothing: the gate decides at once."""

    def index(self) -> ReviewIndex:
        """Open the index of the home."""
        return ReviewIndex.open(self.home, clock=lambda: self.now_ms)

    def fed(self) -> ReviewIndex:
        """Open the index and feed it."""
        index = self.index()
        index.feed(self)
        return index


def ids(page) -> list[str]:
    """Return the event ids of a page."""
    return [row.event_id for row in page.rows]


def forged(record: Record) -> Record:
    """Return a record with one byte of its seal changed."""
    value = bytearray(record.value)
    value[-20] ^= 1
    return Record(record.topic, PARTITION, record.offset, record.key, bytes(value), record.headers, record.timestamp_ms)
