"""Policies: what may land, as data. Read from YAML, named by the digest of what is in force for a tenant."""

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

import yaml
from pydantic import Field, ValidationError

from memsluice.envelope.codec import canonical
from memsluice.errors import PolicyError
from memsluice.escaping import visible
from memsluice.events.limits import CONTENT_BYTES_DEFAULT, CONTENT_BYTES_MAX, TENANT_CHARS_MAX
from memsluice.events.models import TENANT_PATTERN, Tier, is_tenant
from memsluice.gate.policy import strictyaml
from memsluice.gate.policy.drift import DriftPolicy
from memsluice.gate.policy.graph import GraphPolicy
from memsluice.gate.policy.part import FIELD_OF, Part
from memsluice.gate.policy.renewing import RenewOnUsePolicy
from memsluice.gate.policy.sensitive import SensitivePolicy
from memsluice.gate.policy.wording import EvidenceFactor, Reach, WordingPolicy

POLICY_BYTES_MAX = 1_000_000
REASON_CHARS_MAX = 4_000
DAY_MS = 86_400_000
COUNT_MAX = 10_000_000_000
"""Largest count or number of seconds in a policy: three centuries."""
Signal = Literal["wording", "question", "coverage", "nearness", "repetition", "anomaly"]
SIGNALS: tuple[Signal, ...] = get_args(Signal)
"""What the default detector's evidence is made of, in the order of its sum."""


class PerTier(Part):
    """One optional number a trust tier; null is "no limit"."""

    operator: int | None = Field(default=None, ge=1, le=COUNT_MAX, description="For tier 1; null is no limit.")
    user_verified: int | None = Field(default=None, ge=1, le=COUNT_MAX, description="For tier 2; null is no limit.")
    user_observed: int | None = Field(default=None, ge=1, le=COUNT_MAX, description="For tier 3; null is no limit.")
    external_tool: int | None = Field(default=None, ge=1, le=COUNT_MAX, description="For tier 4; null is no limit.")
    external_web: int | None = Field(default=None, ge=1, le=COUNT_MAX, description="For tier 5; null is no limit.")

    def of(self, tier: Tier) -> int | None:
        """Return the number of a tier."""
        value: int | None = getattr(self, FIELD_OF[tier])
        return value


class QuarantinePolicy(Part):
    """How much may be held of one principal, and how much of what was rejected is kept: within ``age_days``."""

    age_days: int = Field(default=30, ge=1, le=365, description="Days a held or kept write can be decided.")
    per_principal_max: int = Field(
        default=200, ge=1, le=100_000, description="Held writes of one principal within those days; beyond: rejected."
    )
    refused_per_principal_max: int = Field(
        default=50,
        ge=0,
        le=100_000,
        description="Rejected writes of one principal that are kept within those days; beyond: the verdict alone.",
    )
    refused_per_tenant_max: int = Field(
        default=2_000,
        ge=0,
        le=1_000_000,
        description="Rejected writes of all principals of a tenant that are kept; beyond: the verdict alone.",
    )


class IntakePolicy(Part):
    """How much of one tenant goes straight on; what exceeds it waits in the overflow, in its order."""

    events_per_s: int | None = Field(
        default=50,
        ge=1,
        le=COUNT_MAX,
        description="Events of the tenant a second, over time; beyond: they wait. Null is no limit. The workers' "
        "policy file alone says it; an embedded runtime, in which nobody waits for anybody, does not look at it.",
    )
    burst: int = Field(
        default=2_000, ge=1, le=COUNT_MAX, description="Events at once that are not beyond; null above: no matter."
    )


class InstructionsPolicy(Part):
    """Seed 002, patterns 3 and 6."""

    enabled: bool = Field(default=True, description="Whether writes are searched for instruction patterns.")
    facts_chars_max: int = Field(default=500, ge=1, le=COUNT_MAX, description="Longer extracted facts are held.")
    hold_contained: bool = Field(
        default=False, description="Hold, instead of report, what is found in outside content."
    )


Strategy = Literal["fixed", "rolling", "ewma", "page_hinkley", "adwin", "m_star", "conformal"]


