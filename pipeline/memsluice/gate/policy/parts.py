"""What of a policy decides about a content, rule by rule: so a replay knows a changed rule from one that learned.

Lifetimes, rates, shares of the quarantine and how much look back may move are no part of it: changed, they say nothing
of what is written. Numbers of a rule that learns, of which more is stricter, stand beside its digest: a rule made
stricter lets nothing in, so what it finds no more it has unlearned.
"""

from functools import lru_cache
from hashlib import sha256
from typing import Any

from memsluice.envelope.codec import canonical
from memsluice.gate.policy.model import Policy

CONTENT = ("detect", "facts", "instructions", "memsad", "wording")
"""Modules of the gate whose findings are of what is written."""
NO_CONTENT = frozenset({"look_back", "look_back_per_day"})
_STRICTER = {"detect": {"threshold": -1, "kappa": -1, "alpha": 1}, "memsad": {"kappa": -1, "cold_threshold": -1}}
"""Numbers of a rule that learns; 1 where it holds more the higher they are, -1 where the lower."""
DIGITS = 16
"""Hex digits of a digest: it tells apart what operators wrote, and guards nothing by itself."""


@lru_cache(1_024)  # a few of each policy, asked for with every held write
def digest(policy: Policy, module: str) -> str:
    """Return the digest of what decides about the findings of one module of CONTENT, but for its :func:`strictness`.

    Raises KeyError for another.
    """
    detect = policy.detect.model_dump(mode="json", exclude={*NO_CONTENT, *_STRICTER["detect"]})
    memsad = policy.memsad.model_dump(mode="json", exclude={*_STRICTER["memsad"]})
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
        "memsad": {"detector": policy.detector, "memsad": memsad},
    }  # fmt: skip
    return sha256(canonical(said[module])).hexdigest()[:DIGITS]


def strictness(policy: Policy, module: str) -> tuple[float, ...]:
    """Return the numbers of a rule that learns by which it holds more the higher they are; of other rules none."""
    return tuple(sign * getattr(getattr(policy, module), name) for name, sign in _STRICTER.get(module, {}).items())


def loosened(policy: Policy, module: str, digest_then: str, strictness_then: tuple[float, ...]) -> bool:
    """Whether a rule was changed since in any way but to be stricter: then somebody decided that more may land."""
    if digest_then != digest(policy, module):
        return True
    return any(now < then for now, then in zip(strictness(policy, module), strictness_then, strict=False))
