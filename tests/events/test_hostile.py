"""Hostile input: whatever arrives is read in one way or refused by code and field, and never breaks the reader."""

import base64
import json
import random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.events.build import a_write, message

from memsluice.envelope import dsse
from memsluice.errors import InputError, LimitExceeded, MalformedEvent
from memsluice.events import cloudevent, limits
from memsluice.events.cloudevent import Headers
from memsluice.events.models import parse_payload
from memsluice.events.names import EventType

FUZZ_CASES = 20_000
BASE: dict[str, Any] = a_write().model_dump(mode="json")
BINARY, STRUCTURED = message(), message(structured=True)
EVIL = "evil-name-chosen-by-the-sender"


def read_all(key: bytes | None, value: bytes | None, headers: Headers) -> str:
    """Read a message to the end, as *seal* does before it verifies, and return the id in its payload."""
    received = cloudevent.read(key, value, headers)
    envelope = dsse.parse(received.envelope)
    payload = parse_payload(received.type, envelope.payload)
    cloudevent.check_agreement(received, payload)
    return payload.id


def changed(name: str, value: bytes | None) -> Headers:
    """Return the binary message's headers with one replaced."""
    return (*(header for header in BINARY.headers if header[0] != name), (name, value))


def without(name: str) -> Headers:
    """Return the binary message's headers without one."""
    return tuple(header for header in BINARY.headers if header[0] != name)


def structured(**fields: Any) -> bytes:
    """Return the structured message's value with fields replaced (None removes)."""
    value = {**orjson.loads(STRUCTURED.value), **fields}
    return orjson.dumps({name: field for name, field in value.items() if field is not None})


ONE = {"keyid": "k", "sig": ""}


def envelope(**fields: Any) -> bytes:
    """Return an envelope with fields replaced (None removes)."""
    value = {"payload": "e30=", "payloadType": "x", "signatures": [ONE], **fields}
    return orjson.dumps({name: field for name, field in value.items() if field is not None})


def signed(text: str | bytes) -> bytes:
    """Return an envelope whose payload is this text, whatever it is."""
    payload = text.encode() if isinstance(text, str) else text
    return orjson.dumps(
        {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": "application/vnd.memory.write.v1+json",
            "signatures": [{"keyid": "k", "sig": "AA=="}],
        }
    )


def payload(**fields: Any) -> bytes:
    """Return an envelope whose payload has fields replaced."""
    return signed(json.dumps({**BASE, **fields}))


def raw_payload(old: str, new: str) -> bytes:
    """Return an envelope whose payload text has one piece replaced."""
    text = json.dumps(BASE)
    assert old in text
    return signed(text.replace(old, new))


