"""``memsluice review`` as an application: the pages, what was said and decided, and what is asked of the desk."""

import asyncio
import difflib
import signal
from contextlib import suppress
from typing import ClassVar

from textual.app import App

from memsluice.clock import Clock, wall_ms
from memsluice.errors import ConfigError, MemsluiceError
from memsluice.escaping import visible
from memsluice.operations.held.collect import HeldReview
from memsluice.operations.held.desk import HeldDesk
from memsluice.operations.review.decide import Came, DecisionPlan, DecisionResult, decide, taken_back
from memsluice.operations.review.groups import GroupRow
from memsluice.operations.review.index import VALUES_OF, ReviewIndex
from memsluice.operations.review.noting import note
from memsluice.operations.review.query import HeldQuery
from memsluice.recall.show import duration
from memsluice.terminal.clerk import Clerk
from memsluice.terminal.groups import Groups
from memsluice.terminal.page import Page
from memsluice.terminal.previews import results_told, summed
from memsluice.terminal.reading import Reading
from memsluice.terminal.wrapping import Run

RUNS_MAX = 100
"""Decisions that can still be taken back, or looked at."""
Saying = tuple[str, str]


class ReviewApp(App[None]):
    """The application. ``feed_s`` is how often the topics are read on, in seconds; 0 is never.

    After it ended, ``unheard`` is of how many commands the gate's answer is not known, and ``signalled`` says that a
    signal ended it.
    """

    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False
    CSS = "Screen { background: ansi_default; color: ansi_default; }"
    BINDINGS: ClassVar = [("ctrl+c", "leave_now", ""), ("ctrl+q", "leave_now", "")]

    def __init__(
        self, clerk: Clerk, index: ReviewIndex, query: HeldQuery, *, wait_s: float, feed_s: float = 5.0,
        clock: Clock = wall_ms,
    ) -> None:  # fmt: skip
        super().__init__(ansi_color=True)
        self.clerk, self.index, self.query, self.clock = clerk, index, query, clock
        self._wait_s, self._feed_s = wait_s, feed_s
        self.said: Saying = ("reading the quarantine and the audit", "")
        self.busy = ""
        self.signer = ""
        self.runs: list[list[DecisionResult]] = []
        self.unheard = 0
        self.signalled = False
        self.failed: Exception | None = None
        self._lost = ""
        self._groups = Groups()

    def on_mount(self) -> None:
        """Show the groups, and go on reading what comes."""
        self.push_screen(self._groups)
        if self._feed_s:
            self.set_interval(self._feed_s, self._tick)
        for number in (signal.SIGTERM, signal.SIGHUP):
            with suppress(NotImplementedError, RuntimeError, ValueError):  # not in the main thread
                asyncio.get_running_loop().add_signal_handler(number, self._signalled)

    def _signalled(self) -> None:
        self.signalled = True
        self.exit()

    def _handle_exception(self, error: Exception) -> None:
        """End with what is wrong: the command line says it. A trace on the screen would show content."""
        self.failed = self.failed or error
        if self.is_headless:
            super()._handle_exception(error)
        else:
            self.exit()

    def say(self, text: str, style: str = "") -> None:
        """Say something at the foot of every page."""
        self.said = (text, style)
        for screen in self.screen_stack:
            if isinstance(screen, Page):
                screen.told()

    def as_of(self) -> str:
        """Return up to when the topics were read, and what keeps them from being read on."""
        fed_ms = self._fed_ms()
        when = "nothing was read yet" if fed_ms is None else f"as of {duration(self.clock() - fed_ms)} ago"
        return f"{when}, {self._lost}" if self._lost else when.replace("as of now ago", "as of now")

    @property
    def knows(self) -> bool:
        """Whether the topics were ever read to their ends."""
        return self._fed_ms() is not None

    def _fed_ms(self) -> int | None:
        with suppress(MemsluiceError):
            return self.index.fed_ms
        return None

    async def _tick(self) -> None:
        if not self.clerk.others_wait and not self.busy:
            self.run_worker(self.read_on(), exclusive=True, group="feeding")

    async def read_on(self, *, aloud: bool = False) -> None:
        """Read what the topics hold since the last time. What keeps it from that is said, and nothing is lost."""
        try:
            await self.clerk.ask(self._feed)
        except (MemsluiceError, OSError) as error:
            self._lost = "reading failed"
            if aloud or self.said[1] != "bad":
                self.say(f"{error}. What was read before is shown; it is tried again", "bad")
        else:
            if self._lost or self.said[0].startswith("reading"):
                self.say("")
            self._lost = ""
            await self._groups.look(again=True)

    def _feed(self, desk: HeldDesk) -> None:
        self.index.feed(desk, ended=lambda: self.clerk.others_wait)

    def query_of(self, text: str) -> HeldQuery:
        """Return the query of what was typed. Raises InvalidArgument, NotFound."""
        if text.startswith("@"):
            return self.index.saved.get(text[1:].strip(), tenants=None)
        return HeldQuery.parse(text, self.clock())

    def look_for(self, text: str) -> None:
        """Look for what was typed, which can be read."""
        self.query = self.query_of(text)
        while len(self.screen_stack) > 1 and self.screen is not self._groups:
            self.pop_screen()
        self.say("")
        self._groups.later(self._groups.look())

    def nothing_found(self) -> str:
        """Return why nothing is found: a value that nothing has, and what it may have been meant for; or so it is."""
        for field in VALUES_OF:
            wanted = getattr(self.query, field, None)
            if field == "state" or not isinstance(wanted, str):
                continue
            known = [value for value, _ in self.index.values(field, tenants=None)]
            if wanted in known or (field == "reason" and any(one.startswith(f"{wanted}.") for one in known)):
                continue
            near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.5)
            hint = f"; did you mean {visible(near[0], 60)}?" if near else ""
            return f"no held write has the {field} {visible(wanted, 60)}{hint}"
        return "nothing waits for a decision" if not self.query.text() else "no held write is as the filter says"

    async def decide(self, todo: DecisionPlan, *, despite_claim: bool = False) -> list[DecisionResult]:
        """Sign and publish a plan's commands, and wait for their answers. Raises ConfigError, BrokerUnavailable."""
        many = len(todo.todo)
        self.busy = f"{many} to {todo.action.value}, waiting for the gate's answer"
        self.say(self.busy)
        try:
            results = await self.clerk.ask(
                lambda desk: decide(
                    desk,
                    todo,
                    self._wait_s,
                    despite_claim=despite_claim,
                    clock=self.clock,
                    monotonic=self.clerk.monotonic,
                )
            )
        finally:
            self.busy = ""
        self.runs = [*self.runs, results][-RUNS_MAX:]
        self.unheard += sum(one.came is Came.NO_ANSWER for one in results)
        done = all(one.came is Came.DONE for one in results)
        after = "" if done else "; l lists them"
        self.say(f"{todo.action.value}: {summed(results)}{after}", "good" if done else "bad")
        await self.read_on()
        return results

    async def note(self, seen: HeldReview, text: str, said: dict[str, str]) -> DecisionResult:
        """Sign and publish a note, and wait for its answer. Raises what :func:`note` does."""
        self.busy = "a note, waiting for the gate's answer"
        self.say(self.busy)
        try:
            one = await self.clerk.ask(
                lambda desk: note(
                    desk, seen, text, said, self._wait_s, clock=self.clock, monotonic=self.clerk.monotonic
                )
            )
        finally:
            self.busy = ""
        self.unheard += one.came is Came.NO_ANSWER
        await self.read_on()
        return one

    async def take_back(self) -> None:
        """Take back what was rejected last, of which there is something to take back."""
        if self.busy:
            self.say(f"one decision at a time: {self.busy}", "warn")
            return
        for number in range(len(self.runs) - 1, -1, -1):
            back = taken_back(self.runs[number])
            if back.todo:
                break
        else:
            self.say("nothing was rejected here that could be taken back", "warn")
            return
        results = await self.decide(back)
        self.runs.pop(number)
        done = sum(one.came is Came.DONE for one in results)
        self.say(f"taken back: {done} of {len(results)} wait again", "good" if done == len(results) else "bad")
        for screen in self.screen_stack:
            if isinstance(screen, Reading):
                await screen.freshen()

    async def know_signer(self, tenant: str) -> None:
        """Learn which key signs for a tenant; where none does, say how to make one."""
        try:
            self.signer = await self.clerk.ask(lambda desk: desk.signer(tenant))
        except ConfigError as error:
            self.signer = ""
            self.say(f"nothing can be decided here: {error}", "bad")

    def results_told(self) -> list[Run]:
        """Return what became of each that was decided last."""
        return results_told(self.runs[-1] if self.runs else [])

    def next_group(self, group: GroupRow) -> None:
        """Go on to the group behind one; behind the last one back to the groups."""
        after = self._groups.following(group.id)
        if after is None:
            self.pop_screen()
        else:
            self.switch_screen(Reading(after))

    def leave(self) -> None:
        """Leave; while an answer is awaited, only when asked again."""
        if self.busy and not self.said[0].startswith("press q again"):
            self.say(f"press q again to leave: {self.busy}. The commands are in the log, and are decided", "warn")
            return
        self.exit()

    def action_leave_now(self) -> None:
        """Leave, whatever is awaited."""
        self.exit()

    async def action_quit(self) -> None:
        """Leave, whatever is awaited."""
        self.exit()
