"""The default detector in one decision: a write is screened, learned from, and looked back upon."""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from memsluice.envelope.codec import Vector
from memsluice.envelope.seals import Sealed, Wording
from memsluice.envelope.verdict import Decision, Finding, Usual, Withdrawal
from memsluice.events.models import Recall, Tier, Write, Zone
from memsluice.gate.checks import reach
from memsluice.gate.detectors.calibration.conformal import count_at_least
from memsluice.gate.detectors.rarity import screen
from memsluice.gate.detectors.rarity.evidence import G, Q
from memsluice.gate.detectors.rarity.lookback import Fate, Moved, look_back
from memsluice.gate.detectors.rarity.memory import KeptEntry, KeptQuestion, Memory
from memsluice.gate.detectors.rarity.screen import Seen
from memsluice.gate.detectors.wording.classifier import Classifier, Judged
from memsluice.gate.detectors.wording.shipped import shipped
from memsluice.gate.detectors.wording.text import stems
from memsluice.gate.policy.model import Policy
from memsluice.gate.policy.wording import Reach
from memsluice.gate.state import placement, windows
from memsluice.gate.state.kinds import ENTRY, HOLDER, LOOKED, Gone, Looked
from memsluice.gate.state.rows import TenantRows
from memsluice.gate.state.tags import tag

BUCKETS = 24
READER_CHARS = 8
"""Of a wording model's digest, in the row of an entry."""


@dataclass(slots=True)
class DefaultDetector:
    """See :class:`memsluice.gate.detectors.base.Detector`. Without a ``memory`` it finds and learns nothing.

    ``model`` is the wording classifier, None the one that ships. ``anomaly`` is how many deviations MEMSAD's score of
    the write lies above its threshold, ``tier`` and ``reach`` those by which it is screened; who decides says all of
    them before the write is screened. ``judged`` is what its wording shows, ``seen`` is what a screened write showed,
    ``usual`` what the verdict says of the calibration.
    """

    memory: Memory | None
    model: Classifier | None
    policy: Policy
    seen: Seen | None = None
    usual: Usual | None = None
    anomaly: float = 0.0
    tier: Tier | None = None
    reach: Reach | None = None
    judged: Judged | None = None
    _before: Memory | None = field(init=False)

    def __post_init__(self) -> None:
        self._before = self.memory

    @property
    def on(self) -> bool:
        """Whether the policy lets this detector decide."""
        return self.policy.detector == "default" and self.memory is not None

    @property
    def reads(self) -> float | None:
        """The share of honest texts that say as much to do as the write, None where not both models read it: then the
        n-grams are asked again when it is screened again."""
        return self.judged.p if self.judged is not None and self.judged.both else None

    @property
    def read(self) -> tuple[float, str] | None:
        """The same, and by which models."""
        return None if self.reads is None else (self.reads, self._model().digest[:READER_CHARS])

    def read_before(self, content: str, p: float, reader: str) -> None:
        """Take what models read of a content when it landed; what the n-grams of other models show, if it is worse."""
        self.judged = Judged(p, 0, len(content))
        if reader != self._model().digest[:READER_CHARS]:
            self.judged = min(self.judged, self._model().judge(content, None), key=lambda one: one.p)

    def judge(self, write: Write, shown: Wording | None) -> tuple[Judged, str]:
        """Return what a write's wording shows, and the model that says so. A decision that asks again asks the same."""
        model = self._model()
        if self.judged is None:
            self.judged = model.judge(write.content, shown)
        return self.judged, model.digest

    def check(self, write: Write, vector: Vector, *, agent: bool, how_far: Reach, least: Decision) -> list[Finding]:
        """Screen a write that would go to guidance (:mod:`memsluice.gate.detectors.rarity.screen`).

        :meth:`judge` comes first. With ``least`` ACCEPT what speaks against it is only told.
        """
        assert self.memory is not None
        detect = self.policy.detect
        seen = self._look(self.memory, write, vector, agent=agent, how_far=how_far)
        found = screen.weigh(seen.values, self.memory, detect, tier=self.tier)
        seen.values[G] = found.total
        self.seen, self.usual = seen, found.usual(detect)
        if found.total == 0:
            return []
        detail = {**found.told(), "threshold": detect.threshold, **seen.told()}
        if screen.holds(found, detect) and least is not Decision.ACCEPT:
            return [Finding("detect.held", least, detail)]
        return [Finding("detect.scored", Decision.ACCEPT, detail)]

    def screened(self, rows: TenantRows, write: Write, codes: Collection[str]) -> None:
        """Remember whether a screened write carried a question and whether it was held, whatever became of it."""
        if self.memory is None or self.seen is None:
            return
        settings, score = screen.settings(self.policy.detect, self.tier), float(self.seen.values[G])
        state = self.memory.calibration.screened(settings, write.id, score, held="detect.held" in codes)
        asking = bool(self.seen.values[Q])
        self.memory = self.memory.screened(rows, asking, tag(write.principal)).calibrated(rows, state)

    def learn(self, rows: TenantRows, entry: Sealed, vector: Vector) -> None:
        """Remember what landed as guidance: to know what is usual, and to look back on. Released writes count too."""
        if self.memory is None:
            return
        write, identity = entry.payload, entry.identity
        assert isinstance(write, Write)
        assert identity is not None
        reviewed, seen = self.seen is None, self.seen
        if seen is None:  # a reviewer let it in
            agent = identity.channel == "agent"
            self.judge(write, entry.wording)
            how_far = reach.of(write, identity)
            seen = self._look(self.memory, write, vector, agent=agent, how_far=how_far)
            seen.values[G] = screen.weigh(seen.values, self.memory, self.policy.detect).total
        own = reach.of(write, identity) not in self.policy.detect.reach  # what it says is its writer's own affair
        vouched = identity.tier is Tier.OPERATOR or (identity.channel == "user" and identity.tier is Tier.USER_VERIFIED)
        owner = "" if reviewed or vouched else tag(write.principal)
        new = KeptEntry(0, write.id, seen.stems, seen.exempt or reviewed or vouched or own, owner)
        self.memory = self.memory.landed(rows, new, vector, seen.values)

    def fed(self) -> Finding | None:
        """Say what the decision taught: the score, and the reference before and after, in all and, of the last of it
        that a p-value is of, as high."""
        before, after = self._before, self.memory
        if before is None or after is None:
            return None
        last = [memory.entries[-1].number if memory.entries else None for memory in (before, after)]
        if last[0] == last[1]:
            return None
        score = float(after.table[-1][G])
        sizes = [len(memory.entries) for memory in (before, after)]
        window = self.policy.detect.window
        as_high = [count_at_least(memory.table.column(G)[-window:], score) for memory in (before, after)]
        detail = {
            "score": score, "reference": sizes, "reference_max": after.entries_max,
            "at_least_as_high": as_high, "window": window,
        }  # fmt: skip
        return Finding("detect.fed", Decision.ACCEPT, detail)

    def asked(
        self, rows: TenantRows, recall: Recall, vector: Vector, now_ms: int
    ) -> tuple[list[Finding], tuple[Withdrawal, ...]]:
        """Remember a question, and look back on what had landed."""
        if not self.on or recall.zone is not Zone.GUIDANCE:
            return [], ()
        assert self.memory is not None
        detect, who = self.policy.detect, tag(recall.principal)
        question = KeptQuestion(0, recall.id, who, (tag(recall.session),), stems(recall.question))
        findings, taken = list[Finding](), list[Withdrawal]()
        if detect.look_back:
            used, live = windows.count(rows, LOOKED, who, now_ms, bucket_ms=windows.HOUR_MS, buckets=BUCKETS)
            shadow = self.policy.mode == "shadow"
            allowed = 0 if shadow else max(detect.look_back_per_day - used, 0)
            fate, tier_of = partial(_fate, rows), partial(_tier, rows)
            found = look_back(self.memory, rows, question, vector, detect, allowed, fate, tier_of)
            self.memory, moved, flagged = found
            taken = [_taken_back(rows, one.entry.event_id, recall.id) for one in moved]
            for _ in taken:
                windows.add(rows, LOOKED, who, now_ms, live, bucket_ms=windows.HOUR_MS, buckets=BUCKETS)
                _, live = windows.count(rows, LOOKED, who, now_ms, bucket_ms=windows.HOUR_MS, buckets=BUCKETS)
            for code, some in _by_code(moved, flagged, shadow=shadow).items():
                entries = [{"event": one.entry.event_id, **one.evidence.told()} for one in some]
                findings.append(Finding(code, Decision.ACCEPT, {"entries": entries}))
        self.memory = self.memory.asked(rows, question, vector)
        return findings, tuple(taken)

    def _look(self, memory: Memory, write: Write, vector: Vector, *, agent: bool, how_far: Reach) -> Seen:
        assert self.judged is not None
        return screen.look(
            memory,
            self.judged.score,
            write.content,
            vector,
            session=write.session,
            agent=agent,
            alone=how_far is Reach.OWN,  # what it answers, it answers to its writer
            anomaly=self.anomaly,
        )

    def _model(self) -> Classifier:
        return shipped() if self.model is None else self.model


