"""Why two equal texts got two verdicts: other writes of a tenant with the same content digest, and what differed.

Pure but for :func:`look`. A verdict has a digest of its write's content and no content, so equal means the same to the
letter. What a verdict does not record (namespace, key, kind, the words of what was asked) is not compared.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from memsluice.envelope import dsse
from memsluice.envelope.keys import Keyring
from memsluice.envelope.verdict import SEVERITY, Decision, Finding, Score, Usual, Verdict, rule_of
from memsluice.errors import InputError
from memsluice.escaping import visible
from memsluice.events.names import EventType
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.operations.trace.verdicts import read
from memsluice.operations.verdict_words import WORDING, worded, wording_of
from memsluice.readers.base import TopicReader
from memsluice.recall.show import TIER_WORDS, moment

EQUALS_MAX = 20
"""Equal texts with another decision that are compared: the latest. A text decided alike hides none of them."""
TOLD_MAX = 3
"""Other verdicts that are told on a terminal, the latest first; JSON has all that were compared."""
FINDINGS_MAX = 16
"""Findings that only one of two verdicts has, and are named."""
NAME_CHARS_MAX, LINE_CHARS_MAX = 160, 240
NOTHING = "nothing recorded"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs between two verdicts, in words that a producer may have chosen. "": it has no such."""

    what: str
    here: str
    there: str

    def as_data(self) -> dict[str, str]:
        """Return it as JSON values."""
        return {"what": self.what, "here": self.here, "there": self.there}


@dataclass(frozen=True, slots=True)
class EqualTexts:
    """The verdict that was asked about, other verdicts on its text, the latest first, and how many texts are equal.

    ``others`` are the latest EQUALS_MAX of another decision; ``equal`` counts all other writes of the text,
    ``otherwise`` those of them that were decided otherwise. ``unverified`` records hold the digest, but their seal does
    not.
    """

    this: Verdict
    others: tuple[Verdict, ...]
    otherwise: int
    equal: int
    unverified: int = 0

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "equal": self.equal,
            "decided_otherwise": self.otherwise,
            "unverified": self.unverified,
            "other_verdicts": [
                {
                    "event_id": other.event_id,
                    "decided_ms": other.decided_ms,
                    "decision": other.decision.value,
                    "reasons": list(other.reasons),
                    "differences": [one.as_data() for one in differences(self.this, other)],
                }
                for other in self.others
            ],
        }


def differences(this: Verdict, other: Verdict) -> list[Difference]:
    """Return what differs between two verdicts, what explains most first: wording, who wrote, taint, place, policy.

    Numbers of a detector count only where its finding asked for more than accept on one side at least. The wording
    comes first where it judged both: what is contained it does not judge.
    """
    wording = [(WORDING, _worded(this), _worded(other))] if _asked(WORDING, this, other) else []
    judged = all(wording_of(one) is not None or one.decision is Decision.ACCEPT for one in (this, other))
    pairs = (
        *(wording if judged else []),
        ("written by", _writer(this), _writer(other)),
        ("principal", this.principal, other.principal),
        ("agent", this.agent, other.agent),
        *([("taint", _taint(this), _taint(other))] if _kinds(this) != _kinds(other) else []),
        ("tier", _tier(this.tier), _tier(other.tier)),
        *([("place", _place(this), _place(other))] if this.object_id and other.object_id else []),
        ("policy", f"{this.policy}, {this.mode}", f"{other.policy}, {other.mode}"),
        *([] if judged else wording),
        *([("usual", _usual(this.usual), _usual(other.usual))] if _asked("detect", this, other) else []),
        *([("MEMSAD", _score(this.score), _score(other.score))] if _asked("memsad", this, other) else []),
    )
    found = [Difference(what, here, there) for what, here, there in pairs if here != there]
    mine, theirs = _findings(this), _findings(other)
    only = [Difference("found", one, "") for one in mine if one not in theirs]
    only += [Difference("found", "", one) for one in theirs if one not in mine]
    return found + only[:FINDINGS_MAX]


def _asked(rule: str, *verdicts: Verdict) -> bool:
    """Whether what a rule found asked for more than accept, in one of the verdicts."""
    return any(rule_of(one.code) == rule and _severity(one) > 0 for verdict in verdicts for one in verdict.findings)


def _worded(verdict: Verdict) -> str:
    found = wording_of(verdict)
    return "" if found is None else worded(found)


def _writer(verdict: Verdict) -> str:
    return f"a {verdict.role} on channel {verdict.channel}, tier {_tier(verdict.credential_tier)} at best"


def _tier(tier: int) -> str:
    return next((f"{number.value} {word}" for number, word in TIER_WORDS.items() if number == tier), str(int(tier)))


def _kinds(verdict: Verdict) -> set[str]:
    """Return of which kinds the causes of taint are: which page it was explains no other verdict."""
    return {cause.partition(":")[0] for cause in verdict.taint_causes} if verdict.taint else set()


def _taint(verdict: Verdict) -> str:
    return ", ".join(verdict.taint_causes) if verdict.taint else "none"


def _place(verdict: Verdict) -> str:
    return f"{verdict.zone}, seen by {verdict.visibility}"


def _usual(told: Usual | None) -> str:
    if told is None:
        return ""
    line = _numbers(evidence=told.score, threshold=told.threshold, p=told.p, level=told.level)
    return f"{line} ({told.phase}, {told.strategy} over {told.size} landed writes)"


def _score(score: Score | None) -> str:
    if score is None:
        return ""
    line = _numbers(score=score.score, threshold=score.threshold, p=score.p)
    of = f"{score.phase} window {score.window_id} of {score.window_size}, {score.history_size} questions"
    return f"{line or 'no score'} ({of}, {score.strategy})"


