"""What the commands about a landed entry share: finding it, what they carry, and moving its object.

The state keeps no content, so whatever lets content land anew carries the entry's record of memory.accepted.v1, sealed
by the gate. It counts only if it is the very version that the lineage row names, with the content that was signed for.
An older version never takes the place of a newer one, and nothing takes a protected key's (Rule 3).
"""

from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from memsluice.envelope.records import Accepted
from memsluice.envelope.seals import Admission
from memsluice.envelope.verdict import Decision, Finding, Withdrawal
from memsluice.events.ids import object_id, scope_owner
from memsluice.events.models import Visibility, Zone
from memsluice.gate.checks import monitor
from memsluice.gate.commands.ruling import At, Carried, Ruling
from memsluice.gate.state import placement
from memsluice.gate.state.kinds import ENTRY, HOLDER, EntryRow
from memsluice.gate.state.lineage import Label
from memsluice.gate.state.placement import Place
from memsluice.gate.state.rows import TenantRows

Told = dict[str, Any] | None


class About(Protocol):
    """What names a landed entry, and its content by digest: a command, or a recall that renews it."""

    @property
    def target(self) -> str:
        """The entry's event id."""
        ...

    @property
    def digest(self) -> str | None:
        """The digest of the content that is meant."""
        ...


class Named(NamedTuple):
    """An entry by event id and content digest."""

    target: str
    digest: str | None


def find(rows: TenantRows, command: About) -> EntryRow | Finding:
    """Return the lineage row of the landed entry that is meant, or a Finding: why there is none for it."""
    row = rows.get(ENTRY, command.target)
    if row is None:
        return Finding("landed.unknown", Decision.REJECT)
    if not row.landed:
        return Finding("landed.not_landed", Decision.REJECT, {"was": row.decision})
    return unbound(command, row) or row


def unbound(command: About, row: EntryRow) -> Finding | None:
    """Return a finding where a command is bound to another content than the entry's, or to none."""
    return None if command.digest and command.digest == row.content else Finding("landed.other_digest", Decision.REJECT)


def current(rows: TenantRows, command: About, row: EntryRow, carried: Carried) -> Accepted | Finding:
    """Return what the command carries, if that is the entry as it lies there now, or why it is not."""
    return replaced(rows, command, row) or same(command, row, carried)


def same(command: About, row: EntryRow, carried: Carried) -> Accepted | Finding:
    """Return what the command carries, if that is the version that the row names, or why it is not."""
    if not isinstance(carried, Accepted):
        return Finding("landed.other_record", Decision.REJECT, {"carried": carried is not None})
    admission = carried.admission
    named = (admission.event_id, admission.object_id, admission.version, admission.zone, admission.content_digest)
    if named != (command.target, row.object_id, row.version, row.zone, command.digest):
        return Finding("landed.other_record", Decision.REJECT, {"carried": True})
    return carried


def replaced(rows: TenantRows, command: About, row: EntryRow) -> Finding | None:
    """Return a finding where a later write took the object of this entry's key: then there is nothing to move."""
    if not placement.overtaken(rows, command.target, row):
        return None
    held = placement.holder(rows, row.object_id)
    return Finding("landed.replaced", Decision.REJECT, {"by": held.event if held is not None else ""})


def destination(admission: Admission, zone: Zone, visibility: Visibility, expires_ms: int | None) -> Place:
    """Return the place of an entry in another zone or scope; an object's id is that of what is written there."""
    target = object_id(
        tenant=admission.tenant,
        zone=zone,
        visibility=visibility,
        owner=scope_owner(visibility, admission.principal, admission.session),
        namespace=admission.namespace,
        key=admission.key,
        event_id=admission.event_id,
    )
    return Place(target, zone, visibility, expires_ms)


def immutable(rows: TenantRows, admission: Admission, *scopes: Visibility) -> Finding | None:
    """Return what Rule 3 says of changing the entry's key in one of these scopes."""
    for scope in scopes:
        owner = scope_owner(scope, admission.principal, admission.session)
        found = monitor.check_key(rows, scope, owner, admission.namespace, admission.key)
        if found is not None:
            return found
    return None


def move(
    rows: TenantRows, command: About, row: EntryRow, becomes: EntryRow, entry: Accepted, where: Place, at: At,
    code: str, *, taint: bool | None = None,
) -> Ruling:  # fmt: skip
    """Put the entry at a place and take it from where it was: its lineage row ``becomes`` another, with that place.

    The ruling's finding ``code`` says what it was before and after. ``taint`` is said where the command decides it,
    instead of what the entry was admitted with.
    """
    was = {"object": row.object_id, "zone": row.zone, "visibility": entry.admission.visibility}
    became = {"object": where.object_id, "zone": where.zone, "visibility": where.visibility}
    after = replace(
        becomes,
        expires_ms=where.expires_ms,
        version=at.version,
        was=(row.object_id, row.version),
        object_id=where.object_id,
        zone=where.zone,
    )
    rows.put(ENTRY, command.target, after)
    moved = where.object_id != row.object_id
    if moved and row.object_id is not None:
        rows.delete(HOLDER, row.object_id)
    if entry.admission.key is not None:
        placement.hold_object(rows, where, command.target, row.offset)
    return Ruling(
        (told(code, row, after, was, became),),
        Decision.CONTAIN if where.zone is Zone.EXTERNAL else Decision.ACCEPT,
        where,
        about=entry.admission,
        tau=Label(entry.admission.taint if taint is None else taint, after.causes, after.tier),
        withdraws=(withdrawal(command, row),) if moved else (),
    )


def told(code: str, row: EntryRow, after: EntryRow, was: Told = None, became: Told = None) -> Finding:
    """Return the finding that says what a command changed: tier, taint, expiry, and where it lies."""
    before, now = (
        {"tier": one.tier, "taint": one.taint, "landed": one.landed, "x": one.expires_ms} for one in (row, after)
    )
    return Finding(code, Decision.ACCEPT, {"before": {**before, **(was or {})}, "after": {**now, **(became or {})}})


def withdrawal(command: About, row: EntryRow) -> Withdrawal:
    """Return what takes the entry's object out of the store."""
    assert row.object_id is not None
    assert row.zone is not None
    return Withdrawal(row.object_id, row.zone, command.target, row.content)
