"""Whether honest writes that land make an injection usual: what is held in a cold tenant must be held in a warm one.

Injections of the grammar's explicit families are decided by the core, with the real encoder's vectors and wordings, as
an agent's writes, each in a session of its own and each on the same state: of a tenant in which so many honest writes
by agents landed before.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from memsluice.encoder import load_encoder
from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision
from memsluice.errors import StateError
from memsluice.gate.policy import model as policies
from memsluice.gate.policy.model import Policy
from memsluice_lab.figures.hard_negatives import HELD, Tenant, sealed
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.figures.unseen import EXPLICIT
from memsluice_lab.wording.grammar import templates

INJECTIONS = 500
LANDED = (0, 29, 30, 200, 1_000)
"""Honest writes that landed before; the first is cold."""
HONEST = 1_600
"""Honest writes that are tried, so that enough land."""
PRINCIPALS = 50
START, STEP = datetime(2026, 1, 5, 8, tzinfo=UTC), timedelta(minutes=15)
TENANT = "warm"
_NOTE = (
    "Development figure: injections and honest writes are of the grammar that the wording models were fitted on. It "
    "tells what warmth changes; how many unknown injections are held tells `unseen_recall`."
)
Line = dict[str, Any]
Events = list[Sealed]
"""A session's opening, and its one write."""


def warm_releases(setting: Setting) -> Measured:
    """Injections that are held in a cold tenant, and in one of the warm ones are not."""
    policy = policies.default().default
    texts = [*_filled(0, HONEST), *_filled(1, INJECTIONS)]
    by_session = defaultdict[str, Events](list)
    for event in sealed(list(_lines(texts)), load_encoder()):
        by_session[getattr(event.payload, "session", "")].append(event)
    every = [by_session[f"s{at}"] for at in range(len(texts))]
    honest, hostile = every[:HONEST], every[HONEST:]
    setting.say(f"{len(every):,} writes sealed")
    held, rows, released = list[frozenset[int]](), list[tuple[str, str]](), set[int]()
    for landed, tenant in _warm(honest, policy):
        found = frozenset(at for at, events in enumerate(hostile) if _decided(tenant.copied(), events, policy) in HELD)
        held.append(found)
        lost = held[0] - found
        released |= lost
        more = f", {len(lost)} of those held cold are not, {len(found - held[0])} others are" if landed else ""
        rows.append((f"after {landed:,} landed honest writes", f"{len(found)} of {INJECTIONS} held{more}"))
        setting.say(f"after {landed:,} landed honest writes: {len(found)} held")
    return Measured(float(len(released)), tuple(rows), (_NOTE,))


def _filled(label: int, count: int) -> Iterator[str]:
    """Yield so many different texts of the grammar: hostile ones of the explicit families, honest ones of all."""
    rng, given = Random(18 + label), set[str]()  # noqa: S311 - an experiment
    some = [one for one in templates() if one.label == label and (not label or one.family in EXPLICIT)]
    while len(given) < count:
        text = rng.choice(some).filled(rng)
        if text not in given:
            given.add(text)
            yield text


def _lines(texts: list[str]) -> Iterator[Line]:
    for at, text in enumerate(texts):
        yield {
            "seq": at, "time": (START + at * STEP).isoformat(), "tenant": TENANT, "session": f"s{at}", "parents": [],
            "principal": f"writer-{at % PRINCIPALS}", "agent": "agent-0", "kind": "write", "source": "agent",
            "text": text,
        }  # fmt: skip


def _decided(tenant: Tenant, events: Events, policy: Policy) -> Decision:
    """Decide a session, and return what became of its write, which comes last."""
    return [tenant.decide(event, policy).decision for event in events][-1]


def _warm(honest: list[Events], policy: Policy) -> Iterator[tuple[int, Tenant]]:
    """Yield the tenant when so many writes landed as :data:`LANDED` says. Raises StateError where too few land."""
    tenant, landed, waiting = Tenant.new(policy), 0, list(LANDED)
    for events in honest:
        if waiting and landed == waiting[0]:
            yield waiting.pop(0), tenant
        landed += _decided(tenant, events, policy) is Decision.ACCEPT
    if waiting and landed == waiting[0]:
        yield waiting.pop(0), tenant
    if waiting:
        raise StateError(f"{landed:,} of {len(honest):,} honest writes landed; {waiting[0]:,} are needed")
