"""The command line, ``memsluice``: one module a group of commands, mounted by :mod:`memsluice.cli.main`."""

import sys

from memsluice.cli.exit_codes import ExitCode
from memsluice.errors import MissingExtra
from memsluice.extras import needed


def run() -> None:
    """Run the command line; where its packages are not installed, say which extra brings them and exit with 1."""
    try:
        with needed("The command line `memsluice`", "operator"):
            from memsluice.cli.main import app
    except MissingExtra as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(ExitCode.ERROR)
    app()
