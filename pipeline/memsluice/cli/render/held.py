"""What ``memsluice quarantine`` prints. Whatever a producer chose went through ``visible`` and is never markup."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from memsluice.envelope.verdict import Decision
from memsluice.escaping import visible
from memsluice.events.models import Action, Command
from memsluice.gate.reasons import words
from memsluice.operations.held.collect import HeldCounts, HeldReview, HeldStats
from memsluice.operations.held.entries import CommandOutcome, HeldState, Ruled
from memsluice.operations.held.view import Line, Piece, desk, lines, marked, name, why
from memsluice.operations.review.decide import Differences
from memsluice.operations.trace import equals
from memsluice.operations.trace.equals import EqualTexts
from memsluice.recall.show import duration

PREVIEW_SHOWN = 70
COUNTED_MAX = 12
INDENT = 2
STYLES = {
    HeldState.PENDING: "yellow",
    HeldState.REFUSED: "red",
    HeldState.RELEASED: "green",
    HeldState.REJECTED: "red",
    HeldState.LAPSED: "dim",
}


def entries(seen: list[HeldReview], now_ms: int) -> RenderableType:
    """Return the list: of each entry its id, state and age, then why it is held, then the beginning of its content."""
    shown: list[RenderableType] = []
    for one in seen:
        entry = one.entry
        now, age = one.now, duration(now_ms - entry.held_ms)
        score = "" if now.score is None else f"  score {now.score:.2f}"
        if now.evidence is not None:  # what decided, and not what is reported beside it
            score = f"  evidence {now.evidence:.2f}"
        told = f", {'refused' if entry.held.refused else 'held'} {age} ago"
        if one.state is HeldState.PENDING:
            told = f" for {age}"
        asked = "" if one.appeal is None else f", review asked for {duration(now_ms - one.appeal.at_ms)} ago"
        claimed = one.claimed_by(now_ms)
        whose = f", assigned to {name(one.assignee)}" if one.assignee else ""
        whose += f", claimed by {name(claimed)}" if claimed else ""
        shown.append(
            Text.assemble(
                (name(entry.event_id), "bold"),
                f"  {name(entry.tenant)}  {name(entry.held.channel)}  ",
                (one.state.value, STYLES[one.state]),
                told,
                (asked, "bold"),
                whose,
            )
        )
        shown.append(indented(f"{' '.join(now.reasons)}{score}"))
        cut = "…" if len(entry.preview) > PREVIEW_SHOWN else ""
        shown.append(indented(visible(entry.preview[:PREVIEW_SHOWN]) + cut, "dim"))
    return Group(*shown)


def indented(text: str, style: str = "") -> RenderableType:
    """Return a text that stays indented where it is wrapped: no content can look like a line of ours."""
    return Padding(Text(text, style=style, overflow="fold"), (0, 0, 0, INDENT), expand=False)


def review(seen: HeldReview, now_ms: int, same_text: EqualTexts) -> RenderableType:
    """Return the whole view of an entry, and why other writes of its text got other verdicts."""
    told = enumerate(equals.lines(same_text))
    others = [Line("same text" if number == 0 else "", (Piece(line),)) for number, line in told]
    return grid([*lines(seen, now_ms, words), *others])


def grid(told: list[Line]) -> RenderableType:
    """Return labels beside texts; a text that is wrapped stays in its column, so that none can look like a label."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for line in told:
        text = Text()
        for piece in line.pieces:
            # Brackets besides colour: what triggered is also seen in a file or by those who do not see colours.
            text.append(f"⟦{piece.text}⟧" if piece.marked else piece.text, style="bold red" if piece.marked else "")
        grid.add_row(line.label, text)
    return grid


def counts(told: HeldStats, now_ms: int) -> RenderableType:
    """Return the counts, the largest first: of what waits for a person, then of what is refused and kept."""
    shown = _counting()
    _add_counts(shown, {"state": told.states, **_by(told.pending)})
    _add_oldest(shown, "oldest", told.pending.oldest_ms, now_ms, "waits for")
    _add_counts(shown, {f"refused {title}": counter for title, counter in _by(told.refused).items()})
    _add_oldest(shown, "refused oldest", told.refused.oldest_ms, now_ms, "is kept for")
    return shown


