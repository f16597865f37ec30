"""The page of groups: which held writes are alike, how many, since when, and what the newest one says."""

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from memsluice.escaping import visible
from memsluice.operations.held.view import name
from memsluice.operations.review.groups import GroupPage, GroupRow
from memsluice.recall.show import duration
from memsluice.terminal.keys import OF_GROUPS
from memsluice.terminal.page import Page, asked
from memsluice.terminal.reading import Reading
from memsluice.terminal.wrapping import Row, Run, clipped

PAGE = 50
BARS = " ▁▂▃▄▅▆▇█"
PREVIEW_CHARS = 280


class Groups(Page):
    """The groups that the filter finds, the one that grew last first."""

    KEY_LINES = OF_GROUPS
    FOOT: ClassVar[str] = "Enter open  j k move  / filter  u undo  ? help  q leave"

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[GroupRow] = []
        self._more: GroupPage | None = None
        self._current = self._nothing = ""
        self._behind: list[str] = []
        self._starts: list[range] = []

    def on_mount(self) -> None:
        """Show what the index has, and read on."""
        super().on_mount()
        self.later(self.look())
        self.later(self.desk.read_on(aloud=True))

    def title_now(self) -> str:
        """Return where this is, what is asked for, and as of when."""
        many = f"{len(self.groups)}{'+' if self._more is not None and self._more.after else ''} groups"
        return f"memsluice review  {many}: {asked(self.desk.wanted)}  {self.desk.as_of()}"

    async def look(self, *, again: bool = False) -> None:
        """Ask the index for the groups; the current one stays it. ``again``: as many as were shown before."""
        limit = max(PAGE, len(self.groups)) if again else PAGE
        page = await asyncio.to_thread(self.desk.index.groups, self.desk.wanted, tenants=None, limit=limit)
        self.groups, self._more = list(page.groups), page
        if not self.groups and self.desk.knows:
            self._nothing = await asyncio.to_thread(self.desk.nothing_found)
            self.say(self._nothing, "warn")
        elif self._nothing and self.desk.said[0] == self._nothing:
            self.say("")
        self._lay()

    async def _look_further(self) -> None:
        if self._more is None or self._more.after is None:
            return
        page = await asyncio.to_thread(
            self.desk.index.groups, self.desk.wanted, tenants=None, after=self._more.after, limit=PAGE
        )
        known = {group.id for group in self.groups}
        self.groups += [group for group in page.groups if group.id not in known]
        self._more = page
        self._lay()

    def following(self, group_id: str) -> GroupRow | None:
        """Return the group that stood behind one when that was opened, and still waits; None behind the last."""
        there = {group.id: group for group in self.groups}
        self._behind = [one for one in self._behind if one in there and one != group_id]
        if not self._behind:
            return None
        self._current = self._behind.pop(0)
        return there[self._current]

    def on_sheet_widened(self) -> None:
        """Lay the lines out for the new width."""
        self._lay()

    def _lay(self) -> None:
        cells = self.sheet.cells
        if cells <= 0:
            return
        rows, self._starts = list[Row](), []
        now_ms = self.desk.clock()
        for number, group in enumerate(self.groups):
            told = _told(group, now_ms)
            self._starts.append(range(len(rows), len(rows) + len(told) + 1))
            rows += [Row(clipped(runs, cells), number, at == 0) for at, runs in enumerate(told)]
            rows.append(Row((), number))
        self.sheet.put(rows, cells)
        self.sheet.go(self._at())
        self.told()

    def _at(self) -> int:
        ids = [group.id for group in self.groups]
        return ids.index(self._current) if self._current in ids else min(0, len(ids) - 1)

    def _go(self, number: int) -> None:
        if not self.groups:
            return
        number = max(0, min(number, len(self.groups) - 1))
        self._current = self.groups[number].id
        self.sheet.go(number)
        self.sheet.show(self._starts[number])
        if number >= len(self.groups) - 2:
            self.later(self._look_further())

    def key_to_next(self) -> None:
        """To the next group."""
        self._go(self._at() + 1)

    def key_to_previous(self) -> None:
        """To the group before."""
        self._go(self._at() - 1)

    def key_to_top(self) -> None:
        """To the first group."""
        self._go(0)

    def key_to_bottom(self) -> None:
        """To the last group that was asked for."""
        self._go(len(self.groups) - 1)

    def scrolled(self, lines: int) -> None:
        """Scroll; the current group comes along."""
        super().scrolled(lines)
        shown = self.sheet.lines_shown
        if self._starts and not set(self._starts[self._at()]) & set(shown):
            wanted = [number for number, span in enumerate(self._starts) if span.start >= shown.start]
            self._current = self.groups[wanted[0] if wanted else -1].id
            self.sheet.go(self._at())

    def key_to_open(self) -> None:
        """Open the current group."""
        if self.groups:
            group = self.groups[self._at()]
            self._current = group.id
            self._behind = [one.id for one in self.groups[self._at() + 1 :]]
            self.app.push_screen(Reading(group))

    def key_to_reload(self) -> None:
        """Read on, and ask anew."""
        self.later(self.desk.read_on(aloud=True))

    def key_to_back(self) -> None:
        """Leave."""
        self.desk.leave()


def _told(group: GroupRow, now_ms: int) -> Sequence[list[Run]]:
    """Return the lines of a group."""
    example = group.example.seen
    differs = ", ".join(f"{field} ({count})" for field, count in group.differs.items())
    states = ", ".join(f"{count} {state}" for state, count in group.states.most_common() if count != group.count)
    since = f"{duration(now_ms - group.first_ms)} to {duration(now_ms - group.last_ms)} ago"
    return (
        [(f"{group.count} × ", "bold"), (name(group.reason), "bold"), (f"  {since}  ", ""), (name(group.tenant), "")],
        [(_trend(group.trend), "good"), (f"  key {name(group.kid)}", "dim"),
         (f"  differ in {differs}" if differs else "", "dim"), (f"  of all: {states}" if states else "", "dim")],
        [(visible(example.entry.preview[:PREVIEW_CHARS]), "")],
    )  # fmt: skip


def _trend(counts: Sequence[int]) -> str:
    """Return the counts of the last hours as bars; none is a blank."""
    most = max(counts, default=0)
    if not most:
        return "older than a day"
    return "".join(BARS[-(-count * (len(BARS) - 1) // most)] for count in counts)
