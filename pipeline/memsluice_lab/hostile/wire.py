"""Targets on the intake: what anybody who may write to it can send, and what becomes of it as a dead letter."""

import random
from dataclasses import replace
from typing import Any

import orjson

from memsluice.client.build import Message
from memsluice.envelope import dsse
from memsluice.envelope.seals import sealed_from_bytes
from memsluice.errors import InputError, MalformedEvent, StateError
from memsluice.events.models import AnyPayload, Command, parse_payload
from memsluice.events.names import DEAD_LETTER_HEADER, EventType
from memsluice.events.records import Headers, Record
from memsluice.gate.checks.authenticity import Authentic
from memsluice.operations.dead_letters.collect import Assembler
from memsluice.operations.dead_letters.filters import LetterFilter
from memsluice.operations.dead_letters.letters import DeadLetter, why_of
from memsluice.stages.dead_letter import dead_letters, original
from memsluice.stages.emit import carried
from memsluice.stages.seal import establish
from memsluice.topics.names import DEAD_LETTER, PARTITIONS, SEALED
from memsluice_lab.hostile import mutate
from memsluice_lab.hostile.judge import Target
from memsluice_lab.hostile.specimens import NOW_MS, PARTITION, TENANT, Sent, Specimens

NAMES = (
    "ce_id",
    "CE_TYPE",
    "ce_time",
    "ce_",
    "ce_a-b",
    "ce_partitionkey",
    "content-type",
    "traceparent",
    "",
    "\\xff",
    "x" * 9_000,
)


class Wire:
    """Draws hostile messages from valid ones."""

    def __init__(self, specimens: Specimens) -> None:
        self._all = specimens

    def message(self, chance: random.Random) -> Record:
        """Return an intake record: around the signature, inside of it, or nothing of it, hostile."""
        one = chance.choice(self._all.sent)
        match chance.randrange(6):
            case 0:
                message = one.message._replace(value=mutate.json_bytes(chance, one.message.value))
            case 1 | 2:
                message = self._resigned(chance, one)
            case 3:
                message = one.message._replace(headers=_headers(chance, one.message.headers))
            case 4:
                other = chance.choice(self._all.sent).message
                message = one.message._replace(
                    value=other.value, headers=chance.choice((other.headers, one.message.headers))
                )
            case _:
                message = Message(chance.randbytes(5), chance.randbytes(chance.randint(0, 400)), one.message.headers)
        key = message.key if chance.random() < 0.9 else chance.choice((None, b"", b"\xff", b"globex", b"x" * 5_000))
        partition = PARTITION if chance.random() < 0.95 else (PARTITION + 1) % PARTITIONS
        return replace(self._all.record(message, one.topic, partition=partition), key=key)

    def _resigned(self, chance: random.Random, one: Sent) -> Message:
        """Return a message whose payload is hostile and whose signature holds."""
        structured = one.message.headers[0][0] == "content-type"
        document = orjson.loads(one.message.value)
        envelope = document["data"] if structured else document
        payload = mutate.json_bytes(chance, dsse.parse(envelope).payload)
        signed = dsse.sign(envelope["payloadType"], payload, [self._all.signers[TENANT, one.source]])
        if structured:
            return one.message._replace(value=orjson.dumps({**document, "data": signed}))
        return one.message._replace(value=orjson.dumps(signed))

    def batch(self, chance: random.Random) -> list[Record]:
        """Return a few hostile records with a valid one among them, which they may not take with them."""
        hostile = [replace(self.message(chance), offset=number) for number in range(chance.randint(1, 6))]
        valid = self._all.sent[1]
        return [*hostile, self._all.record(valid.message, valid.topic, offset=len(hostile))]

    def through_seal(self, batch: list[Record]) -> list[str]:
        """Return what *seal* made of a batch. Raises StateError where a record is without its place in the order."""
        made = list[str]()
        for record, outputs in zip(batch, self._all.stage.process(batch), strict=True):
            last = outputs[-1]
            sealed = sealed_from_bytes(self._all.keyring, (last.key or b"").decode(), last.value or b"")
            letters = [(one.key, one.value, one.headers) for one in outputs[:-1]]
            if last.topic != SEALED or sealed.position.offset != record.offset:
                raise StateError("a record has no place in the order")
            if letters and original(letters) != (record.key, record.value, record.headers):
                raise StateError("a dead letter is not the record that it was")
            made.append(sealed.type if not letters else "letter")
        if made[-1] != EventType.WRITE:
            raise StateError("a valid event of the batch was not sealed")
        return made

    def letter(self, chance: random.Random) -> list[Record]:
        """Return the records of a dead letter, with what the gate wrote of it damaged too."""
        letters = dead_letters(self.message(chance), MalformedEvent("x", field="y"))
        records = [
            Record(DEAD_LETTER, PARTITION, n, one.key, one.value, one.headers, NOW_MS) for n, one in enumerate(letters)
        ]
        if chance.random() < 0.7:
            at = chance.randrange(len(records))
            told = mutate.json_bytes(chance, records[at].headers[-1][1] or b"{}")
            name = DEAD_LETTER_HEADER if chance.random() < 0.9 else "x"
            records[at] = replace(
                records[at], headers=(*records[at].headers[:-1], (name, chance.choice((told, told, told, None))))
            )
        return records

    def carrier(self, chance: random.Random) -> Command:
        """Return a command that carries what its sender made up, or a record of the gate's own, damaged."""
        command = chance.choice([one.payload for one in self._all.sent if isinstance(one.payload, Command)])
        given = chance.choice(
            (*self._all.sealed[:5], *self._all.accepted, *self._all.held, b'{"content":1,"vector":"","admission":{}}')
        )
        held = mutate.json_bytes(chance, given) if chance.random() < 0.9 else given
        return command.model_copy(update={"held": held.decode("utf-8", "replace")})

    def opened(self, command: Command) -> Any:
        """Return what a command carries, as *screen* opens it."""
        one = sealed_from_bytes(self._all.keyring, TENANT, self._all.sealed[7])
        return carried(self._all.keyring, replace(one, payload=command))

    def established(self, record: Record) -> Authentic:
        """Return who sent a record."""
        return establish(record, self._all.keyring, self._all.registry, PARTITIONS)

    def put_together(self, records: list[Record]) -> DeadLetter | None:
        """Return the letter of its records."""
        assembler = Assembler(self._all.keyring, LetterFilter(), whole=True)
        found = [assembler.take(record) for record in records]
        return next((one for one in found if one is not None), None)


