"""Settings of a policy that are valid but risky."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from memsluice.events.models import Tier
from memsluice.gate.policy.model import Policy, PolicySet
from memsluice.gate.policy.part import FIELD_OF
from memsluice.gate.policy.wording import Reach, WordingPolicy


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
    if policy.sensitive.action == "report":
        found.append(Remark(warn, "sensitive.action", "report: secrets and personal data land as they are"))
    if policy.memsad.enabled and policy.memsad.reference_size < 20:
        found.append(
            Remark(warn, "memsad.reference_size", "fewer than 20 reference entries give an unstable threshold")
        )
    return [Remark(remark.severity, prefix + remark.where, remark.text) for remark in found]


def _screening(policy: Policy) -> list[Remark]:
    """Return what is missing where nothing, or next to nothing, screens what trusted channels write."""
    if policy.detector == "default":
        return _by_default(policy)
    if policy.instructions.enabled or policy.memsad.enabled:
        return []
    return [Remark(Severity.ERROR, "instructions, memsad", "nothing would screen writes of trusted channels")]


def _by_default(policy: Policy) -> list[Remark]:
    """Return what the default detector does not hold: an error where neither wording nor evidence holds anything."""
    wording, detect = policy.wording, policy.detect
    pattern = policy.instructions.enabled
    screened = tuple(tier for tier in Tier if tier.trusted or policy.instructions.hold_contained)  # else contained
    most = max(wording.budget(reach, tier, pattern=pattern) for reach in Reach for tier in screened)
    zero = [FIELD_OF[tier] for tier in screened if not detect.per_tier.of(tier)]
    conformal = detect.calibration.strategy == "conformal"
    budgetless = conformal and len(zero) == len(screened)
    if (wording.action == "report" or most == 0) and (not detect.signals or not detect.reach or budgetless):
        told = "nothing would be held: neither for what it says to do nor for what is unusual for the tenant"
        return [Remark(Severity.ERROR, "wording, detect", told)]
    found = []
    for name in ("signals", "reach"):
        if not getattr(detect, name):
            told = "empty, so what is unusual for the tenant is only reported"
            found.append(Remark(Severity.WARNING, f"detect.{name}", told))
    if not pattern:
        told = (
            "false: the gate looks for no instruction pattern, for no order to set aside what agents were told, and "
            "at no form of facts"
        )
        found.append(Remark(Severity.WARNING, "instructions.enabled", told))
    if conformal and zero:
        whose = "every trusted tier" if budgetless else ", ".join(zero)
        told = f"0 for {whose}, so there what is unusual for the tenant is only reported"
        found.append(Remark(Severity.WARNING, "detect.per_tier", told))
    if wording.action == "report":
        told = "report: writes that tell agents what to do land, and are only reported"
        return [*found, Remark(Severity.WARNING, "wording.action", told)]
    return found + _nothing_for_wording(wording, screened, pattern=pattern)


def _nothing_for_wording(wording: WordingPolicy, screened: Sequence[Tier], *, pattern: bool) -> list[Remark]:
    """Return where no wording is enough to be held; ``pattern``: instruction patterns are searched for.

    ``screened`` are the tiers of which anything is held for what it says.
    """
    found = []
    for reach in Reach:
        if getattr(wording, reach.value) == 0:
            beside = wording.with_pattern_own if reach is Reach.OWN else wording.with_pattern
            told = f"0, so nothing of that reach is held for its wording{_except(pattern=pattern and beside > 0)}"
            found.append(Remark(Severity.WARNING, f"wording.{reach.value}", told))
    if zero := [FIELD_OF[tier] for tier in screened if not wording.per_tier.of(tier)]:
        beside = max(wording.with_pattern, wording.with_pattern_own)
        whose = "every trusted tier" if len(zero) == len(screened) else ", ".join(zero)
        told = f"0 for {whose}, so there nothing is held for its wording{_except(pattern=pattern and beside > 0)}"
        found.append(Remark(Severity.WARNING, "wording.per_tier", told))
    return found


def _except(*, pattern: bool) -> str:
    return ", except with a pattern" if pattern else ""


def _budgets(wording: WordingPolicy) -> list[Remark]:
    """Return which budget is out of order: what reaches more people should be held sooner, not later."""
    found = []
    for less, more in (("own", "relied"), ("relied", "shared")):
        if getattr(wording, less) > getattr(wording, more):
            told = f"the budget is smaller than `{less}`, so what reaches more people is held less"
            found.append(Remark(Severity.WARNING, f"wording.{more}", told))
    for reach, pattern in (("own", "with_pattern_own"), ("relied", "with_pattern"), ("shared", "with_pattern")):
        if getattr(wording, reach) > getattr(wording, pattern):
            told = f"the budget is smaller than `{reach}`, so it does nothing there: the larger of the two counts"
            found.append(Remark(Severity.WARNING, f"wording.{pattern}", told))
    return found


def _dropped(policy: Policy, name: str) -> list[str]:
    """Return the tiers that have a limit by default, and none here because the map does not name them."""
    given, usual = getattr(policy, name), Policy.model_fields[name].default
    tiers = [tier.name.lower() for tier in Tier if usual.of(tier) is not None]
    return [tier for tier in tiers if tier not in given.model_fields_set]
