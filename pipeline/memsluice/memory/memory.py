"""One agent's memory in one session: what every adapter promises, said once.

A write returns once its entry can be read back (``wait="landed"``), or raises what became of it instead. What the
session saw is published, and acknowledged, before a model is shown it. What is read is published before it is returned.
"""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal, Unpack

from memsluice.client import arguments, requests
from memsluice.client.publisher import Receipt
from memsluice.client.requests import Session, WriteOptions
from memsluice.errors import (
    BatchNotRemembered,
    InvalidArgument,
    LandedElsewhere,
    LandingUnknown,
    MemsluiceError,
    NotDelivered,
    StoreUnavailable,
)
from memsluice.events.ids import object_id, scope_owner
from memsluice.events.limits import QUESTION_BYTES_MAX, RETURNED_MAX
from memsluice.events.models import Observation, Origin, Recall, Visibility, Write, Zone
from memsluice.memory.gate import Gate
from memsluice.memory.outcome import Outcome, Status
from memsluice.recall.reader import VerifiedEntry
from memsluice.recall.recaller import Narrow, Question, Recalled

Wait = Literal["landed", "accepted"]
TIMEOUT_S = 15.0
"""A verdict takes some 50 ms; a stage that is handed over to another worker takes seconds."""
TIMEOUT_MAX_S = 3_600.0
AGAIN_S = 0.5
"""How long is waited before a store that did not answer is asked again what lies there."""
BY_NAME = "(entries asked for by their names)"
"""What the recall of entries that nobody searched for says."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something to be remembered. ``options`` are those of a write; two entries of one ``key`` replace each other."""

    content: str
    options: WriteOptions = field(default_factory=WriteOptions)
    event_id: str | None = None


def askable(text: str) -> str:
    """Return what of a text can be asked: its beginning, at most QUESTION_BYTES_MAX; "" where it has no word."""
    return text.encode("utf-8", "replace")[:QUESTION_BYTES_MAX].decode(errors="ignore").strip()


@dataclass(slots=True)
class _Pending:
    write: Write
    outcome: "Future[Outcome]"
    receipt: "Future[Receipt] | None" = None


