"""What a vector store is to memsluice: partitions by tenant and zone, versions that only grow, scopes at search.

A store is not trusted. It filters so that a search is fast and small; whether an entry may be shown is decided by
:mod:`memsluice.recall.reader` from the sealed admission that travels with every object.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from memsluice.encoder import ENCODER_VARIABLE
from memsluice.envelope.codec import Vector, canonical
from memsluice.envelope.records import Accepted, StoreRecord, vector_bytes_of
from memsluice.envelope.seals import Admission
from memsluice.envelope.space import Space, check_dimensions, space_of
from memsluice.errors import ConfigError, MalformedEvent, StoreError
from memsluice.events.ids import object_id, scope_owner
from memsluice.events.models import Tier, Visibility, Zone

SEARCH_MAX = 1_000
"""Most objects that one search returns."""
SEARCHED_MAX = 8_000
"""How far beyond what does not verify a recall may look, in objects. Weaviate gives up at 10,000."""
UPSERT_MAX = 1_024
"""Most objects that one upsert takes."""


class Seen(NamedTuple):
    """What an object stated when it was looked at."""

    event_id: str
    version: int


UNSEEN: Mapping[str, Seen] = MappingProxyType({})

Partition = tuple[str, Zone]
"""A tenant and a zone."""


class StoreAnswer(StrEnum):
    """What became of one object of an upsert."""

    LANDED = "landed"
    OLDER = "older"
    """Not written: the store, or the same batch, has a higher version."""
    REFUSED = "refused"
    """The store will not take this object, now or later."""
    UNAVAILABLE = "unavailable"
    """Worth a retry: the object as such was not faulted."""


@dataclass(frozen=True, slots=True)
class UpsertResult:
    """Outcome for one object; ``detail`` says why it was refused or could not be written, never its content."""

    object_id: str
    outcome: StoreAnswer
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """Who asks: sees shared entries, the principal's, and the session's. "" stands for none.

    ``shared`` False leaves out what everybody sees.
    """

    principal: str = ""
    session: str = ""
    shared: bool = True

    def admits(self, visibility: str, owner: str) -> bool:
        """Return whether an entry of this visibility and owner may be given to who asks."""
        if visibility == Visibility.SHARED:
            return self.shared
        if visibility == Visibility.PRINCIPAL:
            return self.principal != "" and owner == self.principal
        return visibility == Visibility.SESSION and self.session != "" and owner == self.session


@dataclass(frozen=True, slots=True, eq=False)
class StoredObject:
    """One entry as it lies in a store.

    ``tenant`` and ``zone`` are the partition that it was found in, not properties that could say otherwise. ``vector``
    holds the very float16 numbers that the admission's vector digest covers, widened to float32, shape (d,), not
    normalised again; empty where the store gave none. ``model`` is the encoder that made it, as admitted: a store keeps
    that once for all of its objects, so that those it gives back name none. ``admission`` is the signed admission's
    envelope as JSON text. ``expires_ms`` is Unix milliseconds, None for never.
    """

    object_id: str
    version: int
    tenant: str
    zone: Zone
    visibility: str
    owner: str
    namespace: str
    event_id: str
    tier: int
    expires_ms: int | None
    content: str
    vector: Vector
    admission: str
    model: str = ""

    @property
    def partition(self) -> Partition:
        """The tenant and zone."""
        return self.tenant, self.zone


@dataclass(frozen=True, slots=True)
class Hit:
    """One object that a search found, with the cosine similarity, -1 to 1, of its vector to the question's."""

    object: StoredObject
    similarity: float


