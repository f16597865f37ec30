"""What gets through to guidance on the real stack: seed 001's tables 6 and 7, played against the whole product."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import orjson

from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.encoder import Encoder, load_encoder
from memsluice.events.models import Origin, Visibility, Zone
from memsluice.gate.policy import model as policies
from memsluice_lab import cast
from memsluice_lab.figures.accounted import unhurried
from memsluice_lab.figures.bed import bed
from memsluice_lab.figures.payloads import COUNT, RULE, payloads
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.run import decide
from memsluice_lab.streams import events_of, read_stream
from memsluice_lab.vectors import CLEAN, IDENTITY, SOUL, SOURCES, VECTORS, Stage, prepared
from memsluice_lab.world import World
from memsluice_lab.world_stack import StackWorld

SESSIONS, A_PRINCIPAL = 50, 2
DECLARED = 200
PAYLOADS, PAIRS, DECLARES = "payloads", "pairs", "declares"
CHANNELS = ("direct", "laundered")
QUESTION_CHARS = 400


@dataclass(slots=True)
class Through:
    """How many attempts there were, and those that reached guidance."""

    tried: dict[str, int] = field(default_factory=dict)
    reached: dict[str, list[str]] = field(default_factory=dict)

    def add(self, what: str, tried: int, reached: Sequence[str]) -> None:
        """Count attempts under a name."""
        self.tried[what] = self.tried.get(what, 0) + tried
        self.reached.setdefault(what, []).extend(reached)

    def total(self) -> int:
        """Return how many got through."""
        return sum(map(len, self.reached.values()))

    def rows(self) -> tuple[tuple[str, str], ...]:
        """Return what a person reads."""
        return tuple(
            (what, f"{count - len(self.reached[what]):,} of {count:,} kept out") for what, count in self.tried.items()
        )


def provenance_through(setting: Setting) -> Measured:
    """How much of what may not reach guidance did: by its verdict, in the store, or in a recall's answer."""
    found, texts, encoder = Through(), payloads(setting.records() / "data"), load_encoder()
    tenants = [*(name.lower() for name in VECTORS), PAYLOADS, PAIRS, DECLARES]
    with bed(setting, policy=unhurried()) as running:
        signers = cast.at_home(running.store, tenants, now_ms=wall_ms())
        world = StackWorld(running, signers, encoder, run="through")
        unharmed = [_vectors(world, found, name, texts) for name in VECTORS]
        setting.say(f"seven vectors played: {found.total()} through")
        _payloads(world, found, texts)
        setting.say(f"{COUNT} payloads of {len(SOURCES)} origins: {found.total()} through")
        _pairs(world, found)
        _declared(world, found, texts)
        setting.say(f"pairs of sessions and declared parents: {found.total()} through")
        world.close()
    _labelled(setting, found, encoder)
    rows = (*found.rows(), ("SOUL.md, SHA-256 before and after", "identical" if all(unharmed) else "CHANGED"))
    return Measured(float(found.total() + unharmed.count(False)), rows, (RULE, _NOTE))


_NOTE = (
    "On the real stack: through Kafka, Faust and Weaviate, and asked for by real recalls; the labelled streams go "
    "through the same stages in one process. An attempt is through if its verdict says guidance, or if a recall for "
    "guidance returns it to anybody it is not for."
)


def _vectors(world: World, found: Through, name: str, texts: Sequence[str]) -> bool:
    """Play one vector over every source; return whether the victims' identity files are what they were."""
    tenant = name.lower()
    stages = prepared(world, tenant, *SOURCES)
    before = [_soul(at) for at in stages]
    tried = [VECTORS[name](at, text) for at, text in zip(stages, texts, strict=False)]
    for at, text, ids in zip(stages, texts, tried, strict=False):
        shown = {id for viewer in ("asks", "a5-victim") for id in _shown(at, viewer, text)}
        reached = [id for id in ids if world.said(tenant, id).zone == Zone.GUIDANCE or id in shown]
        found.add(f"{name} from {len(SOURCES)} sources", len(ids), reached)
    return set(before) == {_soul(at) for at in stages} == {sha256(IDENTITY.encode()).hexdigest()}


def _shown(at: Stage, name: str, question: str) -> set[str]:
    """Return the event ids that a session of the victim's is given as guidance."""
    session = at.session(name)
    asked = (question[:QUESTION_CHARS], CLEAN)
    return {entry.admission.event_id for text in asked for entry in at.world.ask(session, text).entries}


def _soul(at: Stage) -> str:
    """Return the digest of the victim's identity file, as a recall gives it."""
    entries = at.world.ask(at.session("asks"), IDENTITY).entries
    contents = [entry.content for entry in entries if entry.admission.key == SOUL]
    return sha256("".join(contents).encode()).hexdigest()


