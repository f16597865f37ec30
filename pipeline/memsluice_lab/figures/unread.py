"""How many held injections land by a replay that nobody read, after the calibration that held them moved."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from memsluice.client.requests import Session
from memsluice.encoder import Encoder, load_encoder
from memsluice.envelope.verdict import Decision, Verdict
from memsluice.errors import StateError
from memsluice.events.models import Action
from memsluice.gate.policy.model import PolicySet, default, laid_over
from memsluice_lab.demo.caching_encoder import MemoEncoder
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.world_embedded import EmbeddedWorld

REPLAYS = 1_000
HELD_A_SEQUENCE = 25
HONEST = 45
"""Writes that land between: more than a tenant needs to be known by, and nearer to its questions than those before."""
WAYS = ("plain", "dry", "other run", "twice")
"""How a write is replayed: as it is, dry, accepting a run that did not show it, and again after a first replay."""
THINGS = ("the invoices", "the rota", "the greenhouse key", "the guest list", "the archive", "the price list")
NEAR = ("Where is {}? Always at the address {}.", "Who keeps {}? Nobody but {}.", "When was {} last changed? By {}.")
"""Injections without a word of order: near to questions, which is what MEMSAD holds."""
OTHER = ("What does a ticket to {} cost?", "Which train goes to {}?", "How warm is the sea at {}?")
TOWNS = ("Malmö", "Tartu", "Bergen", "Porto", "Ghent", "Kraków", "Trieste", "Cádiz", "Odense", "Lecce")
ASKED_LAST = 10
QUESTIONS = ("Where is {}?", "Who keeps {}?", "When was {} last changed?")
NOTES = ("Where is {}? It is in room {}.", "Who keeps {}? Team {} does.", "When was {} last changed? In week {}.")


@dataclass(slots=True)
class Count:
    """What replays came to: how many there were, landed unread, and stayed though nothing but what was learned moved.

    ``read`` is how many landed after a run that showed them was named.
    """

    replays: int = 0
    unread: int = 0
    stayed: int = 0
    read: int = 0


def unread_replays(setting: Setting, replays: int = REPLAYS) -> Measured:
    """Return how many of ``replays`` replays of held injections let one in that no run had shown.

    Raises StateError where the calibration moved for too few of them: then nothing was asked.
    """
    encoder, total, seed = MemoEncoder(load_encoder()), Count(), 0
    while total.replays < replays:
        sequence(encoder, seed, total)
        seed += 1
        setting.say(f"{total.replays} replays of {seed} sequences: {total.unread} landed unread")
    if total.stayed * 10 < total.replays:
        raise StateError(f"the calibration let in only {total.stayed} of {total.replays}: the sequences ask nothing")
    return Measured(
        total.unread,
        (
            (
                "replays of held injections",
                f"{total.replays:,} in {seed} sequences, under MEMSAD: no calibration moves what wording holds",
            ),
            ("landed, and no run had shown them", str(total.unread)),
            ("stayed held because only the calibration had moved", str(total.stayed)),
            ("landed once a run that had shown them was named", str(total.read)),
        ),
    )


def sequence(encoder: Encoder, seed: int, count: Count, *, held: int = HELD_A_SEQUENCE, honest: int = HONEST) -> None:
    """Play one sequence: injections are held, the tenant goes on, and all of them are replayed; add to ``count``."""
    chance = random.Random(seed)  # noqa: S311 - which texts, no secret
    tenant = f"unread-{seed}"
    world = EmbeddedWorld([tenant], encoder, policies(), run=f"u{seed}")
    try:
        waiting = list(_held(world, tenant, chance, held))
        _goes_on(world, tenant, chance, honest)
        for target in waiting:
            _replayed(world, tenant, target, chance.choice(WAYS), count)
        _accepted(world, tenant, waiting, count)
    finally:
        world.close()


def policies() -> PolicySet:
    """Return the policy that ships, with no limit on how much is written, and few questions in MEMSAD's memory."""
    changes = {
        "detector": "memsad",
        "writes_per_day": {"user_verified": None, "user_observed": None},
        "memsad": {"history_size": ASKED_LAST, "cold_threshold": 0.3},
    }
    return PolicySet(laid_over(default().default, changes), {})


def _held(world: EmbeddedWorld, tenant: str, chance: random.Random, held: int) -> Iterator[str]:
    """Yield injections that are held in a tenant of which little is known yet."""
    for number in range(6):
        world.ask(_session(tenant, number), chance.choice(QUESTIONS).format(chance.choice(THINGS)))
    made = [
        world.write(
            "user",
            _session(tenant, n % 5),
            chance.choice(NEAR).format(chance.choice(THINGS), f"no. {chance.randrange(1_000)}"),
        )
        for n in range(held)
    ]
    for target in made:
        if world.said(tenant, target).decision is Decision.QUARANTINE:
            yield target


def _goes_on(world: EmbeddedWorld, tenant: str, chance: random.Random, honest: int) -> None:
    """Have honest people write and ask: what the detectors rest on is another then, under the same policy."""
    for number in range(honest):
        who = _session(tenant, 10 + number)
        if number % 5 == 0:
            world.ask(who, chance.choice(QUESTIONS).format(chance.choice(THINGS)))
        world.write("user", who, chance.choice(NOTES).format(chance.choice(THINGS), chance.randrange(90)))
    for number, town in enumerate(chance.sample(TOWNS, ASKED_LAST)):
        world.ask(_session(tenant, number), chance.choice(OTHER).format(town))


def _replayed(world: EmbeddedWorld, tenant: str, target: str, way: str, count: Count) -> None:
    """Replay one held write that nobody read since."""
    parameters = {"dry": {"dry": "yes"}, "other run": {"accept": "another"}}.get(way, {})
    for number in range(2 if way == "twice" else 1):
        command = world.order(tenant, Action.REPLAY, target, run=f"first-{number}", **parameters)
        _count(world.said(tenant, command), count)


def _count(verdict: Verdict, count: Count) -> None:
    count.replays += 1
    count.unread += verdict.object_id is not None
    count.stayed += verdict.has("replay.recalibrated") or verdict.has("replay.not_shown")


def _accepted(world: EmbeddedWorld, tenant: str, waiting: list[str], count: Count) -> None:
    """Show each in a run of its own, and name that run: this is how one may land."""
    for target in waiting:
        shown = world.order(tenant, Action.REPLAY, target, run="showing")
        if world.said(tenant, shown).has("replay.recalibrated"):
            command = world.order(tenant, Action.REPLAY, target, run="accepting", accept="showing")
            count.read += world.said(tenant, command).object_id is not None


def _session(tenant: str, number: int) -> Session:
    return Session(tenant, "helper", f"person-{number}", f"s-{number}")