class VectorStore(Protocol):
    """A store of sealed entries. Every method raises StoreUnavailable when the store does not answer.

    Whoever can write to it can plant objects larger than any entry. Such a one may come bare, with its id and nothing
    else, and where several fit into no answer, :meth:`search` and :meth:`page` raise AnswerTooLarge.

    A tenant's partition is created by its first upsert; before that it is empty, never an error. All vectors of a store
    are of one encoder: the first object that lands says which, and objects of another are refused. A store compares the
    versions that its objects state, and whoever can write to it can state any: *land* believes "older" only of an
    object whose admission the gate signed (:meth:`admissions`), and overwrites what else stands in an entry's way.
    """

    def upsert(self, objects: Sequence[StoredObject], *, overwrite: bool = False) -> list[UpsertResult]:
        """Write at most UPSERT_MAX objects and return each one's outcome, aligned with ``objects``.

        A lower version never replaces a higher one, in the store or in the batch; an equal one is written again. With
        ``overwrite`` the versions in the store do not count, only those in the batch.
        """

    def search(
        self,
        tenant: str,
        zone: Zone,
        vector: Vector,
        k: int,
        scope: Scope,
        namespace: str,
        now_ms: int,
    ) -> list[Hit]:
        """Return at most ``k`` (<= SEARCH_MAX) nearest objects in scope, namespace and time, nearest first."""

    def nearest_ids(
        self, tenant: str, zone: Zone, vector: Vector, scope: Scope, namespace: str, now_ms: int
    ) -> list[str]:
        """Return the ids of the SEARCHED_MAX nearest objects in scope, namespace and time, nearest first.

        One question, because the answers to several do not add up: objects that are equally near are in no order, so
        what one page leaves to the next one, the next one may leave out again.
        """

    def candidates(self, tenant: str, zone: Zone, scope: Scope, namespace: str, now_ms: int) -> int:
        """Return how many objects a search in scope, namespace and time has to choose from."""

    def held(self, tenant: str, zone: Zone, ids: Sequence[str]) -> dict[str, StoredObject]:
        """Return those of at most UPSERT_MAX objects that are held, as they lie there, by id."""

    def held_of(self, asked: Mapping[Partition, Sequence[str]]) -> dict[Partition, dict[str, StoredObject]]:
        """Return as :meth:`held` what each partition holds, asked side by side where the store can. Raises what any
        of them does: a failure is not told apart from the others' answers."""

    def page(self, tenant: str, zone: Zone, after: str, limit: int) -> list[StoredObject]:
        """Return the next objects by id, at most ``limit`` (<= UPSERT_MAX); ``after`` "" begins.

        Raises AnswerTooLarge where they fit into no answer; one alone always does.
        """

    def drop(self, tenant: str) -> None:
        """Remove a tenant's partitions with all that they hold; the next upsert makes them anew."""

    def versions(self, tenant: str, zone: Zone, ids: Sequence[str]) -> dict[str, int]:
        """Return the versions of those of at most UPSERT_MAX ``ids`` that the partition holds."""

    def admissions(self, tenant: str, zone: Zone, ids: Sequence[str]) -> dict[str, str]:
        """Return what lies as admission ("" for none) with those of at most UPSERT_MAX ``ids`` that are held."""

    def delete(self, tenant: str, zone: Zone, ids: Sequence[str], *, seen: Mapping[str, Seen] = UNSEEN) -> int:
        """Remove at most UPSERT_MAX objects; return how many there were.

        Those that ``seen`` names are removed only while they state what they were seen with: another writer may have
        brought a newer version since.
        """

    def count(self, tenant: str, zone: Zone) -> int:
        """Return how many objects the partition holds, expired ones included."""

    def tenants(self) -> list[str]:
        """Return the tenants that have a partition in any zone, sorted."""

    def space(self, zone: Zone | None = None) -> Space | None:
        """Return what encoder all vectors of the store are of; None while it holds none.

        With ``zone`` the store is asked about that zone's vectors and no other's.
        """

    def close(self) -> None:
        """Drop connections; calls in flight end with StoreUnavailable. A later call connects anew."""


@runtime_checkable
class Served(Protocol):
    """A store in a process of its own: while it searches, this one can do something else."""

    def search_whole(self, tenant: str, zone: Zone, vector: Vector, k: int) -> list[Hit]:
        """Search as :meth:`VectorStore.search` does, all of the partition, whatever scope, namespace and time."""


