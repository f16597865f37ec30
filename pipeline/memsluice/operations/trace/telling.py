"""The life of an event in rows of plain text, for a terminal and for the console. Pure.

Whatever a producer chose (names, ids, sessions) is written by :func:`~memsluice.escaping.visible`, stands last on
its row, and is never markup: it can neither act on a terminal nor change how the row around it is read.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from memsluice.envelope.verdict import Decision, Score, Usual, Verdict
from memsluice.escaping import visible
from memsluice.events.models import Tier
from memsluice.events.names import EventType
from memsluice.operations.trace import equals
from memsluice.operations.trace.equals import EqualTexts
from memsluice.operations.trace.life import Attempt, EntryStanding, Life, RecordRole
from memsluice.operations.trace.scale import scale
from memsluice.operations.verdict_words import NOTED, found_words, lapsed_words, note_words, without_texts
from memsluice.recall.show import TIER_WORDS, duration, moment
from memsluice.topics.names import ACCEPTED, AUDIT, OVERFLOW, QUARANTINE, SEALED

NAME_CHARS_MAX = 160
DETAIL_CHARS_MAX = 240
FOUND_CHARS_MAX = 480
LINEAGE_INDENT = 2
Words = Callable[[str], str]
"""What a reason code means."""
Ancestors = Mapping[tuple[str, str], Life]
"""Lives by tenant and event id."""


@dataclass(frozen=True, slots=True)
class Span:
    """Some text that nothing can act with, and how it stands out: "", or a style as terminals name it (``dim``)."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its label ("": it goes on with the one above), what it says, and how many characters it is indented."""

    label: str
    spans: tuple[Span, ...]
    indent: int = 0

    @property
    def text(self) -> str:
        """What it says, without styles."""
        return "".join(span.text for span in self.spans)


WHAT = {
    EventType.WRITE: "write",
    EventType.RECALL: "recall",
    EventType.OBSERVATION: "observation",
    EventType.COMMAND: "command",
}
STANDING_STYLES = {
    EntryStanding.GUIDANCE: "green",
    EntryStanding.EXTERNAL: "yellow",
    EntryStanding.HELD: "yellow",
    EntryStanding.REFUSED: "red",
    EntryStanding.REPLACED: "dim",
    EntryStanding.WITHDRAWN: "red",
    EntryStanding.EXPIRED: "dim",
    EntryStanding.LAPSED: "dim",
    EntryStanding.RECORDED: "green",
}
KIND_WORDS = {
    RecordRole.DECIDED: "decided",
    RecordRole.AGAIN: "decided again",
    RecordRole.REPLAYED: "the same event again, changes nothing",
    RecordRole.OTHER_CONTENT: "another event under the same id",
    RecordRole.ORDER: "a command about it",
    RecordRole.LOOK_BACK: "withdrawn by look back",
    RecordRole.USED: "renewed by use",
}
CAUSE_WORDS = {
    "parent": "declared parent, tainted itself:",
    "unknown": "declared parent that is no known entry:",
    "not_landed": "declared parent that never landed:",
    "recalled": "its session recalled this entry:",
    "revoked": "revoked by command:",
    "unverified": "its session published an event that was refused:",
    "web": "its session observed a web page:",
    "tool": "its session observed a tool's answer:",
    "skill": "its session observed a skill's text:",
    "upload": "its session observed an upload:",
}


def title(life: Life) -> tuple[Span, ...]:
    """Return what the event is, and its id."""
    kind = life.governing.verdict.type
    what = WHAT[EventType(kind)] if kind in set(EventType) else visible(kind, NAME_CHARS_MAX)
    return Span(f"{what} ", "bold"), Span(visible(life.event_id, NAME_CHARS_MAX), "bold cyan")


def rows(
    life: Life, now_ms: int, words: Words, ancestors: Ancestors, same_text: EqualTexts | None = None,
    hidden: Collection[str] = (),
) -> Iterator[Row]:  # fmt: skip
    """Yield the whole life: where it is, why, who, when, the way it took, what the numbers were, every attempt.

    ``ancestors`` are the lives of what tainted it, as far as they were found; ``same_text`` are other writes of it.
    Fields of findings that are ``hidden`` are not told: texts that people wrote out, to who may not read them.
    """
    one = life.governing
    verdict = one.verdict
    yield Row("now", (Span(_standing_words(life, now_ms), STANDING_STYLES[life.standing(now_ms)]),))
    reasons = [("because", code) for code in life.because]
    reasons += [("at first", code) for code in verdict.reasons if life.placing is not one]
    for label, code in reasons:
        yield _row(label, code if words(code) == code else f"{code}: {words(code)}")
    if verdict.action:
        yield _row("action", f"{verdict.action} {verdict.target}")
    yield _row("tenant", life.tenant)
    for name, value in (("principal", verdict.principal), ("agent", verdict.agent), ("session", verdict.session)):
        if value:
            yield _row(name, value)
    yield from _signed(verdict)
    yield from _when(one)
    yield from _way(life, one, now_ms)
    yield from _checks(verdict, words, hidden)
    yield from _usual(verdict.usual)
    yield from _score(verdict.score)
    yield from _taint(life, verdict, ancestors)
    yield _row("policy", f"{verdict.policy}, {verdict.mode}")
    if verdict.model:
        yield _row("model", verdict.model)
    yield from _attempts(life, hidden)
    for number, line in enumerate(equals.lines(same_text) if same_text is not None else ()):
        indent = len(line) - len(line.lstrip())
        yield Row("same text" if number == 0 else "", (Span(line.lstrip()),), indent)


