"""What somebody with access to the vector store can do: insert, change, and put back. Bypasses the gate on purpose."""

from dataclasses import dataclass, replace
from uuid import UUID, uuid5

import numpy as np

from memsluice.encoder import Encoder
from memsluice.envelope.codec import canonical
from memsluice.envelope.dsse import sign
from memsluice.envelope.keys import HmacKey
from memsluice.errors import StateError
from memsluice.events.models import Zone
from memsluice.events.names import ADMISSION
from memsluice.recall.recaller import Recaller
from memsluice.stores.base import Scope, StoreAnswer, StoredObject, VectorStore
from memsluice_lab.demo.sample.script import Act, Scene

_NAMESPACE = UUID("4f0c7a52-6c1e-5b0b-9a51-0d3f8f2f7b1e")
SEARCH_K = 50


@dataclass(slots=True)
class Break:
    """One attempt on the store: whose memory, and the text or version that must not come back out."""

    scene: Scene
    object_id: str
    version: int
    content: str
    returned: bool | None = None


class Burglar:
    """Holds *land*'s access to the store, and nothing of the gate's keys."""

    def __init__(self, store: VectorStore, encoder: Encoder) -> None:
        self._store = store
        self._encoder = encoder
        self.breaks: list[Break] = []

    def find(self, scene: Scene, event_id: str) -> StoredObject | None:
        """Return the object of a write as it lies in the store now."""
        scope = Scope(scene.principal, scene.session)
        vector = self._encoder.encode([scene.text])[0]
        for hit in self._store.search(scene.tenant, Zone.GUIDANCE, vector, SEARCH_K, scope, "default", 0):
            if hit.object.event_id == event_id:
                return hit.object
        return None

    def insert(self, scene: Scene) -> None:
        """Write an object of one's own, with an admission signed by a key that the gate never had."""
        object_id = str(uuid5(_NAMESPACE, scene.text))
        claim = {"object_id": object_id, "tenant": scene.tenant, "version": 1, "tier": 1}
        envelope = sign(ADMISSION, canonical(claim), [HmacKey("admission-lookalike", bytes(32))])
        item = StoredObject(
            object_id=object_id,
            version=1,
            tenant=scene.tenant,
            zone=Zone.GUIDANCE,
            visibility="principal",
            owner=scene.principal,
            namespace="default",
            event_id="night-shift",
            tier=1,
            expires_ms=None,
            content=scene.text,
            vector=self._encoder.encode([scene.text])[0].astype(np.float32),
            admission=canonical(envelope).decode(),
        )
        self._put(scene, item)

    def tamper(self, scene: Scene, item: StoredObject) -> None:
        """Change what a landed entry says, and leave its admission as it is."""
        self._put(scene, replace(item, content=scene.text))

    def roll_back(self, scene: Scene, old: StoredObject) -> None:
        """Put an older, validly sealed version of an entry back in the place of the current one."""
        self._store.delete(old.tenant, old.zone, [old.object_id])
        self._put(scene, old)

    def _put(self, scene: Scene, item: StoredObject) -> None:
        result = self._store.upsert([item])[0]
        if result.outcome is not StoreAnswer.LANDED:
            raise StateError(f"the sample's attack on the store did not happen: {result.outcome.value} {result.detail}")
        self.breaks.append(Break(scene, item.object_id, item.version, item.content))

    def probe(self, recaller: Recaller, agent: str, session: str) -> None:
        """Ask for exactly what was smuggled in, and note whether it came back."""
        for attempt in self.breaks:
            scene = attempt.scene
            found = recaller.recall(
                scene.tenant, attempt.content, agent=agent, principal=scene.principal, session=session
            )
            attempt.returned = any(entry.content == attempt.content for entry in found.entries)


STORE_ACTS = frozenset({Act.STORE_INSERT, Act.STORE_TAMPER, Act.STORE_ROLLBACK})
