"""*seal*: who may say what, bad input by reason code with its bytes, vectors. Keys and encoder are real."""

from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import numpy as np
import orjson
import pytest
from tests.encoders import minilm

from memsluice.encoder import Encoder
from memsluice.envelope import codec, dsse
from memsluice.envelope.keys import Algorithm, Ed25519Key, HmacKey, Key, Keyring, KeyState, Purpose, generate_ed25519
from memsluice.envelope.registry import Registry
from memsluice.envelope.seals import sealed_from_bytes
from memsluice.events import cloudevent
from memsluice.events.models import Command, Observation, Recall, Write
from memsluice.events.names import DEAD_LETTER_HEADER, PAYLOAD_DIGEST, EventType, payload_type
from memsluice.events.partition import partition_of
from memsluice.events.records import Output, Record
from memsluice.gate.checks.authenticity import EVENT_WINDOW_MS, FUTURE_SKEW_MS
from memsluice.gate.policy.model import parse
from memsluice.stages.seal import SealStage
from memsluice.topics.names import COMMANDS, DEAD_LETTER, EVENTS, PARTITIONS, SEALED
from memsluice_lab.cast import in_memory, kid_of

DIGEST_HEADER = f"ce_{PAYLOAD_DIGEST}"
NOW_MS = 1_780_000_000_000
TENANT, OTHER = "acme", "globex"
PARTITION = partition_of(TENANT, PARTITIONS)
KEYRING, REGISTRY, SIGNERS = in_memory([TENANT, OTHER], seed="test")
FIELDS = {
    "id": "e1",
    "tenant": TENANT,
    "time": datetime.fromtimestamp(NOW_MS / 1000, UTC),
    "agent": "planner",
    "principal": "ana",
    "session": "s1",
}


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """The real encoder, loaded once."""
    return minilm()


def message(payload=None, *, source="user", kind=EventType.WRITE, signer=None, structured=False):
    """Return (key, value, headers) of a signed event."""
    payload = payload or Write(**FIELDS, content="Ana takes the early train.")
    signer = signer or SIGNERS[TENANT, source]
    envelope = dsse.sign(payload_type(kind.value), codec.canonical(payload.model_dump(mode="json")), [signer])
    return cloudevent.write(kind, payload, envelope, source="/acme/test", structured=structured)


def record(parts, *, offset=0, topic=EVENTS, partition=PARTITION, at=NOW_MS) -> Record:
    """Return the intake record of a message."""
    return Record(topic, partition, offset, *parts, timestamp_ms=at)


def seal(encoder, records, keyring: Keyring = KEYRING, registry: Registry = REGISTRY) -> list[list[Output]]:
    """Run a batch through a fresh stage."""
    return SealStage(lambda: keyring, lambda: registry, encoder, PARTITIONS).process(records)


def reason(outputs: list[Output]) -> str:
    """Return a dead letter's reason code."""
    assert [output.topic for output in outputs] == [DEAD_LETTER, SEALED]
    name, value = outputs[0].headers[-1]
    assert name == DEAD_LETTER_HEADER
    return str(orjson.loads(value)["reason"])


def test_a_signed_write_is_sealed_with_its_label_position_and_vector(encoder) -> None:
    """Screen gets who it was (from the registry), where it lay, and the numbers to decide on."""
    ((output,),) = seal(encoder, [record(message(), offset=7)])
    sealed = sealed_from_bytes(KEYRING, TENANT, output.value)
    assert (output.topic, output.partition, output.key) == (SEALED, PARTITION, b"acme")
    assert (sealed.identity.channel, sealed.position.offset, sealed.position.append_ms) == ("user", 7, NOW_MS)
    assert float(sealed.vector() @ encoder.encode([sealed.payload.content])[0]) > 0.9999
    assert sealed.content_digest == codec.content_digest(KEYRING, TENANT, "Ana takes the early train.")


def test_a_write_is_sealed_with_what_its_wording_showed_and_nothing_else_is(encoder) -> None:
    """The decision needs no model of its own. A question gives no orders, and an encoder without a head reads none."""
    asked = message(Recall(**{**FIELDS, "id": "r1"}, question="Which train?"), source="reader", kind=EventType.RECALL)
    (write,), (recall,) = seal(encoder, [record(message()), record(asked, offset=1)])
    shown = sealed_from_bytes(KEYRING, TENANT, write.value).wording
    assert shown == encoder.read(["Ana takes the early train."])[1][0]
    assert sealed_from_bytes(KEYRING, TENANT, recall.value).wording is None
    ((headless,),) = seal(Headless(encoder), [record(message())])
    assert sealed_from_bytes(KEYRING, TENANT, headless.value).wording is None


class Headless:
    """An encoder that makes vectors and reads no wording."""

    def __init__(self, encoder: Encoder) -> None:
        self.model_id, self.revision, self.dimensions = encoder.model_id, encoder.revision, encoder.dimensions
        self.encode = encoder.encode


