"""What a verdict says of a write's wording, and of what holds it now, for every view of verdicts. Pure."""

from collections.abc import Collection, Mapping
from typing import Any

from memsluice.envelope.verdict import Finding, Verdict, rule_of
from memsluice.escaping import visible
from memsluice.recall.show import moment

WORDED = "wording.held"
WORDING = "wording"
NAME_CHARS_MAX = 160
FIRST = ("score", "parts", "p", "usual_max", "phase", "threshold")
"""What of a finding's numbers is told first: names that others chose are long, and push nothing of it out."""
NOTED = "notes.noted"
NOTES = frozenset({"note", "why"})
"""Fields of a finding that a reviewer wrote out: the text of a note, and why a dead letter was dismissed."""
POLICY_TEXTS = frozenset({"text", "problem"})
"""Fields of a finding that have a policy's text, or what is wrong with it, which quotes it."""
NOT_SHOWN = "not for your role"
SHARE_TOLD_MIN = 0.0001
REACHES = {
    "own": "what reaches its writer alone",
    "relied": "what an agent writes",
    "shared": "what everybody of the tenant is given",
}
SAYS_IT_STAYS = frozenset({"replay.recalibrated", "replay.standing"})
"""Findings by which a replay says that an earlier reason stays."""


def wording_of(verdict: Verdict) -> Finding | None:
    """Return what was found of a write's wording, held or told; None where nothing was."""
    return next((one for one in verdict.findings if rule_of(one.code) == WORDING), None)


def worded(finding: Finding) -> str:
    """Return how much a text tells agents to do, and what its reach allows."""
    found = finding.detail
    p, budget = found["p"], found["budget"]
    share = share_of(p)
    if p > budget and share == f"{budget:.2%}":  # just above: two digits would say that it is held
        share = f"{p:.4%}"
    what = "held" if p > budget or finding.code == WORDED else "reported and not held"
    pattern = ", as a published instruction pattern occurs in it" if found["pattern"] else ""
    return (
        f"{share} of honest texts tell agents so much to do; {what} from {budget:.2%} down for"
        f" {REACHES.get(found['reach'], name_of(found['reach']))}{pattern}"
    )


def without_texts(detail: Mapping[str, Any], hidden: Collection[str]) -> Mapping[str, Any]:
    """Return a finding's detail for who may not read the fields ``hidden``: that there was a text stays, no more."""
    return {name: NOT_SHOWN if name in hidden and value else value for name, value in detail.items()}


def found_words(detail: Mapping[str, Any], without: str = "") -> str:
    """Return in words the numbers and names of a finding; names that others chose are not made visible here."""
    told = sorted(detail.items(), key=lambda one: FIRST.index(one[0]) if one[0] in FIRST else len(FIRST))
    return ", ".join(f"{name} {_plain(value)}" for name, value in told if name != without)


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return f"({', '.join(f'{name} {_plain(one)}' for name, one in value.items())})"
    return ", ".join(map(_plain, value)) if isinstance(value, list) else str(value)


def share_of(p: float) -> str:
    """Return a share in percent."""
    return f"{p:.2%}" if p >= SHARE_TOLD_MIN else "less than 0.01%"


def name_of(text: object) -> str:
    """Return a name that somebody else chose, fit for a terminal."""
    return visible(str(text), NAME_CHARS_MAX)


def from_refused(verdict: Verdict) -> bool:
    """Whether a command was about a write that was not held, but rejected and kept."""
    return any(finding.detail.get("from") == "refused" for finding in verdict.findings)


def between_words(verdict: Verdict) -> str:
    """Return in words who came before a decision that is refused for that; "" for any other verdict."""
    told = {finding.code: finding.detail for finding in verdict.findings}
    if (decided := told.get("review.decided")) is not None:
        return f"it was {decided['was']} by command {name_of(decided['by'])}"
    if (stale := told.get("review.stale")) is not None:
        return f"command {name_of(stale['by'])} came between"
    if (claim := told.get("review.claimed")) is not None:
        return f"{name_of(claim['by'])} has it until {moment(claim['until_ms'])}"
    return ""


def note_words(said: Mapping[str, Any]) -> str:
    """Return in words what a note said, and how it left the write assigned and claimed; what people wrote is last."""
    until_ms, by = said.get("claim_until_ms", 0), said.get("claimed_by", "")
    told = [
        f"claimed by {name_of(by)} until {moment(until_ms)}" if by else "",
        f"assigned to {name_of(said['assignee'])}" if said.get("assignee") else "",
        f"note: {name_of(said['note'])}" if said.get("note") else "",
    ]
    return "; ".join(filter(None, told)) or "neither assigned nor claimed"


def stands_for(verdict: Verdict) -> tuple[str, ...]:
    """Return the codes for which a write is held or refused by a verdict.

    A replay says it itself (``stands``). Of one of an older version it is its own reasons; where it says that an
    earlier one stays, since only the calibration moved or a doubt about its sender stands, that one counts in the place
    of the code that says so.
    """
    told = {finding.code: finding.detail for finding in verdict.findings}
    stands = told.get("replay.decided", {}).get("stands")
    if stands is not None:
        return tuple(stands)
    rules = {change["rule"] for change in told.get("replay.recalibrated", {}).get("changes", ())}
    doubts = {finding.detail.get("code") for finding in verdict.findings if finding.code == "replay.standing"}
    was = told.get("replay.decided", {}).get("was", ())
    stay = [code for code in was if rule_of(code) in rules or code in doubts]
    own = [code for code in verdict.reasons if code not in SAYS_IT_STAYS or not stay]
    return tuple(dict.fromkeys((*stay, *own)))


def lapsed_words(until_ms: int | None) -> str:
    """Return what became of a write that was held or refused until a moment (Unix ms), and that nobody let in."""
    return f"lapsed on {'an unknown day' if until_ms is None else moment(until_ms)}; no replay lets it in"
