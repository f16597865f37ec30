"""What a run on the real stack left behind, read from every topic and from the store, and whether the sides agree."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import held_from_bytes, verdict_from_bytes
from memsluice.envelope.seals import sealed_from_bytes
from memsluice.envelope.verdict import Verdict
from memsluice.events.models import Zone
from memsluice.events.names import DEAD_LETTER_HEADER
from memsluice.recall.freshness import verified
from memsluice.stores.base import UPSERT_MAX
from memsluice.stores.weaviate.store import WeaviateStore
from memsluice.topics import names
from memsluice_lab.figures.bed import Bed, Place, messages

Object = tuple[str, Zone, str]
"""Tenant, zone and object id."""


@dataclass(slots=True)
class Ledger:
    """Everything that became of the intake, by intake place; every seal on the way was verified while reading."""

    sealed: Counter[Place] = field(default_factory=Counter)
    """How often each intake record was sealed (more than once after a re-delivery)."""
    verdicts: dict[Place, Verdict] = field(default_factory=dict)
    contradictions: list[Place] = field(default_factory=list)
    """Intake places with two different verdicts."""
    repeated: int = 0
    """Verdicts emitted again, byte for byte."""
    dead: dict[Place, list[Any]] = field(default_factory=dict)
    """Dead letters (messages; several where the original was large) by the place of their original."""
    held: set[Place] = field(default_factory=set)
    published: dict[Object, int] = field(default_factory=dict)
    """Objects and versions by memory.store.v1."""
    stored: dict[Object, int] = field(default_factory=dict)
    """Objects and versions that the store has, of those that a verdict names."""
    stored_count: int = 0
    """Objects in the store, whoever put them there."""

    def expected(self) -> dict[Object, int]:
        """Return objects and versions that the verdicts ask for, without those that a later verdict takes out again."""
        wanted = self.asked_for()
        gone = self.withdrawn()
        return {name: version for name, version in wanted.items() if version > gone.get(name, -1)}

    def asked_for(self) -> dict[Object, int]:
        """Return objects and versions that some verdict asked for."""
        wanted: dict[Object, int] = {}
        for verdict in self.verdicts.values():
            if verdict.object_id is not None and verdict.zone is not None:
                name = (verdict.tenant, verdict.zone, verdict.object_id)
                wanted[name] = max(wanted.get(name, -1), verdict.sealed_offset)
        return wanted

    def withdrawn(self) -> dict[Object, int]:
        """Return objects that a verdict takes out (look back, at a recall), and the version that this makes."""
        gone: dict[Object, int] = {}
        for verdict in self.verdicts.values():
            for one in verdict.withdraws:
                name = (verdict.tenant, one.zone, one.object_id)
                gone[name] = max(gone.get(name, -1), verdict.sealed_offset)
        return gone

    def taken_out(self) -> int:
        """Return how many objects were asked for, and taken out by a later verdict."""
        return len(self.asked_for()) - len(self.expected())

    def decisions(self, *, event_type: str = "memory.write.v1") -> Counter[str]:
        """Count verdicts on one type of event by decision."""
        return Counter(v.decision for v in self.verdicts.values() if v.type == event_type)

    def lost(self, intake: Iterable[Place]) -> list[str]:
        """Name every genuine intake record without a verdict, or with a dead letter, and every object asked for and not
        there."""
        missing = [
            f"{place} is a dead letter" if place in self.dead else f"{place} has no verdict"
            for place in intake
            if place in self.dead or place not in self.verdicts
        ]
        missing += [
            f"{name} lacks version {version}, has {self.stored.get(name)}"
            for name, version in self.expected().items()
            if self.stored.get(name) != version
        ]
        return missing

    def doubled(self) -> int:
        """Return contradicting verdicts, plus objects in the store that no verdict asked for."""
        return len(self.contradictions) + self.stored_count - len(self.stored)


def read(bed: Bed) -> Ledger:
    """Read the whole ledger. Raises SealError where a record between stages does not verify."""
    keyring, ledger = bed.store.keyring(), Ledger()
    for message in messages(bed, names.SEALED):
        sealed = sealed_from_bytes(keyring, (message.key() or b"").decode(), message.value())
        ledger.sealed[(sealed.position.topic, sealed.position.partition, sealed.position.offset)] += 1
    _verdicts(bed, keyring, ledger)
    for message in messages(bed, names.DEAD_LETTER):
        name, why = message.headers()[-1]
        if name == DEAD_LETTER_HEADER:
            ledger.dead.setdefault(_place(orjson.loads(why)), []).append(message)
    for message in messages(bed, names.QUARANTINE):
        _sealed, verdict = held_from_bytes(keyring, message.key().decode(), message.value())
        ledger.held.add(verdict.intake)
    for message in messages(bed, names.STORE):
        stored = verified(keyring, message.value())
        if stored is not None and not stored.withdrawn:
            name = (stored.tenant, Zone(stored.zone), stored.object_id)
            ledger.published[name] = max(ledger.published.get(name, -1), stored.version)
    _stored(bed, ledger)
    return ledger


def _place(value: dict[str, Any]) -> Place:
    return str(value["topic"]), int(value["partition"]), int(value["offset"])


def _verdicts(bed: Bed, keyring: Keyring, ledger: Ledger) -> None:
    raw: dict[Place, bytes] = {}
    for message in messages(bed, names.AUDIT):
        value = message.value()
        verdict = verdict_from_bytes(keyring, message.key().decode(), value)
        place = verdict.intake
        if place not in raw:
            raw[place], ledger.verdicts[place] = value, verdict
        elif raw[place] == value:
            ledger.repeated += 1
        else:
            ledger.contradictions.append(place)


def _stored(bed: Bed, ledger: Ledger) -> None:
    store = WeaviateStore.of(bed.connection, names.WEAVIATE_ADMIN)
    try:
        wanted = sorted(ledger.expected())
        for tenant in store.tenants():
            for zone in Zone:
                ledger.stored_count += store.count(tenant, zone)
                ids = [object_id for owner, where, object_id in wanted if (owner, where) == (tenant, zone)]
                for start in range(0, len(ids), UPSERT_MAX):
                    found = store.versions(tenant, zone, ids[start : start + UPSERT_MAX])
                    ledger.stored |= {(tenant, zone, object_id): version for object_id, version in found.items()}
    finally:
        store.close()
