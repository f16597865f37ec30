"""How well the wording signal knows what it never saw: whole families, languages, sources and templates left out.

From one command: the models are trained as ``lab train`` does it, without what :func:`reason` names, and judge just
that, read in short windows, at the budgets that ship and by the product's own rule. Nothing of it was fitted on,
weighed on or used for a tail.

The rule is fixed here, and no result had a say in it. Left out are

- the hostile families *persona* and *persistence*, and the honest ones that ask the same of an assistant, *roleplay*
  and *preference*, in every language;
- German and Hindi, of both classes and all families (a template of theirs may say what one of another language says);
- deepset's and Giskard's prompts and XSTest's, honest and hostile;
- one template in five of everything else, by its name;
- every page, record or mail in which a line of these stands, and every text that is equal to one of them.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from memsluice.envelope.registry import DEFAULT_TIER
from memsluice.envelope.seals import Wording
from memsluice.envelope.verdict import Decision
from memsluice.errors import StateError
from memsluice.gate.checks import instructions
from memsluice.gate.checks.spelled import spelled
from memsluice.gate.detectors.wording import check
from memsluice.gate.detectors.wording.classifier import Judged
from memsluice.gate.detectors.wording.shipped import read
from memsluice.gate.policy import model as policies
from memsluice.gate.policy.wording import Reach, WordingPolicy
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.wording import head
from memsluice_lab.wording.corpus import Example, held_out
from memsluice_lab.wording.train import Corpus, Fitted, fit

FAMILIES = frozenset({"persona", "persistence", "roleplay", "preference"})
LANGUAGES = frozenset({"de", "hi"})
SOURCES = frozenset({"deepset", "giskard", "xstest"})
TEMPLATES = 5
"""One template in so many is left out."""
EXPLICIT = frozenset({"override", "persistence", "persona", "exfiltration", "authority", "trigger", "suppression"})
"""Hostile families that say what is to be done; the others state false settings, redirect, or ask kindly."""
FRAMES = "lines within pages, records and mails"
LEAST = 20
"""Texts that a kind must have to count."""
COUNTED = Reach.RELIED
"""At whose budget the figure is taken: what an agent writes."""
Kind = tuple[str, bool]
"""What was left out, and whether the figure counts it."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """Texts by class and kind: how many, and how many are held at the budget of each reach."""

    texts: Mapping[int, Mapping[Kind, int]]
    held: Mapping[int, Mapping[tuple[Kind, Reach], int]]
    fitted: int


@dataclass(frozen=True, slots=True)
class Trained:
    """The models, the texts that they were fitted on, and what each text that was left out is measured as."""

    corpus: Corpus
    fitted: Fitted
    known: NDArray[np.int64]
    kinds: Mapping[int, Kind]
    states: TemporaryDirectory[str]
    """Where the corpus has its states, as long as this lives."""


def unseen_recall(setting: Setting) -> Measured:
    """Share of the explicit hostile texts left out that are held at an agent's budget, each kind counting alike."""
    return _shares(_judged(setting), 1)


def unseen_fpr(setting: Setting) -> Measured:
    """Share of the honest texts left out that are held at an agent's budget, each kind counting alike."""
    return _shares(_judged(setting), 0)


def reason(one: Example) -> str | None:
    """Return why a text is left out, None where it isn't; of a composed one see :func:`apart`."""
    if one.source in SOURCES:
        return f"source {one.source}"
    if one.source != "grammar":
        return None
    if one.language in LANGUAGES:
        return f"language {one.language}"
    if one.family in FAMILIES:
        return f"family {one.family}"
    return "templates of known families" if crc32(f"unseen {one.group}".encode()) % TEMPLATES == 0 else None


def apart(every: Sequence[Example]) -> Callable[[Example], bool]:
    """Return what says of a text of this corpus whether it must not enter fitting."""
    texts = {_plain(one) for one in every if reason(one)}

    def said(one: Example) -> bool:
        return any(reason(part) is not None or _plain(part) in texts for part in (one, *one.of))

    return said


