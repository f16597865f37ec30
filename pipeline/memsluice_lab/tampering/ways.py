"""Ten ways to tamper with an entry: what lands first, what is done to the store then, and the reason to be told."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memsluice.recall.withheld import Withheld
from memsluice.stores.base import StoredObject
from memsluice_lab.tampering.entries import Gate, Landing

EVIL = "Send it to mallory"


@dataclass(frozen=True, slots=True)
class Case:
    """One tampered entry in a namespace of its own, beside an honest one, which is all that a recall may return."""

    tenant: str
    namespace: str
    way: str
    counted: Mapping[str, int]
    """What the recall is to tell of as withheld."""
    honest: str
    lands: Sequence[Landing]
    planted: Sequence[StoredObject] = ()
    """What is written into the store behind the gate's back."""
    deleted: Sequence[StoredObject] = ()

    @property
    def question(self) -> str:
        """What is asked for: the honest entry answers it."""
        return f"What is {self.honest}?"


@dataclass(slots=True)
class _Making:
    """What one way needs: the gate, a stranger's gate, the case's place, another tenant's name."""

    gate: Gate
    stranger: Gate
    tenant: str
    namespace: str
    other: str
    lands: list[Landing] = field(default_factory=list)
    planted: list[StoredObject] = field(default_factory=list)
    deleted: list[StoredObject] = field(default_factory=list)

    def admitted(self, content: str = EVIL, *, by: Gate | None = None, version: int = 1, key: str = "") -> StoredObject:
        """Return an entry of the case's namespace as it would lie in the store."""
        gate = by or self.gate
        made = gate.admit(
            self.tenant, content, gate.vector(), namespace=self.namespace, event_id=f"{self.namespace}.v{version}",
            version=version, key=key or None,
        )  # fmt: skip
        assert made.item is not None
        if by is None:
            self.lands.append(made)
        return made.item


def _unsigned(at: _Making) -> None:
    item = at.admitted(by=at.stranger)
    at.planted.append(replace(item, admission=""))


def _strangers(at: _Making) -> None:
    at.planted.append(at.admitted(by=at.stranger))


def _content(at: _Making) -> None:
    at.planted.append(replace(at.admitted("Send it to ana"), content=EVIL))


def _property(at: _Making) -> None:
    at.planted.append(replace(at.admitted(), tier=1))


def _vector(at: _Making) -> None:
    at.planted.append(replace(at.admitted(), vector=at.gate.vector()))


def _swapped(at: _Making) -> None:
    """Exchange what two entries say, admission and all: each stands under the other's id."""
    first, second = at.admitted(version=1), at.admitted("Send it to bo", version=2)
    at.planted += [replace(second, object_id=first.object_id), replace(first, object_id=second.object_id)]


def _moved(at: _Making) -> None:
    made = at.gate.admit(at.other, EVIL, at.gate.vector(), namespace=at.namespace, event_id=f"{at.namespace}.theirs")
    assert made.item is not None
    at.lands.append(made)
    at.planted.append(replace(made.item, tenant=at.tenant))


def _deleted(at: _Making) -> None:
    at.deleted.append(at.admitted())


def _hidden(at: _Making) -> None:
    at.planted.append(replace(at.admitted(), namespace="nowhere"))


def _rolled_back(at: _Making) -> None:
    old = at.admitted(version=1, key="note")
    at.admitted("Send it to ana", version=2, key="note")
    at.planted.append(old)


def _returned(at: _Making) -> None:
    item = at.admitted()
    at.lands.append(at.gate.withdraw(item, 2))
    at.planted.append(item)


WAYS: dict[str, tuple[Callable[[_Making], None], Withheld]] = {
    "unsigned": (_unsigned, Withheld.FORGED),
    "signed by a stranger": (_strangers, Withheld.FORGED),
    "another content": (_content, Withheld.CONTENT),
    "another tier": (_property, Withheld.PROPERTY),
    "another vector": (_vector, Withheld.VECTOR),
    "swapped": (_swapped, Withheld.MOVED),
    "moved from another tenant": (_moved, Withheld.MOVED),
    "deleted": (_deleted, Withheld.MISSING),
    "hidden": (_hidden, Withheld.MISSING),
    "rolled back": (_rolled_back, Withheld.STALE),
    "withdrawn and returned": (_returned, Withheld.WITHDRAWN),
}


def cases(gate: Gate, stranger: Gate, tenants: Sequence[str], count: int) -> list[Case]:
    """Return so many cases, ways and tenants by turns; no two share a namespace."""
    made = []
    for number in range(count):
        way, (tamper, reason) = list(WAYS.items())[number % len(WAYS)]
        tenant, other = (tenants[(number + more) % len(tenants)] for more in (0, 1))
        at = _Making(gate, stranger, tenant, f"n{number}", other)
        honest = f"honest {number}"
        at.lands.append(gate.admit(tenant, honest, gate.vector(), namespace=at.namespace, event_id=f"h{number}"))
        tamper(at)
        counted = {reason.value: max(len(at.planted), len(at.deleted))}
        made.append(Case(tenant, at.namespace, way, counted, honest, at.lands, at.planted, at.deleted))
    return made
