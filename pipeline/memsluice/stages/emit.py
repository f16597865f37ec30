"""What *screen* sends for a verdict. A function of stored values alone, so a re-delivery gives the same bytes."""

from dataclasses import replace
from typing import Any

from memsluice.envelope.codec import content_digest
from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import accepted_to_bytes, held_to_bytes
from memsluice.envelope.registry import Role
from memsluice.envelope.seals import (
    Admission,
    Identity,
    Sealed,
    admission_sign,
    close,
    sealed_from_bytes,
    sealed_to_bytes,
)
from memsluice.errors import SealError, StateError
from memsluice.events.ids import object_id, scope_owner
from memsluice.events.models import Command, Tier, Visibility, Write, Zone
from memsluice.events.names import DECISION_HEADER, TARGET_HEADER, VERDICT
from memsluice.gate.verdict import Decision
from memsluice.stages.headers import EVENT_ID
from memsluice.stages.records import Headers, Output
from memsluice.topics.names import ACCEPTED, AUDIT, QUARANTINE


def carried(keyring: Keyring, sealed: Sealed) -> Sealed | None:
    """Return the sealed write that a command carries; None where it carries none that the gate sealed."""
    command = sealed.payload
    if not isinstance(command, Command) or command.held is None:
        return None
    try:
        return sealed_from_bytes(keyring, command.tenant, command.held.encode())
    except SealError:
        return None


def _admission(entry: Sealed, kid: str, channel: str, verdict: dict[str, Any]) -> Admission:
    write = entry.payload
    assert isinstance(write, Write)
    return Admission(
        object_id=verdict["object_id"],
        version=verdict["sealed_offset"],
        event_id=write.id,
        tenant=write.tenant,
        agent=write.agent,
        principal=write.principal,
        session=write.session,
        namespace=write.namespace,
        visibility=Visibility(verdict["visibility"]),
        key=write.key,
        zone=Zone(verdict["zone"]),
        tier=Tier(verdict["tier"]),
        taint=verdict["taint"],
        parents=write.parents,
        content_digest=verdict["content_digest"],
        vector_digest=verdict["vector_digest"],
        model=verdict["model"],
        written_ms=verdict["decided_ms"],
        expires_ms=verdict["expires_ms"],
        decision=verdict["decision"],
        policy=verdict["policy"],
        kid=kid,
        channel=channel,
    )


def _sealed_again(keyring: Keyring, sealed: Sealed, verdict: dict[str, Any]) -> bytes:
    """Return the sealed event as it was when it was decided, whatever a second sealing of it said."""
    identity = Identity(verdict["kid"], Role(verdict["role"]), verdict["channel"], Tier(verdict["credential_tier"]))
    return sealed_to_bytes(keyring, verdict["seal_kid"], replace(sealed, identity=identity, model=verdict["model"]))


def _accepted(
    keyring: Keyring, sealed: Sealed, verdict: dict[str, Any], partition: int, common: Headers, opened: Sealed | None
) -> Output:
    """Return the record of what lands: the event itself, or the write that a release carries."""
    entry, kid, channel = sealed, verdict["kid"], verdict["channel"]
    if not isinstance(sealed.payload, Write):
        released = opened or carried(keyring, sealed)
        if released is None or released.identity is None:  # it was there when it was decided
            raise StateError("the release of a held write carries none")
        entry, kid, channel = released, released.identity.kid, released.identity.channel
    assert isinstance(entry.payload, Write)
    assert entry.vector_text is not None
    envelope = admission_sign(
        keyring, verdict["seal_kid"], verdict["admission_kid"], _admission(entry, kid, channel, verdict)
    )
    value = accepted_to_bytes(envelope, entry.payload.content, entry.vector_text)
    headers = (*common, (EVENT_ID, entry.payload.id.encode()), (DECISION_HEADER, verdict["decision"].encode()))
    return Output(ACCEPTED, partition, entry.tenant.encode(), value, headers)


def emit(
    keyring: Keyring,
    sealed: Sealed,
    verdict: dict[str, Any],
    partition: int,
    headers: Headers,
    opened: Sealed | None = None,
) -> list[Output]:
    """Return the audit record, and the accepted or the held record where the verdict asks for one.

    ``opened`` is what :func:`carried` returned for it, where it was asked already.

    Raises StateError where a release no longer carries what it released.
    """
    tenant, kid = sealed.tenant, verdict["seal_kid"]
    key = tenant.encode()
    common: Headers = (
        *headers,
        (EVENT_ID, verdict["event_id"].encode()),
        (DECISION_HEADER, verdict["decision"].encode()),
    )
    told = ((TARGET_HEADER, verdict["target"].encode()),) if verdict.get("target") else ()
    outputs = [Output(AUDIT, partition, key, close(keyring, kid, tenant, VERDICT, verdict), (*common, *told))]
    if verdict["object_id"] is not None:
        outputs.append(_accepted(keyring, sealed, verdict, partition, headers, opened))
    elif verdict["decision"] == Decision.QUARANTINE and isinstance(sealed.payload, Write):  # a replayed one lies there
        held = held_to_bytes(keyring, kid, tenant, sealed=_sealed_again(keyring, sealed, verdict), verdict=verdict)
        outputs.append(Output(QUARANTINE, partition, key, held, common))
    outputs += [_withdrawal(keyring, sealed, verdict, partition, headers, one) for one in verdict.get("withdraws", ())]
    return outputs


def _withdrawal(
    keyring: Keyring, sealed: Sealed, verdict: dict[str, Any], partition: int, headers: Headers, one: dict[str, Any]
) -> Output:
    """Return the accepted record that removes an entry: empty, expired when it was decided, of a higher version.

    Its vector is the recall's own: an accepted record has one, and this one is never stored.
    """
    assert sealed.vector_text is not None
    visibility = Visibility(one["visibility"])
    target = object_id(
        tenant=sealed.tenant,
        zone=Zone.GUIDANCE,
        visibility=visibility,
        owner=scope_owner(visibility, one["principal"], one["session"]),
        namespace=one["namespace"],
        key=one["key"],
        event_id=one["event"],
    )
    admission = Admission(
        object_id=str(target),
        version=verdict["sealed_offset"],
        event_id=one["event"],
        tenant=sealed.tenant,
        agent=one["agent"],
        principal=one["principal"],
        session=one["session"],
        namespace=one["namespace"],
        visibility=visibility,
        key=one["key"],
        zone=Zone.GUIDANCE,
        tier=Tier(one["tier"]),
        taint=True,
        parents=(),
        content_digest=content_digest(keyring, sealed.tenant, ""),
        vector_digest=verdict["vector_digest"],
        model=verdict["model"],
        written_ms=verdict["decided_ms"],
        expires_ms=verdict["decided_ms"],
        decision=Decision.QUARANTINE.value,
        policy=verdict["policy"],
        kid=one["kid"],
        channel=one["channel"],
    )
    envelope = admission_sign(keyring, verdict["seal_kid"], verdict["admission_kid"], admission)
    marks = ((EVENT_ID, one["event"].encode()), (DECISION_HEADER, Decision.QUARANTINE.value.encode()))
    value = accepted_to_bytes(envelope, "", sealed.vector_text)
    return Output(ACCEPTED, partition, sealed.tenant.encode(), value, (*headers, *marks))
