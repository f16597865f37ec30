"""*seal*: authenticate, label, redact, embed, seal, and give every intake offset its place in the one ordered input.

Stateless and costly (the encoder), so it works in batches. Bad input is found before the batch reaches the encoder:
one bad record can not take 63 good ones with it. Nor can one on which our own reading fails: it is a dead letter, and
what a session saw in it taints all the same.
"""

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from memsluice.clock import Clock, wall_ms
from memsluice.encoder import Encoder, space_of_encoder
from memsluice.encoder.remembering import Remembering, Writer
from memsluice.envelope import codec
from memsluice.envelope.keys import Keyring, Purpose
from memsluice.envelope.registry import Registry
from memsluice.envelope.seals import Identity, Position, Sealed, Sensitive, payload_digest, sealed_to_bytes
from memsluice.errors import InputError, MalformedEvent, UnknownKey, Unreadable
from memsluice.events import cloudevent
from memsluice.events.headers import passed_on
from memsluice.events.models import AnyPayload, Observation, Recall, Write
from memsluice.events.names import REASON_HEADER
from memsluice.events.records import Output, Record
from memsluice.gate.checks.authenticity import Authentic, authenticate, may_be_known, signer, still_seen
from memsluice.gate.policy.model import Policy, default
from memsluice.stages import redaction
from memsluice.stages.dead_letter import WHY_BYTES, dead_letters, letter_bytes, note
from memsluice.stages.letter_budget import Kept, LetterBudget
from memsluice.stages.overflow import Intake, fits, intake, lane_of, move, taken_back
from memsluice.stages.quota import Quota
from memsluice.topics.names import COMMANDS, SEALED

