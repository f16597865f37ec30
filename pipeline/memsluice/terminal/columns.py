"""How many columns a terminal gives to signs whose width is ambiguous: what it says itself, asked once.

Where it gives them two (UAX #11; some terminals do in East Asian settings), a line that has such signs is longer than
it was reckoned, and its end beyond the margin would count as read.
"""

import os
import re
import select
import termios
import time
import tty

from memsluice.errors import ConfigError

SIGN = "§"
"""A sign whose width is ambiguous."""
ASK = "\x1b[6n"
"""Asks where the cursor is (ECMA-48, DSR 6)."""
ANSWER = re.compile(rb"\x1b\[\d+;(\d+)R")
ANSWERS_S = 1.0
"""How long an answer may take; a terminal that never answers is taken as one that gives one column."""


def refuse_wide_signs(keyboard: int = 0, screen: int = 1) -> None:
    """Raise ConfigError, which says what to set, where the terminal of these descriptors draws ambiguous signs wide."""
    if (column := _column_after_sign(keyboard, screen)) is not None and column > 2:
        raise ConfigError(
            f"this terminal draws signs such as {SIGN} two columns wide, so ends of lines would not be on the screen: "
            "set its ambiguous-width characters to narrow, or use memsluice console or memsluice quarantine"
        )


def _column_after_sign(keyboard: int, screen: int) -> int | None:
    """Return the column (from 1) in which the cursor is after one sign; None where the terminal does not say."""
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard, termios.TCSANOW)
        os.write(screen, f"\r{SIGN}{ASK}\r  \r".encode())
        told, end = b"", time.monotonic() + ANSWERS_S
        while (left := end - time.monotonic()) > 0 and select.select([keyboard], [], [], left)[0]:
            some = os.read(keyboard, 1_024)
            told += some
            if (found := ANSWER.search(told)) is not None:
                return int(found[1])
            if not some:
                break
        return None
    finally:
        termios.tcsetattr(keyboard, termios.TCSANOW, before)
