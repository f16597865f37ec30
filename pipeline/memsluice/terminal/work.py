"""What the pages work with: the desk and the index, what was said and decided, and what waits for the broker."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol, runtime_checkable

from textual.app import App

from memsluice.clock import Clock
from memsluice.errors import ConfigError, MemsluiceError
from memsluice.operations.held.collect import HeldReview
from memsluice.operations.held.desk import HeldDesk
from memsluice.operations.review.decide import Came, DecisionPlan, DecisionResult, decide, taken_back
from memsluice.operations.review.groups import GroupRow
from memsluice.operations.review.hints import unknown
from memsluice.operations.review.index import ReviewIndex
from memsluice.operations.review.noting import note
from memsluice.operations.review.query import HeldQuery
from memsluice.recall.show import duration
from memsluice.terminal.clerk import Clerk
from memsluice.terminal.previews import results_told, summed
from memsluice.terminal.wrapping import Run

RUNS_MAX = 100
"""Decisions that can still be taken back, or looked at."""
Saying = tuple[str, str]
"""What is said, and its style."""


@runtime_checkable
class Telling(Protocol):
    """A page that shows what was said last."""

    def told(self) -> None:
        """Show it."""


class Work(App[None]):
    """An application without its pages, which know nothing of one another but what they are told here.

    ``wanted`` is what is looked for. ``busy`` says what is being waited for, "" for nothing. ``unheard`` is of how many
    commands the gate's answer is not known.
    """

    def __init__(
        self, clerk: Clerk, index: ReviewIndex, wanted: HeldQuery, wait_s: float, clock: Clock, **options: Any
    ) -> None:
        super().__init__(ansi_color=True, **options)
        self.clerk, self.index, self.wanted, self.clock = clerk, index, wanted, clock
        self._wait_s = wait_s
        self.said: Saying = ("reading the quarantine and the audit", "")
        self.busy = ""
        self.signer = ""
        self.runs: list[list[DecisionResult]] = []
        self.unheard = 0
        self._lost = ""

    async def refreshed(self) -> None:
        """Show what the index has now."""
        raise NotImplementedError

    async def taken_back_here(self) -> None:
        """Show what was taken back."""
        raise NotImplementedError

    def look_for(self, text: str) -> None:
        """Look for what was typed, which can be read."""
        raise NotImplementedError

    def next_group(self, group: GroupRow) -> None:
        """Go on to the group behind one; behind the last one back to the groups."""
        raise NotImplementedError

    def leave(self) -> None:
        """Leave; while an answer is awaited, only when asked again."""
        raise NotImplementedError

    def say(self, text: str, style: str = "") -> None:
        """Say something at the foot of every page."""
        self.said = (text, style)
        for screen in self.screen_stack:
            if isinstance(screen, Telling):
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
            await self.refreshed()

    def _feed(self, desk: HeldDesk) -> None:
        self.index.feed(desk, ended=lambda: self.clerk.others_wait)

    def query_of(self, text: str) -> HeldQuery:
        """Return the query of what was typed. Raises InvalidArgument, NotFound."""
        if text.startswith("@"):
            return self.index.saved.get(text[1:].strip(), tenants=None)
        return HeldQuery.parse(text, self.clock())

    def nothing_found(self) -> str:
        """Return why nothing is found: a value that nothing has, and what it may have been meant for; or so it is."""
        if told := unknown(self.index, self.wanted, tenants=None):
            return "; ".join(told)
        return "nothing waits for a decision" if not self.wanted.text() else "no held write is as the filter says"

    @contextmanager
    def _waiting(self, what: str) -> Iterator[None]:
        """Say what is waited for. Who leaves meanwhile leaves it unanswered, and is told so at the end."""
        self.busy = what
        self.say(what)
        try:
            yield
        except asyncio.CancelledError:
            raise
        except BaseException:
            self.busy = ""
            raise
        self.busy = ""

    async def decide(self, todo: DecisionPlan, *, despite_claim: bool = False) -> list[DecisionResult]:
        """Sign and publish a plan's commands, and wait for their answers. Raises ConfigError, BrokerUnavailable."""
        many = len(todo.todo)
        with self._waiting(f"{many} to {todo.action.value}, waiting for the gate's answer"):
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
        self.runs = [*self.runs, results][-RUNS_MAX:]
        self.unheard += sum(one.came is Came.NO_ANSWER for one in results)
        done = all(one.came is Came.DONE for one in results)
        after = "" if done else "; l lists them"
        self.say(f"{todo.action.value}: {summed(results)}{after}", "good" if done else "bad")
        await self.read_on()
        return results

    async def note(self, seen: HeldReview, text: str, said: dict[str, str]) -> DecisionResult:
        """Sign and publish a note, and wait for its answer. Raises what :func:`note` does."""
        with self._waiting("a note, waiting for the gate's answer"):
            one = await self.clerk.ask(
                lambda desk: note(
                    desk, seen, text, said, self._wait_s, clock=self.clock, monotonic=self.clerk.monotonic
                )
            )
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
        await self.taken_back_here()

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
