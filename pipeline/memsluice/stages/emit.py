"""What *screen* sends for a verdict: a function of its arguments alone."""

from collections.abc import Callable
from dataclasses import replace

from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import (
    Accepted,
    StoreRecord,
    accepted_from_bytes,
    accepted_to_bytes,
    held_to_bytes,
    verdict_to_bytes,
    withdrawal_to_bytes,
)
from memsluice.envelope.registry import Role
from memsluice.envelope.seals import (
    RELEASED,
    Admission,
    Identity,
    Sealed,
    admission_sign,
    sealed_from_bytes,
    sealed_to_bytes,
)
from memsluice.envelope.verdict import Decision, Verdict, Withdrawal
from memsluice.errors import SealError, StateError
from memsluice.events.headers import EVENT_ID
from memsluice.events.models import Command, Recall, Tier, Write, Zone
from memsluice.events.names import DECISION_HEADER, TARGET_HEADER, WITHDRAWS
from memsluice.events.records import Headers, Output
from memsluice.gate.commands.let_in import let_in
from memsluice.topics.names import ACCEPTED, AUDIT, QUARANTINE

Opened = Sealed | Accepted | None
"""What a command or a recall carries, once it was opened."""


def carried(keyring: Keyring, sealed: Sealed) -> Sealed | Accepted | None:
    """Return what a command carries, a held write or a landed entry, or a recall, an entry; None where the gate sealed
    no such thing."""
    payload, text = sealed.payload, None
    readers: tuple[Callable[[Keyring, str, bytes], Sealed | Accepted], ...] = (accepted_from_bytes,)
    if isinstance(payload, Command):
        text, readers = payload.held, (sealed_from_bytes, accepted_from_bytes)
    elif isinstance(payload, Recall):
        text = payload.renews
    if text is None:
        return None
    for read in readers:
        try:
            return read(keyring, sealed.tenant, text.encode())
        except SealError:
            continue
    return None


def _admission(entry: Sealed, verdict: Verdict) -> Admission:
    """Return what is admitted of a write, in its own words; :func:`_placed` says the rest."""
    write, identity = entry.payload, entry.identity
    assert isinstance(write, Write)
    assert identity is not None
    return Admission(
        object_id="",
        version=0,
        event_id=write.id,
        tenant=write.tenant,
        agent=write.agent,
        principal=write.principal,
        session=write.session,
        namespace=write.namespace,
        visibility=write.visibility,
        key=write.key,
        zone=Zone.EXTERNAL,
        tier=Tier.EXTERNAL_WEB,
        taint=True,
        parents=write.parents,
        content_digest=verdict.content_digest,
        vector_digest=verdict.vector_digest,
        model=verdict.model,
        written_ms=verdict.decided_ms,
        expires_ms=0,
        decision="",
        policy="",
        kid=identity.kid,
        channel=identity.channel,
    )


def _placed(admission: Admission, verdict: Verdict) -> Admission:
    """Return an admission as a verdict places it."""
    assert verdict.object_id is not None
    assert verdict.visibility is not None
    assert verdict.zone is not None
    released = admission.decision == RELEASED or let_in(verdict.findings)
    before = admission.decision if verdict.decision is Decision.RECORD else verdict.decision  # renewed by a recall
    return replace(
        admission,
        object_id=verdict.object_id,
        version=verdict.sealed_offset,
        visibility=verdict.visibility,
        zone=verdict.zone,
        tier=verdict.tier,
        taint=verdict.taint,
        expires_ms=verdict.expires_ms,
        decision=RELEASED if released else before,
        policy=verdict.policy,
    )


def _sealed_again(keyring: Keyring, sealed: Sealed, verdict: Verdict) -> bytes:
    """Return the sealed event as it was when it was decided, whatever a second sealing of it said."""
    identity = Identity(verdict.kid, Role(verdict.role), verdict.channel, verdict.credential_tier)
    return sealed_to_bytes(keyring, verdict.seal_kid, replace(sealed, identity=identity, model=verdict.model))


