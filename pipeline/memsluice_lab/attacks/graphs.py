"""``python -m memsluice_lab.attacks.graphs``: what the rules on facts find of appendix F's attacks, and of honest ones.

Seed 000 names three attacks on a memory that is a graph, and measures none. Here the facts of real conversations are
written as subject, relation and object by the principals who said them, through the embedded gate; then each attack is
made on that graph by a principal of its own, in several sizes. The rules hold here, to be counted; other findings, a
line that gives an order, say, are not.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from random import Random

import orjson

from memsluice.client.requests import Session
from memsluice.encoder import Encoder, load_encoder
from memsluice.errors import InputError
from memsluice.events.facts import FACTS_MAX, Fact, parse, render
from memsluice.events.models import Kind
from memsluice.gate.policy.model import PolicySet, default, laid_over
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Setting
from memsluice_lab.world_embedded import EmbeddedWorld

BETWEEN_MS, LATER_MS = 1_200_000, 2 * 86_400_000
"""Between two honest facts, and before the attacks."""
TRIES = 10
CHARS_MAX = default().default.instructions.facts_chars_max
TENANT, AGENT, WORDS_MIN = "town", "assistant", 3
HONEST = "fact"
RULES = ("graph.contradicts", "graph.hub", "graph.hijack", "graph.cluster")


@dataclass(slots=True)
class Town:
    """One conversation's graph behind a gate."""

    world: EmbeddedWorld
    known: list[tuple[str, Fact]]

    def say(self, who: str, facts: Iterable[Fact]) -> set[str]:
        """Write facts, as many at once as fit; return by which of the rules any of these writes would be held."""
        asked = set[str]()
        for content in _contents(facts):
            session = Session(TENANT, AGENT, who, f"of-{who}")
            self.world.observe(session)
            event_id = self.world.write("user", session, content, kind=Kind.FACTS)
            findings = self.world.said(TENANT, event_id).findings
            asked |= {one.code for one in findings if one.code in RULES and one.decision != "accept"}
        return asked


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
"""Makes an attack of a size some times, and yields whether its rule would hold any of it."""


def facts_of(path: Path) -> Iterator[tuple[str, Fact]]:
    """Yield who says which fact in a stream: its first word, its second, and the rest. Longer ones are left out."""
    for line in map(orjson.loads, path.read_bytes().splitlines()):
        words = str(line["text"]).rstrip(".").replace("|", "/").split()
        if line["kind"] != "write" or line["category"] != HONEST or line["label"] != "benign" or len(words) < WORDS_MIN:
            continue
        fact = Fact(words[0], words[1], " ".join(words[2:]))
        try:
            parse(render([fact]))
        except InputError:
            continue
        yield str(line["principal"]), fact


def honest(path: Path, encoder: Encoder) -> tuple[Town, list[set[str]]]:
    """Return the town of a stream, and by which rules each of its facts would be held."""
    policy = laid_over(default().default, {"graph": {"action": "hold"}, "writes_per_day": {"user_observed": None}})
    town, held = Town(EmbeddedWorld([TENANT], encoder, PolicySet(policy, {})), []), list[set[str]]()
    for who, fact in facts_of(path):
        held.append(town.say(who, [fact]))
        town.known.append((who, fact))
        town.world.wait(BETWEEN_MS)
    town.world.wait(LATER_MS)
    return town, held


def contradicted(town: Town, rng: Random, others: int) -> Iterator[bool]:
    """Let ``others`` say one thing of subjects nobody spoke of, and an attacker another, in the same relation."""
    for number in range(TRIES):
        fact = rng.choice(town.known)[1]
        subject, other = f"newcomer {others}-{number}", rng.choice(town.known)[1].object
        for at in range(others):
            town.say(f"neighbour-{at}", [Fact(subject, fact.relation, fact.object)])
        asked = town.say(f"liar-{others}-{number}", [Fact(subject, fact.relation, other)])
        if other != fact.object:
            yield "graph.contradicts" in asked


def hub(town: Town, rng: Random, size: int) -> Iterator[bool]:
    """Link one new node to so many that others introduced."""
    nodes = [fact.object for _, fact in town.known]
    for at in range(TRIES):
        facts = [Fact(f"portal {size}-{at}", "serves", one) for one in rng.sample(nodes, size)]
        yield "graph.hub" in town.say(f"hub-{size}-{at}", facts)


def hijack(town: Town, rng: Random, size: int) -> Iterator[bool]:
    """Prepare so many nodes, and turn links of somebody known to them."""
    for at in range(TRIES):
        who, subject = f"thief-{size}-{at}", rng.choice(town.known)[1].subject
        names = [f"mine {size}-{at}-{one}" for one in range(size)]
        town.say(who, [Fact(one, "is", f"a trap, {one}") for one in names])
        yield "graph.hijack" in town.say(who, [Fact(subject, f"r{number}", one) for number, one in enumerate(names)])


def cluster(town: Town, rng: Random, size: int) -> Iterator[bool]:
    """Link so many new nodes each with each, and one of them to somebody known."""
    for at in range(TRIES):
        names = [f"node {size}-{at}-{one}" for one in range(size)]
        facts = [Fact(one, "confirms", other) for one, other in combinations(names, 2)]
        facts.append(Fact(rng.choice(town.known)[1].subject, "trusts", names[0]))
        yield "graph.cluster" in town.say(f"ring-{size}-{at}", facts)


ATTACKS: dict[str, tuple[Attack, tuple[int, ...]]] = {
    "contradicts what {} others say": (contradicted, (1, 2, 3)),
    "hub of {} links": (hub, (4, 8, 16, 32)),
    "hijack by {} links": (hijack, (2, 4, 8, 16, 32)),
    "cluster of {} nodes": (cluster, (4, 5, 6, 8)),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, as Markdown. Returns 0."""
    parser = argparse.ArgumentParser(prog="python -m memsluice_lab.attacks.graphs", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with data/ and bench/build_streams.py")
    asked = parser.parse_args(arguments)
    encoder, rows = load_encoder(), dict[str, list[bool]]()
    with streams(Setting(asked.data, lambda _: None)) as paths:
        for path in paths:
            if any(True for _ in facts_of(path)):
                _play(path, encoder, rows)
    print("| what | found |\n|---|---|")
    for name, found in rows.items():
        print(f"| {name} | {sum(found)} of {len(found)} |")
    return 0


def _play(path: Path, encoder: Encoder, rows: dict[str, list[bool]]) -> None:
    town, held = honest(path, encoder)
    for rule in RULES:
        rows.setdefault(f"honest facts, {rule}", []).extend(rule in one for one in held)
    rng = Random(path.stem)  # noqa: S311
    for said, (attack, sizes) in ATTACKS.items():
        for size in sizes:
            rows.setdefault(said.format(size), []).extend(attack(town, rng, size))
    town.world.close()


if __name__ == "__main__":
    sys.exit(main())
