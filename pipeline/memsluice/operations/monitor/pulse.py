"""The stream as it runs, counted from audit records. Pure: no I/O, no clock; memory is bounded whatever arrives.

Times are Unix ms and the broker's: a record counts when it was appended to the audit topic.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from memsluice.envelope.keys import Keyring
from memsluice.envelope.verdict import Decision, Verdict
from memsluice.events.models import Action, Tier
from memsluice.events.names import EventType
from memsluice.events.records import Record
from memsluice.gate.checks.sessions import RETURNED
from memsluice.operations.trace.life import reopened, replayed
from memsluice.operations.trace.verdicts import read
from memsluice.operations.verdict_words import from_refused
from memsluice.telemetry.drift import DriftGauge

BUCKET_MS = 5_000
BUCKETS = 12
RECENT_S = BUCKET_MS * BUCKETS // 1_000
"""What "recent" means: the last minute."""
TENANTS_MAX = 1_000
"""Tenants that are followed; beyond, the one that was quiet for longest is dropped and counted."""
HELD_MAX = 1_000
"""Held writes of a tenant whose age is followed: the oldest; further ones are counted."""
REASONS_MAX = 200
KEYS_MAX = 200
"""Credentials that are named for what only they did; what further ones did counts as OTHER's."""
OTHER = "other"
WAITS_MAX = 512
"""Latest records over which the wait for a verdict is measured."""


@dataclass(slots=True)
class Recent:
    """How many things happened in the last minute, counted in buckets of five seconds."""

    buckets: dict[int, int] = field(default_factory=dict)

    def add(self, at_ms: int) -> None:
        """Count one. What comes late still counts in its own bucket."""
        number = at_ms // BUCKET_MS
        self.buckets[number] = self.buckets.get(number, 0) + 1
        if len(self.buckets) > BUCKETS + 1:
            del self.buckets[min(self.buckets)]

    def count(self, now_ms: int) -> int:
        """Return how many there were in the last minute."""
        now = now_ms // BUCKET_MS
        return sum(many for number, many in self.buckets.items() if now - BUCKETS < number <= now)


@dataclass(slots=True)
class Tenant:
    """One tenant: what was decided, its calibration by the latest scored write, and what is held of it."""

    name: str
    recent: Recent = field(default_factory=Recent)
    decisions: Counter[str] = field(default_factory=Counter)
    phase: str = ""
    window_size: int = 0
    history_size: int = 0
    held: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """When each held write was decided, by event id, content digest and intake offset, oldest first."""
    held_more: int = 0
    last_ms: int = 0

    @property
    def held_since_ms(self) -> int | None:
        """When the oldest write that is still held was decided."""
        return next(iter(self.held.values()), None)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What there is to see at one moment. ``wait_ms`` are median and 95th percentile from intake to verdict."""

    now_ms: int
    read: int
    events: int
    unverified: int
    redelivered: int
    recent: Mapping[str, int]
    decisions: Mapping[str, int]
    reasons: Sequence[tuple[str, int]]
    wait_ms: tuple[int, int] | None
    tenants: Sequence[Tenant]
    drifts: Sequence[tuple[str, float]]
    """Tenants whose mean reference score moved within a window, in standard deviations, the largest first."""
    unverified_reads: Sequence[tuple[str, int]]
    """Entries that readers say they returned and that the gate never admitted, by the reader's key."""
    operator_writes: Sequence[tuple[str, int]]
    """Writes with the operator's tier, by key."""
    dropped: int
    """Tenants that are no longer followed."""

    @property
    def per_s(self) -> float:
        """Events a second over the last minute."""
        return sum(self.recent.values()) / RECENT_S

    @property
    def held(self) -> int:
        """Writes that wait for a reviewer."""
        return sum(len(tenant.held) + tenant.held_more for tenant in self.tenants)

    @property
    def held_since_ms(self) -> int | None:
        """When the oldest of them was decided."""
        return min((tenant.held_since_ms for tenant in self.tenants if tenant.held_since_ms is not None), default=None)


