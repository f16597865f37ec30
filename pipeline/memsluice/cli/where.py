"""Where a command works: on a broker, or on the home's embedded log."""

import os
from pathlib import Path

from memsluice.home import Home


def on_broker(place: Home, home: Path | None) -> bool:
    """Whether commands go to a broker: the home's stack runs, or the environment names a deployment.

    ``home`` is what the command line named; a home that is named is meant, whatever the environment says.
    """
    from memsluice.stack.control import is_running

    return is_running(place.layout) or (home is None and deployment_named())


def deployment_named() -> bool:
    """Tell whether the environment names a broker and a store."""
    from memsluice.connection import BOOTSTRAP_VARIABLE, FILE_VARIABLE

    return bool(os.environ.get(FILE_VARIABLE) or os.environ.get(BOOTSTRAP_VARIABLE))
