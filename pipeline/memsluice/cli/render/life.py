"""The life of an event on a terminal: rich renderables of what :mod:`memsluice.operations.trace.telling` tells."""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from memsluice.operations.trace.equals import EqualTexts
from memsluice.operations.trace.life import Life
from memsluice.operations.trace.telling import Ancestors, Row, Words, rows, title

LABEL_CHARS = 10


def render(
    life: Life, now_ms: int, words: Words, ancestors: Ancestors, same_text: EqualTexts | None = None
) -> RenderableType:
    """Return the whole life, a row for each thing that is told of it."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True, min_width=LABEL_CHARS)
    table.add_column(overflow="fold")
    for row in rows(life, now_ms, words, ancestors, same_text):
        table.add_row(row.label, _cell(row))
    return Group(Text.assemble(*((span.text, span.style) for span in title(life))), table)


def _cell(row: Row) -> RenderableType:
    text = Text.assemble(*((span.text, span.style) for span in row.spans))
    return Padding(text, (0, 0, 0, row.indent)) if row.indent else text
