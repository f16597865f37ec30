"""Malformed messages mixed into a real stream: each becomes a dead letter with its bytes, and the stream goes on."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from memsluice.envelope import dsse
from memsluice.envelope.keys import HmacKey
from memsluice.events.names import NOT_UNPACKED_HEADER
from memsluice.events.partition import partition_of
from memsluice.events.records import Headers, Record
from memsluice.readers.batches import UNPACKED_BYTES_MAX
from memsluice.stages.dead_letter import digest_of, original
from memsluice.topics import names
from memsluice_lab.figures.accounted import interleaved, tenants_of, unhurried
from memsluice_lab.figures.bed import STAGES, Bed, Place, Sender, bed
from memsluice_lab.figures.ledger import read
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.streams import Published, signed

MALFORMED = 10_000
VALID = 1_000
LARGE = 40
LARGE_BYTES_MAX = 2 * 1024 * 1024
THROUGH_S_MAX = 420
COMPRESSED_BYTES = (6_000_000, 30_000_000)
"""Values of zeros: far above the broker's limit as they are, far below it compressed."""
COMPRESSING = ("gzip", "zstd")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent: key, value, headers, and its partition."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int


Maker = Callable[[Message, random.Random], Message]


def _with(message: Message, **changes: Any) -> Message:
    fields = {"key": message.key, "value": message.value, "headers": message.headers, "partition": message.partition}
    return Message(**{**fields, **changes})


def _bytes(message: Message, chance: random.Random) -> Message:
    return _with(message, value=chance.randbytes(chance.randint(1, 3_000)), headers=())


def _keyless_bytes(message: Message, chance: random.Random) -> Message:
    return _with(message, key=None, value=chance.randbytes(chance.randint(1, 500)))


def _truncated(message: Message, chance: random.Random) -> Message:
    return _with(message, value=(message.value or b"")[: chance.randint(1, len(message.value or b"") - 2)])


def _control_byte(message: Message, chance: random.Random) -> Message:
    value = bytearray(message.value or b"")
    value[chance.randrange(len(value))] = 0
    return _with(message, value=bytes(value))


def _null(message: Message, _chance: random.Random) -> Message:
    return _with(message, value=None)


def _empty(message: Message, _chance: random.Random) -> Message:
    return _with(message, value=b"")


def _header_missing(message: Message, chance: random.Random) -> Message:
    needed = chance.choice(("ce_id", "ce_type", "ce_source", "ce_specversion"))
    return _with(message, headers=tuple(item for item in message.headers if item[0] != needed))


def _header_garbled(message: Message, chance: random.Random) -> Message:
    garbled = chance.choice((b"\xff\xfe", b"", b"9", chance.randbytes(40)))
    victim = chance.choice(("ce_type", "ce_specversion", "ce_time"))
    return _with(message, headers=tuple((n, garbled if n == victim else v) for n, v in message.headers))


def _header_repeated(message: Message, chance: random.Random) -> Message:
    return _with(message, headers=(*message.headers, ("ce_id", b"another")))


def _headers_many(message: Message, chance: random.Random) -> Message:
    extra = tuple((f"x-{number % 7}", chance.randbytes(8)) for number in range(chance.randint(70, 200)))
    return _with(message, headers=(*message.headers, *extra))


def _headers_long(message: Message, chance: random.Random) -> Message:
    return _with(message, headers=(*message.headers, ("x-long", chance.randbytes(10_000)), ("x-null", None)))


def _elsewhere(message: Message, chance: random.Random) -> Message:
    return _with(message, partition=(message.partition + chance.randint(1, names.PARTITIONS - 1)) % names.PARTITIONS)


def _nested(message: Message, chance: random.Random) -> Message:
    depth = chance.randint(500, 20_000)
    return _with(message, value=b"[" * depth + b"]" * depth)


def _numbers(message: Message, chance: random.Random) -> Message:
    return _with(message, value=b'{"payload":' + b"9" * chance.randint(30, 5_000) + b',"payloadType":NaN}')


