"""``memsluice review`` on a pseudo-terminal of its own: a process, the bytes that it sends, and what they show."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import unicodedata
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

LIMIT_S = 240.0
"""How long anything may take before a test fails: generous, since all of them share two cores."""
COMMAND = "from memsluice.cli.main import app; app()"
TAKE = f"import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); {COMMAND}"
"""The same, once the terminal is the process's own."""
CONTROL = re.compile(
    r"\x1b\[\?(?:7|25|1000|1003|1004|1006|1015|2004|2026|2048|1049)[hl]"  # what it switches
    r"|\x1b\[\?(?:2026|2048)\$p|\x1b\[6n"  # what it asks for
    r"|\x1b\[(?:>\d+|<)u"  # the keyboard
    r"|\x1b\[(?P<row>\d+);(?P<column>\d+)H|\x1b\[H"  # where it writes
    r"|\x1b\[(?:(?:0|1|2|7|3[0-79]|4[0-79]|9[0-7])(?:;|(?=m)))*m"  # the sixteen colours, bold, dim, reverse
)
"""Every sequence that this application sends, and no other: no title, link or clipboard."""


class Screen:
    """What a terminal of some size shows of the bytes that were sent to it; it breaks no line by itself: what goes
    beyond the last column is written over what stands there.

    ``strange`` has whatever a terminal would have acted on and the review does not send; ``beyond`` is how many cells
    were written to the right of the last column at most; ``answers`` is what it says when it is asked where its cursor
    is, and whether it shows an update as a whole: it does; the signs ``wide`` take two columns.
    """

    def __init__(self, columns: int, lines: int, wide: str = "") -> None:
        self.columns, self.lines, self._wide = columns, lines, wide
        self.answers: list[str] = []
        self.stood: set[str] = set()
        self.rows = [[" "] * columns for _ in range(lines)]
        self.strange: list[str] = []
        self.beyond = 0
        self._row = self._column = 0
        self._rest = ""
        self._before: str | None = None

    @property
    def text(self) -> str:
        """The lines that stand on the screen: during an update, those of before."""
        return "\n".join("".join(row).rstrip() for row in self.rows) if self._before is None else self._before

    def feed(self, text: str) -> None:
        """Take what was sent; a sequence whose end did not come yet waits for it."""
        text, at = self._rest + text, 0
        self._rest = ""
        while at < len(text):
            sign = text[at]
            if sign == "\x1b":
                found = CONTROL.match(text, at)
                if found is None and len(text) - at < 16:
                    self._rest = text[at:]
                    return
                at = found.end() if found else at + 1
                if found is None:
                    self.strange.append(text[at - 1 : at + 15])
                else:
                    self._obey(found)
                continue
            at += 1
            if sign == "\r":
                self._column = 0
            elif sign == "\n":
                self._leave()
                self._row, self._column = self._row + 1, 0
            elif not sign.isprintable():
                self.strange.append(f"U+{ord(sign):04X}")
            else:
                self._put(sign)

    def _obey(self, found: re.Match[str]) -> None:
        if found[0] == "\x1b[6n":
            self.answers.append(f"\x1b[{self._row + 1};{self._column + 1}R")
        elif found[0] == "\x1b[?2026$p":
            self.answers.append("\x1b[?2026;2$y")
        elif found[0] in ("\x1b[?2026h", "\x1b[?2026l"):
            self._before = self.text if found[0].endswith("h") else None
        elif found[0].endswith("H"):
            self._leave()
            self._row, self._column = int(found["row"] or 1) - 1, int(found["column"] or 1) - 1

    def _leave(self) -> None:
        if 0 <= self._row < self.lines:
            self.stood.add("".join(self.rows[self._row]).rstrip())

    def _put(self, sign: str) -> None:
        cells = 2 if sign in self._wide else cells_of(sign)
        if not cells:
            return
        end = self._column + cells
        self.beyond = max(self.beyond, end - self.columns) if sign != " " else self.beyond
        if 0 <= self._row < self.lines:
            start = min(self._column, self.columns - cells)
            self.rows[self._row][start : start + cells] = [sign, *[""] * (cells - 1)]
        self._column = end


def cells_of(sign: str) -> int:
    """Return how many columns a character takes where a terminal gives it most; without the product's own table."""
    if unicodedata.category(sign) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in ("W", "F") else 1


class Line:
    """The command on a terminal. ``controlling``: the terminal is the process's own, so that a hang-up is a signal;
    ``first`` is Python that the process runs before the command."""

    def __init__(
        self, home: Path, *words: str, size: tuple[int, int] = (80, 24), controlling: bool = True,
        environment: Mapping[str, str] | None = None, wide: str = "", first: str = "",
    ) -> None:  # fmt: skip
        self.screen = Screen(*size, wide)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("MEMSLUICE_", "NO_COLOR"))}
        told = {**kept, "TERM": "xterm-256color", **(environment or {})}
        for size_too in ("COLUMNS", "LINES"):
            told.pop(size_too, None)
        self.process = subprocess.Popen(
            [sys.executable, "-c", first + (TAKE if controlling else COMMAND), "review", "--home", str(home), *words],
            stdin=slave, stdout=slave, stderr=slave, env=told, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.sent = ""
        self._open = True
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._ending, self._end = os.pipe()
        self._reader.start()

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(LIMIT_S)
        self.hang_up()
        os.close(self._ending)
        os.close(self._end)

    def _read(self) -> None:
        decode = getincrementaldecoder("utf-8")("replace").decode
        while True:
            ready, _, _ = select.select([self._master, self._ending], [], [])
            if self._ending in ready:
                return
            try:
                data = os.read(self._master, 65_536)
            except OSError:  # EIO: the process has closed its end
                data = b""
            with self._changed:
                text = decode(data)
                self.sent += text
                self.screen.feed(text)
                while self.screen.answers:
                    self.press(self.screen.answers.pop(0))
                self._open = bool(data)
                self._changed.notify_all()
            if not data:
                return

    def until(self, holds: Callable[[str], object], what: object = "") -> str:
        """Wait until the screen is as it should be; return it. Fails where the process ends before."""
        end = time.monotonic() + LIMIT_S
        with self._changed:
            while not holds(self.screen.text):
                left = end - time.monotonic()
                assert left > 0, f"never shown: {what}\n{self.screen.text}\n{self.screen.strange}"
                assert self._open, f"it ended before it showed {what}\n{self.screen.text}"
                self._changed.wait(min(left, 1.0))
            return self.screen.text

    def shows(self, *texts: str) -> str:
        """Wait until texts stand on the screen, all at once; return it."""
        return self.until(lambda screen: all(text in screen for text in texts), texts)

    def press(self, keys: str) -> None:
        """Send keys as a keyboard would."""
        os.write(self._master, keys.encode())

    def all_sent(self) -> None:
        """Wait until everything that an ended process sent was taken."""
        self._reader.join(LIMIT_S)
        assert not self._reader.is_alive()

    def pause(self) -> None:
        """Take nothing of what is sent any more."""
        os.write(self._end, b".")
        self._reader.join(LIMIT_S)

    def hang_up(self) -> None:
        """Take the terminal away, as a cut connection does."""
        if self._reader.is_alive():
            self.pause()
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def ended(self) -> int:
        """Wait for the process to end by itself; return its exit code."""
        return self.process.wait(LIMIT_S)