def _row(label: str, value: object, chars_max: int = NAME_CHARS_MAX) -> Row:
    return Row(label, (Span(visible(str(value), chars_max)),))


def _tier(number: int) -> str:
    return f"{number} {TIER_WORDS[Tier(number)]}" if number in set(Tier) else str(number)


def _standing_words(life: Life, now_ms: int) -> str:
    verdict = life.placing.verdict
    expires_ms = verdict.expires_ms
    ordered = ""
    if life.placing.kind is RecordRole.ORDER:
        ordered = f", by command {visible(verdict.event_id, NAME_CHARS_MAX)}"
    elif life.placing.kind is RecordRole.USED:
        ordered = f", by the recall {visible(verdict.event_id, NAME_CHARS_MAX)}"
    match life.standing(now_ms):
        case EntryStanding.REPLACED:
            assert life.replaced is not None
            later = visible(life.replaced.event_id, NAME_CHARS_MAX)
            return f"replaced at {moment(life.replaced.decided_ms)} by the later write {later}"
        case EntryStanding.EXPIRED:
            assert expires_ms is not None
            return f"expired at {moment(expires_ms)}, was in {verdict.zone}"
        case EntryStanding.WITHDRAWN:
            return f"withdrawn from memory at {moment(verdict.decided_ms)}{ordered}{_by_look_back(life)}"
        case EntryStanding.HELD:
            return f"held for review, in {QUARANTINE}"
        case EntryStanding.LAPSED:
            return lapsed_words(life.placed.held_until_ms)
        case EntryStanding.REFUSED:
            kept = life.placed
            if kept.replayable(now_ms) and kept.held_until_ms is not None:
                left = duration(kept.held_until_ms - now_ms)
                return f"refused; kept in {QUARANTINE} for {left} more, for a replay under a later policy{ordered}"
            return f"refused for good{ordered}"
        case EntryStanding.RECORDED:
            return "recorded; this kind of event leaves no entry"
        case zone:
            left = "does not expire" if expires_ms is None else f"expires in {duration(expires_ms - now_ms)}"
            shadow = f", though {verdict.decision} was decided: shadow mode" if life.landed_anyway() else ""
            what = "what agents may follow" if zone is EntryStanding.GUIDANCE else "kept as data, never as guidance"
            return f"admitted to {zone.value} ({what}), seen by {verdict.visibility}, {left}{ordered}{shadow}"


def _by_look_back(life: Life) -> str:
    """Say which recall took an entry out, and how one gets it back; "" where none did."""
    if life.placing.kind is not RecordRole.LOOK_BACK:
        return ""
    asked, name = (visible(str(one), NAME_CHARS_MAX) for one in (life.placing.verdict.event_id, life.event_id))
    return f" by look back (recall {asked}); to return it: memsluice quarantine release --withdrawn {name}"


def _signed(verdict: Verdict) -> Iterator[Row]:
    yield _row("signed by", verdict.kid)
    speaks = f"a {verdict.role} on channel {verdict.channel}, tier {_tier(verdict.credential_tier)} at best"
    yield _row("", speaks)
    for kid in verdict.approvers:
        yield _row("approved by", kid)
    yield _row("tier", f"{_tier(verdict.tier)} (used in the decision)")


def _when(one: Attempt) -> Iterator[Row]:
    occurred, append = one.verdict.occurred_ms, one.verdict.append_ms
    if occurred and append:
        yield _row("occurred", f"{moment(occurred)}, as its producer says")
        yield _row("appended", f"{moment(append)} {_later(append - occurred)}, by the broker's clock")
    yield _row("decided", f"{moment(one.verdict.decided_ms)}, screen's clock: the latest append time it had seen")
    yield _row("audited", moment(one.audit_ms))


def _later(milliseconds: int) -> str:
    sign = "-" if milliseconds < 0 else "+"
    return f"({sign}{abs(milliseconds)} ms)" if abs(milliseconds) < 10_000 else f"({sign}{duration(abs(milliseconds))})"


