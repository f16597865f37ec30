"""Puts lives together: takes records of the audit topic one by one and keeps what is of certain event ids. Pure."""

from collections.abc import Set
from hashlib import sha256

from memsluice.envelope.keys import Keyring
from memsluice.envelope.verdict import Verdict
from memsluice.events.headers import EVENT_ID
from memsluice.events.names import TARGET_HEADER
from memsluice.events.records import Record
from memsluice.operations.trace.equals import Finder, comparable, payload_of
from memsluice.operations.trace.life import (
    ABOUT_IT,
    GOVERNING,
    Attempt,
    Life,
    RecordRole,
    Successor,
    renews,
    taken_back,
    target_of,
)
from memsluice.operations.trace.verdicts import read

ATTEMPTS_MAX = 50
"""Attempts of one life that are kept: the first, those in force, and the latest; the rest is counted."""
LIVES_MAX = 100
"""Lives that are kept; an id may exist in any number of tenants."""
_BY_CODE = {"duplicates.replayed": RecordRole.REPLAYED, "duplicates.other_content": RecordRole.OTHER_CONTENT}
"""By finding as well as by reason: what is refused for more besides is no new decision on the entry either."""


class Collector:
    """Takes audit records, partition by partition in the order of offsets, and keeps what is of certain event ids.

    Headers that only *screen* can have set (``memsluice-event-id``, ``memsluice-target``) say whether a record is
    opened at all; what it says counts by its seal alone. Bounded by LIVES_MAX lives of ATTEMPTS_MAX attempts;
    ``left_out`` counts the records of further lives, ``unverified`` records that mattered and whose seal did not hold.
    With ``same_texts`` it looks, behind each write that it finds, for others of the same text.
    """

    def __init__(
        self, event_ids: Set[str], keyring: Keyring, tenant: str | None = None, *, same_texts: bool = False
    ) -> None:
        self._event_ids = {event_id.encode("utf-8", "surrogateescape"): event_id for event_id in event_ids}
        self._keyring = keyring
        self._tenant = tenant
        self._lives: dict[tuple[str, str], Life] = {}
        self._objects: dict[tuple[str, str], Life] = {}
        self._same_texts = same_texts
        self._finders: dict[tuple[str, str], Finder] = {}
        self.read = 0
        self.unverified = 0
        self.left_out = 0

    def lives(self) -> list[Life]:
        """Return the lives found, by tenant and id."""
        return [self._lives[name] for name in sorted(self._lives)]

    def finder_of(self, life: Life) -> Finder | None:
        """Return what looked for other writes of a life's text; None where it is no write that was decided."""
        return self._finders.get((life.tenant, life.governing.about))

    def take(self, record: Record) -> None:
        """Learn from one record."""
        self.read += 1
        tenant = (record.key or b"").decode("utf-8", "replace")
        if self._tenant not in (None, tenant) or record.value is None:
            return
        named = [(name, value) for name, value in record.headers if name in (EVENT_ID, TARGET_HEADER)]
        untold = all(name != EVENT_ID for name, _ in named)
        if untold or any(value in self._event_ids for _, value in named):
            self._learn(record)
        elif any(owner == tenant for owner, _ in (*self._objects, *self._finders)):
            self._look_further(tenant, record)

    def _opened(self, record: Record) -> Verdict | None:
        verdict = read(self._keyring, record)
        if verdict is None:
            self.unverified += 1
            return None
        return verdict

    def _learn(self, record: Record) -> None:
        verdict = self._opened(record)
        if verdict is None:
            return
        wanted = self._event_ids.values()
        target = target_of(verdict)
        if verdict.event_id in wanted:
            self._add(verdict.event_id, verdict, record, verdict.content_digest)
        if target is not None and target in wanted:
            kind = RecordRole.USED if renews(verdict) else RecordRole.ORDER
            self._add(target, verdict, record, verdict.content_digest, kind)
        for gone in taken_back(verdict):
            if gone.event_id in wanted:
                self._add(gone.event_id, verdict, record, gone.content_digest, RecordRole.LOOK_BACK)

    def _add(self, event_id: str, verdict: Verdict, record: Record, about: str, kind: RecordRole | None = None) -> None:
        tenant = verdict.tenant
        if (tenant, event_id) not in self._lives and len(self._lives) >= LIVES_MAX:
            self.left_out += 1
            return
        life = self._lives.setdefault((tenant, event_id), Life(tenant, event_id))
        digest = sha256(record.value or b"").hexdigest()
        place = (record.partition, record.offset, record.timestamp_ms)
        attempt = Attempt(kind or RecordRole.DECIDED, verdict, about, digest, *place)
        for known in life.attempts:
            if known.intake == attempt.intake:
                known.redelivered += known.digest == digest
                known.contradictions += known.digest != digest
                return
        if kind is None:
            codes = (*verdict.reasons, *(finding.code for finding in verdict.findings))
            again = [_BY_CODE[code] for code in codes if code in _BY_CODE]
            seen_before = any(one.kind not in ABOUT_IT for one in life.attempts)
            attempt.kind = again[0] if again else RecordRole.AGAIN if seen_before else RecordRole.DECIDED
        if self._same_texts and attempt.kind in GOVERNING and comparable(verdict):
            self._finders.setdefault((tenant, about), Finder(self._keyring, verdict, after=verdict.sealed_offset))
        life.counts[attempt.kind] += 1
        life.attempts.append(attempt)
        if attempt.places:
            life.replaced = None
            if verdict.object_id is not None and not (kind is None and renews(verdict)):
                self._objects[tenant, verdict.object_id] = life
        if len(life.attempts) > ATTEMPTS_MAX:
            changing_nothing = (n for n in range(1, ATTEMPTS_MAX) if not life.attempts[n].places)
            del life.attempts[next(changing_nothing, 1)]

    def _look_further(self, tenant: str, record: Record) -> None:
        """Notice a later write to the same object, or of the same text. The cheap look first: most are neither."""
        payload = payload_of(record)
        if payload is None:
            self.unverified += 1
            return
        finders = [one for (owner, _), one in self._finders.items() if owner == tenant and one.named_in(payload)]
        if not finders and not any(owner == tenant and name.encode() in payload for owner, name in self._objects):
            return
        verdict = self._opened(record)
        if verdict is None:
            return
        for finder in finders:
            finder.learn(verdict)
        life = self._objects.get((tenant, str(verdict.object_id)))
        if life is None or life.placing.verdict.object_id != verdict.object_id:
            return
        if verdict.sealed_offset > life.placing.verdict.sealed_offset:
            later = verdict.target or verdict.event_id  # a release places the write that it is about
            life.replaced = Successor(later, verdict.sealed_offset, verdict.decided_ms)
