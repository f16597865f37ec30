"""Whether a person let in what reads like an instruction; whoever asks for it imports no detector."""

from collections.abc import Iterable

from memsluice.envelope.verdict import Decision, Finding, rule_of

_SET_ASIDE = {"review": "overridden", "promotion": "codes"}
"""Modules of commands that set findings aside, and the detail of their own finding that has the codes."""
READ = frozenset({"instructions", "overrides", "wording"})
"""Modules whose findings say what a content reads like."""


def let_in(findings: Iterable[Finding]) -> bool:
    """Say whether a person let in what reads like an instruction. What was held for something else, such as its rate,
    was let in for that."""
    accepted = (found for found in findings if found.decision is Decision.ACCEPT)
    aside = (found.detail.get(_SET_ASIDE.get(rule_of(found.code), ""), ()) for found in accepted)
    return any(rule_of(code) in READ for codes in aside for code in codes)
