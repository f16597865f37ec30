"""What of a policy decides about a content, rule by rule: so a replay knows a rule made looser from one that learned.

Lifetimes, rates, shares of the quarantine, how much is remembered and how much look back may move are no part of it:
changed, they say nothing of what is written. A rule is the digest of what nobody can rank in its fields, and the
numbers of the others (:mod:`memsluice.gate.policy.strictness`): a rule made stricter lets nothing in, so what it finds
no more it has unlearned, or another model reads it.
"""

from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from memsluice.envelope.codec import canonical
from memsluice.events.models import Tier
from memsluice.gate.policy.flat import flat
from memsluice.gate.policy.model import Policy
from memsluice.gate.policy.part import FIELD_OF
from memsluice.gate.policy.strictness import READINGS
from memsluice.gate.policy.wording import Reach

_SEARCHED, _CONTAINED = "instructions.enabled", "instructions.hold_contained"
FIELDS: Final = {
    "detect": ("detector", _CONTAINED, "detect"),
    "drift": ("drift.action", "drift.allowance", "drift.limit"),
    "facts": (_SEARCHED, "instructions.facts_chars_max"),
    "instructions": ("detector", _SEARCHED, _CONTAINED),
    "memsad": ("detector", _CONTAINED, "memsad"),
    "overrides": ("detector", _SEARCHED, _CONTAINED, "wording.action"),
    "wording": ("detector", _SEARCHED, _CONTAINED, "wording"),
}
"""Modules of the gate whose findings are of what is written, and the fields, or sections, that decide about them."""
CONTENT: Final = tuple(FIELDS)
_NO_CONTENT: Final = frozenset(
    {"detect.look_back", "detect.look_back_per_day", "detect.questions", "detect.entries", "memsad.history_size"}
)
_REACHES: Final = "detect.reach"
DIGITS: Final = 16
"""Hex digits of a digest: it tells apart what operators wrote, and guards nothing by itself."""
FORM: Final = "5."
"""What a digest begins with. One of another form was taken of other fields, and says nothing of a change."""


@lru_cache(1_024)  # a few of each policy, asked for with every held write
def digest(policy: Policy, module: str) -> str:
    """Return the digest of what one module of CONTENT reads: of what nobody can rank, and of which numbers it has.

    Raises KeyError for another module.
    """
    said = {name: value for name, value in _read(policy, module).items() if READINGS[name] is None}
    numbers = [name for name, _ in _numbers(policy, module)]
    return FORM + sha256(canonical([said, numbers])).hexdigest()[:DIGITS]


def strictness(policy: Policy, module: str) -> tuple[float, ...]:
    """Return the numbers of a rule of CONTENT by which it holds more the higher they are; of some rules none."""
    return tuple(number for _, number in _numbers(policy, module))


@lru_cache(1_024)
def _numbers(policy: Policy, module: str) -> tuple[tuple[str, float], ...]:
    readings = ((name, READINGS[name], value) for name, value in _read(policy, module).items())
    return tuple(named for name, reading, value in readings if reading for named in _named(name, reading(value)))


def _named(field: str, numbers: tuple[float, ...]) -> Iterable[tuple[str, float]]:
    """Return each number with the field it is of; those of ``detect.reach`` are of a reach each."""
    names = [f"{field}.{reach}" for reach in Reach] if field == _REACHES else [field] * len(numbers)
    return zip(names, numbers, strict=True)


def _read(policy: Policy, module: str) -> dict[str, Any]:
    """Return the fields that a rule reads as the policy stands, and their values."""
    unread = _NO_CONTENT | (_unread(policy, module) if module in ("detect", "memsad") else frozenset())
    every, fields = flat(policy), FIELDS[module]
    mine = (name for name in every if any(name == one or name.startswith(f"{one}.") for one in fields))
    return {name: every[name] for name in mine if name not in unread}


def _unread(policy: Policy, module: str) -> frozenset[str]:
    """Return what the strategy and the variant of a rule that learns do not read: changed, it decides nothing."""
    strategy, variant = getattr(policy, module).calibration.strategy, policy.memsad.variant
    unread = set[str]() if strategy == "ewma" else {"calibration.ewma_weight"}
    if strategy != "conformal":
        unread |= {"alpha", "calibration.gamma", "calibration.credit"} | {
            f"per_tier.{one}" for one in FIELD_OF.values()
        }
    elif module == "detect" or variant != "memsad_plus":  # whose n-grams go by it, too
        unread.add("kappa")
    if module == "memsad" and variant not in ("composite", "weighted"):
        unread |= {"proactive_threshold", "watermark", "watermark_z"}
    return frozenset(f"{module}.{name}" for name in unread)


def loosened(
    policy: Policy,
    module: str,
    tier: Tier | None,
    reach: Reach | None,
    digest_then: str,
    strictness_then: tuple[float, ...],
) -> bool:
    """Whether a rule was changed since in any way but to be stricter: then somebody decided that more may land.

    ``tier`` and ``reach`` are the write's, where they are known: what is said of others decides nothing about it.
    """
    if not digest_then.startswith(FORM):
        return False  # nobody can tell, so what it held is shown first
    if digest_then != digest(policy, module):
        return True
    both = zip(_numbers(policy, module), strictness_then, strict=False)
    return any(now < then for (name, now), then in both if _is_about(name, tier, reach))


def _is_about(field: str, tier: Tier | None, reach: Reach | None) -> bool:
    """Whether a field decides about writes of a tier and a reach; None: of any."""
    section, _, name = field.rpartition(".")
    if section.endswith(".per_tier"):
        return tier is None or name == FIELD_OF[tier]
    if reach is None or section not in (_REACHES, "wording"):
        return True
    if name in ("with_pattern", "with_pattern_own"):
        return (name == "with_pattern_own") == (reach is Reach.OWN)
    return name not in set(Reach) or name == reach
