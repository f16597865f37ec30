"""Goes through a store tenant by tenant and zone by zone, and says what it found and did."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from memsluice.errors import ConfigError, StoreError
from memsluice.events.models import Zone
from memsluice.operations.store.place import StorePlace
from memsluice.stores.compare import Difference

NAMED_MAX = 100
"""Objects of a tenant's zone that are named, of each kind; more are counted."""


@dataclass(slots=True)
class Examined:
    """One tenant's zone: objects looked at, how many differ by kind, the first of them, and what was done.

    ``passed_over``: why the rest of it was not looked at, "" where all of it was.
    """

    tenant: str
    zone: Zone
    looked_at: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    named: dict[str, list[str]] = field(default_factory=dict)
    removed: int = 0
    landed: int = 0
    refused: int = 0
    left: Counter[str] = field(default_factory=Counter)
    passed_over: str = ""

    @property
    def harmed(self) -> int:
        """How many differ for another reason than that their time is over."""
        return self.kinds.total() - self.kinds[Difference.EXPIRED.value]

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "tenant": self.tenant,
            "zone": self.zone.value,
            "looked_at": self.looked_at,
            "differs": dict(self.kinds),
            "objects": self.named,
            "removed": self.removed,
            "landed": self.landed,
            "refused": self.refused,
            "left": dict(self.left),
            "passed_over": self.passed_over,
        }


def examine(place: StorePlace, tenant: str | None, *, mend: bool) -> Iterator[Examined]:
    """Yield what was found of each tenant's zone that holds or should hold anything; with ``mend``, mended.

    Of all tenants, one whose part the store refuses is passed over. Raises StoreError where the store answers nothing
    at all, or refuses the tenant that was named.
    """
    for name in place.tenants(tenant):
        for zone in Zone:
            found = Examined(name, zone)
            try:
                _zone(place, found, mend=mend)
            except StoreError as error:
                if tenant is not None:
                    raise
                place.store.tenants()
                found.passed_over = str(error)
            if found.looked_at or found.passed_over:
                yield found


def _zone(place: StorePlace, found: Examined, *, mend: bool) -> None:
    tenant, zone = found.tenant, found.zone
    for compared in place.reconciler.walk(tenant, zone):
        found.looked_at += compared.looked_at
        for object_id, kind in compared.differs.items():
            found.kinds[kind.value] += 1
            if len(ids := found.named.setdefault(kind.value, [])) < NAMED_MAX:
                ids.append(object_id)
        if mend and compared.differs:
            mended = place.reconciler.mend(tenant, zone, compared.differs, search=True)
            found.removed += len(mended.removed)
            found.landed += len(mended.landed)
            found.refused += len(mended.refused)
            found.left.update(kind.value for kind in mended.left.values())


def rebuild(place: StorePlace, tenant: str, *, drop_lost: bool = False) -> int:
    """Drop a tenant's partitions and land again what its log says lies there; return how many objects landed.

    Raises ConfigError, before anything is dropped, where (unless ``drop_lost``) entries lie in the store that could not
    be landed again: memory.accepted.v1 does not reach back to them, or what the logs say of them does not verify.
    NotFound for a tenant that nobody knows.
    """
    place.tenants(tenant)
    if not drop_lost and (lost := place.reconciler.only_in_store(tenant)):
        raise ConfigError(
            f"{lost} entries of the tenant lie in the store and could not be landed again: memory.accepted.v1 no "
            "longer reaches back to them, or the seal key of their records is missing here, or was revoked. Bring a "
            "missing key back, or use `memsluice store repair` instead; to lose these entries, add --drop-lost"
        )
    place.store.drop(tenant)
    return place.reconciler.land_all(tenant)
