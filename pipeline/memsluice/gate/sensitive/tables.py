"""Secrets in tables: a header's cell names what stands below it, in Markdown, as databases print, in CSV and TSV."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from memsluice.gate.sensitive import plausible
from memsluice.gate.sensitive.hints import Search
from memsluice.gate.sensitive.names import ASIAN, NAMES
from memsluice.gate.sensitive.span import Span

_LINE_MAX = 2_000
"""Characters of a line of a table; a longer one is none."""
_CELLS = {sign: re.compile(rf"(?:\"[^\"\n]*+\"|[^{sign}\n])*+") for sign in ("|", "\t", ",", ";")}
_RULE = re.compile(r"[|+:\-= \t]+\r?")
"""The line between a header and its rows."""
_TITLE = re.compile(r"(?:[^.,:;!?|]|\.(?=\w)){0,32}")
"""What a cell of a header is: a part of a sentence mostly is longer, or ends in a sign."""
_DRAWN = re.compile(r"[A-Za-z0-9+/=]{12}")
"""What a key or token has, and no name of one: ``spacing-2xl``, ``db-credentials-2b``."""
_AROUND = " \t\r\"'`*"


class _Column(NamedTuple):
    place: int
    kind: str
    several: bool
    """Whether its name is of several, as is that of a column that counts them."""


def _find(text: str, lower: str) -> Iterator[Span]:
    """Yield what stands below the names. A line is read as a row once, and no row of a table as a header."""
    read = 0
    for start, end in _named_lines(lower):
        if start < read or end - start > _LINE_MAX:
            continue
        sign, first = _divided(text, start, end)
        columns = _columns(text, start, end, sign) if sign else []
        for row in _rows(text, first, sign, len(_cells(text, start, end, sign))) if columns else ():
            yield from _values(text, row, columns)
            read = row[-1][1]


def _named_lines(lower: str) -> list[tuple[int, int]]:
    """Return where the lines begin and end that a name may stand in."""
    lines = set()
    for hint in _HINTS:
        at = lower.find(hint)
        while at >= 0:
            end = _line_end(lower, at)
            lines.add((lower.rfind("\n", 0, at) + 1, end))
            at = lower.find(hint, end)
    return sorted(lines)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _divided(text: str, start: int, end: int) -> tuple[str, int]:
    """Return what divides the cells of a header, and where its rows begin; nothing where the line is no header."""
    second = end + 1
    if text.find("|", start, end) >= 0:
        rule = text[second : min(_line_end(text, second), second + _LINE_MAX)]
        ruled = "--" in rule and _RULE.fullmatch(rule) is not None
        return ("|", second + len(rule) + 1) if ruled else ("", 0)
    for sign in ("\t", ",", ";"):
        if text.find(sign, start, end) < 0:
            continue
        cells = [text[slice(*cell)] for cell in _cells(text, start, end, sign)]
        written = all(_TITLE.fullmatch(cell.strip(_AROUND)) for cell in cells)
        if written and (sign == "\t" or not any(cell.startswith(" ") for cell in cells)):
            return sign, second
    return "", 0


def _cells(text: str, start: int, end: int, sign: str) -> list[tuple[int, int]]:
    cells = []
    while start <= end:
        match = _CELLS[sign].match(text, start, end)
        stop = end if match is None else match.end()
        cells.append((start, stop))
        start = stop + 1
    return cells


def _columns(text: str, start: int, end: int, sign: str) -> list[_Column]:
    columns = []
    for place, cell in enumerate(_cells(text, start, end, sign)):
        title = text[slice(*cell)].strip(_AROUND)
        kind = _kind(title) if _TITLE.fullmatch(title) else None
        if kind is not None:
            columns.append(_Column(place, kind, title.lower().endswith(("words", "wörter"))))
    return columns


def _kind(title: str) -> str | None:
    """Return the kind of the name that a title ends with: "password", "DB_PASSWORD"; none of "password policy"."""
    if title.endswith(ASIAN):
        return "password"
    lower = title.lower()
    for name in NAMES:
        at = lower.rfind(name.hint)
        if at >= 0 and name.whole.fullmatch(title, at):
            return name.kind
    return None


def _rows(text: str, at: int, sign: str, count: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the cells of the lines that follow, while these have as many as the header."""
    while at < len(text):
        end = _line_end(text, at)
        cells = _cells(text, at, end, sign) if end - at <= _LINE_MAX else []
        if len(cells) != count:
            return
        yield cells
        at = end + 1


def _values(text: str, cells: list[tuple[int, int]], columns: list[_Column]) -> Iterator[Span]:
    for column in columns:
        start, end = cells[column.place]
        while start < end and text[start] in _AROUND:
            start += 1
        while start < end and text[end - 1] in _AROUND:
            end -= 1
        if _secret(text[start:end], column):
            yield Span(column.kind, start, end)


def _secret(value: str, column: _Column) -> bool:
    if column.kind != "password":
        return plausible.token(value, quoted=False) and _DRAWN.search(value) is not None
    secret = plausible.password(value, alone=True, quoted=False, assigned=False)
    if column.several:
        return secret and plausible.mixed(value)
    return secret and (not value.isalpha() or plausible.told(value))


_HINTS = tuple({name.hint: None for name in NAMES}) + ASIAN
SEARCHES = (Search(_HINTS, _find),)
