"""What a detector is to a decision: it screens a write, learns what landed, and is told what was asked.

A detector is made for one decision out of what it remembers of the tenant, which it never changes: each method that
learns puts the next state in the place of the last. Methods find; whoever decides takes the findings.
"""

from collections.abc import Collection
from typing import Protocol

from memsluice.envelope.codec import Vector
from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision, Finding, Withdrawal
from memsluice.events.models import Recall, Write
from memsluice.gate.policy.wording import Reach
from memsluice.gate.state.rows import TenantRows


class Detector(Protocol):
    """One detector in one decision."""

    def check(self, write: Write, vector: Vector, *, agent: bool, how_far: Reach, least: Decision) -> list[Finding]:
        """Screen a write; what is held asks for ``least``. ``agent``: it came over an agent's channel."""

    def screened(self, rows: TenantRows, write: Write, codes: Collection[str]) -> None:
        """Take in what became of a screened write, by the codes of all that was found in it."""

    def learn(self, rows: TenantRows, entry: Sealed, vector: Vector) -> None:
        """Learn from a write that landed as guidance and came over a trusted channel."""

    def fed(self) -> Finding | None:
        """Say what the decision taught; None: nothing."""

    def asked(
        self, rows: TenantRows, recall: Recall, vector: Vector, now_ms: int
    ) -> tuple[list[Finding], tuple[Withdrawal, ...]]:
        """Remember a question; return what it tells of what had landed, and what leaves the store by it."""
