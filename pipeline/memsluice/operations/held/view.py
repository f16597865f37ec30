"""The review view: everything about a held write, with what triggered marked, and nothing that acts on a terminal.

Pure: lines of labelled pieces of plain text. Every piece went through :func:`memsluice.escaping.visible`, which
spells out control, zero-width and bidi characters; what a producer chose stands last on its line, so that letters
written from right to left reorder nothing else.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from memsluice.envelope.verdict import Decision, Verdict
from memsluice.escaping import visible
from memsluice.events.limits import REASON_CHARS_MAX
from memsluice.gate.checks import instructions, overrides
from memsluice.gate.checks.spelled import spelled
from memsluice.operations.held.collect import HeldReview
from memsluice.operations.held.entries import CommandOutcome, HeldState, Ruled
from memsluice.operations.held.evidence import evidence
from memsluice.operations.verdict_words import found_words, lapsed_words
from memsluice.recall.show import duration

CONTEXT_CHARS = 40
NAME_CHARS_MAX = 160
CONTENT_CHARS_MAX = 32_768
PARENTS_SHOWN_MAX = 16
PLACE = ("namespace", "visibility", "key", "origin")
_BETWEEN = r"[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]*"
"""What may stand unseen between the letters of a pattern."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text, and whether it triggered."""

    text: str
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One line: a label and its pieces."""

    label: str
    pieces: tuple[Piece, ...]


def name(text: object, chars_max: int = NAME_CHARS_MAX) -> str:
    """Return a name that somebody else chose, fit for a terminal."""
    return visible(str(text), chars_max)


def marked(content: str) -> tuple[Piece, ...]:
    """Return a content in pieces; marked are the places where an instruction pattern stands in it literally."""
    text = content[:CONTENT_CHARS_MAX]
    pieces, at = [], 0
    for start, end in marks(text):
        pieces += [Piece(_shown(text[at:start])), Piece(_shown(text[start:end]), marked=True)]
        at = end
    rest = len(content) - len(text)
    pieces.append(Piece(_shown(text[at:]) + (f" … ({rest} more characters)" if rest else "")))
    return tuple(piece for piece in pieces if piece.text)


def marks(text: str) -> list[tuple[int, int]]:
    """Return where instruction patterns stand in a text literally: (first, end), in order, none within another.

    What only normalisation brings to light (full-width letters, tag characters) is in :func:`triggers` alone.
    """
    spans: list[tuple[int, int]] = []
    read = spelled(text)
    for match in instructions.find(read):
        if not match.hidden:
            letters = [r"\s+" if c == " " else re.escape(c) for c in read.seen[match.start : match.end].strip()]
            found = re.search(_BETWEEN.join(letters), text, re.IGNORECASE)
            spans += [found.span()] if found is not None else []
    apart, at = [], 0
    for start, end in sorted(spans):
        if start >= at:
            apart.append((start, end))
            at = end
    return apart


def _shown(text: str) -> str:
    return visible(text, CONTENT_CHARS_MAX)


def triggers(content: str) -> list[Line]:
    """Return each instruction pattern that occurs, and an order to set aside what one was told, and where it stands in
    the text as screening read it.

    ``decoded``: its codes and tag characters spell it.
    """
    read = spelled(content)
    lines = [
        _place(match.name, (read.hidden if match.hidden else None) or read.seen, match.start, match.end, match.hidden)
        for match in instructions.find(read)
    ]
    if (order := overrides.find(read)) is not None:
        lines.append(_place(f"order in {order.language}", order.text, order.first, order.end, order.hidden))
    return lines


def _place(name: str, text: str, first: int, end: int, hidden: bool) -> Line:
    before, after = text[max(0, first - CONTEXT_CHARS) : first], text[end : end + CONTEXT_CHARS]
    pieces = (Piece(_shown(before)), Piece(_shown(text[first:end]), marked=True), Piece(_shown(after)))
    where = "decoded" if hidden else "as read"
    return Line(f"{name} ({where})", tuple(piece for piece in pieces if piece.text))


def lines(seen: HeldReview, now_ms: int, words: Callable[[str], str]) -> list[Line]:
    """Return the whole review view of an entry that was read with its content."""
    entry, verdict = seen.entry, seen.entry.verdict
    write = entry.write
    assert write is not None
    assert verdict is not None
    shown = [
        _line("entry", f"{name(entry.event_id)}  tenant {name(entry.tenant)}"),
        _line("state", _state(seen, now_ms)),
        *(_line(one.outcome.value, _about(one, now_ms)) for one in seen.others),
        *desk(seen, now_ms),
        *why(seen, words),
        *_findings(verdict),
        *_score(verdict),
        _line("source", f"channel {verdict.channel}, tier {verdict.tier}, key {name(verdict.kid)}"),
        *(_line(part, name(getattr(verdict, part))) for part in ("agent", "principal", "session")),
        *(_line(part, name(getattr(write, part))) for part in PLACE if getattr(write, part) is not None),
        *_lineage(seen, verdict, write.parents),
        _line("digest", entry.digest),
        _line("policy", name(verdict.policy)),
        Line("content", marked(write.content)),
        *triggers(write.content),
    ]
    if seen.state is HeldState.REFUSED:
        shown.append(_line("note", "it was rejected: only a replay under a later policy can let it in"))
    elif seen.state is HeldState.PENDING and write.key is not None:
        shown.append(
            _line("note", "a release replaces what its key holds, and is refused while that was written later")
        )
    return shown


def _reasons(seen: HeldReview, words: Callable[[str], str]) -> list[Line]:
    """Return what it is held or refused for now, and what for at first where a replay found other reasons."""
    entry, now = seen.entry, seen.now
    label, before = (
        "refused for" if decision is Decision.REJECT else "held for" for decision in (now.decision, entry.held.decision)
    )
    told = [_line(label, f"{code}  {words(code)}") for code in now.reasons]
    if (now.decision, now.reasons) != (entry.held.decision, entry.reasons):
        told += [_line(f"first {before}", f"{code}  {words(code)}") for code in entry.reasons]
    return told


def _line(label: str, text: str) -> Line:
    return Line(label, (Piece(text),))


def _told(label: str, text: str, about: str) -> Line:
    return Line(label, (Piece(f"{text}  " if about else text), *([Piece(about, marked=True)] if about else [])))


def _state(seen: HeldReview, now_ms: int) -> str:
    age, kept = duration(now_ms - seen.entry.held_ms), "kept" if seen.entry.held.refused else "held"
    if seen.state is HeldState.LAPSED:
        return f"{lapsed_words(seen.until_ms)}, {kept} {age} ago"
    if seen.ruled is None:
        return f"{seen.state.value}, {kept} for {age}"
    by, at = name(seen.ruled.kid), duration(now_ms - seen.ruled.at_ms)
    return f"{seen.state.value} by {by} {at} ago (command {name(seen.ruled.command_id)}), {kept} {age} ago"


def why(seen: HeldReview, words: Callable[[str], str]) -> list[Line]:
    """Return what an entry that was read with its content is held or refused for, and the evidence of that."""
    entry = seen.entry
    assert entry.write is not None
    assert entry.verdict is not None
    return [*_reasons(seen, words), *(_told(*one) for one in evidence(entry.verdict, entry.write.content))]


def desk(seen: HeldReview, now_ms: int) -> list[Line]:
    """Return whom it is assigned to and who claims it, as the last note left that."""
    told = [("assigned", name(seen.assignee))] if seen.assignee else []
    if claimed := seen.claimed_by(now_ms):
        told.append(("claimed", f"for {duration(seen.claim_until_ms - now_ms)} more by {name(claimed)}"))
    return [_line(label, text) for label, text in told]


def _about(one: Ruled, now_ms: int) -> str:
    if one.outcome is CommandOutcome.NOTED:
        text = visible(one.note, REASON_CHARS_MAX) or "no text"
        return f"{duration(now_ms - one.at_ms)} ago by {name(one.kid)}: {text}"
    decided = "" if one.decision is None else f" ({one.decision.value})"
    why = f": {', '.join(one.reasons)}" if one.reasons else ""
    return f"by {one.action} {name(one.command_id)}{decided}{why}"


def _findings(verdict: Verdict) -> list[Line]:
    told = [finding for finding in verdict.findings if finding.code not in verdict.reasons]
    return [_line("also found", name(f"{finding.code}  {found_words(finding.detail)}".strip())) for finding in told]


def _score(verdict: Verdict) -> list[Line]:
    score = verdict.score
    if score is None or score.score is None:
        return []
    ranked = "no threshold" if score.p is None else f"what is usual, p {score.p:.4f}"
    against = ranked if score.threshold is None else f"threshold {score.threshold:.3f}"
    near = f"{score.score:.3f} against {against} (MEMSAD, {score.phase}, {score.mode})"
    told = f"cosine {score.s_max:.3f} to the nearest of {score.history_size} past recalls"
    asked = score.nearest
    return [
        _line("score", near),
        _line("nearest", told),
        *([_line("asked by", f"memsluice trace {name(asked)}")] if asked else []),
    ]


def _lineage(seen: HeldReview, verdict: Verdict, parents: tuple[str, ...]) -> list[Line]:
    taint = "tainted: no release overrides that" if seen.tainted else "not tainted"
    if verdict.taint != seen.tainted:
        taint += "; it was tainted when it was held" if verdict.taint else "; it was not when it was held"
    found = [_line("taint", taint), *(_line("cause", name(cause)) for cause in verdict.taint_causes)]
    found += [_line("parent", name(parent)) for parent in parents[:PARENTS_SHOWN_MAX]]
    rest = len(parents) - PARENTS_SHOWN_MAX
    return [*found, *([_line("parent", f"and {rest} more")] if rest > 0 else [])]