DEFECTS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What our own reading of a text raises where it is wrong about it; whatever else goes wrong stops the stage."""
SENSITIVE_MAX = 64
"""Findings of one event that are told; all are taken out."""
NO_WORDS = "[unreadable]"
"""Stands for a question that could not be read."""
RECALL_COSINE_MIN = 0.999
"""Least cosine between the vector a reader searched with and the one *seal* computes of the same question."""


def _text(payload: AnyPayload) -> str | None:
    if isinstance(payload, Write):
        return payload.content
    return payload.question if isinstance(payload, Recall) and not payload.named else None


def _writer(payload: Write | Recall, identity: Identity) -> Writer:
    return payload.tenant, identity.kid, payload.principal


def _sketch(keyring: Keyring, payload: AnyPayload, identity: Identity) -> str:
    """Return the words of what a session saw or its agent wrote, for tenants whose policy asks what influenced what."""
    compared = isinstance(payload, Observation) or (isinstance(payload, Write) and identity.channel == "agent")
    text = payload.content if compared and isinstance(payload, Write | Observation) else None
    return "" if text is None else codec.sketch(keyring, payload.tenant, text)


@dataclass(slots=True)
class _Draft:
    """A record on its way: what to seal, what is wrong with it, or both (see ``Sealed.problem``).

    ``asked`` is a recall as it was signed, where something was taken out of it and its reader stated a vector.
    ``again``: it may be another one once the keys that were issued a moment ago are known.
    """

    sealed: Sealed | None = None
    error: InputError | None = None
    asked: Recall | None = None
    again: bool = False


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
        policies: Callable[[str], Policy] | None = None,
        letters: LetterBudget | None = None,
    ) -> None:
        """``policies`` are those of this deployment's file; None is the policy that ships. ``letters`` bounds what is
        kept of dead letters; None is the bound that ships."""
        self._letters = letters or LetterBudget()
        self._policies = policies or default().of
        self._keys = keys
        self._registry = registry
        self._encoder = Remembering(encoder)
        self._partitions = partitions
        self._now_ms = now_ms  # which key signs depends on today, not on when a record of the backlog was appended
        self._refresh = refresh  # look for new keys now, not at the next interval
        self._model = space_of_encoder(encoder).model

    def process(self, batch: Sequence[Record]) -> list[list[Output]]:
        """Return, for each record, its sealed record, or its dead letter and the marker that stands for it.

        Raises SealError for a record of the overflow that the gate did not move there.
        """
        keyring, registry = self._keys(), self._registry()
        came = [intake(record, self._keys) for record in batch]
        drafts = [self._authenticated(one.record, keyring, registry) for one in came]
        if any(draft.again for draft in drafts):
            self._refresh()
            keyring, registry = self._keys(), self._registry()
            drafts = [
                self._authenticated(one.record, keyring, registry) if draft.again else draft
                for one, draft in zip(came, drafts, strict=True)
            ]
        self._embed(drafts, keyring)
        return [self._outputs(one, draft, keyring, registry) for one, draft in zip(came, drafts, strict=True)]

    # --- tenants over their quota (:class:`memsluice.stages.overflow.Overflowing`) ---

    def quota(self, tenant: str) -> Quota | None:
        """Return a tenant's quota, by this deployment's policy file."""
        said = self._policies(tenant).intake
        return None if said.events_per_s is None else Quota(said.events_per_s, said.burst)

    def is_counted(self, topic: str) -> bool:
        """Tell whether records of a topic are counted: a command is not, so that an operator never waits."""
        return topic != COMMANDS

    def lane(self, record: Record) -> str | None:
        """Return whom an intake record is counted for: by its key, or by who sent it where it has none.

        That is established as it is for sealing: by another reading of the same bytes an event would have no lane, and
        go past its own tenant's that wait.
        """
        if not self.is_counted(record.topic) or not fits(record):
            return None
        return lane_of(record.key) if record.key else self._tenant_of(record)

    def may_wait(self, record: Record, tenant: str) -> bool:
        """Tell whether a record is the tenant's in whose lane it would wait: what nobody signed makes nobody wait."""
        return self._tenant_of(record) == tenant

    def _tenant_of(self, record: Record) -> str | None:
        draft = self._established(record, self._keys(), self._registry())
        if isinstance(draft, InputError) and _key_may_be_new(record, draft, self._keys(), self._registry()):
            self._refresh()
            draft = self._established(record, self._keys(), self._registry())
        return draft.payload.tenant if isinstance(draft, Authentic) else None

    def came(self, record: Record) -> Intake:
        """Return a record of the overflow as it came. Raises SealError."""
        return taken_back(record, self._keys())

    def moved(self, record: Record, tenant: str, after: int | None) -> list[Output]:
        """Return what moves a record to the overflow."""
        keyring = self._keys()
        return move(record, tenant, after, keyring, keyring.signing(Purpose.SEAL, self._now_ms()).kid)

    def sender(self, outputs: list[Output]) -> str | None:
        """Return whose event was sealed, whatever key the record has; a marker is nobody's."""
        return next((output.key.decode() for output in outputs if output.topic == SEALED and output.key), None)

    def _established(self, record: Record, keyring: Keyring, registry: Registry) -> Authentic | InputError:
        try:
            return establish(record, keyring, registry, self._partitions)
        except InputError as error:
            return error

    def _authenticated(self, record: Record, keyring: Keyring, registry: Registry) -> _Draft:
        authentic = self._established(record, keyring, registry)
        if isinstance(authentic, InputError):
            return _Draft(error=authentic, again=_key_may_be_new(record, authentic, keyring, registry))
        try:
            return self._read(record, authentic, keyring)
        except DEFECTS as defect:
            error = _unreadable(defect)
            return _Draft(_unread(record, authentic, keyring, error), error)

    def _read(self, record: Record, authentic: Authentic, keyring: Keyring) -> _Draft:
        payload = authentic.payload
        found = redaction.found_in(payload)
        policy = self._policies(payload.tenant) if found else None
        redacted = policy is not None and policy.sensitive.action == "redact"
        if policy is not None and redacted:  # what is sealed, embedded, digested and compared from here on
            payload = redaction.without(payload, found, keyring, policy.content_bytes_max)
        text = _text(payload)
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
            sensitive=tuple(Sensitive(name, *span) for name, spans in found.items() for span in spans)[:SENSITIVE_MAX],
            redacted=redacted,
        )
        signed = authentic.payload
        stated = redacted and isinstance(signed, Recall) and signed.vector is not None
        return _Draft(sealed, authentic.problem, signed if stated and isinstance(signed, Recall) else None)

    def _embed(self, drafts: list[_Draft], keyring: Keyring) -> None:
        """Give every draft that has a text its vector; a recall whose own vector disagrees becomes a dead letter."""
        texts = {
            index: (_writer(payload, draft.sealed.identity), text)
            for index, draft in enumerate(drafts)
            if draft.error is None
            and draft.sealed is not None
            and draft.sealed.identity is not None
            and isinstance(payload := draft.sealed.payload, Write | Recall)
            and (text := _text(payload)) is not None
        }
        if not texts:
            return
        whole = {index: asked for index in texts if (asked := drafts[index].asked) is not None}
        said = [*texts.values(), *((texts[index][0], asked.question) for index, asked in whole.items())]
        try:
            seen = self._encoder.read(said)
        except DEFECTS as defect:
            if len(texts) == 1:
                (index,) = texts
                sealed, error = drafts[index].sealed, _unreadable(defect)
                assert sealed is not None
                drafts[index] = _failed(sealed, error)
            else:  # each by itself: one text takes no other with it
                for index in texts:
                    alone = [drafts[index]]
                    self._embed(alone, keyring)
                    drafts[index] = alone[0]
            return
        # what a reader stated was of the whole question
        of_whole = {index: vector for index, (vector, _) in zip(whole, seen[len(texts) :], strict=True)}
        for index, (vector, wording) in zip(texts, seen, strict=False):
            draft = drafts[index]
            assert draft.sealed is not None
            try:
                _check_vector(draft.sealed.payload, vector, self._model)
                _check_recall(draft.asked or draft.sealed.payload, of_whole.get(index, vector))
            except InputError as error:
                drafts[index] = _failed(draft.sealed, error)
                continue
            draft.sealed = replace(
                draft.sealed,
                vector_text=codec.vector_to_text(vector),
                vector_digest=codec.vector_digest(keyring, draft.sealed.tenant, codec.vector_to_bytes(vector)),
                model=self._model,
                wording=wording if isinstance(draft.sealed.payload, Write) else None,
            )

    def _outputs(self, came: Intake, draft: _Draft, keyring: Keyring, registry: Registry) -> list[Output]:
        record = came.record
        kid = keyring.signing(Purpose.SEAL, self._now_ms()).kid
        headers, letters, sealed = passed_on(record.headers), [], draft.sealed
        if draft.error is not None:
            letters = self._kept(record, draft.error, keyring, registry)
            headers = (*headers, (REASON_HEADER, draft.error.code.encode()))
        if sealed is None:
            assert draft.error is not None
            sealed = Sealed(position=_position(record), type="marker", marker_reason=draft.error.code)
        value = sealed_to_bytes(keyring, kid, sealed if came.waited is None else replace(sealed, waited=came.waited))
        return [*letters, Output(SEALED, record.partition, sealed.tenant.encode(), value, headers)]

    def _kept(self, record: Record, error: InputError, keyring: Keyring, registry: Registry) -> list[Output]:
        """Return what is kept of a record's dead letter: its bytes, a note, or, in a flood, the marker alone."""
        sender = signer(record.value, keyring, registry)
        kept = self._letters.take(record, sender, letter_bytes(record), WHY_BYTES)
        if kept is Kept.WHOLE:
            return dead_letters(record, error)
        return [note(record, error, keyring)] if kept is Kept.NOTED else []