def _structured_garbage(message: Message, chance: random.Random) -> Message:
    headers = (("content-type", b"application/cloudevents+json"),)
    return _with(
        message, headers=headers, value=orjson.dumps({"specversion": "1.0", "id": chance.randint(1, 9), "data": []})
    )


def _signed_by_nobody(message: Message, chance: random.Random) -> Message:
    return _with(message, value=_resigned(message, HmacKey("nobody", chance.randbytes(32)), None))


def _forged(message: Message, chance: random.Random) -> Message:
    kid = orjson.loads(message.value or b"")["signatures"][0]["keyid"]
    return _with(message, value=_resigned(message, HmacKey(kid, chance.randbytes(32)), None))


def _not_utf8(message: Message, chance: random.Random) -> Message:
    kid = orjson.loads(message.value or b"")["signatures"][0]["keyid"]
    return _with(message, value=_resigned(message, HmacKey(kid, chance.randbytes(32)), b'{"id":"\xff\xfe"}'))


def _resigned(message: Message, signer: HmacKey, payload: bytes | None) -> bytes:
    envelope = dsse.parse(orjson.loads(message.value or b""))
    return orjson.dumps(dsse.sign(envelope.payload_type, payload or envelope.payload, [signer]))


def _large(message: Message, chance: random.Random) -> Message:
    return _with(message, value=chance.randbytes(chance.randint(300_000, LARGE_BYTES_MAX)))


def _compressed(size: int) -> Maker:
    def make(message: Message, _chance: random.Random) -> Message:
        return _with(message, value=bytes(size))

    return make


MAKERS: tuple[Maker, ...] = (
    _bytes,
    _keyless_bytes,
    _truncated,
    _control_byte,
    _null,
    _empty,
    _header_missing,
    _header_garbled,
    _header_repeated,
    _headers_many,
    _headers_long,
    _elsewhere,
    _nested,
    _numbers,
    _structured_garbage,
    _signed_by_nobody,
    _forged,
    _not_utf8,
)


def malform(valid: Sequence[Message], count: int, *, seed: int) -> list[Message]:
    """Return that many malformed messages made from valid ones: every kind equally often, LARGE of up to 2 MB.

    A few more are zeros of COMPRESSED_BYTES, one for each codec that makes them small enough for the broker.
    """
    chance = random.Random(seed)  # noqa: S311 - a fuzzer, not a secret
    makers = [_compressed(size) for size in COMPRESSED_BYTES for _ in COMPRESSING] + [_large] * LARGE
    makers = makers[:count] + [MAKERS[n % len(MAKERS)] for n in range(max(0, count - len(makers)))]
    chance.shuffle(makers)
    return [make(chance.choice(valid), chance) for make in makers]