def _numbers(**numbers: float | None) -> str:
    return ", ".join(f"{name} {number:.4g}" for name, number in numbers.items() if number is not None)


def _findings(verdict: Verdict) -> list[str]:
    """Return the findings in words, those that ask for most first."""
    ranked = sorted(verdict.findings, key=_severity, reverse=True)
    return list(dict.fromkeys(f"{one.code} requires {one.decision}" for one in ranked))


def _severity(finding: Finding) -> int:
    return SEVERITY.index(finding.decision) if finding.decision in SEVERITY else 0


def lines(found: EqualTexts) -> Iterator[str]:
    """Yield the section as a terminal shows it: escaped, what a producer chose last on its line."""
    if not found.others:
        return
    yield "Another write of the same text got another decision:"
    for other in found.others[:TOLD_MAX]:
        why = f" ({', '.join(other.reasons)})" if other.reasons else ""
        yield _shown(f"{moment(other.decided_ms)}: decided {other.decision}{why}; this one {found.this.decision}")
        yield _shown(f"  memsluice trace {other.event_id}")
        different = differences(found.this, other)
        for one in different:
            if one.what != "found":
                yield _shown(f"  {one.what} here: {one.here or NOTHING}")
                yield _shown(f"  {one.what} there: {one.there or NOTHING}")
            else:
                yield _shown(f"  found only here: {one.here}" if one.here else f"  found only there: {one.there}")
        if not different:
            yield "  nothing that decides differs in what the verdicts record: what was remembered in between decided"
    if found.otherwise > TOLD_MAX:
        which = "them" if found.otherwise <= len(found.others) else f"the latest {len(found.others)}"
        yield f"and {found.otherwise - TOLD_MAX} more with another decision: --json has {which}"
    if found.equal > found.otherwise:
        yield f"of {found.equal} other writes of the same text {found.otherwise} got another decision"
    if found.unverified:
        yield f"{found.unverified} records of the text do not verify under this home's keys and were not compared"


def _shown(line: str) -> str:
    return visible(line, LINE_CHARS_MAX)


class Finder:
    """Takes audit records or verdicts in their order, counts the other writes of one text by their decision, and keeps
    the latest EQUALS_MAX of each.

    It looks at verdicts whose sealed offset lies behind ``after`` and before ``until`` (None: no end). Offsets grow: a
    re-delivery of an earlier one is not counted again.
    """

    def __init__(self, keyring: Keyring, about: Verdict, *, after: int = -1, until: int | None = None) -> None:
        self.about = about
        self.unverified = 0
        self.counts: Counter[Decision] = Counter()
        self._keyring = keyring
        self._digest = about.content_digest.encode()
        self._last, self._until = after, until
        self._kept: dict[Decision, deque[Verdict]] = {}

    def take(self, record: Record) -> None:
        """Learn from one record. The cheap look comes first: most records are of other texts."""
        if record.key != self.about.tenant.encode():
            return
        payload = payload_of(record)
        if payload is None or not self.named_in(payload):
            return
        verdict = read(self._keyring, record)
        if verdict is None:
            self.unverified += 1
        else:
            self.learn(verdict)

    def named_in(self, payload: bytes) -> bool:
        """Whether a verdict of these bytes may be on the text."""
        return self._digest in payload

    def learn(self, verdict: Verdict) -> None:
        """Learn from a verdict of the tenant."""
        if not comparable(verdict) or verdict.content_digest != self.about.content_digest:
            return
        offset = verdict.sealed_offset
        if offset <= self._last or (self._until is not None and offset >= self._until):
            return
        if verdict.event_id == self.about.event_id:
            return
        self._last = verdict.sealed_offset
        self.counts[verdict.decision] += 1
        self._kept.setdefault(verdict.decision, deque(maxlen=EQUALS_MAX)).append(verdict)

    def decided_otherwise(self, than: Decision) -> list[Verdict]:
        """Return the latest of each other decision, in the order in which they were decided."""
        others = (one for decision, kept in self._kept.items() if decision is not than for one in kept)
        return sorted(others, key=lambda one: one.sealed_offset)


def comparable(verdict: Verdict) -> bool:
    """Whether a verdict is a decision on a write's text: not an event that was merely sent once more."""
    return (
        verdict.type == EventType.WRITE and verdict.decision is not Decision.DUPLICATE and bool(verdict.content_digest)
    )


def payload_of(record: Record) -> bytes | None:
    """Return the bytes that an audit record's envelope holds, unverified; None where it is no envelope."""
    try:
        return dsse.parse(orjson.loads(record.value or b"")).payload
    except (InputError, orjson.JSONDecodeError):
        return None


def told_by(this: Verdict, finders: Iterable[Finder]) -> EqualTexts:
    """Return what finders found about one verdict, given those that read earlier records first."""
    every = list(finders)
    kept = [verdict for finder in every for verdict in finder.decided_otherwise(this.decision)][-EQUALS_MAX:]
    equal = sum(one.counts.total() for one in every)
    alike = sum(one.counts[this.decision] for one in every)
    return EqualTexts(this, tuple(reversed(kept)), equal - alike, equal, sum(one.unverified for one in every))


def look(audit: TopicReader, keyring: Keyring, this: Verdict, partitions: int) -> EqualTexts:
    """Read the audit of a verdict's tenant once; return the other verdicts on its text. Raises BrokerUnavailable."""
    finder = Finder(keyring, this)
    for record in audit.read(partition_of(this.tenant, partitions)):
        finder.take(record)
    return told_by(this, [finder])
