"""What ``memsluice dead-letters`` prints. Whatever a sender chose went through ``visible`` and is never markup."""

import base64
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from memsluice.cli.render.held import counted, grid, indented
from memsluice.escaping import visible
from memsluice.events.models import Command
from memsluice.gate.reasons import words
from memsluice.operations.dead_letters.collect import LetterListing, LetterStats
from memsluice.operations.dead_letters.letters import LetterReview, LetterState
from memsluice.operations.dead_letters.view import as_text, claims, lines, state
from memsluice.operations.held.entries import CommandOutcome, Ruled
from memsluice.operations.held.view import Line, Piece, name

PREVIEW_SHOWN = 70
STYLES = {LetterState.OPEN: "yellow", LetterState.DECIDED: "green", LetterState.DISMISSED: "dim"}


def entries(seen: list[LetterReview], now_ms: int) -> RenderableType:
    """Return the list: of each letter its name, reason and state, what it claims, and how its value begins."""
    shown: list[RenderableType] = []
    for one in seen:
        why = one.letter.why
        told = (f"  {name(why.reason)}  ", (state(one, now_ms), STYLES[one.state]))
        shown.append(Text.assemble((one.letter.letter_id, "bold"), *told))
        shown.append(indented(claims(one)))
        shown.append(indented(as_text(one.letter.preview, PREVIEW_SHOWN), "dim"))
    return Group(*shown)


def review(seen: LetterReview, now_ms: int) -> RenderableType:
    """Return the whole view of a letter."""
    return grid(lines(seen, now_ms, words))


def counts(told: LetterStats, now_ms: int) -> RenderableType:
    """Return the counts, the largest first."""
    counters = {
        "state": told.states, "reason": told.reasons, "from": told.topics, "partition": told.partitions,
        "claims": told.claimed_tenants,
    }  # fmt: skip
    return counted(counters, told.oldest_ms, now_ms, "is open for")


def to_be_signed(letters: list[LetterReview], commands: list[Command], signer: str) -> RenderableType:
    """Return what the signatures will cover."""
    first = commands[0]
    fields = [("signed by", signer), ("action", first.action.value), ("why", first.reason)]
    fields += [("letter", f"{one.letter.letter_id}, digest {one.letter.digest}") for one in letters]
    return grid([Line(label, (Piece(visible(value)),)) for label, value in fields])


def answered(letter_id: str, ruled: Ruled | None, known: bool, wait_s: float) -> Text:
    """Return what the gate answered about one letter."""
    if not known:
        return Text(f"{letter_id}: no answer within {wait_s:g} s: it is decided when its turn comes", style="yellow")
    if ruled is not None and ruled.outcome is not CommandOutcome.DISMISSED:
        why = "; ".join(f"{code}: {words(code)}" for code in ruled.reasons)
        return Text(f"{letter_id}: refused: {why}", style="red")
    return Text(f"{letter_id}: dismissed", style="green")


def one_as_data(seen: LetterReview, *, whole: bool) -> dict[str, Any]:
    """Return a letter as JSON values; ``whole`` with key, value and headers in base64. What is claimed says so."""
    letter, why, told = seen.letter, seen.letter.why, seen.letter.claims
    value: dict[str, Any] = {
        "letter": letter.letter_id,
        "state": seen.state.value,
        "reason": why.reason,
        "field": why.field,
        "detail": why.detail,
        "topic": why.topic,
        "partition": why.partition,
        "offset": why.offset,
        "append_ms": why.append_ms,
        "value_bytes": why.value_bytes,
        "digest": letter.digest,
        "attempts": seen.attempts,
        "claimed": {"tenant": told.tenant, "type": told.type, "event_id": told.event_id, "kid": told.kid},
        "dismissed": None if seen.dismissed is None else {
            "by": seen.dismissed.kid, "at_ms": seen.dismissed.at_ms, "why": seen.dismissed.note,
        },
        "decided": None if seen.decided is None else {
            "decision": seen.decided.decision, "reasons": list(seen.decided.reasons), "at_ms": seen.decided.at_ms,
            "place": list(seen.decided.place),
        },
    }  # fmt: skip
    if whole and letter.original is not None:
        key, data, headers = letter.original
        value |= {"key": _base64(key), "value": _base64(data), "headers": [[n, _base64(d)] for n, d in headers]}
    return value


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def as_data(found: LetterListing, limit: int) -> dict[str, Any]:
    """Return a listing as JSON values."""
    return {
        "letters": [one_as_data(seen, whole=False) for seen in found.seen[:limit]],
        "found": len(found.seen),
        "read": found.read,
        "damaged": found.damaged,
        "left_out": found.left_out,
    }
