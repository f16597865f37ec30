"""Which entry a recall carries, so that its use may let it hold longer: the gate decides, by the record alone.

Content and vector are not in the gate's state, so the record comes along, as with a command about a landed entry.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from memsluice.envelope.codec import from_json, vector_to_text
from memsluice.envelope.records import accepted_to_bytes
from memsluice.envelope.seals import Admission
from memsluice.errors import MalformedEvent, StoreError
from memsluice.events.limits import RENEWS_BYTES_MAX
from memsluice.events.models import Zone
from memsluice.recall.reader import VerifiedEntry
from memsluice.stores.base import VectorStore

if TYPE_CHECKING:  # the gate's policies are the service's to read
    from memsluice.gate.policy.model import Policy

AGAIN_MS = 3_600_000
"""An entry's version is carried once within so long: whatever the gate says of it, the next recall would hear the
same."""
CARRIED_MAX = 1_024


class Renewals:
    """Chooses at most one entry of an answer, by the policies that the gate begins with. Safe for several threads.

    ``policies`` gives a tenant's policy. Where that renews nothing by use, nothing is carried.
    """

    def __init__(self, store: VectorStore, policies: "Callable[[str], Policy]") -> None:
        self._store = store
        self._policies = policies
        self._carried: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, principal: str, session: str, entries: Iterable[VerifiedEntry], now_ms: int) -> str | None:
        """Return the record of the entry whose time is over first, of those that this asker's use may renew (JSON
        text, at most RENEWS_BYTES_MAX); None where there is none, or the store does not give it. ``now_ms`` is Unix
        milliseconds.
        """
        due = [one for one in entries if self._due(one.admission, principal, session, now_ms)]
        for entry in sorted(due, key=lambda one: one.admission.expires_ms or 0):
            if self._first(entry.admission, now_ms):
                return self._record(entry)
        return None

    def _due(self, admission: Admission, principal: str, session: str, now_ms: int) -> bool:
        own = admission.principal == principal or admission.session == session
        if own or admission.taint or admission.zone is not Zone.GUIDANCE:
            return False
        policy = self._policies(admission.tenant)
        return policy.renew_on_use.due(policy.ttl_seconds.of(admission.tier), admission.expires_ms, now_ms)

    def _first(self, admission: Admission, now_ms: int) -> bool:
        """Take note that a version is carried now; False where it was a while ago."""
        name = (admission.object_id, admission.version)
        with self._lock:
            before = self._carried.get(name)
            if before is not None and now_ms - before < AGAIN_MS:
                return False
            self._carried[name] = now_ms
            self._carried.move_to_end(name)
            if len(self._carried) > CARRIED_MAX:
                self._carried.popitem(last=False)
        return True

    def _record(self, entry: VerifiedEntry) -> str | None:
        """Return the accepted record of an entry, put together from what lies in the store: the gate verifies it."""
        admission = entry.admission
        try:
            held = self._store.held(admission.tenant, admission.zone, [admission.object_id]).get(admission.object_id)
            if held is None or (held.version, held.content) != (admission.version, entry.content):
                return None
            record = accepted_to_bytes(from_json(held.admission), held.content, vector_to_text(held.vector))
        except (StoreError, MalformedEvent):  # the answer does not need it
            return None
        return record.decode() if len(record) <= RENEWS_BYTES_MAX else None
