"""What of a policy decides about a content, rule by rule: so a replay knows a changed rule from one that learned.

Lifetimes, rates, shares of the quarantine and how much look back may move are no part of it: changed, they say nothing
of what is written.
"""

from functools import lru_cache
from hashlib import sha256
from typing import Any

from memsluice.envelope.codec import canonical
from memsluice.gate.policy.model import Policy

CONTENT = ("detect", "facts", "instructions", "memsad", "wording")
"""Modules of the gate whose findings are of what is written."""
NO_CONTENT = frozenset({"look_back", "look_back_per_day"})
DIGITS = 16
"""Hex digits of a digest: it tells apart what operators wrote, and guards nothing by itself."""


@lru_cache(1_024)  # a few of each policy, asked for with every held write
def digest(policy: Policy, module: str) -> str:
    """Return the digest of what decides about the findings of one module of CONTENT. Raises KeyError for another."""
    detect = policy.detect.model_dump(mode="json", exclude=set(NO_CONTENT))
    found = policy.instructions
    said: dict[str, Any] = {
        "detect": {"detector": policy.detector, "detect": detect},
        "facts": {"enabled": found.enabled, "facts_chars_max": found.facts_chars_max},
        "instructions": {
            "detector": policy.detector, "enabled": found.enabled, "hold_contained": found.hold_contained,
        },
        "wording": {
            "detector": policy.detector, "wording": policy.wording.model_dump(mode="json"), "patterns": found.enabled,
        },
        "memsad": {"detector": policy.detector, "memsad": policy.memsad.model_dump(mode="json")},
    }  # fmt: skip
    return sha256(canonical(said[module])).hexdigest()[:DIGITS]
