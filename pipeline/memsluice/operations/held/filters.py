"""Which held writes are asked for: by tenant, reason, time, source, score and state. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime

from memsluice.clock import duration_ms
from memsluice.envelope.verdict import rule_of
from memsluice.errors import InvalidArgument
from memsluice.operations.held.entries import HeldNow, HeldState, HeldWrite

SOURCES = ("channel", "agent", "principal", "session", "kid")
"""Fields of a verdict that say where a write came from."""


@dataclass(frozen=True, slots=True)
class HeldFilter:
    """What to look for; None is anything. Times are Unix ms, ``since_ms`` included and ``until_ms`` not.

    ``reason`` is a reason code or its module (``rates``). ``source`` is a channel, an agent, a principal, a session or
    a key id. An entry without a score has none that reaches ``min_score``. ``event_ids`` are several, any of them.
    """

    tenant: str | None = None
    event_id: str | None = None
    reason: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    source: str | None = None
    min_score: float | None = None
    states: frozenset[HeldState] | None = None
    event_ids: tuple[str, ...] | None = None

    def matches(self, entry: HeldWrite) -> bool:
        """Whether an entry is asked for, leaving aside what commands about it change."""
        return (
            (self.tenant is None or entry.tenant == self.tenant)
            and (self.event_id is None or entry.event_id == self.event_id)
            and (self.event_ids is None or entry.event_id in self.event_ids)
            and (self.since_ms is None or entry.held_ms >= self.since_ms)
            and (self.until_ms is None or entry.held_ms < self.until_ms)
            and (self.source is None or any(getattr(entry.held, name) == self.source for name in SOURCES))
        )

    def named(self) -> frozenset[bytes] | None:
        """Return the event ids that are asked for, as a record's header has them; None for any."""
        ids = self.event_ids if self.event_id is None else (self.event_id,)
        return None if ids is None else frozenset(one.encode("utf-8", "surrogateescape") for one in ids)

    def wants(self, state: HeldState, now: HeldNow) -> bool:
        """Whether entries in this state are asked for, and what holds them now."""
        return (
            (self.states is None or state in self.states)
            and (self.reason is None or any(self.reason in (c, rule_of(c)) for c in now.reasons))
            and (self.min_score is None or (now.score is not None and now.score >= self.min_score))
        )


def moment_ms(text: str, now_ms: int) -> int:
    """Return a time in Unix ms: ``30m``, ``24h`` or ``7d`` before ``now_ms``, or a date and time (UTC unless it says).

    Raises InvalidArgument.
    """
    ago_ms = duration_ms(text)
    if ago_ms is not None:
        return now_ms - ago_ms
    try:
        moment = datetime.fromisoformat(text.strip())
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return int(aware.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise InvalidArgument(
            f"{text[:40]!r} is not a time: write how long ago (30m, 24h, 7d), or a date and time (2026-11-21T14:00)"
        ) from None