def test_a_retry_with_a_time_of_its_own_is_the_same_event(encoder) -> None:
    """Said again after a failure, with the same id: the gate must know it for a duplicate, not hold it."""
    later = FIELDS | {"time": datetime.fromtimestamp(NOW_MS / 1000 + 5, UTC)}
    events = [Write(**fields, content="Ana takes the early train.") for fields in (FIELDS, later)]
    events.append(Write(**later, content="Ana takes the late train."))
    results = seal(encoder, [record(message(event)) for event in events])
    first, again, other = (sealed_from_bytes(KEYRING, TENANT, outputs[0].value).payload_digest for outputs in results)
    assert first == again != other


def test_structured_mode_is_read_too(encoder) -> None:
    """A producer with another CloudEvents library may send the whole event as one JSON document."""
    ((output,),) = seal(encoder, [record(message(structured=True))])
    assert sealed_from_bytes(KEYRING, TENANT, output.value).payload.id == "e1"


LATER = Write(**FIELDS, content="Ana takes the later train.")


def tampered(*, structured: bool = False) -> tuple:
    """Return a message whose payload was changed after signing."""
    key, value, headers = message(structured=structured)
    document = orjson.loads(value)
    envelope = document["data"] if structured else document
    changed = dsse.parse(envelope).payload.replace(b"early", b"later")
    envelope["payload"] = dsse.sign("x", changed, [HmacKey("x", b"x" * 32)])["payload"]
    return key, orjson.dumps(document), headers


def without_digest(parts: tuple, instead: bytes | None = None) -> tuple:
    """Return a message that states no digest of its payload, or another one."""
    key, value, headers = parts
    rest = tuple(header for header in headers if header[0] != DIGEST_HEADER)
    assert len(rest) == len(headers) - 1
    return key, value, (*rest, (DIGEST_HEADER, instead)) if instead is not None else rest


@pytest.mark.parametrize("stated", [None, b"0" * 64, b"a word", b""])
def test_the_stated_digest_refuses_no_event_and_lets_none_pass(encoder, stated) -> None:
    """Nobody signed it: a good event passes without it or beside a wrong one, a forged one never with a right one."""
    ((output,),) = seal(encoder, [record(without_digest(message(), stated))])
    assert output.topic == SEALED
    forger = HmacKey(kid_of(TENANT, "user"), b"f" * 32)
    assert reason(seal(encoder, [record(message(signer=forger))])[0]) == "forged_signature"


def attacks() -> dict[str, tuple[Record, str]]:
    """Return intake records that must each fail for their own reason."""
    forged = HmacKey(kid_of(TENANT, "user"), b"not the key, not the key, not it")
    stranger = HmacKey("nobody", b"n" * 32)
    theirs = SIGNERS[OTHER, "user"]
    recall = Recall(**FIELDS, question="when?")
    late = record(message(), at=NOW_MS + EVENT_WINDOW_MS + 1)
    return {
        "forged": (record(message(signer=forged)), "forged_signature"),
        "tampered": (record(tampered()), "tampered"),
        "tampered, structured mode": (record(tampered(structured=True)), "tampered"),
        "tampered, and no digest stated": (record(without_digest(tampered())), "forged_signature"),
        "tampered, and another digest stated": (record(without_digest(tampered(), b"a word")), "tampered"),
        "forged over other bytes, digest and all": (record(message(LATER, signer=forged)), "forged_signature"),
        "unknown key": (record(message(signer=stranger)), "unknown_key"),
        "another tenant's credential": (record(message(signer=theirs)), "cross_tenant"),
        "agent publishes a recall": (record(message(recall, source="agent", kind=EventType.RECALL)), "not_permitted"),
        "write on the command topic": (record(message(), topic=COMMANDS), "not_permitted"),
        "wrong partition": (record(message(), partition=(PARTITION + 1) % PARTITIONS), "wrong_partition"),
        "older than the window": (late, "clock_skew"),
        "from the future": (record(message(), at=NOW_MS - FUTURE_SKEW_MS - 1), "clock_skew"),
        "null value": (record((b"acme", None, ())), "malformed"),
        "garbage": (record((None, b"\xff\xfe{", (("ce_type", b"\xff"),))), "malformed"),
        "too large": (record((b"acme", b"x" * 2_000_000, ())), "limit_exceeded"),
    }


@pytest.mark.parametrize("name", sorted(attacks()))
def test_what_fails_authenticity_is_a_dead_letter_with_its_own_reason_and_bytes(encoder, name) -> None:
    """Each attack has its own reason code; bytes, key and headers are kept; one marker takes its place in the order."""
    attack, code = attacks()[name]
    (outputs,) = seal(encoder, [replace(attack, offset=3, headers=(*attack.headers, ("x", b"1"), ("x", b"2")))])
    assert reason(outputs) == code
    letter, marker = outputs
    assert (letter.key, letter.value, letter.partition) == (attack.key, attack.value, attack.partition)
    assert letter.headers[:-1] == (*attack.headers, ("x", b"1"), ("x", b"2"))
    stands_for = sealed_from_bytes(KEYRING, "", marker.value)
    assert (stands_for.type, stands_for.position.offset, marker.partition) == ("marker", 3, attack.partition)


