"""A policy that holds whatever an instruction pattern occurs in: tests of what becomes of a held write rest on it.

It is the shipped one with another budget, so none of them depends on what the trained weights make of a sentence.
"""

import re

from memsluice.gate.policy.model import PolicySet, parse, shipped

BUDGET = "with_pattern: 0.999999, with_pattern_own: 0.999999"
"""What such a policy says of the wording, within braces."""


def text() -> str:
    """Return the policy file."""
    found, times = re.subn(r"(with_pattern(?:_own)?): [0-9.]+", r"\1: 0.999999", shipped("default"))
    assert times == 2
    return found


def policies() -> PolicySet:
    """Return it, for all tenants."""
    return parse(text())
