"""Who calls, and what is kept for him: his graph, what became of his writes, how often he may call."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from uuid import uuid4

from memsluice.adapters.mcp.graph import Graph
from memsluice.adapters.mcp.outcomes import Outcomes
from memsluice.client.requests import Session
from memsluice.clock import Clock, wall_ms
from memsluice.errors import NotPermitted, StateError
from memsluice.events.models import Zone
from memsluice.memory.gate import Gate
from memsluice.memory.memory import TIMEOUT_S
from memsluice.memory.shelf import Shelf
from memsluice.memory.shelves import SHELVES_MAX, Shelves
from memsluice.stages.quota import Bucket, Quota

NAMESPACE = "mcp"
"""The part of the tenant's memory that these graphs lie in."""
AT_ONCE_MAX = 4
"""Calls of one caller in work. A call is a thread, and one caller's wait leaves room for the others'."""
QUOTA = Quota(per_s=20, burst=100)


@dataclass(frozen=True, slots=True)
class Person:
    """Whom a call is for: the agent, and the principal (the person). ``writes``: whether it may change anything."""

    agent: str
    principal: str
    writes: bool = True


WhoCalls = Callable[[], Person]
"""Tells for whom the code runs that asks; raises NotPermitted where that is not known."""


@dataclass(slots=True)
class Caller:
    """One caller's things. ``in_work`` are his calls that have not ended."""

    shelf: Shelf
    graph: Graph
    outcomes: Outcomes
    bucket: Bucket
    in_work: int = 0


class Callers:
    """Everybody's things on a gate. Safe for several threads.

    Without ``session`` no session is opened, so that none is clean: what is written is kept as outside data. With it
    all is done in that one session, which is opened: for a host that reports what the session sees before a model does.
    """

    def __init__(
        self,
        gate: Gate,
        who: WhoCalls,
        *,
        session: str | None = None,
        timeout_s: float = TIMEOUT_S,
        held_days: int | None = None,
        quota: Quota = QUOTA,
        now_ms: Clock = wall_ms,
    ) -> None:
        self.reports = session is not None
        self._gate = gate
        self._who = who
        self._session = session
        self._run = uuid4().hex[:16]
        self._held_days = held_days
        self._quota = quota
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._known: OrderedDict[Person, Caller] = OrderedDict()
        self._clean = Shelves(gate, NAMESPACE, timeout_s=timeout_s, opens=self.reports)
        self._data = Shelves(gate, NAMESPACE, timeout_s=timeout_s, opens=False, zone=Zone.EXTERNAL)

    @contextmanager
    def calling(self, *, writes: bool = False) -> Iterator[Caller]:
        """Give whoever calls what is his, for one call.

        Raises NotPermitted where a reader writes, StateError where he calls more often than he may.
        """
        person = self._who()
        if writes and not person.writes:
            raise NotPermitted("a reader's credential changes nothing; write with a producer's", field="authorization")
        caller = self._begun(person)
        try:
            yield caller
        finally:
            with self._lock:
                caller.in_work -= 1

    def _begun(self, person: Person) -> Caller:
        with self._lock:
            now_ms = self._now_ms()
            found = self._known.get(person)
            if found is None:
                self._make_room()
                found = self._known[person] = self._made(person, now_ms)
            self._known.move_to_end(person)
            if not found.bucket.take(self._quota, now_ms):
                raise StateError(f"you call more often than {self._quota.per_s} times a second: call again later")
            if found.in_work >= AT_ONCE_MAX:
                raise StateError(f"{AT_ONCE_MAX} calls of yours are in work, and no more may be: call again after them")
            found.in_work += 1
        return found

    def _make_room(self) -> None:
        """Forget who called least lately and has no call in work: with a second graph his calls took no turns."""
        while len(self._known) >= SHELVES_MAX:
            idle = next((person for person, caller in self._known.items() if not caller.in_work), None)
            if idle is None:  # calls are threads, so these are few
                return
            del self._known[idle]

    def _made(self, person: Person, now_ms: int) -> Caller:
        name = sha256(f"{person.agent}\n{person.principal}".encode()).hexdigest()[:16]
        session = Session(self._gate.tenant, person.agent, person.principal, self._session or f"mcp-{self._run}-{name}")
        clean = self._clean.of(session)
        shelf, above = (clean, None) if self.reports else (self._data.of(session), clean)
        outcomes = Outcomes(self._gate.now, self._held_days)
        return Caller(shelf, Graph(shelf, above), outcomes, Bucket(self._quota, now_ms))
