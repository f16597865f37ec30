"""How many entries of each kind the index has: counted in one pass, and again only once something changed or lapsed."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock

from memsluice.operations.review.database import Database
from memsluice.operations.review.groups import STATE_NOW

KINDS = ("tenant", "reason", "state", "channel", "policy")
"""What is counted, as fields of a query."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Entries that are alike in KINDS: how many, and when the oldest was held (Unix ms). ``reason`` has all of their
    codes, with blanks between."""

    tenant: str
    reason: str
    state: str
    channel: str
    policy: str
    count: int
    oldest_ms: int


class Tally:
    """The counts of a file. They are kept while its entries stay as they are, and none of them lapses meanwhile.

    Every open page asks after each change, each from a thread of its own: one of them counts, the others wait for it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._counting = Lock()
        self._kept: tuple[int, int | None, tuple[Kind, ...]] | None = None

    def kinds(self, now_ms: int, tenants: frozenset[str] | None) -> Iterator[Kind]:
        """Yield the kinds of entries of these tenants (None: of all) at a time (Unix ms).

        Raises StateError and ConfigError, as any question does.
        """
        return (one for one in self._counted(now_ms) if tenants is None or one.tenant in tenants)

    def values(self, field: str, now_ms: int, tenants: frozenset[str] | None) -> list[tuple[str, int]]:
        """Return the values of a field of KINDS, and of how many entries, the most frequent first."""
        counts = Counter[str]()
        for one in self.kinds(now_ms, tenants):
            value: str = getattr(one, field)
            for part in value.split() if field == "reason" else [value]:
                counts[part] += one.count
        return sorted(counts.items(), key=lambda found: (-found[1], found[0]))

    def _counted(self, now_ms: int) -> tuple[Kind, ...]:
        with self._counting:
            return self._kept_or_counted(now_ms)

    def _kept_or_counted(self, now_ms: int) -> tuple[Kind, ...]:
        version, kept = self._database.version, self._kept
        if kept is not None and kept[0] == version and (kept[1] is None or now_ms < kept[1]):
            return kept[2]
        found = self._database.rows(
            f"SELECT tenant, reasons, {STATE_NOW}, channel, policy, count(*), min(held_ms) FROM entries "  # noqa: S608
            "GROUP BY 1, 2, 3, 4, 5",
            (now_ms,),
        )
        ((lapses_ms,),) = self._database.rows("SELECT min(until_ms) FROM entries WHERE until_ms > ?", (now_ms,))
        kinds = tuple(Kind(*one) for one in found)
        self._kept = version, lapses_ms, kinds
        return kinds
