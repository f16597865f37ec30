"""How a process ends although one of its threads still works."""

import atexit
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import typer

from memsluice.cli import exit_codes
from memsluice.cli.exit_codes import ExitCode


@contextmanager
def leaving(works: Callable[[], bool]) -> Iterator[None]:
    """Have the process end with its own exit code where ``works`` says that a thread still works by then.

    What it runs may be native, an encoder that begins for instance. An interpreter that goes away ends such a thread
    where it stands, which C++ takes for an error and aborts the process at (SIGABRT). It is ended just before that,
    when what there was to say and to export was.
    """
    ends_with = int(ExitCode.DONE)

    def end() -> None:
        if works():
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):  # nobody reads any more
                    stream.flush()
            os._exit(ExitCode(ends_with))

    atexit.register(end)
    try:
        yield
    except BaseException as error:
        ends_with = _code_of(error)
        raise


def _code_of(error: BaseException) -> int:
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return error.code
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    return exit_codes.of_error(error)
