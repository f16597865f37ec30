"""What this process writes to its own log: standard error, one event a line, and nothing in it acts on a terminal.

Set up by the command line alone; an application that uses memsluice as a library keeps its own logging.
"""

import logging
import sys
import traceback
from collections.abc import MutableMapping
from types import TracebackType
from typing import Any

from memsluice.errors import MemsluiceError
from memsluice.escaping import lines, visible

_deferred = False
"""Whether structlog is still to be configured, once it is imported."""
VALUE_CHARS_MAX = 2_000
"""Longest message or value of a log line, and longest line of a traceback."""


def said(error: BaseException) -> str:
    """Return an error as a log line may have it: our own say no content; of any other, the kind and the place."""
    if isinstance(error, MemsluiceError):
        return f"{type(error).__name__}: {error}"
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
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


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