def _way(life: Life, one: Attempt, now_ms: int) -> Iterator[Row]:
    """The way through the stages, each with the place of its record and the key that sealed it."""
    verdict = one.verdict
    topic, partition, offset = one.intake
    yield _row("intake", f"{topic}[{partition}] at offset {offset}")
    if verdict.waited:
        waited = duration(max(0, one.audit_ms - verdict.append_ms))
        said = f"in {OVERFLOW}, its tenant being over its quota: {waited} from its append to its verdict"
        yield _row("waited", said)
    yield _row("seal", f"authenticated and sealed as {SEALED}[{partition}] at offset {verdict.sealed_offset}")
    chain = f"number {verdict.chain_seq} of its tenant's chain, sealed by {verdict.seal_kid}"
    place = f"{AUDIT}[{one.audit_partition}] at offset {one.audit_offset}"
    yield _row("screen", f"decided {verdict.decision}: {place}, {chain}", DETAIL_CHARS_MAX)
    placed = life.placing.verdict
    if life.placed.object_id is not None:
        what = f"version {placed.sealed_offset} of object {placed.object_id}"
        yield _row("land", f"published to {ACCEPTED}[{partition}] as {what}")
        yield _row("", f"admission signed by {placed.admission_kid}; that it landed is not on the audit topic")
    elif life.standing(now_ms) is EntryStanding.LAPSED:
        yield _row("land", f"nothing; was kept in {QUARANTINE}[{partition}] until it lapsed")
    elif verdict.decision == Decision.QUARANTINE:
        yield _row("land", f"nothing; kept in {QUARANTINE}[{partition}] for a reviewer")
    elif verdict.decision == Decision.REJECT and verdict.held_until_ms is not None:
        yield _row("land", f"nothing; kept in {QUARANTINE}[{partition}] for a replay under a later policy")
    else:
        yield _row("land", "nothing to land")


def _checks(verdict: Verdict, words: Words, hidden: Collection[str]) -> Iterator[Row]:
    if not verdict.findings:
        yield _row("checks", "nothing was found")
    for number, found in enumerate(verdict.findings):
        detail = found_words(without_texts(found.detail, hidden))
        spans = [Span(visible(f"{found.code} requires {found.decision}", NAME_CHARS_MAX))]
        if words(found.code) != found.code:
            spans.append(Span(f": {words(found.code)}", "dim"))
        if detail:
            spans.append(Span(f" ({visible(detail, FOUND_CHARS_MAX)})", "dim"))
        yield Row("checks" if number == 0 else "", tuple(spans))


def _score(score: Score | None) -> Iterator[Row]:
    if score is None:
        return
    phase = score.phase
    if score.score is None:
        yield _row("score", f"none, {phase} window: no recall was made before it")
        return
    if score.threshold is None:
        yield _row("score", f"{score.score:.4f}{_ranked(score)} ({score.mode} score, {phase} window)")
        yield from _window(score)
        return
    value, limit = score.score, score.threshold
    side = "above" if value > limit else "not above"
    yield _row("score", f"{value:.4f}, {side} the threshold {limit:.4f} ({score.mode} score, {phase} window)")
    drawn = scale(value, limit, score.mu, score.sigma)
    yield Row("", (Span(f"{drawn.low:6.3f} {drawn.cells} {drawn.high:.3f}"),))
    if score.mu is None:
        yield _row("", "● score  │ threshold, from the policy: the window is not full yet")
    else:
        of = f"μ {score.mu:.4f}  σ {score.sigma:.4f}  κ {score.kappa:g}"
        yield _row("", f"● score  │ threshold μ + κ σ  [ ] μ ± σ;  {of}")
    yield from _window(score)
    yield from _guarantee(score)


def _ranked(score: Score) -> str:
    """Say how rare a score is that is judged by ranks and has no threshold; "" of one that is not."""
    return "" if score.p is None else f", p {_small(score.p)}: the share of usual writes that score as high"


