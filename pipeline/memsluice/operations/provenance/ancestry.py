"""The lineage of an entry: what it was made from, and what its session was given or saw, back to where it all came in.

Pure but for the reading. One walk along the tenant's audit keeps a small index, bounded; what does not fit is said.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from memsluice.envelope.keys import Keyring
from memsluice.envelope.verdict import Verdict
from memsluice.events.models import Origin
from memsluice.events.names import EventType
from memsluice.events.partition import partition_of
from memsluice.gate.checks.monitor import UNOPENED
from memsluice.operations.provenance.reading import TracedEntry, is_new_write
from memsluice.operations.trace.life import taken_back, target_of
from memsluice.operations.trace.verdicts import read
from memsluice.readers.base import TopicReader

EVENTS_MAX = 200_000
"""Writes, recalls and observations of one tenant that the index keeps: the last ones before the entry that is asked for
and those after it as far as there is room; ``left_out`` counts the rest."""
DEPTH_MAX, WIDTH_MAX, NODES_MAX = 8, 16, 500
"""Of the tree: steps back, ancestors of one entry, and nodes in all."""


@dataclass(frozen=True, slots=True)
class SessionInput:
    """Something that a session was given (a recall's entries) or saw (an observation's origin)."""

    event_id: str
    offset: int
    origin: str
    returned: tuple[str, ...]


@dataclass(slots=True)
class Node:
    """One ancestor. ``link`` says how: ``parent``, ``recalled`` or an origin; ``by`` is the recall's event id, or "".

    ``entry`` is None for an observation, and for a name that the audit does not know. ``told`` says that its own
    ancestors stand elsewhere in the tree; ``more`` how many are not shown.
    """

    name: str
    link: str
    by: str = ""
    entry: TracedEntry | None = None
    above: list["Node"] = field(default_factory=list)
    told: bool = False
    more: int = 0

    @property
    def outside(self) -> bool:
        """Whether it came from outside itself: an observation."""
        return self.entry is None and self.link not in ("parent", "recalled", "entry")

    @property
    def tainted(self) -> bool:
        """Whether it taints what is made from it: an observation, an unknown name, or a tainted entry."""
        return self.entry is None or self.entry.tainted

    def as_data(self, now_ms: int) -> dict[str, Any]:
        """Return the tree as JSON values."""
        return {
            "name": self.name,
            "link": self.link,
            "by": self.by,
            "tainted": self.tainted,
            "known": self.entry is not None or self.outside,
            "entry": None if self.entry is None else self.entry.as_data(now_ms),
            "told_elsewhere": self.told,
            "not_shown": self.more,
            "ancestors": [node.as_data(now_ms) for node in self.above],
        }


class Index:
    """What a tenant's audit says of its writes, and of what its sessions were given and saw, around one entry.

    An ancestor comes before its descendant, and mostly not long before: so the oldest make room until ``about`` was
    read, and from then on nothing does. Without ``about`` the first ones are kept.
    """

    def __init__(self, events_max: int = EVENTS_MAX, about: str | None = None) -> None:
        self.entries: dict[str, TracedEntry] = {}
        self.left_out = 0
        self.read = 0
        self.unverified = 0
        self._sessions: dict[str, deque[SessionInput]] = defaultdict(deque)
        self._about = about
        self._events_max = events_max
        self._kept: deque[tuple[str, str]] = deque()  # (event id, "") of a write, ("", session) of what one saw
        self._cut: set[str] = set()  # sessions of which something had to make room
        self._objects: dict[str, TracedEntry] = {}

    def take(self, verdict: Verdict) -> None:
        """Learn from one verdict, in the order of the audit."""
        if is_new_write(verdict):
            name = verdict.event_id
            known = self.entries.get(name)
            anew = known is not None and name == self._about and known.followed_by(verdict)
            if anew or (known is None and self._fits(name, "")):
                self.entries[name] = TracedEntry.of(verdict)
            self._place(verdict, self.entries.get(name))
        elif verdict.type in (EventType.RECALL, EventType.OBSERVATION):
            for gone in taken_back(verdict):
                if gone.event_id in self.entries:
                    self.entries[gone.event_id].looked(verdict, gone)
            self._order(verdict)
            origin = verdict.origin
            if origin != Origin.OPEN and self._fits("", verdict.session):
                seen = SessionInput(verdict.event_id, verdict.offset, origin, verdict.returned)
                self._sessions[verdict.session].append(seen)
        elif verdict.action:
            self._order(verdict)

    def _order(self, verdict: Verdict) -> None:
        entry = self.entries.get(target_of(verdict) or "")
        if entry is not None:
            entry.order(verdict)
        self._place(verdict, entry)

    def _place(self, verdict: Verdict, entry: TracedEntry | None) -> None:
        name = verdict.object_id
        before = None if name is None else self._objects.get(name)
        if before is not None and before is not entry and before.placed.object_id == name:
            before.replaced = True
        if entry is not None and name is not None:
            self._objects[name] = entry

    def _fits(self, event_id: str, session: str) -> bool:
        """Make room for one more event; False where it has to be left out itself."""
        if len(self._kept) >= self._events_max:
            self.left_out += 1
            if self._about is None or self._about in self.entries:
                return False
            oldest, of_session = self._kept.popleft()
            if of_session:
                self._forget_first(of_session)
            else:
                gone = self.entries.pop(oldest)
                place = gone.placed.object_id
                if place is not None and self._objects.get(place) is gone:
                    del self._objects[place]
        self._kept.append((event_id, session))
        return True

    def _forget_first(self, session: str) -> None:
        self._sessions[session].popleft()
        if not self._sessions[session]:
            del self._sessions[session]
        if len(self._cut) < self._events_max:
            self._cut.add(session)

    def whole(self, root: Node) -> bool:
        """Whether nothing that was left out can belong to a tree."""
        every, todo = len(self._cut) >= self._events_max, [root] if self.left_out else []
        while todo:
            node = todo.pop()
            if node.entry is None and not node.outside:
                return False
            if node.entry is not None and node.entry.channel == "agent" and (every or node.entry.session in self._cut):
                return False
            todo += node.above
        return True

    def tree(self, event_id: str, depth_max: int = DEPTH_MAX) -> Node:
        """Return an entry with its ancestors, each one's told once."""
        told: set[str] = set()
        root = Node(event_id, "entry", entry=self.entries.get(event_id))
        level = [root]
        for _ in range(depth_max):
            level = [below for node in level for below in self._expand(node, told)]
        for node in level:
            node.more = sum(1 for _ in self._ancestors(node.entry)) if node.entry is not None and not node.told else 0
        return root

    def _expand(self, node: Node, told: set[str]) -> list[Node]:
        if node.entry is None:
            return []
        if node.name in told:
            node.told = True
            return []
        told.add(node.name)
        found = list(self._ancestors(node.entry))
        room = WIDTH_MAX if len(told) < NODES_MAX else 0
        node.above, node.more = found[:room], len(found[room:])
        return node.above

    def _ancestors(self, entry: TracedEntry) -> Iterator[Node]:
        known = set()
        before = (one for one in self._sessions.get(entry.session, ()) if one.offset < entry.offset)
        observed = {one.event_id: one.origin for one in before if one.origin}
        for name in entry.parents:
            known.add(name)
            of_outside = observed.get(name) if name not in self.entries else None  # as extracted facts name theirs
            yield Node(name, of_outside or "parent", entry=self.entries.get(name))
        if entry.channel != "agent":  # what a person typed has its declared parents alone
            return
        for seen in self._sessions.get(entry.session, ()):
            if seen.offset >= entry.offset:
                break
            if seen.origin and seen.event_id not in known:
                yield Node(seen.event_id, seen.origin)
            for name in seen.returned:
                if name not in known:
                    known.add(name)
                    yield Node(name, "recalled", seen.event_id, self.entries.get(name))
        if UNOPENED in entry.causes:
            yield Node(entry.session, "unopened")


def index(audit: TopicReader, keyring: Keyring, tenant: str, partitions: int, about: str) -> Index:
    """Return what a tenant's audit says around one entry (its event id). Raises BrokerUnavailable."""
    found = Index(about=about)
    for record in audit.read(partition_of(tenant, partitions)):
        if record.key == tenant.encode():
            found.read += 1
            verdict = read(keyring, record)
            if verdict is None:
                found.unverified += 1
            else:
                found.take(verdict)
    return found
