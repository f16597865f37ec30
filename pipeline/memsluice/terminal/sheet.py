"""A widget of lines, of which one item is the current one; what of it was painted is told to whoever keeps it.

Only what is painted while nothing else lies over it counts. Nothing here reads markup: lines are runs of plain text.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.events import Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from memsluice.terminal.wrapping import Row

STYLES = {
    "": Style(),
    "bold": Style(bold=True),
    "dim": Style(dim=True),
    "marked": Style(bold=True, color="red"),
    "good": Style(color="green"),
    "bad": Style(color="red"),
    "warn": Style(color="yellow"),
}
GUTTER_CELLS = 4
"""Columns before each line: whether it is of the current item, and the item's mark."""
MARGIN_CELLS = 1
"""A column behind each line that stays blank. Where a terminal gives a line more cells than it was reckoned, the blanks
that fill it go beyond the last column, and are written over what stands there."""


class Sheet(ScrollView, can_focus=True):
    """The lines. ``mark`` says what stands before an item's first line; ``painted`` is told what was on the screen."""

    DEFAULT_CSS = "Sheet { height: 1fr; scrollbar-size: 0 0; overflow-x: hidden; }"
    BINDINGS: ClassVar = []

    class Widened(Message):
        """It has another width: its lines have to be laid out anew."""

    def __init__(self, mark: Callable[[int], str], painted: Callable[[int, int], None]) -> None:
        super().__init__()
        self._mark, self._painted = mark, painted
        self._rows: Sequence[Row] = ()
        self._laid_cells = -1
        self.current = -1

    @property
    def cells(self) -> int:
        """How many cells a line may take."""
        return max(0, self.size.width - GUTTER_CELLS - MARGIN_CELLS)

    @property
    def lines_shown(self) -> range:
        """The places of the lines that are on the screen."""
        top = self.scroll_offset.y
        return range(top, min(len(self._rows), top + self.size.height))

    def put(self, rows: Sequence[Row], cells: int) -> None:
        """Show other lines, which were laid out for a width."""
        self._rows, self._laid_cells = rows, cells
        self.virtual_size = Size(self.size.width, len(rows))
        self.refresh()

    def go(self, number: int) -> None:
        """Make an item the current one."""
        self.current = number
        self.refresh()

    def turn(self, row: int) -> None:
        """Scroll so that a line is the topmost one."""
        self.scroll_to(y=max(0, row), animate=False, force=True)

    def show(self, rows: range) -> None:
        """Scroll as little as shows all of some lines, or the first of them where they are too many."""
        shown = self.lines_shown
        if rows.start >= shown.start and rows.stop <= shown.stop:
            return
        room = self.size.height
        self.turn(rows.start if rows.start < shown.start or len(rows) >= room else rows.stop - room)

    def on_resize(self, _: Resize) -> None:
        """Say that the width may be another one."""
        self.post_message(self.Widened())

    def render_line(self, y: int) -> Strip:
        """Return a line of the screen."""
        number = self.scroll_offset.y + y
        width = self.size.width
        if number >= len(self._rows):
            return Strip.blank(width, Style())
        row = self._rows[number]
        mine = row.item >= 0 and row.item == self.current
        bar = (">" if row.first else "|") if mine else " "
        mark = self._mark(row.item) if row.first else " "
        segments = [Segment(f"{bar} ", STYLES["bold"]), Segment(f"{mark} ", STYLES["bold"])]
        segments += [Segment(text, STYLES[style]) for text, style in row.runs]
        return Strip(segments).adjust_cell_length(width, Style())

    def render_lines(self, crop: Region) -> list[Strip]:
        """Paint a part, and tell which lines were painted whole: nothing lies over them, and they are as wide as it."""
        strips = super().render_lines(crop)
        if self.is_attached and self.screen.is_active and self._laid_cells == self.cells:
            top = self.scroll_offset.y
            room = self.size.height
            self._painted(top + crop.y, top + min(crop.bottom, room))
        return strips
