"""Why the wording rule or the default detector holds a write, in words: signals, rarity, past question, the words.

A verdict names and counts, it holds no content; the words are found again in the held write. Pure.
"""

from collections.abc import Mapping
from typing import Any

from memsluice.envelope.verdict import Usual, Verdict
from memsluice.escaping import visible
from memsluice.operations.verdict_words import WORDED, WORDING, name_of, share_of, worded, wording_of

HELD = "detect.held"
UNIT_CHARS_MAX = 240
SIGNALS = {
    "wording": "worded like an instruction or an injection, compared with this tenant's writes",
    "question": "answers a question of an earlier recall and contains it, which this tenant's writes rarely do",
    "coverage": "repeats a question of an earlier recall",
    "nearness": "is closer to a question of an earlier recall than this tenant's writes are",
    "repetition": "repeats its own words",
    "anomaly": "lies above MEMSAD's calibrated threshold",
}
Told = tuple[str, str, str]
"""A label, what is said, and the words of the content that it is said of ("" for none)."""


def evidence(verdict: Verdict, content: str) -> list[Told]:
    """Return why the wording rule or the default detector holds a write; nothing where neither does."""
    findings = {one.code: one.detail for one in verdict.findings}
    told: list[Told] = []
    said = wording_of(verdict)
    if said is not None and said.code == WORDED:
        first, end = said.detail["unit"]
        told.append((WORDING, worded(said), visible(content[first:end], UNIT_CHARS_MAX)))
    found = findings.get(HELD)
    if found is None:
        return told
    told.append(("evidence", f"{found['score']:.3f}, held from {found['threshold']:g} on", ""))
    told += [(name_of(name), f"{value:.3f}  {SIGNALS.get(name, '')}", "") for name, value in found["parts"].items()]
    told.append(("rarity", _rarity(found, verdict.usual), ""))
    return [*told, *_questions(found, content)]


def _rarity(found: Mapping[str, Any], usual: Usual | None) -> str:
    over = f" {usual.size}" if usual else ""
    if "p" not in found:
        return f"above {found['usual_max']:.3f}, the highest of its{over} landed writes ({found['phase']})"
    level = f", held below {usual.level:.2%}" if usual and usual.level is not None else ""
    phase = f"{found['phase']},{over} landed writes"
    return f"{share_of(found['p'])} of its writes are expected to have as much{level} ({phase})"


def _questions(found: Mapping[str, Any], content: str) -> list[Told]:
    """Return the past question that it comes nearest to, and the one whose words it has."""
    told: list[Told] = []
    if near := found.get("nearest"):
        told.append(("nearest", f"cosine {near['cosine']:.3f} to what {name_of(near['recall'])} asked", ""))
    covered = found.get("covered_by") if "coverage" in found["parts"] else None
    if covered:
        from memsluice.gate.detectors.wording.text import words

        run = words(content)[covered["first_word"] : covered["first_word"] + covered["words"]]
        said = f"{covered['words']} words in a row, {covered['share']:.0%} of what {name_of(covered['recall'])} asked:"
        told.append(("shared", said, visible(" ".join(run), UNIT_CHARS_MAX)))
    asked = {one["recall"]: None for one in (near, covered) if one}
    return [*told, *(("asked by", f"memsluice trace {name_of(recall)}", "") for recall in asked)]
