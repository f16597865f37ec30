"""Why the default detector holds a write, in words: which signals, how rare, which past question, which of its words.

A verdict names and counts, it holds no content; the words are found again in the held write. Pure.
"""

from collections.abc import Mapping
from typing import Any

from memsluice.envelope.verdict import Usual, Verdict
from memsluice.escaping import visible

HELD = "detect.held"
NAME_CHARS_MAX = 160
UNIT_CHARS_MAX = 240
SHARE_TOLD_MIN = 0.0001
SIGNALS = {
    "wording": "worded like an instruction or an injection, compared with this tenant's writes",
    "question": "contains a question, which this tenant's writes rarely do",
    "coverage": "repeats a question of an earlier recall",
    "nearness": "is closer to a question of an earlier recall than this tenant's writes are",
    "repetition": "repeats its own words",
}
Told = tuple[str, str, str]
"""A label, what is said, and the words of the content that it is said of ("" for none)."""


def evidence(verdict: Verdict, content: str) -> list[Told]:
    """Return why the default detector holds a write; nothing where it does not."""
    found = next((one.detail for one in verdict.findings if one.code == HELD), None)
    if found is None:
        return []
    told: list[Told] = [("evidence", f"{found['score']:.3f}, held from {found['threshold']:g} on", "")]
    for name, value in found["parts"].items():
        about = _worst(found, content) if name == "wording" else ""
        told.append((_name(name), f"{value:.3f}  {SIGNALS.get(name, '')}", about))
    told.append(("rarity", _rarity(found, verdict.usual), ""))
    return [*told, *_questions(found, content)]


def _name(text: object) -> str:
    return visible(str(text), NAME_CHARS_MAX)


def _rarity(found: Mapping[str, Any], usual: Usual | None) -> str:
    over = f" {usual.size}" if usual else ""
    if "p" not in found:
        return f"above {found['usual_max']:.3f}, the highest of its{over} landed writes ({found['phase']})"
    level = f", held below {usual.level:.2%}" if usual and usual.level is not None else ""
    share = f"{found['p']:.2%}" if found["p"] >= SHARE_TOLD_MIN else "less than 0.01%"
    return f"{share} of its writes are expected to have as much{level} ({found['phase']},{over} landed writes)"


def _questions(found: Mapping[str, Any], content: str) -> list[Told]:
    """Return the past question that it comes nearest to, and the one whose words it has."""
    told: list[Told] = []
    if near := found.get("nearest"):
        told.append(("nearest", f"cosine {near['cosine']:.3f} to what {_name(near['recall'])} asked", ""))
    covered = found.get("covered_by") if "coverage" in found["parts"] else None
    if covered:
        from memsluice.gate.detectors.wording.text import words

        run = words(content)[covered["first_word"] : covered["first_word"] + covered["words"]]
        said = f"{covered['words']} words in a row, {covered['share']:.0%} of what {_name(covered['recall'])} asked:"
        told.append(("shared", said, visible(" ".join(run), UNIT_CHARS_MAX)))
    asked = {one["recall"]: None for one in (near, covered) if one}
    return [*told, *(("asked by", f"memsluice trace {_name(recall)}", "") for recall in asked)]


def _worst(found: Mapping[str, Any], content: str) -> str:
    """Return the sentence or line that the classifier judged worst; "" where another model judged it."""
    from memsluice.gate.detectors.wording.shipped import shipped
    from memsluice.gate.detectors.wording.text import units

    model = shipped()
    if found.get("model") != model.digest:
        return ""
    return visible(units(content)[model.judge(content)[1]], UNIT_CHARS_MAX)
