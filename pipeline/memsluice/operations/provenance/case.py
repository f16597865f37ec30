"""One entry that a command is about: where it is, what it says, what the command would change. Read, never guessed."""

from dataclasses import dataclass, replace

from memsluice.envelope.records import Accepted, landing_from_bytes
from memsluice.envelope.seals import Admission, sealed_from_bytes
from memsluice.envelope.verdict import Verdict
from memsluice.errors import ConfigError, NotFound, SealError
from memsluice.escaping import visible
from memsluice.events.models import Action, Command, Tier, Visibility, Write, Zone
from memsluice.gate.commands.landed import destination
from memsluice.operations.commands.desk import CommandDesk
from memsluice.operations.held.collect import look
from memsluice.operations.held.filters import HeldFilter
from memsluice.operations.provenance.carrying import accepted_records
from memsluice.operations.trace import collect
from memsluice.operations.trace.life import EntryStanding, Life, RecordRole
from memsluice.topics.names import ACCEPTED, PARTITIONS, QUARANTINE

PUTS = (Action.PROMOTE, Action.DECLASSIFY, Action.RELEASE)
"""Commands that put an entry where another may lie."""
LANDED = (EntryStanding.GUIDANCE, EntryStanding.EXTERNAL)
ID_CHARS = 160


@dataclass(frozen=True, slots=True)
class Case:
    """``carried`` is what a command about it carries: what lies there, or the held write, whose label alone can change.

    ``standing`` is WITHDRAWN where look back took it out: then it can be let in again. ``admission`` is that of what
    lies, or lay, there; None where it is held.
    """

    life: Life
    standing: EntryStanding
    content: str
    digest: str
    key: str | None
    carried: str
    admission: Admission | None = None

    @property
    def place(self) -> Verdict:
        """The verdict that says where the entry is, or lay before look back."""
        return self.life.lay.verdict if self.standing is EntryStanding.WITHDRAWN else self.life.placing.verdict

    def before(self) -> dict[str, str]:
        """Return what a command might change, in words."""
        place = self.place
        return {
            "where": self.standing.value,
            "seen by": "nobody" if self.standing is EntryStanding.WITHDRAWN else str(place.visibility or "nobody"),
            "tier": str(place.tier),
            "tainted": "yes" if place.taint or not place.tier.trusted else "no",
            "ends": "never" if place.expires_ms is None else f"{place.expires_ms}",
        }

    def after(self, action: Action) -> dict[str, str]:
        """Return the same once the command is carried out."""
        tier = int(self.place.tier)
        changes: dict[Action, dict[str, str]] = {
            Action.PROMOTE: {"seen by": "shared"},
            Action.DECLASSIFY: {"tier": str(int(Tier.USER_OBSERVED)), "tainted": "no"}
            | ({} if self.standing is EntryStanding.HELD else {"where": "guidance", "ends": "as observed words do"}),
            Action.RENEW: {"ends": "its tier's whole time from now"},
            Action.REVOKE: {
                "where": "external", "tier": str(max(tier, 4)), "tainted": "yes", "ends": "as outside content does",
            },
            Action.WITHDRAW: {"where": "nowhere", "seen by": "nobody", "tainted": "yes"},
            Action.RELEASE: {"where": str(self.place.zone), "seen by": str(self.place.visibility)},
        }  # fmt: skip
        return {**self.before(), **changes.get(action, {})}

    def target(self, action: Action) -> str | None:
        """Return the object that a command would put a keyed entry into; None where it puts it into none."""
        admission = self.admission
        if admission is None or admission.key is None or action not in PUTS:
            return None
        scope = Visibility.SHARED if action is Action.PROMOTE else admission.visibility
        zone = admission.zone if action is Action.RELEASE else Zone.GUIDANCE
        return destination(admission, zone, scope, None).object_id


def find(desk: CommandDesk, event_id: str, tenant: str | None, *, withdrawn: bool = False) -> Case:
    """Return the one entry of an id, landed or held; or ``withdrawn``, by look back.

    Raises ConfigError: why there is none.
    """
    keyring = desk.keys.keyring()
    found = collect.trace(desk.audit, keyring, event_id, tenant, PARTITIONS)
    shown = visible(event_id, ID_CHARS)
    if len(found.lives) > 1:
        raise NotFound(f"{len(found.lives)} tenants have an entry {shown}: choose one with --tenant")
    if not found.lives:
        raise NotFound(f"the audit of {desk.name} has no entry {shown}")
    (life,) = found.lives
    return _withdrawn(desk, life) if withdrawn else _case(desk, life)


