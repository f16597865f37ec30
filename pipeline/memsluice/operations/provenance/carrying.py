"""What a command carries of a landed entry: its record of memory.accepted.v1, in the version that lies in the store."""

from collections.abc import Mapping

from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import Accepted, landing_from_bytes
from memsluice.errors import SealError
from memsluice.events.headers import EVENT_ID
from memsluice.events.partition import partition_of
from memsluice.readers.base import TopicReader

WANTED_MAX = 500
"""Records that are in memory with their contents at one time."""


def accepted_records(
    topic: TopicReader, keyring: Keyring, tenant: str, wanted: Mapping[str, int], since_ms: int, partitions: int
) -> dict[str, tuple[str, Accepted]]:
    """Return, by event id, the record (as text, and read) of each wanted version that the topic still has.

    ``since_ms`` (Unix ms) is when the first of them was decided. Raises BrokerUnavailable.
    """
    assert len(wanted) <= WANTED_MAX
    partition, found = partition_of(tenant, partitions), dict[str, tuple[str, Accepted]]()
    for record in topic.read(partition, topic.at(partition, since_ms)):
        named = dict(record.headers).get(EVENT_ID)
        event_id = "" if named is None else named.decode("utf-8", "replace")
        if record.key != tenant.encode() or event_id not in wanted:
            continue
        try:
            landing = landing_from_bytes(keyring, tenant, record.value or b"")
        except SealError:  # not ours to carry; the gate would refuse it
            continue
        if isinstance(landing, Accepted) and landing.admission.version == wanted[event_id]:
            found[event_id] = ((record.value or b"").decode(), landing)
        if len(found) == len(wanted):
            break
    return found
