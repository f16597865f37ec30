"""Where one deployment's files lie, and how its gate's files come to be there."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memsluice.deployment.layout import Layout
from memsluice.deployment.paths import home_dir, prepare_home
from memsluice.errors import ConfigError

if TYPE_CHECKING:
    from memsluice.deployment.local_log import LocalLog


@dataclass(frozen=True, slots=True)
class Home:
    """The paths below one home, beside those of the stack and of the key store."""

    path: Path

    @classmethod
    def at(cls, home: Path | None = None) -> "Home":
        """Return the home: the argument, else ``MEMSLUICE_HOME``, else ``~/.memsluice``."""
        return cls(home_dir(home))

    @property
    def log_file(self) -> Path:
        """The embedded runtime's log, positions and state."""
        return self.path / "embedded.db"

    @property
    def store_file(self) -> Path:
        """The embedded runtime's vector store."""
        return self.path / "store.db"

    @property
    def workers_dir(self) -> Path:
        """State on disk of the workers on Kafka, one folder a replica."""
        return self.path / "workers"

    @property
    def policy_file(self) -> Path:
        """The policies in force; the package's own where the file is missing."""
        return self.path / "policies" / "default.yaml"

    @property
    def layout(self) -> Layout:
        """The stack's files."""
        return Layout(self.path)

    def prepare(self) -> None:
        """Create the directory, mode 0700. Raises ConfigError where other things lie there."""
        prepare_home(self.path)

    def local_log(self, *, reading: bool = False) -> "LocalLog":
        """Open the embedded log, without stages; ``reading``: to read only. Raises ConfigError where there is none."""
        from memsluice.deployment.local_log import LocalLog

        if not self.log_file.exists():
            raise ConfigError(f"There is no embedded log in {self.path}: `memsluice demo` makes one")
        return LocalLog(self.log_file, reading=reading)