class CalibrationPolicy(Part):
    """How a detector learns what is usual for a tenant (:mod:`memsluice.gate.detectors.calibration`)."""

    strategy: Strategy = Field(
        description="What says where the line lies: mean and deviation of the first scores (fixed), of the last "
        "(rolling), weighted (ewma), since the last change (page_hinkley, adwin), of a window that follows the drift "
        "(m_star), or ranks (conformal)."
    )
    ewma_weight: float = Field(default=0.02, gt=0, le=0.99, description="Lambda of ewma: what a new score weighs.")
    gamma: float = Field(
        default=0.0,
        ge=0,
        le=0.1,
        description="Step by which conformal's level follows what is held, from alpha / 5 to 2 alpha; 0: not at all.",
    )
    credit: bool = Field(
        default=False, description="Whether the lowest-scored held writes, as many as alpha allows, count as honest."
    )


class Mode(StrEnum):
    """Which score is compared with the threshold."""

    MAX = "max"
    MEAN = "mean"
    COMBINED = "combined"


class MemsadPolicy(Part):
    """Seed 000, Definition 6: score mode, threshold factor, reference size N, history size m_max, confidence delta."""

    enabled: bool = Field(default=True, description="Whether writes are scored against past questions.")
    mode: Mode = Field(default=Mode.COMBINED, description="How similarities become a score: s_max, s_mean or s_comb.")
    kappa: float = Field(default=2.0, gt=0, le=10, description="Threshold factor: mu + kappa x sigma.")
    reference_size: int = Field(default=50, ge=2, le=1_000, description="N: reference writes the threshold rests on.")
    history_size: int = Field(
        default=100, ge=1, le=2_000, description="m_max: past questions kept, first in first out."
    )
    delta: float = Field(default=0.05, gt=0, lt=1, description="1 - delta: confidence of the reported bound.")
    cold_threshold: float = Field(
        default=0.6, gt=-1, le=1, description="Threshold until N reference writes were seen; declared, not learned."
    )
    calibration: CalibrationPolicy = Field(
        default=CalibrationPolicy(strategy="m_star"),
        description="m_star follows the drift (Theorem 12); fixed is the paper's Definition 6.",
    )
    window: int = Field(default=200, ge=20, le=1_000, description="Scores that a strategy other than fixed rests on.")
    alpha: float = Field(default=0.01, gt=0, lt=1, description="Budget of the conformal strategy.")
    frozen: bool = Field(default=False, description="Learn nothing more: what is usual stays as it is.")
    variant: Literal["memsad", "memsad_plus", "composite", "weighted"] = Field(
        default="memsad",
        description="memsad: the score alone; memsad_plus: or unlike character n-grams; composite: or near the "
        "probes, or without watermark; weighted: a weighted sum of watermark, instruction patterns and probes, without "
        "the score, which the paper itself advises against.",
    )
    proactive_threshold: float = Field(
        default=0.19, gt=-1, le=1, description="Mean cosine to the probes above which composite and weighted flag."
    )
    watermark: str | None = Field(
        default=None, max_length=64, description="Seed of the green list that honest texts are marked by; no secret."
    )
    watermark_z: float = Field(default=1.5, ge=-10, le=100, description="Least z of a text that is marked.")


class CommandsPolicy(Part):
    """How often in 24 hours a label may be lifted or an entry shared, in one tenant."""

    promotions_per_day: int | None = Field(
        default=100, ge=0, description="Promotions of a tenant's entries in 24 hours; null is no limit."
    )
    declassifications_per_day: int | None = Field(
        default=20, ge=0, description="Declassifications in 24 hours; null is no limit."
    )