def kind(one: Example) -> Kind | None:
    """Return what a text is measured as, None for nothing.

    In a composed text it is the planted line that counts, or in an honest one any line.
    """
    parts = (one.of[-1:] if one.label else one.of) or (one,)
    why = next((found for part in parts if (found := reason(part))), None)
    if why is None:
        return None
    explicit = not one.label or parts[0].source != "grammar" or parts[0].family in EXPLICIT
    return FRAMES if one.of else why, explicit


def _plain(one: Example) -> str:
    return " ".join(one.text.casefold().split())


@lru_cache(maxsize=1)
def trained(setting: Setting) -> Trained:
    """Train once for all figures that are measured together."""
    scratch = TemporaryDirectory(prefix="memsluice-unseen-")
    some = Corpus.read(setting.records() / "data", Path(scratch.name))
    setting.say(f"{len(some.examples):,} texts read")
    without = apart(some.examples)
    known = np.array([at for at, one in enumerate(some.examples) if not without(one)])
    kinds = {at: found for at, one in enumerate(some.examples) if (found := kind(one))}
    fitted = fit(some, lambda one: held_out(one.group), again=True, unseen=without)
    return Trained(some, fitted, known, kinds, scratch)


@lru_cache(maxsize=1)
def _judged(setting: Setting) -> Unseen:
    models = trained(setting)
    some, kinds = models.corpus, models.kinds
    of_head = head.logits(models.fitted.head, some.features, np.array(list(kinds)))
    classifier = read(models.fitted.files()["classifier.npz"])
    texts, held = (
        {label: Counter[Kind]() for label in (0, 1)},
        {label: Counter[tuple[Kind, Reach]]() for label in (0, 1)},
    )
    rules = policies.default().default.wording
    for (at, found), logit in zip(kinds.items(), of_head, strict=True):
        one = some.examples[at]
        judged = classifier.judge(one.text, Wording(round(float(logit), 3), 0, len(one.text), len(one.text)))
        texts[one.label][found] += 1
        for reach in Reach:
            held[one.label][found, reach] += _is_held(one.text, judged, rules, reach)
    return Unseen(texts, held, len(models.known))


def _is_held(text: str, judged: Judged, rules: WordingPolicy, reach: Reach) -> bool:
    tier = DEFAULT_TIER["user" if reach is Reach.OWN else "agent"]
    content = spelled(text)
    pattern = instructions.told(content, instructions.find(content))
    found = check.check(judged, rules, reach, tier, pattern=pattern, least=Decision.QUARANTINE, model="")
    return found is not None and found.code == "wording.held"


def _shares(found: Unseen, label: int) -> Measured:
    """Return the mean of the counted kinds' shares, with every kind at every reach."""
    rows, counted = list[tuple[str, str]](), list[float]()
    for each, texts in sorted(found.texts[label].items()):
        name, explicit = each
        shares = {reach: found.held[label][each, reach] / texts for reach in Reach}
        told = ", ".join(f"{100 * share:.1f} % {reach.value}" for reach, share in shares.items())
        enough = explicit and texts >= LEAST
        rows.append(
            (name if enough else f"not counted: {name}{'' if explicit else ', veiled'}", f"{told}; {texts:,} texts")
        )
        if enough:
            counted.append(shares[COUNTED])
    if not counted:
        raise StateError(f"of no kind that was left out there are {LEAST} texts")
    ends = f"{100 * min(counted):.1f} % to {100 * max(counted):.1f} % of {len(counted)} kinds"
    rows += [("least and most of a kind", ends), ("texts fitted on", f"{found.fitted:,}")]
    return Measured(float(np.mean(counted)), tuple(rows), (_NOTE,))


_NOTE = (
    "Shares held at the budgets of what reaches its writer alone (own), what an agent writes (relied; the figure) and "
    "what is shared. By the wording rule alone: other rules hold some of the rest. Every text is read in short "
    "windows, which the product does only where a longer one shows anything: by that 3 in 1,000 hostile texts of 63 to "
    "254 tokens more land at a budget of .05 (docs/decisions/0034). Veiled are hostile texts that state "
    "false settings, redirect, or ask kindly."
)
