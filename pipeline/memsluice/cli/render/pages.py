"""Pages of the index of held writes, and groups, as text and JSON. What a producer chose went through ``visible``."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from memsluice.cli.render.held import PREVIEW_SHOWN, STYLES, indented, one_as_data
from memsluice.escaping import visible
from memsluice.operations.held.entries import HeldState
from memsluice.operations.held.view import name
from memsluice.operations.review.groups import GroupPage, GroupRow
from memsluice.operations.review.index import COUNTED_MAX, HeldPage
from memsluice.operations.review.rows import HeldRow
from memsluice.recall.show import duration

BARS = "▁▂▃▄▅▆▇█"
NONE = "·"
DIFFERS_AS = {"reasons": "sets of reasons", "tier": "tiers", "taint": "taint", "policy": "policies"}
"""How a field of several values is counted in words; of the others an s is added."""


def row_as_data(row: HeldRow, now_ms: int) -> dict[str, Any]:
    """Return an entry of the index as JSON values: those of a listing, its group and the length of its content."""
    return {**one_as_data(row.seen, now_ms, whole=False), "group": row.group, "chars": row.chars}


def page_as_data(
    page: HeldPage, total: int, unverified: int, hints: Sequence[str], now_ms: int
) -> dict[str, Any]:  # fmt: skip
    """Return a page as JSON values. ``found`` counts up to COUNTED_MAX; ``found_more`` says that there are more."""
    return {
        "entries": [row_as_data(row, now_ms) for row in page.rows],
        "found": min(page.found, COUNTED_MAX),
        "found_more": page.found > COUNTED_MAX,
        "read": total,
        "unverified": unverified,
        "after": None if page.after is None else str(page.after),
        "hints": list(hints),
    }


def group_as_data(group: GroupRow, now_ms: int) -> dict[str, Any]:
    """Return a group as JSON values; ``trend`` counts members by hour, the present one last."""
    return {
        "group": group.id,
        "tenant": group.tenant,
        "reason": group.reason,
        "kid": group.kid,
        "count": group.count,
        "first_ms": group.first_ms,
        "last_ms": group.last_ms,
        "states": dict(group.states),
        "trend": list(group.trend),
        "differs": group.differs,
        "chars": list(group.chars),
        "example": row_as_data(group.example, now_ms),
    }


def groups_as_data(page: GroupPage, unverified: int, hints: Sequence[str], now_ms: int) -> dict[str, Any]:
    """Return a page of groups as JSON values."""
    return {
        "groups": [group_as_data(one, now_ms) for one in page.groups],
        "unverified": unverified,
        "after": None if page.after is None else str(page.after),
        "hints": list(hints),
    }


def sparkline(counts: Iterable[int]) -> str:
    """Return a bar for each count, the highest for the largest; a point stands for none."""
    those = list(counts)
    most = max(those, default=0)
    return "".join(NONE if not one else BARS[(one * len(BARS) - 1) // most] for one in those)


def groups(page: GroupPage, now_ms: int) -> RenderableType:
    """Return the list: of each group its id, how many, since when and how they come, then why, and an example."""
    return Group(*(part for one in page.groups for part in heading(one, now_ms)))


def heading(group: GroupRow, now_ms: int) -> list[RenderableType]:
    """Return what is said of one group before its members."""
    first, last = (duration(now_ms - moment) for moment in (group.first_ms, group.last_ms))
    many = "1 write" if group.count == 1 else f"{group.count} writes"
    line = Text.assemble((group.id, "bold"), f"  {name(group.tenant)}  {many}: ")
    for number, (state, count) in enumerate(group.states.most_common()):
        line.append(", " if number else "")
        line.append(f"{count} {state}", style=STYLES[HeldState(state)])
    held = f"held {first} ago" if group.count == 1 else f"first {first} ago, last {last} ago"
    entry = group.example.seen.entry
    cut = "…" if group.example.chars > PREVIEW_SHOWN else ""
    return [
        line,
        indented(f"{group.reason}  by {name(group.kid)}  {sparkline(group.trend)}  {held}"),
        indented(visible(entry.preview[:PREVIEW_SHOWN]) + cut, "dim"),
        *([indented(f"differ in: {differing}", "dim")] if (differing := _differing(group)) else []),
    ]


def _differing(group: GroupRow) -> str:
    counted = [f"{count} {DIFFERS_AS.get(field, f'{field}s')}" for field, count in group.differs.items()]
    least, most = group.chars
    return ", ".join([*counted, *([f"{least} to {most} characters"] if least != most else [])])