def test_an_expired_a_revoked_and_a_valid_key_by_the_brokers_clock(encoder) -> None:
    """not_after is judged by when the broker appended the event, so a producer's own clock cannot stretch it."""
    kid = kid_of(TENANT, "user")
    expired = KEYRING.with_key(replace(KEYRING.get(kid), not_after_ms=NOW_MS))
    revoked = KEYRING.with_key(replace(KEYRING.get(kid), state=KeyState.REVOKED))
    before, after = record(message(), at=NOW_MS - 1), record(message(), at=NOW_MS)
    assert seal(encoder, [before], expired)[0][0].topic == SEALED
    assert reason(seal(encoder, [after], expired)[0]) == "expired_key"
    assert reason(seal(encoder, [after], revoked)[0]) == "revoked_key"


def test_one_bad_record_takes_no_good_one_with_it(encoder) -> None:
    """Of 64 records in a batch, the 12 bad ones become dead letters and the others are sealed, in order."""
    bad = [attack for attack, _ in attacks().values() if attack.topic == EVENTS]
    good = [record(message(Write(**{**FIELDS, "id": f"g{n}"}, content=f"note {n}")), offset=100 + n) for n in range(50)]
    batch = [*good[:25], *bad, *good[25:]]
    outputs = seal(encoder, batch)
    offsets = [sealed_from_bytes(KEYRING, o[-1].key.decode(), o[-1].value).position.offset for o in outputs]
    assert offsets == [one.offset for one in batch]
    assert sum(len(one) == 2 for one in outputs) == len(bad)


@pytest.mark.parametrize("where", ["memsluice.gate.checks.sensitive.found", "memsluice.encoder.texts.undressed"])
def test_a_text_on_which_our_own_reading_fails_takes_no_other_with_it(encoder, monkeypatch, where: str) -> None:
    """It is a dead letter that names our line and quotes nothing; a session that saw it is tainted all the same."""
    module, _, name = where.rpartition(".")
    reading = getattr(import_module(module), name)

    def failing(text: str, *more: Any) -> Any:
        if "poison" in text:
            raise ValueError(text)
        return reading(text, *more)

    monkeypatch.setattr(where, failing)
    seen = Observation(**{**FIELDS, "id": "o1"}, origin="web", content="a poison page")
    batch = [
        record(message(Write(**{**FIELDS, "id": "g1"}, content="a note"))),
        record(message(Write(**{**FIELDS, "id": "b1"}, content="some poison"))),
        record(message(seen, source="runtime", kind=EventType.OBSERVATION)),
        record(message(Write(**{**FIELDS, "id": "g2"}, content="another note"))),
        record(message(Recall(**FIELDS, question="which poison?"), source="reader", kind=EventType.RECALL)),
    ]
    good, bad, page, other, asked = seal(encoder, batch)
    recall = sealed_from_bytes(KEYRING, TENANT, asked[-1].value)
    assert (reason(asked), recall.type, recall.problem) == ("unreadable", EventType.RECALL, "unreadable")
    assert (len(good), len(other), reason(bad)) == (1, 1, "unreadable")
    assert sealed_from_bytes(KEYRING, "", bad[-1].value).type == "marker", "*screen* has nothing to decide on"
    why = dict(bad[0].headers)["memsluice-dead-letter"]
    assert b"ValueError in test_seal.py, line" in why
    assert b"poison" not in why
    sealed = sealed_from_bytes(KEYRING, TENANT, page[-1].value)
    assert sealed.type == EventType.OBSERVATION
    if module.endswith("sensitive"):
        assert (reason(page), sealed.problem, sealed.payload.content) == ("unreadable", "unreadable", None)
    else:
        assert len(page) == 1, "what a session saw is not embedded"


class Wordless:
    """An encoder that finds nothing in one text, as a model of words may."""

    def __init__(self, encoder: Encoder) -> None:
        self.model_id, self.revision, self.dimensions = encoder.model_id, encoder.revision, encoder.dimensions
        self._encoder = encoder

    def encode(self, texts):
        """Return the encoder's vectors, zeros for "???"."""
        return self._encoder.encode(texts) * np.array([[text != "???"] for text in texts])


def test_a_text_without_a_vector_is_a_dead_letter_and_takes_no_other_with_it(encoder) -> None:
    """The one is refused with field and reason, the other sealed: no text stops the stream."""
    batch = [
        record(message(Write(**{**FIELDS, "id": f"g{n}"}, content=said))) for n, said in enumerate(("???", "note"))
    ]
    bad, good = seal(Wordless(encoder), batch)
    assert dict(bad[1].headers)["memsluice-reason"] == b"malformed"
    assert b'"field":"content"' in dict(bad[0].headers)["memsluice-dead-letter"]
    assert len(good) == 1


