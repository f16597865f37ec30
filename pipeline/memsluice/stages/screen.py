"""*screen*: one event at a time, in order, all of a tenant's state in one partition.

Re-delivery. An event's rows, its outputs and its place in the input are one transaction (decision 0026): all of them
are there, or none is. On the same intake offset again:

1. position row at or beyond it: it was decided and sent. Nothing is changed or sent.
2. position row before it: nothing of it is there. The event is decided.

What waited in the overflow has a place there, and may have been decided before it was moved (the intake was read again,
and the tenant's quota was lower by then): its own row says so, and it is passed over. The own row of an event that was
not moved, without its position, is none of these: rows were cut or written around the fence, and the partition stops
(StateError).

An intake offset that is skipped stops the partition (GapError): every intake offset has exactly one sealed record.
Where an operator has acknowledged that the skipped ones are lost, the next is decided as if they had passed.
"""

from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from memsluice.clock import Clock, wall_ms
from memsluice.envelope.keys import Keyring, Purpose
from memsluice.envelope.partition_orders import Missing
from memsluice.envelope.seals import Sealed, sealed_from_bytes
from memsluice.envelope.verdict import Verdict
from memsluice.errors import GapError, SealError, StateError
from memsluice.events.headers import passed_on
from memsluice.events.records import Output, Record, RowChange, Rows
from memsluice.gate.checks import duplicates, encoder, screening
from memsluice.gate.commands import activation
from memsluice.gate.decide import Context, Outcome, decide
from memsluice.gate.decision import TenantState
from memsluice.gate.detectors.memsad.state import MemsadState
from memsluice.gate.detectors.rarity.memory import Memory
from memsluice.gate.policy.model import Policy
from memsluice.gate.state import entry_counts
from memsluice.gate.state.kinds import CHAIN, EVENT, LYING, POSITION, ChainRow, EventRow, PositionRow
from memsluice.gate.state.rows import TenantRows, dump, encode_changes, expires_ms
from memsluice.log import get_logger
from memsluice.stages.base import Step
from memsluice.stages.emit import Opened, carried, emit
from memsluice.stages.sweep import Sweeper
from memsluice.topics.names import COMMANDS, EVENTS, OVERFLOW

INPUTS = (EVENTS, COMMANDS, OVERFLOW)
"""The topics whose events are decided in order, each with a position row of its own."""
TENANTS_CACHED_MAX = 512
_LOG = get_logger(__name__)


