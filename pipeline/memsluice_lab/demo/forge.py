"""The messages of those who may not write: forged, tampered with, replayed, or by a key that is not for this."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from memsluice.client.build import build
from memsluice.envelope.dsse import Signer
from memsluice.envelope.keys import HmacKey
from memsluice.events.models import Action, AnyPayload, Command, Observation, Origin, Write
from memsluice_lab.cast import Signers, kid_of
from memsluice_lab.demo.sample.script import Act, Scene
from memsluice_lab.demo.site import Message

EXPIRED = "expired"
"""Source of the signer whose credential has run out."""
ORDERS_LAST = timedelta(hours=1)
_STOLEN = b"a secret that no key store gave."


def write_of(scene: Scene, fields: dict[str, Any]) -> Write:
    """Return the payload of a write."""
    return Write(**fields, content=scene.text, visibility=scene.visibility, key=scene.key)


def command_of(scene: Scene, event_id: str, now_ms: int) -> Command:
    """Return an order to protect a key of its principal; one about ``stale`` ran out before it was sent."""
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    return Command(
        id=event_id,
        tenant=scene.tenant,
        time=now,
        action=Action.PROTECT,
        target=scene.text,
        expires_at=now - ORDERS_LAST if scene.about == "stale" else now + ORDERS_LAST,
        parameters={"visibility": "principal", "owner": scene.principal},
        reason="house rule",
    )


def _signed(payload: AnyPayload, signer: Signer) -> Message:
    return build(payload, [signer], source=f"/{payload.tenant}/{signer.kid}")


def _tampered(message: Message) -> Message:
    """Change one word of what was signed, and leave the signature as it is."""
    key, value, headers = message
    envelope = orjson.loads(value or b"{}")
    payload = base64.b64decode(envelope["payload"]).replace(b" need ", b" skip ")
    return key, orjson.dumps({**envelope, "payload": base64.b64encode(payload).decode()}), headers


def message_of(scene: Scene, fields: dict[str, Any], signers: Signers) -> Message:
    """Return the message of an attack scene. ``fields`` are those of a session's payload."""
    tenant, source = scene.tenant, scene.source
    if scene.act is Act.GARBAGE:
        return tenant.encode(), b"\x00\x17remember me\xff\xfe", (("ce_type", b"memory.write.v1"),)
    if scene.act is Act.WRONG_ROLE and scene.origin == "open":
        return _signed(Observation(**fields, origin=Origin.OPEN), signers[tenant, source])
    write = write_of(scene, fields)
    if scene.act is Act.FORGE:
        return _signed(write, HmacKey(kid_of(tenant, source), _STOLEN))
    if scene.act is Act.UNKNOWN_KEY:
        return _signed(write, HmacKey("nobody.agent", _STOLEN))
    if scene.act is Act.CROSS_TENANT:
        return _signed(write, signers[scene.about, source])
    if scene.act is Act.EXPIRED_KEY:
        return _signed(write, signers[tenant, EXPIRED])
    message = _signed(write, signers[tenant, source])
    return _tampered(message) if scene.act is Act.TAMPER else message
