"""Progress messages of long operations."""

from typing import Protocol


class Reporter(Protocol):
    """Told in short lines what is going on."""

    def doing(self, line: str) -> None:
        """Say what is being done now; replaces the line before."""

    def done(self, line: str) -> None:
        """Say what has been achieved; stays."""


class Silent:
    """Says nothing."""

    def doing(self, line: str) -> None:
        """Say nothing."""

    def done(self, line: str) -> None:
        """Say nothing."""


SILENT = Silent()
