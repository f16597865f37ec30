"""A decision while it is made: the findings so far, and the checks that a write and its replay share."""

from memsluice.envelope.codec import Vector
from memsluice.envelope.seals import Admission, Sealed
from memsluice.envelope.verdict import SEVERITY, Decision, Finding, Score, Usual, Withdrawal
from memsluice.events.models import Write
from memsluice.gate.checks import facts, instructions
from memsluice.gate.checks.monitor import Label
from memsluice.gate.detectors import detect
from memsluice.gate.detectors.memsad import check as published_check
from memsluice.gate.detectors.memsad.state import MemsadState
from memsluice.gate.detectors.rarity.memory import Memory
from memsluice.gate.detectors.rarity.screen import Seen
from memsluice.gate.detectors.wording.classifier import Classifier
from memsluice.gate.policy.model import Policy
from memsluice.gate.records import dataclass, field
from memsluice.gate.state.placement import NOWHERE, Place
from memsluice.gate.state.rows import TenantRows

FOUND_MAX = 8
FIRM = ("monitor.rule_3_immutable", "limits.content_bytes", "duplicates.other_content", "replay.standing")
"""Findings that hold in shadow mode too: what they stop would take the place of an entry, or is too large for one."""
OUTSIDE = ("monitor.rule_4_tainted", "monitor.rule_5_untrusted")
"""Findings of what is kept as data wherever it lands, whatever else asks for more than containing it."""


@dataclass(slots=True)
class Draft:
    """``about`` is the write that the verdict places: the event itself, or the one that a command lets in or moves.

    ``held_until_ms`` and ``target_offset`` are the verdict's.
    """

    findings: list[Finding] = field(default_factory=list)
    score: Score | None = None
    tau: Label | None = None
    memsad: MemsadState | None = None
    vector: Vector | None = None
    place: Place = NOWHERE
    about: Sealed | Admission | None = None
    withdraws: tuple[Withdrawal, ...] = ()
    memory: Memory | None = None
    seen: Seen | None = None
    model: Classifier | None = None
    held_until_ms: int | None = None
    target_offset: int | None = None
    usual: Usual | None = None

    def decision(self) -> Decision:
        """Return the strongest that was asked for."""
        if not self.findings:  # as of most writes, and it is asked several times of each
            return Decision.ACCEPT
        return max([finding.decision for finding in self.findings], key=SEVERITY.index)

    def add(self, *findings: Finding | None) -> None:
        """Take findings; None is none."""
        for finding in findings:
            if finding is not None:
                self.findings.append(finding)

    def lands(self, policy: Policy) -> bool:
        """Whether a write with these findings lands. Shadow mode, too, overwrites no protected key."""
        if self.decision() in (Decision.ACCEPT, Decision.CONTAIN):
            return True
        return policy.mode == "shadow" and not any(finding.code in FIRM for finding in self.findings)

    def landing(self) -> Decision:
        """Return the decision that says where it lands, if it does: shadow mode, too, brings no outside content in."""
        outside = any(finding.code in OUTSIDE for finding in self.findings)
        return Decision.CONTAIN if outside else self.decision()

    def screen(self, write: Write, policy: Policy) -> None:
        """Screen what is written. What is contained anyway is data in its own zone: reported, not held, by default."""
        contained = self.decision() is Decision.CONTAIN and not policy.instructions.hold_contained
        least = published = Decision.ACCEPT if contained else Decision.QUARANTINE
        alone = True
        if not contained and detect.on(self, policy):
            detect.check(self, write, policy)
            alone = not detect.known(self)
            published = Decision.ACCEPT  # what the published detectors find is reported beside it
        if policy.instructions.enabled:
            matches = instructions.find(write.content)
            if matches:
                detail = {"patterns": sorted({match.name for match in matches})[:FOUND_MAX], "count": len(matches)}
                asks = facts.least(write, least if alone else published)
                self.add(Finding("instructions.found", asks, detail))
        self.add(facts.check(write, policy))
        if policy.memsad.enabled and self.vector is not None and self.memsad is not None:
            self.score, found = published_check.check(self.memsad, self.vector, policy.memsad, published, write.content)
            self.add(*found)

    def screened(self, rows: TenantRows, write: Write, policy: Policy) -> None:
        """Tell both detectors what became of a screened write, so far as their calibration goes by it."""
        codes = {finding.code for finding in self.findings}
        if policy.memsad.enabled and self.memsad is not None:
            held = "memsad.above_threshold" in codes
            self.memsad = published_check.screened(
                self.memsad, rows, write.id, self.score, held=held, policy=policy.memsad
            )
        detect.screened(self, rows, write, policy, held="detect.held" in codes)

    def learn(self, rows: TenantRows, entry: Sealed, decision: Decision, policy: Policy) -> None:
        """Calibrate on what went to guidance and came over a trusted channel."""
        assert entry.identity is not None
        assert isinstance(entry.payload, Write)
        learns = decision is Decision.ACCEPT and entry.identity.tier.trusted
        if learns and self.vector is not None and self.memsad is not None:
            write = entry.payload
            self.memsad = published_check.learned(
                self.memsad, rows, write.id, write.content, self.vector, policy.memsad
            )
        if learns:
            detect.learn(self, rows, entry, policy)