class Memory:
    """A session's memory on a gate. Safe for several threads.

    ``session`` says whose it is; it is opened at its first event, unless ``opens`` is False: where not all of what a
    model sees is observed nobody opens it, and what is written in it is no guidance until somebody does
    (:meth:`open`). ``namespace`` is the part of the tenant's memory.
    ``wait`` "landed" returns once a write can be read back, at most ``timeout_s`` seconds later; "accepted" once the
    broker has it, and then nobody is told what became of it.

    ``zone`` is where it reads; with the external one it is given outside data, and what is kept as outside data counts
    as remembered.
    """

    def __init__(
        self,
        gate: Gate,
        session: Session,
        *,
        namespace: str = "default",
        wait: Wait = "landed",
        timeout_s: float = TIMEOUT_S,
        opens: bool = True,
        zone: Zone = Zone.GUIDANCE,
    ) -> None:
        requests.session_only(session)
        arguments.number("argument timeout_s", timeout_s, 0.001, TIMEOUT_MAX_S)
        if wait not in ("landed", "accepted"):
            raise InvalidArgument(f"argument wait must be landed or accepted, not {wait!r}")
        if session.tenant != gate.tenant:
            raise InvalidArgument(f"argument session is of another tenant than the gate, which is {gate.tenant}'s")
        self.session = session
        self.namespace = namespace
        self.zone = zone
        self._gate = gate
        self._wait = wait
        self._timeout_s = timeout_s
        self._opens = opens
        self._opened = False
        self._lock = threading.Lock()

    def open(self) -> None:
        """Open the session, once, and return when the log has it: only a session that was opened is clean.

        Whoever calls this vouches that all that the session's model sees is observed. Raises ProducerError.
        """
        with self._lock:
            if self._opened:
                return
            event = requests.observation(self._gate.new_id(), self._gate.now(), self.session, Origin.OPEN, None, None)
            self._acknowledged(event)
            self._opened = True

    def write(self, content: str, *, event_id: str | None = None, **options: Unpack[WriteOptions]) -> Outcome:
        """Have something remembered, and return once it is, or was accepted.

        Said again under the same ``event_id`` it is written once. Raises WriteHeld, WriteRefused, LandedElsewhere,
        LandingUnknown, InputError where it can be no event, and ProducerError where the log did not take it
        (``maybe_written``).
        """
        (result,) = self._written([Entry(content, options, event_id)])
        if isinstance(result, MemsluiceError):
            raise result
        return result

    def write_all(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Publish all of them, then wait for all. Raises BatchNotRemembered, which has the result of every one."""
        several = arguments.several("entries", entries, "Entry")
        for entry in several:
            arguments.instance("entries", entry, Entry, "a sequence of Entry")
        results = self._written(several)
        if any(isinstance(one, MemsluiceError) for one in results):
            raise BatchNotRemembered(results)
        return [one for one in results if isinstance(one, Outcome)]

    def put(self, entries: Sequence[Entry]) -> list[Outcome]:
        """As :meth:`write_all`; of a single entry raises what :meth:`write` does."""
        if len(entries) == 1:
            one = entries[0]
            return [self.write(one.content, event_id=one.event_id, **one.options)]
        return self.write_all(entries)

    def observe(self, origin: Origin, *, content: str | None = None) -> Receipt:
        """Say that the session saw outside content; return once the log has that, before a model is shown it.

        The content is not published, only its SHA-256. Raises ProducerError: then show the model nothing of it.
        """
        self._open()
        arguments.instance("content", content, (str, type(None)), "text, or None")
        digest = None if content is None else sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        event = requests.observation(self._gate.new_id(), self._gate.now(), self.session, origin, digest, None)
        return self._acknowledged(event)

    def search(self, question: str, *, k: int = 5, narrow: Narrow = tuple) -> Recalled:
        """Return the nearest verified entries; see :meth:`memsluice.recall.recaller.Recaller.recall`.

        ``narrow`` says which of the k will be shown at all: only those are published. Raises ProducerError, too.
        :func:`askable` makes a question of any text.
        """
        arguments.instance("question", question, str, "text")
        arguments.whole("argument k", k, 1, RETURNED_MAX)
        self._open()
        asked = self._question(question, k)
        return self._gate.reading(lambda recaller: recaller.ask(asked, self._publish_recall, narrow=narrow))

    def read(self, keys: Sequence[str]) -> dict[str, VerifiedEntry]:
        """Return the principal's own entries of these keys, those that lie there and hold. Raises as :meth:`search`."""
        several = arguments.several("keys", keys, "keys")
        self._open()
        names = {self._place(None, Visibility.PRINCIPAL, self.namespace, key, self.zone): key for key in several}
        found = self._looked_up(tuple(names), tuple)
        return {names[entry.admission.object_id]: entry for entry in found.entries}

    def every(self, *, narrow: Narrow = tuple) -> Recalled:
        """Return all that the session can be given; ``narrow`` as in :meth:`search`.

        Raises as that, and StoreError where there is more than can be named (1,000).
        """
        self._open()
        return self._looked_up(None, narrow)

    def _looked_up(self, ids: Sequence[str] | None, narrow: Narrow) -> Recalled:
        asked = self._question(BY_NAME)
        return self._gate.reading(lambda recaller: recaller.look_up(asked, ids, self._publish_recall, narrow=narrow))

    def _open(self) -> None:
        if self._opens:
            self.open()

    def _written(self, entries: Sequence[Entry]) -> list[Outcome | MemsluiceError]:
        self._open()
        until = time.monotonic() + self._timeout_s
        begun = [self._publish(entry) for entry in entries]
        return [one if isinstance(one, MemsluiceError) else self._awaited(one, until) for one in begun]

    def _publish(self, entry: Entry) -> _Pending | MemsluiceError:
        event_id = entry.event_id or self._gate.new_id()
        try:
            write = requests.write(
                event_id, self._gate.now(), self.session, entry.content, {"namespace": self.namespace, **entry.options}
            )
            said = sha256(write.model_dump_json(exclude={"time"}).encode()).hexdigest()
            pending = _Pending(write, self._gate.waiting.expect(event_id, said))
        except MemsluiceError as error:
            return error
        try:
            pending.receipt = self._gate.publish(self.session, write)
        except MemsluiceError as error:
            self._gate.waiting.forget(event_id)
            return error
        return pending

    def _awaited(self, pending: _Pending, until: float) -> Outcome | MemsluiceError:
        event_id, waiting = pending.write.id, self._gate.waiting
        try:
            assert pending.receipt is not None
            receipt = pending.receipt.result(max(until - time.monotonic(), 0))
            place = (receipt.topic, receipt.partition, receipt.offset)
            waiting.placed(event_id, place)
            if self._wait == "accepted":
                return Outcome(event_id, Status.ACCEPTED, place=place)
            outcome = pending.outcome.result(max(until - time.monotonic(), 0))
        except Late:
            return self._unknown(event_id, pending)
        except MemsluiceError as error:  # the broker did not take it
            return error
        finally:
            waiting.forget(event_id)
        if outcome.status is Status.DUPLICATE or (outcome.again and self._keeps(outcome)):
            try:
                outcome = self._first(pending.write, outcome, until)
            except StoreUnavailable:
                return self._unknown(event_id, pending)
        if not self._keeps(outcome):
            return outcome.error()
        if outcome.object_id not in (None, *self._objects(pending.write)):
            return LandedElsewhere(
                f"write {event_id} landed under another key than its own, which looks like a secret and was taken out: "
                "use a key that says less",
                event_id=event_id,
                reasons=("sensitive.redacted",),
                place=outcome.place,
                became=outcome.status.value,
            )
        return outcome

    def _keeps(self, outcome: Outcome) -> bool:
        return outcome.remembered or (outcome.status is Status.CONTAINED and self.zone is Zone.EXTERNAL)

    def _unknown(self, event_id: str, pending: _Pending) -> LandingUnknown:
        had = pending.receipt is not None and pending.receipt.done()
        what = "the log has it, and no verdict, or no landing, was heard" if had else "the log has not acknowledged it"
        return LandingUnknown(
            f"write {event_id} may still land: {what} within {self._timeout_s:g} s; say it again under the same event "
            f"id, or ask `memsluice trace {event_id}`",
            event_id=event_id,
        )

    def _first(self, write: Write, again: Outcome, until: float) -> Outcome:
        """Return what became of an event that was decided under this id before: it landed where its entry lies.

        Raises StoreUnavailable where the store does not answer ``until`` then, by the monotonic clock.
        """
        where = self._objects(write)
        question = replace(self._question(BY_NAME), namespace=write.namespace)
        while True:
            try:
                lies = self._gate.reading(lambda recaller: recaller.lies(question, where))
                break
            except StoreUnavailable:  # a store that is back is connected to once a second
                if time.monotonic() + AGAIN_S >= until:
                    raise
                time.sleep(AGAIN_S)
        there = next((one.object_id for one in lies if one.event_id == write.id), None)
        if there is None:  # replaced or taken out since, or never there
            return replace(again, status=Status.DUPLICATE)
        status = Status.CONTAINED if self.zone is Zone.EXTERNAL else Status.LANDED
        return Outcome(write.id, status, again.reasons, there, again.version, again.place)

    def _objects(self, write: Write) -> tuple[str, ...]:
        """Return where a write may lie: what asks to be shared is its principal's until it is promoted."""
        scopes = (
            {write.visibility, Visibility.PRINCIPAL} if write.visibility is Visibility.SHARED else {write.visibility}
        )
        return tuple(
            self._place(write.id, scope, write.namespace, write.key, zone)
            for scope in sorted(scopes)
            for zone in sorted({Zone.GUIDANCE, self.zone})
        )

    def _place(self, event_id: str | None, visibility: Visibility, namespace: str, key: str | None, zone: Zone) -> str:
        """Return the object that an entry of this session's lies in."""
        owner = scope_owner(visibility, self.session.principal, self.session.session)
        return object_id(
            tenant=self.session.tenant, zone=zone, visibility=visibility, owner=owner,
            namespace=namespace, key=key, event_id=event_id or "",
        )  # fmt: skip

    def _question(self, text: str, k: int = 1) -> Question:
        whose = self.session
        return Question(whose.tenant, text, whose.agent, whose.principal, whose.session, self.namespace, self.zone, k)

    def _publish_recall(self, event: Recall) -> None:
        self._acknowledged(event)

    def _acknowledged(self, event: Observation | Recall) -> Receipt:
        """Publish, and return once the log has it. Raises ProducerError, also where nothing was heard in time."""
        try:
            return self._gate.publish(self.session, event).result(self._timeout_s)
        except Late:
            why = f"the log has not acknowledged it within {self._timeout_s:g} s"
            raise NotDelivered(why, event_id=event.id, maybe_written=True) from None
