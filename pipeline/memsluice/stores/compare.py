"""What lies in a store against what the log says should lie there: a pure decision an object, and what to do about it.

The log is believed, the store is not. An object of a higher version than any that the log has of its partition is on
its way: *land* writes to the store first and to the log then, so such a one is left alone. So is an object of which the
log's last record does not verify: nobody knows what should lie there, and the entry may be honest, its key lost.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memsluice.envelope.keys import Keyring
from memsluice.envelope.seals import Admission
from memsluice.stores import agreement
from memsluice.stores.base import StoredObject, over
from memsluice.stores.log_index import Known


class Difference(StrEnum):
    """How an object differs from what the log says of it. One kind each: the first that holds."""

    MISSING = "missing"
    """The log says that it lies here, and it does not."""
    PLANTED = "planted"
    """No admission of the gate for this object: written past it, over an entry or beside one."""
    UNRECORDED = "unrecorded"
    """Admitted, and the log has never heard of it, nor will."""
    VERSION = "version"
    """Another version than the one that the log says."""
    PROPERTY = "property"
    """A property (owner, visibility, namespace, tier, expiry, …) is not what was admitted."""
    CONTENT = "content"
    VECTOR = "vector"
    WITHDRAWN = "withdrawn"
    """Taken out by a command or look back, and still, or again, there."""
    UNREADABLE = "unreadable"
    """It is not what the log says, but the log's last record of it does not verify. It is left as it is."""
    EXPIRED = "expired"
    """Its time is over. No harm was done: this is how expired entries leave the store."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A stretch of a partition: how many objects were looked at, how each differs, and the id that it ends with.

    ``end`` is None where the partition ends.
    """

    looked_at: int
    differs: Mapping[str, Difference]
    end: str | None


def compare(
    held: Sequence[StoredObject],
    known: Mapping[str, Known],
    keyring: Keyring,
    now_ms: int,
    highest: int,
    unreadable: Collection[str],
) -> dict[str, Difference]:
    """Return how objects differ, by id, of a stretch that is ``held`` and that the log has as ``known``.

    ``highest`` is the highest version of anything that the log has of the partition, ``now_ms`` Unix milliseconds.
    ``unreadable`` are those of which the log's last record does not verify.
    """
    found = {}
    for item in held:
        how = difference(
            item, known.get(item.object_id), keyring, now_ms, highest, unreadable=item.object_id in unreadable
        )
        if how is not None:
            found[item.object_id] = how
    there = {item.object_id for item in held}
    away = [one for one, said in known.items() if one not in there and said.lies(now_ms)]
    found.update({one: Difference.UNREADABLE if one in unreadable else Difference.MISSING for one in away})
    return found


def difference(
    item: StoredObject, known: Known | None, keyring: Keyring, now_ms: int, highest: int, *, unreadable: bool
) -> Difference | None:
    """Return how one object differs from what the log says of it; None: it does not, or it is on its way.

    Of one whose last record is ``unreadable``, only what is certain all the same is told by another name.
    """
    admission = agreement.admitted(item, item.admission, keyring)
    if admission is None:
        lost = unreadable and agreement.may_be_admitted(item, keyring)
        return Difference.UNREADABLE if lost else Difference.PLANTED
    if unreadable and over(admission.expires_ms, now_ms):
        return Difference.EXPIRED
    if admission.version > highest:
        return Difference.UNREADABLE if unreadable else None
    how = _differs(item, admission, known, keyring, now_ms)
    certain = how is None or (how is Difference.WITHDRAWN and known is not None and admission.version <= known.version)
    return Difference.UNREADABLE if unreadable and not certain else how


def _differs(
    item: StoredObject, admission: Admission, known: Known | None, keyring: Keyring, now_ms: int
) -> Difference | None:
    if known is None:
        return Difference.UNRECORDED
    if known.withdrawn:
        return Difference.WITHDRAWN
    if not known.lies(now_ms):
        return Difference.EXPIRED
    if admission.version != known.version:
        return Difference.VERSION
    if not agreement.properties_hold(item, admission):
        return Difference.PROPERTY
    if not agreement.content_holds(item, admission, keyring):
        return Difference.CONTENT
    return None if agreement.vector_holds(item, admission, keyring) else Difference.VECTOR
