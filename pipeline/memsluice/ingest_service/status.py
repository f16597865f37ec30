"""What became of an event, for whoever published it: from what this process heard, or from the verdict in the audit."""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import monotonic

from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import verdict_from_bytes
from memsluice.envelope.registry import ANY, COMMANDERS, Credential
from memsluice.envelope.verdict import Decision, Verdict
from memsluice.errors import BrokerError, InputError, RequestRefused, SealError
from memsluice.events.models import Action
from memsluice.events.names import EventType
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.gate.reasons import WORDS
from memsluice.ingest_service.ledger import Ledger, Taken
from memsluice.ingest_service.wire import EventStatus, Later, PlaceModel, Reason
from memsluice.memory.outcome import BECAME, Outcome, Place, Status, outcome_of
from memsluice.memory.waiting import LANDS, Name
from memsluice.topics.names import PARTITIONS

LOOK_S = 0.05
"""How often who waits looks whether something was heard."""
LOOKUPS_MAX = 8
"""Verdicts that a credential may have looked up at once."""
READERS = 2
"""Threads that read a partition: a read that hangs holds up no other partition's, and of its own the second such one
the first who comes behind both."""
LOOKUP_S = 2.0
"""How long one may take: while the broker is away a read takes longer, and whoever waits behind it is told so."""
NOT_FOUND = 404
DECIDED = ("the gate let it in; that the store has it was not heard here", "recall it, or ask again")
ReadAudit = Callable[[int, int], Record | None]
"""Returns the record at a partition and an offset of the audit, None where there is none. Raises BrokerUnavailable."""


class Statuses:
    """Tells callers what became of their events. ``read`` is called in threads of its own, READERS a partition."""

    def __init__(self, ledger: Ledger, keyring: Callable[[], Keyring], read: ReadAudit) -> None:
        self._ledger = ledger
        self._keyring = keyring
        self._read = read
        self._pools = [ThreadPoolExecutor(READERS, f"memsluice-verdict-{one}") for one in range(PARTITIONS)]
        self._asked: Counter[str] = Counter()

    def close(self) -> None:
        """Look nothing more up."""
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
        for pool in self._pools:
            pool.shutdown()

    async def of(self, name: Name, caller: Credential, wait_s: float) -> EventStatus:
        """Return what became of a caller's event, waiting so long for an outcome. Raises RequestRefused: 404, once
        the time is over, so that another's event is not told from none by how soon the answer comes."""
        until = monotonic() + wait_s
        try:
            return await self._of(name, caller, until)
        except RequestRefused as error:
            if error.status == NOT_FOUND:
                await asyncio.sleep(max(0.0, until - monotonic()))
            raise

    async def _of(self, name: Name, caller: Credential, until: float) -> EventStatus:
        if ANY not in caller.tenants and name[0] not in caller.tenants:
            raise _unknown()
        partition = partition_of(name[0], PARTITIONS)
        while self._pending(name, partition) and monotonic() < until:
            await asyncio.sleep(LOOK_S)
        taken, told = self._ledger.taken(name), self._ledger.told(name, partition)
        if taken is not None and not _may_see(caller, taken.kid):
            raise _unknown()
        if taken is not None and not taken.receipt.done():
            taken = None  # it was not accepted yet: a verdict that was heard may be another's of its id
        place = None if taken is None else _place(taken)
        outcome = None if taken is None else _heard(taken, place)
        seen = True  # whoever waits is told that it landed once the store's record was heard
        if outcome is None or outcome.status is Status.DUPLICATE:
            verdict = None if told.own is None else await self._verdict(name[0], partition, told.own, caller.kid)
            if verdict is not None and _may_see(caller, verdict.kid) and verdict.event_id == name[1]:
                outcome, place, seen = outcome_of(verdict), verdict.intake, False
            elif taken is None:
                raise _unknown()
        later = [await self._verdict(name[0], partition, offset, caller.kid) for offset in told.later]
        known = outcome or Outcome(name[1], Status.ACCEPTED, place=place)
        while not seen and known.status in LANDS:
            seen = self._ledger.waiting.landed(known.object_id or "") >= (known.version or 0)
            if seen or monotonic() >= until:
                break
            await asyncio.sleep(LOOK_S)
        known = replace(known, place=place or known.place)
        return _status(name, known, [one for one in later if one is not None], seen=seen)

    def _pending(self, name: Name, partition: int) -> bool:
        taken = self._ledger.taken(name)
        return not taken.outcome.done() if taken is not None else self._ledger.told(name, partition).own is None

    async def _verdict(self, tenant: str, partition: int, offset: int, kid: str) -> Verdict | None:
        """Return the verdict that lies in the audit; None where its seal does not hold, or it was deleted."""
        if self._asked[kid] >= LOOKUPS_MAX:
            raise RequestRefused(429, "at_once", f"the credential has {LOOKUPS_MAX} events looked up already")
        self._asked[kid] += 1
        reading = asyncio.get_running_loop().run_in_executor(self._pools[partition], self._read, partition, offset)
        try:
            record = await asyncio.wait_for(reading, LOOKUP_S)  # one whose turn did not come is not read any more
        except (BrokerError, TimeoutError):
            raise RequestRefused(503, "broker_unavailable", "the verdict cannot be read now: ask again") from None
        finally:
            self._asked[kid] -= 1
            if not self._asked[kid]:
                del self._asked[kid]
        if record is None or record.key != tenant.encode():
            return None
        try:
            return verdict_from_bytes(self._keyring(), tenant, record.value or b"")
        except (SealError, InputError):
            return None


