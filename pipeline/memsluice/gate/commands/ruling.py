"""What a command brings along, when it is decided, and what it comes to."""

from typing import TYPE_CHECKING

from msgspec import Struct

from memsluice.envelope.records import Accepted
from memsluice.envelope.seals import Admission, Sealed
from memsluice.envelope.verdict import Decision, Finding, Score, Withdrawal
from memsluice.gate.state.lineage import Label
from memsluice.gate.state.placement import NOWHERE, Place

if TYPE_CHECKING:  # a command line that names a command's parameters compiles no detector
    from memsluice.gate.detectors.rarity.screen import Seen

Carried = Sealed | Accepted | None
"""What a command brings along, opened and verified: a held write, a landed entry, or nothing that the gate sealed."""


class At(Struct, frozen=True):
    """When a command is decided (Unix ms), and the version that it gives to what it lets in: its sealed offset."""

    now_ms: int
    version: int


class Ruling(Struct, frozen=True):
    """What a command came to. ``entry`` is the held write it decided, with its label, its place if it lands, its score.

    ``about`` is the admission of the landed entry it moved, ``withdraws`` the object it takes from the store.
    ``seen`` is what the default detector saw in a write that was screened again: nobody vouched for that one.
    """

    findings: tuple[Finding, ...]
    decision: Decision
    place: Place = NOWHERE
    entry: Sealed | None = None
    tau: Label | None = None
    score: Score | None = None
    about: Admission | None = None
    withdraws: tuple[Withdrawal, ...] = ()
    seen: "Seen | None" = None


def refused(code: Finding) -> Ruling:
    """Return the ruling of a command that is not carried out."""
    return Ruling((code,), Decision.REJECT)


def recorded(finding: Finding, tau: Label | None = None) -> Ruling:
    """Return the ruling of a command that is carried out and lets nothing in."""
    return Ruling((finding,), Decision.RECORD, tau=tau)
