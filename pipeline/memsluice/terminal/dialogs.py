"""What is asked and shown above a page: one line of input, a decision about many before it is signed, a list to read.

A dialog fills the screen. While one stands there nothing below it counts as seen.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.events import Key, Paste
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from memsluice.errors import MemsluiceError
from memsluice.escaping import visible
from memsluice.terminal.sheet import Sheet
from memsluice.terminal.wrapping import Row, Run, indented

PASTED_CHARS_MAX = 2_000
CSS = """
.dialog { background: ansi_default; padding: 0; }
.dialog OneLine, .dialog OneLine:focus { border: none; height: 1; padding: 0; background: ansi_default; }
.dialog Static { height: auto; max-height: 3; }
"""


class OneLine(Input):
    """A line of input. What is pasted is typed as characters that are seen, and nothing else."""

    BINDINGS: ClassVar = []

    def _on_paste(self, event: Paste) -> None:
        event.prevent_default()
        event.stop()
        self.insert_text_at_cursor("".join(sign for sign in event.text[:PASTED_CHARS_MAX] if sign.isprintable()))


class Dialog(ModalScreen[str | None]):
    """Lines to read, and below them one line of input where there is one to give. Enter answers, Esc does not.

    ``check`` raises a MemsluiceError for an answer that will not do: it is shown, and nothing is closed.
    """

    DEFAULT_CSS = CSS

    def __init__(
        self, lines: Sequence[Run], ask: str | None, value: str = "", *, foot: str = "Enter: yes   Esc: no",
        chars_max: int = PASTED_CHARS_MAX, check: Callable[[str], object] = lambda _: None,
    ) -> None:  # fmt: skip
        super().__init__(classes="dialog")
        self._lines, self._ask, self._value, self._foot, self._check = list(lines), ask, value, foot, check
        self._chars_max = chars_max
        self._sheet = Sheet(lambda _: " ", lambda _first, _end: None)

    def compose(self) -> ComposeResult:
        """Return the widgets."""
        yield self._sheet
        if self._ask is not None:
            yield Static(visible(self._ask), markup=False)
            yield OneLine(self._value, select_on_focus=False, max_length=self._chars_max)
        yield Static("", markup=False, id="wrong")
        yield Static(self._foot, markup=False)

    def on_mount(self) -> None:
        """Put the cursor where something is to be typed."""
        self._laid()
        if self._ask is not None:
            self.query_one(OneLine).focus()

    def on_sheet_widened(self, _: Sheet.Widened) -> None:
        """Lay the lines out for the new width."""
        self._laid()

    def _laid(self) -> None:
        cells = self._sheet.cells
        rows = [Row(line) for run in self._lines for line in indented([run], max(cells, 2), ("", ""), ("    ", ""))]
        self._sheet.put(rows, cells)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the answer, if it will do."""
        event.stop()
        self._answer(event.value)

    def on_key(self, event: Key) -> None:
        """Answer, or do not; scroll."""
        if event.key == "escape" or (self._ask is None and event.key == "q"):
            event.stop()
            self.dismiss(None)
        elif event.key == "enter" and self._ask is None:
            event.stop()
            self._answer("")
        elif event.key in ("pagedown", "pageup", "down", "up") or (self._ask is None and event.key == "space"):
            event.stop()
            shown = self._sheet.lines_shown
            step = 1 if event.key in ("down", "up") else max(1, len(shown))
            self._sheet.turn(shown.start + (step if event.key in ("down", "pagedown", "space") else -step))

    def _answer(self, value: str) -> None:
        try:
            self._check(value)
        except MemsluiceError as error:
            self.query_one("#wrong", Static).update(visible(str(error)))
            return
        self.dismiss(value)
