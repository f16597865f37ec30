"""Reads the audit topic for one event id: once for the id itself, once more for each level of what tainted it."""

from dataclasses import dataclass

from memsluice.envelope.keys import Keyring
from memsluice.events.partition import partition_of
from memsluice.operations.trace.collector import Collector
from memsluice.operations.trace.life import Life, ancestors_of
from memsluice.readers.base import TopicReader

LEVELS_MAX = 4
"""How far back it is asked what tainted what tainted an entry. Every level is one more look at one partition."""
ANCESTORS_MAX = 32
"""Lives that are collected besides an entry's own."""


@dataclass(frozen=True, slots=True)
class Traced:
    """What was found: the lives of an id, and those of the ids that tainted it, by (tenant, id).

    ``read`` counts the audit records that the first look went through, ``unverified`` those of them that could matter
    and whose seal did not hold; ``left_out`` records of tenants beyond the bound.
    """

    lives: list[Life]
    ancestors: dict[tuple[str, str], Life]
    partitions: tuple[int, ...]
    read: int
    unverified: int
    left_out: int


def trace(topic: TopicReader, keyring: Keyring, event_id: str, tenant: str | None, partitions: int) -> Traced:
    """Return all that the audit says of an event id, in one tenant or (None) in all. Raises BrokerUnavailable."""
    looked_in = tuple(range(partitions)) if tenant is None else (partition_of(tenant, partitions),)
    found = Collector({event_id}, keyring, tenant)
    for partition in looked_in:
        for record in topic.read(partition):
            found.take(record)
    ancestors: dict[tuple[str, str], Life] = {}
    for life in found.lives():
        ancestors.update(_ancestors(topic, keyring, life, partition_of(life.tenant, partitions)))
    return Traced(found.lives(), ancestors, looked_in, found.read, found.unverified, found.left_out)


def _ancestors(topic: TopicReader, keyring: Keyring, life: Life, partition: int) -> dict[tuple[str, str], Life]:
    """What tainted an entry, and what tainted that: a look for each level, up to the latest that names the next one.

    Whatever tainted was decided before, so no look goes further than the one before it.
    """
    known: dict[tuple[str, str], Life] = {}
    level = [life]
    for _ in range(LEVELS_MAX):
        names = {name for one in level for name in ancestors_of(one) if (life.tenant, name) not in known}
        wanted = set(sorted(names)[: ANCESTORS_MAX - len(known)])
        if not wanted:
            break
        before = max(one.governing.audit_offset for one in level)
        collector = Collector(wanted, keyring, life.tenant)
        for record in topic.read(partition):
            if record.offset >= before:
                break
            collector.take(record)
        level = collector.lives()
        known.update({(one.tenant, one.event_id): one for one in level})
        if not level:
            break
    return known