def test_markers_make_no_write_longer_than_its_policy_allows(encoder) -> None:
    """What was short enough stays so: stars stand where words in brackets would be too long."""
    text = "PIN 1234 " * 900
    sealed, _ = taken(encoder, Write(**FIELDS, content=text), "redact")
    assert sealed.payload.content == "PIN **** " * 900


def test_what_a_session_saw_is_sealed_even_if_its_event_is_refused(encoder) -> None:
    """A recall or observation by a credential that may publish such is dead-lettered *and* sealed with its problem."""
    seen = Observation(**FIELDS, origin="web")
    late = record(message(seen, source="runtime", kind=EventType.OBSERVATION), at=NOW_MS + EVENT_WINDOW_MS + 1)
    (outputs,) = seal(encoder, [late])
    assert reason(outputs) == "clock_skew"
    sealed = sealed_from_bytes(KEYRING, TENANT, outputs[-1].value)
    assert (sealed.type, sealed.problem, sealed.payload) == (EventType.OBSERVATION, "clock_skew", seen)
    theirs = message(seen, kind=EventType.OBSERVATION, signer=SIGNERS[OTHER, "runtime"])
    (outputs,) = seal(encoder, [record(theirs)])
    assert sealed_from_bytes(KEYRING, "", outputs[-1].value).type == "marker"


SAID = {**FIELDS, "time": "2026-05-28T20:26:40Z", "origin": "web"}
ASKED = {**FIELDS, "time": "2026-05-28T20:26:40Z", "question": "when?"}
GIVEN = {"object_id": "0" * 36, "version": 1, "event_id": "w1", "tier": 3, "taint": False}


def signed(said: dict, kind: EventType = EventType.OBSERVATION, *, signer=None) -> Record:
    """Return the record of whatever was signed as a payload, by the runtime's or the reader's credential."""
    source = "runtime" if kind is EventType.OBSERVATION else "reader"
    payload = said if isinstance(said, bytes) else codec.canonical(said)
    envelope = dsse.sign(payload_type(kind.value), payload, [signer or SIGNERS[TENANT, source]])
    return record(cloudevent.write(kind, Observation(**FIELDS, origin="web"), envelope, source="/acme/test"))


def with_headers(**changed: bytes) -> Record:
    """Return a signed observation in whose headers something else stands."""
    parts = signed(SAID)
    headers = tuple((name, changed.get(name, value)) for name, value in parts.headers)
    assert headers != parts.headers
    return replace(parts, headers=headers)


def refused_but_seen() -> dict[str, tuple[Record, str]]:
    """Return records of recalls and observations that are refused, with a reason, and were signed by who may do so."""
    return {
        "content beyond its limit": (signed({**SAID, "content": "x" * 32_769}), "limit_exceeded"),
        "a record beyond its limit": (signed({**SAID, "content": "x" * 1_000_000}), "limit_exceeded"),
        "an origin of a later version": (signed({**SAID, "origin": "satellite"}), "malformed"),
        "a field of a later version": (signed({**SAID, "weather": {"is": ["fine"]}}), "malformed"),
        "an id that is none": (signed({**SAID, "id": "\n"}), "malformed"),
        "no time": (signed({name: value for name, value in SAID.items() if name != "time"}), "malformed"),
        "an agent beyond its limit": (signed({**SAID, "agent": "a" * 129}), "limit_exceeded"),
        "a lone surrogate": (signed(orjson.dumps(SAID)[:-1] + b',"content":"\\ud800"}'), "malformed"),
        "another id in the headers": (with_headers(ce_id=b"e2"), "malformed"),
        "another type in the headers": (with_headers(ce_type=b"memory.write.v1"), "forged_signature"),
        "no type that is known": (with_headers(ce_type=b"memory.dream.v1"), "malformed"),
        "on the command topic": (replace(signed(SAID), topic=COMMANDS), "not_permitted"),
        "a question beyond its limit": (signed({**ASKED, "question": "?" * 4_097}, EventType.RECALL), "limit_exceeded"),
        "too much returned": (signed({**ASKED, "returned": [GIVEN] * 300}, EventType.RECALL), "limit_exceeded"),
    }


@pytest.mark.parametrize("name", sorted(refused_but_seen()))
def test_whatever_is_wrong_with_it_what_a_session_saw_is_sealed(encoder, name) -> None:
    """The signature holds and says who may say so: beside the dead letter the session is named, so that it taints."""
    refused, code = refused_but_seen()[name]
    (outputs,) = seal(encoder, [replace(refused, offset=3)])
    assert reason(outputs) == code
    sealed = sealed_from_bytes(KEYRING, TENANT, outputs[-1].value)
    seen = (sealed.payload.session, sealed.problem, sealed.position.offset, sealed.identity.role.value)
    assert seen == ("s1", code, 3, "reader" if isinstance(sealed.payload, Recall) else "runtime")
    assert getattr(sealed.payload, "origin", "web") == "web"