def _unreadable(defect: Exception) -> Unreadable:
    """Return what a dead letter says: where our code failed, and nothing that the exception quotes of the text."""
    frame = traceback.extract_tb(defect.__traceback__)[-1]
    where = f"{type(defect).__name__} in {Path(frame.filename).name}, line {frame.lineno}"
    return Unreadable(f"the gate failed to read it ({where}): a defect of the gate, please report it")


def _unread(record: Record, authentic: Authentic, keyring: Keyring, error: Unreadable) -> Sealed | None:
    """Return what is sealed of an observation or a recall nonetheless, without its words: its session is tainted."""
    if not isinstance(authentic.payload, Observation | Recall):
        return None
    words: dict[str, str | None] = {"content": None, "digest": None}
    if isinstance(authentic.payload, Recall):
        words = {"question": NO_WORDS, "vector": None}
    payload = authentic.payload.model_copy(update=words)
    return Sealed(
        position=_position(record),
        type=authentic.type,
        identity=authentic.identity,
        payload=payload,
        payload_digest=payload_digest(keyring, payload),
        problem=error.code,
    )


def _key_may_be_new(record: Record, error: InputError, keyring: Keyring, registry: Registry) -> bool:
    """Tell whether a key that was issued a moment ago may be all that is missing."""
    return isinstance(error, UnknownKey) or may_be_known(record.value, keyring, registry)


def _failed(sealed: Sealed, error: InputError) -> _Draft:
    """Return what is left of an event without a vector: a recall taints its session, a write is a dead letter alone."""
    return _Draft(replace(sealed, problem=error.code) if isinstance(sealed.payload, Recall) else None, error)


def _check_vector(payload: AnyPayload | None, vector: codec.Vector, model: str) -> None:
    if not vector.any():
        field = "question" if isinstance(payload, Recall) else "content"
        raise MalformedEvent(f"the encoder {model} finds nothing in it: its vector has no length", field=field)


def _check_recall(payload: AnyPayload | None, vector: codec.Vector) -> None:
    if not isinstance(payload, Recall) or payload.vector is None:
        return
    stated = codec.vector_from_text(payload.vector)
    if stated.shape != vector.shape:
        raise MalformedEvent(
            f"has {len(stated)} components, but the deployment's encoder gives {len(vector)}: the reader searched with "
            "another encoder",
            field="vector",
        )
    cosine = float(np.dot(stated, vector))
    if not cosine >= RECALL_COSINE_MIN:
        raise MalformedEvent(
            f"cosine {cosine:.4f} to the question's own embedding, at least {RECALL_COSINE_MIN}", field="vector"
        )