def _by(told: HeldCounts) -> dict[str, Counter[str]]:
    return {"tenant": told.tenants, "reason": told.reasons, "channel": told.sources}


def counts_as_data(told: HeldStats) -> dict[str, Any]:
    """Return the counts as JSON values."""

    def plain(one: HeldCounts) -> dict[str, Any]:
        by = {name: dict(getattr(one, name)) for name in ("tenants", "reasons", "sources")}
        return {**by, "oldest_ms": one.oldest_ms}

    return {"states": dict(told.states), **plain(told.pending), "refused": plain(told.refused)}


def counted(counters: Mapping[str, Counter[str]], oldest_ms: int | None, now_ms: int, told: str) -> RenderableType:
    """Return counters by their names, the largest counts first, and the age of the oldest."""
    shown = _counting()
    _add_counts(shown, counters)
    _add_oldest(shown, "oldest", oldest_ms, now_ms, told)
    return shown


def _counting() -> Table:
    return Table(box=None, show_header=False, padding=(0, 2, 0, 0))


def _add_counts(shown: Table, counters: Mapping[str, Counter[str]]) -> None:
    for title, counter in counters.items():
        for what, count in counter.most_common(COUNTED_MAX):
            shown.add_row(Text(title, style="bold"), str(count), Text(name(what)))
        if len(counter) > COUNTED_MAX:
            shown.add_row(Text(title, style="bold"), "", f"and {len(counter) - COUNTED_MAX} more")


def _add_oldest(shown: Table, title: str, oldest_ms: int | None, now_ms: int, told: str) -> None:
    if oldest_ms is not None:
        age = duration(now_ms - oldest_ms)
        shown.add_row(Text(title, style="bold"), "", f"{told} {age}, by this machine's clock")


def recalibrated(ruled: Ruled, content: str, run_id: str) -> RenderableType:
    """Return why a replay lets a write in only because the calibration moved, and the whole content to be read."""
    told = "; ".join(f"{name(one['rule'])} {_moved(one['was'], one['now'])}".rstrip() for one in ruled.changes)
    why = f"would be let in only because the calibration moved: needs --accept-recalibrated {run_id}"
    return Group(
        indented(why, "yellow"),
        Padding(
            grid([Line("changed", (Piece(told),)), Line("content", marked(content))]), (0, 0, 0, INDENT), expand=False
        ),
    )


def _moved(was: Mapping[str, float], now: Mapping[str, float]) -> str:
    numbers = [f"{one} {_number(was.get(one))} → {_number(now.get(one))}" for one in dict.fromkeys((*was, *now))]
    return ", ".join(numbers) or "finds nothing now"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


def to_be_signed(seen: HeldReview, command: Command, signer: str, now_ms: int) -> RenderableType:
    """Return exactly what a signature will cover: the fields of the command, and the content that it is bound to, with
    what the write is held for beside it."""
    entry = seen.entry
    assert entry.write is not None
    fields = [
        ("signed by", signer),
        ("command", command.id),
        ("action", command.action.value),
        ("tenant", command.tenant),
        ("entry", command.target),
        ("state", seen.state.value),
        ("digest", command.digest or ""),
        ("expires", command.expires_at.isoformat(timespec="seconds")),
        *(("parameter", f"{key} {value}") for key, value in command.parameters.items()),
        *([("why", command.reason)] if command.reason else []),
        *([("carries", f"the sealed write, {len(command.held)} characters")] if command.held else []),
        *([("lands as", _landing(seen))] if command.action is Action.RELEASE else []),
    ]
    told = [Line(label, (Piece(visible(value)),)) for label, value in fields]
    return grid([*told, *desk(seen, now_ms), *why(seen, words), Line("content", marked(entry.write.content))])


