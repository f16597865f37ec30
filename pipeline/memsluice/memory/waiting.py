"""Who waits for the outcome of which event, and what was heard meanwhile. No I/O: records come in, futures resolve."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeVar

from memsluice.envelope.codec import from_json
from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import stored_of_record, verdict_from_bytes
from memsluice.errors import InputError, InvalidArgument, SealError
from memsluice.events.headers import EVENT_ID
from memsluice.events.names import DEAD_LETTER_HEADER
from memsluice.events.records import Record
from memsluice.memory.outcome import Outcome, Place, Status, landed_by, outcome_of
from memsluice.topics.names import AUDIT, DEAD_LETTER, STORE

Name = tuple[str, str]
"""An event's: its tenant and its id. Ids are unique in one tenant alone."""
REMEMBERED_MAX = 10_000
"""Landings, and dead letters, that are remembered for whoever hears of his own record only later; and outcomes."""
_K = TypeVar("_K")
_V = TypeVar("_V")
LANDS = (Status.LANDED, Status.CONTAINED)


class Waiting:
    """The outcomes that callers wait for. Safe for several threads.

    ``tenant`` None hears of all tenants, and each call says whose event it is about; else the tenant is this one.

    Register with :meth:`expect` before the event is published: what is heard of an event that nobody waits for is
    forgotten. Verdicts and store records come over different topics, in any order, and count where the gate's seal
    holds. Nobody seals a dead letter: who may write to its topic is the broker's access rules' to say.
    """

    def __init__(self, tenant: str | None, keys: Callable[[], Keyring]) -> None:
        self._tenant = tenant
        self._keys = keys
        self._lock = threading.Lock()
        self._expected: dict[Name, Future[Outcome]] = {}
        self._landing: dict[str, list[tuple[Name, Outcome, Future[Outcome]]]] = {}
        self._landed: OrderedDict[str, int] = OrderedDict()
        self._letters: OrderedDict[Place, str] = OrderedDict()
        self._told: OrderedDict[Name, Outcome] = OrderedDict()
        self._places: dict[Place, Name] = {}
        self._place_of: dict[Name, Place] = {}
        self._lands_in: dict[Name, str] = {}
        self._waiters: Counter[Name] = Counter()
        self._said: dict[Name, str] = {}

    def _name(self, event_id: str, tenant: str | None) -> Name:
        return tenant or self._tenant or "", event_id

    def expect(self, event_id: str, said: str = "", *, tenant: str | None = None) -> "Future[Outcome]":
        """Return the future of an event's outcome; who waits for an event that is waited for shares it.

        ``said`` is what the event says, or a digest of it. Each who expects an event forgets it once. Raises
        InvalidArgument where another one of the same id is waited for: two events never have one id.
        """
        name = self._name(event_id, tenant)
        with self._lock:
            if self._said.setdefault(name, said) != said:
                raise InvalidArgument("argument event_id is that of another event, which is on its way")
            self._waiters[name] += 1
            return self._expected.setdefault(name, Future())

    def landed(self, object_id: str) -> int:
        """Return the version of an object that was heard to lie in the store; -1 of one that was not heard of."""
        with self._lock:
            return self._landed.get(object_id, -1)

    def placed(self, event_id: str, place: Place, *, tenant: str | None = None) -> None:
        """Take note where an expected event lies: a dead letter names nothing else."""
        name = self._name(event_id, tenant)
        with self._lock:
            reason = self._letters.pop(place, None)
            if reason is None:
                if name in self._expected:
                    self._places[place] = name
                    self._place_of[name] = place
                return
        self._settle(name, Outcome(event_id, Status.DEAD_LETTER, (reason,), place=place))

    def waits_for(self, event_id: str, *, tenant: str | None = None) -> bool:
        """Whether somebody waits for an event's outcome still."""
        with self._lock:
            return self._name(event_id, tenant) in self._expected

    def heard(self, outcome: Outcome, *, tenant: str | None = None) -> None:
        """Take an outcome from a service that heard it: of one that landed, the landing too."""
        with self._lock:
            if outcome.status in LANDS and outcome.object_id is not None:
                _remember(self._landed, outcome.object_id, outcome.version or 0)
        self._settle(self._name(outcome.event_id, tenant), outcome)

    def forget(self, event_id: str, *, tenant: str | None = None) -> None:
        """Wait no longer; nothing is kept of an event that nobody waits for."""
        name = self._name(event_id, tenant)
        with self._lock:
            self._waiters[name] -= 1
            if self._waiters[name] > 0:
                return
            del self._waiters[name]
            self._said.pop(name, None)
            self._expected.pop(name, None)
            self._unplaced(name)
            object_id = self._lands_in.pop(name, "")
            left = [waits for waits in self._landing.pop(object_id, []) if waits[0] != name]
            if left:
                self._landing[object_id] = left

    def _unplaced(self, name: Name) -> None:
        place = self._place_of.pop(name, None)
        if place is not None:
            self._places.pop(place, None)

    def take(self, record: Record) -> None:
        """Take a record of one of the topics that outcomes are heard on; any other is left alone."""
        {AUDIT: self._verdict, STORE: self._stored, DEAD_LETTER: self._letter}.get(record.topic, lambda _: None)(record)

    def _verdict(self, record: Record) -> None:
        event_id = (dict(record.headers).get(EVENT_ID) or b"").decode("utf-8", "replace")
        tenant = (record.key or b"").decode("utf-8", "replace")
        if self._tenant not in (None, tenant) or (tenant, event_id) not in self._expected:
            return
        try:
            outcome = outcome_of(verdict_from_bytes(self._keys(), tenant, record.value or b""))
        except (SealError, InputError):  # nobody is told what the gate did not say
            return
        if outcome.event_id == event_id:
            self._settle((tenant, event_id), outcome)

    def _stored(self, record: Record) -> None:
        stored = None if record.value is None else stored_of_record(self._keys(), record)
        if stored is None or self._tenant not in (None, stored.tenant):
            return
        with self._lock:
            _remember(self._landed, stored.object_id, stored.version)
            some = self._landing.get(stored.object_id, [])
            done = [waits for waits in some if landed_by(waits[1], stored)]
            self._landing[stored.object_id] = [waits for waits in some if waits not in done]
            if not self._landing[stored.object_id]:
                del self._landing[stored.object_id]
        for _, outcome, future in done:
            future.set_result(outcome)

    def _letter(self, record: Record) -> None:
        try:
            said = from_json(dict(record.headers).get(DEAD_LETTER_HEADER) or b"")
            place = (str(said["topic"]), int(said["partition"]), int(said["offset"]))
            reason = str(said["reason"])
        except (InputError, KeyError, TypeError, ValueError):
            return
        with self._lock:
            name = self._places.pop(place, None)
            if name is None:
                _remember(self._letters, place, reason)
                return
        self._settle(name, Outcome(name[1], Status.DEAD_LETTER, (reason,), place=place))

    def _settle(self, name: Name, outcome: Outcome) -> None:
        """Resolve what waits for an outcome; of one that lands, once the store has it.

        A duplicate's is that of the first one, where it is remembered: it may have yet to land.
        """
        with self._lock:
            future = self._expected.pop(name, None)
            self._unplaced(name)
            if future is None:
                return
            if outcome.status is Status.DUPLICATE:
                outcome = replace(self._told.get(name, outcome), again=True)
            else:
                _remember(self._told, name, outcome)
            waits = outcome.status in LANDS and outcome.object_id is not None
            if waits and self._landed.get(outcome.object_id or "", -1) < (outcome.version or 0):
                self._lands_in[name] = outcome.object_id or ""
                self._landing.setdefault(outcome.object_id or "", []).append((name, outcome, future))
                return
        future.set_result(outcome)


def _remember(known: "OrderedDict[_K, _V]", name: _K, value: _V) -> None:
    known[name] = value
    known.move_to_end(name)
    if len(known) > REMEMBERED_MAX:
        known.popitem(last=False)