def _send(running: Bed, valid: Sequence[Message], bad: Sequence[Message]) -> dict[Any, Place]:
    """Publish both, mixed, by producers of every compression; return places by ("valid" | "bad", number)."""
    senders = [Sender(running, running.producer(**_options(codec))) for codec in CODECS]
    compressing = [Sender(running, running.producer(**_options(codec, 64_000_000))) for codec in COMPRESSING]
    compressed = 0
    step = max(1, len(bad) // len(valid))
    for number, message in enumerate(bad):
        if number % step == 0 and number // step < len(valid):
            good, turn = valid[number // step], number // step
            senders[0].send(("valid", turn), good.key, good.value, good.headers, good.partition)
        if len(message.value or b"") > LARGE_BYTES_MAX:
            sender, compressed = compressing[compressed % len(compressing)], compressed + 1
        else:
            sender = senders[number % len(senders)]
        sender.send(("bad", number), message.key, message.value, message.headers, message.partition)
    places: dict[Any, Place] = {}
    for sender in (*senders, *compressing):
        sender.flush()
        places |= sender.places
    return places


def _options(codec: str, message_bytes_max: int = 3_000_000) -> dict[str, Any]:
    # librdkafka compares this limit with the uncompressed size
    return {"compression.type": codec, "message.max.bytes": message_bytes_max, "queue.buffering.max.messages": 20_000}


def malformed_preserved(setting: Setting) -> Measured:
    """1 if every malformed message is a dead letter, as much of it as is kept, and every valid one decided."""
    with streams(setting) as paths, bed(setting, policy=unhurried()) as running:
        signers = running.signers(tenants_of(paths))
        events = (item for item in interleaved(paths, "m") if isinstance(item, Published))
        valid = [_valid(event, signers) for event in islice(events, VALID)]
        bad = malform(valid, MALFORMED, seed=3)
        workers = [running.start(stage) for stage in STAGES]
        places = _send(running, valid, bad)
        setting.say(f"{len(places):,} messages sent, {len(bad):,} of them malformed")
        running.drain(THROUGH_S_MAX)
        ledger = read(running)
        keyring = running.store.keyring()
        running.stop(*workers)
    notes = {place: note for place, parts in ledger.dead.items() if "kept" in (note := _why(parts[0]))}
    letters = {place: original(map(_letter, parts)) for place, parts in ledger.dead.items() if place not in notes}
    at = [places.get(("bad", n), ("", 0, 0)) for n in range(len(bad))]
    intact = sum(letters.get(place) == _told(message) for place, message in zip(at, bad, strict=True))
    packed = sum(
        len(message.value or b"") > UNPACKED_BYTES_MAX and _not_unpacked(letters.get(place))
        for place, message in zip(at, bad, strict=True)
    )
    noted = sum(
        notes.get(place, {}).get("digest") == digest_of(_record(message), keyring)
        for place, message in zip(at, bad, strict=True)
    )
    decided = sum(places.get(("valid", n)) in ledger.verdicts for n in range(len(valid)))
    reasons: dict[str, int] = {}
    for parts in ledger.dead.values():
        reason = _why(parts[0])["reason"]
        reasons[reason] = reasons.get(reason, 0) + 1
    table = (
        ("malformed messages sent", f"{len(bad):,}, of {len(MAKERS) + 2} kinds, {LARGE} of them up to 2 MB"),
        ("… 6 and 30 MB of zeros under gzip and zstd", str(len(COMPRESSED_BYTES) * len(COMPRESSING))),
        ("of these, dead letters", f"{len(ledger.dead):,}"),
        ("records that these take", f"{sum(map(len, ledger.dead.values())):,}"),
        ("… with key, value and headers byte for byte", f"{intact:,}"),
        ("… beyond what is kept of a sender in a day: a note with their digest", f"{noted:,}"),
        ("… whose batch unpacks to more than is unpacked: their place and reason", f"{packed:,}"),
        ("valid events among them, decided", f"{decided:,} of {len(valid):,}"),
        ("reasons", ", ".join(f"{count:,} {name}" for name, count in sorted(reasons.items()))),
        ("workers that crashed", "0"),
    )
    holds = intact + noted + packed == len(bad) == len(ledger.dead) and decided == len(valid)
    return Measured(float(holds), table)


def _valid(event: Published, signers: Mapping[tuple[str, str], dsse.Signer]) -> Message:
    key, value, headers = signed(event, signers)
    return Message(key, value, headers, partition_of(event.payload.tenant, names.PARTITIONS))


def _why(letter: Any) -> dict[str, Any]:
    return dict(orjson.loads(letter.headers()[-1][1]))


def _not_unpacked(letter: tuple[bytes | None, bytes | None, Headers] | None) -> bool:
    return letter is not None and [name for name, _ in letter[2]] == [NOT_UNPACKED_HEADER]


def _record(message: Message) -> Record:
    return Record("", message.partition, 0, message.key, message.value, tuple(message.headers))


def _told(message: Message) -> tuple[bytes | None, bytes | None, Headers]:
    return message.key, message.value, tuple(message.headers)


def _letter(message: Any) -> tuple[bytes | None, bytes | None, Headers]:
    return message.key(), message.value(), tuple(message.headers())
