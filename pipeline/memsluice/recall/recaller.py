"""Ask a tenant's memory: search, verify, publish what will be returned, and only then return it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self

from memsluice.client import arguments
from memsluice.client.build import make
from memsluice.client.options import WriterOptions
from memsluice.client.session import AgentSession
from memsluice.client.writer import RecallChannel
from memsluice.clock import wall_ms
from memsluice.deployment.connection import Connection
from memsluice.encoder.base import Encoder, encode, space_of_encoder
from memsluice.envelope.codec import Vector, vector_from_text, vector_to_text
from memsluice.envelope.keys import Keyring
from memsluice.errors import LimitExceeded, MalformedEvent, StoreError, StoreUnavailable
from memsluice.events.limits import RETURNED_MAX
from memsluice.events.models import Recall, Returned, Tier, Zone
from memsluice.keystore.store import KeyStore
from memsluice.recall import tracing
from memsluice.recall.instructions.checked import Checked
from memsluice.recall.instructions.patterns import PatternCheck
from memsluice.recall.instructions.policy import InstructionCheck
from memsluice.recall.missing import Freshness
from memsluice.recall.reader import RecallQuery, Selection, VerifiedEntry
from memsluice.recall.renewing import Renewals
from memsluice.recall.searching import Searcher
from memsluice.recall.wanted import Every, Nearest, Wanted
from memsluice.recall.withheld import Withheld
from memsluice.stores.base import Scope, VectorStore, check_encoder
from memsluice.topics.names import PARTITIONS, STORE, USER_READER, WEAVIATE_RECALL

Permits = Callable[[Recall], None]
"""Raises NotPermitted or ExpiredKey for a recall (nothing returned yet) that the reader's credential may not publish.

``RecallChannel.check`` is one. The gate checks the registry's grants again, but only after content was shown.
"""
Publish = Callable[[Recall], None]
"""Publishes a recall and returns once the broker (or the local log) has acknowledged it; raises otherwise."""
Narrow = Callable[[Sequence[VerifiedEntry]], Sequence[VerifiedEntry]]
"""Says which of the entries found will be shown at all: only those are in the recall's event, and in the answer."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer: verified entries, the nearest, better tiers first, and how many were withheld, by reason.

    Among the reasons is ``missing``: what the log says lies in this scope and the store does not give.
    ``incomplete`` says that so many were withheld that the search ended at its bound before it had k entries.
    ``as_data`` marks the research mode: content of the external zone, to be handed on as data and never as guidance.
    ``event_id`` is the recall's event, which was acknowledged before this object came to be.
    """

    entries: tuple[VerifiedEntry, ...]
    withheld: Counter[str]
    event_id: str
    as_data: bool
    incomplete: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """Who asks what, and where. Strings as in :class:`~memsluice.events.models.Recall`."""

    tenant: str
    text: str
    agent: str
    principal: str
    session: str
    namespace: str = "default"
    zone: Zone = Zone.GUIDANCE
    k: int = field(default=5)
    tier_max: Tier = Tier.EXTERNAL_WEB


class Named(NamedTuple):
    """An entry by its names: the object's id, and the id of the write that it came of."""

    object_id: str
    event_id: str