def test_what_a_session_saw_counts_by_a_key_that_has_ended(encoder) -> None:
    """Revoked while the platform runs on, or expired: its opened sessions do not stay clean by that."""
    key = KEYRING.get(kid_of(TENANT, "runtime"))
    for changed, code in ((replace(key, state=KeyState.REVOKED), "revoked_key"),
                          (replace(key, not_after_ms=NOW_MS - 1), "expired_key")):  # fmt: skip
        (outputs,) = seal(encoder, [signed(SAID)], KEYRING.with_key(changed))
        assert reason(outputs) == code
        assert sealed_from_bytes(KEYRING, TENANT, outputs[-1].value).problem == code


def not_believed() -> dict[str, Record]:
    """Return records that say that a session saw something, by nobody who may."""
    (foreign,) = {partition_of(OTHER, PARTITIONS)}
    return {
        "forged": signed(SAID, signer=HmacKey(kid_of(TENANT, "runtime"), b"f" * 32)),
        "unknown key": signed(SAID, signer=HmacKey("nobody", b"n" * 32)),
        "a key of the gate's": signed(SAID, signer=KEYRING.direct("lab-seal")),
        "another tenant's runtime": signed(SAID, signer=SIGNERS[OTHER, "runtime"]),
        "an agent": signed(SAID, signer=SIGNERS[TENANT, "agent"]),
        "a reader's observation": signed(SAID, signer=SIGNERS[TENANT, "reader"]),
        "signed as another type": replace(signed(ASKED, EventType.RECALL, signer=SIGNERS[TENANT, "runtime"])),
        "wrong partition": replace(signed(SAID), partition=(PARTITION + 1) % PARTITIONS),
        "another tenant's session": replace(signed({**SAID, "tenant": OTHER}), partition=foreign),
        "no session": signed({**SAID, "session": "s" * 129}),
        "two readings": signed(orjson.dumps({**SAID, "more": 1})[:-1] + b',"session":"s2"}'),
        "no object": signed(b"[]"),
        "beyond what is searched": signed({**SAID, "content": "x" * 2_621_440}),
    }


@pytest.mark.parametrize("name", sorted(not_believed()))
def test_nobody_else_taints_a_session(encoder, name) -> None:
    """A signature that does not hold, a stranger's, one of who may not say so: a marker, whatever the event claims."""
    (outputs,) = seal(encoder, [not_believed()[name]])
    assert sealed_from_bytes(KEYRING, "", outputs[-1].value).type == "marker"


def test_words_are_sketched_of_what_was_seen_and_of_what_an_agent_wrote(encoder) -> None:
    """Keyed by tenant, for a policy that compares them; what a person typed is never compared."""
    text = "Visitors send their parking permits to the harbour office."

    def sketch(payload, source: str, kind: EventType = EventType.WRITE) -> str:
        (outputs,) = seal(encoder, [record(message(payload, source=source, kind=kind))])
        return sealed_from_bytes(KEYRING, TENANT, outputs[-1].value).sketch

    seen = sketch(Observation(**FIELDS, origin="web", content=text), "runtime", EventType.OBSERVATION)
    assert seen == sketch(Write(**FIELDS, content=text), "agent") == codec.sketch(KEYRING, TENANT, text.upper())
    assert seen != codec.sketch(KEYRING, OTHER, text)
    assert len(codec.sketch_words(seen)) == 7
    assert sketch(Write(**FIELDS, content=text), "user") == ""
    assert sketch(Observation(**FIELDS, origin="web"), "runtime", EventType.OBSERVATION) == ""


def test_a_recalls_vector_is_checked_against_its_question(encoder) -> None:
    """A reader that searched with another vector than its question's is refused: screening would be steered by it."""
    (vector,) = encoder.encode(["when does the train leave?"])
    honest = Recall(**FIELDS, question="when does the train leave?", vector=codec.vector_to_text(vector))
    other = codec.vector_to_text(np.roll(vector, 1))
    lying = honest.model_copy(update={"vector": other})
    for payload, code in ((honest, None), (lying, "malformed")):
        (outputs,) = seal(encoder, [record(message(payload, source="reader", kind=EventType.RECALL))])
        assert (reason(outputs) if len(outputs) == 2 else None) == code


def test_only_a_wellformed_traceparent_is_passed_on(encoder) -> None:
    """A producer's trace goes on; whatever else it put into headers does not reach the stages."""
    key, value, headers = message()
    trace = b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"
    extra = (("traceparent", b"nonsense"), ("traceparent", trace), ("x-secret", b"1"))
    ((output,),) = seal(encoder, [record((key, value, (*headers, *extra)))])
    assert output.headers == (("traceparent", trace),)


