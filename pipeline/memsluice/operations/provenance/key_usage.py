"""What a key has signed until now, so that who revokes it sees what that touches. Pure but for the reading.

A credential's entries and held writes stay as they were decided when it is revoked; what a seal or admission key of the
gate signed verifies no more. So of those it is counted what readers and reviewers would lose.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from memsluice.envelope.keys import Keyring, Purpose
from memsluice.envelope.verdict import Verdict
from memsluice.events.names import EventType
from memsluice.events.partition import partition_of
from memsluice.operations.provenance.reading import TracedEntry, is_new_write
from memsluice.operations.provenance.sources import Source
from memsluice.operations.provenance.spread import Spread
from memsluice.operations.trace.life import EntryStanding, target_of
from memsluice.operations.trace.verdicts import read
from memsluice.readers.base import TopicReader

KEPT_MAX = 200_000
"""Sessions, objects and held writes that are kept, each; beyond, the counts are of those alone."""
IN_MEMORY = (EntryStanding.GUIDANCE, EntryStanding.EXTERNAL)


@dataclass(slots=True)
class KeyUsage:
    """What was counted. ``signed`` counts events by their type, ``last_ms`` is when the last one was decided (Unix ms).

    Of a credential, ``wrote`` counts its writes by where they are now. Of a gate key, ``admitted`` are entries in
    memory whose admission it signed, ``held`` writes that wait under its seal, ``sealed`` audit records under it.
    ``read`` audit records were looked at, ``unverified`` of them say nothing; ``whole`` is False where some were not,
    or did not fit: then there may be more.
    """

    kid: str
    signed: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    last_ms: int | None = None
    wrote: Counter[EntryStanding] = field(default_factory=Counter)
    admitted: int = 0
    held: int = 0
    sealed: int = 0
    read: int = 0
    unverified: int = 0
    whole: bool = True

    @property
    def in_memory(self) -> int:
        """How many entries that it wrote are in memory now."""
        return sum(self.wrote[one] for one in IN_MEMORY)


class _Counting:
    """Takes verdicts of one key, in the order of the audit."""

    def __init__(self, kid: str, purpose: Purpose) -> None:
        self.told, self._purpose = KeyUsage(kid), purpose
        self._spreads: dict[str, Spread] = {}
        self._sessions: set[tuple[str, str]] = set()
        self._objects: dict[str, int | None] = {}
        self._held: dict[tuple[str, str, str], TracedEntry] = {}

    def take(self, verdict: Verdict) -> None:
        """Learn from one verdict."""
        told = self.told
        if told.kid == verdict.kid or told.kid in verdict.approvers:
            told.signed[verdict.type] += 1
            told.last_ms = max(told.last_ms or 0, verdict.decided_ms)
            if verdict.session and verdict.type != EventType.COMMAND:
                self._keep(self._sessions, (verdict.tenant, verdict.session))
        if self._purpose is Purpose.CREDENTIAL:
            if verdict.tenant not in self._spreads:
                self._spreads[verdict.tenant] = Spread(verdict.tenant, Source("key", told.kid))
            self._spreads[verdict.tenant].take(verdict)
            return
        told.sealed += verdict.seal_kid == told.kid
        self._admitted(verdict)
        self._waiting(verdict)

    def _keep(self, kept: set[tuple[str, str]], one: tuple[str, str]) -> None:
        if len(kept) < KEPT_MAX:
            kept.add(one)
        elif one not in kept:
            self.told.whole = False

    def _admitted(self, verdict: Verdict) -> None:
        """Notice which objects were let in last with its signature."""
        for gone in verdict.withdraws:
            self._objects.pop(gone.object_id, None)
        if verdict.object_id is None:
            return
        if verdict.admission_kid != self.told.kid:
            self._objects.pop(verdict.object_id, None)
        elif verdict.object_id in self._objects or len(self._objects) < KEPT_MAX:
            self._objects[verdict.object_id] = verdict.expires_ms
        else:
            self.told.whole = False

    def _waiting(self, verdict: Verdict) -> None:
        """Notice which writes wait under its seal."""
        if is_new_write(verdict):
            key = (verdict.tenant, verdict.event_id, verdict.content_digest)
            if verdict.seal_kid != self.told.kid or verdict.held_until_ms is None:
                return
            if len(self._held) < KEPT_MAX:
                self._held.setdefault(key, TracedEntry.of(verdict))
            else:
                self.told.whole = False
        elif (target := target_of(verdict)) is not None:
            known = self._held.get((verdict.tenant, target, verdict.content_digest))
            if known is not None:
                known.order(verdict)

    def told_at(self, now_ms: int) -> KeyUsage:
        """Return what was counted, as it stands at a time (Unix ms)."""
        told = self.told
        told.sessions = len(self._sessions)
        for spread in self._spreads.values():
            own = (one.entry for one in spread.reached.values() if one.entry.kid == told.kid)
            told.wrote.update(entry.standing(now_ms) for entry in own)
            told.whole = told.whole and not spread.left_out
        told.admitted = sum(ends is None or ends > now_ms for ends in self._objects.values())
        told.held = sum(one.standing(now_ms) is EntryStanding.HELD for one in self._held.values())
        return told


def key_usage(
    audit: TopicReader, keyring: Keyring, kid: str, tenants: Collection[str] | None, now_ms: int, partitions: int,
    ended: Callable[[], bool] = bool,
) -> KeyUsage:  # fmt: skip
    """Count what a key signed, in the tenants that it is for or (None) in all.

    ``ended`` is asked before each record whether to stop. Raises UnknownKey, BrokerUnavailable.
    """
    counting = _Counting(kid, keyring.get(kid).purpose)
    wanted = None if tenants is None else frozenset(one.encode() for one in tenants)
    looked_in = range(partitions) if tenants is None else sorted({partition_of(one, partitions) for one in tenants})
    for partition in looked_in:
        for record in audit.read(partition):
            if ended():
                counting.told.whole = False
                return counting.told_at(now_ms)
            if wanted is not None and record.key not in wanted:
                continue
            counting.told.read += 1
            verdict = read(keyring, record)
            if verdict is None:
                counting.told.unverified += 1
            else:
                counting.take(verdict)
    return counting.told_at(now_ms)
