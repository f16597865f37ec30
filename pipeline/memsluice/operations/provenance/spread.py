"""The blast radius: everything that was made from a source, by one walk along the audit. Pure but for the reading.

A write descends from what it names as parents; an agent's also from what its session was given or saw before. Both are
transitive. Nothing is guessed from contents: who omits a parent, and was given nothing, is not found here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from memsluice.envelope.keys import Keyring
from memsluice.envelope.verdict import Verdict
from memsluice.events.names import EventType
from memsluice.events.partition import partition_of
from memsluice.gate.state.lineage import CAUSES_MAX
from memsluice.operations.provenance.reading import TracedEntry, is_new_write
from memsluice.operations.provenance.sources import ENTRY, Source
from memsluice.operations.trace.life import taken_back, target_of
from memsluice.operations.trace.verdicts import read
from memsluice.readers.base import TopicReader

REACHED_MAX = 50_000
"""Entries of one tenant that are kept, and sessions; the rest is counted."""
EARLY_MAX = 100_000
"""Names that are remembered because a write named them before the audit knew them."""
PASSES_MAX = 3
"""A write may name a parent that comes later: then the audit is walked once more. A longer chain of such is said."""


@dataclass(slots=True)
class Reached:
    """A descendant: why (``source``, ``parent:ID``, ``session:NAME``), and how many steps from the source."""

    entry: TracedEntry
    why: str
    depth: int


@dataclass(slots=True)
class Touched:
    """A session that was given a descendant, or saw the source: by which event, and how many steps from the source.

    ``offset`` is the first such event's place in the one order: what the session wrote before does not come of it.
    ``forgotten`` says that the gate knew no such session any more when it was to be revoked.
    """

    why: str
    depth: int
    offset: int
    revoked: bool = False
    forgotten: bool = False


@dataclass(slots=True)
class Spread:
    """One tenant's part of a blast radius.

    ``left_out`` counts descendants for which there was no room, ``again`` says that a further walk might find more:
    what was found last was named before it was written. ``namesake`` says that an entry's id reads like the source.
    """

    tenant: str
    source: Source
    reached: dict[tuple[str, str], Reached] = field(default_factory=dict)
    sessions: dict[str, Touched] = field(default_factory=dict)
    left_out: int = 0
    again: bool = False
    namesake: bool = False
    _cut: bool = False
    _ids: dict[str, int] = field(default_factory=dict)
    _objects: dict[str, TracedEntry] = field(default_factory=dict)
    _early: set[str] = field(default_factory=set)

    @property
    def whole(self) -> bool:
        """Whether everything was followed to its end."""
        return not (self.left_out or self.again or self._cut)

    @property
    def found(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self.reached or self.sessions or self.namesake)

    def once_more(self) -> None:
        """Begin another walk: what was found is known from its beginning."""
        self.again, self.left_out = False, 0

    def take(self, verdict: Verdict) -> None:
        """Learn from one verdict, in the order of the audit."""
        if is_new_write(verdict):
            self.namesake |= self.source.kind != ENTRY and verdict.event_id == str(self.source)
            self._write(verdict)
        elif verdict.type == EventType.RECALL:
            for gone in taken_back(verdict):
                reached = self.reached.get((gone.event_id, gone.content_digest))
                if reached is not None:
                    reached.entry.looked(verdict, gone)
            self._moved(verdict)
            given = [name for name in verdict.returned if name in self._ids]
            if given:
                self._touch(verdict, f"recalled:{given[0]}", min(self._ids[name] for name in given))
        elif self.source.seen(verdict):
            self._touch(verdict, f"{verdict.origin}:{verdict.event_id}", 0)
        elif verdict.action:
            self._order(verdict)

    def _write(self, verdict: Verdict) -> None:
        key = (verdict.event_id, verdict.content_digest)
        known = self.reached.get(key)
        if known is None or known.entry.followed_by(verdict):
            found = self._cause(verdict)
            if found is None:
                self._named_early(verdict)
            elif known is None and len(self.reached) >= REACHED_MAX:
                self.left_out += 1
            else:
                self.reached[key] = one = Reached(TracedEntry.of(verdict), *found)
                if not one.entry.repeated_id:  # another content under a known id takes over no lineage, nor children
                    self._ids.setdefault(verdict.event_id, found[1])
                    self.again = self.again or verdict.event_id in self._early
        self._place(verdict, self.reached[key].entry if key in self.reached else None)

    def _cause(self, verdict: Verdict) -> tuple[str, int] | None:
        """Return why a write descends from the source, and in how many steps; the nearest of several."""
        if self.source.wrote(verdict):
            return "source", 0
        found = [(f"parent:{name}", self._ids[name] + 1) for name in verdict.parents if name in self._ids]
        touched = self.sessions.get(verdict.session)
        after = touched is not None and not touched.forgotten and touched.offset < verdict.sealed_offset
        if touched is not None and after and verdict.channel == "agent":
            found.append((f"session:{verdict.session}", touched.depth + 1))
        return min(found, key=lambda one: one[1], default=None)

    def _named_early(self, verdict: Verdict) -> None:
        """Remember the parents that nobody knew when they were named; where causes were cut off, all parents."""
        causes = [cause.partition(":") for cause in verdict.taint_causes]
        names = {name for kind, _, name in causes if kind == "unknown"}
        if len(causes) >= CAUSES_MAX:
            names.update(verdict.parents)
        if len(self._early) < EARLY_MAX:
            self._early |= names
        else:
            self._cut = self._cut or bool(names - self._early)

    def _touch(self, verdict: Verdict, why: str, depth: int) -> None:
        session, offset = verdict.session, verdict.sealed_offset
        before = self.sessions.get(session)
        if before is None and len(self.sessions) >= REACHED_MAX:
            self._cut = True
        elif before is None or before.forgotten:
            self.sessions[session] = Touched(why, depth, offset)
        elif offset < before.offset:  # on another walk: it was given what was not known to be a descendant then
            self.sessions[session] = replace(before, why=why, depth=depth, offset=offset)

    def _order(self, verdict: Verdict) -> None:
        codes = {finding.code for finding in verdict.findings}
        if codes & {"revocation.session", "revocation.unknown_session"}:
            touched = self.sessions.get(verdict.target)
            if touched is None and self.source == Source("session", verdict.target):
                touched = self.sessions[verdict.target] = Touched("source", 0, verdict.sealed_offset)
            if touched is not None:
                touched.revoked = "revocation.session" in codes
                touched.forgotten = not touched.revoked
            return
        self._moved(verdict)

    def _moved(self, verdict: Verdict) -> None:
        found = self.reached.get((target_of(verdict) or "", verdict.content_digest))
        if found is not None:
            found.entry.order(verdict)
        self._place(verdict, None if found is None else found.entry)

    def _place(self, verdict: Verdict, entry: TracedEntry | None) -> None:
        """Notice whose object it is now: a later write of the key takes it."""
        name = verdict.object_id
        if name is None:
            return
        before = self._objects.get(name)
        if before is not None and before is not entry and verdict.sealed_offset > before.placed.sealed_offset:
            before.replaced = before.placed.object_id == name
        if entry is not None and entry.placed.object_id == name:
            self._objects[name] = entry


@dataclass(slots=True)
class Radius:
    """What a look found, by tenant. ``unverified`` audit records have no seal of this home's keys and say nothing."""

    spreads: dict[str, Spread]
    read: int = 0
    unverified: int = 0

    @property
    def left_out(self) -> int:
        """How many descendants are not kept."""
        return sum(spread.left_out for spread in self.spreads.values())

    @property
    def whole(self) -> bool:
        """Whether everything was followed to its end."""
        return all(spread.whole for spread in self.spreads.values())


def radius(audit: TopicReader, keyring: Keyring, source: Source, tenant: str | None, partitions: int) -> Radius:
    """Return what was made from a source, in one tenant or (None) in all. Raises BrokerUnavailable."""
    found = Radius({})
    looked_in: Iterable[int] = range(partitions) if tenant is None else (partition_of(tenant, partitions),)
    for partition in looked_in:
        for number in range(PASSES_MAX):
            for record in audit.read(partition):
                if tenant is not None and record.key != tenant.encode():
                    continue
                _take(found, keyring, source, record, first=number == 0)
            here = [one for one in found.spreads.values() if partition_of(one.tenant, partitions) == partition]
            if number + 1 == PASSES_MAX or not any(spread.again for spread in here):
                break
            for spread in here:
                spread.once_more()
    found.spreads = {name: one for name, one in sorted(found.spreads.items()) if one.found}
    return found


def _take(found: Radius, keyring: Keyring, source: Source, record: Any, *, first: bool) -> None:
    verdict = read(keyring, record)
    found.read += first
    if verdict is None:
        found.unverified += first
        return
    name = verdict.tenant
    if name not in found.spreads:
        found.spreads[name] = Spread(name, source)
    found.spreads[name].take(verdict)
