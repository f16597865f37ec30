"""The verdict: one record that says everything about one decision.

What has many fields here has no slots: every decision makes one of each, and reads it back for the record.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import cached_property
from typing import Any

import orjson

from memsluice.errors import SealError
from memsluice.events.models import Channel, Tier, Visibility, Zone


class Decision(StrEnum):
    """What becomes of an event. ``duplicate`` and ``record`` (recalls, observations, commands) land nothing."""

    ACCEPT = "accept"
    CONTAIN = "contain"
    QUARANTINE = "quarantine"
    REJECT = "reject"
    DUPLICATE = "duplicate"
    RECORD = "record"


SEVERITY = (Decision.ACCEPT, Decision.CONTAIN, Decision.QUARANTINE, Decision.REJECT)


def rule_of(code: str) -> str:
    """Return the rule behind a finding's code: the module of the gate that it names."""
    return code.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found. ``code`` is ``<module of the gate>.<what>``; ``decision`` the least it asks for.

    ``detail`` holds numbers and names, never content.
    """

    code: str
    decision: Decision
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Score:
    """MEMSAD's score of a write, with the threshold and the calibration window it was compared with (seed 000).

    ``nearest`` is the event id of the recall whose question gave ``s_max``, of equally near ones the latest; "" where
    none was scored against, or its state row is older than that. ``strategy`` says how it was calibrated, ``p``
    is the conformal one's. ``gap`` and ``radius`` are what the paper certifies a detection by, ``certified``
    whether the first is the larger: reported, and nothing rests on it (see
    :func:`memsluice.gate.detectors.memsad.scores.certified_radius`).
    """

    phase: str
    mode: str
    score: float | None
    s_max: float | None
    s_mean: float | None
    mu: float | None
    sigma: float | None
    kappa: float
    threshold: float | None
    bound: float | None
    window_id: int
    window_size: int
    history_size: int
    nearest: str = ""
    strategy: str = "fixed"
    p: float | None = None
    gap: float | None = None
    radius: float | None = None
    certified: bool | None = None


@dataclass(frozen=True)
class Usual:
    """What the default detector's calibration said of a write: the strategy, how well the tenant is known, the line.

    ``score`` is the evidence G, ``size`` how many landed writes it was compared with. ``p`` and ``level`` are the
    conformal strategy's p-value and alpha in force, ``threshold`` is that of a strategy of mean and deviation.
    """

    strategy: str
    phase: str
    size: int
    score: float
    p: float | None
    level: float | None
    threshold: float | None


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """An object that an event takes out of the store: what lay there, and where."""

    object_id: str
    zone: Zone
    event_id: str
    content_digest: str


@dataclass(frozen=True)
class Verdict:
    """One decision. ``sealed_offset`` is the version. ``chain_seq`` and ``chain_previous`` tie it to the tenant's
    previous verdict; *screen* sets them, since the chain is over the records as they are sent.

    A command's verdict names its ``action`` and ``target``. A release's has the tier, digests, model and place of the
    write that it lets in, and the reviewer as ``kid``.

    Lineage can be told from verdicts alone: a write's has its ``parents``, a recall's the event ids of what it
    ``returned``, an observation's its ``origin``; all of them their session. ``withdraws`` names the objects that the
    event takes out of the store: at most one of a command, whether or not it puts one in (``object_id``); of a recall
    what its look back takes.

    ``held_until_ms`` is when a held write lapses, by the policy that held it, or a rejected one that is kept; None of a
    rejected one that is not. ``target_offset`` tells which held write a command is about, since several may have one
    event id: its intake offset, None where none is known by that name.

    ``taint_causes`` names the nearest ancestors or observations that tainted (bounded). Times are Unix ms:
    ``occurred_ms`` is the producer's word, ``append_ms`` the broker's, ``decided_ms`` screen's clock, which never runs
    back.

    ``usual`` is what the default detector's calibration said of a write that it screened. ``waited`` is whether it
    waited in the overflow before it was decided; left out where it did not.
    """

    tenant: str
    event_id: str
    type: str
    decision: Decision
    reasons: tuple[str, ...]
    findings: tuple[Finding, ...]
    decided_ms: int
    topic: str
    partition: int
    offset: int
    sealed_offset: int
    kid: str
    role: str
    credential_tier: Tier
    channel: Channel
    tier: Tier
    taint: bool
    taint_causes: tuple[str, ...]
    agent: str
    principal: str
    session: str
    policy: str
    model: str
    content_digest: str
    vector_digest: str = ""
    mode: str = "enforce"
    score: Score | None = None
    object_id: str | None = None
    zone: Zone | None = None
    visibility: Visibility | None = None
    expires_ms: int | None = None
    seal_kid: str = ""
    admission_kid: str = ""
    approvers: tuple[str, ...] = ()
    action: str = ""
    target: str = ""
    occurred_ms: int = 0
    append_ms: int = 0
    parents: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    origin: str = ""
    withdraws: tuple[Withdrawal, ...] = ()
    chain_seq: int = 0
    chain_previous: str = ""
    held_until_ms: int | None = None
    target_offset: int | None = None
    usual: Usual | None = None
    waited: bool = False

    @cached_property
    def _sent(self) -> dict[str, Any]:
        record = {name: getattr(self, name) for name in _NAMES if name != "waited" or self.waited}
        record |= orjson.loads(orjson.dumps({name: record[name] for name in _NESTED}))
        return record

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as JSON values, as the audit topic and the state carry it: the one writer.

        What was read is written as it was, with the fields that the gate's version of then knew and no others: so a
        verdict that is sent again is the same bytes. Nobody changes what is returned.
        """
        return self._sent

    @staticmethod
    def from_json(record: Any) -> "Verdict":
        """Return the verdict that a record carries: the one reader. What was added since stands at its default.

        Raises SealError where the record lacks what verdicts of every version have, or has it in another form.
        """
        try:
            read = {name: reader(record[name]) for name, reader in _READERS.items() if name in record}
            verdict = Verdict(**{name: record[name] for name in _PLAIN if name in record}, **read)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SealError(f"verdict is not of this version ({type(error).__name__})") from None
        if not record.keys() >= NEEDED:
            raise SealError("verdict is not of this version (it lacks fields)")
        verdict.__dict__["_sent"] = record
        return verdict

    @property
    def intake(self) -> tuple[str, int, int]:
        """Topic, partition and offset of the intake record that was decided."""
        return self.topic, self.partition, self.offset

    def has(self, code: str) -> bool:
        """Whether a check found this."""
        return any(finding.code == code for finding in self.findings)