def _headers(chance: random.Random, headers: Headers) -> Headers:
    found = list(headers)
    for _ in range(chance.choice((1, 1, 2, 70))):
        at = chance.randrange(len(found))
        name, value = found[at]
        match chance.randrange(4):
            case 0:
                found[at] = (name, mutate.damaged(chance, value or b""))
            case 1:
                found[at] = (chance.choice(NAMES), value)
            case 2:
                found.insert(at, (chance.choice(NAMES), chance.choice((None, b"", value, b"\xff"))))
            case _:
                found[at] = (name, chance.choice((None, chance.choice(mutate.TEXTS).encode("utf-8", "surrogatepass"))))
    return tuple(found)


def _payload_again(found: Authentic) -> Authentic:
    if found.problem is not None:  # of what is refused only what a session saw is kept
        return found
    data = found.payload.model_dump_json().encode()
    again: AnyPayload = parse_payload(found.type, data)
    return replace(found, payload=again)


def _first_original(records: list[Record]) -> Any:
    return original([(one.key, one.value, one.headers) for one in records])


def targets(specimens: Specimens) -> list[Target]:
    """Return the targets of the intake and of the dead letters."""
    wire = Wire(specimens)
    return [
        Target("intake record", 30, wire.message, wire.established, (InputError,), _payload_again),
        Target("batch through seal", 1, wire.batch, wire.through_seal, ()),
        Target("dead letter's header", 8, wire.letter, lambda records: [why_of(one) for one in records], ()),
        Target("dead letter, put together", 4, wire.letter, wire.put_together, ()),
        Target("dead letter, the original", 5, wire.letter, _first_original, (InputError,)),
        Target("what a command carries", 8, wire.carrier, wire.opened, ()),
    ]
