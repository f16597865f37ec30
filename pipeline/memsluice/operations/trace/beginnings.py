"""Whole ids of events that begin as what somebody asked for: a screen or a log may have shown a shortened one."""

from memsluice.envelope.keys import Keyring
from memsluice.events.headers import EVENT_ID
from memsluice.events.records import Record
from memsluice.operations.trace.verdicts import read

CHARS_MIN = 4
"""Fewer letters begin too many ids to be worth a hint."""
FOUND_MAX = 5


class Beginnings:
    """Takes audit records and keeps ids, FOUND_MAX at most, that are longer than what was asked for and begin so.

    An id counts where the seal of its verdict holds.
    """

    def __init__(self, keyring: Keyring, asked: str, tenant: str | None = None) -> None:
        self._keyring = keyring
        self._tenant = tenant
        self._asked = asked
        self._header = asked.encode("utf-8", "surrogateescape") if len(asked) >= CHARS_MIN else None
        self.found: dict[str, None] = {}

    def take(self, record: Record) -> None:
        """Learn from one record."""
        if self._header is None or len(self.found) >= FOUND_MAX:
            return
        named = [value for name, value in record.headers if name == EVENT_ID and value is not None]
        if not any(value.startswith(self._header) and value != self._header for value in named):
            return
        verdict = read(self._keyring, record)
        # A header says which records are worth opening; no seal covers it, so what counts is what the verdict says.
        if verdict is None or self._tenant not in (None, verdict.tenant):
            return
        if verdict.event_id.startswith(self._asked) and verdict.event_id != self._asked:
            self.found[verdict.event_id] = None
