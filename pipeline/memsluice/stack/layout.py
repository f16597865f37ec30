"""Where the local stack keeps its files.

Two roots: the *cache* (jars and binaries; safe to delete, shared by all homes) and the *home* (data, credentials,
logs and run files of one stack; mode 0700, every file in it 0600).
"""

import os
from dataclasses import dataclass
from pathlib import Path

from memsluice.errors import StackError

HOME_VARIABLE = "MEMSLUICE_HOME"
CACHE_VARIABLE = "MEMSLUICE_CACHE"


def home_dir(home: Path | None = None) -> Path:
    """Return the stack's home: the argument, else ``MEMSLUICE_HOME``, else ``~/.memsluice``."""
    return _resolve(home, HOME_VARIABLE, Path.home() / ".memsluice")


def cache_dir(cache: Path | None = None) -> Path:
    """Return the download cache: the argument, else ``MEMSLUICE_CACHE``, else ``~/.cache/memsluice``."""
    return _resolve(cache, CACHE_VARIABLE, Path.home() / ".cache" / "memsluice")


def _resolve(given: Path | None, variable: str, default: Path) -> Path:
    if given is not None:
        return given.expanduser().resolve()
    text = os.environ.get(variable, "")
    return Path(text).expanduser().resolve() if text else default


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths below one home."""

    home: Path

    @property
    def stack_file(self) -> Path:
        """Ports, versions, credentials: what a restart keeps and what clients connect by."""
        return self.home / "stack.json"

    @property
    def lock_file(self) -> Path:
        """Held while ``up`` or ``down`` is at work."""
        return self.home / "stack.lock"

    @property
    def data(self) -> Path:
        """Everything ``down --wipe`` is about."""
        return self.home / "data"

    @property
    def workers(self) -> Path:
        """What the workers keep between restarts: state rebuilt from the broker's changelogs, useless without them."""
        return self.home / "workers"

    @property
    def config(self) -> Path:
        """Generated configuration of the servers; written anew at each start."""
        return self.home / "config"

    @property
    def logs(self) -> Path:
        """One log file a service, rotated by the supervisor."""
        return self.home / "logs"

    @property
    def run_file(self) -> Path:
        """The supervisor's own report: process ids, create times, restarts."""
        return self.home / "supervisor.json"

    def log(self, service: str) -> Path:
        """Return the log file of ``service``."""
        return self.logs / f"{service}.log"

    def prepare(self) -> None:
        """Create the directories, mode 0700 each (an existing home is tightened to it). Raises StackError."""
        try:
            for path in (self.home, self.data, self.config, self.logs):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                path.chmod(0o700)
        except OSError as error:
            raise StackError(
                f"{self.home} can't be the stack's home ({error.strerror}): choose another with {HOME_VARIABLE}=DIR"
            ) from error


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
