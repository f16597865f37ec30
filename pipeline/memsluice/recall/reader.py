"""Which of the entries that a store returned may be shown: a pure decision, and the reason for each that may not.

Nothing that the store says is believed. What an entry is comes from its admission, verified by the gate's Ed25519
signature, also where the reader holds the gate's HMAC keys: whoever stole those plants nothing. What the store holds
must agree with it to the last property. An object that somebody wrote, changed, moved or put back with access to the
store fails one of the checks and is withheld.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from memsluice.envelope.codec import Vector, from_json
from memsluice.envelope.keys import Keyring
from memsluice.envelope.seals import Admission, admission_of_anybody
from memsluice.envelope.space import DEFAULT_MODEL, space_of
from memsluice.errors import InputError, SealError
from memsluice.events.models import Tier, Visibility, Zone
from memsluice.recall.withheld import Flag, Withheld
from memsluice.stores import agreement
from memsluice.stores.base import Scope, StoredObject, owner_of


@dataclass(frozen=True, slots=True)
class Current:
    """What the log of landed objects says about an object."""

    version: int
    withdrawn: bool


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """Who asks what: the partition, the scope and namespace, and the question's unit vector, shape (d,).

    ``tier_max`` is the least trusted tier that may be shown, ``model`` the encoder that made the question's vector.
    """

    tenant: str
    zone: Zone
    scope: Scope
    namespace: str
    question: Vector
    now_ms: int
    tier_max: Tier = Tier.EXTERNAL_WEB
    model: str = DEFAULT_MODEL


@dataclass(frozen=True, slots=True)
class VerifiedEntry:
    """One verified entry. ``similarity`` is the cosine, -1 to 1, computed from the verified vector.

    ``flags`` say what it reads like, where somebody trusted said it and it is shown all the same.
    """

    admission: Admission
    content: str
    similarity: float
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """What may be shown, better tiers first, and the reason for everything withheld, by object id."""

    kept: tuple[VerifiedEntry, ...]
    withheld: Mapping[str, Withheld]
    missing: int = 0
    """Entries that the log says lie in this scope, and that the store does not give."""
    incomplete: bool = False
    """Whether the search ended at its bound: further entries may hold."""

    def counts(self) -> Counter[str]:
        """Return how many entries were withheld, by reason."""
        found = Counter(reason.value for reason in self.withheld.values())
        if self.missing:
            found[Withheld.MISSING.value] = self.missing
        return found


def judge(
    item: StoredObject,
    asked: RecallQuery,
    keyring: Keyring,
    *,
    current: Mapping[str, Current] | None = None,
) -> VerifiedEntry | Withheld:
    """Return the entry, or the reason that it must not be shown.

    What it says is not looked at: :mod:`memsluice.recall.instructions` does that, for what would be shown.
    """
    admission = _admission(item, keyring)
    if admission is None:
        return Withheld.FORGED
    if (admission.tenant, admission.zone) != (asked.tenant, asked.zone) or not agreement.in_place(item, admission):
        return Withheld.MOVED
    if not agreement.properties_hold(item, admission):
        return Withheld.PROPERTY
    if not agreement.content_holds(item, admission, keyring):
        return Withheld.CONTENT
    if not agreement.vector_holds(item, admission, keyring):
        return Withheld.VECTOR
    if space_of(admission.model, item.vector) != space_of(asked.model, asked.question):
        return Withheld.ENCODER
    if not _visible(admission, asked):
        return Withheld.SCOPE
    if admission.expires_ms is not None and admission.expires_ms <= asked.now_ms:
        return Withheld.EXPIRED
    if current is not None and (outdated := _outdated(admission, current.get(admission.object_id))) is not None:
        return outdated
    if admission.tier > asked.tier_max:
        return Withheld.TIER
    return VerifiedEntry(admission, item.content, _cosine(item.vector, asked.question))


def _admission(item: StoredObject, keyring: Keyring) -> Admission | None:
    """Return the admission once its signature holds, for whatever tenant it was signed; None for a forged one."""
    try:
        return admission_of_anybody(keyring, from_json(item.admission))
    except (InputError, SealError):
        return None


def _visible(admission: Admission, asked: RecallQuery) -> bool:
    """Say whether the scope covers the entry. A session's id alone opens nothing: whoever wrote there before the
    platform opened it for another principal wrote for himself."""
    if admission.visibility is Visibility.SESSION and admission.principal != asked.scope.principal:
        return False
    covered = asked.scope.admits(admission.visibility, owner_of(admission))
    return covered and admission.namespace == asked.namespace


def _outdated(admission: Admission, current: Current | None) -> Withheld | None:
    if current is None or current.version < admission.version:
        return Withheld.UNRECORDED
    if current.withdrawn:
        return Withheld.WITHDRAWN
    return Withheld.STALE if current.version > admission.version else None


def _cosine(vector: Vector, question: Vector) -> float:
    import numpy as np

    return float(vector @ question / np.sqrt((vector @ vector) * (question @ question)))