H = BINARY.headers
S = STRUCTURED.headers
CASES: dict[str, tuple[bytes | None, bytes | None, Headers, str, str]] = {
    # name: key, value, headers, code, field
    "null value": (b"acme", None, H, "malformed", "value"),
    "empty value": (b"acme", b"", H, "malformed", "value"),
    "too large": (b"acme", b"x" * (limits.RECORD_BYTES_MAX + 1), H, "limit_exceeded", "value"),
    "a name with a NUL": (b"acme", b"{}", (("a\0b", b""),), "malformed", "headers"),
    "many headers": (b"acme", b"{}", tuple(("x", b"") for _ in range(65)), "limit_exceeded", "headers"),
    "large headers": (b"acme", b"{}", (*H, ("x", b"y" * 9_000)), "limit_exceeded", "headers"),
    "large header names": (b"acme", b"{}", (*H, ("ä" * 4_100, None)), "limit_exceeded", "headers"),
    "repeated header": (b"acme", BINARY.value, (*H, ("ce_id", b"e-2")), "malformed", "ce_id"),
    "repeated, other case": (b"acme", BINARY.value, (*H, ("CE_ID", b"e-2")), "malformed", "ce_id"),
    "header without a value": (b"acme", BINARY.value, changed("ce_id", None), "malformed", "ce_id"),
    "unknown header without a value": (b"acme", BINARY.value, (*H, (f"ce_{EVIL}", None)), "malformed", "ce_*"),
    "no id": (b"acme", BINARY.value, without("ce_id"), "malformed", "id"),
    "no version": (b"acme", BINARY.value, without("ce_specversion"), "malformed", "specversion"),
    "no source": (b"acme", BINARY.value, without("ce_source"), "malformed", "source"),
    "no type": (b"acme", BINARY.value, without("ce_type"), "malformed", "type"),
    "other version": (b"acme", BINARY.value, changed("ce_specversion", b"0.3"), "malformed", "specversion"),
    "unknown type": (b"acme", BINARY.value, changed("ce_type", b"memory.write.v2"), "malformed", "type"),
    "header is no UTF-8": (b"acme", BINARY.value, changed("ce_id", b"\xff\xfe"), "malformed", "attributes"),
    "odd extension name": (b"acme", BINARY.value, (*H, ("ce_a-b", b"x")), "malformed", "attributes"),
    "time without zone": (b"acme", BINARY.value, changed("ce_time", b"2026-05-04T03:02:01"), "malformed", "time"),
    "time is none": (b"acme", BINARY.value, changed("ce_time", b"yesterday"), "malformed", "attributes"),
    "time differs": (b"acme", BINARY.value, changed("ce_time", b"2026-05-04T03:02:02Z"), "malformed", "time"),
    "long source": (b"acme", BINARY.value, changed("ce_source", b"s" * 257), "limit_exceeded", "source"),
    "no mode": (b"acme", BINARY.value, (), "malformed", "content-type"),
    "both modes": (b"acme", STRUCTURED.value, (*S, ("ce_id", b"e-1")), "malformed", "content-type"),
    "key of another tenant": (b"globex", BINARY.value, H, "malformed", "key"),
    "key is no UTF-8": (b"\xff", BINARY.value, H, "malformed", "key"),
    "value is a list": (b"acme", b"[]", H, "malformed", "data"),
    "value is no JSON": (b"acme", b"{", H, "malformed", "value"),
    "value is UTF-16": (b"acme", BINARY.value.decode().encode("utf-16"), H, "malformed", "value"),
    "envelope with a repeated key": (b"acme", BINARY.value[:-1] + b',"payload":"AA=="}', H, "malformed", "value"),
    "trailing bytes": (b"acme", BINARY.value + b"{}", H, "malformed", "value"),
    "deep": (b"acme", b'{"a":' * 50_000, H, "malformed", "value"),
    "deep but closed": (b"acme", b"[" * 1_000 + b"]" * 1_000, H, "malformed", "value"),
    "NaN": (b"acme", b'{"payload":NaN}', H, "malformed", "value"),
    "huge number": (b"acme", b'{"payload":' + b"9" * 5_000 + b"}", H, "malformed", "value"),
    "structured, a list": (b"acme", b"[]", S, "malformed", "value"),
    "structured, no id": (b"acme", structured(id=None), S, "malformed", "id"),
    "structured, numeric id": (b"acme", structured(id=7), S, "malformed", "id"),
    "structured, numeric type": (b"acme", structured(type=7), S, "malformed", "type"),
    "structured, odd key": (b"acme", structured(partitionkey=["acme"]), S, "malformed", "partitionkey"),
    "structured, data is text": (b"acme", structured(data=BINARY.value.decode()), S, "malformed", "data"),
    "structured, data twice": (b"acme", structured(data_base64="AA=="), S, "malformed", "attributes"),
    "structured, repeated id": (
        b"acme", STRUCTURED.value[:-1] + b',"id":"e-1"}', S, "malformed", "value",
    ),
    "structured, lone surrogate": (
        b"acme", STRUCTURED.value[:-1] + b',"subject":"\\ud800"}', S, "", "",
    ),
    "envelope, no payload": (b"acme", envelope(payload=None), H, "malformed", "payload"),
    "envelope, numeric type": (b"acme", envelope(payloadType=1), H, "malformed", "payloadType"),
    "envelope, type that no UTF-8 has": (
        b"acme", envelope(payloadType="?").replace(b"?", b"\\ud800"), H, "malformed", "payloadType",
    ),
    "envelope, no signature": (b"acme", envelope(signatures=[]), H, "malformed", "signatures"),
    "envelope, nine signatures": (
        b"acme", envelope(signatures=[{"keyid": str(n), "sig": ""} for n in range(9)]), H, "malformed", "signatures",
    ),
    "envelope, one key twice": (b"acme", envelope(signatures=[ONE, ONE]), H, "malformed", "signatures.1.keyid"),
    "envelope, signature is a number": (b"acme", envelope(signatures=[7]), H, "malformed", "signatures.0.keyid"),
    "envelope, long key id": (
        b"acme", envelope(signatures=[{"keyid": "k" * 129, "sig": ""}]), H, "limit_exceeded", "signatures.0.keyid",
    ),
    "envelope, no base64": (b"acme", envelope(payload="*"), H, "malformed", "payload"),
    "envelope, signature no base64": (
        b"acme", envelope(signatures=[{"keyid": "k", "sig": "*"}]), H, "malformed", "signatures.0.sig",
    ),
    "source cannot be printed": (
        b"acme", STRUCTURED.value.replace(b"urn:test", b"\\ud800"), S, "malformed", "source",
    ),
    "payload is no JSON": (b"acme", signed("{"), H, "malformed", "payload"),
    "payload is no object": (b"acme", signed("[1]"), H, "malformed", "payload"),
    "payload is no UTF-8": (b"acme", signed(b'{"id":"\xff"}'), H, "malformed", "payload"),
    "payload with a repeated key": (b"acme", raw_payload('"id"', '"content":"other","id"'), H, "malformed", "payload"),
    "payload with trailing bytes": (b"acme", signed(json.dumps(BASE) + "{}"), H, "malformed", "payload"),
    "payload, unknown field": (b"acme", payload(**{EVIL: 1}), H, "malformed", "*"),
    "payload, missing field": (b"acme", raw_payload('"tenant": "acme", ', ""), H, "malformed", "tenant"),
    "payload, tenant in capitals": (b"acme", payload(tenant="ACME"), H, "malformed", "tenant"),
    "payload, long tenant": (b"acme", payload(tenant="a" * 64), H, "limit_exceeded", "tenant"),
    "payload, control in a name": (b"acme", payload(agent="a\nb"), H, "malformed", "agent"),
    "payload, newline after an id": (b"acme", payload(id="e-1\n"), H, "malformed", "id"),
    "payload, number for text": (b"acme", payload(content=7), H, "malformed", "content"),
    "payload, empty content": (b"acme", payload(content=""), H, "malformed", "content"),
    "payload, long content": (b"acme", payload(content="x" * 32_769), H, "limit_exceeded", "content"),
    "payload, content long in bytes": (b"acme", payload(content="ä" * 16_385), H, "limit_exceeded", "content"),
    "payload, lone surrogate": (b"acme", payload(content="\ud800"), H, "malformed", "payload"),
    "payload, NaN": (b"acme", raw_payload('"prefers tea"', "NaN"), H, "malformed", "content"),
    "payload, many parents": (b"acme", payload(parents=["p"] * 65), H, "limit_exceeded", "parents"),
    "payload, odd parent": (b"acme", payload(parents=["p", " "]), H, "malformed", "parents.1"),
    "payload, tier as text": (b"acme", payload(claimed_tier="3"), H, "malformed", "claimed_tier"),
    "payload, tier 0": (b"acme", payload(claimed_tier=0), H, "malformed", "claimed_tier"),
    "payload, unknown kind": (b"acme", payload(kind="code"), H, "malformed", "kind"),
    "payload, seconds for a time": (b"acme", payload(time=1_767_225_600), H, "malformed", "time"),
    "payload, seconds as text": (b"acme", payload(time="1767225600"), H, "malformed", "time"),
    "payload, time without zone": (b"acme", payload(time="2026-05-04T03:02:01"), H, "malformed", "time"),
    "payload, before the calendar": (b"acme", payload(time="0001-01-01T00:00:00+14:00"), H, "malformed", "time"),
    "payload, deep": (b"acme", payload(content=json.loads("[" * 150 + "]" * 150)), H, "malformed", "content"),
    "payload, deeper": (b"acme", signed("[" * 100_000), H, "malformed", "payload"),
    "payload is another type's": (
        b"acme", BINARY.value, changed("ce_type", b"memory.recall.v1"), "malformed", "question",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_fault_has_its_code_and_field(name: str) -> None:
    """Every way to be wrong is refused with a stable code and the field's name, and quotes nothing of the input."""
    key, value, headers, code, field = CASES[name]
    if not code:  # odd, but with one reading: nothing that the gate uses is touched
        assert read_all(key, value, headers) == BASE["id"]
        return
    with pytest.raises(InputError) as caught:
        read_all(key, value, headers)
    assert (caught.value.code, caught.value.field) == (code, field)
    assert EVIL not in str(caught.value)
    assert "prefers tea" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_the_untouched_messages_are_read() -> None:
    """The cases above differ from these by one fault: the faults are what is refused."""
    assert read_all(*BINARY) == BASE["id"]
    assert read_all(*STRUCTURED) == BASE["id"]


def test_headers_of_others_may_repeat_and_be_null() -> None:
    """Only CloudEvents headers are ours to judge: a tracing library may repeat its own, with null values."""
    extra: Headers = (("baggage", b"1"), ("baggage", b"2"), ("x", None), ("ce_id", b"e-1"))
    assert read_all(b"acme", BINARY.value, (*BINARY.headers, *extra)) == BASE["id"]


def test_an_optional_time_is_not_made_up() -> None:
    """Without ce_time there is no time: the library's own default would differ at every re-read."""
    received = cloudevent.read(b"acme", BINARY.value, without("ce_time"))
    assert received.time is None


@pytest.mark.parametrize("number", ["1" * 400, str(2**63), "1e400", "true", "1.5", '"1"'])
def test_a_version_fits_64_bits(number: str) -> None:
    """An integer that the codec could not write later is refused here, not in the middle of a batch."""
    text = (
        '{"id":"e","tenant":"acme","time":"2026-05-04T03:02:01Z","agent":"a","principal":"p","session":"s",'
        '"question":"q","returned":[{"object_id":"%s","version":%s,"event_id":"e","tier":3,"taint":true}]}'
    )
    with pytest.raises(InputError):
        parse_payload(EventType.RECALL, (text % ("0" * 36, number)).encode())
    assert parse_payload(EventType.RECALL, (text % ("0" * 36, 2**63 - 1)).encode())


def _mutate(rng: random.Random, data: bytes) -> bytes:
    damaged = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(damaged) + 1)
        how = rng.randrange(5)
        if how == 0:
            damaged[at : at + 1] = bytes([rng.randrange(256)])
        elif how == 1:
            del damaged[at : at + rng.randint(1, 30)]
        elif how == 2:
            damaged[at:at] = rng.choice([b"{", b"[", b'"', b"\\ud800", b"null", b"1e999", b"NaN", b"\0", b'"id":1,'])
        elif how == 3:
            damaged[at:at] = rng.randbytes(rng.randint(1, 20))
        else:
            damaged[at:at] = damaged[: rng.randint(0, 200)]
    return bytes(damaged)


def _sources(rng: random.Random) -> tuple[bytes | None, bytes | None, Headers]:
    built = rng.choice([BINARY, STRUCTURED])
    key, value, headers = built
    how = rng.randrange(6)
    if how == 0:
        return key, _mutate(rng, value), headers
    if how == 1:
        return key, signed(_mutate(rng, json.dumps(BASE).encode())), BINARY.headers
    if how == 2:
        number = rng.randrange(len(headers))
        name, content = headers[number]
        damaged = rng.choice([_mutate(rng, content or b""), None])
        return key, value, (*headers[:number], (name, damaged), *headers[number + 1 :])
    if how == 3:
        return rng.choice([None, b"", rng.randbytes(8)]), value, rng.choice([headers, headers * 2, ()])
    if how == 4:
        return key, rng.randbytes(rng.randint(0, 300)), headers
    letters = "".join(chr(rng.randrange(0x20, 0xD7FF)) for _ in range(rng.randint(0, 8)))
    return key, value, (*headers, (rng.choice(["ce_", "CE_", ""]) + letters, rng.randbytes(5)))


def refusal(*case: Any) -> InputError | None:
    """Return how a message is refused, None where it is read."""
    try:
        read_all(*case)
    except InputError as error:
        return error
    return None


def test_twenty_thousand_damaged_messages_raise_nothing_else() -> None:
    """Damage of any kind ends in an InputError with a field's name that the gate chose, or in a good event."""
    rng, refused = random.Random(20_261_120), 0
    for number in range(FUZZ_CASES):
        error = refusal(*_sources(rng))
        if error is not None:
            refused += 1
            assert 0 < len(error.field) < 60, number
            assert len(str(error)) < 400, number
    assert refused > FUZZ_CASES // 2


HEADERS = st.lists(st.tuples(st.text(max_size=12), st.none() | st.binary(max_size=20)), max_size=6)


@given(st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=200), HEADERS)
@settings(max_examples=500, deadline=None)
def test_arbitrary_messages_raise_nothing_else(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    """Bytes that nobody made on purpose are refused in the same way."""
    with pytest.raises(InputError):
        read_all(key, value, tuple(headers))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


def _field_or_value(field: str, text: str) -> tuple[str | None, Any]:
    try:
        return None, getattr(parse_payload(EventType.WRITE, text.encode()), field)
    except (MalformedEvent, LimitExceeded) as error:
        return error.field.split(".")[0], None


@given(st.sampled_from(sorted(BASE)), JSON)
@settings(max_examples=500, deadline=None)
def test_every_field_takes_its_own_type_only(field: str, value: Any) -> None:
    """Any JSON value in any field: read back as what was sent, or refused under that field's name."""
    wrong, read = _field_or_value(field, json.dumps({**BASE, field: value}))
    if wrong is None:
        assert read == (tuple(value) if isinstance(value, list) else value)
    else:
        assert wrong in (field, "payload")
