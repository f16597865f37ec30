"""A replica's name and its folder: one live worker each, because two of a name fence one another at the broker."""

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from memsluice.deployment.locked import locked
from memsluice.errors import ConfigError

NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
"""A static membership id, and a folder: on some disks capitals do not count."""
LOCK_FILE: Final = "worker.lock"


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
    with ExitStack() as locks:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            locks.enter_context(locked(folder / LOCK_FILE, partial(_taken, folder, replica)))
        yield


def _taken(folder: Path, replica: str, pid: str) -> ConfigError:
    return ConfigError(
        f"another worker (pid {pid}) runs as replica {replica!r} in {folder}; stop it, or give this one another name "
        "with --replica"
    )
