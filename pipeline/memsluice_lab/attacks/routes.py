"""How an attack reaches a memory behind the gate: who signs, in whose name, in what kind of session.

A route follows from the access that seed 000 gives a class (Definition 2, Table 1), read for a memory with a gate:

- WRITE (AgentPoison): whoever may write wherever victims read. Straight into the store with its master key; as an
  uploaded document; and as an agent of the victim's own, whose key writes in the victim's name in a session that
  saw nothing from outside.
- QUERY (MINJA): another user of the same agent. He asks, in his own name and session; the agent stores what came of it.
- SINGLE (InjecMEM): one interaction. A page that the victim's agent reads once and stores from; or one session of
  another user's.

AgentPoison's passages carry an action, by the paper "explicit command-style language" (Appendix V). WRITE "permits
arbitrary token sequences", and ASR-R asks for no action (Assumption 4), so the same passages with a falsehood in place
of the action are a way in of their own, and count.

What only a stolen name makes possible is played too, and is not of the class: nothing in the paper gives it to a MINJA
or InjecMEM attacker, and no gate can tell somebody from who acts in his name. ``counted`` is False there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memsluice.client import requests
from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.encoder import Encoder
from memsluice.errors import StackError
from memsluice.events.ids import object_id
from memsluice.events.models import Origin, Visibility, Zone
from memsluice.stores.base import Scope, StoreAnswer, VectorStore
from memsluice_lab.attacks.poison import Attack, Poison
from memsluice_lab.world import World

AGENT, ATTACKER, SESSION = "assistant", "mallory", "hostile"
NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class Place:
    """Where an attack is played: a tenant of a deployment, the victim (a principal), and the store's master key."""

    world: World
    tenant: str
    victim: str
    master: VectorStore
    encoder: Encoder

    def opened(self, principal: str) -> Session:
        """Return a session that the platform opened for somebody, and that has seen nothing from outside."""
        session = Session(self.tenant, AGENT, principal, SESSION)
        self.world.observe(session)
        return session


Play = Callable[[Place, Sequence[str]], list[str]]
"""Writes the entries and returns the event ids of those that the gate is to decide."""


@dataclass(frozen=True, slots=True)
class Route:
    """One way in. ``counted`` where the class's access in the paper gives it."""

    attack: Attack
    name: str
    said: str
    play: Play
    counted: bool = True
    quiet: bool = False
    past_the_gate: bool = False
    """Nothing is asked of the gate: the entries are in the store at once."""

    def texts(self, poison: Poison) -> tuple[str, ...]:
        """Return the entries that are written on this route."""
        return poison.quiet if self.quiet else poison.texts

    @property
    def tenant(self) -> str:
        """A tenant of its own: what one route leaves behind tells the gate nothing about another."""
        return f"{self.attack.lower()}-{self.name}"


def into_the_store(at: Place, texts: Sequence[str]) -> list[str]:
    """Put copies of the victim's own objects into the store, with other content and the vector that belongs to it.

    Raises StackError where the victim has nothing there, or the store refuses: the check would be worth nothing.
    """
    vectors = at.encoder.encode(list(texts))
    hits = at.master.search(at.tenant, Zone.GUIDANCE, vectors[0], 1, Scope(at.victim, ""), NAMESPACE, wall_ms())
    if not hits:
        raise StackError(f"{at.tenant}: the store has nothing of {at.victim}'s to copy")
    for number, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
        event_id = f"planted.{number}"
        false = replace(
            hits[0].object, event_id=event_id, content=text, vector=vector,
            object_id=object_id(
                tenant=at.tenant, zone=Zone.GUIDANCE, visibility=Visibility.PRINCIPAL, owner=at.victim,
                namespace=NAMESPACE, key=None, event_id=event_id,
            ),
        )  # fmt: skip
        if at.master.upsert([false])[0].outcome is not StoreAnswer.LANDED:
            raise StackError(f"{at.tenant}: the store did not take {event_id}")
    return []


def as_upload(at: Place, texts: Sequence[str]) -> list[str]:
    """The documents' own source writes them, for the victim."""
    session = Session(at.tenant, AGENT, at.victim, SESSION)
    return [at.world.write("upload", session, text) for text in texts]


def as_agent(at: Place, texts: Sequence[str]) -> list[str]:
    """An agent writes in the victim's name, in a clean session."""
    session = at.opened(at.victim)
    return [at.world.write("agent", session, text) for text in texts]


def from_a_page(at: Place, texts: Sequence[str]) -> list[str]:
    """The victim's agent reads one page and stores what stands there."""
    session = at.opened(at.victim)
    at.world.observe(session, Origin.WEB)
    return [at.world.write("agent", session, text) for text in texts]


def in_one_session(at: Place, texts: Sequence[str]) -> list[str]:
    """Another user has one session with the agent, which stores what he says."""
    session = at.opened(ATTACKER)
    return [at.world.write("agent", session, text) for text in texts]


def asking_as(principal: str | None) -> Play:
    """Return the play of somebody who only asks; after each question the agent stores it and its reasoning.

    ``principal`` None: in the victim's name, as where an application gives all its users one.
    """

    def play(at: Place, texts: Sequence[str]) -> list[str]:
        session, written = at.opened(principal or at.victim), list[str]()
        for text in texts:
            moment = datetime.fromtimestamp(at.world.now_ms() / 1_000, UTC)
            question = text.partition("?")[0] + "?"
            at.world.publish("reader", requests.recall(at.world.name(), moment, session, question, ()))
            written.append(at.world.write("agent", session, text))
        return written

    return play


ROUTES = (
    Route(Attack.AGENTPOISON, "store", "straight into the store, with its master key", into_the_store,
        past_the_gate=True),
    Route(Attack.AGENTPOISON, "upload", "as uploaded documents", as_upload),
    Route(Attack.AGENTPOISON, "agent", "by an agent of the victim's own, in a clean session", as_agent),
    Route(Attack.MINJA, "user", "by another user's questions; the agent stores", asking_as(ATTACKER)),
    Route(Attack.INJECMEM, "page", "from a page that the victim's agent reads", from_a_page),
    Route(Attack.INJECMEM, "user", "in one session of another user's", in_one_session),
    Route(
        Attack.AGENTPOISON, "quiet", "by such an agent, a falsehood in place of the order", as_agent,
        quiet=True,
    ),
    Route(Attack.MINJA, "name", "by questions in the victim's own name", asking_as(None), counted=False),
    Route(Attack.INJECMEM, "name", "in one session in the victim's own name", as_agent, counted=False),
)  # fmt: skip


def of(attack: Attack) -> list[Route]:
    """Return the routes of a class."""
    return [route for route in ROUTES if route.attack is attack]


def tenants() -> list[str]:
    """Return the tenants of all routes."""
    return [route.tenant for route in ROUTES]
