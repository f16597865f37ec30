"""Settings of a policy that are valid but risky."""

from dataclasses import dataclass
from enum import StrEnum

from memsluice.events.models import Tier
from memsluice.gate.policy.model import Policy, PolicySet
from memsluice.gate.policy.wording import WordingPolicy


class Severity(StrEnum):
    """How bad a remark is: a warning is said, an error fails the check."""

    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Remark:
    """One remark on one field."""

    severity: Severity
    where: str
    text: str


def lint(policies: PolicySet) -> list[Remark]:
    """Return remarks on a policy file, in the order of the file."""
    remarks = [remark for policy in (policies.default,) for remark in _one(policy, "")]
    for tenant, policy in policies.tenants.items():
        remarks += _one(policy, f"tenants.{tenant}.")
    return remarks


def _one(policy: Policy, prefix: str) -> list[Remark]:
    warn = Severity.WARNING
    found = []
    if policy.mode == "shadow":
        found.append(Remark(warn, "mode", "shadow mode lands everything, also what would be held"))
    if policy.taint != "session":
        found.append(
            Remark(
                warn,
                "taint",
                f"{policy.taint}: outside content that an agent read may return in its own words as guidance",
            )
        )
    for tier in (Tier.EXTERNAL_TOOL, Tier.EXTERNAL_WEB):
        if policy.ttl_seconds.of(tier) is None:
            found.append(Remark(warn, f"ttl_seconds.{tier.name.lower()}", "outside content would never expire"))
    lives = [policy.ttl_seconds.of(tier) for tier in Tier]
    known = [life for life in lives if life is not None]
    if known != sorted(known, reverse=True):
        found.append(Remark(warn, "ttl_seconds", "a less trusted tier lives longer than a more trusted one"))
    for name in ("ttl_seconds", "writes_per_day"):
        if dropped := _dropped(policy, name):
            text = f"{', '.join(dropped)}: not listed, so without a limit: a map in the file replaces the whole default"
            found.append(Remark(warn, name, text))
    if policy.writes_per_day.user_observed is None:
        found.append(Remark(warn, "writes_per_day.user_observed", "without a limit one principal can flood its memory"))
    found += _screening(policy)
    found += _budgets(policy.wording)
    if policy.memsad.enabled and policy.memsad.reference_size < 20:
        found.append(
            Remark(warn, "memsad.reference_size", "fewer than 20 reference entries give an unstable threshold")
        )
    return [Remark(remark.severity, prefix + remark.where, remark.text) for remark in found]


def _screening(policy: Policy) -> list[Remark]:
    """Return what is missing where nothing, or next to nothing, screens what trusted channels write."""
    published = policy.instructions.enabled or policy.memsad.enabled
    if policy.detector == "memsad" and not published:
        return [Remark(Severity.ERROR, "instructions, memsad", "nothing would screen writes of trusted channels")]
    if policy.detector == "default" and not policy.detect.signals:
        told = "the default detector has no signals, so nothing would be held: MEMSAD and the patterns only report"
        return [Remark(Severity.ERROR, "detect.signals", told)]
    return []


def _budgets(wording: WordingPolicy) -> list[Remark]:
    """Return which budget is out of order: what reaches more people should be held sooner, not later."""
    found = []
    for less, more in (("own", "relied"), ("relied", "shared")):
        if getattr(wording, less) > getattr(wording, more):
            told = f"smaller than `{less}`, so what reaches more people is held less"
            found.append(Remark(Severity.WARNING, f"wording.{more}", told))
    for reach, pattern in (("own", "with_pattern_own"), ("relied", "with_pattern"), ("shared", "with_pattern")):
        if getattr(wording, reach) > getattr(wording, pattern):
            told = f"smaller than `{reach}`, so it does nothing there: the larger of the two counts"
            found.append(Remark(Severity.WARNING, f"wording.{pattern}", told))
    return found


def _dropped(policy: Policy, name: str) -> list[str]:
    """Return the tiers that have a limit by default, and none here because the map does not name them."""
    given, usual = getattr(policy, name), Policy.model_fields[name].default
    tiers = [tier.name.lower() for tier in Tier if usual.of(tier) is not None]
    return [tier for tier in tiers if tier not in given.model_fields_set]