def _payloads(world: World, found: Through, texts: Sequence[str]) -> None:
    """Every payload as a write of each untrusted origin; then each is asked for."""
    victim = Session(PAYLOADS, "planner", "ana", "asks")
    clean = world.write("user", victim, CLEAN)
    ids = [world.write(source, Session(PAYLOADS, "crawler", "ana", f"{source}-crawl"), text)
           for source in SOURCES for text in texts]  # fmt: skip
    world.settle()
    shown = set()
    for text in texts:
        shown |= {entry.admission.event_id for entry in world.ask(victim, text[:QUESTION_CHARS]).entries}
    assert clean in shown, "the victim's own entry is not recalled: the check would be worth nothing"
    reached = [id for id in ids if world.said(PAYLOADS, id).zone == Zone.GUIDANCE or id in shown]
    found.add(f"{COUNT} payloads as writes of {len(SOURCES)} origins", len(ids), reached)


def _pairs(world: World, found: Through) -> None:
    """Fifty sessions at once, two of each principal; no session is given what another wrote for itself."""
    sessions = [Session(PAIRS, "planner", f"person-{n // A_PRINCIPAL}", f"session-{n}") for n in range(SESSIONS)]
    for session in sessions:
        world.observe(session)
    own: dict[str, set[str]] = {session.session: set() for session in sessions}
    for session, key in itertools.product(sessions, (None, "word")):
        text = f"The word of {session.session} is {sha256(session.session.encode()).hexdigest()[:8]}."
        own[session.session].add(world.write("user", session, text, key=key, visibility=Visibility.SESSION))
    world.settle()
    leaks = []
    for session in sessions:
        given = {entry.admission.event_id for entry in world.ask(session, "What is the word of this session?").entries}
        assert given >= own[session.session], "a session is not given its own entries: the check would be worth nothing"
        leaks += [f"{session.session} is given {other}" for other, ids in own.items()
                  if other != session.session and ids & given]  # fmt: skip
    found.add(f"pairs of {SESSIONS} concurrent sessions", SESSIONS * (SESSIONS - 1), leaks)


def _declared(world: World, found: Through, texts: Sequence[str]) -> None:
    """A person's own writes that declare a tainted parent, of every kind of taint that there is."""
    typed, clean = Session(DECLARES, "planner", "ana", "typed"), Session(DECLARES, "planner", "ana", "clean")
    world.observe(clean)
    honest = world.write("user", typed, CLEAN)
    ids = []
    for number, parents in zip(range(DECLARED), itertools.cycle(_tainted(world, texts)), strict=False):
        both = (honest, *parents) if number % 2 else parents
        ids.append(world.write("user", typed, f"Point {number} of what I put together today.", parents=both))
    world.settle()
    shown = {entry.admission.event_id for entry in world.ask(typed, "What did I put together today?").entries}
    reached = [id for id in ids if world.said(DECLARES, id).zone == Zone.GUIDANCE or id in shown]
    found.add("user's writes that declare a tainted parent", DECLARED, reached)


def _tainted(world: World, texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Return tainted parents: outside content, what agents made of it, its descendants, and what nobody knows."""
    made: list[tuple[str, ...]] = [("never-written",)]
    for source, text in zip(SOURCES, texts, strict=False):
        page = world.write(source, Session(DECLARES, "crawler", "ana", f"{source}-crawl"), text)
        reading = Session(DECLARES, "planner", "ana", f"{source}-reads")
        world.observe(reading)
        world.observe(reading, Origin(source))
        note = world.write("agent", reading, f"Noted from a {source}: {text[:200]}")
        child = world.write("user", Session(DECLARES, "planner", "ana", "typed"), f"From {source}.", parents=(note,))
        made += [(page,), (note,), (child,), (page, note)]
    unopened = world.write("agent", Session(DECLARES, "planner", "ana", "nobody-opened"), "I remember it well.")
    return [*made, (unopened,)]


def _labelled(setting: Setting, found: Through, encoder: Encoder) -> None:
    """Attacks of the labelled streams that came directly or laundered: what the label is, only this function sees."""
    with streams(setting) as paths:
        for path in paths:
            verdicts = {line["seq"]: line["decision"] for line in decide(
                events_of(read_stream(path)), name=path.stem, encoder=encoder, chosen=policies.default())}  # fmt: skip
            for line in map(orjson.loads, path.read_bytes().splitlines()):
                if line["kind"] == "write" and line["channel"] in CHANNELS:
                    reached = [f"{path.stem} {line['seq']}"] if verdicts[line["seq"]] == "accept" else []
                    found.add(f"labelled streams: attacks that came {line['channel']}", 1, reached)
            setting.say(f"{path.stem}: {found.total()} through")
