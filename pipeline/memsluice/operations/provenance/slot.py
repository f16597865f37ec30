"""What lies where a command would put a keyed entry, and so gives way to it: from the audit alone."""

from memsluice.envelope.keys import Keyring
from memsluice.envelope.verdict import Verdict
from memsluice.events.partition import partition_of
from memsluice.operations.trace.verdicts import read
from memsluice.readers.base import TopicReader


def occupant(
    audit: TopicReader, keyring: Keyring, tenant: str, object_id: str, now_ms: int, partitions: int
) -> tuple[str, int] | None:
    """Return event id and tier of what an object holds now (Unix ms), None where nothing lies there.

    Raises BrokerUnavailable.
    """
    there: Verdict | None = None
    for record in audit.read(partition_of(tenant, partitions)):
        verdict = read(keyring, record) if record.key == tenant.encode() else None
        if verdict is None or (there is not None and verdict.sealed_offset < there.sealed_offset):
            continue
        if verdict.object_id == object_id:
            there = verdict
        elif any(gone.object_id == object_id for gone in verdict.withdraws):
            there = None
    if there is None or (there.expires_ms is not None and there.expires_ms <= now_ms):
        return None
    return there.target or there.event_id, there.tier
