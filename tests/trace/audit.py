"""Audit records as *screen* writes them: the real stage on events made by hand, its rows in memory."""

from typing import Any

import orjson
from tests.gate.build import PARTITION, RING, MemoryRows, axis, sealed
from tests.stages import holding

from memsluice.envelope.keys import Keyring
from memsluice.envelope.seals import Sealed, close, open_, sealed_to_bytes
from memsluice.events.headers import EVENT_ID
from memsluice.events.names import TARGET_HEADER, VERDICT, EventType
from memsluice.events.records import Headers, Record
from memsluice.gate.policy.model import Policy
from memsluice.operations.trace.collector import Collector
from memsluice.operations.trace.life import Life
from memsluice.stages.screen import ScreenStage
from memsluice.topics.names import ACCEPTED, AUDIT, SEALED

SOON_MS = 1_780_000_060_000
"""A minute after the first event."""


class Gate:
    """A real *screen*, one sealed event after another, and the audit topic that comes of it.

    Without a ``policy`` it holds what a pattern occurs in.
    """

    def __init__(self, policy: Policy | None = None) -> None:
        self._rows = MemoryRows()
        self._policy = policy
        self._sealed_offset = 0
        self.offset = -1
        self.audit: list[Record] = []
        self.accepted: list[bytes] = []

    def see(self, who: str, kind: EventType, **fields: Any) -> Sealed:
        """Decide a new event at the next intake offset."""
        self.offset += 1
        event = sealed(who, kind, self.offset, **fields)
        self.deliver(event)
        return event

    def write(self, who: str = "user", content: str = "Ana prefers the early train.", **fields: Any) -> Sealed:
        """Decide a write; without a vector it gets one far from every question."""
        fields.setdefault("vector", axis(300 + self.offset % 50))
        return self.see(who, EventType.WRITE, content=content, **fields)

    def deliver(self, event: Sealed) -> None:
        """Hand over a sealed event to a stage that remembers nothing but its rows."""
        policies = holding.policies().of if self._policy is None else lambda _tenant: self._policy
        value = sealed_to_bytes(RING, "seal-1", event)
        record = Record(SEALED, PARTITION, self._sealed_offset, event.tenant.encode(), value, (), 0)
        self._sealed_offset += 1
        step = ScreenStage(lambda: RING, policies, 8).process(record, self._rows)
        for change in step.changes:
            self._rows.put(change.key, change.value)
        for output in step.outputs:
            if output.topic == AUDIT:
                self.put(output.key or b"", output.value or b"", output.headers, event.position.append_ms + 5)
            elif output.topic == ACCEPTED:
                self.accepted.append(output.value or b"")

    def put(self, key: bytes, value: bytes, headers: Headers, append_ms: int = 0) -> None:
        """Append a record to the audit topic as it is."""
        self.audit.append(Record(AUDIT, PARTITION, len(self.audit), key, value, headers, append_ms))

    def again(self, number: int) -> None:
        """Append an audit record once more, as a gate of before did after a kill."""
        record = self.audit[number]
        self.put(record.key or b"", record.value or b"", record.headers)

    def verdict(self, number: int) -> Any:
        """Return what an audit record says."""
        record = self.audit[number]
        return open_(RING, (record.key or b"").decode(), VERDICT, record.value or b"")

    def forged(self, number: int, ring: Keyring = RING, **changes: Any) -> None:
        """Append what an audit record says, changed, and signed by ``ring``; headers follow the changes."""
        verdict = self.verdict(number) | changes
        headers: Headers = ((EVENT_ID, str(verdict["event_id"]).encode()),)
        if "target" in changes:
            headers = (*headers, (TARGET_HEADER, str(changes["target"]).encode()))
        tenant = verdict["tenant"]
        value = close(ring, "seal-1", tenant, VERDICT, orjson.loads(orjson.dumps(verdict)))
        self.put(tenant.encode(), value, headers)


def collect(gate: Gate, *event_ids: str, tenant: str | None = None) -> Collector:
    """Return a collector that took the whole audit topic."""
    found = Collector(set(event_ids), RING, tenant)
    for record in gate.audit:
        found.take(record)
    return found


def life_of(gate: Gate, event_id: str) -> Life:
    """Return the one life of an event id."""
    (life,) = collect(gate, event_id).lives()
    return life
