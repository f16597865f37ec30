"""What is read before a model is given it. Here outside data goes to a model with every answer: so of that, too, what
reads like an instruction stays away, as far as the policy's detectors decide at all (and not in shadow mode)."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from memsluice.deployment.home import Home
from memsluice.encoder import Encoder
from memsluice.gate.policy.model import load_or_default
from memsluice.memory.gate import Gate
from memsluice.memory.opening import Mode, open_gate
from memsluice.recall.instructions.detectors import DetectorCheck, of_gate
from memsluice.recall.instructions.policy import InstructionCheck


def open_reading_gate(*, tenant: str, home: Path | None = None, mode: Mode = "auto") -> Gate:
    """Open a tenant's gate (:func:`~memsluice.memory.opening.open_gate`) for a memory server.

    Raises as that does, and PolicyError.
    """
    return open_gate(tenant=tenant, home=home, mode=mode, instructions=withholding(home))


def withholding(home: Path | None) -> Callable[[Encoder], InstructionCheck]:
    """Return what makes the check: the wording detectors under a home's policies, of outside data, too."""
    policies = load_or_default(Home.at(home).policy_file)
    return lambda encoder: DetectorCheck(
        encoder, lambda tenant: replace(of_gate(policies.of(tenant)), withhold_data=True)
    )
