"""What is deprecated, and the one way in which it says so. The policy is docs/deprecations.md."""

import warnings
from typing import NamedTuple


class Deprecated(NamedTuple):
    """A public name that will go away: as its user writes it, what to use instead, and in which versions."""

    name: str
    replacement: str
    since: str
    removal: str
    """The first version that may lack it; never before a year has passed since ``since`` was released."""

    def __str__(self) -> str:
        """Return the warning's text."""
        return (
            f"{self.name} is deprecated since memsluice {self.since} and may be removed in {self.removal}: "
            f"use {self.replacement}"
        )


DEPRECATED: dict[str, Deprecated] = {
    one.name: one
    for one in (
        Deprecated("memsluice.Options", "memsluice.WriterOptions", "0.1", "0.3"),
        Deprecated(
            "memsluice.open_local",
            "the class's own method, such as memsluice.MemoryWriter.open_local(tenant=...)",
            "0.1",
            "0.3",
        ),
    )
}


def warn(name: str) -> None:
    """Warn the caller of the function that calls this about a name of the table."""
    warnings.warn(str(DEPRECATED[name]), DeprecationWarning, stacklevel=3)
