"""The page of one group: its held writes whole, one below the other, and the decisions about what was read of them."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from memsluice.events.limits import NAME_CHARS_MAX, REASON_CHARS_MAX
from memsluice.events.models import Action
from memsluice.operations.held.view import name
from memsluice.operations.review.decide import Came, DecisionPlan, DecisionResult, name_of, plan
from memsluice.operations.review.groups import GroupRow
from memsluice.operations.review.noting import CLAIM_S, saying
from memsluice.terminal import desk as desks
from memsluice.terminal.keys import OF_READING
from memsluice.terminal.page import Page
from memsluice.terminal.paper import Leaf, Paper
from memsluice.terminal.previews import counted, preview, told_of, unread
from memsluice.terminal.wrapping import Run

CLAIMED = "review.claimed"
MARKS = {Came.DONE: "=", Came.NO_ANSWER: "…"}
READ, TO_READ, FAILED = "✓", "·", "!"


class Reading(Page):
    """A group. What is decided was on the screen to its end; nothing else gets into a plan."""

    KEY_LINES = OF_READING
    FOOT: ClassVar[str] = "space scroll  r release  x reject  R X what was read  u undo  ? help  q back"

    def __init__(self, group: GroupRow) -> None:
        super().__init__()
        self.group = group
        self.paper = Paper(0)
        self._wrong: list[str] = []
        self._loading = True

    def on_mount(self) -> None:
        """Read the contents."""
        super().on_mount()
        self.later(self.desk.know_signer(self.group.tenant))
        self.later(self._load())

    def title_now(self) -> str:
        """Return what this is, how much of it was read, and who signs."""
        leaves = self.paper.leaves
        read, wait = sum(leaf.read for leaf in leaves), sum(leaf.waits for leaf in leaves)
        loading = ", reading on" if self._loading else ""
        shown = self.sheet.lines_shown
        place = f"line {shown.start + 1}-{shown.stop} of {len(self.paper.rows)}"
        return (
            f"{read} of {len(leaves)} read, {wait} wait{loading}  {place}  {name(self.group.reason)}  "
            f"{name(self.group.tenant)}  {self.desk.as_of()}"
        )

    async def _load(self) -> None:
        """Read the members' contents, the first ones at once; those that stand here already stay."""
        self._loading = True
        rows = await asyncio.to_thread(desks.members, self.desk.index, self.desk.wanted, self.group)
        self.paper = Paper(self.desk.clock(), self._head(len(rows)))
        self._wrong = []
        for part in desks.batches(rows):
            seen, wrong = await self.desk.clerk.ask(partial(desks.read_whole, self.desk.index, part))
            self._wrong += wrong
            self.paper.add(seen)
            if self.sheet.current < 0:
                self.sheet.go(0)
            self.laid()
        self._loading = False
        if self._wrong:
            self.say(f"{len(self._wrong)} of {len(rows)} cannot be read, and are not shown: {self._wrong[0]}", "bad")
        self.laid()

    def _head(self, many: int) -> Sequence[Run]:
        group = self.group
        more = f", of which {many} stand here: the others follow" if group.count > many else ""
        if group.count == 1:
            return [(f"1 held write of {name(group.tenant)}, key {name(group.kid)}", "bold")]
        differs = ", ".join(f"{field} ({count})" for field, count in group.differs.items())
        return [
            (f"{group.count} held writes of {name(group.tenant)}, key {name(group.kid)}{more}", "bold"),
            (f"they differ in {differs}" if differs else "they differ in nothing but their content", "dim"),
        ]

    def laid(self) -> None:
        """Lay the page out, and put it onto the screen; the current one stays in its place there."""
        cells, number = self.sheet.cells, self.sheet.current
        if cells <= 0:
            return
        if 0 <= number < len(self.paper.leaves) and self.paper.rows:
            offset = self.sheet.lines_shown.start - self.paper.span(number).start
            self.paper.lay(cells)
            self.sheet.put(self.paper.rows, cells)
            self.sheet.turn(self.paper.span(number).start + offset if cells == self.paper.width else 0)
        else:
            self.paper.lay(cells)
            self.sheet.put(self.paper.rows, cells)
        self.told()

    def on_sheet_widened(self) -> None:
        """Lay the lines out for the new width."""
        self.laid()

    def mark(self, item: int) -> str:
        """Return what a held write's first line begins with: what became of it, or whether it was read."""
        if item >= len(self.paper.leaves):
            return " "  # the page is being read anew, and the lines of before still stand there
        leaf = self.paper.leaves[item]
        if leaf.came is not None:
            return MARKS.get(leaf.came, FAILED)
        return READ if leaf.read else TO_READ

    def painted(self, first: int, end: int) -> None:
        """Take that lines were on the screen."""
        if self.paper.paint(first, end):
            self.call_after_refresh(self._marked)

    def _marked(self) -> None:
        self.sheet.refresh()
        self.told()

    @property
    def current(self) -> Leaf | None:
        """The held write that keys are about."""
        number = self.sheet.current
        return self.paper.leaves[number] if 0 <= number < len(self.paper.leaves) else None

    def _go(self, number: int) -> None:
        if self.paper.leaves:
            number = max(0, min(number, len(self.paper.leaves) - 1))
            self.sheet.go(number)
            self.sheet.show(self.paper.span(number) if number else range(self.paper.span(0).stop))
            self.told()

    def scrolled(self, lines: int) -> None:
        """Scroll; the current one comes along where it leaves the screen."""
        super().scrolled(lines)
        shown = self.sheet.lines_shown
        if self.current is not None and not set(self.paper.span(self.sheet.current)) & set(shown):
            self.sheet.go(self.paper.at(shown.start if lines > 0 else shown.stop - 1))
        self.told()

    def key_to_next(self) -> None:
        """To the next one."""
        self._go(self.sheet.current + 1)

    def key_to_previous(self) -> None:
        """To the one before."""
        self._go(self.sheet.current - 1)

    def key_to_top(self) -> None:
        """To the first one."""
        self._go(0)

    def key_to_bottom(self) -> None:
        """To the last one."""
        self._go(len(self.paper.leaves) - 1)
        self.sheet.turn(len(self.paper.rows) - len(self.sheet.lines_shown))

    def key_to_open(self) -> None:
        """Show all that is known of the current one, or less again."""
        if self.current is not None:
            self.paper.toggle(self.sheet.current)
            self.sheet.put(self.paper.rows, self.paper.width)
            self._go(self.sheet.current)

    def key_to_reload(self) -> None:
        """Read the group anew."""
        self.later(self._reload())

    async def _reload(self) -> None:
        await self.desk.read_on(aloud=True)
        await self.next_ones()

    async def next_ones(self) -> None:
        """Read what waits of the group now."""
        self.sheet.go(-1)
        self.sheet.turn(0)
        await self._load()

    def key_to_back(self) -> None:
        """Back to the groups."""
        self.app.pop_screen()

    def key_to_release(self) -> None:
        """Release the current one."""
        self._one(Action.RELEASE)

    def key_to_reject(self) -> None:
        """Reject the current one."""
        self._one(Action.REJECT)

    def key_to_release_all(self) -> None:
        """Release what was read."""
        self._many(Action.RELEASE, self.paper.leaves)

    def key_to_reject_all(self) -> None:
        """Reject what was read."""
        self._many(Action.REJECT, self.paper.leaves)

    def key_to_despite_claim(self) -> None:
        """Decide about what was refused because others have claimed it, setting the claims aside."""
        those = [leaf for leaf in self.paper.leaves if leaf.refused_for(CLAIMED)]
        actions = {leaf.result.action for leaf in those if leaf.result is not None}
        if not actions:
            self.say("nothing here was refused because another reviewer has claimed it", "warn")
            return
        action = actions.pop()
        self._many(action, [one for one in those if one.result and one.result.action is action], despite_claim=True)

    def _plan(self, action: Action, leaves: Sequence[Leaf], why: str = "") -> DecisionPlan:
        return plan([leaf.seen for leaf in leaves if not leaf.sent], action, self.paper.read(), why)

    def _one(self, action: Action) -> None:
        leaf = self.current
        if leaf is None or self._busy() or self._without_key():
            return
        todo = self._plan(action, [leaf])
        if todo.todo:
            self.surely(self._decide(todo))
        elif leaf.sent:
            self.say("the gate has not answered yet: g reads anew", "warn")
        else:
            self.say(unread(leaf, self.paper.unseen(self.sheet.current), todo), "warn")

    def _many(self, action: Action, leaves: Sequence[Leaf], *, despite_claim: bool = False) -> None:
        if self._busy() or self._without_key():
            return
        todo = self._plan(action, leaves)
        if not todo.todo:
            self.say(f"nothing to {action.value}: {counted(todo) or 'nothing waits here'}; space scrolls on", "warn")
            return

        def signed(why: str) -> None:
            if not self._busy():
                self.surely(self._decide(self._plan(action, leaves, why), despite_claim=despite_claim))

        lines = preview(todo, self.desk.clock(), despite_claim=despite_claim, signer=self.desk.signer)
        foot = "Enter: sign   Esc: back   PgDn: scroll"
        self.ask(lines, "why (others read it in the audit):", signed, foot=foot, chars_max=REASON_CHARS_MAX)

    def _busy(self) -> bool:
        if self.desk.busy:
            self.say(f"one decision at a time: {self.desk.busy}", "warn")
        return bool(self.desk.busy)

    def _without_key(self) -> bool:
        """Whether no key signs here; it is looked for again, since somebody may have made one meanwhile."""
        if not self.desk.signer:
            self.later(self.desk.know_signer(self.group.tenant))
        return not self.desk.signer

    async def _decide(self, todo: DecisionPlan, *, despite_claim: bool = False) -> None:
        """Sign, wait for the gate, show what became of each, and go on to what waits."""
        by_name = {leaf.name: leaf for leaf in self.paper.leaves}
        results = await self.desk.decide(todo, despite_claim=despite_claim)
        for one in results:
            leaf = by_name.get(name_of(one.seen.entry))
            if leaf is not None:
                leaf.decided(one, told_of(one))
        await self.freshen()
        if self.is_active and all(one.came is Came.DONE for one in results):
            self._advance()

    async def freshen(self) -> None:
        """Take what became of those that stand here since, by the index; nothing where this page was left."""
        if not self.is_attached:
            return
        self.laid()
        for leaf in self.paper.leaves:
            fresh = await asyncio.to_thread(desks.now_of, self.desk.index, leaf.seen)
            leaf.replaced(fresh)
        if self.is_attached:
            self.laid()

    def _advance(self) -> None:
        """Go on to the next one that waits; behind the last to the group's others, or to the next group."""
        number = self.sheet.current
        order = [*range(number, len(self.paper.leaves)), *range(max(0, number))]
        waiting = [at for at in order if self.paper.leaves[at].waits and not self.paper.leaves[at].sent]
        if waiting:
            self._go(waiting[0])
        elif not self._loading:
            self.later(self._go_on())

    async def _go_on(self) -> None:
        rows = await asyncio.to_thread(desks.members, self.desk.index, self.desk.wanted, self.group)
        if any(name_of(row.seen.entry) not in {leaf.name for leaf in self.paper.leaves} for row in rows):
            await self.next_ones()
        elif self.is_active:
            self.desk.next_group(self.group)

    def key_to_skip(self) -> None:
        """Go on without deciding: to the next one that waits, behind the last to the next group."""
        after = range(self.sheet.current + 1, len(self.paper.leaves))
        waiting = [at for at in after if self.paper.leaves[at].waits and not self.paper.leaves[at].sent]
        if waiting:
            self._go(waiting[0])
        elif not self._loading:
            self.later(self._go_on())

    def key_to_claim(self) -> None:
        """Claim the current one, or give it back."""
        leaf = self.current
        if leaf is not None:
            mine = leaf.seen.claimed_by(self.desk.clock()) == self.desk.signer and self.desk.signer
            self.surely(self._note(leaf, "", saying(claim_s=0 if mine else CLAIM_S)))

    def key_to_note(self) -> None:
        """Note something about the current one."""
        leaf = self.current
        if leaf is not None:
            lines: list[Run] = [
                (f"A note about {name(leaf.seen.entry.event_id)}", "bold"),
                ("It is signed, and stays in the audit when the write is gone: write no memory content into it.", ""),
            ]
            foot = "Enter: sign   Esc: back"
            later = lambda text: self.surely(self._note(leaf, text, {}))  # noqa: E731
            self.ask(lines, "note:", later, foot=foot, chars_max=REASON_CHARS_MAX)

    def key_to_assign(self) -> None:
        """Assign the current one."""
        leaf = self.current
        if leaf is not None:
            lines: list[Run] = [
                (f"Assign {name(leaf.seen.entry.event_id)}", "bold"),
                ("To a reviewer, by name or key id; - is nobody.", ""),
            ]
            foot = "Enter: sign   Esc: back"
            later = lambda text: self.surely(self._note(leaf, "", saying(assignee=text)))  # noqa: E731
            self.ask(lines, "assign to:", later, foot=foot, chars_max=NAME_CHARS_MAX)

    async def _note(self, leaf: Leaf, text: str, said: dict[str, str]) -> None:
        if self._busy():
            return
        one: DecisionResult = await self.desk.note(leaf.seen, text, said)
        words, style = told_of(one)
        self.say(f"{name(leaf.seen.entry.event_id)}: {words}", style)
        await self.freshen()
