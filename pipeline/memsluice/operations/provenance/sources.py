"""What a blast radius starts from: an entry, or a source that wrote or was read. Pure."""

from dataclasses import dataclass

from memsluice.envelope.verdict import Verdict
from memsluice.events.names import EventType

ENTRY = "entry"
FIELDS = {"session": "session", "agent": "agent", "principal": "principal", "key": "kid"}
"""Kinds of source that are fields of a write's verdict."""
SEEN = ("observation", "origin")
"""Kinds of source that sessions saw."""
KINDS = (ENTRY, *FIELDS, *SEEN)


@dataclass(frozen=True, slots=True)
class Source:
    """One source: its kind, one of KINDS, and its name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return self.name if self.kind == ENTRY else f"{self.kind}:{self.name}"

    def wrote(self, verdict: Verdict) -> bool:
        """Whether the verdict on a write is about one of the source's own."""
        if self.kind == ENTRY:
            return verdict.event_id == self.name
        if self.kind == "origin":
            return verdict.channel == self.name
        return self.kind in FIELDS and bool(getattr(verdict, FIELDS[self.kind]) == self.name)

    def seen(self, verdict: Verdict) -> bool:
        """Whether the verdict on an observation says that its session saw this source."""
        if verdict.type != EventType.OBSERVATION:
            return False
        names = {"observation": verdict.event_id, "origin": verdict.origin}
        return self.kind in SEEN and bool(names[self.kind] == self.name)


def parse(text: str) -> Source:
    """Return the source that is meant: ``kind:name`` for a known kind, else the event id of an entry."""
    kind, colon, name = text.partition(":")
    return Source(kind, name) if colon and name and kind in KINDS else Source(ENTRY, text)