def test_seals_of_the_gate_are_made_with_a_seal_key(encoder) -> None:
    """A key has one purpose: a producer's secret cannot seal."""
    ((output,),) = seal(encoder, [record(message())])
    kid = dsse.parse(orjson.loads(output.value)).signatures[0].kid
    assert KEYRING.get(kid).purpose is Purpose.SEAL


def test_a_credential_issued_a_moment_ago_is_looked_for_before_its_event_is_refused(encoder) -> None:
    """Keys are re-read at intervals; an unknown key id makes the stage look at once, so the first event is not lost."""
    known: list[Registry] = [Registry([])]

    def look() -> None:
        known[0] = REGISTRY

    stage = SealStage(lambda: KEYRING, lambda: known[0], encoder, PARTITIONS, refresh=look)
    ((output,),) = stage.process([record(message())])
    assert output.topic == SEALED


@pytest.mark.parametrize("missing", ["keyring", "registry"])
def test_a_credential_issued_a_moment_ago_is_looked_for_also_where_something_else_is_wrong(encoder, missing) -> None:
    """What a session saw taints it, whatever is wrong with the record: it is not forgotten because a key is new."""
    known = {"keyring": KEYRING, "registry": REGISTRY} | {
        missing: Keyring(key for key in KEYRING if key.kid != "acme.runtime") if missing == "keyring" else Registry([])
    }

    def look() -> None:
        known.update(keyring=KEYRING, registry=REGISTRY)

    stage = SealStage(lambda: known["keyring"], lambda: known["registry"], encoder, PARTITIONS, refresh=look)
    seen = message(Observation(**FIELDS, origin="web"), source="runtime", kind=EventType.OBSERVATION)
    (outputs,) = stage.process([replace(record(seen), key=OTHER.encode())])
    assert reason(outputs) == "malformed"
    sealed = sealed_from_bytes(KEYRING, TENANT, outputs[1].value)
    assert (sealed.problem, sealed.payload.session) == ("malformed", FIELDS["session"])


@pytest.mark.parametrize(
    ("action", "source", "topic", "code"),
    [
        ("appeal", "user", EVENTS, None),
        ("appeal", "agent", EVENTS, None),
        ("appeal", "reader", EVENTS, "not_permitted"),
        ("appeal", "runtime", EVENTS, "not_permitted"),
        ("appeal", "user", COMMANDS, "not_permitted"),
        ("release", "user", EVENTS, "not_permitted"),
        ("release", "user", COMMANDS, "not_permitted"),
        ("release", "reviewer", EVENTS, "not_permitted"),
        ("release", "reviewer", COMMANDS, None),
        ("protect", "operator", COMMANDS, None),
        ("protect", "operator", EVENTS, "not_permitted"),
    ],
)
def test_a_producers_only_command_is_an_appeal_among_the_events(encoder, action, source, topic, code) -> None:
    """Commands travel on the command topic, of operators and reviewers alone; an appeal with the events it is about."""
    told = {name: FIELDS[name] for name in ("id", "tenant", "time")}
    order = Command(**told, action=action, target="e0", expires_at=FIELDS["time"])
    (outputs,) = seal(encoder, [record(message(order, source=source, kind=EventType.COMMAND), topic=topic)])
    assert (reason(outputs) if len(outputs) == 2 else None) == code


def order(signers, **fields) -> Record:
    """Return an intake record of a command on its topic, signed by these."""
    told = {name: FIELDS[name] for name in ("id", "tenant", "time")}
    command = Command(**told, action="declassify", target="e0", expires_at=FIELDS["time"], **fields)
    envelope = dsse.sign(
        payload_type(EventType.COMMAND.value), codec.canonical(command.model_dump(mode="json")), signers
    )
    return record(cloudevent.write(EventType.COMMAND, command, envelope, source="/acme/test"), topic=COMMANDS)


def test_nobody_signs_a_command_twice_or_with_another_role(encoder) -> None:
    """Two signatures are two people of one role: the same key again, or an operator's beside it, is none of that."""
    reviewer, operator = SIGNERS[TENANT, "reviewer"], SIGNERS[TENANT, "operator"]
    assert seal(encoder, [order([reviewer])])[0][0].topic == SEALED
    assert reason(seal(encoder, [order([reviewer, reviewer])])[0]) == "malformed"
    assert reason(seal(encoder, [order([reviewer, operator])])[0]) == "not_permitted"


def test_a_key_of_the_gate_is_nobodys_credential(encoder) -> None:
    """Whoever can sign with a key of another purpose, and got it into the registry, publishes nothing with it."""
    known = REGISTRY.get(kid_of(TENANT, "user"))
    registry = Registry([known.model_copy(update={"kid": "lab-seal"})])
    forged = HmacKey("lab-seal", b"s" * 32)
    (outputs,) = seal(encoder, [record(message(signer=forged))], registry=registry)
    assert reason(outputs) == "unknown_key"


