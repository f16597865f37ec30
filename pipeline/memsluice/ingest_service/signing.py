"""Signs for a caller who has a token and no key: with the very credential that the token is by, where it is held here.

A credential is delegated to the service by its file in the service's home, which whoever runs the gate puts there or
takes away. So what an unsigned request may say is what that credential may say; nothing in its body raises it.
"""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256

from memsluice.client.build import Message, build, event_type_of, make
from memsluice.client.credentials import check
from memsluice.envelope.registry import ANY, Credential
from memsluice.errors import ConfigError, MalformedEvent, RequestRefused
from memsluice.events.models import Observation, Write
from memsluice.ingest_service.wire import ObservationRequest, WriteRequest
from memsluice.keystore.files import SigningCredential

KEY_CHARS_MAX = 255
Held = Callable[[str], SigningCredential]
"""Reads the credential of a key id from the service's home, each time: what is taken away signs nothing more."""


def signed(
    asked: WriteRequest | ObservationRequest, key: str | None, caller: Credential, held: Held, now_ms: int
) -> Message:
    """Return the signed message of a request; ``key`` is its Idempotency-Key.

    Raises RequestRefused where the credential is not held here, MalformedEvent, LimitExceeded, NotPermitted,
    CrossTenant.
    """
    fields = asked.model_dump(exclude={"id", "tenant", "time"})
    fields["id"] = event_id(asked.id, key, caller.kid)
    fields["tenant"] = asked.tenant or only_tenant(caller)
    fields["time"] = asked.time or datetime.fromtimestamp(now_ms / 1_000, UTC)
    payload = make(Write, **fields) if isinstance(asked, WriteRequest) else make(Observation, **fields)
    caller.check(event_type_of(payload), payload, now_ms)
    try:
        credential = held(caller.kid)
    except ConfigError:
        raise RequestRefused(
            403, "not_delegated",
            f"the service holds no signing key of {caller.kid}: sign the event and post it to /v1/events, or have the "
            "credential's file put into the service's home", field="authorization",
        ) from None  # fmt: skip
    check(credential, event_type_of(payload), payload, now_ms)
    return build(payload, [credential.signer()], source=f"urn:memsluice:{caller.role.value}:{caller.kid}")


def only_tenant(caller: Credential) -> str:
    """Return the tenant of a credential that has one. Raises MalformedEvent: it has to be named."""
    if len(caller.tenants) != 1 or caller.tenants[0] == ANY:
        raise MalformedEvent("is missing: the credential is of several tenants", field="tenant")
    return caller.tenants[0]


def event_id(stated: str | None, key: str | None, kid: str) -> str:
    """Return the id of a request's event: of the same credential and Idempotency-Key always the same."""
    if key is None:
        return stated or uuid.uuid4().hex
    if stated is not None:
        raise MalformedEvent("goes with no id in the body: the event's id is made of the key", field="idempotency-key")
    if not 1 <= len(key) <= KEY_CHARS_MAX or not key.isascii() or not key.isprintable():
        raise MalformedEvent(f"must be 1 to {KEY_CHARS_MAX} printable ASCII characters", field="idempotency-key")
    return f"key-{sha256(f'{kid} {key}'.encode()).hexdigest()[:40]}"
