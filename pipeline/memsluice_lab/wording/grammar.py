"""The grammar: templates with slots, by class, language and family, in YAML files that were written for this project.

A text's group is its template: what is held out is held out with all that can be made from it. The first files of other
languages than English say the same things in one order, so a template of these has one group in all of them; the files
with a number (``de-2.yaml``, ``de-3.yaml``) each say things of their own.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

import yaml

_SLOT = re.compile(r"\{(\w+)\}")
DEPTH_MAX = 6
FIRST, LATER, LATEST, LAST = range(1, 3), range(3, 4), range(4, 14), range(14, 100)
"""Numbers of files by when they were written; from the fourth on most lines are whole texts, with few slots or none."""


@dataclass(frozen=True, slots=True)
class Template:
    """One template: ``label`` 1 is hostile; ``group`` names it."""

    text: str
    label: int
    language: str
    family: str
    group: str
    slots: dict[str, list[str]]

    def filled(self, rng: random.Random) -> str:
        """Return one text that the template can give; a slot has one value wherever it stands in it."""
        said, bound = self.text, dict[str, str]()
        for _ in range(DEPTH_MAX):
            if "{" not in said:
                break
            said = _SLOT.sub(lambda slot: bound.setdefault(slot[1], rng.choice(self.slots[slot[1]])), said)
        return said


def templates(numbers: range = FIRST) -> Iterator[Template]:
    """Yield the templates of the files of these numbers, in the order of their names."""
    for kind, label in (("hostile", 1), ("benign", 0)):
        folder = resources.files("memsluice_lab.wording") / kind
        for file in sorted(folder.iterdir(), key=lambda one: one.name):
            name, _, form = file.name.partition(".")
            if form == "yaml" and int(name.partition("-")[2] or 1) in numbers:
                yield from _of_file(file, kind, label)


def _of_file(file: Traversable, kind: str, label: int) -> Iterator[Template]:
    name = file.name.removesuffix(".yaml")
    language, _, second = name.partition("-")
    whose = name if second or language == "en" else "others"
    read = yaml.safe_load(file.read_text(encoding="utf-8"))
    slots = {slot: [str(value) for value in values] for slot, values in read["slots"].items()}
    for family, lines in read["families"].items():
        for number, line in enumerate(lines):
            yield Template(str(line), label, language, family, f"{kind}/{whose}/{family}/{number}", slots)
