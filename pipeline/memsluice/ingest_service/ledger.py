"""What one process knows of events: those that it took, and where in the audit the verdict on any other lies.

Bounded, and in memory alone. What it forgets is decided all the same: to the gate an event that comes again is a
duplicate, and a verdict that is not known here any more is in the audit.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from memsluice.client.publisher import Receipt
from memsluice.envelope.keys import Keyring
from memsluice.errors import RequestRefused
from memsluice.events.headers import EVENT_ID
from memsluice.events.names import DECISION_HEADER, TARGET_HEADER
from memsluice.events.records import Record
from memsluice.memory.outcome import Outcome
from memsluice.memory.waiting import Name, Waiting
from memsluice.topics.names import AUDIT

TAKEN_MAX = 20_000
"""Events that this process took and knows by itself; of more the oldest is looked up like any other."""
POSITIONS_MAX = 10_000
"""Event ids of one partition of the audit whose verdict can be looked up."""
LATER_MAX = 4
"""Verdicts about one event since, of which the latest are kept."""


@dataclass(slots=True)
class Taken:
    """An event that this process took for a credential. ``said`` tells another event of its id from itself."""

    kid: str
    said: str
    outcome: "Future[Outcome]"
    receipt: "Future[Receipt]" = field(default_factory=Future)


@dataclass(slots=True)
class Told:
    """Offsets in the audit: of the verdict on an event (None: not heard of), and of those about it since."""

    own: int | None = None
    again: bool = False
    later: tuple[int, ...] = ()


class Ledger:
    """Hears all partitions. Safe for several threads; ``keys`` gives the gate's keyring."""

    def __init__(self, keys: Callable[[], Keyring]) -> None:
        self.waiting = Waiting(None, keys)
        self._lock = threading.Lock()
        self._taken: OrderedDict[Name, Taken] = OrderedDict()
        self._told: dict[int, OrderedDict[Name, Told]] = {}

    def begin(self, name: Name, kid: str, said: str) -> tuple[Taken, bool]:
        """Return an event that is taken, and whether it is new here. Raises RequestRefused for another of its id."""
        with self._lock:
            known = self._taken.get(name)
            if known is not None:
                if known.kid != kid:
                    raise RequestRefused(409, "id_in_use", "another event has this id: use another", field="id")
                if known.said != said:
                    raise RequestRefused(
                        422, "other_content", "an event of this id, or under this Idempotency-Key, said something else"
                    )
                return known, False
            tenant, event_id = name
            made = self._taken[name] = Taken(kid, said, self.waiting.expect(event_id, said, tenant=tenant))
            if len(self._taken) > TAKEN_MAX:
                (over_tenant, over_id), _ = self._taken.popitem(last=False)
                self.waiting.forget(over_id, tenant=over_tenant)
        return made, True

    def sent(self, name: Name, taken: Taken, receipt: "Future[Receipt]") -> None:
        """Take note where the event lies once the broker says so; forget what it did not take."""
        taken.receipt = receipt
        receipt.add_done_callback(lambda done: self._placed(name, taken, done))

    def _placed(self, name: Name, taken: Taken, done: "Future[Receipt]") -> None:
        if done.exception() is not None:
            self.drop(name, taken)
            return
        receipt = done.result()
        place = (receipt.topic, receipt.partition, receipt.offset)
        self.waiting.placed(name[1], place, tenant=name[0])

    def drop(self, name: Name, taken: Taken) -> None:
        """Forget an event that was not taken after all."""
        with self._lock:
            if self._taken.get(name) is not taken:
                return
            del self._taken[name]
            self.waiting.forget(name[1], tenant=name[0])  # here: who begins the id anew must find nothing of it

    def taken(self, name: Name) -> Taken | None:
        """Return what is known of an event that this process took."""
        with self._lock:
            return self._taken.get(name)

    def told(self, name: Name, partition: int) -> Told:
        """Return where the verdicts on and about an event lie in a partition of the audit."""
        with self._lock:
            here = self._told.get(partition)
            found = None if here is None else here.get(name)
            return Told() if found is None else Told(found.own, found.again, found.later)

    def take(self, record: Record) -> None:
        """Learn from a record of the topics on which outcomes are heard."""
        self.waiting.take(record)
        if record.topic == AUDIT:
            self._index(record)

    def _index(self, record: Record) -> None:
        """Take note of what a record's headers name; what it says counts once it is read, by its seal."""
        tenant, headers = _text(record.key), dict(record.headers)
        again = headers.get(DECISION_HEADER) == b"duplicate"
        targets = [value for name, value in record.headers if name == TARGET_HEADER]
        with self._lock:
            told = self._of(record.partition, (tenant, _text(headers.get(EVENT_ID))))
            if told.own is None or (told.again and not again):
                told.own, told.again = record.offset, again
            for target in targets:
                about = self._of(record.partition, (tenant, _text(target)))
                about.later = (*about.later, record.offset)[-LATER_MAX:]

    def _of(self, partition: int, name: Name) -> Told:
        here = self._told.setdefault(partition, OrderedDict())
        told = here.setdefault(name, Told())
        if len(here) > POSITIONS_MAX:
            here.popitem(last=False)
        return told


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")
