"""What *screen* sends for a verdict. A function of stored values alone, so a re-delivery gives the same bytes."""

from dataclasses import replace
from typing import Any

from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import accepted_to_bytes, held_to_bytes
from memsluice.envelope.registry import Role
from memsluice.envelope.seals import Admission, Identity, Sealed, admission_sign, close, sealed_to_bytes
from memsluice.events.models import Tier, Visibility, Write, Zone
from memsluice.events.names import DECISION_HEADER, VERDICT
from memsluice.gate.verdict import Decision
from memsluice.stages.headers import EVENT_ID
from memsluice.stages.records import Headers, Output
from memsluice.topics.names import ACCEPTED, AUDIT, QUARANTINE


def _admission(write: Write, verdict: dict[str, Any]) -> Admission:
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
        kid=verdict["kid"],
        channel=verdict["channel"],
    )


def _sealed_again(keyring: Keyring, sealed: Sealed, verdict: dict[str, Any]) -> bytes:
    """Return the sealed event as it was when it was decided, whatever a second sealing of it said."""
    identity = Identity(verdict["kid"], Role(verdict["role"]), verdict["channel"], Tier(verdict["credential_tier"]))
    return sealed_to_bytes(keyring, verdict["seal_kid"], replace(sealed, identity=identity, model=verdict["model"]))


def emit(keyring: Keyring, sealed: Sealed, verdict: dict[str, Any], partition: int, headers: Headers) -> list[Output]:
    """Return the audit record, and the accepted or the held record where the verdict asks for one."""
    tenant, kid = sealed.tenant, verdict["seal_kid"]
    key = tenant.encode()
    common: Headers = (
        *headers,
        (EVENT_ID, verdict["event_id"].encode()),
        (DECISION_HEADER, verdict["decision"].encode()),
    )
    outputs = [Output(AUDIT, partition, key, close(keyring, kid, tenant, VERDICT, verdict), common)]
    if verdict["object_id"] is not None and isinstance(sealed.payload, Write) and sealed.vector_text is not None:
        envelope = admission_sign(keyring, kid, verdict["admission_kid"], _admission(sealed.payload, verdict))
        value = accepted_to_bytes(envelope, sealed.payload.content, sealed.vector_text)
        outputs.append(Output(ACCEPTED, partition, key, value, common))
    elif verdict["decision"] == Decision.QUARANTINE:
        held = held_to_bytes(keyring, kid, tenant, sealed=_sealed_again(keyring, sealed, verdict), verdict=verdict)
        outputs.append(Output(QUARANTINE, partition, key, held, common))
    return outputs
