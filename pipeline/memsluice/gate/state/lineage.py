"""What became of an entry's ancestors since it was labelled: Rule 8, asked anew.

A label says what was known when it was given. Whoever lets something in, shares it, brings it back or prolongs it asks
again, by the same rule as for a write that would name these parents now. Farther up, an ancestor counts that is tainted
or out of memory by now; one whose time was simply up does not, as it would not for a write. No ancestor is asked beyond
a label that two reviewers lifted: where that content came from counts no more.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

from memsluice.gate.checks import monitor
from memsluice.gate.checks.duplicates import ENTRY
from memsluice.gate.checks.sessions import CAUSES_MAX
from memsluice.gate.state.rows import TenantRows

ANCESTORS_MAX = 256
"""Ancestors that are asked: one row each. What descends from more than can be asked counts as tainted."""
TOO_MANY = "ancestors:too_many"


def fallen(rows: TenantRows, row: Any, parents: Sequence[str]) -> list[str]:
    """Return why a write of these parents would be tainted now, at most CAUSES_MAX reasons; none: nothing fell.

    ``row`` is the review row or the lineage row of the write: its ``offset`` in the intake (what has an ancestor's id
    and came later is another entry), and whether its label was ``lifted``.
    """
    if row.get("lifted"):
        return []
    causes: list[str] = []
    asked = set(parents)
    waiting = deque((parent, row["offset"], True) for parent in parents)
    while waiting:
        name, before, declared = waiting.popleft()
        known = rows.get(ENTRY, name)
        if known is None or known["offset"] >= before:
            causes += [f"unknown:{name}"] if declared else []
            continue
        found = monitor.of_parent(rows, name)
        if found is not None:
            causes.append(found[0])
        elif not known.get("lifted"):
            above = [one for one in known.get("parents", ()) if one not in asked]
            if len(asked) + len(above) > ANCESTORS_MAX:
                return [TOO_MANY, *causes][:CAUSES_MAX]
            asked.update(above)
            waiting.extend((one, known["offset"], False) for one in above)
    return causes[:CAUSES_MAX]
