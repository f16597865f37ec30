"""A replica's name and its folder: one live worker each, because two of a name fence one another at the broker."""

import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from memsluice.errors import ConfigError

NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
"""A static membership id, and a folder: on some disks capitals do not count."""
LOCK_FILE: Final = "worker.lock"
PID_CHARS_MAX: Final = 20


@contextmanager
def held(folders: Iterable[Path], replica: str) -> Iterator[None]:
    """Hold a replica's folders, one an app, for as long as a worker runs; they are made where they are missing.

    The lock ends with the process, however that dies. Raises ConfigError for a name that is none, and at once where
    another live process holds a folder.
    """
    if NAME.fullmatch(replica) is None:
        raise ConfigError(
            f"{replica!r} is no replica's name: --replica takes 1 to 63 of a-z, 0-9, '.', '_' and '-', the first one "
            "a letter or digit"
        )
    with ExitStack() as open_files:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            file = open_files.enter_context((folder / LOCK_FILE).open("a+"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                pid = file.read(PID_CHARS_MAX).strip() or "not written yet"
                raise ConfigError(
                    f"another worker (pid {pid}) runs as replica {replica!r} in {folder}; stop it, or give this one "
                    "another name with --replica"
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
        yield