class Pulse:
    """Takes audit records as they come, each partition in the order of its offsets.

    ``keys`` is asked anew for each record: a live view outlasts a rotation.
    """

    def __init__(self, keys: Callable[[], Keyring], tenants_max: int = TENANTS_MAX) -> None:
        self._keys = keys
        self._tenants_max = tenants_max
        self._tenants: OrderedDict[str, Tenant] = OrderedDict()
        self._last: dict[tuple[str, int, bool], tuple[int, int]] = {}
        """Offset and time of the latest decision, by intake topic and partition, of those that waited in the overflow
        and of the others, each of which go in order: what is not beyond is a repetition."""
        self._recent: dict[str, Recent] = {}
        self._decisions: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._unverified_reads: Counter[str] = Counter()
        self._operator_writes: Counter[str] = Counter()
        self._drift = DriftGauge(lambda: self.latest_ms / 1_000)
        self._waits: deque[int] = deque(maxlen=WAITS_MAX)
        self.read = self.unverified = self.redelivered = self.dropped = 0
        self.latest_ms = 0

    def take(self, record: Record) -> None:
        """Learn from one record. What the gate did not sign is counted and says nothing."""
        self.read += 1
        name = (record.key or b"").decode("utf-8", "replace")
        verdict = read(self._keys(), record)
        if verdict is None:
            self.unverified += 1
            return
        place, at = (verdict.topic, verdict.partition, verdict.waited), (verdict.offset, verdict.decided_ms)
        last = self._last.get(place)
        if last is not None and at[0] <= last[0] and at[1] <= last[1]:
            self.redelivered += 1
            return
        self._last[place] = at
        self.latest_ms = max(self.latest_ms, record.timestamp_ms)
        self._count(self._tenant(name), verdict, record.timestamp_ms)

    def _tenant(self, name: str) -> Tenant:
        tenant = self._tenants.get(name)
        if tenant is None:
            if len(self._tenants) >= self._tenants_max:
                self._tenants.popitem(last=False)
                self.dropped += 1
            tenant = self._tenants[name] = Tenant(name)
        self._tenants.move_to_end(name)
        return tenant

    def _count(self, tenant: Tenant, verdict: Verdict, at_ms: int) -> None:
        decision = str(verdict.decision)
        again = replayed(verdict) and verdict.object_id is None and from_refused(verdict)
        if again or (verdict.action and decision == Decision.QUARANTINE):  # nothing more is held or refused by it
            decision = str(Decision.RECORD)
        tenant.recent.add(at_ms)
        tenant.decisions[decision] += 1
        tenant.last_ms = at_ms
        self._recent.setdefault(decision, Recent()).add(at_ms)
        self._decisions[decision] += 1
        for code in verdict.reasons:
            if code in self._reasons or len(self._reasons) < REASONS_MAX:
                self._reasons[code] += 1
        if verdict.append_ms:
            self._waits.append(max(0, at_ms - verdict.append_ms))
        score = verdict.score
        if score is not None:
            tenant.phase = score.phase
            tenant.window_size, tenant.history_size = score.window_size, score.history_size
            self._drift.see(tenant.name, score)
        if usual := verdict.usual:  # the detector that decides
            tenant.phase, tenant.window_size = usual.phase, usual.size
        if verdict.type == EventType.WRITE and verdict.tier == Tier.OPERATOR:
            _add(self._operator_writes, verdict.kid, 1)
        for finding in verdict.findings:
            if finding.code == RETURNED and finding.detail["unknown"]:
                _add(self._unverified_reads, verdict.kid, finding.detail["unknown"])
        self._hold(tenant, verdict)

    def _hold(self, tenant: Tenant, verdict: Verdict) -> None:
        decision, digest = verdict.decision, verdict.content_digest
        refused = from_refused(verdict)
        if decision == Decision.QUARANTINE and verdict.object_id is None and (refused or not verdict.action):
            about = (verdict.target, verdict.target_offset) if refused else (verdict.event_id, verdict.offset)
            if len(tenant.held) < HELD_MAX:
                tenant.held.setdefault((about[0], digest, about[1] or 0), verdict.decided_ms)
            else:
                tenant.held_more += 1
        if refused:  # it was not among those that wait
            return
        if reopened(verdict):
            tenant.held.setdefault((verdict.target, digest, verdict.target_offset or 0), verdict.decided_ms)
        ordered = verdict.action in (Action.RELEASE, Action.REJECT)
        again = verdict.action == Action.REPLAY and replayed(verdict)
        closed = again and (decision != Decision.QUARANTINE or verdict.object_id is not None)
        if closed or (ordered and decision not in (Decision.REJECT, Decision.DUPLICATE)):
            target, offset = verdict.target, verdict.target_offset
            if offset is None:  # a verdict of an older version: the first of that id and content
                offset = next((one[2] for one in tenant.held if one[:2] == (target, digest)), -1)
            known = tenant.held.pop((target, digest, offset), None)
            tenant.held_more -= known is None and tenant.held_more > 0

    def snapshot(self, now_ms: int) -> Snapshot:
        """Return what there is to see; tenants by what they did in the last minute, then by their last event."""
        waits = sorted(self._waits)
        tenants = sorted(self._tenants.values(), key=lambda one: (-one.recent.count(now_ms), -one.last_ms, one.name))
        return Snapshot(
            now_ms=now_ms,
            read=self.read,
            events=sum(self._decisions.values()),
            unverified=self.unverified,
            redelivered=self.redelivered,
            recent={decision: recent.count(now_ms) for decision, recent in self._recent.items()},
            decisions=dict(self._decisions),
            reasons=self._reasons.most_common(),
            wait_ms=(waits[len(waits) // 2], waits[int(0.95 * (len(waits) - 1))]) if waits else None,
            tenants=tenants,
            drifts=sorted(self._drift.shifts().items(), key=lambda one: (-one[1], one[0])),
            unverified_reads=self._unverified_reads.most_common(),
            operator_writes=self._operator_writes.most_common(),
            dropped=self.dropped,
        )


def _add(counts: Counter[str], kid: str, many: int) -> None:
    counts[kid if kid in counts or len(counts) < KEYS_MAX else OTHER] += many
