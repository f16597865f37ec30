"""Which gate a memory stands on: a deployment's where one is named or runs, else one in this process."""

import logging
import os
from pathlib import Path
from typing import Literal

from memsluice.deployment.paths import BOOTSTRAP_VARIABLE, FILE_VARIABLE, home_dir, stack_file
from memsluice.errors import InvalidArgument
from memsluice.extras import needed
from memsluice.memory.gate import Gate, Instructions

Mode = Literal["auto", "stack", "embedded"]
_log = logging.getLogger(__name__)


def open_gate(
    *, tenant: str, home: Path | None = None, mode: Mode = "auto", instructions: Instructions | None = None
) -> Gate:
    """Open a tenant's gate; close it when done.

    ``auto`` takes the deployment that the environment names or the home's stack, whether or not it answers, and where
    there is neither the embedded gate in the home, which needs no broker and is made at its first use.
    ``instructions`` makes what reads entries before they are shown. Raises ConfigError, InvalidArgument, MissingExtra,
    BrokerUnavailable and StoreUnavailable.
    """
    if mode not in ("auto", "stack", "embedded"):
        raise InvalidArgument(f"argument mode must be auto, stack or embedded, not {mode!r}")
    if mode == "auto":
        mode = _found(home)
    if mode == "stack":
        with needed("a memory on a deployment", "recall"):
            from memsluice.memory.stack import StackGate
        return StackGate.open_local(tenant=tenant, home=home, instructions=instructions)
    with needed("the embedded gate", "embedded"):
        from memsluice.memory.embedded import EmbeddedGate
    return EmbeddedGate.open_local(tenant=tenant, home=home, instructions=instructions)


def _found(home: Path | None) -> Literal["stack", "embedded"]:
    """Tell which there is. A deployment that is named wrongly, or does not answer, is no reason for another gate."""
    named = home is None and any(os.environ.get(name) for name in (FILE_VARIABLE, BOOTSTRAP_VARIABLE))
    if named or stack_file(home_dir(home)).exists():
        return "stack"
    _log.info("no deployment is named and the home has no stack: the gate runs in this process, on files of the home")
    return "embedded"
