"""Whether what lies in a store is what was admitted, and what was written: pure comparisons, to the last property."""

from collections.abc import Iterable

import numpy as np
import orjson

from memsluice.envelope.codec import vector_to_bytes
from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import check_digests
from memsluice.envelope.seals import Admission, admission_may_hold, admission_verify_inside
from memsluice.errors import InputError, SealError
from memsluice.events.models import Visibility
from memsluice.stores.base import Seen, StoredObject, expected_id, owner_of


def in_place(item: StoredObject, admission: Admission) -> bool:
    """Whether the object lies under the id, and in the zone, that it was admitted for."""
    return item.object_id == admission.object_id == expected_id(admission) and item.zone is admission.zone


def admitted(item: StoredObject, text: str | None, keyring: Keyring) -> Admission | None:
    """Return the admission of ``text``, as a store has it, where the gate signed it for this very object."""
    try:
        admission = admission_verify_inside(keyring, item.tenant, orjson.loads(text or ""))
    except (SealError, orjson.JSONDecodeError):
        return None
    return admission if in_place(item, admission) else None


def may_be_admitted(item: StoredObject, keyring: Keyring) -> bool:
    """Whether the gate may have admitted an object whose admission does not verify: under a key that is lost, or that
    was revoked."""
    try:
        return admission_may_hold(keyring, item.tenant, orjson.loads(item.admission or ""))
    except (InputError, SealError, orjson.JSONDecodeError):
        return False


def seen(items: Iterable[StoredObject], keyring: Keyring) -> dict[str, Seen]:
    """Return what objects state, by object id, where it is what was admitted: such an object is removed only while it
    states that. What was planted is removed whatever it states."""
    found = {}
    for item in items:
        admission, stated = admitted(item, item.admission, keyring), Seen(item.event_id, item.version)
        if admission is not None and stated == (admission.event_id, admission.version):
            found[item.object_id] = stated
    return found


def properties_hold(item: StoredObject, admission: Admission) -> bool:
    """Whether every stored property is the admitted one."""
    stated = (item.version, item.visibility, item.owner, item.namespace, item.event_id, item.tier, item.expires_ms)
    scope = (Visibility(admission.visibility).value, owner_of(admission), admission.namespace)
    rest = (admission.event_id, int(admission.tier), admission.expires_ms)
    return (*stated, item.tenant) == (admission.version, *scope, *rest, admission.tenant)


def content_holds(item: StoredObject, admission: Admission, keyring: Keyring) -> bool:
    """Whether the content is the admitted one. Raises ConfigError without a digest key."""
    try:
        check_digests(keyring, admission, item.content, None)
    except (SealError, UnicodeEncodeError):
        return False
    return True


def vector_holds(item: StoredObject, admission: Admission, keyring: Keyring) -> bool:
    """Whether the vector is the admitted one, the content being so. Raises ConfigError without a digest key."""
    try:
        check_digests(keyring, admission, item.content, vector_to_bytes(item.vector))
    except SealError:
        return False
    return True


def same(written: StoredObject, held: StoredObject) -> bool:
    """Whether a store gives back what was written, to the last bit of the vector that was digested."""
    return (
        held.version == written.version
        and held.admission == written.admission
        and held.content == written.content
        and (held.visibility, held.owner, held.namespace) == (written.visibility, written.owner, written.namespace)
        and (held.event_id, held.tier, held.expires_ms) == (written.event_id, written.tier, written.expires_ms)
        and len(held.vector) == len(written.vector)
        and (np.array_equal(held.vector, written.vector) or _rounded_alike(held, written))
    )


def _rounded_alike(held: StoredObject, written: StoredObject) -> bool:
    return vector_to_bytes(held.vector) == vector_to_bytes(written.vector)
