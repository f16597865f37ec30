"""A file that is read again when it changes, so that keys rotate without a restart."""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from memsluice.errors import ConfigError

RELOAD_SECONDS = 1.0
"""A changed file is noticed within this time."""

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Watched(Generic[_T]):
    """A file's parsed value, read again when its times, size or inode changed, looked at once a second at most.

    A change that cannot be read keeps the last good value, is logged once, and is tried again at every look: a slip of
    an editor must not stop the stream, and neither may a moment without file handles keep an old key in force. Safe for
    several threads.
    """

    def __init__(self, load: Callable[[], _T], path: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._load, self._path, self._monotonic = load, path, monotonic
        self._lock = threading.Lock()
        self._value: _T | None = None
        self._seen: tuple[int, ...] = ()
        self._failed: tuple[int, ...] = ()
        self._looked = float("-inf")

    def get(self, *, now: bool = False) -> _T:
        """Return the value; ``now`` looks at the file even if it was looked at a moment ago.

        Raises ConfigError where it could never be read.
        """
        with self._lock:
            if self._value is None or now or self._monotonic() - self._looked >= RELOAD_SECONDS:
                self._looked = self._monotonic()
                self._look()
            if self._value is None:
                raise ConfigError(f"{self._path} could not be read")
            return self._value

    def expire(self) -> None:
        """Look again at the next :meth:`get`: this process has just written the file."""
        with self._lock:
            self._looked = float("-inf")

    def _look(self) -> None:
        try:
            found = self._path.stat()
            seen: tuple[int, ...] = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
        except OSError:
            seen = (0,)
        if self._value is not None and seen == self._seen:
            return
        try:
            self._value = self._load()
        except ConfigError as error:
            if self._value is None:
                raise
            if seen != self._failed:
                _log.error("a changed file cannot be read, its last good content stays in force: %s", error)
            self._failed = seen
            return
        self._seen, self._failed = seen, ()
