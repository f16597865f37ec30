"""A demo's home: one demo at a time, and emptied only where a demo made it."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from memsluice.deployment.home import Home
from memsluice.deployment.paths import using
from memsluice.errors import ConfigError
from memsluice.keystore.store import KeyStore

LOCK_FILE = "demo.lock"
MADE = "A demo made this home, and `memsluice demo --fresh` may empty it.\n"
SIDECARS = ("", "-wal", "-shm")
"""SQLite's files of one database."""


@contextmanager
def alone(home: Home) -> Iterator[None]:
    """Hold the home for one demo at a time; one that was empty is marked as made here.

    Raises ConfigError where another demo is at it.
    """
    home.prepare()
    empty = not any(home.path.iterdir())
    with using(home.path / LOCK_FILE):
        file = (home.path / LOCK_FILE).open("a")
    with file as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"another demo is playing in {home.path}; wait for it, or give --home FOLDER") from None
        if empty:
            lock.write(MADE)
            lock.flush()
        yield


def wipe(home: Home, *, named: bool) -> None:
    """Delete what demos wrote into a home that is held (:func:`alone`), by exact name, and nothing else.

    A home that a person ``named`` must have been made by a demo. Raises ConfigError, with nothing deleted, where it
    was not, or where a stack lives.
    """
    if home.layout.stack_file.exists():
        raise ConfigError(f"{home.path} is a stack's home, which a demo does not empty; give --home another folder")
    if named and (home.path / LOCK_FILE).read_text(encoding="utf-8", errors="replace") != MADE:
        raise ConfigError(f"{home.path} was not made by a demo, so --fresh does not empty it; remove it yourself, or "
                          "leave --fresh out")  # fmt: skip
    keys = KeyStore(home.path)
    kids = [credential.kid for credential in keys.load_registry().all()] if keys.registry_file.exists() else []
    databases = [home.path / f"{file.name}{end}" for file in (home.log_file, home.store_file) for end in SIDECARS]
    for path in (*databases, *map(keys.credential_path, kids), keys.keyring_file, keys.registry_file):
        path.unlink(missing_ok=True)
