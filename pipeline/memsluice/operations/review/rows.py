"""Rows of the index: a held write with what became of it, as bytes and back, and the places where pages go on. Pure.

What is filtered by stands in columns of its own. What became of an entry is worked out anew from the commands about it
whenever it is read, by the function that the listing of the topics uses: a row holds no second word on it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any

import orjson

from memsluice.envelope.verdict import Decision
from memsluice.errors import InvalidArgument
from memsluice.escaping import visible
from memsluice.events.limits import OFFSET_MAX
from memsluice.events.models import Tier
from memsluice.operations.held.collect import HeldReview, judged
from memsluice.operations.held.entries import CommandOutcome, HeldState, HeldVerdict, HeldWrite, Ruled
from memsluice.operations.review import grouping

PREVIEW_CHARS_MAX = 280
"""Characters of a content that the index keeps."""
COLUMNS = (
    "tenant", "event_id", "offs", "part", "record_offs", "held_ms", "until_ms", "state", "reasons", "score", "channel",
    "agent", "principal", "session", "kid", "policy", "tier", "taint", "appeal_ms", "assignee", "claimed_by",
    "claim_until_ms", "visibility", "digest", "mode", "model", "group_id", "group_reason", "chars", "preview", "held",
    "rulings",
)  # fmt: skip
READ = "tenant, event_id, offs, part, record_offs, group_id, chars, preview, held, rulings"
"""The columns that :func:`row_of` reads."""
_OFFSET_DIGITS_MAX = len(str(OFFSET_MAX))


def is_offset(text: str) -> bool:
    """Whether a text is a number that a record's place, or a time in Unix ms, may have: no index takes a larger one."""
    return text.isdecimal() and len(text) <= _OFFSET_DIGITS_MAX and int(text) <= OFFSET_MAX


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page ends, and the next one goes on: when the last entry was held (Unix ms), and where it lies."""

    held_ms: int
    partition: int
    record_offset: int

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """Return the cursor of a text. Raises InvalidArgument."""
        parts = text.split(".")
        if len(parts) != 3 or not all(map(is_offset, parts)):
            raise InvalidArgument(f"{visible(text, 60)!r} is no place in a list: give what the page before named")
        held_ms, partition, record_offset = map(int, parts)
        return cls(held_ms, partition, record_offset)

    def __str__(self) -> str:
        return f"{self.held_ms}.{self.partition}.{self.record_offset}"


@dataclass(frozen=True, slots=True)
class HeldRow:
    """One held write of the index. ``seen.entry`` has no content: a preview of at most PREVIEW_CHARS_MAX characters.

    ``chars`` is the length of the content, ``group`` the id of its group.
    """

    seen: HeldReview
    group: str
    chars: int

    @property
    def tenant(self) -> str:
        """Its tenant."""
        return self.seen.entry.tenant

    @property
    def event_id(self) -> str:
        """Its event id."""
        return self.seen.entry.event_id

    @property
    def offset(self) -> int:
        """Its intake offset, which tells it from others of its event id."""
        return self.seen.entry.offset

    @property
    def state(self) -> HeldState:
        """What became of it."""
        return self.seen.state

    @property
    def cursor(self) -> Cursor:
        """Its place in a list."""
        entry = self.seen.entry
        return Cursor(entry.held_ms, entry.partition, entry.record_offset)


def insertion(entry: HeldWrite, age_days: int) -> dict[str, Any]:
    """Return the values of COLUMNS of an entry that was read with its content, but for its group."""
    assert entry.write is not None
    assert entry.verdict is not None
    content, held, seen = entry.write.content, entry.held, judged(entry, (), 0, age_days)
    return {
        "tenant": entry.tenant,
        "event_id": entry.event_id,
        "offs": entry.offset,
        "part": entry.partition,
        "record_offs": entry.record_offset,
        "held_ms": entry.held_ms,
        "until_ms": seen.until_ms,
        **{name: getattr(held, name) for name in ("channel", "agent", "principal", "session", "kid")},
        "tier": int(held.tier),
        "visibility": entry.write.visibility.value,
        "digest": entry.digest,
        "mode": entry.verdict.mode,
        "model": entry.verdict.model,
        "group_reason": entry.reasons[0] if entry.reasons else "",
        "chars": len(content),
        "preview": content[:PREVIEW_CHARS_MAX],
        "held": orjson.dumps(held),
        **changing(seen, ()),
    }


def changing(seen: HeldReview, rulings: Sequence[Ruled]) -> dict[str, Any]:
    """Return the values of the columns that commands about an entry change; the state is as it is until it lapses."""
    now = seen.now
    return {
        "state": seen.state.value,
        "reasons": spaced(now.reasons),
        "score": now.score,
        "policy": now.policy,
        "taint": seen.tainted,
        "appeal_ms": None if seen.appeal is None else seen.appeal.at_ms,
        "assignee": seen.assignee,
        "claimed_by": seen.claimed_by(0),
        "claim_until_ms": seen.claim_until_ms,
        "rulings": orjson.dumps(rulings),
    }


def spaced(reasons: Iterable[str]) -> str:
    """Return reason codes as the column has them: a blank before and after each, so that one is found as a whole."""
    return f" {' '.join(reasons)} "


def rulings_from_bytes(data: bytes) -> list[Ruled]:
    """Return the commands of a row."""
    return [_ruled(value) for value in orjson.loads(data)]


def _ruled(value: dict[str, Any]) -> Ruled:
    told: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in value.items()}
    told["outcome"] = CommandOutcome(told["outcome"])
    told["decision"] = None if told["decision"] is None else Decision(told["decision"])
    return Ruled(**told)


def entry_of(values: Sequence[Any]) -> HeldWrite:
    """Return the held write of the first nine values of READ."""
    tenant, event_id, offset, partition, record_offset, _, _, preview, held = values[:9]
    told = orjson.loads(held)
    verdict = HeldVerdict(**{**told, "reasons": tuple(told["reasons"]), "tier": Tier(told["tier"])})
    return HeldWrite(tenant, event_id, partition, offset, record_offset, verdict, preview)


def row_of(values: Sequence[Any], now_ms: int, age_days: int) -> HeldRow:
    """Return the row of the values of READ, as it stands at a time (Unix ms)."""
    seen = judged(entry_of(values), rulings_from_bytes(values[9]), now_ms, age_days)
    return HeldRow(seen, values[5], values[6])


def _form() -> str:
    """Return what the bytes of rows rest on; a file of another form is made anew."""
    names = [one.name for kind in (HeldVerdict, HeldWrite, Ruled) for one in fields(kind)]
    rest = (*COLUMNS, PREVIEW_CHARS_MAX, grouping.NEAR, grouping.LIVE_MAX, grouping.ID_DIGITS)
    return sha256(repr((names, rest)).encode()).hexdigest()[:16]


FORM = f"2-{_form()}"
"""Form of the index. It follows from what is kept, so that no change of that is read as if there had been none."""
