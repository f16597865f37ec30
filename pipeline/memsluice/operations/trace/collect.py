"""Reads the audit topic for one event id: once for the id itself, once more for each level of what tainted it.

Other writes of the same text are found on the way: those behind it by the first look, those before it by the second,
which goes through the one partition up to the entry. That one is made of a write that nothing tainted, too.
"""

from dataclasses import dataclass

from memsluice.envelope.keys import Keyring
from memsluice.events.partition import partition_of
from memsluice.operations.trace.beginnings import Beginnings
from memsluice.operations.trace.collector import Collector
from memsluice.operations.trace.equals import EqualTexts, Finder, told_by
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
    and whose seal did not hold; ``left_out`` records of tenants beyond the bound. ``same_text`` are the other writes of
    the same text; None where the one event is no write, or where several tenants have one of the id. ``begin_so`` are
    whole ids that begin as the one that was asked for, where there is no event of just that.
    """

    lives: list[Life]
    ancestors: dict[tuple[str, str], Life]
    partitions: tuple[int, ...]
    read: int
    unverified: int
    left_out: int
    same_text: EqualTexts | None = None
    begin_so: tuple[str, ...] = ()


def trace(topic: TopicReader, keyring: Keyring, event_id: str, tenant: str | None, partitions: int) -> Traced:
    """Return all that the audit says of an event id, in one tenant or (None) in all. Raises BrokerUnavailable."""
    looked_in = tuple(range(partitions)) if tenant is None else (partition_of(tenant, partitions),)
    found = Collector({event_id}, keyring, tenant, same_texts=True)
    longer = Beginnings(keyring, event_id, tenant)
    for partition in looked_in:
        for record in topic.read(partition):
            found.take(record)
            longer.take(record)
    lives, ancestors = found.lives(), dict[tuple[str, str], Life]()
    behind = found.finder_of(lives[0]) if len(lives) == 1 else None
    before = None if behind is None else Finder(keyring, behind.about, until=behind.about.sealed_offset)
    for life in lives:
        ancestors.update(_ancestors(topic, keyring, life, partition_of(life.tenant, partitions), before))
    same_text = (
        told_by(lives[0].governing.verdict, [before, behind]) if before is not None and behind is not None else None
    )
    begin_so = () if lives else tuple(longer.found)
    return Traced(lives, ancestors, looked_in, found.read, found.unverified, found.left_out, same_text, begin_so)


def _ancestors(
    topic: TopicReader, keyring: Keyring, life: Life, partition: int, same_text: Finder | None
) -> dict[tuple[str, str], Life]:
    """What tainted an entry, and what tainted that: a look for each level, up to the latest that names the next one.

    Whatever tainted was decided before, so no look goes further than the one before it. The first one also shows
    ``same_text`` what was decided before the entry.
    """
    known: dict[tuple[str, str], Life] = {}
    level = [life]
    for _ in range(LEVELS_MAX):
        names = {name for one in level for name in ancestors_of(one) if (life.tenant, name) not in known}
        wanted = set(sorted(names)[: ANCESTORS_MAX - len(known)])
        if not wanted and same_text is None:
            break
        before = max(one.governing.audit_offset for one in level)
        collector = Collector(wanted, keyring, life.tenant)
        for record in topic.read(partition):
            if record.offset >= before:
                break
            collector.take(record)
            if same_text is not None:
                same_text.take(record)
        same_text, level = None, collector.lives()
        known.update({(one.tenant, one.event_id): one for one in level})
        if not level:
            break
    return known
