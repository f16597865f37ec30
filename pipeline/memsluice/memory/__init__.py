"""Where agents' memory lives: what every adapter stands on, on a deployment or in one process."""

from memsluice.memory.memory import Entry, Memory
from memsluice.memory.opening import open_gate
from memsluice.memory.outcome import Outcome, Status

__all__ = ["Entry", "Memory", "Outcome", "Status", "open_gate"]
