"""A tenant's rows of kind ``detect`` as they are read back: which of them count, and which are left over.

A policy that lowers a bound leaves rows over. They never count again, also not once the bound is higher: row ``b0``
says from which number on questions (``q``) and entries (``e``) do, and numbers go on from there. They are deleted a few
at a time with the events that follow, so that no event has to write thousands of rows.
"""

from dataclasses import dataclass
from typing import Any

from memsluice.envelope.codec import row_load
from memsluice.gate.state.rows import TenantRows, row_key

KIND = "detect"
ROWS_MAX = 32_768
"""Rows of one kind that are read: three times the highest bound that a policy may set."""
DELETED_MAX = 32
"""Rows left over that one event deletes."""


@dataclass(frozen=True, slots=True)
class Surplus:
    """``first``: the least number that counts, of questions and of entries. ``rows``: ids of rows that are left over.

    ``told`` is whether row ``b0`` says so.
    """

    first: tuple[int, int] = (0, 0)
    rows: tuple[str, ...] = ()
    told: bool = True

    def reduced(self, rows: TenantRows) -> "Surplus":
        """Return what is left over after one more event, which deletes some of it."""
        if not self.told:
            rows.put(KIND, "b0", dict(zip("qe", self.first, strict=True)))
        for name in self.rows[:DELETED_MAX]:
            rows.delete(KIND, name)
        return Surplus(self.first, self.rows[DELETED_MAX:])


@dataclass(frozen=True, slots=True)
class Stored:
    """Rows by number, in order of their numbers: of an entry its own and its values'. ``single``: ``h0`` and ``c0``."""

    questions: dict[int, Any]
    entries: dict[int, tuple[Any, Any]]
    single: dict[str, Any]
    surplus: Surplus


def read(rows: Any, tenant: str, questions_max: int, entries_max: int) -> Stored:
    """Read what a tenant's state rows hold; the youngest ``questions_max`` and ``entries_max`` count."""
    found = {kind: _numbered(rows, tenant, kind) for kind in "qev"}
    single = {name: row_load(rows.get(row_key(tenant, KIND, name)) or b"null") for name in ("h0", "c0", "b0")}
    floor = single["b0"] or {"q": 0, "e": 0}
    asked = [number for number in found["q"] if number >= floor["q"]]
    landed = [number for number in found["e"] if number >= floor["e"] and number in found["v"]]
    first = (floor["q"], floor["e"])
    over = len(asked) > questions_max or len(landed) > entries_max
    if over:
        asked, landed = asked[-questions_max:], landed[-entries_max:]
        first = (min(asked, default=first[0]), min(landed, default=first[1]))
    kept = {"q": set(asked), "e": set(landed), "v": set(landed)}
    left = tuple(f"{kind}{number}" for kind in "qev" for number in found[kind] if number not in kept[kind])
    return Stored(
        {number: found["q"][number] for number in asked},
        {number: (found["e"][number], found["v"][number]) for number in landed},
        single,
        Surplus(first, left, told=not over),
    )


def _numbered(rows: Any, tenant: str, kind: str) -> dict[int, Any]:
    found = rows.scan(row_key(tenant, KIND, kind), ROWS_MAX)
    some = {int(key.rsplit(b"\0", 1)[1][1:]): row_load(value) for key, value in found}
    return dict(sorted(some.items()))
