"""Influence taint, an option: what a session saw taints a write that shares words with it.

A bounded number of observations is remembered by the hashes of their words, never by their content. Whatever can't be
compared counts as influence: an observation without content or with too many words, one beyond the bound, a write with
hardly a word of its own. A paraphrase shares few words: who needs the boundary to hold keeps session taint.
"""

from memsluice.envelope.codec import sketch_words
from memsluice.events.models import Tier
from memsluice.gate.state.kinds import SEEN, SeenRow
from memsluice.gate.state.rows import SEPARATOR, TenantRows

OBSERVATIONS_MAX = 16
"""Of a session, with at most 1,024 words each (5.5 KiB a row)."""
SHARE_MIN = 0.5
"""Share of a write's words that, found in one observation, is influence."""
WORDS_MIN = 3
LIVES_MS = 2 * 365 * 86_400_000
"""A row that is gone while its session is still used counts as influence."""


def keep(rows: TenantRows, session: str, seen: int, sketch: str, cause: str, tier: Tier, now_ms: int) -> bool:
    """Remember an observation's words; return False where they can't be, so that it taints whatever follows."""
    if not sketch or seen >= OBSERVATIONS_MAX:
        return False
    row = SeenRow(words=sketch, cause=cause, tier=int(tier), expires_ms=now_ms + LIVES_MS)
    rows.put(SEEN, _row_id(session, seen), row)
    return True


def of(rows: TenantRows, session: str, seen: int, sketch: str) -> tuple[tuple[str, ...], int]:
    """Return the causes of what influenced a write with these words, and the worst tier among them."""
    words, causes, worst = sketch_words(sketch), list[str](), 0
    for number in range(seen):
        row = rows.get(SEEN, _row_id(session, number))
        if row is None:
            causes.append("unknown:observation")
            worst = max(worst, int(Tier.EXTERNAL_WEB))
        elif len(words) < WORDS_MIN or len(words & sketch_words(row.words)) >= SHARE_MIN * len(words):
            causes.append(row.cause)
            worst = max(worst, row.tier)
    return tuple(causes), worst


def _row_id(session: str, number: int) -> str:
    return SEPARATOR.join((session, str(number)))
