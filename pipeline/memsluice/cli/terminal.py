"""Progress in a terminal, and errors as one message without a traceback."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, Protocol

import typer
from rich.console import Console
from rich.markup import escape

from memsluice.cli import exit_codes
from memsluice.deployment.paths import in_words
from memsluice.errors import MemsluiceError
from memsluice.escaping import lines, visible

if TYPE_CHECKING:
    from rich.status import Status

ERROR_CHARS_MAX = 2_000
"""Longest line of a message."""


class TerminalReporter:
    """A spinner on a terminal; elsewhere one line for each new thing that is being done."""

    def __init__(self, console: Console, status: "Status") -> None:
        self._console = console
        self._status = status
        self._told = ""

    def doing(self, line: str) -> None:
        """Show the line beside the spinner, or print it unless only its details (after the colon) changed."""
        if self._console.is_terminal:
            self._status.update(escape(visible(line)))
            return
        subject = line.split(":", 1)[0]
        if subject != self._told:
            self._told = subject
            self._console.print(f"  … {escape(visible(subject))}", highlight=False, soft_wrap=True)

    def done(self, line: str) -> None:
        """Print the line with a check mark."""
        self._console.print(f"  [green]✓[/] {escape(visible(line))}", highlight=False, soft_wrap=True)


class Waiting(Protocol):
    """Something that tells a person what is awaited."""

    def update(self, line: str) -> None:
        """Show another line."""


class _Silent:
    def update(self, line: str) -> None:
        """Show nothing: there is no terminal."""


@contextmanager
def waiting(line: str) -> Iterator[Waiting]:
    """Show a spinner with a line on standard error while a command works; nothing where that is no terminal."""
    if not sys.stderr.isatty():  # and nothing is imported for it
        yield _Silent()
        return
    with Console(stderr=True).status(line) as status:
        yield status


@contextmanager
def progress(console: Console) -> Iterator[TerminalReporter]:
    """Yield a reporter whose spinner is gone afterwards."""
    with console.status("starting") as status:
        yield TerminalReporter(console, status)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def complain(console: Console, error: Exception) -> None:
    """Print what is wrong; whatever it quotes acts on nothing."""
    told = in_words(error) if isinstance(error, OSError) and not isinstance(error, MemsluiceError) else str(error)
    console.print(f"[red]error:[/] {escape(lines(told, ERROR_CHARS_MAX))}", highlight=False, soft_wrap=True)


@contextmanager
def friendly(console: Console) -> Iterator[None]:
    """Turn an expected error into one message and its exit code, an interruption (SIGTERM, SIGHUP) likewise."""
    previous = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except (MemsluiceError, OSError) as error:  # a full disk, a missing permission: the sentence is enough
        complain(console, error)
        raise typer.Exit(exit_codes.of_error(error)) from None
    except KeyboardInterrupt:
        console.print("interrupted", highlight=False)
        raise typer.Exit(exit_codes.ExitCode.INTERRUPTED) from None
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
