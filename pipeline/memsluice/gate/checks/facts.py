"""Extraction mode (seed 002, pattern 3): what its writer marks as facts has their form, and says nothing to do.

The mark raises no tier and opens no zone: a page's facts are outside content as its text is. It only promises more, and
what breaks the promise is held for a reviewer, in whichever zone it would lie: a dump that is called a fact, and a fact
that gives an order (:mod:`memsluice.gate.checks.instructions`).
"""

from memsluice.envelope.verdict import Decision, Finding
from memsluice.errors import InputError
from memsluice.events.facts import parse
from memsluice.events.models import Kind, Write
from memsluice.gate.policy.model import Policy


def check(write: Write, policy: Policy) -> Finding | None:
    """Return why a write of kind ``facts`` is none; None for any other write."""
    if write.kind is not Kind.FACTS or not policy.instructions.enabled:
        return None
    if len(write.content) > policy.instructions.facts_chars_max:
        detail = {"chars": len(write.content), "chars_max": policy.instructions.facts_chars_max}
        return Finding("facts.long", Decision.QUARANTINE, detail)
    try:
        parse(write.content)
    except InputError as error:
        return Finding("facts.malformed", Decision.QUARANTINE, {"why": error.reason})
    return None


def least(write: Write, otherwise: Decision) -> Decision:
    """Return what is asked for where an instruction pattern is found: never less than review, in a fact."""
    return Decision.QUARANTINE if write.kind is Kind.FACTS else otherwise
