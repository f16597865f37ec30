"""S = (P, M, B, G) of seed 001, Section 3.1: M, the items, and B, what each session believes. P and G are not memory.

What goes beyond the paper: items have an expiry, sessions are bound to an agent and a principal, event ids are unique
for a time, and writes that a content check stopped are held.
"""

from dataclasses import dataclass, field, replace

from memsluice.events.models import Tier, Visibility, Zone
from memsluice_lab.model.actions import Event, Scope, Write

DAY_MS = 86_400_000
LIFETIME_MS: dict[Tier, int | None] = {
    Tier.OPERATOR: None,
    Tier.USER_VERIFIED: 365 * DAY_MS,
    Tier.USER_OBSERVED: 30 * DAY_MS,
    Tier.EXTERNAL_TOOL: 7 * DAY_MS,
    Tier.EXTERNAL_WEB: DAY_MS // 24,
}
"""Seed 002, pattern 5."""
SESSION_MS = 30 * DAY_MS
HELD_MS = 30 * DAY_MS
EVENT_ID_MS = 7 * DAY_MS + 300_000
"""How long an event id is remembered: the window, and the skew of the clock of who dates ahead."""

Slot = tuple[Zone, Scope, str, bool]
"""Where an item lies: zone, scope, and its key (True) or, where it has none, its own id (False)."""


@dataclass(frozen=True, slots=True)
class Belief:
    """b: something that may have influenced a write. ``tau`` is its taint bit, ``tier`` whence it came at worst."""

    tau: bool
    tier: Tier


@dataclass(frozen=True, slots=True)
class Known:
    """What is remembered of a write for those that name it as parent or were given it: b_m, and where m lies.

    ``slot`` is None where it did not land, or was taken out; ``number`` its write's place in the log; ``landings`` how
    often it landed, by moves and renewals; ``revoked``: its good name was taken; ``lifted``: two reviewers gave it one.
    """

    belief: Belief
    slot: Slot | None
    until: int | None
    event: Write
    number: int
    landings: int = 0
    revoked: bool = False
    lifted: bool = False

    @property
    def landed(self) -> bool:
        """Whether it lies somewhere."""
        return self.slot is not None


@dataclass(frozen=True, slots=True)
class Item:
    """m = (key, val, pi, tau, iota, sigma): pi is ``tier``, sigma the slot, iota in :attr:`ModelState.immutable`."""

    event: str
    value: str
    principal: str
    tier: Tier
    tau: bool
    until: int | None
    number: int


@dataclass(frozen=True, slots=True)
class Session:
    """Who runs in it, whether the platform opened it, and its part of B. ``used``: the last time, Unix ms."""

    agent: str
    principal: str
    opened: bool
    beliefs: frozenset[Belief] = frozenset()
    used: int = 0
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """A write that waits for a reviewer. ``doubtful``: its sender or its id is in doubt, which nobody overrides.

    ``lifted``: two reviewers declassified it; ``revoked``: one distrusts it. ``refused``: the rules rejected it, and it
    waits for a policy that does not; ``at_first``: they did so at once. ``suspect``: a content check stopped it, which
    is no less so for being forgotten. ``rejected``: a reviewer closed it, and may open it again. ``last``: the last
    command that decided it anew ("": none).
    """

    write: Write
    label: Belief
    doubtful: bool
    until: int
    number: int
    open: bool = True
    lifted: bool = False
    revoked: bool = False
    refused: bool = False
    at_first: bool = False
    suspect: bool = False
    rejected: bool = False
    last: str = ""


@dataclass(slots=True)
class ModelState:
    """S_t. ``strict`` is the profile that rejects what the rules refuse; else it is contained.

    ``hold_contained``: content checks hold what is contained, too. ``broken`` names rules left out on purpose, to show
    that a comparison would notice.
    """

    now: int
    strict: bool = False
    hold_contained: bool = False
    broken: frozenset[str] = frozenset()
    memory: dict[Slot, Item] = field(default_factory=dict)
    known: dict[str, Known] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    immutable: set[tuple[Scope, str]] = field(default_factory=set)
    events: dict[str, tuple[Event, int]] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)
    number: int = 0
    """How many events there were."""

    def keeps(self, rule: str) -> bool:
        """Say whether a rule is in force."""
        return rule not in self.broken

    def alive(self, until: int | None) -> bool:
        """Say whether something that lives until then is still there."""
        return until is None or until > self.now

    def lineage(self, event: str) -> Known | None:
        """Return what is known of a write; what has expired is not known any more."""
        known = self.known.get(event)
        return known if known is not None and self.alive(known.until) else None

    def session(self, name: str) -> Session | None:
        """Return a session that was used within its retention."""
        session = self.sessions.get(name)
        return session if session is not None and self.now < session.used + SESSION_MS else None

    def use(self, name: str, session: Session) -> Session:
        """Keep a session as of now, and return it."""
        self.sessions[name] = replace(session, used=self.now)
        return self.sessions[name]

    def visible(self, principal: str, session: str, namespace: str, zone: Zone) -> dict[Slot, Item]:
        """Rule 9: visible(sigma_s) = { m : m.sigma = sigma_s } and { m : m.sigma = shared }, of those alive.

        A session's name alone opens nothing: what somebody else wrote there, before it was bound, is his.
        """
        mine = {
            Scope(Visibility.SESSION, session, namespace),
            Scope(Visibility.PRINCIPAL, principal, namespace),
            Scope(Visibility.SHARED, "", namespace),
        }
        return {
            slot: item
            for slot, item in self.memory.items()
            if slot[0] is zone
            and slot[1] in mine
            and self.alive(item.until)
            and (slot[1].visibility is not Visibility.SESSION or item.principal == principal)
        }