def _accepted(
    keyring: Keyring, sealed: Sealed, verdict: Verdict, partition: int, common: Headers, opened: Opened
) -> Output:
    """Return the record of what lands: the event itself, or what a command or a recall carries."""
    entry: Opened = sealed if isinstance(sealed.payload, Write) else opened or carried(keyring, sealed)
    if isinstance(entry, Accepted):
        admission, content, vector_text = entry.admission, entry.content, entry.vector_text
    elif entry is not None and isinstance(entry.payload, Write) and entry.vector_text is not None:
        admission, content, vector_text = _admission(entry, verdict), entry.payload.content, entry.vector_text
    else:  # it was there when it was decided
        raise StateError("the event that lets an entry land carries none")
    if entry is sealed:  # a second sealing may name another credential's state; the verdict has the one that counted
        admission = replace(admission, kid=verdict.kid, channel=verdict.channel)
    admission = _placed(admission, verdict)
    envelope = admission_sign(keyring, verdict.seal_kid, verdict.admission_kid, admission)
    headers = (*common, (EVENT_ID, admission.event_id.encode()), (DECISION_HEADER, verdict.decision.encode()))
    value = accepted_to_bytes(envelope, content, vector_text)
    return Output(ACCEPTED, partition, admission.tenant.encode(), value, headers)


def _withdrawn(keyring: Keyring, verdict: Verdict, gone: Withdrawal, partition: int, common: Headers) -> Output:
    """Return the record of an object that a command, or look back, takes out of the store."""
    tenant = verdict.tenant
    stored = StoreRecord(
        object_id=gone.object_id,
        tenant=tenant,
        version=verdict.sealed_offset,
        zone=gone.zone,
        event_id=gone.event_id,
        content_digest=gone.content_digest,
        expires_ms=None,
        withdrawn=True,
    )
    headers = (*common, (EVENT_ID, stored.event_id.encode()), (DECISION_HEADER, WITHDRAWS))
    return Output(ACCEPTED, partition, tenant.encode(), withdrawal_to_bytes(keyring, verdict.seal_kid, stored), headers)


def emit(
    keyring: Keyring,
    sealed: Sealed,
    verdict: Verdict,
    partition: int,
    headers: Headers,
    opened: Opened = None,
) -> list[Output]:
    """Return the audit record, and those of what is withdrawn, lands, or is kept, where the verdict asks for them.

    What is withdrawn goes first: between the two, an entry is nowhere rather than in the wrong place.

    ``opened`` is what :func:`carried` returned for it, where it was asked already.

    Raises StateError where a release no longer carries what it released.
    """
    tenant, kid = sealed.tenant, verdict.seal_kid
    key = tenant.encode()
    common: Headers = (
        *headers,
        (EVENT_ID, verdict.event_id.encode()),
        (DECISION_HEADER, verdict.decision.encode()),
    )
    about = dict.fromkeys([verdict.target, *(gone.event_id for gone in verdict.withdraws)])
    told = tuple((TARGET_HEADER, name.encode()) for name in about if name)
    outputs = [Output(AUDIT, partition, key, verdict_to_bytes(keyring, tenant, verdict), (*common, *told))]
    outputs += [_withdrawn(keyring, verdict, gone, partition, headers) for gone in verdict.withdraws]
    if verdict.object_id is not None:
        outputs.append(_accepted(keyring, sealed, verdict, partition, headers, opened))
    elif isinstance(sealed.payload, Write) and _is_kept(verdict):  # a replayed one lies there
        held = held_to_bytes(keyring, kid, tenant, sealed=_sealed_again(keyring, sealed, verdict), verdict=verdict)
        outputs.append(Output(QUARANTINE, partition, key, held, common))
    return outputs


def _is_kept(verdict: Verdict) -> bool:
    """Whether a write that does not land is kept for people: held, or refused within its principal's share."""
    refused = verdict.decision is Decision.REJECT and verdict.held_until_ms is not None
    return refused or verdict.decision is Decision.QUARANTINE
