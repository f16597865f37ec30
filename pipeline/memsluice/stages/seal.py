"""*seal*: authenticate, label, embed, seal, and give every intake offset its place in the one ordered input.

Stateless and costly (the encoder), so it works in batches. Bad input is found before the batch reaches the encoder:
one bad record can not take 63 good ones with it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memsluice.clock import Clock, wall_ms
from memsluice.encoder import Encoder
from memsluice.envelope import codec
from memsluice.envelope.keys import Keyring, Purpose
from memsluice.envelope.registry import Registry
from memsluice.envelope.seals import Identity, Position, Sealed, payload_digest, sealed_to_bytes
from memsluice.errors import InputError, MalformedEvent, UnknownKey
from memsluice.events import cloudevent
from memsluice.events.headers import passed_on
from memsluice.events.models import AnyPayload, Observation, Recall, Write
from memsluice.events.names import REASON_HEADER
from memsluice.events.records import Output, Record
from memsluice.gate.checks.authenticity import Authentic, authenticate, still_seen
from memsluice.stages.dead_letter import dead_letters
from memsluice.topics.names import COMMANDS, SEALED

RECALL_COSINE_MIN = 0.999
"""Least cosine between the vector a reader searched with and the one *seal* computes of the same question."""


def _text(payload: AnyPayload) -> str | None:
    if isinstance(payload, Write):
        return payload.content
    return payload.question if isinstance(payload, Recall) else None


def _sketch(keyring: Keyring, payload: AnyPayload, identity: Identity) -> str:
    """Return the words of what a session saw or its agent wrote, for tenants whose policy asks what influenced what."""
    compared = isinstance(payload, Observation) or (isinstance(payload, Write) and identity.channel == "agent")
    text = payload.content if compared and isinstance(payload, Write | Observation) else None
    return "" if text is None else codec.sketch(keyring, payload.tenant, text)


@dataclass(slots=True)
class _Draft:
    """A record on its way: what to seal, what is wrong with it, or both (see ``Sealed.problem``)."""

    sealed: Sealed | None = None
    error: InputError | None = None


def establish(record: Record, keyring: Keyring, registry: Registry, partitions: int) -> Authentic:
    """Read an intake record and establish who sent it.

    Raises a subclass of InputError; where a session saw something all the same, that is the result's ``problem``.
    """
    position = _position(record)
    try:
        return authenticate(
            cloudevent.read(record.key, record.value, record.headers),
            position,
            keyring=keyring,
            registry=registry,
            partitions=partitions,
            commands=record.topic == COMMANDS,
        )
    except InputError as error:
        seen = still_seen(record.value, position, keyring=keyring, registry=registry, partitions=partitions)
        if seen is None:
            raise
        return replace(seen, problem=error)


def _position(record: Record) -> Position:
    return Position(record.topic, record.partition, record.offset, record.timestamp_ms)


class SealStage:
    """The stage object. ``keys`` and ``registry`` are asked anew for each batch, so that rotation needs no stop."""

    def __init__(
        self,
        keys: Callable[[], Keyring],
        registry: Callable[[], Registry],
        encoder: Encoder,
        partitions: int,
        now_ms: Clock = wall_ms,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        self._keys = keys
        self._registry = registry
        self._encoder = encoder
        self._partitions = partitions
        self._now_ms = now_ms  # which key signs depends on today, not on when a record of the backlog was appended
        self._refresh = refresh  # look for new keys now, not at the next interval
        self._model = f"{encoder.model_id}@{encoder.revision}"

    def process(self, batch: Sequence[Record]) -> list[list[Output]]:
        """Return, for each record, its sealed record, or its dead letter and the marker that stands for it."""
        keyring, registry = self._keys(), self._registry()
        drafts = [self._authenticated(record, keyring, registry) for record in batch]
        if any(isinstance(draft.error, UnknownKey) for draft in drafts):  # issued a moment ago, perhaps
            self._refresh()
            keyring, registry = self._keys(), self._registry()
            drafts = [
                self._authenticated(record, keyring, registry) if isinstance(draft.error, UnknownKey) else draft
                for record, draft in zip(batch, drafts, strict=True)
            ]
        self._embed(drafts, keyring)
        return [self._outputs(record, draft, keyring) for record, draft in zip(batch, drafts, strict=True)]

    def _authenticated(self, record: Record, keyring: Keyring, registry: Registry) -> _Draft:
        try:
            authentic = establish(record, keyring, registry, self._partitions)
        except InputError as error:
            return _Draft(error=error)
        payload, text = authentic.payload, _text(authentic.payload)
        sealed = Sealed(
            position=_position(record),
            type=authentic.type,
            identity=authentic.identity,
            payload=payload,
            payload_digest=payload_digest(keyring, payload),
            content_digest="" if text is None else codec.content_digest(keyring, payload.tenant, text),
            approvers=authentic.approvers if record.topic == COMMANDS else (),
            problem="" if authentic.problem is None else authentic.problem.code,
            sketch=_sketch(keyring, payload, authentic.identity),
        )
        return _Draft(sealed, authentic.problem)

    def _embed(self, drafts: list[_Draft], keyring: Keyring) -> None:
        """Give every draft that has a text its vector; a recall whose own vector disagrees becomes a dead letter."""
        texts = {
            index: text
            for index, draft in enumerate(drafts)
            if draft.error is None
            and draft.sealed is not None
            and draft.sealed.payload is not None
            and (text := _text(draft.sealed.payload)) is not None
        }
        if not texts:
            return
        vectors = self._encoder.encode(list(texts.values()))
        for index, vector in zip(texts, vectors, strict=True):
            draft = drafts[index]
            assert draft.sealed is not None
            try:
                _check_recall(draft.sealed.payload, vector)
            except InputError as error:
                drafts[index] = _Draft(replace(draft.sealed, problem=error.code), error)
                continue
            draft.sealed = replace(
                draft.sealed,
                vector_text=codec.vector_to_text(vector),
                vector_digest=codec.vector_digest(keyring, draft.sealed.tenant, codec.vector_to_bytes(vector)),
                model=self._model,
            )

    def _outputs(self, record: Record, draft: _Draft, keyring: Keyring) -> list[Output]:
        kid = keyring.signing(Purpose.SEAL, self._now_ms()).kid
        headers, letters, sealed = passed_on(record.headers), [], draft.sealed
        if draft.error is not None:
            letters = dead_letters(record, draft.error)
            headers = (*headers, (REASON_HEADER, draft.error.code.encode()))
        if sealed is None:
            assert draft.error is not None
            sealed = Sealed(position=_position(record), type="marker", marker_reason=draft.error.code)
        value = sealed_to_bytes(keyring, kid, sealed)
        return [*letters, Output(SEALED, record.partition, sealed.tenant.encode(), value, headers)]


def _check_recall(payload: AnyPayload | None, vector: codec.Vector) -> None:
    if not isinstance(payload, Recall) or payload.vector is None:
        return
    stated = codec.vector_from_text(payload.vector)
    cosine = float(np.dot(stated, vector))
    if not cosine >= RECALL_COSINE_MIN:
        raise MalformedEvent(
            f"cosine {cosine:.4f} to the question's own embedding, at least {RECALL_COSINE_MIN}", field="vector"
        )
