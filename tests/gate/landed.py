"""A core whose outputs are kept as *land* reads them, so that commands can carry what landed."""

from dataclasses import replace
from typing import Any

from tests.gate.build import PARTITION, RING, TENANT, Core

from memsluice.envelope.records import Accepted, StoreRecord, landing_from_bytes
from memsluice.envelope.seals import Sealed
from memsluice.events.names import EventType
from memsluice.events.records import Output
from memsluice.gate.decide import Outcome
from memsluice.stages.emit import emit
from memsluice.topics.names import ACCEPTED

LATE = "2030-01-01T00:00:00Z"
TWO = ("key-reviewer", "key-reviewer-2")
KEYS = {"seal_kid": "seal-1", "admission_kid": "admission-1"}


class Shop(Core):
    """``accepted`` has the last accepted record of every event id, ``store`` what a store would hold, by object id."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.accepted: dict[str, Accepted] = {}
        self.store: dict[str, Accepted] = {}
        self.written: dict[str, Sealed] = {}

    def see(self, who: str, kind: EventType, /, *, carried: Any = None, **fields: Any) -> Outcome:
        """Decide one event, and land what comes of it."""
        outcome = super().see(who, kind, carried=carried, **fields)
        assert self.last is not None
        if kind is EventType.WRITE:
            self.written.setdefault(f"e{self.offset}", self.last)
        for output in emit(RING, self.last, replace(outcome.verdict, **KEYS), PARTITION, (), carried):
            if output.topic == ACCEPTED:
                self._land(output)
        return outcome

    def _land(self, output: Output) -> None:
        landing = landing_from_bytes(RING, TENANT, output.value or b"")
        if isinstance(landing, StoreRecord):
            self.store.pop(landing.object_id, None)
        else:
            self.accepted[landing.admission.event_id] = landing
            self.store[landing.admission.object_id] = landing

    def order(self, action: str, target: str, who: str = "reviewer", **fields: Any) -> Outcome:
        """Give a command about an entry; ``fields`` go over those of a right one."""
        fields.setdefault("carried", self.accepted.get(target))
        fields.setdefault("approvers", TWO if action == "declassify" else TWO[:1])
        written = self.written.get(target)
        base = {"target": target, "digest": written.content_digest if written else None, "expires_at": LATE}
        return self.see(who, EventType.COMMAND, action=action, **{**base, **fields})

    def lies(self, event_id: str) -> list[tuple[str, str]]:
        """Return zone and visibility of every object that an event's content lies in."""
        admissions = [one.admission for one in self.store.values() if one.admission.event_id == event_id]
        return [(one.zone.value, one.visibility.value) for one in admissions]
