"""Plays the day, or a stream, on a site, and keeps the ledger of it."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from memsluice.client.build import build
from memsluice.encoder import Encoder
from memsluice.envelope.dsse import Signer
from memsluice.events.models import AnyPayload, Observation, Origin, Recall
from memsluice.recall.recaller import Recaller
from memsluice.stores.base import StoredObject
from memsluice.topics.names import COMMANDS, EVENTS
from memsluice_lab.cast import Signers
from memsluice_lab.demo.forge import command_of, message_of, write_of
from memsluice_lab.demo.ledger import Ledger, Sent
from memsluice_lab.demo.sample.script import Act, Scene
from memsluice_lab.demo.site import Message, Site
from memsluice_lab.demo.store_attacker import STORE_ACTS, Burglar
from memsluice_lab.streams import Published, Unsendable, signed

KINDS = {Act.OPEN: "open", Act.WRITE: "write", Act.ASK: "ask", Act.SEE: "see", Act.COMMAND: "command"}
OnScene = Callable[[float, str], None]
"""Told (minute of the day, what happened) after each scene."""


class Player:
    """Plays scenes. ``run`` is put before event and session ids, so that a home can be played on again."""

    def __init__(self, site: Site, ledger: Ledger, signers: Signers, encoder: Encoder, run: str) -> None:
        self._site = site
        self._ledger = ledger
        self._signers = signers
        self._run = run
        self._numbers = 0
        self._tagged: dict[str, tuple[Scene, str, Message]] = {}
        self._keyed: dict[tuple[str, str], str] = {}
        self._old: dict[str, StoredObject] = {}
        self._returned: dict[str, tuple[str, ...]] = {}
        self._asking: Scene | None = None
        self.untried = 0
        self.burglar = Burglar(site.store, encoder)
        self.recaller: Recaller = site.recaller(encoder, self._publish_recall, self._new_id)

    def warm_up(self, tenants: Iterable[str]) -> None:
        """Open one session a tenant and wait for its verdict: until then workers may still be joining."""
        for tenant in tenants:
            self._scene(Scene(0, tenant, Act.OPEN, "warm-up", "demo", "demo", source="runtime"))
        self._site.settle()

    def play(self, scenes: Iterable[Scene], on_scene: OnScene) -> None:
        """Play scenes in their order, then wait until everything has a fate, and look for what was smuggled in."""
        for scene in scenes:
            self._site.at(scene.minute)
            self._scene(scene)
            on_scene(scene.minute, scene.act.value)
        self._site.settle()
        if self.burglar.breaks:
            self.burglar.probe(self.recaller, "home", f"{self._run}.probe")
            self._site.settle()

    def play_stream(self, items: Iterable[Published | Unsendable], on_scene: OnScene, start_ms: int) -> int:
        """Play a stream's events in order; return how many lines no producer could have published."""
        unsendable = 0
        for item in items:
            if isinstance(item, Unsendable):
                unsendable += 1
                continue
            minute = (item.append_ms - start_ms) / 60_000
            self._site.at(minute)
            kind = {"memory.recall.v1": "ask", "memory.write.v1": "write"}.get(item.type.value, "see")
            text = getattr(item.payload, "content", None) or getattr(item.payload, "question", "")
            self._send(EVENTS, signed(item, self._signers), Scene(
                minute, item.payload.tenant, Act.WRITE, source=item.source, text=text or ""
            ), "open" if item.seq is None else kind)  # fmt: skip
            on_scene(minute, kind)
        self._site.settle()
        return unsendable

    def _new_id(self) -> str:
        self._numbers += 1
        return f"{self._run}.{self._numbers:05d}"

    def _scene(self, scene: Scene) -> None:
        if scene.act in STORE_ACTS:
            self._site.settle()
            self._break_in(scene)
        elif scene.act is Act.ASK:
            self._ask(scene)
        elif scene.act is Act.REPLAY:
            self._send(EVENTS, self._tagged[scene.about][2], scene, "raw")
        elif scene.act in (Act.COMMAND, Act.FOREIGN_COMMAND):
            self._site.settle()  # an operator orders about what is there; across topics a broker keeps no order
            command = command_of(scene, self._new_id(), self._site.now_ms())
            self._send(COMMANDS, self._build(command, self._signers[scene.tenant, scene.source]), scene, "command")
        elif scene.act in KINDS:
            self._event(scene)
        else:
            reused = self._tagged[scene.about][1] if scene.act is Act.REUSE_ID else None
            self._send(EVENTS, message_of(scene, self._fields(scene, reused), self._signers), scene, "raw")

    def _fields(self, scene: Scene, event_id: str | None = None) -> dict[str, Any]:
        return {
            "id": event_id or self._new_id(),
            "tenant": scene.tenant,
            "time": datetime.fromtimestamp(self._site.now_ms() / 1000, UTC),
            "agent": scene.agent,
            "principal": scene.principal,
            "session": f"{self._run}.{scene.session}",
        }

    def _build(self, payload: AnyPayload, signer: Signer) -> Message:
        return build(payload, [signer], source=f"/{payload.tenant}/{signer.kid}")

    def _event(self, scene: Scene) -> None:
        fields = self._fields(scene)
        payload: AnyPayload
        if scene.act is Act.WRITE:
            self._keep_old(scene)
            payload = write_of(scene, fields).model_copy(update={"parents": self._parents(scene)})
        else:
            origin = Origin.OPEN if scene.act is Act.OPEN else Origin(scene.origin)
            payload = Observation(**fields, origin=origin, content=scene.text or None)
        message = self._build(payload, self._signers[scene.tenant, scene.source])
        if scene.tag:
            self._tagged[scene.tag] = (scene, payload.id, message)
        self._send(EVENTS, message, scene, KINDS[scene.act])

    def _parents(self, scene: Scene) -> tuple[str, ...]:
        parents: list[str] = []
        for parent in scene.parents:
            if parent == "*":
                parents += self._returned.get(scene.session, ())
            else:
                parents.append(self._tagged[parent][1] if parent in self._tagged else parent)
        return tuple(dict.fromkeys(parents))

    def _send(self, topic: str, message: Message, scene: Scene, kind: str) -> None:
        before_s = self._ledger.clock_s()
        place = self._site.send(topic, message)
        self._ledger.note(Sent(
            place, kind, scene.tenant, scene.source, scene.text, before_s, scene.attacker, scene.act.value
        ))  # fmt: skip

    def _ask(self, scene: Scene) -> None:
        self._site.catch_up()
        self._asking = scene
        answer = self.recaller.recall(
            scene.tenant,
            scene.text,
            agent=scene.agent,
            principal=scene.principal,
            session=f"{self._run}.{scene.session}",
        )
        self._returned[scene.session] = tuple(entry.admission.event_id for entry in answer.entries)

    def _publish_recall(self, recall: Recall) -> None:
        scene = self._asking or Scene(0, recall.tenant, Act.ASK, source="reader")
        scene = scene if scene.text == recall.question else Scene(
            0, recall.tenant, Act.ASK, source="reader", text=recall.question
        )  # fmt: skip
        self._send(EVENTS, self._build(recall, self._signers[recall.tenant, "reader"]), scene, "ask")

    def _keep_old(self, scene: Scene) -> None:
        """Remember how an entry lay in the store before a write of the same key replaces it, for the burglar."""
        if scene.key is None:
            return
        earlier = self._keyed.get((scene.tenant, scene.key))
        if earlier is not None:
            self._site.settle()
            old_scene, event_id, _ = self._tagged[earlier]
            found = self.burglar.find(old_scene, event_id)
            if found is not None:
                self._old[earlier] = found
        if scene.tag:
            self._keyed[scene.tenant, scene.key] = scene.tag

    def _break_in(self, scene: Scene) -> None:
        if scene.act is Act.STORE_INSERT:
            self.burglar.insert(scene)
            return
        if scene.act is Act.STORE_ROLLBACK:
            target = self._old.get(scene.about)
        else:
            aim, event_id, _ = self._tagged[scene.about]
            target = self.burglar.find(aim, event_id)
        if target is None:
            self.untried += 1
        elif scene.act is Act.STORE_ROLLBACK:
            self.burglar.roll_back(scene, target)
        else:
            self.burglar.tamper(scene, target)