class Recaller:
    """Reads memory for agents. Give it a reader's key for the store and a reader's credential behind ``publish``.

    ``instructions`` reads what would be shown; by default the published patterns alone do, and the wording detector
    with them where it is a :class:`~memsluice.recall.instructions.detectors.DetectorCheck` (extra ``gate``).
    ``freshness`` is what the log says is current (:class:`~memsluice.recall.freshness.FreshnessIndex`); with None,
    which has to be said, an old version that somebody put back into the store is returned: its signature holds.
    ``renewals`` chooses what a recall carries so that its use may let it hold longer; by default it carries nothing.
    ``new_id`` gives event ids, ``now_ms`` Unix ms.
    """

    def __init__(
        self,
        *,
        store: VectorStore,
        encoder: Encoder,
        keys: Callable[[], Keyring],
        permits: Permits,
        publish: Publish,
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
        freshness: Freshness | None,
        instructions: InstructionCheck | None = None,
        renewals: Renewals | None = None,
    ) -> None:
        self._store = store
        self._encoder = encoder
        self._space = space_of_encoder(encoder)
        self._checked: set[Zone] = set()
        self._permits = permits
        self._publish = publish
        self._now_ms = now_ms
        self._new_id = new_id
        self._searcher = Searcher(store, keys, freshness)
        self._instructions = PatternCheck() if instructions is None else instructions
        self._renewals = renewals

    @classmethod
    @contextmanager
    def open_local(
        cls, *, tenant: str, home: Path | None = None, instructions: Callable[[Encoder], InstructionCheck] | None = None
    ) -> Iterator[Self]:
        """Give a recaller of a home's stack with the newest reader's credential for a tenant, and close it afterwards.

        ``instructions`` makes what reads entries before they are shown, with the memory's encoder.

        It checks what it finds against the log of what landed, and carries what the home's policy file lets a use
        renew. Raises ConfigError, which says what to run, where stack or credential are missing, PolicyError for a
        policy file that is not valid, InvalidArgument for an argument of another type, BrokerUnavailable and
        StoreUnavailable.
        """
        arguments.tenant(tenant)
        arguments.home(home)
        from memsluice.deployment.home import Home
        from memsluice.encoder import load_encoder  # the model's runtime, and the store's client
        from memsluice.gate.policy.model import load_or_default
        from memsluice.readers.apart import ApartTopic
        from memsluice.recall.freshness import FreshnessIndex
        from memsluice.stores.opening import open_store

        connection, keys = Connection.load(home), KeyStore(home)
        policies = load_or_default(Home.at(home).policy_file)
        with ExitStack() as opened:
            channel = opened.enter_context(
                RecallChannel.open_local(tenant=tenant, home=home, options=WriterOptions(linger_ms=0))
            )
            store = open_store(connection, WEAVIATE_RECALL)
            opened.callback(store.close)
            log = ApartTopic(connection, USER_READER, STORE)
            opened.callback(log.close)

            def publish(event: Recall) -> None:
                channel.publish(event).result()

            encoder = load_encoder()
            recaller = cls(
                store=store, encoder=encoder, keys=keys.keyring, permits=channel.check, publish=publish,
                now_ms=wall_ms, new_id=channel.new_id, freshness=FreshnessIndex(log, keys.keyring, PARTITIONS),
                instructions=None if instructions is None else instructions(encoder),
                renewals=Renewals(store, policies.of),
            )  # fmt: skip
            opened.callback(recaller.close)
            yield recaller

    def close(self) -> None:
        """End what runs beside the answers. Store and log stay their owner's to close, after this."""
        self._searcher.close()

    def recall(
        self,
        tenant: str,
        question: str,
        *,
        agent: str,
        principal: str,
        session: str,
        namespace: str = "default",
        k: int = 5,
        zone: Zone = Zone.GUIDANCE,
        tier_max: Tier = Tier.EXTERNAL_WEB,
    ) -> Recalled:
        """Return the nearest verified entries after their recall event was acknowledged, better tiers first.

        A question for guidance searches the guidance partition and no other. ``zone`` external is the research mode:
        outside content, as data. ``tier_max`` leaves out what is less trusted than that.

        Raises ConfigError where the memory holds another encoder's vectors, MalformedEvent or LimitExceeded for bad
        arguments, NotPermitted before anything is searched for somebody whom the reader may not speak for,
        StoreUnavailable, BrokerUnavailable, and whatever ``publish`` raises: then nothing was shown.
        """
        return self.ask(Question(tenant, question, agent, principal, session, namespace, zone, k, tier_max))

    def recall_in(
        self,
        session: AgentSession,
        question: str,
        *,
        namespace: str = "default",
        k: int = 5,
        zone: Zone = Zone.GUIDANCE,
        tier_max: Tier = Tier.EXTERNAL_WEB,
    ) -> Recalled:
        """As :meth:`recall`, for an agent's session: the event keeps its place among the session's other events.

        Returns once those called before it are acknowledged, too. Raises EarlierFailed where one of them failed.
        """
        whose = session.session

        def publish(event: Recall) -> None:
            session.publish(event).result()

        asked = Question(
            whose.tenant, question, whose.agent, whose.principal, whose.session, namespace, zone, k, tier_max
        )
        return self.ask(asked, publish)

    def ask(
        self,
        question: Question,
        publish: Publish | None = None,
        *,
        wanted: Wanted | None = None,
        narrow: Narrow = tuple,
    ) -> Recalled:
        """As :meth:`recall`; ``publish`` is used instead of the one it was made with. One span, ``search_memory``.

        ``wanted`` is searched for instead of the ``question.k`` nearest, and ``narrow`` says which of it will be shown.
        """
        with tracing.question(
            tenant=question.tenant,
            zone=question.zone,
            agent=question.agent,
            principal=question.principal,
            session=question.session,
            k=question.k,
        ) as span:
            answer = self._answer(question, publish or self._publish, wanted or Nearest(question.k), narrow)
            span.set_attribute("memsluice.event.id", answer.event_id)
            span.set_attribute("gen_ai.memory.search.result.count", len(answer.entries))
            span.set_attribute("memsluice.recall.withheld", answer.withheld.total())
            span.set_attribute("memsluice.recall.missing", answer.withheld[Withheld.MISSING.value])
            span.set_attribute("memsluice.recall.incomplete", answer.incomplete)
        return answer

    def look_up(
        self,
        question: Question,
        ids: Sequence[str] | None = None,
        publish: Publish | None = None,
        *,
        narrow: Narrow = tuple,
    ) -> Recalled:
        """Return entries by their object ids, or with None all that lie in the question's scope and zone.

        Each is verified and published as an answer is; nothing is searched, so their similarity says nothing, and what
        the question says is only told. Raises what :meth:`recall` does, and ScopeTooLarge where more lie there than
        can be named.
        """
        draft = self._event(question, (), None, named=True)
        self._permits(draft)
        asked = self._query(question, _some_vector(self._space.dimensions))
        selection = self._searcher.named(asked, ids, Checked(Every(), self._instructions))
        told, shown = selection.counts(), tuple(narrow(selection.kept))
        for start in range(0, len(shown) or 1, RETURNED_MAX):
            part = shown[start : start + RETURNED_MAX]
            event_id = draft.id if start == 0 else self._new_id()
            event = self._event(question, part, None, event_id=event_id, withheld=told, named=True)
            (publish or self._publish)(event)
            told = Counter()
        return Recalled(shown, selection.counts(), draft.id, question.zone is Zone.EXTERNAL, selection.incomplete)

    def lies(self, question: Question, ids: Sequence[str]) -> tuple[Named, ...]:
        """Return the names of those objects that lie in the question's scope and hold; nothing is shown or published.

        Raises StoreUnavailable, and StoreError where the log tells nothing.
        """
        asked = self._query(question, _some_vector(self._space.dimensions))
        found = self._searcher.named(asked, ids, Every()).kept
        return tuple(Named(entry.admission.object_id, entry.admission.event_id) for entry in found)

    def would_answer(self, question: Question) -> tuple[tuple[Named, ...], Counter[str]]:
        """Return the names of what would answer a question now, nearest first, and how many entries would be withheld,
        by reason: nothing of it is shown or published.

        For known-good questions, whose answers nobody is given. Raises what :meth:`recall` does before it publishes.
        """
        _draft, _vector, selection = self._found(question, Nearest(question.k))
        kept = sorted(selection.kept, key=lambda entry: -entry.similarity)
        names = tuple(Named(entry.admission.object_id, entry.admission.event_id) for entry in kept)
        return names, selection.counts()

    def _answer(self, question: Question, publish: Publish, wanted: Wanted, narrow: Narrow) -> Recalled:
        draft, vector_text, selection = self._found(question, wanted)
        shown = tuple(narrow(selection.kept))
        renews = None
        if self._renewals is not None:
            renews = self._renewals.of(question.principal, question.session, shown, self._now_ms())
        event = self._event(question, shown, vector_text, event_id=draft.id, withheld=selection.counts(), renews=renews)
        publish(event)
        as_data = question.zone is Zone.EXTERNAL
        return Recalled(shown, selection.counts(), event.id, as_data, selection.incomplete)

    def _found(self, question: Question, wanted: Wanted) -> tuple[Recall, str, Selection]:
        """Return the recall's event as far as it is known before the search, the question's vector, and what holds."""
        if not 1 <= question.k <= RETURNED_MAX:
            raise LimitExceeded(f"{question.k}, 1 to {RETURNED_MAX} allowed", field="k")
        draft = self._event(question, (), None)  # limits are checked before anything is encoded
        self._permits(draft)
        vector = encode(self._encoder, [question.text])[0]
        if not vector.any():
            raise MalformedEvent("the encoder finds nothing in it: its vector has no length", field="question")
        vector_text = vector_to_text(vector)
        asked = self._query(question, vector_from_text(vector_text))
        return draft, vector_text, self._of_my_encoder(asked, Checked(wanted, self._instructions))

    def _query(self, question: Question, vector: Vector) -> RecallQuery:
        return RecallQuery(
            tenant=question.tenant,
            zone=question.zone,
            scope=Scope(question.principal, question.session),
            namespace=question.namespace,
            question=vector,
            now_ms=self._now_ms(),
            tier_max=question.tier_max,
            model=self._space.model,
        )

    def _of_my_encoder(self, asked: RecallQuery, wanted: Wanted) -> Selection:
        """Search; raise ConfigError where the zone's vectors are of another encoder than the question's.

        What was found tells. The store is asked only where nothing was the first time, or entries of another encoder,
        and about this zone alone: a recall for guidance does not even name another partition.
        """
        try:
            selection = self._searcher.verified(asked, wanted)
        except StoreUnavailable:
            raise
        except StoreError:  # perhaps because the vectors there are of another length
            check_encoder(self._store, self._space, asked.zone)
            raise
        of_another = Withheld.ENCODER in selection.withheld.values()
        if not selection.kept and (of_another or asked.zone not in self._checked):
            check_encoder(self._store, self._space, asked.zone)
        self._checked.add(asked.zone)
        return selection

    def _event(
        self,
        question: Question,
        kept: Sequence[VerifiedEntry],
        vector_text: str | None,
        event_id: str | None = None,
        withheld: Mapping[str, int] | None = None,
        *,
        named: bool = False,
        renews: str | None = None,
    ) -> Recall:
        returned = [
            Returned(
                object_id=entry.admission.object_id,
                version=entry.admission.version,
                event_id=entry.admission.event_id,
                tier=entry.admission.tier,
                taint=entry.admission.taint,
            )
            for entry in kept
        ]
        return make(
            Recall,
            id=event_id or self._new_id(),
            tenant=question.tenant,
            time=datetime.fromtimestamp(self._now_ms() / 1_000, UTC),
            agent=question.agent,
            principal=question.principal,
            session=question.session,
            namespace=question.namespace,
            question=question.text,
            zone=question.zone,
            returned=tuple(returned),
            vector=vector_text,
            withheld=dict(withheld or {}),
            named=named,
            renews=renews,
        )


def _some_vector(dimensions: int) -> Vector:
    """Return a unit vector, shape (d,): a query has one, to tell its space by, though nothing is searched with it."""
    import numpy as np

    vector = np.zeros(dimensions, dtype=np.float32)
    vector[0] = 1
    return vector
