"""Events over HTTP: what is taken, by whom, and that the log has exactly the bytes that were sent."""

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.ingest_service.place import ADA
from tests.memory.conftest import ORDER

from memsluice.client import requests
from memsluice.client.build import build
from memsluice.envelope.codec import from_json
from memsluice.events.models import Origin, Zone
from memsluice.events.partition import partition_of

NOW = datetime.now(UTC)


def a_write(event_id: str, content: str = "Ada drinks tea.", session=ADA, time: datetime | None = None, **more):
    """Return a write's payload."""
    return requests.write(event_id, time or datetime.now(UTC), session, content, more)


def lies(place, accepted):
    """Return the record that lies where an answer says."""
    said = accepted.json()["place"]
    (record,) = place.records(said["topic"], said["partition"], said["offset"])[:1]
    return record


def test_a_signed_event_is_published_as_it_came(service, place) -> None:
    """The body byte for byte, the ce- headers as the Kafka binding has them, the tenant as key; and it lands."""
    payload = a_write("signed-1")
    _, value, headers = build(payload, [place.ours.signer()], source="/tests")
    accepted = service.post(payload, place.ours, value=value)
    assert (accepted.status_code, accepted.headers["location"]) == (202, "/v1/events/signed-1?tenant=acme")
    record = lies(place, accepted)
    assert (record.key, record.value, record.partition) == (b"acme", value, partition_of("acme", 8))
    assert set(headers) < set(record.headers)
    assert {name for name, _ in record.headers} - {name for name, _ in headers} == {"traceparent"}
    told = service.status(accepted, place.ours)
    assert (told["status"], told["place"], told["reasons"]) == ("landed", accepted.json()["place"], [])


def test_a_structured_event_needs_no_headers(service, place) -> None:
    """Attributes and data in one JSON document, as CloudEvents' structured mode has them."""
    accepted = service.post(a_write("whole-1", key="whole"), place.ours, whole=True)
    assert accepted.status_code == 202, accepted.text
    assert service.status(accepted, place.ours)["status"] == "landed"


def test_a_header_is_decoded_as_the_http_binding_says(service, place) -> None:
    """What is no ASCII travels percent-encoded over HTTP, and as UTF-8 over Kafka."""
    for number, said in enumerate(("/werk%20s%C3%BCd", '"/werk s%C3%BCd"', '"/werk \\s%C3%BCd"')):
        accepted = service.post(a_write(f"umlaut-{number}", key="u"), place.ours, headers={"ce-source": said})
        assert accepted.status_code == 202, accepted.text
        assert dict(lies(place, accepted).headers)["ce_source"] == "/werk süd".encode()


def test_an_event_lies_in_the_trace_of_its_request(service, place) -> None:
    """The trace that the caller began goes on to the landing; a header of a request is no header of an event."""
    trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    headers = {"traceparent": trace, "x-secret": "no"}
    accepted = service.post(a_write("traced", key="t"), place.ours, headers=headers)
    sent = dict(lies(place, accepted).headers)
    assert (sent["traceparent"] or b"").split(b"-")[1] == b"a" * 32
    assert "x-secret" not in sent


def test_nobody_publishes_for_another(service, place) -> None:
    """Another's signature under one's own token, another tenant's event, a recall, a command: 403, and nothing sent."""
    forbidden = [
        (service.post(a_write("f-1"), place.other, bearer=place.ours), "keyid"),
        (service.post(a_write("f-2", session=requests.Session("globex", "a", "b", "c")), place.ours), "tenant"),
        (service.post(requests.observation("f-3", NOW, ADA, Origin.WEB, None, None), place.ours), "type"),
        (service.post(requests.recall("f-4", NOW, ADA, "What?", (), zone=Zone.GUIDANCE), place.ours), "type"),
        (service.post(a_write("f-5"), place.operator), "authorization"),
    ]
    assert [(one.status_code, one.json()["field"]) for one, _ in forbidden] == [(403, field) for _, field in forbidden]
    for number in range(1, 6):
        assert service.ask("GET", f"/v1/events/f-{number}?tenant=acme", place.ours).status_code == 404


def _changed(place):
    _, value, _ = build(a_write("bad"), [place.ours.signer()], source="/tests")
    envelope = from_json(value)
    payload = base64.b64decode(envelope["payload"]).replace(b"tea", b"rum")
    return json.dumps({**envelope, "payload": base64.b64encode(payload).decode()}).encode()


@pytest.mark.parametrize(
    ("value", "headers", "code", "field"),
    [
        (b"{", {}, "malformed", "value"),
        (b"[]", {}, "malformed", "data"),
        (b"[" * 100_000, {}, "malformed", "value"),
        (None, {"ce-source": "%FF"}, "malformed", "attributes"),
        (b'{"payloadType": "x"}', {}, "malformed", "signatures"),
        (None, {"ce-type": "memory.wish.v1"}, "malformed", "type"),
        (None, {"ce-id": "another"}, "malformed", "id"),
        (None, {"ce-specversion": "7"}, "malformed", "specversion"),
        (None, {"ce-long": "x" * 9_000}, "limit_exceeded", "headers"),
        ("changed", {}, "tampered", "payload"),
    ],
)
def test_what_is_no_event_is_told_at_once(service, place, value, headers, code, field) -> None:
    """400 with the gate's own code and the field, instead of a dead letter that nobody reads."""
    value = _changed(place) if value == "changed" else value
    more = {} if value is None else {"value": value}
    refused = service.post(a_write("bad"), place.ours, headers=headers, **more)
    assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (400, code, field)
    assert "rum" not in refused.text


def test_an_event_of_last_year_is_refused(service, place) -> None:
    """The gate remembers ids for a week, so an older event could be a repetition: 400, clock_skew."""
    refused = service.post(a_write("old", time=NOW - timedelta(days=300)), place.ours)
    assert (refused.status_code, refused.json()["code"]) == (400, "clock_skew")


def test_an_event_that_comes_again_is_answered_as_before(service, place) -> None:
    """A retry has another time and signature and lies there once; another event of the id is 422, another's 409."""
    first = service.post(a_write("again", key="again"), place.ours)
    second = service.post(a_write("again", key="again"), place.ours)
    assert (second.status_code, second.json()) == (202, first.json())
    assert service.post(a_write("again", "Ada drinks rum."), place.ours).status_code == 422
    assert service.post(a_write("again", key="again"), place.other).status_code == 409


def test_a_held_write_is_told_and_may_be_appealed(service, place) -> None:
    """Reasons by code and in words, what its writer can do, and later that he did; nothing of what it says."""
    accepted = service.post(a_write("order-1", ORDER), place.ours)
    told = service.status(accepted, place.ours)
    assert (told["status"], told["later"]) == ("held", [])
    assert {"code": "wording.held", "words": told["reasons"][0]["words"]} == told["reasons"][0]
    assert told["reasons"][0]["words"]
    assert "appeal" in told["then"]
    assert "mallory" not in json.dumps(told)
    appeal = service.post(requests.appeal("appeal-1", datetime.now(UTC), "acme", "order-1"), place.ours)
    assert service.status(appeal, place.ours)["status"] == "recorded"
    (later,) = service.status(accepted, place.ours)["later"]
    assert (later["action"], later["decision"], later["landed"]) == ("appeal", "record", False)