NEEDED = frozenset(one.name for one in fields(Verdict) if one.default is MISSING) | {
    "mode", "score", "object_id", "zone", "visibility", "expires_ms", "seal_kid", "admission_kid", "approvers",
    "chain_seq",
}  # fmt: skip
"""What a verdict of any version has. Whatever was added since is looked up as absent in old records."""
_NAMES = tuple(one.name for one in fields(Verdict))
_AS_IT_IS = (str, int, bool, str | None, int | None, Channel)
_NESTED = tuple(one.name for one in fields(Verdict) if one.type not in _AS_IT_IS)
"""Fields that are no JSON values yet. The others, which are most, need no way there and back."""
_PLAIN = tuple(name for name in _NAMES if name not in _NESTED)


def _of(kind: type[Any]) -> Callable[[Any], Any]:
    names = tuple(one.name for one in fields(kind))
    return lambda value: None if value is None else kind(**{name: value[name] for name in names if name in value})


def _finding(value: Any) -> Finding:
    return Finding(value["code"], Decision(value["decision"]), value["detail"])


def _withdrawals(values: Any) -> tuple[Withdrawal, ...]:
    """Return what is withdrawn; of a command there was once one object, or null, in the place of a list."""
    several = values or () if isinstance(values, list | None) else (values,)
    return tuple(
        Withdrawal(one["object_id"], Zone(one["zone"]), one["event_id"], one["content_digest"]) for one in several
    )


def _maybe(kind: type[Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else kind(value)


_READERS: dict[str, Callable[[Any], Any]] = {
    "decision": Decision,
    "reasons": tuple,
    "findings": lambda values: tuple(_finding(value) for value in values),
    "credential_tier": Tier,
    "tier": Tier,
    "taint_causes": tuple,
    "score": _of(Score),
    "zone": _maybe(Zone),
    "visibility": _maybe(Visibility),
    "approvers": tuple,
    "parents": tuple,
    "returned": tuple,
    "withdraws": _withdrawals,
    "usual": _of(Usual),
}
"""How each nested field is read; a test holds it to the fields there are."""
