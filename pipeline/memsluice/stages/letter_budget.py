"""How much of its dead letters each sender may keep: whoever floods the intake takes nobody else's room.

The dead-letter topic is kept by age and, oldest first, by size. A bound for each sender and day, of the broker's append
time and never of a clock, keeps the flood of one from evicting what the others left. What does not fit leaves a note in
its place, and beyond that nothing but its marker in the ordered input, which has the reason. Its bytes lie in the
intake topic as long as that is kept, at the place that note and marker name.

Counts are a worker's, in memory: a worker that takes a partition over counts its day anew. A record that comes again to
the same worker is decided as before.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum

from memsluice.events.records import Record
from memsluice.log import get_logger

LOG = get_logger(__name__)
NOBODY = ""
"""Sender of what no known key has signed. All of it shares one account: who signs nothing can claim to be anybody."""
WINDOW_MS = 86_400_000
LETTER_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of dead letters of one sender, of one partition, in one window."""
NOTE_BYTES_MAX = 1024 * 1024
"""Bytes of notes besides. With 90 days of both, nobody's flood stays below the topic's 1 GiB a partition."""
ACCOUNTS_MAX = 4_096
"""Senders of all partitions and windows that are kept; later ones share nobody's account."""
OTHERS_WINDOWS = 2
"""Windows by which one partition may be behind another and keep its senders' accounts."""
DECISIONS_MAX = 8_192
"""Records that are remembered in case they come again: more than are ever in flight."""


class Kept(StrEnum):
    """What is kept of a dead letter: all of it, a note without its bytes, or its marker in the ordered input alone."""

    WHOLE = "whole"
    NOTED = "noted"
    MARKED = "marked"


@dataclass(slots=True)
class _Account:
    letter_bytes: int = 0
    note_bytes: int = 0
    told: Kept = Kept.WHOLE


class LetterBudget:
    """Accounts of one worker. Safe for several threads: batches of *seal* are worked on at the same time."""

    def __init__(
        self,
        letter_bytes_max: int = LETTER_BYTES_MAX,
        note_bytes_max: int = NOTE_BYTES_MAX,
        accounts_max: int = ACCOUNTS_MAX,
    ) -> None:
        self._letter_bytes_max = letter_bytes_max
        self._note_bytes_max = note_bytes_max
        self._accounts_max = accounts_max
        self._windows: dict[int, int] = {}
        self._accounts: dict[tuple[int, int, str], _Account] = {}
        self._decided: OrderedDict[tuple[str, int, int], Kept] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, record: Record, sender: str, letter_bytes: int, note_bytes: int) -> Kept:
        """Return what is kept of a record's dead letter of so many bytes, and put it on its sender's account."""
        place = (record.topic, record.partition, record.offset)
        with self._lock:
            if place in self._decided:
                return self._decided[place]
            account = self._account(record, sender)
            if account.letter_bytes + letter_bytes <= self._letter_bytes_max:
                account.letter_bytes += letter_bytes
                kept = Kept.WHOLE
            elif account.note_bytes + note_bytes <= self._note_bytes_max:
                account.note_bytes += note_bytes
                kept = Kept.NOTED
            else:
                kept = Kept.MARKED
            self._decided[place] = kept
            if len(self._decided) > DECISIONS_MAX:
                self._decided.popitem(last=False)
            self._tell(account, kept, record, sender)
            return kept

    def _account(self, record: Record, sender: str) -> _Account:
        window, partition = record.timestamp_ms // WINDOW_MS, record.partition
        latest = self._windows.get(partition, window)
        if window > latest or partition not in self._windows:
            self._windows[partition] = window
            self._close_accounts(partition, window)
        key = (partition, window, sender)
        if key not in self._accounts and len(self._accounts) >= self._accounts_max:
            key = (partition, window, NOBODY)
        return self._accounts.setdefault(key, _Account())

    def _close_accounts(self, partition: int, window: int) -> None:
        """Close those of a partition's past windows, and of others' that came to no window for long: they are another
        worker's by now."""
        newest = max(self._windows.values())
        for owner, past, sender in list(self._accounts):
            if past < newest - OTHERS_WINDOWS or (owner == partition and past < window - 1):
                del self._accounts[owner, past, sender]

    def _tell(self, account: _Account, kept: Kept, record: Record, sender: str) -> None:
        """Say once a window that a sender's letters are no longer kept whole, and once that they are not even noted."""
        if kept is Kept.WHOLE or kept is account.told or account.told is Kept.MARKED:
            return
        account.told = kept
        LOG.warning(
            "a sender's dead letters are more than are kept of it in a day: their bytes are in the intake topic alone",
            kept=kept.value,
            kid=sender or "nobody",
            topic=record.topic,
            partition=record.partition,
            first_offset=record.offset,
        )
