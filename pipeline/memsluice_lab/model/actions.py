"""Actions: what happens to the system, without how it travels. The paper's READ, WRITE, PROMOTE, and the design's."""

from dataclasses import dataclass

from memsluice.events.models import Origin, Tier, Visibility, Zone

Id = str


@dataclass(frozen=True, slots=True)
class Actor:
    """In whose session: the paper's sigma_s, the agent that runs in it, and the person it runs for."""

    session: str
    agent: str
    principal: str


@dataclass(frozen=True, slots=True)
class Scope:
    """Where an item lives, the paper's sigma: who is given it, who that is by name ("" for shared), and namespace."""

    visibility: Visibility
    owner: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Observe:
    """The platform says what a session saw (``Origin.OPEN``: nothing yet). ``refused``: the event failed a check."""

    id: Id
    actor: Actor
    origin: Origin
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Given:
    """One item that a READ handed over, as the reader reports it. ``exact``: in the version that was admitted."""

    event: Id
    tier: Tier
    taint: bool
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Read:
    """READ: a recall, with all it handed over (the paper's READ(k, sigma) has one item)."""

    id: Id
    actor: Actor
    namespace: str
    zone: Zone
    given: tuple[Given, ...] = ()
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Write:
    """WRITE(k, v, deps, pi, sigma). ``tier`` gives pi, ``parents`` the declared part of deps.

    ``source``: the credential's kind: user, agent, tool, web or operator. ``suspect``: a content check holds it.
    """

    id: Id
    actor: Actor
    source: str
    tier: Tier
    value: str
    suspect: bool = False
    key: str | None = None
    visibility: Visibility = Visibility.PRINCIPAL
    namespace: str = "default"
    parents: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """A command. ``by``: operator or reviewer. ``digest``: whether it names the right content; ``late``: expired.

    ``target`` is a write's id; for protect the key in ``scope``. ``approvals``: how many signed. ``stale``: it carries
    the entry's first record, not its last. ``session``: the target is a session's name (of a revocation). ``despite``:
    a declassification sets aside what detection finds. ``shown``: whether the signer's screen showed what it is about
    (None: it does not say); ``on``: the command by which its signer saw the target stand ("": it does not say).
    """

    id: Id
    by: str
    action: str
    target: str
    scope: Scope | None = None
    digest: bool = True
    late: bool = False
    approvals: int = 1
    stale: bool = False
    session: bool = False
    despite: bool = False
    shown: bool | None = None
    on: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """Time passes: items, lineage, sessions and event ids may expire."""

    ms: int


@dataclass(frozen=True, slots=True)
class Crash:
    """The worker dies before the next event's transaction is committed, and its successor reads the event again."""


@dataclass(frozen=True, slots=True)
class Redeliver:
    """The broker gives a record again that was decided: the one ``back`` events ago."""

    back: int


Event = Observe | Read | Write | Order
Action = Event | Wait | Crash | Redeliver
