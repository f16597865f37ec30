"""What a span says of one record. Pure: a record, what it led to, and the verdict, to attributes.

Names are those of OpenTelemetry's semantic conventions (messaging, Kafka, ``gen_ai.memory``); what they have no name
for is ``memsluice.*``. Ids, digests, numbers and codes only: memory content and questions are in no attribute. What a
producer chose (agent, principal, session) is written by :func:`~memsluice.escaping.visible`: an attribute is read in a
browser or a terminal.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from memsluice.envelope.verdict import Decision, Verdict
from memsluice.escaping import visible
from memsluice.events.headers import EVENT_ID
from memsluice.events.names import DEAD_LETTER_HEADER, REASON_HEADER
from memsluice.events.records import Output, Record
from memsluice.events.span_names import ERROR_TYPE, GEN_AI_OPERATIONS, Attribute
from memsluice.topics.names import DEAD_LETTER, SEALED, STORE

SERVICE = "memsluice"
OUTCOME = "memsluice.outcome"
OUTCOMES = (PASSED, DEAD, NOTHING) = ("passed", "dead_letter", "nothing")
"""What a batch stage makes of a record; ``nothing``: it was older, or a repetition."""

_ALWAYS = {
    "memsluice.tenant": "tenant",
    "memsluice.event.id": "event_id",
    "memsluice.event.type": "type",
    "memsluice.decision": "decision",
    "memsluice.policy": "policy",
    "memsluice.version": "sealed_offset",
    "gen_ai.agent.id": "agent",
    "gen_ai.conversation.id": "session",
    "gen_ai.memory.record.id": "object_id",
}
_STOPPED = _ALWAYS | {
    "memsluice.reasons": "reasons",
    "memsluice.mode": "mode",
    "memsluice.kid": "kid",
    "memsluice.role": "role",
    "memsluice.channel": "channel",
    "memsluice.tier": "tier",
    "memsluice.taint": "taint",
    "memsluice.taint.causes": "taint_causes",
    "memsluice.zone": "zone",
    "memsluice.model": "model",
    "memsluice.seal_kid": "seal_kid",
    "memsluice.admission_kid": "admission_kid",
    "memsluice.audit.seq": "chain_seq",
    "memsluice.principal": "principal",
}
"""Of an entry that did not go straight to where it was meant: what stopped it, and all that the decision rested on."""
_PASSED = (Decision.ACCEPT, Decision.RECORD)
_UNSET: tuple[object, ...] = (None, "", [], ())
_SCORE = {
    "memsluice.memsad.phase": "phase",
    "memsluice.memsad.mode": "mode",
    "memsluice.memsad.score": "score",
    "memsluice.memsad.mu": "mu",
    "memsluice.memsad.sigma": "sigma",
    "memsluice.memsad.kappa": "kappa",
    "memsluice.memsad.threshold": "threshold",
    "memsluice.memsad.window.id": "window_id",
    "memsluice.memsad.window.size": "window_size",
    "memsluice.memsad.history.size": "history_size",
}


def of_record(stage: str, record: Record) -> dict[str, Attribute]:
    """Return what the messaging conventions say of a record that ``stage`` processes."""
    return {
        "messaging.system": "kafka",
        "messaging.operation.type": "process",
        "messaging.operation.name": stage,
        "messaging.destination.name": record.topic,
        "messaging.destination.partition.id": str(record.partition),
        "messaging.kafka.offset": record.offset,
    }


def of_outputs(outputs: Sequence[Output]) -> dict[str, Attribute]:
    """Return what a record's outputs say: the outcome, a dead letter's reason, the event's id.

    Of a dead letter only the last header counts, the gate's own: the others are whatever somebody sent.
    """
    found: dict[str, Attribute] = {OUTCOME: outcome(outputs)}
    for output in outputs:
        if output.topic == DEAD_LETTER:
            found[ERROR_TYPE] = visible(_reason(output))
            continue
        for name, value in output.headers:
            if name == REASON_HEADER and value is not None:  # of a flood nothing but the marker may be kept
                found.setdefault(ERROR_TYPE, visible(value.decode("ascii", "replace")))
            if name == EVENT_ID and value is not None:
                found["memsluice.event.id"] = visible(value.decode("ascii", "replace"))
        if output.topic == STORE and output.key is not None:
            found["gen_ai.memory.record.id"] = visible(output.key.decode("ascii", "replace"))
    return found


def _reason(letter: Output) -> str:
    name, told = letter.headers[-1]
    assert name == DEAD_LETTER_HEADER
    return str(orjson.loads(told or b"")["reason"])


def _refused(sealed: Output) -> bool:
    return any(name == REASON_HEADER for name, _ in sealed.headers)


def outcome(outputs: Sequence[Output]) -> str:
    """Return what a batch stage made of a record, one of OUTCOMES."""
    if any(output.topic == DEAD_LETTER or (output.topic == SEALED and _refused(output)) for output in outputs):
        return DEAD
    return PASSED if outputs else NOTHING


def of_verdict(verdict: Verdict) -> dict[str, Attribute]:
    """Return what a verdict says, without what is unset.

    Of what was stopped: decision, rules, score on its scale, window, keys, policy. Of what passed only where it went:
    each attribute costs microseconds of every event, and the audit has the rest (``memsluice trace``).
    """
    passed = verdict.decision in _PASSED
    found: dict[str, Attribute] = {}
    for name, field in (_ALWAYS if passed else _STOPPED).items():
        value = getattr(verdict, field)
        if value not in _UNSET:
            found[name] = _shown(value)
    if not passed and verdict.score is not None:
        scores = ((name, getattr(verdict.score, field)) for name, field in _SCORE.items())
        found |= {name: value for name, value in scores if value not in _UNSET}
    operation = GEN_AI_OPERATIONS.get(verdict.type)
    if operation is not None:
        found["gen_ai.operation.name"] = operation
    if verdict.zone:
        found["gen_ai.memory.store.id"] = f"{verdict.tenant}/{verdict.zone}"
    return found


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    return [visible(str(each)) for each in value] if isinstance(value, list | tuple) else value
