"""MEMSAD as a detector: Algorithm 1, or the variant that the policy names, over its state of the tenant."""

from collections.abc import Collection
from dataclasses import dataclass, field

from memsluice.envelope.codec import Vector
from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision, Finding, Score, Withdrawal
from memsluice.events.models import Recall, Write
from memsluice.gate.detectors.memsad import check, state
from memsluice.gate.detectors.memsad.state import MemsadState
from memsluice.gate.policy.model import MemsadPolicy
from memsluice.gate.policy.wording import Reach
from memsluice.gate.state.rows import TenantRows


@dataclass(slots=True)
class MemsadDetector:
    """See :class:`memsluice.gate.detectors.base.Detector`. ``score``: the verdict's, None where nothing was scored."""

    state: MemsadState
    policy: MemsadPolicy
    score: Score | None = None
    _before: MemsadState = field(init=False)

    def __post_init__(self) -> None:
        self._before = self.state

    @property
    def anomaly(self) -> float:
        """How many deviations the score lies above the calibrated threshold, 0 or more; 0 where no deviation is known.

        None is known until N reference scores are there, nor under a strategy of ranks.
        """
        return _beyond(self.score)

    def anomaly_of(self, vector: Vector) -> float:
        """Return the same of what somebody lets in: it is scored as a write of now would be, and nothing is kept."""
        if not self.policy.enabled:
            return 0.0
        return _beyond(check.check(self.state, vector, self.policy, Decision.ACCEPT)[0])

    def check(self, write: Write, vector: Vector, *, agent: bool, how_far: Reach, least: Decision) -> list[Finding]:
        """Score a write, unless the policy does without."""
        if not self.policy.enabled:
            return []
        self.score, found = check.check(self.state, vector, self.policy, least, write.content)
        return found

    def screened(self, rows: TenantRows, write: Write, codes: Collection[str]) -> None:
        """Tell the calibration, so far as it goes by it."""
        if self.policy.enabled:
            held = "memsad.above_threshold" in codes
            self.state = check.screened(self.state, rows, write.id, self.score, held=held, policy=self.policy)

    def learn(self, rows: TenantRows, entry: Sealed, vector: Vector) -> None:
        """Calibrate on a write that landed."""
        assert isinstance(entry.payload, Write)
        write = entry.payload
        self.state = check.learned(self.state, rows, write.id, write.content, vector, self.policy)

    def fed(self) -> Finding | None:
        """Say how the reference set changed."""
        return state.fed(self._before, self.state)

    def asked(
        self, rows: TenantRows, recall: Recall, vector: Vector, now_ms: int
    ) -> tuple[list[Finding], tuple[Withdrawal, ...]]:
        """Remember a question. MEMSAD looks back on nothing."""
        self.state = self.state.asked(rows, vector, recall.id)
        return [], ()


def _beyond(score: Score | None) -> float:
    if score is None or score.score is None or score.threshold is None or not score.sigma:
        return 0.0
    return max(score.score - score.threshold, 0.0) / score.sigma
