"""What was sent and what became of it: the only source of every number that the demo shows.

An event is known by its place, the (topic, partition, offset) that the log gave it: its verdict and its dead letter
name that place. Bounded by the number of events played.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import orjson

from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import verdict_from_bytes
from memsluice.envelope.verdict import Verdict
from memsluice.events.names import DEAD_LETTER_HEADER
from memsluice.events.records import Headers
from memsluice.recall.freshness import verified
from memsluice.topics.names import AUDIT, DEAD_LETTER, STORE
from memsluice_lab.demo.sample.script import Attacker

__all__ = ["Fate", "Ledger", "Sent"]
Place = tuple[str, int, int]


@dataclass(slots=True)
class Sent:
    """One message: where it lies, what it is (kind: write, ask, see, open, command, raw), and whose attack, if one's.

    ``sent_s`` is a monotonic time in seconds.
    """

    place: Place
    kind: str
    tenant: str
    source: str
    text: str
    sent_s: float
    attacker: Attacker | None = None
    act: str = ""


@dataclass(slots=True)
class Fate:
    """What became of a message: a verdict, or the reason of a dead letter; ``done_s`` when that was known."""

    verdict: Verdict | None = None
    dead_reason: str = ""
    dead_detail: str = ""
    done_s: float = 0.0
    landed_s: float | None = None

    @property
    def decision(self) -> str:
        """accept, contain, quarantine, reject, duplicate, record, or dead_letter."""
        return "dead_letter" if self.verdict is None else str(self.verdict.decision)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reason codes."""
        return (self.dead_reason,) if self.verdict is None else self.verdict.reasons

    @property
    def zone(self) -> str:
        """Where it landed: guidance, external or ""."""
        return "" if self.verdict is None else str(self.verdict.zone or "")

    @property
    def scope(self) -> str:
        """Who can be given it: session, principal, shared or ""."""
        return "" if self.verdict is None else str(self.verdict.visibility or "")

    @property
    def settled(self) -> bool:
        """Whether nothing more will be known: a write with an object has landed."""
        return self.verdict is None or self.verdict.object_id is None or self.landed_s is not None


@dataclass(slots=True)
class Ledger:
    """Takes the gate's output records from either runtime, from any thread."""

    keyring: Callable[[], Keyring]
    clock_s: Callable[[], float]
    sent: dict[Place, Sent] = field(default_factory=dict)
    fates: dict[Place, Fate] = field(default_factory=dict)
    landing: dict[tuple[str, str], Fate] = field(default_factory=dict)
    """By tenant and event id: what was decided to land."""
    landed: dict[tuple[str, str], float] = field(default_factory=dict)
    """By tenant and event id: when it had landed; a landing may be heard of before its verdict."""
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def note(self, sent: Sent) -> None:
        """Remember a message that the log acknowledged."""
        with self._lock:
            self.sent[sent.place] = sent

    def take(self, topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        """Learn from one output record of the gate. Records of other topics say nothing."""
        if topic == AUDIT:
            verdict = verdict_from_bytes(self.keyring(), (key or b"").decode(), value or b"")
            place = verdict.intake
            with self._lock:
                fate = self.fates.setdefault(place, Fate())
                fate.verdict, fate.done_s = verdict, fate.done_s or self.clock_s()
                event = (verdict.tenant, verdict.event_id)
                if verdict.object_id is not None:
                    self.landing[event] = fate
                    fate.landed_s = self.landed.get(event)
        elif topic == DEAD_LETTER:
            why = orjson.loads([data for name, data in headers if name == DEAD_LETTER_HEADER][-1] or b"{}")
            place = (why["topic"], why["partition"], why["offset"])
            with self._lock:
                self.fates.setdefault(place, Fate(None, why["reason"], why["detail"], self.clock_s()))
        elif topic == STORE and value is not None:
            self._landed(value)

    def _landed(self, value: bytes) -> None:
        stored = verified(self.keyring(), value)
        if stored is None or stored.withdrawn:
            return
        event = (stored.tenant, stored.event_id)
        with self._lock:
            now = self.landed.setdefault(event, self.clock_s())
            fate = self.landing.get(event)
            if fate is not None and fate.landed_s is None:
                fate.landed_s = now

    def each(self) -> Iterator[tuple[Sent, Fate | None]]:
        """Yield every message with its fate (None: not known yet), in the order sent."""
        with self._lock:
            pairs = [(sent, self.fates.get(place)) for place, sent in self.sent.items()]
        yield from pairs

    def unsettled(self) -> int:
        """Return how many messages have no final fate yet."""
        return sum(fate is None or not fate.settled for _, fate in self.each())
