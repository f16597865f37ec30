"""Where the local stack keeps its files below a home (:mod:`memsluice.deployment.paths`)."""

from dataclasses import dataclass
from pathlib import Path

from memsluice.deployment import paths
from memsluice.deployment.paths import HOME_VARIABLE
from memsluice.errors import StackError


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths below one home."""

    home: Path

    @property
    def stack_file(self) -> Path:
        """Ports, versions, credentials: what a restart keeps and what clients connect by."""
        return paths.stack_file(self.home)

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
            paths.prepare_home(self.home)
            for path in (self.data, self.config, self.logs):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                path.chmod(0o700)
        except OSError as error:
            do = f"make it writable for this user, or choose another home with --home FOLDER or {HOME_VARIABLE}"
            raise StackError(f"the stack's folder {paths.in_words(error, do=do)}") from error
