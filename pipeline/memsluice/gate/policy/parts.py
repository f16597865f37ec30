"""What of a policy decides about a content, rule by rule: so a replay knows a changed rule from one that learned.

Lifetimes, rates, shares of the quarantine and how much look back may move are no part of it: changed, they say nothing
of what is written. Numbers of a rule of which more is stricter stand beside its digest: a rule made stricter lets
nothing in, so what it finds no more it has unlearned, or another model reads it.
"""

from functools import lru_cache
from hashlib import sha256
from typing import Any

from memsluice.envelope.codec import canonical
from memsluice.events.models import Tier
from memsluice.gate.policy.model import Policy
from memsluice.gate.policy.part import FIELD_OF
from memsluice.gate.policy.wording import Reach, TierFactor

CONTENT = ("detect", "drift", "facts", "instructions", "memsad", "overrides", "wording")
"""Modules of the gate whose findings are of what is written."""
NO_CONTENT = frozenset({"look_back", "look_back_per_day"})
_STRICTER = {
    "detect": {"threshold": -1, "kappa": -1, "alpha": 1},
    "memsad": {"kappa": -1, "alpha": 1, "cold_threshold": -1, "proactive_threshold": -1},
}
"""Numbers of a rule that learns; 1 where it holds more the higher they are, -1 where the lower."""
_BY_TIER = ("wording", "detect")
"""Rules whose last numbers are the factors of the tiers."""
_WHERE = ("reach", "per_tier")
"""What says of which writes the default detector holds more or less: numbers, too."""
_BUDGETS = ("own", "relied", "shared", "with_pattern", "with_pattern_own")
_TOLD, _WINDOWED = frozenset({"delta"}), frozenset({"window"})
"""What a bound is told by that decides nothing, and what a line that was drawn once does not read."""
_OF_RANKS, _OF_MOMENTS = frozenset({"alpha", "per_tier"}), frozenset({"kappa"})
_PROBED, _MARKED = frozenset({"proactive_threshold"}), frozenset({"watermark", "watermark_z"})
DIGITS = 16
"""Hex digits of a digest: it tells apart what operators wrote, and guards nothing by itself."""
FORM = "3."
"""What a digest begins with. One of another form was taken of other fields, and says nothing of a change."""


@lru_cache(1_024)  # a few of each policy, asked for with every held write
def digest(policy: Policy, module: str) -> str:
    """Return the digest of what decides about the findings of one module of CONTENT, but for its :func:`strictness`
    and for numbers that nothing reads as the policy stands.

    Raises KeyError for another.
    """
    found = policy.instructions
    said: dict[str, Any] = {
        "detect": {"detector": policy.detector, "detect": _learned(policy, "detect", {*NO_CONTENT, *_WHERE})},
        "drift": {"action": policy.drift.action},
        "facts": {"enabled": found.enabled, "facts_chars_max": found.facts_chars_max},
        "instructions": {
            "detector": policy.detector, "enabled": found.enabled, "hold_contained": found.hold_contained,
        },
        "wording": {"detector": policy.detector, "action": policy.wording.action, "patterns": found.enabled},
        "overrides": {"detector": policy.detector, "action": policy.wording.action, "patterns": found.enabled},
        "memsad": {"detector": policy.detector, "memsad": _learned(policy, "memsad", set())},
    }  # fmt: skip
    return FORM + sha256(canonical(said[module])).hexdigest()[:DIGITS]


def strictness(policy: Policy, module: str) -> tuple[float, ...]:
    """Return the numbers of a rule by which it holds more the higher they are; of some rules none."""
    if module == "wording":
        return (*(getattr(policy.wording, name) for name in _BUDGETS), *_factors(policy.wording.per_tier))
    if module == "drift":
        return (-policy.drift.allowance, -policy.drift.limit)
    if module not in _STRICTER:
        return ()
    unread, part = _unread(policy, module), getattr(policy, module)
    numbers = [sign * getattr(part, name) for name, sign in _STRICTER[module].items() if name not in unread]
    if module != "detect":
        return tuple(numbers)
    reached = (float(reach in policy.detect.reach) for reach in Reach)
    return (*numbers, *reached, *(() if "per_tier" in unread else _factors(policy.detect.per_tier)))


def _factors(of: TierFactor) -> tuple[float, ...]:
    return tuple(getattr(of, name) for name in FIELD_OF.values())


def _learned(policy: Policy, module: str, no_content: set[str]) -> dict[str, Any]:
    """Return what a rule that learns is told beside its numbers."""
    part = getattr(policy, module)
    said: dict[str, Any] = part.model_dump(
        mode="json", exclude={*no_content, *_STRICTER[module], *_unread(policy, module)}
    )
    ewma, ranks = (part.calibration.strategy == name for name in ("ewma", "conformal"))
    return said | {
        "calibration": [
            part.calibration.strategy,
            part.calibration.ewma_weight if ewma else None,
            [part.calibration.gamma, part.calibration.credit] if ranks else None,
        ]
    }


def _unread(policy: Policy, module: str) -> frozenset[str]:
    """Return the fields that the rule's strategy and variant do not read: changed, they decide nothing."""
    if module not in _STRICTER:
        return frozenset()
    ranks = getattr(policy, module).calibration.strategy == "conformal"
    unread = (_OF_MOMENTS if ranks else _OF_RANKS) | _TOLD
    if getattr(policy, module).calibration.strategy == "fixed":
        unread |= _WINDOWED
    if module == "memsad" and policy.memsad.variant == "memsad_plus":
        unread -= _OF_MOMENTS  # its n-grams go by them, too
    if module == "memsad" and policy.memsad.variant not in ("composite", "weighted"):
        unread |= _PROBED | _MARKED
    return unread


def loosened(
    policy: Policy, module: str, tier: Tier | None, digest_then: str, strictness_then: tuple[float, ...]
) -> bool:
    """Whether a rule was changed since in any way but to be stricter: then somebody decided that more may land.

    ``tier`` is the write's, where it is known: the factors of other tiers decide nothing about it.
    """
    if not digest_then.startswith(FORM):
        return False  # nobody can tell, so what it held is shown first
    if digest_then != digest(policy, module):
        return True
    numbers = list(zip(strictness(policy, module), strictness_then, strict=False))
    if tier is not None and module in _BY_TIER and "per_tier" not in _unread(policy, module):
        first = len(numbers) - len(FIELD_OF)
        numbers = [*numbers[:first], numbers[first + list(FIELD_OF).index(tier)]]
    return any(now < then for now, then in numbers)