def test_a_command_is_signed_with_ed25519_alone(encoder) -> None:
    """A shared secret proves nothing to a third party: an operator's HMAC key gives no commands."""
    kid = kid_of(TENANT, "reviewer")
    shared = Key(kid, Purpose.CREDENTIAL, Algorithm.HMAC_SHA256, b"k" * 32)
    others = [KEYRING.get(name) for name in ("lab-seal", "lab-digest", "lab-admission")]
    (outputs,) = seal(encoder, [order([HmacKey(kid, b"k" * 32)])], Keyring([*others, shared]))
    assert reason(outputs) == "not_permitted"


def test_a_question_that_is_refused_is_not_encoded(encoder) -> None:
    """It taints its session by having been asked: what costs most is not spent on it, and nothing is decided by it."""
    key = KEYRING.get(kid_of(TENANT, "reader"))
    ended = KEYRING.with_key(replace(key, state=KeyState.REVOKED))
    asked = signed(ASKED, EventType.RECALL)
    for keyring, code, encoded in ((KEYRING, "", True), (ended, "revoked_key", False)):
        (outputs,) = seal(encoder, [asked], keyring)
        sealed = sealed_from_bytes(KEYRING, TENANT, outputs[-1].value)
        assert (sealed.problem, sealed.payload.question) == (code, "when?")
        assert (sealed.vector_text is not None, bool(sealed.model)) == (encoded, encoded)


def test_who_signed_a_command_goes_along_with_it(encoder) -> None:
    """Screen counts them: two reviewers' signatures are two approvers, in their order; an event has none."""
    first, (seed, public) = kid_of(TENANT, "reviewer"), generate_ed25519()
    keyring = KEYRING.with_key(Key("second", Purpose.CREDENTIAL, Algorithm.ED25519, None, public))
    registry = REGISTRY.with_credential(REGISTRY.get(first).model_copy(update={"kid": "second"}))
    signers = [SIGNERS[TENANT, "reviewer"], Ed25519Key("second", secret=seed, public=None)]
    (outputs,) = seal(encoder, [order(signers)], keyring, registry)
    assert sealed_from_bytes(KEYRING, TENANT, outputs[0].value).approvers == (first, "second")
    (outputs,) = seal(encoder, [record(message())])
    assert sealed_from_bytes(KEYRING, TENANT, outputs[0].value).approvers == ()


@pytest.mark.parametrize(
    ("persons", "same_key", "code"),
    [(("ana", "bob"), False, None), (("ana", "ana"), False, "not_permitted"), (("ana", "bob"), True, "not_permitted"),
     (("ana", "*"), False, None)],
)  # fmt: skip
def test_two_keys_of_one_person_are_one_approval(encoder, persons, same_key, code) -> None:
    """A person with two keys, or one key under two ids, does not approve alone; whose keys name nobody may be two."""
    keyring, registry, signers, (seed, public) = KEYRING, REGISTRY, [], generate_ed25519()
    for kid, person in zip(("first", "second"), persons, strict=True):
        seed, public = (seed, public) if same_key else generate_ed25519()
        keyring = keyring.with_key(Key(kid, Purpose.CREDENTIAL, Algorithm.ED25519, None, public))
        grants = REGISTRY.get(kid_of(TENANT, "reviewer")).model_copy(update={"kid": kid, "principals": (person,)})
        registry = registry.with_credential(grants)
        signers.append(Ed25519Key(kid, secret=seed, public=None))
    (outputs,) = seal(encoder, [order(signers)], keyring, registry)
    assert (reason(outputs) if code else outputs[0].topic) == (code or SEALED)


SECRET = "hunter" + "22"
CARD = " ".join(("4111", "1111", "1111", "1111"))


def taken(encoder, payload, action: str, *, source: str = "user", kind: EventType = EventType.WRITE):
    """Return the sealed event of a payload, and the bytes of its record, under a policy file with this action."""
    policy = parse(f"name: own\nsensitive: {{action: {action}}}")
    stage = SealStage(lambda: KEYRING, lambda: REGISTRY, encoder, PARTITIONS, policies=policy.of)
    ((output,),) = stage.process([record(message(payload, source=source, kind=kind))])
    return sealed_from_bytes(KEYRING, TENANT, output.value), inside(output.value)


def inside(value: bytes) -> bytes:
    """Return what a sealed record says, decoded."""
    return dsse.parse(orjson.loads(value)).payload


