"""A decision while it is made: the findings so far, and the checks that a write and its replay share."""

from dataclasses import dataclass, field

from msgspec import Struct

from memsluice.envelope.codec import Vector
from memsluice.envelope.seals import Admission, Sealed, Wording
from memsluice.envelope.verdict import SEVERITY, Decision, Finding, Withdrawal, rule_of
from memsluice.events.models import Recall, Tier, Write
from memsluice.gate.checks import facts, instructions, overrides, reach, related
from memsluice.gate.checks.spelled import Spelled, spelled
from memsluice.gate.detectors.base import Detector
from memsluice.gate.detectors.detect import DefaultDetector
from memsluice.gate.detectors.memsad.detector import MemsadDetector
from memsluice.gate.detectors.memsad.state import MemsadState
from memsluice.gate.detectors.rarity.memory import Memory
from memsluice.gate.detectors.wording import check as wording
from memsluice.gate.detectors.wording.classifier import Classifier
from memsluice.gate.policy import parts
from memsluice.gate.policy.model import Policy
from memsluice.gate.policy.wording import Reach
from memsluice.gate.state.kinds import Weighed
from memsluice.gate.state.lineage import Label
from memsluice.gate.state.placement import NOWHERE, Place
from memsluice.gate.state.rows import Getter, TenantRows

FIRM = ("monitor.rule_3_immutable", "limits.content_bytes", "duplicates.other_content", "replay.standing")
"""Findings that hold in shadow mode too: what they stop would take the place of an entry, or is too large for one."""
OUTSIDE = ("monitor.rule_4_tainted", "monitor.rule_5_untrusted")
"""Findings of what is kept as data wherever it lands, whatever else asks for more than containing it."""


class TenantState(Struct, frozen=True):
    """What earlier events of a tenant left: its rows, and the detectors' parts of them decoded into matrices.

    Without ``memory`` MEMSAD and the patterns decide, whatever the policy's ``detector``. ``model`` is the wording
    classifier, None the one that ships.
    """

    rows: Getter
    memsad: MemsadState
    memory: Memory | None = None
    model: Classifier | None = None


class Screened(Struct, frozen=True):
    """Of whom a write is, as far as screening goes by it, and what the encoder's head read in it."""

    reach: Reach
    tier: Tier
    agent: bool = False
    wording: Wording | None = None

    @staticmethod
    def of(sealed: Sealed) -> "Screened":
        """Return that of an authenticated write."""
        write, identity = sealed.payload, sealed.identity
        assert isinstance(write, Write)
        assert identity is not None
        return Screened(reach.of(write, identity), identity.tier, identity.channel == "agent", sealed.wording)


