"""Recalls on the real stack, after objects were planted in the store behind the gate's back."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memsluice.clock import wall_ms
from memsluice.encoder import Encoder, load_encoder
from memsluice.events.ids import object_id
from memsluice.events.models import Recall, Visibility, Zone
from memsluice.events.names import EventType
from memsluice.readers.apart import ApartTopic
from memsluice.recall.freshness import FreshnessIndex
from memsluice.recall.recaller import Question, Recaller
from memsluice.stores.base import Scope, StoreAnswer
from memsluice.stores.weaviate.store import WeaviateStore
from memsluice.topics import names
from memsluice_lab.cast import reader_permits
from memsluice_lab.figures.bed import Bed, Sender
from memsluice_lab.figures.ledger import Ledger
from memsluice_lab.streams import Published

QUESTIONS_A_TENANT = 6
RETURNED = 5


@dataclass(slots=True)
class RecallCounts:
    """What was asked and what came back. ``planted_withheld`` counts those that a search found and recall withheld."""

    recalls: int = 0
    returned: int = 0
    unverified: int = 0
    unpublished: int = 0
    planted: int = 0
    planted_returned: int = 0
    planted_withheld: int = 0

    def sound(self) -> bool:
        """Tell whether something was asked and returned, and nothing but what was admitted."""
        clean = self.unverified == 0 and self.planted_returned == 0 and self.unpublished == 0
        return clean and self.returned > 0 and self.planted_withheld > 0


def ask_all(bed: Bed, events: Sequence[Published], ledger: Ledger) -> RecallCounts:
    """Ask questions of every tenant's own stream; half of them have an object planted that matches them best."""
    asked, expected = RecallCounts(), ledger.expected()
    signers, sender = bed.signers({event.payload.tenant for event in events}), Sender(bed)
    published: set[str] = set()

    def publish(recall: Recall) -> None:
        sender.publish(Published("reader", EventType.RECALL, recall, wall_ms(), None), signers)
        sender.flush()
        if (recall.tenant, recall.id) in sender.places:
            published.add(recall.id)

    encoder, number = load_encoder(), itertools.count()
    reader = WeaviateStore.of(bed.connection, names.WEAVIATE_RECALL)
    log = ApartTopic(bed.connection, names.USER_READER, names.STORE)
    recaller = Recaller(
        store=reader,
        encoder=encoder,
        keys=bed.store.keyring,
        permits=reader_permits(bed.store.registry, wall_ms),
        publish=publish,
        now_ms=wall_ms,
        new_id=lambda: f"asked.{next(number)}",
        freshness=FreshnessIndex(log, bed.store.keyring, names.PARTITIONS),
    )
    planted = _plant(bed, _questions(events), encoder)
    asked.planted = len(planted)
    for question in _questions(events):
        answer = recaller.ask(question)
        asked.recalls += 1
        asked.returned += len(answer.entries)
        asked.unpublished += answer.event_id not in published
        asked.planted_withheld += answer.withheld["forged"] + answer.withheld["moved"] + answer.withheld["content"]
        for entry in answer.entries:
            name = (question.tenant, question.zone, entry.admission.object_id)
            asked.planted_returned += entry.admission.object_id in planted
            asked.unverified += expected.get(name) != entry.admission.version
    reader.close()
    log.close()
    return asked


def _questions(events: Sequence[Published]) -> list[Question]:
    """Return the last questions of each tenant, asked again in sessions of their own."""
    last: dict[str, list[Question]] = {}
    for event in events:
        recall = event.payload
        if isinstance(recall, Recall):
            session = f"asked-{len(last.get(recall.tenant, ()))}"
            question = Question(recall.tenant, recall.question, "figures", recall.principal, session, k=RETURNED)
            last.setdefault(recall.tenant, []).append(question)
    return [question for questions in last.values() for question in questions[-QUESTIONS_A_TENANT:]]


def _plant(bed: Bed, questions: Sequence[Question], encoder: Encoder) -> set[str]:
    """Write, with the store's own master key, copies of real objects whose content and vector answer a question best.

    Each carries a genuine admission: of another object. Returns the planted ids.
    """
    store, planted = WeaviateStore.of(bed.connection, names.WEAVIATE_ADMIN), set[str]()
    for number, question in enumerate(questions[::2]):
        vector = encoder.encode([question.text])[0]
        scope = Scope(question.principal, "")
        hits = store.search(question.tenant, Zone.GUIDANCE, vector, 1, scope, "default", wall_ms())
        if not hits:
            continue
        new_id = object_id(
            tenant=question.tenant,
            zone=Zone.GUIDANCE,
            visibility=Visibility.PRINCIPAL,
            owner=question.principal,
            namespace="default",
            key=None,
            event_id=f"planted.{number}",
        )
        false = replace(
            hits[0].object, object_id=new_id, event_id=f"planted.{number}", content=question.text, vector=vector
        )
        if store.upsert([false])[0].outcome is StoreAnswer.LANDED:
            planted.add(new_id)
    store.close()
    return planted
