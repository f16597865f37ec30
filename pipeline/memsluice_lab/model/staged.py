"""The *screen* stage itself under the model's actions: sealed bytes in, rows and sealed bytes out.

It checks seals, changes rows in order and sends outputs; it can die before an event's transaction is committed, and be
given a record again.
"""

from memsluice.envelope.records import Accepted, landing_from_bytes, verdict_from_bytes
from memsluice.envelope.seals import RELEASED, Admission, Sealed, sealed_to_bytes
from memsluice.envelope.verdict import Verdict
from memsluice.errors import StateError
from memsluice.events.records import Record
from memsluice.gate.commands.let_in import let_in
from memsluice.gate.commands.ruling import Carried
from memsluice.gate.policy.model import Policy
from memsluice.stages.screen import ScreenStage
from memsluice.topics import names
from memsluice_lab.model.production import KEYRING, PARTITION, SEAL_KID, TENANT, VECTOR, Decided, Shelved


class Staged(Decided):
    """The same as :class:`Decided`, through the stage, with real crashes and re-deliveries."""

    def __init__(self, in_force: Policy) -> None:
        super().__init__(in_force)
        self._stage = self._started()
        self._done: list[Record] = []
        self._last: Accepted | None = None
        self._texts: dict[int, str] = {}

    def _started(self) -> ScreenStage:
        return ScreenStage(lambda: KEYRING, lambda _tenant: self.policy, names.PARTITIONS, now_ms=lambda: 1)

    def _vector(self) -> str | None:
        return VECTOR

    def _decided(self, sealed: Sealed, carried: Carried, dies: bool) -> Verdict:
        value = sealed_to_bytes(KEYRING, SEAL_KID, sealed)
        place, at = sealed.position.offset, sealed.position.append_ms
        record = Record(names.SEALED, PARTITION, place, TENANT.encode(), value, (), at)
        step = self._stage.process(record, self.rows)
        changes = [(change.key, change.value) for change in step.changes]
        if dies:
            self._stage = self._started()
            again = self._stage.process(record, self.rows)
            if list(again.outputs) != list(step.outputs):
                raise StateError("what is sent after a crash differs from what was decided before it")
            changes = [(change.key, change.value) for change in again.changes]
        self.rows.change(changes)
        self._done.append(record)
        verdict = verdict_from_bytes(KEYRING, TENANT, step.outputs[0].value or b"")
        self._last = None
        for output in step.outputs[1:]:
            landing = (
                landing_from_bytes(KEYRING, TENANT, output.value or b"") if output.topic == names.ACCEPTED else None
            )
            if isinstance(landing, Accepted):
                _check(landing.admission, verdict)
                self._last = landing
                self._texts[id(landing)] = (output.value or b"").decode()
        return verdict

    def _accepted(self, name: str, item: Shelved) -> Accepted:
        """Return the record itself."""
        if self._last is None:
            raise StateError("what landed has no accepted record")
        return self._last

    def _record(self, carried: Sealed | Accepted) -> str:
        """Return the very bytes: a held write's as *seal* signed it, an entry's as *screen* did."""
        if isinstance(carried, Accepted):
            return self._texts[id(carried)]
        return sealed_to_bytes(KEYRING, SEAL_KID, carried).decode()

    def redeliver(self, back: int) -> str:
        """As :meth:`Decided.redeliver`: what was decided was sent, so nothing is sent, and no row changes."""
        if back > len(self._done):
            return ""
        record = self._done[-back]
        step = self._stage.process(record, self.rows)
        if step.changes or step.outputs:
            sent = f"changes {len(step.changes)} rows, sends {len(step.outputs)} records"
            return f"a re-delivery of offset {record.offset} {sent}"
        return ""


def _check(admission: Admission, verdict: Verdict) -> None:
    """Raise StateError where what is landed says something else than the verdict."""
    place = ("object_id", "zone", "visibility", "expires_ms", "tier", "taint", "tenant")
    # What a person let in keeps that mark when a later command moves it.
    decisions = {RELEASED} if let_in(verdict.findings) else {RELEASED, str(verdict.decision)}
    if (
        any(getattr(admission, name) != getattr(verdict, name) for name in place)
        or admission.decision not in decisions
        or admission.version != verdict.sealed_offset
    ):
        raise StateError("the admission is not what the verdict says")
