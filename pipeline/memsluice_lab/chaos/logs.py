"""All that the deployment holds, read at one moment: every topic, the changelog of *screen*, and the store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memsluice.envelope.keys import Keyring
from memsluice.events.models import Zone
from memsluice.events.records import Record
from memsluice.readers.kafka import KafkaTopic
from memsluice.recall.freshness import verified
from memsluice.stores.base import UPSERT_MAX
from memsluice.stores.weaviate.store import WeaviateStore
from memsluice.topics import names
from memsluice_lab.chaos.following import COMMITTED
from memsluice_lab.figures.bed import Bed

TOPICS = (
    names.SEALED,
    names.AUDIT,
    names.ACCEPTED,
    names.QUARANTINE,
    names.DEAD_LETTER,
    names.STORE,
    names.SCREEN_CHANGELOG,
)
Object = tuple[str, Zone, str]
"""Tenant, zone and object id."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The committed records of every topic, partition by partition in order, and what lies in the store.

    ``stored`` has the versions of those objects that the store log names, ``counts`` how many there are in all.
    """

    topics: Mapping[str, Sequence[Record]]
    stored: Mapping[Object, int] = field(default_factory=dict)
    counts: Mapping[tuple[str, Zone], int] = field(default_factory=dict)

    def of(self, topic: str) -> Sequence[Record]:
        """Return a topic's records."""
        return self.topics.get(topic, ())


def read_topic(bed: Bed, topic: str, since: Mapping[int, int] | None = None) -> list[Record]:
    """Return a topic's committed records, from some offsets on (default: all that there is)."""
    reader = KafkaTopic({**bed.connection.confluent(names.USER_ADMIN), **COMMITTED}, topic=topic)
    try:
        return [
            record for number in range(names.PARTITIONS) for record in reader.read(number, (since or {}).get(number, 0))
        ]
    finally:
        reader.close()


def ends(bed: Bed, topic: str) -> dict[int, int]:
    """Return where each partition of a topic ends."""
    return dict(enumerate(bed.ends(topic)))


def take(bed: Bed, tenants: Sequence[str], since: Mapping[str, Mapping[int, int]] | None = None) -> Picture:
    """Return the picture of some tenants; ``since`` leaves out what stood in the topics before."""
    topics = {topic: read_topic(bed, topic, (since or {}).get(topic)) for topic in TOPICS}
    asked = named(bed.store.keyring(), topics[names.STORE], tenants)
    store = WeaviateStore.of(bed.connection, names.WEAVIATE_ADMIN)
    try:
        stored: dict[Object, int] = {}
        counts = {(tenant, zone): store.count(tenant, zone) for tenant in tenants for zone in Zone}
        for tenant, zone in counts:
            ids = sorted(one for owner, where, one in asked if (owner, where) == (tenant, zone))
            for start in range(0, len(ids), UPSERT_MAX):
                found = store.versions(tenant, zone, ids[start : start + UPSERT_MAX])
                stored |= {(tenant, zone, one): version for one, version in found.items()}
    finally:
        store.close()
    return Picture(topics, stored, counts)


def named(keyring: Keyring, log: Sequence[Record], tenants: Sequence[str]) -> set[Object]:
    """Return the objects of some tenants that the store log names."""
    found = (verified(keyring, record.value) for record in log if record.value is not None)
    return {(one.tenant, Zone(one.zone), one.object_id) for one in found if one is not None and one.tenant in tenants}
