"""Where a deployment's files lie, below everything that reads or writes them.

Two roots: the *cache* (jars and binaries; safe to delete, shared by all homes) and the *home* (data, credentials, keys,
logs and run files of one deployment; mode 0700, so that nobody else gets at anything in it; keys, credentials and the
embedded log and store are of mode 0600 besides).
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memsluice.errors import ConfigError

HOME_VARIABLE = "MEMSLUICE_HOME"
CACHE_VARIABLE = "MEMSLUICE_CACHE"
HOME_NAMES = (
    "credentials", "demo.lock", "embedded.db", "keyring.json", "keys.lock", "policies", "registry.yaml", "stack.json",
    "stack.lock", "store.db", "workers",
)  # fmt: skip
"""Files and folders by which a home is known: one of them comes first, whatever is done there first."""
FILE_VARIABLE = "MEMSLUICE_CONNECTION"
BOOTSTRAP_VARIABLE = "MEMSLUICE_BOOTSTRAP"


def home_dir(home: Path | None = None) -> Path:
    """Return the home: the argument, else ``MEMSLUICE_HOME``, else ``~/.memsluice``."""
    return _resolve(home, HOME_VARIABLE, "~/.memsluice")


def cache_dir(cache: Path | None = None) -> Path:
    """Return the download cache: the argument, else ``MEMSLUICE_CACHE``, else ``~/.cache/memsluice``."""
    return _resolve(cache, CACHE_VARIABLE, "~/.cache/memsluice")


def _resolve(given: Path | None, variable: str, default: str) -> Path:
    if given is not None:
        return given.expanduser().resolve()
    text = os.environ.get(variable, "")
    return Path(text).expanduser().resolve() if text else Path(default).expanduser()


_REMEDIES = {
    errno.EACCES: "this user needs permission for it and its folder",
    errno.EPERM: "only its owner may do this",
    errno.EROFS: "name a place that can be written",
    errno.EEXIST: "a file has the name already: name another",
    errno.ENOTDIR: "a file is where a folder should be: name another place",
    errno.EISDIR: "name a file in the folder",
    errno.ENOENT: "check the name",
    errno.ENOSPC: "free some space there",
}
"""What to do, by the kind of failure."""
_ELSEWHERE = f"choose another home with --home FOLDER or {HOME_VARIABLE}"


def in_words(error: OSError, path: Path | None = None, do: str = "") -> str:
    """Return a failed use of a file or folder in one sentence: which, what happened, what to do about it."""
    where, what = path or error.filename, (error.strerror or str(error) or type(error).__name__).lower()
    remedy = do or _REMEDIES.get(error.errno or 0, "")
    return f"{f'{where} cannot be used: ' if where else ''}{what}{f'; {remedy}' if remedy else ''}"


@contextmanager
def using(path: Path, do: str = "") -> Iterator[None]:
    """Turn a failed use of a file or folder into a ConfigError with what to do: ``do``, else by its kind."""
    try:
        yield
    except OSError as error:
        raise ConfigError(in_words(error, path, do)) from error


def prepare_home(home: Path) -> None:
    """Make the folder of a home, mode 0700, or tighten the home that is there.

    Raises ConfigError for a folder in which somebody keeps other things and no home is: a path that was meant to be
    given and was not (``--home "$UNSET"``) names the folder that one stands in, and no key belongs there. Raises it,
    too, for a home that is a file, or that this user cannot make or write.
    """
    with using(home, f"make it writable for this user, or {_ELSEWHERE}"):
        _prepare(home)


def _prepare(home: Path) -> None:
    if home.is_file():
        raise ConfigError(f"{home} is a file and not a folder: {_ELSEWHERE}")
    if home.is_dir() and not any((home / name).exists() for name in HOME_NAMES):
        other = next(home.iterdir(), None)
        if other is not None:
            raise ConfigError(
                f"{home} has other files in it ({other.name}, for one) and is no memsluice home: name a new or empty "
                f"folder with --home FOLDER or {HOME_VARIABLE}"
            )
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.chmod(0o700)


def deployment_named() -> bool:
    """Tell whether the environment names a broker and a store."""
    return bool(os.environ.get(FILE_VARIABLE) or os.environ.get(BOOTSTRAP_VARIABLE))


def stack_file(home: Path) -> Path:
    """Return the file of a home's local stack: ports, versions, credentials, and how clients connect."""
    return home / "stack.json"


def private_file(path: Path) -> Path:
    """Return the path, having made an empty file of mode 0600 there where none was.

    For SQLite, which takes an empty file for a new database, and gives what it puts beside it the same mode.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    return path


def write_private(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` with mode 0600, atomically: a reader sees the old file or the new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def append_private(path: Path, text: str) -> None:
    """Add ``text`` to the end of ``path``, which has mode 0600 where it is new."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