def _small(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else "below 0.0001"


def _window(score: Score) -> Iterator[Row]:
    of = f"{score.window_size} reference entries against the last {score.history_size} questions"
    yield _row("window", f"number {score.window_id}: {of}, calibration {score.strategy}")


def _guarantee(score: Score) -> Iterator[Row]:
    """What the threshold and the decision guarantee."""
    if score.bound is not None:
        within = f"the threshold is within {score.bound:.4f} of the population's, with the policy's confidence"
        yield _row("guarantee", within)
    if score.radius is not None:
        side = "above" if score.certified else "not above"
        said = f"gap to the reference {score.gap:.4f}, {side} the certified radius {score.radius:.4f}"
        yield _row("", f"{said}; reported only, nothing is decided by it")
    if score.score is not None and score.threshold is not None:
        far = abs(score.score - score.threshold)
        yield _row("", f"a rewording that moves the embedding by less than {far:.4f} is decided alike")


def _usual(told: Usual | None) -> Iterator[Row]:
    """How the default detector's evidence compares with what is usual for the tenant."""
    if not told:
        return
    line = f"threshold {told.threshold:.4f}" if told.p is None else f"p {_small(told.p)}, level {told.level:g}"
    of = f"{told.phase}, {told.strategy} over {told.size} landed writes"
    yield _row("usual", f"evidence {told.score:.4f}, {line} ({of})")


def _taint(life: Life, verdict: Verdict, ancestors: Ancestors) -> Iterator[Row]:
    if not verdict.taint:
        untold = "not of the event itself; see its session's writes"
        yield _row("taint", "none" if verdict.type == EventType.WRITE else untold)
    for number, row in enumerate(_lineage(life, ancestors, set())):
        yield replace(row, label="taint" if number == 0 else "")


def _lineage(life: Life, ancestors: Ancestors, told: set[str]) -> Iterator[Row]:
    """What tainted an entry, and indented below each, where the audit has it, what that was and what tainted that."""
    for cause in life.governing.verdict.taint_causes:
        kind, _, name = cause.partition(":")
        if cause == "session:unopened":
            yield Row("", (Span("no runtime credential opened its session: what it observed is unknown"),))
            continue
        if kind not in CAUSE_WORDS:
            yield _row("", cause)
        else:
            yield Row("", (Span(f"{CAUSE_WORDS[kind]} "), Span(visible(name, NAME_CHARS_MAX), "cyan")))
        ancestor = ancestors.get((life.tenant, name))
        if ancestor is not None and name not in told:  # told once, however many ways lead to it
            told.add(name)
            yield Row("", (_ancestor(ancestor.governing.verdict),), LINEAGE_INDENT)
            for row in _lineage(ancestor, ancestors, told):
                yield replace(row, indent=row.indent + LINEAGE_INDENT)


def _ancestor(verdict: Verdict) -> Span:
    what = WHAT[EventType(verdict.type)] if verdict.type in set(EventType) else "event"
    said = f"that {what} was decided {verdict.decision} at {moment(verdict.decided_ms)}"
    tier = f", tier {_tier(verdict.tier)}" if verdict.type == EventType.WRITE else ""
    return Span(visible(f"{said}{tier}, signed by {verdict.kid}", DETAIL_CHARS_MAX), "dim")


def _attempts(life: Life, hidden: Collection[str]) -> Iterator[Row]:
    """Everything that was said under this id or about it, where it is more than one record, said once."""
    if len(life.attempts) == 1 and not life.attempts[0].redelivered and not life.attempts[0].contradictions:
        return
    for number, one in enumerate(life.attempts, 1):
        topic, partition, offset = one.intake
        line = f"{moment(one.verdict.decided_ms)}, {topic}[{partition}] at offset {offset}: "
        spans = [Span(line + visible(_said(one, life.event_id, hidden), DETAIL_CHARS_MAX))]
        if one.redelivered:
            spans.append(Span(f"; delivered {one.redelivered + 1} times, the same bytes"))
        if one.contradictions:
            spans.append(Span(f"; {one.contradictions} OTHER VERDICTS for the same offset", "bold red"))
        yield Row(f"record {number}", tuple(spans))
    left_out = sum(life.counts.values()) - len(life.attempts)
    if left_out:
        yield Row("", (Span(f"and {left_out} more"),))


def _said(one: Attempt, event_id: str, hidden: Collection[str]) -> str:
    reasons = ", ".join((one.verdict.decision, *one.verdict.reasons))
    if one.kind is RecordRole.LOOK_BACK:
        return f"{KIND_WORDS[one.kind]}: recall {one.verdict.event_id}; {_evidence(one, event_id)}"
    if one.kind is RecordRole.USED:
        return f"{KIND_WORDS[one.kind]}: recall {one.verdict.event_id}, of {one.verdict.principal}"
    if one.kind is not RecordRole.ORDER:
        return f"{KIND_WORDS[one.kind]}; {reasons}"
    keys = ", ".join(one.verdict.approvers) or one.verdict.kid
    line = f"{KIND_WORDS[one.kind]}, {one.verdict.action} ({one.verdict.event_id}), by {keys}; {reasons}"
    noted = next((finding.detail for finding in one.verdict.findings if finding.code == NOTED), None)
    return line if noted is None else f"{line}; {note_words(without_texts(noted, hidden))}"


def _evidence(one: Attempt, event_id: str) -> str:
    """Return the numbers by which look back judged an entry."""
    found = (finding.detail.get("entries", ()) for finding in one.verdict.findings)
    told: dict[str, Any] = next((entry for entries in found for entry in entries if entry["event"] == event_id), {})
    return found_words(told, without="event")
