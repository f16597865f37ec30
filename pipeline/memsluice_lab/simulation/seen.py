"""What is in the log, read once a record: what lies in memory, what is held, what was decided.

Opening a record is pure, so each record's bytes are opened once a process and never again while they are remembered.
"""

from typing import NamedTuple

from memsluice.envelope.records import Accepted, held_from_bytes, landing_from_bytes
from memsluice.events.models import Zone
from memsluice.topics import names
from memsluice_lab.simulation.broker import Broker
from memsluice_lab.simulation.world import PARTITIONS, World, partition


class Landed(NamedTuple):
    """One entry that was accepted."""

    object_id: str
    version: int
    event_id: str
    tier: int
    taint: bool
    zone: Zone
    content_digest: str
    record: bytes


class Seen:
    """Follows quarantine and accepted log, reading what is committed."""

    def __init__(self, broker: Broker, world: World) -> None:
        self._broker = broker
        self._world = world
        self._at = {(topic, number): 0 for topic in (names.ACCEPTED, names.QUARANTINE) for number in range(PARTITIONS)}
        self._landed: dict[str, dict[str, Landed]] = {}
        self._held: dict[str, list[tuple[bytes, str, str]]] = {}

    def landed(self, tenant: str) -> list[Landed]:
        """Return what was accepted last of each object, and not withdrawn since."""
        self._follow(names.ACCEPTED, tenant)
        return list(self._landed.get(tenant, {}).values())

    def held(self, tenant: str) -> list[tuple[bytes, str, str]]:
        """Return what was held: the sealed write, its event id and its content's digest."""
        self._follow(names.QUARANTINE, tenant)
        return self._held.get(tenant, [])

    def _follow(self, topic: str, tenant: str) -> None:
        place = (topic, partition(tenant))
        records, self._at[place] = self._broker.log(*place).fetch(self._at[place], 10_000)
        for record in records:
            owner = (record.key or b"").decode()
            if topic == names.ACCEPTED:
                self._accepted(owner, record.value or b"")
            else:
                sealed, verdict = held_from_bytes(self._world.keyring(), owner, record.value or b"")
                self._held.setdefault(owner, []).append((sealed, verdict.event_id, verdict.content_digest))

    def _accepted(self, tenant: str, value: bytes) -> None:
        landing = landing_from_bytes(self._world.keyring(), tenant, value)
        lying = self._landed.setdefault(tenant, {})
        if not isinstance(landing, Accepted):
            lying.pop(landing.object_id, None)
            return
        said = landing.admission
        lying[said.object_id] = Landed(
            said.object_id, said.version, said.event_id, int(said.tier), said.taint, said.zone, said.content_digest,
            value,
        )  # fmt: skip
