"""Server-side signing: what a token is enough for, whose credential signs, and what a retry is answered."""

import pytest
from tests.ingest_service.place import WHO, serving

from memsluice.envelope.codec import from_json
from memsluice.envelope.records import verdict_from_bytes
from memsluice.topics.names import AUDIT


def verdict_of(place, event_id: str):
    """Return the gate's verdict on an event."""
    keyring = place.keys.keyring()
    for partition in range(8):
        for record in place.records(AUDIT, partition):
            if dict(record.headers)["memsluice-event-id"] == event_id.encode():
                return verdict_from_bytes(keyring, "acme", record.value or b"")
    raise AssertionError(event_id)


def test_a_token_is_enough_where_the_credential_is_held(service, place) -> None:
    """The event is signed by the token's own credential, and role, channel and tier are the registry's: asking for
    more trust gives none."""
    accepted = service.write(place.ours, key="drink", claimed_tier=1)
    assert accepted.status_code == 202, accepted.text
    told = service.status(accepted, place.ours)
    assert told["status"] == "landed"
    verdict = verdict_of(place, accepted.json()["id"])
    assert (verdict.kid, verdict.role, verdict.channel, int(verdict.tier)) == (place.ours.kid, "producer", "agent", 3)
    place_said = accepted.json()["place"]
    record = place.records(place_said["topic"], place_said["partition"], place_said["offset"])[0]
    assert [one["keyid"] for one in from_json(record.value)["signatures"]] == [place.ours.kid]


def test_what_is_not_delegated_is_not_signed(service, place) -> None:
    """Once the credential's file is taken out of the service's home, the very next request is 403, and says why."""
    path = place.keys.credential_path(place.other.kid)
    text = path.read_bytes()
    assert service.write(place.other, key="d").status_code == 202
    path.unlink()
    try:
        refused = service.write(place.other, key="d")
        assert (refused.status_code, refused.json()["code"]) == (403, "not_delegated")
        assert "/v1/events" in refused.json()["detail"]
    finally:
        path.write_bytes(text)
        path.chmod(0o600)


def test_a_session_is_said_to_have_seen_something_by_the_platform_alone(service, place) -> None:
    """An observation taints, so the platform's credential says it; a producer's is 403."""
    seen = {**WHO, "session": "seen-1", "origin": "web"}
    assert service.ask("POST", "/v1/observations", place.ours, json=seen).status_code == 403
    for origin in ("open", "web"):
        accepted = service.ask("POST", "/v1/observations", place.platform, json={**seen, "origin": origin})
        assert service.status(accepted, place.platform)["status"] == "recorded"
        written = service.write(place.ours, f"The mill is cheap ({origin}).", session="seen-1")
        assert service.status(written, place.ours)["status"] == {"open": "landed", "web": "contained"}[origin]


def test_another_tenant_is_nobodys_to_write_for(service, place) -> None:
    """The tenant is the credential's; naming another one is 403, and a credential of several must name one."""
    assert service.write(place.ours, tenant="globex").status_code == 403
    assert service.write(place.ours, tenant="acme", key="own").status_code == 202


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"content": ""}, "content"),
        ({"surprise": 1}, "surprise"),
        ({"agent": "a\u0000b"}, "agent"),
        ({"time": "yesterday"}, "time"),
        ({"parents": ["x"] * 65}, "parents"),
        ({"id": "own", "idempotency_key": "k"}, "idempotency-key"),
        ({"idempotency_key": "k" * 256}, "idempotency-key"),
    ],
)
def test_what_no_write_can_carry_is_named(service, place, more, field) -> None:
    """A problem that names the field and quotes nothing."""
    refused = service.write(place.ours, **more)
    assert (refused.status_code, refused.json()["field"]) == (400, field)
    assert refused.headers["content-type"] == "application/problem+json"
    assert "tea" not in refused.text


def test_the_same_key_says_the_same_event(service, place) -> None:
    """A retry has the first answer, and one event lies in the log; another body under the key is 422; another
    credential's key of the same words is another's."""
    first = service.write(place.ours, key="i", idempotency_key="order 66")
    again = service.write(place.ours, key="i", idempotency_key="order 66")
    assert (first.status_code, again.json()) == (202, first.json())
    other = service.write(place.ours, "Ada drinks rum.", key="i", idempotency_key="order 66")
    assert (other.status_code, other.json()["code"]) == (422, "other_content")
    assert service.write(place.other, key="i", idempotency_key="order 66").json()["id"] != first.json()["id"]


def test_a_key_outlives_the_service(service, place) -> None:
    """A service that knows nothing any more publishes again, and the gate knows it for the same: it landed once."""
    first = service.write(place.ours, "Ada has a bicycle.", idempotency_key="kept")
    landed = service.status(first, place.ours)
    with serving(place) as restarted:
        again = restarted.write(place.ours, "Ada has a bicycle.", idempotency_key="kept")
        assert again.json()["id"] == first.json()["id"]
        assert again.json()["place"] != first.json()["place"]
        told = restarted.status(again, place.ours)
    assert (told["status"], told["object_id"]) == ("landed", landed["object_id"])
    with serving(place, heard=False) as forgetful:
        again = forgetful.write(place.ours, "Ada has a bicycle.", idempotency_key="kept")
        assert forgetful.status(again, place.ours)["status"] == "duplicate"
