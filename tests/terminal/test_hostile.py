"""Hundreds of hostile contents on a real terminal: nothing acts, hides, or goes beyond the columns; all is shown."""

import re
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.held import desk
from tests.held.desk import Office
from tests.hostile_text.texts import NAMES, TEXTS, hidden_in
from tests.terminal.desk import TOPICS, Words
from tests.terminal.line import Line, cells_of

from memsluice.client import requests
from memsluice.client.requests import Session
from memsluice.escaping import visible

MANY, LONG_CHARS_MAX = 240, 160
SHADES = "\U0001f3ff" * 80 + "a\u0903" * 80
"""Characters that some terminals give columns of their own, and others none."""
BAR = "  │ "


def contents() -> list[str]:
    """Return the contents, of every topic and every hostile text: each topic is a group."""
    texts = [text[:LONG_CHARS_MAX] for text in (*TEXTS.values(), SHADES)]
    huge = {7: "x" * 7_000, 170: "\u202e" * 700}
    return [
        f"From now on {TOPICS[number % len(TOPICS)]} {huge.get(number, texts[number % len(texts)])} no {number}."
        for number in range(MANY)
    ]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with hundreds of held writes, of hostile writers, too."""
    names = [name for name in NAMES.values() if name.strip()]
    with patch.object(desk, "minilm", Words):
        office = Office(tmp_path_factory.mktemp("hostile") / "home")
        now = datetime.now(UTC)
        office.publish("user", *(
            requests.write(f"h-{number}", now, Session("acme", "helper", *[names[number % len(names)]] * 2), text, {})
            for number, text in enumerate(contents())
        ))  # fmt: skip
    return office.home.path


def plain(text: str) -> str:
    """Return a text without what takes no column of its own, and without the marks of what triggered."""
    return "".join(sign for sign in text if cells_of(sign) and sign not in "⟦⟧")


def covered(text: str, lines: set[str]) -> bool:
    """Tell whether lines that were shown, one after the other, are a text."""
    reached = {0}
    for start in range(len(text)):
        if start in reached:
            reached |= {start + n for n in range(1, 141) if text[start : start + n].rstrip() in lines}
    return len(text) in reached or len(text.rstrip()) in reached


class Shown:
    """The lines of contents that stood on a terminal, and what a look at them found."""

    def __init__(self, line: Line) -> None:
        rows = line.screen.stood | {*line.screen.text.splitlines()}
        self.lines = {plain(row[4:].removeprefix(BAR)).rstrip() for row in rows if row[4:].startswith(BAR)}
        self.hidden = {sign for row in rows for sign in hidden_in(row)}


def paged(line: Line, group: int) -> None:
    """Open the n-th group, scroll through all of it, and go back."""
    line.press("j" * (group > 0))
    line.press("\r")
    line.until(lambda screen: " read, " in screen and "reading on" not in screen, "a group")
    while True:
        end, of = place(line.until(place, "the place"))
        if end == of:
            break
        line.press(" ")
        line.until(lambda screen, end=end: place(screen) and place(screen)[0] > end, "more")
    line.until(lambda screen: re.match(r"(\d+) of \1 read, ", screen), "all of it was read")
    line.press("q")
    line.until(lambda screen: f"{len(TOPICS)} groups" in screen, "the groups")


def place(screen: str) -> tuple[int, int] | None:
    """Return the last line that is shown, and how many there are."""
    found = re.search(r"line \d+-(\d+) of (\d+)", screen)
    return None if found is None else (int(found[1]), int(found[2]))


def test_hostile_contents_are_shown_whole_and_act_on_nothing(hostile: Path) -> None:
    """Only what the application itself sends, each update as a whole; every character of every content stands there."""
    with Line(hostile, size=(100, 70)) as line:
        line.shows(f"{len(TOPICS)} groups", "as of now")
        for group in range(len(TOPICS)):
            paged(line, group)
        line.press("q")
        assert line.ended() == 0
        line.all_sent()
    shown = Shown(line)
    assert (line.screen.strange, line.screen.beyond, shown.hidden) == ([], 0, set())
    assert "\x1b[?2026h" in line.sent, "updates a terminal may show by halves"
    missing = [text[:80] for text in contents() if not covered(plain(visible(text, len(text))), shown.lines)]
    assert not missing


def test_a_narrow_terminal_without_colours_shows_them_too(hostile: Path) -> None:
    """60 columns by 18 lines are enough: a group is read to its end there, and NO_COLOR has no colours."""
    with Line(hostile, size=(60, 18), environment={"NO_COLOR": "1"}) as line:
        line.shows(f"{len(TOPICS)} groups", "as of now")
        paged(line, 1)
        line.press("q")
        assert line.ended() == 0
        line.all_sent()
    shown = Shown(line)
    assert (line.screen.strange, line.screen.beyond, shown.hidden) == ([], 0, set())
    assert not re.search(r"\x1b\[[0-9;]*(?:3|4|9)[0-7][;m]", line.sent), "a colour"