def differing(differs: Differences, those: str) -> RenderableType:
    """Return what differs within several entries (``those``, in words), the most frequent values first."""
    shown = _counting()
    _add_counts(shown, differs.fields)
    chars, held_ms = differs.chars, differs.held_ms
    if chars[0] != chars[1]:
        shown.add_row(Text("length", style="bold"), "", f"{chars[0]} to {chars[1]} characters")
    if held_ms[0] != held_ms[1]:
        shown.add_row(Text("held", style="bold"), "", f"within {duration(held_ms[1] - held_ms[0])}")
    alike = not differs.fields and chars[0] == chars[1]
    told = "all of one kind" if alike else "what differs in them:"
    said = Text(f"{those}, {told}", style="bold")
    return Group(said, shown) if shown.row_count else said


def _landing(seen: HeldReview) -> str:
    """Return what the gate will make of a release, as far as the verdict tells."""
    held, write = seen.entry.held, seen.entry.write
    if seen.tainted:
        return "nothing: it is tainted, and stays held"
    trusted = held.tier.trusted
    labelled = held.taint or not trusted
    lifted = labelled and any(one.outcome is CommandOutcome.DECLASSIFIED for one in seen.others)
    zone = "guidance" if trusted or lifted else "outside content, as data"
    key = getattr(write, "key", None)
    return f"{zone}, tier {3 if lifted else held.tier}" + (
        "" if key is None else f"; replaces what stands under key {key}, if that is older"
    )


def answered(ruled: Ruled | None, command_id: str, wait_s: float) -> Text:
    """Return what the gate answered."""
    if ruled is None:
        return Text(
            f"no answer within {wait_s:g} s: the command is in the log and will be decided in its order. Look later "
            f"with: memsluice trace {command_id}",
            style="yellow",
        )
    if ruled.outcome is CommandOutcome.REFUSED:
        told = "; ".join(f"{code}: {words(code)}" for code in ruled.reasons)
        return Text(f"refused: {told}" + (f" ({ruled.between})" if ruled.between else ""), style="red")
    if ruled.outcome is CommandOutcome.REOPENED:
        return Text("reopened: it waits again", style="green")
    if ruled.outcome is CommandOutcome.NOTED:
        return Text("noted", style="green")
    if ruled.outcome is CommandOutcome.REJECTED:
        return Text(
            f"rejected; while it is kept, this takes it back: memsluice quarantine reopen {name(ruled.target)}", "green"
        )
    where = "external zone, as data" if ruled.decision is Decision.CONTAIN else "guidance"
    return Text(f"released: {ruled.decision}, object {ruled.object_id} ({where})", style="green")


def one_as_data(seen: HeldReview, now_ms: int, *, whole: bool) -> dict[str, Any]:
    """Return an entry as JSON values, with its content and verdict where ``whole``."""
    entry, now = seen.entry, seen.now
    value = {
        "tenant": entry.tenant,
        "event_id": entry.event_id,
        "offset": entry.offset,
        "state": seen.state.value,
        "held_ms": entry.held_ms,
        "pending_ms": now_ms - entry.held_ms if seen.state is HeldState.PENDING else None,
        "reasons": list(now.reasons),
        "score": now.score,
        "evidence": now.evidence,
        "channel": entry.held.channel,
        "digest": entry.digest,
        "preview": entry.preview,
        "decided": None if seen.ruled is None else _ruled(seen.ruled),
        "appealed_ms": None if seen.appeal is None else seen.appeal.at_ms,
        "others": [_ruled(one) for one in seen.others],
        "decided_on": seen.decided_on,
        "assignee": seen.assignee,
        "claimed_by": seen.claimed_by(now_ms),
        "notes": [{"by": one.kid, "at_ms": one.at_ms, "note": one.note} for one in seen.notes],
    }
    if whole and entry.write is not None and entry.verdict is not None:
        value |= {"write": entry.write.model_dump(mode="json"), "verdict": entry.verdict.to_json()}
    return value


def _ruled(ruled: Ruled) -> dict[str, Any]:
    return {
        "action": ruled.action,
        "command_id": ruled.command_id,
        "by": ruled.kid,
        "at_ms": ruled.at_ms,
        "outcome": ruled.outcome.value,
        "decision": ruled.decision,
        "reasons": list(ruled.reasons),
        "object_id": ruled.object_id,
    }