@dataclass(slots=True)
class Draft:
    """``about`` is the write that the verdict places: the event itself, or the one that a command lets in or moves.

    ``held_until_ms``, ``target_offset`` and a recall's ``target`` are the verdict's.
    """

    policy: Policy
    default: DefaultDetector
    published: MemsadDetector
    vector: Vector | None
    about: Sealed | Admission | None = None
    findings: list[Finding] = field(default_factory=list)
    tau: Label | None = None
    place: Place = NOWHERE
    withdraws: tuple[Withdrawal, ...] = ()
    held_until_ms: int | None = None
    target_offset: int | None = None
    target: str = ""

    @staticmethod
    def begun(
        state: TenantState, policy: Policy, vector: Vector | None, about: Sealed | Admission | None = None
    ) -> "Draft":
        """Return a decision in which nothing was found yet."""
        default = DefaultDetector(state.memory, state.model, policy)
        return Draft(policy, default, MemsadDetector(state.memsad, policy.memsad), vector, about)

    @property
    def detectors(self) -> tuple[Detector, ...]:
        """Those that remember, in the order in which they put their rows."""
        return self.published, self.default

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

    def weighed(self) -> dict[str, Weighed]:
        """Return what the rules on contents went by that asked for more than containing it."""
        asked = {rule_of(f.code) for f in self.findings if f.decision in (Decision.QUARANTINE, Decision.REJECT)}
        return {module: self.weighing(module) for module in parts.CONTENT if module in asked}

    def weighing(self, module: str) -> Weighed:
        """Return what a rule on contents goes by now: its part of the policy, and its numbers where it has some."""
        part, strict = parts.digest(self.policy, module), parts.strictness(self.policy, module)
        usual, score = self.default.usual, self.published.score
        if module == "detect" and usual is not None:
            line = self.policy.detect.threshold if usual.threshold is None else usual.threshold
            return Weighed(part=part, strict=strict, score=usual.score, threshold=line, p=usual.p)
        if module == "memsad" and score is not None:
            return Weighed(part=part, strict=strict, score=score.score, threshold=score.threshold, p=score.p)
        return Weighed(part=part, strict=strict)

    def lands(self) -> bool:
        """Whether a write with these findings lands. Shadow mode, too, overwrites no protected key."""
        if self.decision() in (Decision.ACCEPT, Decision.CONTAIN):
            return True
        return self.policy.mode == "shadow" and not any(finding.code in FIRM for finding in self.findings)

    def landing(self) -> Decision:
        """Return the decision that says where it lands, if it does: shadow mode, too, brings no outside content in."""
        outside = any(finding.code in OUTSIDE for finding in self.findings)
        return Decision.CONTAIN if outside else self.decision()

    def screen(self, write: Write, about: Screened) -> None:
        """Screen what is written. What is contained anyway is data in its own zone: reported, not held, by default."""
        contained = self.decision() is Decision.CONTAIN and not self.policy.instructions.hold_contained
        self.default.tier, self.default.reach = about.tier, about.reach
        published = Decision.ACCEPT if contained else Decision.QUARANTINE
        decides = self.default.on and not contained
        if decides:
            published = Decision.ACCEPT  # what the published detectors find is reported beside it
        content = spelled(write.content) if self.policy.instructions.enabled else None
        matches = () if content is None else instructions.find(content)
        pattern = instructions.check(matches, facts.least(write, published))
        told = content is not None and instructions.told(content, matches)
        scored = list[Finding]()
        if self.vector is not None:
            scored = self.published.check(write, self.vector, agent=about.agent, how_far=about.reach, least=published)
            self.default.anomaly = self.published.anomaly
        if decides:
            self._screen_by_default(write, about, content, pattern=told)
        elif self.default.on:
            self.default.judge(write, about.wording)  # for the day on which somebody lifts its label
            if content is not None:
                self.add(overrides.check(content, Decision.ACCEPT))
        self.add(pattern, facts.check(write, self.policy), *scored)

    def _screen_by_default(self, write: Write, about: Screened, content: Spelled | None, *, pattern: bool) -> None:
        judged, model = self.default.judge(write, about.wording)
        rules, least = self.policy.wording, Decision.QUARANTINE
        self.add(wording.check(judged, rules, about.reach, about.tier, pattern=pattern, least=least, model=model))
        if content is not None:
            self.add(overrides.check(content, least if rules.action == "hold" else Decision.ACCEPT))
        if self.vector is not None:
            holding = least if about.reach in self.policy.detect.reach else Decision.ACCEPT
            found = self.default.check(write, self.vector, agent=about.agent, how_far=about.reach, least=holding)
            self.add(*found)

    def screened(self, rows: TenantRows, write: Write) -> None:
        """Tell the detectors what became of a screened write, so far as their calibration goes by it."""
        codes = {finding.code for finding in self.findings}
        for detector in self.detectors:
            detector.screened(rows, write, codes)

    def asked(self, rows: TenantRows, recall: Recall, vector: Vector, now_ms: int) -> None:
        """Tell the detectors what was asked, and take what they say of what had landed."""
        for detector in self.detectors:
            findings, gone = detector.asked(rows, recall, vector, now_ms)
            self.add(*findings)
            self.withdraws += gone

    def learn(self, rows: TenantRows, entry: Sealed, decision: Decision) -> None:
        """Calibrate on what went to guidance and came over a trusted channel."""
        assert entry.identity is not None
        if decision is not Decision.ACCEPT or not entry.identity.tier.trusted:
            return
        if self.vector is not None:
            for detector in self.detectors:
                detector.learn(rows, entry, self.vector)
        related.learn(rows, entry, self.policy)
