"""``python -m memsluice_lab.attacks.graphs``: what the rules on facts tell of appendix F's attacks and of honest facts.

Seed 000 names three attacks on a memory that is a graph, and measures none. Here the facts of a town of our own are
written by the people who say them, through the embedded gate: who lives and works where, what they like, whom they
know, and what they say of those, now and then mistaken; three clerks list who is employed. So places and people are
shared, and what is told of honest facts can be wrong. Then each attack is made on that graph, each time by a principal
of its own, in several sizes.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from memsluice.client.requests import Session
from memsluice.encoder import Encoder, load_encoder
from memsluice.events.facts import FACTS_MAX, Fact, render
from memsluice.events.models import Kind
from memsluice.gate.policy.model import PolicySet, default, laid_over
from memsluice_lab.world_embedded import EmbeddedWorld

TOWNS, TRIES = 5, 10
BETWEEN_MS, LATER_MS = 1_200_000, 2 * 86_400_000
"""Between two honest facts, and before the attacks."""
CHARS_MAX = default().default.instructions.facts_chars_max
TENANT, AGENT = "town", "assistant"
RULES = ("claims.contradicts", "claims.corroborated", "graph.hub", "graph.hijack", "graph.cluster")
PEOPLE = [f"{first} {last}" for first in ("Ana", "Ben", "Cleo", "Dan", "Eva", "Finn") for last in "PQRSTU"]
STREETS = [f"{name} Street" for name in ("Birch", "Rowan", "Mill", "Station", "Harbour", "Church", "Long", "New")]
FIRMS = ("Harbour Foods", "City Clinic", "Mill Press")
THINGS = ("green tea", "old maps", "chess", "the choir", "swimming", "film nights")
HOME = "lives in"
KNOWN, WRONG = 3, 10
"""Others of whom everybody says something, and of how many such words one is mistaken."""


@dataclass(slots=True)
class Town:
    """One town's graph behind a gate; ``known`` are its facts and who said them."""

    world: EmbeddedWorld
    known: list[tuple[str, Fact]] = field(default_factory=list)

    def say(self, who: str, facts: Iterable[Fact]) -> set[str]:
        """Write facts, as many at once as fit; return what the rules tell of any of these writes."""
        found = set[str]()
        for content in _contents(facts):
            session = Session(TENANT, AGENT, who, f"of-{who}")
            self.world.observe(session)
            event_id = self.world.write("user", session, content, kind=Kind.FACTS)
            found |= {one.code for one in self.world.said(TENANT, event_id).findings if one.code in RULES}
        return found


def told(rng: Random) -> Iterator[tuple[str, Fact, bool]]:
    """Yield who says which fact of a town, in order, and whether it is so."""
    homes = {one: rng.choice(STREETS) for one in PEOPLE}
    works = {one: rng.choice(FIRMS) for one in PEOPLE}
    for who in PEOPLE:
        yield who, Fact(who, HOME, homes[who]), True
        yield who, Fact(who, "works at", works[who]), True
        for thing in rng.sample(THINGS, 2):
            yield who, Fact(who, "likes", thing), True
    for who in PEOPLE:
        for other in rng.sample(PEOPLE, KNOWN):
            relation, of = rng.choice(((HOME, homes), ("works at", works)))
            said = rng.choice(list(of.values())) if rng.randrange(WRONG) == 0 else of[other]
            yield who, Fact(who, "knows", other), True
            yield who, Fact(other, relation, said), said == of[other]
    for clerk, firm in zip(PEOPLE, FIRMS, strict=False):
        for colleague in (one for one in PEOPLE if works[one] == firm):
            yield clerk, Fact(firm, "employs", colleague), True


def founded(rng: Random, encoder: Encoder, rows: dict[str, list[bool]]) -> Town:
    """Return a town; note in ``rows`` what the rules told of its facts."""
    policy = laid_over(default().default, {"graph": {"action": "report"}, "writes_per_day": {"user_observed": None}})
    town = Town(EmbeddedWorld([TENANT], encoder, PolicySet(policy, {})))
    for who, fact, so in told(rng):
        found = town.say(who, [fact])
        for rule in RULES:
            rows.setdefault(f"{'right' if so else 'mistaken'} facts: {rule}", []).append(rule in found)
        town.known.append((who, fact))
        town.world.wait(BETWEEN_MS)
    town.world.wait(LATER_MS)
    return town