class ScreenStage:
    """The stage object; see the module."""

    def __init__(
        self,
        keys: Callable[[], Keyring],
        policies: Callable[[str], Policy],
        partitions: int,
        now_ms: Clock = wall_ms,
    ) -> None:
        self._keys = keys
        self._policies = policies
        self._now_ms = now_ms  # chooses the signing key, which a verdict then names; decisions go by the append time
        self._memsad: OrderedDict[tuple[int, str], MemsadState] = OrderedDict()
        self._memory: dict[tuple[int, str], Memory] = {}
        self._sweeper = Sweeper()
        self._acknowledged: dict[tuple[int, str], list[Missing]] = {}

    def acknowledge(self, partition: int, missing: Missing) -> None:
        """Take these intake records for passed when they are found missing."""
        self._acknowledged.setdefault((partition, missing.topic), []).append(missing)

    def forget(self, partition: int) -> None:
        """Drop what was decoded of a partition's rows, and what was acknowledged about it."""
        for topic in INPUTS:
            self._acknowledged.pop((partition, topic), None)
        for key in [key for key in self._memsad if key[0] == partition]:
            del self._memsad[key]
            self._memory.pop(key, None)
        self._sweeper.forget(partition)

    def process(self, record: Record, rows: Rows) -> Step:
        """Decide one sealed record, unless it was decided. Raises SealError, GapError, StateError."""
        keyring = self._keys()
        sealed, now_ms, delivered = self._opened(keyring, record, rows)
        if delivered:
            return Step()
        position = position_change(sealed, now_ms)
        if sealed.type == "marker":
            return Step(changes=[position])
        if self._has_its_row(sealed, rows):
            return self._repeated(sealed, position)
        return self._decided(sealed, rows, keyring, record, position, now_ms)

    def _opened(self, keyring: Keyring, record: Record, rows: Rows) -> tuple[Sealed, int, bool]:
        """Return the sealed event, screen's clock with it (Unix ms), and whether it was decided before."""
        if record.value is None:
            raise StateError("sealed record without a value")
        sealed = sealed_from_bytes(keyring, _tenant(record), record.value)
        if sealed.position.partition != record.partition:
            raise StateError("sealed record lies on another partition than its intake record")
        seen = {topic: self._position(topic, rows) for topic in INPUTS}
        now_ms = max(_append_ms(sealed), *(row.clock_ms for row in seen.values()))
        topic = _input(sealed)
        last = seen[topic]
        return sealed, now_ms, _delivered(sealed, topic, last, self._known_lost(record.partition, topic, last))

    def _known_lost(self, partition: int, topic: str, last: PositionRow) -> Missing | None:
        """Return what is known to be lost of an input behind the last record decided."""
        due = 0 if last.offset is None else last.offset + 1
        return next((one for one in self._acknowledged.get((partition, topic), ()) if one.first == due), None)

    def _position(self, topic: str, rows: Rows) -> PositionRow:
        data = rows.get(POSITION.key("", topic))
        return PositionRow(offset=None, clock_ms=0) if data is None else POSITION.load(data)

    def _repeated(self, sealed: Sealed, position: RowChange) -> Step:
        """Pass over an event that was decided before it was moved. Raises StateError where it was not moved."""
        if sealed.waited is None:
            raise StateError(f"{_input(sealed)}: offset {sealed.position.offset} is undecided, yet has its event's row")
        return Step(changes=[position])

    def _has_its_row(self, sealed: Sealed, rows: Rows) -> bool:
        for first in (True, False):
            data = rows.get(EVENT.key(sealed.tenant, duplicates.event_row_id(sealed, first=first)))
            if data is not None and duplicates.is_of(EVENT.load(data), sealed):
                return True
        return False

    def _decided(
        self, sealed: Sealed, rows: Rows, keyring: Keyring, record: Record, position: RowChange, now_ms: int
    ) -> Step:
        policy = self._policy(sealed, rows)
        seal_kid, admission_kid = self._signers(keyring)
        chain = TenantRows(rows, sealed.tenant, now_ms).get(CHAIN, "") or ChainRow(seq=0, digest="")
        context = Context(now_ms, record.offset, seal_kid, admission_kid, chain.seq + 1, chain.digest)
        memory = self._remembered(record.partition, sealed.tenant, rows, policy)
        state = TenantState(rows, self._load(record.partition, sealed.tenant, rows, policy), memory)
        opened = carried(keyring, sealed)
        outcome = decide(state, sealed, policy, context, opened)
        self._say(outcome)
        outputs = self._sent(keyring, sealed, outcome.verdict, record, opened)
        audited = outputs[0].value if outputs else None
        digest = sha256(audited or b"").hexdigest()
        outcome.changes[(CHAIN.name, "")] = ChainRow(seq=outcome.verdict.chain_seq, digest=digest)
        lying = entry_counts.counted(rows, sealed.tenant, now_ms, outcome.changes)
        changed = encode_changes(sealed.tenant, outcome.changes)
        counted = [(LYING.key(entry_counts.WHOLE_PARTITION, row_id), _dump(value)) for row_id, value in lying]
        event = self._event_change(sealed, rows, now_ms)
        changes = [event, *(RowChange(key, value) for key, value in (*changed, *counted)), position]
        touched = {change.key for change in changes}
        swept = self._sweeper.expired(record.partition, sealed.tenant, rows, now_ms)
        if lying:
            swept += self._sweeper.expired(record.partition, entry_counts.WHOLE_PARTITION, rows, now_ms)
        changes += [change for change in swept if change.key not in touched]
        self._memsad[(record.partition, sealed.tenant)] = outcome.memsad
        if outcome.memory is not None:
            self._memory[(record.partition, sealed.tenant)] = outcome.memory
        return Step(outputs, changes, outcome.verdict)

    def _say(self, outcome: Outcome) -> None:
        """Log what whoever runs the gate should know of a decision."""
        said = outcome.verdict
        for finding in said.findings:
            if finding.code == encoder.CHANGED:
                after = outcome.memsad.encoder
                _LOG.warning("another encoder: the detectors' memory of a tenant begins anew", model=after.model)
            elif finding.code == screening.FAILED:
                kind = finding.detail["error"]
                _LOG.error("screening failed on an event, which was decided without", kind=kind, event_id=said.event_id)

    def _policy(self, sealed: Sealed, rows: Rows) -> Policy:
        return activation.in_force(rows, sealed.tenant, self._policies)

    def _signers(self, keyring: Keyring) -> tuple[str, str]:
        """Return the ids of the keys that will sign: the seal's, the admission's."""
        now_ms = self._now_ms()
        return keyring.signing(Purpose.SEAL, now_ms).kid, keyring.signing(Purpose.ADMISSION, now_ms).kid

    def _sent(self, keyring: Keyring, sealed: Sealed, verdict: Verdict, record: Record, opened: Opened) -> list[Output]:
        return emit(keyring, sealed, verdict, record.partition, passed_on(record.headers), opened)

    def _event_change(self, sealed: Sealed, rows: Rows, now_ms: int) -> RowChange:
        live = rows.get(EVENT.key(sealed.tenant, duplicates.event_row_id(sealed, first=True)))
        known = live is not None and (expires_ms(live) or 0) > now_ms
        place, ends_ms = sealed.position, duplicates.expires_ms(now_ms)
        row = EventRow(topic=place.topic, offset=place.offset, digest=sealed.payload_digest, expires_ms=ends_ms)
        return RowChange(EVENT.key(sealed.tenant, duplicates.event_row_id(sealed, first=not known)), dump(row))

    def _load(self, partition: int, tenant: str, rows: Rows, policy: Policy) -> MemsadState:
        key = (partition, tenant)
        state = self._memsad.get(key)
        if state is None or not state.fits(policy.memsad):
            state = MemsadState.load(rows, tenant, policy.memsad)
            while len(self._memsad) >= TENANTS_CACHED_MAX:
                oldest, _ = self._memsad.popitem(last=False)
                self._memory.pop(oldest, None)
        self._memsad[key] = state
        self._memsad.move_to_end(key)
        return state

    def _remembered(self, partition: int, tenant: str, rows: Rows, policy: Policy) -> Memory | None:
        """Return the default detector's memory; None where the policy asks for MEMSAD, so that what it kept rests."""
        key = (partition, tenant)
        if policy.detector != "default":
            self._memory.pop(key, None)
            return None
        memory = self._memory.get(key)
        if memory is None or not memory.fits(policy.detect.questions, policy.detect.entries):
            memory = Memory.load(rows, tenant, policy.detect.questions, policy.detect.entries)
        self._memory[key] = memory
        return memory


