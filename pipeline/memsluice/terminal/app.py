"""``memsluice review`` as an application: its pages, and how one goes from one to the other, and leaves."""

import asyncio
from contextlib import suppress
from typing import ClassVar

from memsluice.clock import Clock, wall_ms
from memsluice.operations.review.groups import GroupRow
from memsluice.operations.review.index import ReviewIndex
from memsluice.operations.review.query import HeldQuery
from memsluice.terminal.clerk import Clerk
from memsluice.terminal.going import Driver
from memsluice.terminal.groups import Groups
from memsluice.terminal.reading import Reading
from memsluice.terminal.work import Work


class ReviewApp(Work):
    """The application. ``feed_s`` is how often the topics are read on, in seconds; 0 is never.

    After it ended, ``signalled`` says that a signal ended it, or that its terminal went away, and ``failed`` has what
    went wrong in it.
    """

    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False
    CSS = "Screen { background: ansi_default; color: ansi_default; }"
    BINDINGS: ClassVar = [("ctrl+c", "leave_now", ""), ("ctrl+q", "leave_now", "")]

    def __init__(
        self, clerk: Clerk, index: ReviewIndex, wanted: HeldQuery, *, wait_s: float, feed_s: float = 5.0,
        clock: Clock = wall_ms,
    ) -> None:  # fmt: skip
        super().__init__(clerk, index, wanted, wait_s, clock, driver_class=Driver)
        self._on_loop: asyncio.AbstractEventLoop | None = None
        self._feed_s = feed_s
        self.signalled = False
        self.failed: Exception | None = None
        self._groups = Groups()

    def on_mount(self) -> None:
        """Show the groups, and go on reading what comes."""
        self.push_screen(self._groups)
        if self._feed_s:
            self.set_interval(self._feed_s, self._tick)
        self._on_loop = asyncio.get_running_loop()
        if self.signalled:
            self.exit()

    def end_soon(self) -> None:
        """End, whatever is awaited: somebody told the process to, or the terminal is gone. May be called anywhere."""
        self.signalled = True
        with suppress(RuntimeError):  # it ended meanwhile
            if self._on_loop is not None:
                self._on_loop.call_soon_threadsafe(self.exit)

    def _set_pointer_shape(self, shape: str) -> None:
        """Send nothing: there is no mouse here, and terminals that do not know the sequence print it."""

    def _handle_exception(self, error: Exception) -> None:
        """End with what is wrong: the command line says it. A trace on the screen would show content."""
        self.failed = self.failed or error
        if self.is_headless:
            super()._handle_exception(error)
        else:
            self.exit()

    async def _tick(self) -> None:
        if self.clerk.idle and not self.busy:
            self.run_worker(self.read_on(), group="feeding")

    async def refreshed(self) -> None:
        """Show what the index has now."""
        await self._groups.look(again=True)

    async def taken_back_here(self) -> None:
        """Show what was taken back."""
        for screen in self.screen_stack:
            if isinstance(screen, Reading):
                await screen.freshen()

    def look_for(self, text: str) -> None:
        """Look for what was typed, which can be read."""
        self.wanted = self.query_of(text)
        while self.screen is not self._groups:
            self.pop_screen()
        self.say("")
        self._groups.later(self._groups.look())

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
            self.say(f"press q again to leave: {self.busy}. What the broker has of it is decided", "warn")
            return
        self.exit()

    def action_leave_now(self) -> None:
        """Leave, whatever is awaited."""
        self.exit()

    async def action_quit(self) -> None:
        """Leave, whatever is awaited."""
        self.exit()