class DetectPolicy(Part):
    """The default detector (:mod:`memsluice.gate.detectors.rarity`)."""

    threshold: float = Field(default=1.4, gt=0, le=20, description="Evidence from which on a write is held.")
    alpha: float = Field(
        default=0.02, gt=0, lt=1, description="Conformal p-value below which a write is held: the budget."
    )
    per_tier: EvidenceFactor = Field(default=EvidenceFactor(), description="What alpha is multiplied by.")
    window: int = Field(default=400, ge=50, le=2_000, description="Landed writes that say what is usual for a tenant.")
    calibration: CalibrationPolicy = Field(
        default=CalibrationPolicy(strategy="conformal"), description="Ranks, with the budget alpha."
    )
    kappa: float = Field(
        default=3.0, gt=0, le=10, description="Threshold factor of a strategy of mean and deviation; else unused."
    )
    reach: tuple[Reach, ...] = Field(
        default=(Reach.RELIED, Reach.SHARED),
        description="Writes of which reach are held; of others it is reported what speaks against them.",
    )
    signals: tuple[Signal, ...] = Field(
        default=SIGNALS, description="Signals that count as evidence; one that is left out says nothing."
    )
    questions: int = Field(default=1_000, ge=1, le=10_000, description="Past questions kept, each once.")
    entries: int = Field(default=1_000, ge=50, le=10_000, description="Landed entries that look back looks at.")
    look_back: bool = Field(default=True, description="Whether recalls re-screen what has landed.")
    look_back_per_day: int = Field(
        default=20, ge=0, le=10_000, description="Entries that one principal's recalls move a day; beyond: reported."
    )


class Policy(Part):
    """What is in force for one tenant. ``digest`` names it in every verdict."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$", description="What people call it.")
    profile: Literal["strict", "tiered"] = Field(
        default="tiered", description="What the monitor's rules refuse is rejected (strict) or contained (tiered)."
    )
    mode: Literal["enforce", "shadow"] = Field(
        default="enforce", description="shadow: decide and record, and let everything land all the same."
    )
    content_bytes_max: int = Field(
        default=CONTENT_BYTES_DEFAULT, ge=1, le=CONTENT_BYTES_MAX, description="Larger writes are rejected."
    )
    ttl_seconds: PerTier = Field(
        default=PerTier(user_verified=31_536_000, user_observed=2_592_000, external_tool=604_800, external_web=3_600),
        description="How long an entry lives, by its tier.",
    )
    writes_per_day: PerTier = Field(
        default=PerTier(user_verified=10, user_observed=50), description="Of one principal, by tier; beyond: held."
    )
    taint: Literal["session", "turn", "parents", "influence"] = Field(
        default="session",
        description="What of its session taints an agent's write: all it was given or saw; that of the present turn; "
        "nothing but declared parents; or what it shares words with.",
    )
    session_retention_days: int = Field(
        default=30,
        ge=1,
        le=365,
        description="Days after its last use, or up to one less (of one day: half), that a session's taint is "
        "remembered; a session that is opened under its name later is clean.",
    )
    renew_on_use: RenewOnUsePolicy = Field(
        default=RenewOnUsePolicy(), description="Whether an entry that is used holds longer."
    )
    intake: IntakePolicy = Field(default=IntakePolicy(), description="How many events go straight on.")
    quarantine: QuarantinePolicy = Field(default=QuarantinePolicy(), description="How much may be held.")
    commands: CommandsPolicy = Field(
        default=CommandsPolicy(), description="How often labels are lifted and entries shared."
    )
    instructions: InstructionsPolicy = Field(default=InstructionsPolicy(), description="Instruction patterns.")
    drift: DriftPolicy = Field(default=DriftPolicy(), description="Many small steps of one principal.")
    graph: GraphPolicy = Field(default=GraphPolicy(), description="What is told of facts beside facts.")
    sensitive: SensitivePolicy = Field(default=SensitivePolicy(), description="Secrets and personal data.")
    detector: Literal["default", "memsad"] = Field(
        default="default",
        description="What holds a write: the default detector, or MEMSAD and the patterns as published. The default "
        "detector reports what those two find.",
    )
    wording: WordingPolicy = Field(
        default=WordingPolicy(), description="How much a text may say to do, with the default detector."
    )
    detect: DetectPolicy = Field(default=DetectPolicy(), description="The default detector's settings.")
    memsad: MemsadPolicy = Field(default=MemsadPolicy(), description="Settings of the MEMSAD anomaly score.")

    @cached_property
    def digest(self) -> str:
        """``<name>@<64 hex digits>`` (SHA-256 of the canonical JSON): what a verdict names and a command binds."""
        return f"{self.name}@{sha256(canonical(self.model_dump(mode='json'))).hexdigest()}"

    def expires_ms(self, tier: Tier, now_ms: int) -> int | None:
        """Return when an entry of this tier expires (Unix ms), or None where it never does (seed 002, pattern 5)."""
        seconds = self.ttl_seconds.of(tier)
        return None if seconds is None else now_ms + seconds * 1000


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a policy file: a policy, and overrides of it for single tenants."""
    fields = Policy.model_json_schema()
    whole: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **fields,
        "title": "Policy file",
    }
    overrides = {
        "type": "object",
        "description": "Overrides for single tenants, by tenant id: any of the fields above.",
        "propertyNames": {"pattern": TENANT_PATTERN, "maxLength": TENANT_CHARS_MAX},
        "additionalProperties": {
            "type": "object",
            "properties": fields["properties"],
            "additionalProperties": False,
        },
    }
    return whole | {"properties": {**fields["properties"], "tenants": overrides}}


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for name, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = _merged(merged[name], value) if both else value
    return merged


