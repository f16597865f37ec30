"""Which way each field of a policy lets more happen, and how strict its values are. Pure.

It is said here once: for whoever changes a policy, and for a replay, which lets in what a rule no longer finds only
where that rule was made looser (:mod:`memsluice.gate.policy.parts`). A value is read as numbers, of which none falls
where it gets stricter. A new field without a reading fails a test.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from memsluice.gate.policy.model import SIGNALS
from memsluice.gate.policy.part import FIELD_OF
from memsluice.gate.policy.wording import Reach

Reading = Callable[[Any], tuple[float, ...]]
"""Returns a value's numbers: none where it lets nothing more happen either way."""
RANK = 10.0
"""Between two ranks of names: more than there are names in one."""


def _falls(value: Any) -> tuple[float, ...]:
    """A limit, of which more is looser: None is no limit."""
    return (-math.inf if value is None else 0.0 - value,)


def _rises(value: Any) -> tuple[float, ...]:
    return (float(value),)


def _nothing(_value: Any) -> tuple[float, ...]:
    return ()


def _each_of(names: Iterable[str]) -> Reading:
    """Return the reading of a set: stricter with each name that is in it."""
    every = tuple(names)
    return lambda value: tuple(float(name in value) for name in every)


def _ranked(*ranks: Iterable[str]) -> Reading:
    """Return the reading of names in ranks, the strictest first. Of two in one rank nobody can say which is: each has
    one number that is higher."""
    found = {}
    for number, names in enumerate(ranks):
        for at, name in enumerate(names):
            found[name] = (at - RANK * number, -at - RANK * number)
    return lambda value: found[value]


def _by_tier(name: str, reading: Reading) -> dict[str, Reading]:
    return {f"{name}.{tier}": reading for tier in FIELD_OF.values()}


def _calibration(name: str) -> dict[str, Reading | None]:
    """How a detector learns: another strategy draws another line, which may lie anywhere."""
    return {
        f"{name}.strategy": None, f"{name}.ewma_weight": None, f"{name}.gamma": None, f"{name}.credit": _falls,
    }  # fmt: skip


READINGS: Mapping[str, Reading | None] = {
    "name": _nothing,
    "profile": _ranked(["strict"], ["tiered"]),
    "mode": _ranked(["enforce"], ["shadow"]),
    "content_bytes_max": _falls,
    **_by_tier("ttl_seconds", _falls),
    **_by_tier("writes_per_day", _falls),
    "taint": _ranked(["session"], ["turn", "influence"], ["parents"]),
    "session_retention_days": _rises,  # then a session of the name is clean
    "renew_on_use.enabled": _falls,
    "renew_on_use.least_elapsed": _rises,
    "renew_on_use.per_day": _falls,
    "renew_on_use.per_entry_per_day": _falls,
    "renew_on_use.longest_days": _falls,
    "intake.events_per_s": _falls,
    "intake.burst": _falls,
    "quarantine.age_days": _nothing,  # how long a person may decide lets nothing in
    "quarantine.per_principal_max": _falls,
    "quarantine.refused_per_principal_max": _falls,
    "quarantine.refused_per_tenant_max": _falls,
    "commands.promotions_per_day": _falls,
    "commands.declassifications_per_day": _falls,
    "instructions.enabled": _rises,
    "instructions.facts_chars_max": _falls,
    "instructions.hold_contained": _rises,
    "drift.action": _ranked(["hold"], ["report"], ["ignore"]),
    "drift.allowance": _falls,
    "drift.limit": _falls,
    "drift.days": _rises,
    "graph.action": _ranked(["report"], ["ignore"]),
    **{f"graph.{name}": _falls for name in ("agree", "hub_links", "hijack_links", "inner_links")},
    "sensitive.action": _ranked(["redact", "hold"], ["report"]),  # one takes the value out, one keeps the write out
    "detector": None,
    "wording.action": _ranked(["hold"], ["report"]),
    **{f"wording.{name}": _rises for name in ("own", "relied", "shared", "with_pattern", "with_pattern_own")},
    **_by_tier("wording.per_tier", _rises),
    "detect.threshold": _falls,
    "detect.alpha": _rises,
    **_by_tier("detect.per_tier", _rises),
    "detect.window": _nothing,
    **_calibration("detect.calibration"),
    "detect.kappa": _falls,
    "detect.reach": _each_of(Reach),
    "detect.signals": _each_of(SIGNALS),
    "detect.questions": _rises,
    "detect.entries": _rises,
    "detect.look_back": _rises,
    "detect.look_back_per_day": _rises,
    "memsad.enabled": _rises,
    "memsad.mode": None,
    "memsad.kappa": _falls,
    "memsad.reference_size": _nothing,
    "memsad.history_size": _rises,
    "memsad.delta": _nothing,  # of a bound that is reported
    "memsad.cold_threshold": _falls,
    **_calibration("memsad.calibration"),
    "memsad.window": _nothing,
    "memsad.alpha": _rises,
    "memsad.frozen": _nothing,
    "memsad.variant": None,
    "memsad.proactive_threshold": _falls,
    "memsad.watermark": None,
    "memsad.watermark_z": _rises,
}
"""How each field is read, by its dotted name; None: its values cannot be ranked, and a person says what is looser."""


def is_looser(field: str, before: Any, after: Any) -> bool:
    """Whether a field's second value lets more happen than its first; any other does where nobody can rank them."""
    reading = READINGS.get(field)
    if reading is None:
        return bool(before != after)
    return any(now < then for now, then in zip(reading(after), reading(before), strict=True))