def exact_vector(vector_bytes: bytes) -> Vector:
    """Return the float16 numbers of a vector's wire bytes as float32, shape (d,), untouched.

    Untouched, so that ``vector_to_bytes`` of what a store gives back has the digest that was admitted. Raises
    MalformedEvent.
    """
    if len(vector_bytes) % 2:
        raise MalformedEvent(f"has {len(vector_bytes)} bytes, which is no whole number of float16", field="vector")
    check_dimensions(len(vector_bytes) // 2)
    return np.frombuffer(vector_bytes, dtype="<f2").astype(np.float32)


def owner_of(admission: Admission) -> str:
    """Return whose scope the entry lives in."""
    return scope_owner(admission.visibility, admission.principal, admission.session)


def over(expires_ms: int | None, now_ms: int) -> bool:
    """Whether the time of what expires then is over (both Unix ms); None never expires."""
    return expires_ms is not None and expires_ms <= now_ms


def from_accepted(accepted: Accepted) -> StoredObject:
    """Return the object that an accepted record asks for. Raises MalformedEvent for a vector that is none."""
    admission = accepted.admission
    return StoredObject(
        object_id=admission.object_id,
        version=admission.version,
        tenant=admission.tenant,
        zone=admission.zone,
        visibility=admission.visibility.value,
        owner=owner_of(admission),
        namespace=admission.namespace,
        event_id=admission.event_id,
        tier=int(admission.tier),
        expires_ms=admission.expires_ms,
        content=accepted.content,
        vector=exact_vector(vector_bytes_of(accepted.vector_text)),
        admission=canonical(accepted.envelope).decode(),
        model=admission.model,
    )


def withdrawn(stored: StoreRecord) -> StoredObject:
    """Return the expired object without content that stands for a withdrawal on its way to the store."""
    return StoredObject(
        object_id=stored.object_id,
        version=stored.version,
        tenant=stored.tenant,
        zone=stored.zone,
        visibility="",
        owner="",
        namespace="",
        event_id=stored.event_id,
        tier=int(Tier.EXTERNAL_WEB),
        expires_ms=0,
        content="",
        vector=np.zeros(0, dtype=np.float32),
        admission="",
    )


def defect(item: StoredObject, held: Space | None) -> str:
    """Return why a store with vectors of the encoder ``held`` (None: with none) may not take this object, or ""."""
    try:
        check_dimensions(len(item.vector))
    except MalformedEvent as error:
        return f"vector {error.reason}"
    if held is not None and (space := space_of(item.model, item.vector)) != held:
        return f"vector is of the encoder {space}, and the store holds those of {held}"
    if not np.isfinite(item.vector).all() or not item.vector.any():
        return "vector is not finite or zero"
    if item.version < 0:
        return "version is negative"
    try:
        item.content.encode()
    except UnicodeEncodeError:
        return "content is not encodable as UTF-8"
    return ""


def first_space(objects: Iterable[StoredObject], held: Space | None) -> Space | None:
    """Return what encoder a store's vectors are of once these objects landed: ``held``, else the first sound one's."""
    if held is not None:
        return held
    return next((space_of(item.model, item.vector) for item in objects if not defect(item, None)), None)


def check_encoder(store: VectorStore, mine: Space, zone: Zone | None = None) -> None:
    """Raise ConfigError where a store's vectors, or those of its ``zone``, are of another encoder than ``mine``."""
    check_space(store.space(zone), mine)


def check_space(held: Space | None, mine: Space) -> None:
    """Raise ConfigError where a memory's vectors, ``held``, are of another encoder than ``mine``; None: it has none."""
    if held is not None and held != mine:
        raise ConfigError(
            f"The memory holds vectors of the encoder {held}, and this process has the encoder {mine}: what one "
            f"made, no question of the other finds. Set {ENCODER_VARIABLE} to the encoder that the memory was made "
            "with, or give the new one a home and a store of its own, and publish the entries there again (see "
            "docs/encoder.md)"
        )


def check_extent(k: int) -> None:
    """Raise StoreError for a search that asks for too much at once."""
    if not 1 <= k <= SEARCH_MAX:
        raise StoreError(f"k is {k}, 1 to {SEARCH_MAX} allowed")


def newest(items: Iterable[tuple[int, StoredObject]]) -> list[int]:
    """Return, of numbered objects, the numbers of each identity's highest version (the last of equals), sorted."""
    best: dict[tuple[Partition, str], tuple[int, int]] = {}
    for number, item in items:
        name = (item.partition, item.object_id)
        if name not in best or item.version >= best[name][0]:
            best[name] = (item.version, number)
    return sorted(number for _version, number in best.values())


def expected_id(admission: Admission) -> str:
    """Return the object id that what was admitted must have: nobody overwrites another's entry."""
    return object_id(
        tenant=admission.tenant,
        zone=admission.zone,
        visibility=admission.visibility,
        owner=owner_of(admission),
        namespace=admission.namespace,
        key=admission.key,
        event_id=admission.event_id,
    )