class PolicySet:
    """A policy file: a policy and its overrides for single tenants."""

    def __init__(self, default: Policy, tenants: Mapping[str, Policy]) -> None:
        self.default = default
        self.tenants = dict(tenants)

    def of(self, tenant: str) -> Policy:
        """Return the policy in force for a tenant."""
        return self.tenants.get(tenant, self.default)


def _refused(reason: str) -> PolicyError:
    """Return the error; what a file's author wrote into it acts on no terminal."""
    return PolicyError(visible(reason, REASON_CHARS_MAX))


def document(text: str) -> dict[str, Any]:
    """Return what a policy file's text says, not yet validated. Raises PolicyError where that is not one mapping."""
    if len(text) > POLICY_BYTES_MAX:
        raise _refused(f"file is longer than {POLICY_BYTES_MAX} characters")
    try:
        value = strictyaml.load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise _refused(f"no YAML{f', line {mark.line + 1}' if mark else ''}: {error}") from None
    if not isinstance(value, dict):
        raise _refused("is empty or no mapping")
    return value


def parse(text: str) -> PolicySet:
    """Read a policy file's text. Raises PolicyError naming the field and the reason."""
    value = document(text)
    overrides = value.pop("tenants", None)
    overrides = {} if overrides is None else overrides
    if not isinstance(overrides, dict) or not all(isinstance(over, dict) for over in overrides.values()):
        raise _refused("tenants: must map tenant ids to overrides")
    for tenant in overrides:
        if not is_tenant(tenant):
            raise _refused(
                f"tenants.{tenant}: is no tenant's name{'' if isinstance(tenant, str) else ', put it in quotes'}"
            )
    default = _validated(value, "")
    return PolicySet(default, {t: _validated(_merged(value, o), f"tenants.{t}.") for t, o in overrides.items()})


def laid_over(policy: Policy, changes: Mapping[str, Any]) -> Policy:
    """Return a policy with some fields changed, as a tenant's override changes them. Raises PolicyError."""
    return _validated(_merged(policy.model_dump(), changes), "")


def _validated(value: Mapping[str, Any], prefix: str) -> Policy:
    try:
        return Policy.model_validate(value)
    except ValidationError as error:
        wrong = [f"{prefix}{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)]
        raise _refused("; ".join(wrong)) from None


def read(path: Path) -> str:
    """Return a policy file's text. Raises PolicyError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(f"{path}: {error}") from None


def load(path: Path) -> PolicySet:
    """Read a policy file. Raises PolicyError."""
    text = read(path)
    try:
        return parse(text)
    except PolicyError as error:
        raise _refused(f"{path}: {error}") from None


def load_or_default(path: Path) -> PolicySet:
    """Read a policy file; where there is none, return the policy that ships. Raises PolicyError."""
    return load(path) if path.exists() else default()


def default() -> PolicySet:
    """Return the policy that ships with the package."""
    return parse(shipped("default"))


def shipped_names() -> tuple[str, ...]:
    """Return the names of the policies that ship with the package, the default first."""
    files = (resources.files("memsluice.gate") / "policies").iterdir()
    names = sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))
    return tuple(sorted(names, key=lambda name: name != "default"))


def shipped(name: str) -> str:
    """Return the text of a policy file that ships with the package. Raises PolicyError naming those that there are."""
    if name not in shipped_names():
        raise _refused(f"{name}: no policy of that name ships; there are: {', '.join(shipped_names())}")
    return (resources.files("memsluice.gate") / "policies" / f"{name}.yaml").read_text(encoding="utf-8")
