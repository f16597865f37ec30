"""Entries that the gate admitted, made by hand: admitted, signed and ready for *land*, without the stages before it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from memsluice.envelope import codec
from memsluice.envelope.keys import Keyring, Purpose
from memsluice.envelope.records import StoreRecord, accepted_from_bytes, accepted_to_bytes, withdrawal_to_bytes
from memsluice.envelope.seals import Admission, admission_sign
from memsluice.envelope.space import DEFAULT_MODEL
from memsluice.events.models import Tier, Visibility, Zone
from memsluice.stores.base import StoredObject, expected_id, from_accepted


@dataclass(frozen=True, slots=True)
class Landing:
    """What *land* is told (a value of memory.accepted.v1), and the object that comes of it; None for a withdrawal."""

    tenant: str
    value: bytes
    item: StoredObject | None


class Gate:
    """Admits entries with a home's own keys, all at one time (Unix ms)."""

    def __init__(self, keyring: Keyring, now_ms: int, seed: int) -> None:
        self._keyring = keyring
        self._now_ms = now_ms
        self._seal = keyring.signing(Purpose.SEAL, now_ms).kid
        self._admission = keyring.signing(Purpose.ADMISSION, now_ms).kid
        self._chance = np.random.default_rng(seed)

    def vector(self) -> codec.Vector:
        """Return a random direction, as it travels."""
        drawn = self._chance.standard_normal(codec.DIMENSIONS).astype(np.float32)
        return codec.vector_from_bytes(codec.vector_to_bytes(drawn / np.linalg.norm(drawn)))

    def admit(self, tenant: str, content: str, vector: codec.Vector, **fields: Any) -> Landing:
        """Return an entry that everybody of the tenant may read, signed by the gate."""
        known: dict[str, Any] = {
            "object_id": "", "version": 1, "event_id": content, "tenant": tenant, "agent": "scribe", "principal": "ana",
            "session": "s", "namespace": "default", "visibility": Visibility.SHARED, "key": None,
            "zone": Zone.GUIDANCE, "tier": Tier.USER_OBSERVED, "taint": False, "parents": (),
            "content_digest": codec.content_digest(self._keyring, tenant, content),
            "vector_digest": codec.vector_digest(self._keyring, tenant, codec.vector_to_bytes(vector)),
            "model": DEFAULT_MODEL, "written_ms": self._now_ms, "expires_ms": None, "decision": "accept", "policy": "p",
        }  # fmt: skip
        admission = Admission(**{**known, **fields})
        admission = replace(admission, object_id=expected_id(admission))
        envelope = admission_sign(self._keyring, self._seal, self._admission, admission)
        value = accepted_to_bytes(envelope, content, codec.vector_to_text(vector))
        return Landing(tenant, value, from_accepted(accepted_from_bytes(self._keyring, tenant, value)))

    def withdraw(self, item: StoredObject, version: int) -> Landing:
        """Return what takes an object out of the store again."""
        stored = StoreRecord(
            object_id=item.object_id, tenant=item.tenant, version=version, zone=item.zone, event_id=item.event_id,
            content_digest=codec.content_digest(self._keyring, item.tenant, item.content), expires_ms=None,
            withdrawn=True,
        )  # fmt: skip
        return Landing(item.tenant, withdrawal_to_bytes(self._keyring, self._seal, stored), None)