def _by_code(moved: list[Moved], flagged: list[Moved], *, shadow: bool) -> dict[str, list[Moved]]:
    """Return what was moved, and what stays though the question told of it, by the code that says why."""
    found = {"detect.looked_back": moved}
    for one in flagged:
        why = "detect.look_back_quoted" if one.quoted else "detect.look_back_budget"
        why = "detect.look_back_shadow" if shadow else why
        found.setdefault("detect.look_back_protected" if one.guarded else why, []).append(one)
    return {code: some for code, some in found.items() if some}


def _fate(rows: TenantRows, event_id: str) -> Fate:
    """Return what became of an entry since it landed."""
    row = rows.get(ENTRY, event_id)
    if row is None:
        return Fate.OVER
    if not row.landed:
        return Fate.TAKEN
    if row.was is not None:  # somebody promoted it, lifted its label or renewed it since
        return Fate.VOUCHED
    if row.keyed is False:  # nobody protects or replaces what has no key
        return Fate.LIES
    if placement.guards(rows, row.object_id):
        return Fate.PROTECTED
    return Fate.OVER if placement.overtaken(rows, event_id, row) else Fate.LIES


def _tier(rows: TenantRows, event_id: str) -> Tier | None:
    row = rows.get(ENTRY, event_id)
    return None if row is None else row.tier


def _taken_back(rows: TenantRows, event_id: str, recall_id: str) -> Withdrawal:
    """Keep that an entry, which lies there, is landed no more, and return what takes it out of the store.

    What names it as a parent from now on, or recalls it, is tainted. What it was is kept as ``looked``: a reviewer may
    let it in again (:mod:`memsluice.gate.commands.restoring`).
    """
    row = rows.get(ENTRY, event_id)
    assert row is not None
    assert row.object_id is not None
    assert row.zone is not None
    after = replace(
        row,
        landed=False,
        taint=True,
        decision=Decision.QUARANTINE,
        object_id=None,
        gone=Gone((row.object_id, row.version), rows.now_ms),  # recalls of it are on their way
        looked=Looked(recall_id, row.taint, row.decision),
    )
    rows.put(ENTRY, event_id, after)
    rows.delete(HOLDER, row.object_id)
    return Withdrawal(row.object_id, row.zone, event_id, row.content)