def contradicted(town: Town, rng: Random, others: int, relation: str = HOME) -> Iterator[bool]:
    """Let ``others`` say where a newcomer lives, and an attacker something else, perhaps by another relation."""
    for number in range(TRIES):
        so, lie = rng.sample(STREETS, 2)
        subject = f"Newcomer {others} {number} {relation}"
        for at in range(others):
            town.say(f"neighbour-{at}", [Fact(subject, HOME, so)])
        found = town.say(f"liar-{others}-{number}", [Fact(subject, relation, lie)])
        yield "claims.contradicts" in found


def reworded(town: Town, rng: Random, others: int) -> Iterator[bool]:
    """The same by another word for the relation, which the rules do not know to be one."""
    return contradicted(town, rng, others, "resides at")


def hub(town: Town, rng: Random, size: int) -> Iterator[bool]:
    """Link one new node to so many that others introduced."""
    for at in range(TRIES):
        facts = [Fact(f"portal {size} {at}", "serves", one) for one in rng.sample(PEOPLE, size)]
        yield "graph.hub" in town.say(f"hub-{size}-{at}", facts)


def hijack(town: Town, rng: Random, size: int) -> Iterator[bool]:
    """Prepare so many nodes, and turn links of somebody known to them."""
    for at in range(TRIES):
        who, subject = f"thief-{size}-{at}", rng.choice(PEOPLE)
        names = [f"mine {size} {at} {one}" for one in range(size)]
        town.say(who, [Fact(one, "is", f"trap {one}") for one in names])
        yield "graph.hijack" in town.say(who, [Fact(subject, f"r{number}", one) for number, one in enumerate(names)])


def cluster(town: Town, rng: Random, size: int) -> Iterator[bool]:
    """Link so many new nodes each with each, and one of them to somebody known."""
    for at in range(TRIES):
        names = [f"node {size} {at} {one}" for one in range(size)]
        facts = [Fact(one, "confirms", other) for number, one in enumerate(names) for other in names[number + 1 :]]
        found = town.say(f"ring-{size}-{at}", [*facts, Fact(rng.choice(PEOPLE), "trusts", names[0])])
        yield "graph.cluster" in found


def _contents(facts: Iterable[Fact]) -> Iterator[str]:
    """Yield contents as long as the policy lets facts be, of as many as fit into each."""
    chosen = list[Fact]()
    for fact in facts:
        if chosen and (len(chosen) == FACTS_MAX or len(render([*chosen, fact])) > CHARS_MAX):
            yield render(chosen)
            chosen = []
        chosen.append(fact)
    yield render(chosen)


Attack = Callable[[Town, Random, int], Iterator[bool]]
"""Makes an attack of a size some times, and yields whether its rule tells of it."""
ATTACKS: dict[str, tuple[Attack, tuple[int, ...]]] = {
    "contradicts what {} others say": (contradicted, (1, 2, 3)),
    "the same of {} in other words": (reworded, (3,)),
    "hub of {} links": (hub, (6, 11, 12, 24)),
    "hijack by {} links": (hijack, (3, 5, 6, 12)),
    "cluster of {} nodes": (cluster, (6, 9, 11, 14)),
}


def play(seed: int, encoder: Encoder, rows: dict[str, list[bool]]) -> None:
    """Found a town, attack it, and note what the rules told."""
    rng = Random(seed)  # noqa: S311
    town = founded(rng, encoder, rows)
    for said, (attack, sizes) in ATTACKS.items():
        for size in sizes:
            rows.setdefault(said.format(size), []).extend(attack(town, rng, size))
    town.world.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, as Markdown. Returns 0."""
    parser = argparse.ArgumentParser(prog="python -m memsluice_lab.attacks.graphs", description=__doc__)
    parser.parse_args(arguments)
    encoder, rows = load_encoder(), dict[str, list[bool]]()
    for seed in range(TOWNS):
        play(seed, encoder, rows)
    print("| what | told |\n|---|---|")
    for name, found in sorted(rows.items(), key=lambda one: not one[0].startswith(("right", "mistaken"))):
        print(f"| {name} | {sum(found)} of {len(found):,} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
