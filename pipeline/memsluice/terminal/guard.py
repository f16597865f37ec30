"""Where the review cannot be drawn, and what to use instead. Imported before anything of textual is."""

import os
from collections.abc import Callable

from memsluice.errors import ConfigError


def refuse_without_terminal(*, there: bool, environment: Callable[[str], str | None] = os.environ.get) -> None:
    """Raise ConfigError, which says what to use instead, where there is no terminal to draw on."""
    if not there or environment("TERM") in ("", "dumb", None):
        raise ConfigError(
            "memsluice review draws on a terminal, and here is none that can be drawn on: use memsluice quarantine "
            "list, and memsluice quarantine release or reject, which scripts can call too"
        )
