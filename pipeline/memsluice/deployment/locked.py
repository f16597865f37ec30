"""One process at a time: the lock of a file, which ends with the process, however that dies."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memsluice.deployment.paths import private_file
from memsluice.errors import MemsluiceError

PID_BYTES_MAX = 20


@contextmanager
def locked(path: Path, taken: Callable[[str], MemsluiceError]) -> Iterator[None]:
    """Hold a file's lock; the file is made where it is missing, and says whose the lock is.

    Where another process holds it, or this one does already, raises at once what ``taken`` makes of the holder's
    process id, in words. Raises OSError where the file cannot be made or opened.
    """
    with private_file(path).open("r+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = file.read(PID_BYTES_MAX).decode("ascii", "replace").strip()
            raise taken(pid or "not written yet") from None
        with suppress(OSError):  # who holds it is a word for others: on a full disk the lock is held without it
            file.truncate(0)
            file.write(str(os.getpid()).encode())
        yield