def test_a_secret_is_taken_out_before_it_is_embedded_digested_and_sealed(encoder) -> None:
    """What leaves seal has kind and place of a secret in the text as it was signed, and nowhere the value; digests and
    vector are of what is left, so that everything downstream is consistent without it."""
    text = f"Ana says: my password is {SECRET}, and she takes the early train."
    write = Write(**FIELDS, content=text, key=f"card {CARD}", origin=f"https://bob:{SECRET}@example.com")
    sealed, said = taken(encoder, write, "redact")
    left = "Ana says: my password is [redacted: password], and she takes the early train."
    assert sealed.payload.content == left
    assert sealed.content_digest == codec.content_digest(KEYRING, TENANT, left)
    assert float(sealed.vector() @ encoder.encode([left])[0]) > 0.9999
    assert sealed.payload.origin == "https://bob:[redacted: password]@example.com"
    told = {(one.field, one.kind, getattr(write, one.field)[one.start : one.end]) for one in sealed.sensitive}
    assert told == {("content", "password", SECRET), ("origin", "password", SECRET), ("key", "card", CARD)}
    assert sealed.redacted
    assert SECRET.encode() not in said
    assert CARD.encode() not in said


def test_a_value_goes_for_the_key_that_names_it(encoder) -> None:
    """Neither field is a secret by itself; what is embedded and sealed has the key and no value."""
    write = Write(**FIELDS, content=f"{SECRET}!", key="gmail password")
    sealed, said = taken(encoder, write, "redact")
    assert (sealed.payload.content, sealed.payload.key) == ("[redacted: password]", "gmail password")
    assert [(one.field, one.kind, one.start) for one in sealed.sensitive] == [("content", "password", 0)]
    assert SECRET.encode() not in said


@pytest.mark.parametrize("action", ["hold", "report"])
def test_a_policy_that_holds_or_reports_leaves_the_content_whole(encoder, action: str) -> None:
    """A reviewer sees what is held as it was written; screen still learns what was found and where."""
    sealed, _ = taken(encoder, Write(**FIELDS, content=f"my password is {SECRET}"), action)
    assert sealed.payload.content == f"my password is {SECRET}"
    assert [(one.kind, one.start, one.end) for one in sealed.sensitive] == [("password", 15, 23)]
    assert not sealed.redacted


def test_two_keys_with_a_secret_stay_two_and_each_stays_the_same(encoder) -> None:
    """Redaction makes no key another's: a keyed write would take the place of an entry that is not meant."""
    keys = [f"card {CARD}", f"card {CARD}", f"cards {CARD}"]
    sealed = [taken(encoder, Write(**FIELDS, content="x", key=one), "redact")[0].payload.key for one in keys]
    assert sealed[0] == sealed[1] != sealed[2]
    assert sealed[0].startswith("card [redacted: card]#")


def test_a_question_with_a_secret_is_no_dead_letter_though_its_vector_is_of_the_whole(encoder) -> None:
    """A reader searched with the question as it was asked: that vector is checked against the whole question and kept
    nowhere, and what screen remembers is of the redacted one."""
    question = f"Which shop did I pay with {CARD} last week?"
    vector = codec.vector_to_text(encoder.encode([question])[0])
    recall = Recall(**FIELDS, question=question, vector=vector)
    sealed, said = taken(encoder, recall, "redact", source="reader", kind=EventType.RECALL)
    assert sealed.payload.question == "Which shop did I pay with [redacted: card] last week?"
    assert (sealed.payload.vector, sealed.problem) == (None, "")
    assert float(sealed.vector() @ encoder.encode([sealed.payload.question])[0]) > 0.9999
    assert vector.encode() not in said
    other = codec.vector_to_text(encoder.encode(["Something else."])[0])
    lying = record(message(recall.model_copy(update={"vector": other}), source="reader", kind=EventType.RECALL))
    assert reason(seal(encoder, [lying])[0]) == "malformed"


def test_what_a_session_saw_is_sealed_without_the_secret_and_without_its_bare_hash(encoder) -> None:
    """A short value could be guessed from the hash of a text of which everything else is known."""
    seen = Observation(**FIELDS, origin="web", content=f"PIN {SECRET[-2:] * 2} of the door", digest="3" * 64)
    sealed, _ = taken(encoder, seen, "redact", source="runtime", kind=EventType.OBSERVATION)
    assert (sealed.payload.content, sealed.payload.digest) == ("PIN [redacted: pin] of the door", None)


def test_the_same_record_is_sealed_to_the_same_bytes_and_a_retry_is_the_same_event(encoder) -> None:
    """A batch that is done again, and a producer that sends again, meet a gate that knows both."""
    write = Write(**FIELDS, content=f"my password is {SECRET}")
    first, again = (seal(encoder, [record(message(write))])[0][0].value for _ in range(2))
    assert first == again
    later = write.model_copy(update={"time": datetime.fromtimestamp(NOW_MS / 1000 + 5, UTC)})
    retried = seal(encoder, [record(message(later), offset=1)])[0][0].value
    digests = {sealed_from_bytes(KEYRING, TENANT, value).payload_digest for value in (first, retried)}
    assert len(digests) == 1