def of_command(desk: CommandDesk, command: Command) -> Case:
    """Return the entry that a proposed command is about, with the content that it carries. Raises ConfigError."""
    case = find(desk, command.target, command.tenant)
    if command.held is None:
        if command.digest != case.digest:  # of two writes of one id: the content that is shown is the one that counts
            raise ConfigError("The proposed command is bound to other content than the entry has now: propose it again")
        return case
    if case.standing is EntryStanding.HELD:
        return _of_held(desk, command, case)
    try:
        landing = landing_from_bytes(desk.keys.keyring(), command.tenant, command.held.encode())
    except SealError as error:
        raise ConfigError(f"The entry that the command carries was not sealed by this gate: {error}") from None
    if not isinstance(landing, Accepted) or landing.admission.event_id != command.target:
        raise ConfigError("The command carries another entry than the one it names, so it must not be signed")
    admission = landing.admission
    if admission.version != case.place.sealed_offset or admission.content_digest != command.digest:
        raise ConfigError("The entry changed since the command was proposed: review it, and propose the command again")
    return Case(
        case.life, case.standing, landing.content, admission.content_digest, admission.key, command.held, admission
    )


def _of_held(desk: CommandDesk, command: Command, case: Case) -> Case:
    """Return the held write with the content that a command about it carries. Raises ConfigError."""
    carried = command.held or ""
    try:
        sealed = sealed_from_bytes(desk.keys.keyring(), command.tenant, carried.encode())
    except SealError as error:
        raise ConfigError(f"The write that the command carries was not sealed by this gate: {error}") from None
    write = sealed.payload
    if not isinstance(write, Write) or (write.id, sealed.content_digest) != (command.target, command.digest):
        raise ConfigError("The command carries another write than the one it names, so it must not be signed")
    return replace(case, content=write.content, digest=sealed.content_digest, key=write.key, carried=carried)


def _case(desk: CommandDesk, life: Life) -> Case:
    from memsluice.clock import wall_ms

    standing = life.standing(wall_ms())
    if standing in LANDED:
        return _landed(desk, life, standing)
    if standing is EntryStanding.HELD:
        return _held(desk, life)
    raise ConfigError(
        f"entry {visible(life.event_id, ID_CHARS)} is {standing.value}, not in memory: no command can apply"
    )


def _withdrawn(desk: CommandDesk, life: Life) -> Case:
    if life.placing.kind is not RecordRole.LOOK_BACK:
        raise NotFound(f"look back did not withdraw entry {visible(life.event_id, ID_CHARS)}")
    return _landed(desk, life, EntryStanding.WITHDRAWN)


def _landed(desk: CommandDesk, life: Life, standing: EntryStanding) -> Case:
    place = life.lay.verdict
    wanted = {life.event_id: place.sealed_offset}
    found = accepted_records(
        desk.topic(ACCEPTED), desk.keys.keyring(), life.tenant, wanted, place.decided_ms, PARTITIONS
    )
    if not found:
        raise ConfigError(
            f"the {ACCEPTED} record of {visible(life.event_id, ID_CHARS)} is past retention: it can only be removed"
        )
    text, accepted = found[life.event_id]
    admission = accepted.admission
    return Case(life, standing, accepted.content, admission.content_digest, admission.key, text, admission)


def _held(desk: CommandDesk, life: Life) -> Case:
    from memsluice.clock import wall_ms

    listing = look(
        desk.topic(QUARANTINE), desk.audit, desk.keys.keyring(), HeldFilter(tenant=life.tenant, event_id=life.event_id),
        partitions=PARTITIONS, now_ms=wall_ms(), age_days=lambda tenant: 365, whole=True,
    )  # fmt: skip
    digest = life.governing.verdict.content_digest
    for seen in listing.seen:
        if seen.entry.digest == digest and seen.entry.write is not None:
            write = seen.entry.write
            return Case(life, EntryStanding.HELD, write.content, digest, write.key, seen.entry.sealed)
    raise ConfigError(f"the record of {visible(life.event_id, ID_CHARS)} in {QUARANTINE} is past retention")
