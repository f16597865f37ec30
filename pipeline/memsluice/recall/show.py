"""Recalled entries for a person at a terminal: nothing that an entry contains acts on the terminal or hides in it."""

from datetime import UTC, datetime

from memsluice.events.models import Tier
from memsluice.recall.withheld import Withheld

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))

TIER_WORDS: dict[Tier, str] = {
    Tier.OPERATOR: "operator",
    Tier.USER_VERIFIED: "verified",
    Tier.USER_OBSERVED: "observed",
    Tier.EXTERNAL_TOOL: "tool",
    Tier.EXTERNAL_WEB: "web",
}
WITHHELD_WORDS: dict[Withheld, str] = {
    Withheld.FORGED: "written past the gate: it has no admission that the gate signed",
    Withheld.MOVED: "admitted for another tenant, zone or object than where it was found",
    Withheld.PROPERTY: "a property was changed in the store",
    Withheld.CONTENT: "the content was changed in the store",
    Withheld.VECTOR: "the vector was changed in the store",
    Withheld.ENCODER: "another encoder than the question's made the vector",
    Withheld.SCOPE: "belongs to another principal or session",
    Withheld.EXPIRED: "expired",
    Withheld.UNRECORDED: "not in the log of landed entries (yet)",
    Withheld.STALE: "an old version that was put back",
    Withheld.WITHDRAWN: "was withdrawn",
    Withheld.TIER: "less trusted than --tier-max allows",
    Withheld.INSTRUCTION: "reads like an instruction to the agent",
    Withheld.WORDING: "its wording tells agents what to do, more than its tier and reach allow",
    Withheld.MISSING: "landed, and the store does not give it: deleted or hidden there",
}


def duration(length_ms: int) -> str:
    """Return a length of time in its largest whole unit: ``3 h``, ``12 d``; ``now`` below a second."""
    for unit_ms, name in _UNITS:
        if length_ms >= unit_ms:
            return f"{length_ms // unit_ms} {name}"
    return "now"


def moment(at_ms: int) -> str:
    """Return a time (Unix ms) to the millisecond; the bare number where no calendar has it."""
    try:
        when = datetime.fromtimestamp(at_ms / 1_000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{at_ms} ms"
    return f"{when:%Y-%m-%d %H:%M:%S}.{at_ms % 1_000:03d} UTC"


def left(expires_ms: int | None, now_ms: int) -> str:
    """Return in how long an entry expires."""
    return "never" if expires_ms is None else duration(expires_ms - now_ms)
