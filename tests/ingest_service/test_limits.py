"""What a service does not take: of whom it does not know, too much, too often, and while the broker is away."""

import threading

import pytest
from tests.http_service.unsent import status_of
from tests.ingest_service.place import WHO, serving
from tests.patience import HANG_S, until

from memsluice.envelope.keys import KeyState
from memsluice.envelope.registry import Role
from memsluice.errors import BufferFull, NotDelivered
from memsluice.ingest_service import app as apps
from memsluice.ingest_service.signing import event_id
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.recall.bearer import AUDIENCE, INGEST_AUDIENCE, mint
from memsluice.stages.quota import Quota


def test_a_stranger_is_asked_who_he_is(service, place, tmp_path) -> None:
    """No token, a broken one, an old one, another home's, one for the recall service: 401, and nothing is read."""
    foreign = KeyStore.init(tmp_path / "other", 0)
    stranger = foreign.credential(issue_credential(foreign, Role.PRODUCER, "agent", ["acme"])[0].kid)
    now_ms = service.now_ms()
    bearers = [
        None,
        "x.y.z",
        mint(place.ours, now_ms - 120_000, INGEST_AUDIENCE),
        mint(stranger, now_ms, INGEST_AUDIENCE),
        mint(place.ours, now_ms, AUDIENCE),
    ]
    for bearer in bearers:
        headers = {} if bearer is None else {"authorization": f"Bearer {bearer}"}
        for method, path in (("POST", "/v1/events"), ("POST", "/v1/writes"), ("GET", "/v1/events/e?tenant=acme")):
            refused = service.ask(method, path, None, headers=headers)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
            assert refused.json()["field"] == "authorization"


@pytest.mark.parametrize("path", ["/v1/events", "/v1/writes", "/v1/observations"])
def test_nothing_of_a_body_is_read_before_it_is_known_who_asks(service, place, path) -> None:
    """A stranger, whose body has not come, is answered 401, and who publishes nothing here 403: neither has the service
    read, or parse, anything."""
    assert status_of(service.url, path) == 401
    assert status_of(service.url, path, service.token(place.operator)) == 403


def test_a_body_that_does_not_come_counts_among_the_work(service, place, monkeypatch) -> None:
    """Who opens connections and sends nothing on them has his own number of them, and the next is 429."""
    monkeypatch.setattr(apps, "AT_ONCE_MAX", 0)
    assert status_of(service.url, "/v1/writes", service.token(place.ours)) == 429


def test_a_revoked_credential_publishes_nothing_more(service, place) -> None:
    """From the next second on its token is 401, for its own signatures and for the service's."""
    gone = place.keys.credential(issue_credential(place.keys, Role.PRODUCER, "agent", ["acme"])[0].kid)
    place.keys.refresh()
    assert service.write(gone, key="g").status_code == 202
    place.keys.save_keyring(place.keys.load_keyring().retire(gone.kid, KeyState.REVOKED))
    place.keys.refresh()
    assert service.write(gone, key="g").json()["code"] == "revoked_key"


def test_a_body_without_end_is_refused(service, place) -> None:
    """A megabyte, stated or not, is 413 before it is read."""
    for content in (b" " * 1_000_000, (b" " * 100_000 for _ in range(10))):
        refused = service.ask("POST", "/v1/events", place.ours, content=content)
        assert (refused.status_code, refused.json()["code"]) == (413, "limit_exceeded")


def test_who_sends_too_often_waits_alone(place) -> None:
    """The fourth request at once is 429 with Retry-After; another credential is not slowed."""
    with serving(place, Quota(1, 3)) as service:
        now_ms = service.now_ms()
        service.now_ms = lambda: now_ms
        path = "/v1/events/e?tenant=acme"
        assert [service.ask("GET", path, place.ours).status_code for _ in range(4)] == [404, 404, 404, 429]
        refused = service.write(place.ours)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert service.write(place.other, key="o").status_code == 202