def position_change(sealed: Sealed, now_ms: int) -> RowChange:
    """Return the row that says how far an intake topic was decided, and the clock then: time never runs back."""
    row = PositionRow(offset=sealed.position.offset, clock_ms=now_ms)
    return RowChange(POSITION.key("", _input(sealed)), dump(row))


def _input(sealed: Sealed) -> str:
    """Return the topic that an event was last read from. In the overflow, too, it is known by its intake offset."""
    return sealed.position.topic if sealed.waited is None else OVERFLOW


def _tenant(record: Record) -> str:
    try:
        return (record.key or b"").decode()
    except UnicodeDecodeError:
        raise SealError("a sealed record's key is no UTF-8: *seal* did not write it") from None


def _append_ms(sealed: Sealed) -> int:
    return sealed.position.append_ms if sealed.waited is None else sealed.waited.append_ms


def _delivered(sealed: Sealed, topic: str, seen: PositionRow, acknowledged: Missing | None) -> bool:
    """Whether an intake offset was decided before; the offsets ``acknowledged`` count as decided.

    An intake topic has every offset. Of the overflow each event names the one before it, unless its worker had found
    nothing waiting.

    Raises GapError where one was skipped, StateError where an offset that was decided holds a record younger than
    every decision (the clock, not the last record: a broker's clock may step back): the intake log was cut or made
    anew, and to take its records for repetitions would lose them silently.
    """
    position, last = sealed.position, seen.offset
    if last is None:
        return False
    if acknowledged is not None and acknowledged.first == last + 1 and acknowledged.last < position.offset:
        last = acknowledged.last
    before = position.offset - 1
    if sealed.waited is not None:
        before = last if sealed.waited.after is None else sealed.waited.after
    if position.offset > last and before > last:
        raise GapError(
            f"{topic}: offset {position.offset} after {last}: a record is missing",
            topic=topic,
            first=last + 1,
            last=before,
        )
    if position.offset > last:
        return False
    if position.append_ms > seen.clock_ms:
        raise StateError(f"{topic}: offset {position.offset} was decided and now holds a younger record")
    return True


def _dump(value: Any) -> bytes | None:
    return None if value is None else dump(value)
