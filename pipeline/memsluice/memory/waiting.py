"""Who waits for the outcome of which event, and what was heard meanwhile. No I/O: records come in, futures resolve."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
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

REMEMBERED_MAX = 10_000
"""Landings, and dead letters, that are remembered for whoever hears of his own record only later; and outcomes."""
_K = TypeVar("_K")
_V = TypeVar("_V")
LANDS = (Status.LANDED, Status.CONTAINED)


class Waiting:
    """The outcomes that one tenant's callers wait for. Safe for several threads.

    Register with :meth:`expect` before the event is published: what is heard of an event that nobody waits for is
    forgotten. Verdicts and store records come over different topics, in any order, and count where the gate's seal
    holds. Nobody seals a dead letter: who may write to its topic is the broker's access rules' to say.
    """

    def __init__(self, tenant: str, keys: Callable[[], Keyring]) -> None:
        self._tenant = tenant
        self._keys = keys
        self._lock = threading.Lock()
        self._expected: dict[str, Future[Outcome]] = {}
        self._landing: dict[str, list[tuple[Outcome, Future[Outcome]]]] = {}
        self._landed: OrderedDict[str, int] = OrderedDict()
        self._letters: OrderedDict[Place, str] = OrderedDict()
        self._told: OrderedDict[str, Outcome] = OrderedDict()
        self._places: dict[Place, str] = {}
        self._place_of: dict[str, Place] = {}
        self._lands_in: dict[str, str] = {}
        self._waiters: Counter[str] = Counter()
        self._said: dict[str, str] = {}

    def expect(self, event_id: str, said: str = "") -> "Future[Outcome]":
        """Return the future of an event's outcome; who waits for an event that is waited for shares it.

        ``said`` is what the event says, or a digest of it. Each who expects an event forgets it once. Raises
        InvalidArgument where another one of the same id is waited for: two events never have one id.
        """
        with self._lock:
            if self._said.setdefault(event_id, said) != said:
                raise InvalidArgument("argument event_id is that of another event, which is on its way")
            self._waiters[event_id] += 1
            return self._expected.setdefault(event_id, Future())

    def placed(self, event_id: str, place: Place) -> None:
        """Take note where an expected event lies: a dead letter names nothing else."""
        with self._lock:
            reason = self._letters.pop(place, None)
            if reason is None:
                if event_id in self._expected:
                    self._places[place] = event_id
                    self._place_of[event_id] = place
                return
        self._settle(Outcome(event_id, Status.DEAD_LETTER, (reason,), place=place))

    def forget(self, event_id: str) -> None:
        """Wait no longer; nothing is kept of an event that nobody waits for."""
        with self._lock:
            self._waiters[event_id] -= 1
            if self._waiters[event_id] > 0:
                return
            del self._waiters[event_id]
            self._said.pop(event_id, None)
            self._expected.pop(event_id, None)
            self._unplaced(event_id)
            object_id = self._lands_in.pop(event_id, "")
            left = [pair for pair in self._landing.pop(object_id, []) if pair[0].event_id != event_id]
            if left:
                self._landing[object_id] = left

    def _unplaced(self, event_id: str) -> None:
        place = self._place_of.pop(event_id, None)
        if place is not None:
            self._places.pop(place, None)

    def take(self, record: Record) -> None:
        """Take a record of one of the topics that outcomes are heard on; any other is left alone."""
        {AUDIT: self._verdict, STORE: self._stored, DEAD_LETTER: self._letter}.get(record.topic, lambda _: None)(record)

    def _verdict(self, record: Record) -> None:
        event_id = (dict(record.headers).get(EVENT_ID) or b"").decode("utf-8", "replace")
        if record.key != self._tenant.encode() or event_id not in self._expected:
            return
        try:
            outcome = outcome_of(verdict_from_bytes(self._keys(), self._tenant, record.value or b""))
        except (SealError, InputError):  # nobody is told what the gate did not say
            return
        if outcome.event_id == event_id:
            self._settle(outcome)

    def _stored(self, record: Record) -> None:
        stored = None if record.value is None else stored_of_record(self._keys(), record)
        if stored is None or stored.tenant != self._tenant:
            return
        with self._lock:
            _remember(self._landed, stored.object_id, stored.version)
            some = self._landing.get(stored.object_id, [])
            done = [pair for pair in some if landed_by(pair[0], stored)]
            self._landing[stored.object_id] = [pair for pair in some if pair not in done]
            if not self._landing[stored.object_id]:
                del self._landing[stored.object_id]
        for outcome, future in done:
            future.set_result(outcome)

    def _letter(self, record: Record) -> None:
        try:
            said = from_json(dict(record.headers).get(DEAD_LETTER_HEADER) or b"")
            place = (str(said["topic"]), int(said["partition"]), int(said["offset"]))
            reason = str(said["reason"])
        except (InputError, KeyError, TypeError, ValueError):
            return
        with self._lock:
            event_id = self._places.pop(place, None)
            if event_id is None:
                _remember(self._letters, place, reason)
                return
        self._settle(Outcome(event_id, Status.DEAD_LETTER, (reason,), place=place))

    def _settle(self, outcome: Outcome) -> None:
        """Resolve what waits for an outcome; of one that lands, once the store has it.

        A duplicate's is that of the first one, where it is remembered: it may have yet to land.
        """
        with self._lock:
            future = self._expected.pop(outcome.event_id, None)
            self._unplaced(outcome.event_id)
            if future is None:
                return
            if outcome.status is Status.DUPLICATE:
                outcome = self._told.get(outcome.event_id, outcome)
            else:
                _remember(self._told, outcome.event_id, outcome)
            waits = outcome.status in LANDS and outcome.object_id is not None
            if waits and self._landed.get(outcome.object_id or "", -1) < (outcome.version or 0):
                self._lands_in[outcome.event_id] = outcome.object_id or ""
                self._landing.setdefault(outcome.object_id or "", []).append((outcome, future))
                return
        future.set_result(outcome)


def _remember(known: "OrderedDict[_K, _V]", name: _K, value: _V) -> None:
    known[name] = value
    known.move_to_end(name)
    if len(known) > REMEMBERED_MAX:
        known.popitem(last=False)
