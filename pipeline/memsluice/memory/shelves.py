"""The documents of many sessions on one gate: each session is opened once, and the longest unused is forgotten."""

import threading
from collections import OrderedDict

from memsluice.client.requests import Session
from memsluice.events.models import Zone
from memsluice.memory.gate import Gate
from memsluice.memory.memory import TIMEOUT_S, Memory, Wait
from memsluice.memory.shelf import Shelf

SHELVES_MAX = 1_000
"""Sessions that are kept; one that comes back later is opened once more, which changes nothing."""


class Shelves:
    """Shelves of one namespace, by session. Safe for several threads; the rest is as for a Memory."""

    def __init__(
        self,
        gate: Gate,
        namespace: str,
        *,
        wait: Wait = "landed",
        timeout_s: float = TIMEOUT_S,
        opens: bool = True,
        zone: Zone = Zone.GUIDANCE,
    ) -> None:
        self._gate = gate
        self._namespace = namespace
        self._wait: Wait = wait
        self._timeout_s = timeout_s
        self._opens = opens
        self._zone = zone
        self._lock = threading.Lock()
        self._shelves: OrderedDict[Session, Shelf] = OrderedDict()

    def of(self, session: Session) -> Shelf:
        """Return a session's shelf. Raises InvalidArgument for another tenant's."""
        with self._lock:
            found = self._shelves.get(session)
            if found is None:
                memory = Memory(
                    self._gate, session, namespace=self._namespace, wait=self._wait, timeout_s=self._timeout_s,
                    opens=self._opens, zone=self._zone,
                )  # fmt: skip
                found = self._shelves[session] = Shelf(memory)
            self._shelves.move_to_end(session)
            if len(self._shelves) > SHELVES_MAX:
                self._shelves.popitem(last=False)
        return found