def test_who_waits_for_too_much_waits_alone(service, place, monkeypatch) -> None:
    """Requests in work hold connections: a credential has so many, and the next is 429; another's goes on."""
    monkeypatch.setattr(apps, "AT_ONCE_MAX", 1)
    service.waits = True
    accepted = service.write(place.ours, key="slow")
    statuses, found = service.serving.statuses, []
    of = statuses.of  # a busy machine may need longer for what follows than anybody may ask to wait
    monkeypatch.setattr(statuses, "of", lambda name, caller, _wait_s: of(name, caller, HANG_S))
    waiting = threading.Thread(target=lambda: found.append(service.status(accepted, place.ours, wait=20)))
    waiting.start()
    until(lambda: service.serving._in_work, "a request to be in work")
    refused = service.write(place.ours, key="more")
    assert (refused.status_code, refused.json()["code"]) == (429, "at_once")
    assert service.write(place.other, key="o").status_code == 202
    service.decide()
    waiting.join(HANG_S)
    assert found[0]["status"] == "landed"


def _id_of(place, key: str) -> str:
    return event_id(None, key, place.ours.kid)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("refused", BufferFull("full", event_id="e")),
        ("fails", NotDelivered("_MSG_TIMED_OUT", event_id="e", maybe_written=True)),
        ("silent", True),
    ],
)
def test_nothing_is_accepted_that_the_broker_has_not_acknowledged(service, place, monkeypatch, name, error) -> None:
    """Its buffer full, not delivered, or not a word: 503 with Retry-After, no status; said again it is accepted."""
    monkeypatch.setattr(apps, "ACKNOWLEDGED_S", 0.2 if name == "silent" else HANG_S)
    setattr(service, name, error)
    sent = {"content": f"Ada met {name}.", "idempotency_key": f"away-{name}"}
    refused = service.write(place.ours, **sent)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert "again" in refused.json()["detail"]
    assert "Ada" not in refused.text
    assert service.ask("GET", f"/v1/events/{_id_of(place, f'away-{name}')}?tenant=acme", place.ours).status_code == 404
    if name == "silent":
        return
    setattr(service, name, None)
    accepted = service.write(place.ours, **sent)
    assert service.status(accepted, place.ours)["status"] == "landed"


def test_health_metrics_and_a_description_are_served(service, place) -> None:
    """Ready as long as nothing is missing; answers are counted by status; a client can be made from the document."""
    service.write(place.ours, key="counted")
    assert service.ask("GET", "/livez", None).json() == {"ok": True}
    assert service.ask("GET", "/readyz", None).status_code == 200
    service.missing.append("the broker does not answer")
    assert service.ask("GET", "/readyz", None).json()["problems"] == ["the broker does not answer"]
    assert 'memsluice_ingests_total{status="202"} 1.0' in service.ask("GET", "/metrics", None).text
    document = service.ask("GET", "/openapi.json", None).json()
    operations = {path: set(one) for path, one in document["paths"].items() if path.startswith("/v1")}
    assert operations == {
        "/v1/events": {"post"}, "/v1/writes": {"post"}, "/v1/observations": {"post"}, "/v1/events/{event_id}": {"get"},
    }  # fmt: skip
    for path in ("/v1/events", "/v1/writes", "/v1/observations"):
        responses = document["paths"][path]["post"]["responses"].keys()
        assert responses == {"202", "400", "401", "403", "409", "413", "422", "429", "503"}
    assert document["paths"]["/v1/events/{event_id}"]["get"]["responses"].keys() == {
        "200", "400", "401", "404", "429", "503",
    }  # fmt: skip
    assert "HTTPValidationError" not in str(document)
    assert "application/vnd.dsse.envelope.v1+json" in document["paths"]["/v1/events"]["post"]["requestBody"]["content"]


@pytest.mark.parametrize(("method", "path", "status", "code"), [
    ("GET", "/v1/nothing", 404, "not_found"), ("DELETE", "/v1/events", 405, "not_allowed"),
])  # fmt: skip
def test_what_there_is_not_has_a_code_of_its_own(service, method, path, status, code) -> None:
    """A path or a method that does not exist is no malformed request: a client tells them apart by the code."""
    refused = service.ask(method, path, None)
    assert (refused.status_code, refused.json()["code"]) == (status, code)


def test_a_defect_quotes_nothing(service, place, monkeypatch) -> None:
    """What failed inside is a code: 500, and neither the error's words nor the content."""

    def fail(*_args) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(service.serving, "send", fail)
    refused = service.ask("POST", "/v1/writes", place.ours, json={**WHO, "content": "Ada knows."})
    assert (refused.status_code, refused.json()["code"]) == (500, "internal")
    assert "secret" not in refused.text
