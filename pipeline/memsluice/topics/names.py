"""The names of the topics, the users and the partition count: one place, imported by everything that needs them.

The YAML files in ``topics/`` say the rest (retention, compaction, access); a test holds both together.
"""

from typing import Final

PARTITIONS: Final = 8
"""Partitions of every tenant-keyed topic. Frozen once events have been written: murmur2 of the tenant depends on it."""

EVENTS: Final = "memory.events.v1"
"""Intake: signed writes, recalls and observations of agents, readers and runtimes."""

COMMANDS: Final = "memory.commands.v1"
"""Intake: signed commands of operators."""

OVERFLOW: Final = "memory.overflow.v1"
"""Intake records of tenants over their quota, which wait here in their order; *seal*'s own."""

SEALED: Final = "memory.sealed.v1"
"""The one ordered input of a tenant: everything *seal* authenticated, labelled and embedded."""

ACCEPTED: Final = "memory.accepted.v1"
"""Upserts and withdrawals on their way from *screen* to *land*."""

STORE: Final = "memory.store.v1"
"""Compacted: the current version, or the withdrawal, of every object; the readers' freshness index."""

QUARANTINE: Final = "memory.quarantine.v1"
"""Held writes, until a person decides or the stated maximum age passes."""

AUDIT: Final = "memory.audit.v1"
"""A hash chain per tenant over everything that was decided."""

DEAD_LETTER: Final = "memory.dead-letter.v1"
"""What could not be read or authenticated: original bytes and headers, with a reason code."""

PARTITION_STATES: Final = "memory.partitions.v1"
"""Compacted, one partition: which partitions of a stage are parked and why, and operators' signed orders about them."""

APP_SEAL: Final = "memsluice-seal"
APP_SCREEN: Final = "memsluice-screen"
APP_LAND: Final = "memsluice-land"
"""Faust application ids. Each is a consumer group and the prefix of its transactional ids and of its changelog."""

GROUPS: Final = {"seal": APP_SEAL, "screen": APP_SCREEN, "land": APP_LAND}
"""Consumer group of each stage, in the order of the data."""

SCREEN_STATE_TABLE: Final = "state"
"""Name of *screen*'s one Faust table."""


def changelog_topic(app_id: str, table: str) -> str:
    """Return the name of the changelog of ``table`` in ``app_id`` (faust/tables/base, ``_changelog_topic_name``)."""
    return f"{app_id}-{table}-changelog"


SCREEN_CHANGELOG: Final = changelog_topic(APP_SCREEN, SCREEN_STATE_TABLE)

USER_ADMIN: Final = "admin"
USER_SEAL: Final = "seal"
USER_SCREEN: Final = "screen"
USER_LAND: Final = "land"
USER_PRODUCER: Final = "producer"
USER_READER: Final = "reader"
USER_RUNTIME: Final = "runtime"
USER_OPERATOR: Final = "operator"
USER_VERDICTS: Final = "verdicts"
"""Hears for producers what became of their events; it holds the gate's keys, as readers' freshness does."""

KAFKA_USERS: Final = (
    USER_ADMIN,
    USER_SEAL,
    USER_SCREEN,
    USER_LAND,
    USER_PRODUCER,
    USER_READER,
    USER_RUNTIME,
    USER_OPERATOR,
    USER_VERDICTS,
)
"""Every principal on the broker. ``admin`` is the super user; the others have what ``topics/`` grants them."""

WEAVIATE_ADMIN: Final = "admin"
WEAVIATE_LAND: Final = "land"
WEAVIATE_RECALL: Final = "recall"
WEAVIATE_USERS: Final = (WEAVIATE_ADMIN, WEAVIATE_LAND, WEAVIATE_RECALL)
"""Every user of the store; ``admin`` is the root user of its role-based access control."""

WEAVIATE_COLLECTIONS: Final = "Memsluice*"
"""Pattern of the collections that ``land`` and ``recall`` may touch."""
BROKER_REMEDY = (
    "see whether it runs with `memsluice stack status`, or in the broker's own log; `memsluice stack up` starts a stack"
)
"""What to do about a broker that does not answer."""
