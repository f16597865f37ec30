"""Sudden changes of single entries: answers many principals at once, or rises and falls in the order of nearness.

Per tenant and window (an hour): which part of the principals who asked at all an entry answered, and in which part of
its answers it was the nearest. Both are held against the entry's own past. Asking twice counts once: one principal
counts once a window for the first, one principal's question once for the second.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from memsluice.recall.signals.seen import Seen, Signal, SignalKind, mark
from memsluice.recall.signals.share import Share, at_least, at_most


@dataclass(frozen=True, slots=True)
class EntryPolicy:
    """When an entry's change is a signal. Times in ms; ``alpha`` is the chance, under the past, of as much as was seen:
    small, since it is looked at with every answer.

    An entry that answers less than ``share_min`` of the principals who ask, or fewer than ``principals_min``, is never
    popular. ``new_share`` is the share that an entry without a past is expected to answer, with the weight of
    ``new_weight`` principals; the weight falls as there is a past, to ``old_weight``. A past counts for ``past_max`` at
    most and halves in ``half_ms``. Until a tenant was watched for ``learn_ms`` nothing is said of it.
    """

    window_ms: int = 3_600_000
    learn_ms: int = 86_400_000
    half_ms: int = 7 * 86_400_000
    alpha: float = 1e-7
    share_min: float = 0.25
    new_share: float = 0.02
    new_weight: float = 50.0
    old_weight: float = 2.0
    past_max: float = 200.0
    principals_min: int = 5
    answers_min: int = 10
    past_answers_min: float = 20.0
    entries_max: int = 5_000
    marks_max: int = 20_000


@dataclass(slots=True)
class _Entry:
    """Pasts, and this window's counts. ``said`` are the signals of this window: each is given once."""

    reach: Share = field(default_factory=Share)
    first: Share = field(default_factory=Share)
    principals: int = 0
    answers: int = 0
    nearest: int = 0
    said: frozenset[SignalKind] = frozenset()


class EntryWatch:
    """One tenant's entries. Holds ``entries_max`` of them, those returned last, and ``marks_max`` marks of a window:
    some 5 MB at most. Not safe for several threads."""

    def __init__(self, tenant: str, policy: EntryPolicy, now_ms: int) -> None:
        self._tenant = tenant
        self._policy = policy
        self._since_ms = now_ms
        self._window = now_ms // policy.window_ms
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._principals: set[int] = set()
        self._marks: set[int] = set()

    def see(self, seen: Seen, now_ms: int) -> tuple[list[Signal], bool]:
        """Take an answer (now in Unix ms); return what it shows, and whether there was room to count all of it."""
        self._turn(now_ms)
        if len(self._marks) + len(self._principals) + 2 * len(seen.objects) + 1 > self._policy.marks_max:
            return [], False
        self._principals.add(mark(seen.principal))
        for place, object_id in enumerate(seen.objects):
            self._count(seen, object_id, nearest=place == 0)
        if now_ms - self._since_ms < self._policy.learn_ms:
            return [], True
        return [signal for object_id in seen.objects for signal in self._signals(object_id)], True

    def _count(self, seen: Seen, object_id: str, *, nearest: bool) -> None:
        entry = self._entries.setdefault(object_id, _Entry())
        self._entries.move_to_end(object_id)
        if len(self._entries) > self._policy.entries_max:
            self._entries.popitem(last=False)
        if self._new(mark("principal", object_id, seen.principal)):
            entry.principals += 1
        if self._new(mark("answer", object_id, seen.principal, str(seen.question))):
            entry.answers += 1
            entry.nearest += nearest

    def _new(self, one: int) -> bool:
        before = len(self._marks)
        self._marks.add(one)
        return len(self._marks) > before

    def _signals(self, object_id: str) -> list[Signal]:
        entry = self._entries.get(object_id)
        if entry is None:  # more were returned than are held
            return []
        found = [one for one in (self._popular(object_id, entry), self._moved(object_id, entry)) if one is not None]
        found = [one for one in found if one.kind not in entry.said]
        entry.said |= {one.kind for one in found}
        return found

    def _popular(self, object_id: str, entry: _Entry) -> Signal | None:
        policy, hits, trials = self._policy, entry.principals, len(self._principals)
        if hits < max(policy.principals_min, policy.share_min * trials) or SignalKind.POPULAR in entry.said:
            return None
        weight = max(policy.old_weight, policy.new_weight * (1 - entry.reach.trials / policy.past_max))
        alpha, beta = entry.reach.given(policy.new_share, weight)
        usual = alpha / (alpha + beta)
        if hits <= usual * trials or at_least(hits, trials, alpha, beta) >= policy.alpha:
            return None
        return Signal(SignalKind.POPULAR, self._tenant, object_id, hits, trials, usual)

    def _moved(self, object_id: str, entry: _Entry) -> Signal | None:
        policy, hits, trials = self._policy, entry.nearest, entry.answers
        if trials < policy.answers_min or entry.first.trials < policy.past_answers_min:
            return None
        alpha, beta = entry.first.given(0.5, 1.0)
        usual = alpha / (alpha + beta)
        if hits > usual * trials:
            kind, chance = SignalKind.RANK_RISE, at_least(hits, trials, alpha, beta)
        else:
            kind, chance = SignalKind.RANK_FALL, at_most(hits, trials, alpha, beta)
        return Signal(kind, self._tenant, object_id, hits, trials, usual) if chance < policy.alpha else None

    def _turn(self, now_ms: int) -> None:
        """Begin a new window, and make the last one past. A clock that steps back stays in the window."""
        window = now_ms // self._policy.window_ms
        if window <= self._window:
            return
        keep = 0.5 ** ((window - self._window) * self._policy.window_ms / self._policy.half_ms)
        asked, most = len(self._principals), self._policy.past_max
        for entry in self._entries.values():
            entry.reach = entry.reach.after(entry.principals, asked, keep, most)
            entry.first = entry.first.after(entry.nearest, entry.answers, keep, most)
            entry.principals = entry.answers = entry.nearest = 0
            entry.said = frozenset()
        self._window = window
        self._principals.clear()
        self._marks.clear()
