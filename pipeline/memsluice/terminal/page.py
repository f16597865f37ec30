"""What both pages share: a title, lines, what was said last, the keys; and how what waits is asked for and fails."""

import sqlite3
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, cast

from textual.app import ComposeResult
from textual.events import Key, Resize
from textual.screen import Screen
from textual.widgets import Static

from memsluice.errors import MemsluiceError
from memsluice.escaping import visible
from memsluice.operations.review.query import HeldQuery
from memsluice.terminal.dialogs import Dialog
from memsluice.terminal.keys import KeyLine, found
from memsluice.terminal.sheet import Sheet
from memsluice.terminal.work import Work
from memsluice.terminal.wrapping import Run

CELLS_MIN, LINES_MIN = 40, 10
FAILING = (MemsluiceError, OSError, sqlite3.Error)
"""What is said at the foot of the page, which goes on."""
SAID_CHARS_MAX = 400
HELP_KEYS_CELLS = 12
COLOURS = {"bad": "ansi_red", "warn": "ansi_yellow", "good": "ansi_green"}
"""The terminal's own, which can be read on its ground."""


class Page(Screen[None]):
    """A full screen of lines, and what its keys do: the method ``key_to_NAME`` of each of ``KEY_LINES``."""

    KEY_LINES: ClassVar[tuple[KeyLine, ...]] = ()
    FOOT: ClassVar[str] = ""
    DEFAULT_CSS = """
    Page Static { height: auto; }
    Page .title { text-style: bold; height: 1; }
    Page .said { max-height: 3; min-height: 1; }
    Page .foot { max-height: 1; text-style: dim; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.sheet = Sheet(self.mark, self.painted)
        self._title = Static("", markup=False, classes="title")
        self._said = Static("", markup=False, classes="said")
        self._small = Static("", markup=False)
        self._foot = Static(self.FOOT, markup=False, classes="foot")

    @property
    def desk(self) -> Work:
        """The application."""
        return cast("Work", self.app)

    def compose(self) -> ComposeResult:
        """Return the widgets."""
        yield self._title
        yield self._small
        yield self.sheet
        yield self._said
        yield self._foot

    def mark(self, item: int) -> str:
        """Return the mark before an item."""
        return " "

    def painted(self, first: int, end: int) -> None:
        """Take that lines were on the screen."""

    def on_mount(self) -> None:
        """Say what was said last, and put the keys into the lines' hands."""
        self.sheet.focus()
        self.told()

    def on_screen_resume(self) -> None:
        """Say what was said last."""
        self.told()

    def told(self) -> None:
        """Show what was said last, and where and as of when this is."""
        text, style = self.desk.said
        self._said.update(visible(text, SAID_CHARS_MAX))
        self._said.styles.color = COLOURS.get(style, "ansi_default")
        self._title.update(visible(self.title_now(), SAID_CHARS_MAX))

    def title_now(self) -> str:
        """Return the title."""
        return ""

    def say(self, text: str, style: str = "") -> None:
        """Say something; it stands there until something else is said."""
        self.desk.say(text, style)

    def on_resize(self, event: Resize) -> None:
        """Where too little is seen, show nothing that could be decided about, and say what to do."""
        small = event.size.width < CELLS_MIN or event.size.height < LINES_MIN
        self.sheet.display = not small
        self._small.display = small
        told = f"This terminal is too small to read in: make it {CELLS_MIN} columns by {LINES_MIN} lines, or larger."
        self._small.update(told if small else "")

    async def on_key(self, event: Key) -> None:
        """Do what a key does."""
        does = found(self.KEY_LINES, event.key, event.character)
        if not does or not self.is_active:
            return
        event.stop()
        event.prevent_default()
        if not self.sheet.display and does not in ("back", "help"):
            return
        try:
            getattr(self, f"key_to_{does}")()
        except FAILING as error:
            self.say(str(error), "bad")

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside the screen, and say what fails."""
        self.run_worker(self._guarded(work), exit_on_error=True)

    def surely(self, work: Coroutine[Any, Any, None]) -> None:
        """The same, to its end, though this page is left meanwhile: what was signed has an answer."""
        self.app.run_worker(self._guarded(work), exit_on_error=True)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except FAILING as error:
            self.say(str(error), "bad")

    def ask(
        self, lines: list[Run], ask: str | None, then: Callable[[str], None], value: str = "", **options: Any
    ) -> None:
        """Show a dialog, and go on with what is answered."""

        def answered(value: str | None) -> None:
            if value is not None:
                then(value)

        self.app.push_screen(Dialog(lines, ask, value, **options), answered)

    def key_to_page_down(self) -> None:
        """Scroll on by a screen, the last line staying in sight."""
        self.scrolled(max(1, len(self.sheet.lines_shown) - 1))

    def key_to_page_up(self) -> None:
        """Scroll back by a screen."""
        self.scrolled(-max(1, len(self.sheet.lines_shown) - 1))

    def key_to_line_down(self) -> None:
        """Scroll on by a line."""
        self.scrolled(1)

    def key_to_line_up(self) -> None:
        """Scroll back by a line."""
        self.scrolled(-1)

    def scrolled(self, lines: int) -> None:
        """Scroll."""
        self.sheet.turn(self.sheet.lines_shown.start + lines)

    def key_to_help(self) -> None:
        """Show what the keys do, and which filters are saved."""
        lines: list[Run] = [("Keys", "bold")]
        lines += [(f"{line.shown:<{HELP_KEYS_CELLS}} {line.words}", "") for line in self.KEY_LINES]
        lines += [("", ""), ("Marks", "bold"), ("✓           was on the screen to its end", ""),
                  ("⟦ ⟧         what triggered; <U+202E> is a character that is not seen", "")]  # fmt: skip
        saved = self.desk.index.saved.all(tenants=None)
        lines += [("", ""), ("Saved filters", "bold")] if saved else []
        lines += [(f"@{visible(one, 60)}  {visible(query.text(), 200)}", "") for one, query in saved.items()]
        self.ask(lines, None, lambda _: None, foot="Esc: back   space: scroll")

    def key_to_results(self) -> None:
        """Show what became of each that was decided last."""
        self.ask(self.desk.results_told(), None, lambda _: None, foot="Esc: back   space: scroll")

    def key_to_undo(self) -> None:
        """Take back what was rejected last."""
        self.surely(self.desk.take_back())

    def key_to_filter(self) -> None:
        """Ask for another filter."""
        lines: list[Run] = [
            ("Filter", "bold"),
            ("Words of field:value, such as  tenant:acme reason:detect since:2h  or @name for a saved one.", ""),
            ("Nothing is what waits for a decision. state:any is everything.", ""),
        ]
        value = self.desk.wanted.text()
        self.ask(lines, "filter:", self.desk.look_for, value, check=self.desk.query_of, foot="Enter: look   Esc: back")

    def key_to_save(self) -> None:
        """Ask for a name for the filter."""
        lines: list[Run] = [("Save the filter", "bold"), (visible(self.desk.wanted.text(), 400) or "what waits", "")]
        keep: Callable[[str], None] = lambda name: self.desk.index.saved.save(name, self.desk.wanted, tenants=None)  # noqa: E731
        self.ask(lines, "name:", lambda name: self.say(f"saved: /@{name}"), check=keep, foot="Enter: save   Esc: back")


def asked(query: HeldQuery) -> str:
    """Return what a query asks for, in words."""
    return query.text() or "what waits"
