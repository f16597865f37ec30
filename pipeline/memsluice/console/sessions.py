"""Sessions: in this process's memory alone, so that a restart means to log in again and loses nothing."""

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock

from memsluice.clock import Clock
from memsluice.console.visitors import Visitor

TOKEN_BYTES = 32
IDLE_MS_MAX = 30 * 60_000
LIFE_MS_MAX = 8 * 3_600_000
SESSIONS_MAX = 1_000
OF_ONE_MAX = 10
"""Sessions of one visitor; with a further one the one that was idle for longest ends."""


@dataclass(slots=True)
class Session:
    """One browser that logged in. ``csrf`` is what its own pages send along; times are Unix ms."""

    visitor: Visitor
    began_ms: int
    seen_ms: int
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(TOKEN_BYTES), repr=False)
    notes: dict[str, str] = field(default_factory=dict, repr=False)
    """Small things that a page keeps for this session, such as the challenge of a step-up."""


class Sessions:
    """The sessions of one server, by the digest of what their cookies hold."""

    def __init__(self, clock: Clock, idle_ms: int = IDLE_MS_MAX, life_ms: int = LIFE_MS_MAX) -> None:
        self._clock, self._idle_ms, self._life_ms = clock, idle_ms, life_ms
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._lock = Lock()

    def begin(self, visitor: Visitor) -> tuple[str, Session]:
        """Return a new session and what its cookie holds."""
        token, now_ms = secrets.token_urlsafe(TOKEN_BYTES), self._clock()
        session = Session(visitor, now_ms, now_ms)
        with self._lock:
            self._expire(now_ms)
            his = [name for name, one in self._sessions.items() if one.visitor.name == visitor.name]
            for name in his[: max(0, len(his) - OF_ONE_MAX + 1)]:
                del self._sessions[name]
            while len(self._sessions) >= SESSIONS_MAX:
                self._sessions.popitem(last=False)
            self._sessions[_name(token)] = session
        return token, session

    def find(self, token: str, *, touch: bool = True) -> Session | None:
        """Return the session of a cookie; None where it ended. ``touch``: it was used just now."""
        now_ms = self._clock()
        with self._lock:
            self._expire(now_ms)
            session = self._sessions.get(_name(token))
            if session is not None and touch:
                session.seen_ms = now_ms
                self._sessions.move_to_end(_name(token))
            return session

    def end(self, token: str) -> None:
        """End the session of a cookie, if there is one."""
        with self._lock:
            self._sessions.pop(_name(token), None)

    def _expire(self, now_ms: int) -> None:
        for name, one in list(self._sessions.items()):
            if now_ms - one.seen_ms >= self._idle_ms or now_ms - one.began_ms >= self._life_ms:
                del self._sessions[name]


def _name(token: str) -> str:
    return sha256(token.encode()).hexdigest()
