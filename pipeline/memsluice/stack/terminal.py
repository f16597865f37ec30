"""What the stack's and the topics' commands share in a terminal: progress, and errors without a traceback."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.status import Status

from memsluice.errors import MemsluiceError

EXIT_ERROR = 1
EXIT_INTERRUPTED = 130


class TerminalReporter:
    """A spinner on a terminal; elsewhere one line for each new thing that is being done."""

    def __init__(self, console: Console, status: Status) -> None:
        self._console = console
        self._status = status
        self._told = ""

    def doing(self, line: str) -> None:
        """Show the line beside the spinner, or print it unless only its details (after the colon) changed."""
        if self._console.is_terminal:
            self._status.update(escape(line))
            return
        subject = line.split(":", 1)[0]
        if subject != self._told:
            self._told = subject
            self._console.print(f"  … {escape(subject)}", highlight=False, soft_wrap=True)

    def done(self, line: str) -> None:
        """Print the line with a check mark."""
        self._console.print(f"  [green]✓[/] {escape(line)}", highlight=False, soft_wrap=True)


@contextmanager
def progress(console: Console) -> Iterator[TerminalReporter]:
    """Yield a reporter whose spinner is gone afterwards."""
    with console.status("starting") as status:
        yield TerminalReporter(console, status)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


@contextmanager
def friendly(console: Console) -> Iterator[None]:
    """Turn an expected error into one message and exit code 1, an interruption (also SIGTERM, SIGHUP) into 130."""
    previous = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except MemsluiceError as error:
        console.print(f"[red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(EXIT_ERROR) from None
    except OSError as error:  # a full disk, a missing permission: the sentence is enough
        console.print(f"[red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(EXIT_ERROR) from None
    except KeyboardInterrupt:
        console.print("interrupted", highlight=False)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
