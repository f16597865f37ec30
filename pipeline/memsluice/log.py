"""What this process writes to its own log: standard error, one event a line, and nothing in it acts on a terminal.

Set up by the command line alone; an application that uses memsluice as a library keeps its own logging.
"""

import logging
import sys
import traceback
from collections.abc import MutableMapping
from contextlib import suppress
from types import TracebackType
from typing import Any, TextIO

from memsluice.errors import MemsluiceError
from memsluice.escaping import lines, visible

_deferred = False
"""Whether structlog is still to be configured, once it is imported."""
VALUE_CHARS_MAX = 2_000
"""Longest message or value of a log line, and longest line of a traceback."""


def said(error: BaseException) -> str:
    """Return an error as a log line may have it: our own say no content; of any other, the kind and the place."""
    if isinstance(error, MemsluiceError):
        kind = next(each.__name__ for each in type(error).__mro__ if not each.__name__.startswith("_"))
        return f"{kind}: {error}"
    frames = traceback.extract_tb(error.__traceback__)[-1:]
    return type(error).__name__ + "".join(f" at {frame.filename}:{frame.lineno}" for frame in frames)


def _spelled_out(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {name: value if name == "exc_info" else _text(value) for name, value in event.items()}


def _text(value: Any) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    return visible(value if isinstance(value, str) else repr(value), VALUE_CHARS_MAX)


class _Spelled(logging.Formatter):
    """Messages of libraries on one line, their tracebacks without anything that acts on a terminal."""

    def formatException(self, ei: Any) -> str:
        """Return where it happened and its kind; see :func:`said`."""
        return _traceback(ei)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line without its traceback."""
        record.message = visible(record.message, VALUE_CHARS_MAX)
        return super().formatMessage(record)


def _traceback(told: Any) -> str:
    return lines("".join([*traceback.format_tb(told[2]), said(told[1])]), VALUE_CHARS_MAX)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    print("Traceback (most recent call last):\n" + _traceback((kind, error, trace)), file=sys.stderr)


class _Logger:
    """A logger whose library is imported with the first line: most commands log nothing, and it imports slowly."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        return getattr(_library().get_logger(self._name), method)


def get_logger(name: str) -> Any:
    """Return the structlog logger of a module."""
    return _Logger(name)


def _library() -> Any:
    global _deferred
    import structlog

    if _deferred:
        _deferred = False
        _configure()
    return structlog


class _Unfailing:
    """A stream for log lines: one that cannot be written is lost, and ends nobody's work. A log lies on a disk, too."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write, or not."""
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        """Flush, or not."""
        with suppress(OSError):
            self._stream.flush()


def _configure() -> None:
    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            _spelled_out,
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(),
                exception_formatter=lambda out, told: print("\n" + _traceback(told), file=out),
            ),
        ],
        logger_factory=structlog.PrintLoggerFactory(_Unfailing(sys.stderr)),  # type: ignore[arg-type]
    )


class _Structured(logging.Handler):
    """Tells what libraries log in the form of this process's own lines."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log a library's line: its text, its logger's name, and an error's kind and place."""
        method = record.levelname.lower() if record.levelname in logging.getLevelNamesMapping() else "warning"
        told: dict[str, Any] = {"library": record.name}
        if record.exc_info and record.exc_info[1] is not None:
            told["error"] = said(record.exc_info[1])
        getattr(get_logger(record.name), method)(record.getMessage(), **told)


def structure_libraries() -> None:
    """Log what libraries say as structured lines too, from now on: for a process whose log a program reads."""
    logging.basicConfig(level=logging.WARNING, handlers=[_Structured()], force=True)


def configure() -> None:
    """Log to standard error from now on; called once, by the command line."""
    global _deferred
    _deferred = "structlog" not in sys.modules
    if not _deferred:
        _configure()
    handler = logging.StreamHandler()
    handler.setFormatter(_Spelled("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)  # a backend that is away: not every retry
    sys.excepthook = _uncaught