def _unknown() -> RequestRefused:
    """Return one answer for what does not exist, is not known here, and is somebody else's."""
    return RequestRefused(
        NOT_FOUND, "unknown_event",
        "no event of this id is known here as the credential's own. A service knows what was decided while it ran, "
        "some of what was decided before, and of what was not decided yet what it took itself", field="id",
    )  # fmt: skip


def _status(name: Name, known: Outcome, later: list[Verdict], *, seen: bool) -> EventStatus:
    """Return an outcome as it travels; ``seen`` False where it should lie in the store, and nobody heard that."""
    became, then = BECAME[known.status]
    words = f"it {became}"
    if known.status in LANDS and not seen:
        known, (words, then) = replace(known, status=Status.ACCEPTED), DECIDED
    where = known.place
    return EventStatus(
        id=name[1], tenant=name[0], status=known.status, reasons=_reasons(known.reasons), words=words, then=then,
        place=None if where is None else PlaceModel(topic=where[0], partition=where[1], offset=where[2]),
        object_id=known.object_id, version=None if known.object_id is None else known.version,
        later=[found for one in later if (found := _later(one, name[1])) is not None],
    )  # fmt: skip


def _may_see(caller: Credential, kid: str) -> bool:
    return kid == caller.kid or caller.role in COMMANDERS


def _heard(taken: Taken, place: Place | None) -> Outcome | None:
    """Return what was heard of an event; of a verdict on another place's, under its id, that it came second."""
    outcome = taken.outcome.result() if taken.outcome.done() and place is not None else None
    if outcome is None or outcome.place in (None, place):
        return outcome
    return Outcome(outcome.event_id, Status.DUPLICATE)


def _place(taken: Taken) -> Place | None:
    if not taken.receipt.done() or taken.receipt.exception() is not None:
        return None
    receipt = taken.receipt.result()
    return receipt.topic, receipt.partition, receipt.offset


def _reasons(codes: tuple[str, ...]) -> list[Reason]:
    return [Reason(code=code, words=WORDS.get(code, "")) for code in codes]


def _later(verdict: Verdict, event_id: str) -> Later | None:
    """Return what a verdict says about an event; None where it is about another one."""
    taken_out = verdict.type == EventType.RECALL and any(gone.event_id == event_id for gone in verdict.withdraws)
    if (verdict.target != event_id and not taken_out) or verdict.action == Action.NOTE:  # reviewers' own
        return None
    return Later(
        action="look_back" if taken_out else verdict.action,
        decision=verdict.decision.value,
        landed=verdict.object_id is not None and verdict.decision is not Decision.REJECT,
        reasons=_reasons(verdict.reasons),
        decided_ms=verdict.decided_ms,
    )
