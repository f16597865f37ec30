"""How the review ends when it is told to, or when its terminal goes away: by itself, soon, and quietly.

A connection that is cut takes the terminal away. Reading it ends at once then, and writing to it fails, neither of
which ends a full-screen application: it is told here, by whoever waits for nothing but that. What it still writes goes
nowhere. An application that does not end within ``GONE_S`` is ended: nobody is there to do it.
"""

import os
import select
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO, cast

from textual.drivers.linux_driver import LinuxDriver

GONE_S = 10.0
"""How long the review may take to end once its terminal is gone: longer than it waits for the broker."""
LOOK_MS = 500
SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Ending:
    """Whoever hears that this is to end: by SIGTERM, by SIGHUP, or because the terminal is gone, in a ``with``.

    A connection that is cut is several of them: the second one ends nothing that is put away because of the first.
    ``code`` is what the process exits with where it has to be ended from here.
    """

    def __init__(self, code: int) -> None:
        self._code = code
        self._told, self._over = threading.Event(), threading.Event()
        self._end: Callable[[], None] | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Ending":
        self._before = {number: signal.signal(number, self._signalled) for number in SIGNALS}
        threading.Thread(target=self._watch, name="memsluice-terminal", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for number, handler in self._before.items():
            ends = number is signal.SIGHUP and self._told.is_set()  # the process, too: with the code of this
            signal.signal(number, signal.SIG_IGN if ends else handler)

    def call(self, end: Callable[[], None]) -> None:
        """Have this called when it is to end, from any thread, perhaps twice; at once where that was said already."""
        self._end = end
        if self._told.is_set():
            end()

    def _tell(self) -> None:
        self._told.set()
        if self._end is not None:
            self._end()

    def _signalled(self, *_: object) -> None:
        if self._end is None:
            raise SystemExit(self._code)  # nothing was begun yet
        self._tell()

    def _watch(self) -> None:
        waiting = select.poll()
        terminals = [number for number in (0, 1, 2) if _is_terminal(number)]
        for number in terminals:
            waiting.register(number, 0)  # what is always told: that the other end is gone
        while not self._over.is_set():
            if waiting.poll(LOOK_MS):
                _let_go(terminals)
                self._tell()
                if not self._over.wait(GONE_S):
                    os._exit(self._code)
                return


def _is_terminal(number: int) -> bool:
    with suppress(OSError):
        return os.isatty(number)
    return False


def _let_go(terminals: list[int]) -> None:
    """Put nothing into the terminal's place: reading it does not wait, and writing to it does not fail."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in terminals:
        os.dup2(nothing, number)


class _Quiet:
    """A stream that loses what it cannot write: a terminal that is gone keeps nobody from ending."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Driver(LinuxDriver):
    """The terminal. What writes to it lives on when it is gone, since whoever has something written waits for it; and
    only what was put to sleep is woken: a hang-up comes with a SIGCONT, at which nothing may begin anew."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._file = cast("Any", _Quiet(cast("TextIO", self._file)))
        self._asleep = False

    def suspend_application_mode(self) -> None:
        """Give the terminal back for a while."""
        self._asleep = True
        super().suspend_application_mode()

    def resume_application_mode(self) -> None:
        """Take it again, if it was given back."""
        if self._asleep:
            self._asleep = False
            super().resume_application_mode()
