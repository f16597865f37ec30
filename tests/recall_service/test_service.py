"""Who may ask, what is answered, and what every failure says."""

import json

import httpx
import jwt
import pytest
from tests.client.home import keys
from tests.http_service.unsent import status_of
from tests.patience import HANG_S
from tests.recall.test_recaller import NOTES, recaller
from tests.recall_service.serving import serving
from tests.stores.build import T0, entry

from memsluice.envelope.codec import vector_from_bytes, vector_to_bytes
from memsluice.envelope.keys import KeyState
from memsluice.envelope.registry import Role
from memsluice.errors import (
    BrokerUnavailable,
    EarlierFailed,
    LimitExceeded,
    MalformedEvent,
    NotPermitted,
    OverQuota,
    RecallFailed,
    ScopeTooLarge,
    StoreUnavailable,
)
from memsluice.events.models import Tier, Visibility
from memsluice.keystore.store import issue_credential, load_credential
from memsluice.recall.bearer import AUDIENCE, mint
from memsluice.recall.landed import Lying
from memsluice.recall.recaller import Question
from memsluice.recall.remote import RemoteRecaller
from memsluice.recall.wire import ENTRIES_PATH, LINES, PATH
from memsluice.stages.quota import Quota
from memsluice.stores.faiss.store import FaissStore

WHO = {"agent": "helper", "principal": "ana", "session": "s-1"}
BODY = {"tenant": "acme", "question": "Where is the report sent?", **WHO, "k": 2}
QUESTION = "Where is the report sent?"


@pytest.fixture
def home(tmp_path):
    """A home's key store, and the file of a reader's credential for every tenant."""
    return keys(tmp_path, Role.READER)


@pytest.fixture
def store(encoder):
    """A store that holds three notes."""
    store = FaissStore(":memory:")
    for number, text in enumerate(NOTES.values()):
        vector = vector_from_bytes(vector_to_bytes(encoder.encode([text])[0]))
        store.upsert([entry("acme", text, vector, event_id=f"e{number}", version=number)])
    return store


def token(path, now_ms: int = T0) -> str:
    """Return a bearer token of a credential's file."""
    return mint(load_credential(path), now_ms)


def asking(url: str, path, transport=None) -> RemoteRecaller:
    """Return a client."""
    return RemoteRecaller(url, path, now_ms=lambda: T0, transport=transport, timeout_s=HANG_S)


def post(service, bearer: str | None, body=BODY, **headers: str) -> httpx.Response:
    """Ask over HTTP, as a program in any language does."""
    headers |= {} if bearer is None else {"authorization": f"Bearer {bearer}"}
    return httpx.post(service.url + PATH, json=body, headers=headers, trust_env=False, timeout=HANG_S)


@pytest.mark.parametrize("path", [PATH, ENTRIES_PATH])
def test_nothing_of_a_question_is_read_before_it_is_known_who_asks(store, encoder, home, path) -> None:
    """A stranger, whose body has not come, is answered 401: he has the service read, or parse, nothing."""
    with serving(store, encoder, home[0]) as service:
        assert status_of(service.url, path) == 401


def test_the_client_answers_as_the_recaller_does(store, encoder, home) -> None:
    """The same entries with the same admissions, counts and event: an agent may have either."""
    key_store, path = home
    with serving(store, encoder, key_store) as service:
        here = recaller(store, encoder, service.told).recall("acme", QUESTION, k=2, **WHO)
        with asking(service.url, path) as remote:
            there = remote.recall("acme", QUESTION, k=2, **WHO)
    assert there == here
    first, second = service.told.events
    assert first.returned == second.returned


def test_whole_and_in_lines_the_answer_is_the_same(store, encoder, home) -> None:
    """One JSON document, or a line an entry and one for the rest."""
    key_store, path = home
    with serving(store, encoder, key_store) as service:
        whole = post(service, token(path)).json()
        lines = [json.loads(line) for line in post(service, token(path), accept=LINES).content.splitlines()]
    assert whole["entries"] == lines[:-1]
    assert lines[-1] == {**{name: whole[name] for name in whole if name != "entries"}, "entries_given": 2}
    assert whole["entries"][0]["content"] == NOTES["reports"]


def test_what_is_anothers_is_counted_for_operators_and_not_told(store, encoder, home) -> None:
    """Bo wrote in a session of the name that Ana has: the event knows it. Ana's answer does not, nor do the metrics,
    which stand on the same port for her to read."""
    key_store, path = home
    vector = vector_from_bytes(vector_to_bytes(encoder.encode([QUESTION])[0]))
    session = {"visibility": Visibility.SESSION, "session": WHO["session"]}
    store.upsert([entry("acme", QUESTION, vector, event_id="bos", principal="bo", **session)])
    with serving(store, encoder, key_store) as service:
        answer, lines = post(service, token(path)), post(service, token(path), accept=LINES)
        assert answer.json()["withheld"] == json.loads(lines.content.splitlines()[-1])["withheld"] == {}
        assert service.told.events[0].withheld == {"scope": 1}
        assert service.counted("recall_withheld_total", reason="scope") == 0


class Crowded:
    """A log that says of every scope that more lies there than can be named."""

    def current(self, _tenant, _ids):
        """Say nothing of any object."""
        return {}

    known = current

    def lying(self, _tenant, _zone, _scopes):
        """Say that 1,001 lie there."""
        return Lying(1_001, None, 1_001)

    def among(self, _tenant, _zone, _scopes, _ids):
        """Say that none of those that are named does."""
        return []


def test_a_scope_that_is_too_large_to_be_listed_is_no_outage(store, encoder, home) -> None:
    """Asking again brings the same: 400 that says what to do instead, and no Retry-After."""
    key_store, path = home
    with serving(store, encoder, key_store, freshness=Crowded()) as service, asking(service.url, path) as remote:
        body = {**WHO, "tenant": "acme", "question": "all"}
        bearer = {"authorization": f"Bearer {token(path)}"}
        response = httpx.post(service.url + "/v1/entries", json=body, headers=bearer, trust_env=False, timeout=HANG_S)
        assert (response.status_code, response.json()["code"]) == (400, "too_many_entries")
        assert "retry-after" not in response.headers
        with pytest.raises(ScopeTooLarge, match="search it"):
            remote.look_up(Question("acme", "all", **WHO))


def test_a_stranger_is_asked_who_he_is(store, encoder, home, tmp_path) -> None:
    """No token, a broken one, another home's, one for another service, a producer's: 401 or 403, and nothing asked."""
    key_store, path = home
    _, foreign = keys(tmp_path / "other", Role.READER)
    _, writer = issue_credential(key_store, Role.PRODUCER, "agent", ["acme"])
    secret = load_credential(path)
    elsewhere = jwt.encode(
        {"iss": secret.kid, "aud": "elsewhere", "iat": T0 // 1000, "exp": T0 // 1000 + 60},
        secret.secret.get_secret_value(), "HS256", headers={"kid": secret.kid},
    )  # fmt: skip
    with serving(store, encoder, key_store) as service:
        for bearer in (None, "x", "x.y.z", token(foreign), elsewhere):
            response = post(service, bearer)
            assert response.status_code == 401, bearer
            assert response.headers["www-authenticate"] == "Bearer"
            assert response.json()["field"] == "authorization"
        assert post(service, token(writer)).status_code == 403
        assert service.told.events == []
        assert service.counted("recalls_total", status="401") == 5


def test_a_token_is_good_for_a_minute_and_its_key_must_hold(store, encoder, home) -> None:
    """Old, of tomorrow, good for an hour, signed by nobody, or of a revoked credential: 401."""
    key_store, path = home
    secret = load_credential(path)
    claims = {"iss": secret.kid, "aud": AUDIENCE, "iat": T0 // 1000, "exp": T0 // 1000 + 3_600}
    material = secret.secret.get_secret_value()
    long = jwt.encode(claims, material, "HS256", headers={"kid": secret.kid})
    unsigned = jwt.encode(claims, None, "none", headers={"kid": secret.kid})
    with serving(store, encoder, key_store) as service:
        assert post(service, token(path)).status_code == 200
        for bearer in (token(path, T0 - 120_000), token(path, T0 + 120_000), long, unsigned):
            assert post(service, bearer).status_code == 401
        key_store.save_keyring(key_store.load_keyring().retire(secret.kid, KeyState.REVOKED))
        key_store.refresh()
        assert post(service, token(path)).json()["code"] == "revoked_key"


def test_a_credential_asks_for_whom_it_is_and_for_nobody_else(store, encoder, home) -> None:
    """Another tenant's memory, another agent or principal than the registry allows: 403, and nothing is searched."""
    key_store, _ = home
    _, path = issue_credential(key_store, Role.READER, "agent", ["acme"], agents=["helper"], principals=["ana"])
    with serving(store, encoder, key_store) as service:
        assert post(service, token(path)).status_code == 200
        for other in ({"tenant": "globex"}, {"agent": "spy"}, {"principal": "bob"}):
            assert post(service, token(path), {**BODY, **other}).status_code == 403, other
        assert len(service.told.events) == 1
        with (
            asking(service.url, path) as remote,
            pytest.raises(NotPermitted, match="tenant"),
        ):
            remote.recall("globex", QUESTION, **WHO)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({**BODY, "k": 0}, "k"),
        ({**BODY, "k": 101}, "k"),
        ({**BODY, "question": ""}, "question"),
        ({**BODY, "tenant": "Not A Tenant"}, "tenant"),
        ({**BODY, "zone": "attic"}, "zone"),
        ({**BODY, "tier_max": 6}, "tier_max"),
        ({**BODY, "surprise": 1}, "surprise"),
        ({name: BODY[name] for name in BODY if name != "session"}, "session"),
    ],
)
def test_what_no_recall_can_carry_is_named(store, encoder, home, body, field) -> None:
    """A problem that names the field, quotes nothing, and asked nobody."""
    key_store, path = home
    with serving(store, encoder, key_store) as service:
        response = post(service, token(path), body)
        assert response.status_code == 400
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json()["field"] == field
        assert service.told.events == []


def test_a_body_without_end_is_refused(store, encoder, home) -> None:
    """A megabyte, stated or not, ends with 413."""
    key_store, path = home
    with serving(store, encoder, key_store) as service:
        headers = {"authorization": f"Bearer {token(path)}", "content-type": "application/json"}
        for content in (b" " * 1_000_000, (b" " * 100_000 for _ in range(10))):
            response = httpx.post(service.url + PATH, content=content, headers=headers, trust_env=False, timeout=HANG_S)
            assert response.status_code == 413
        assert post(service, token(path)).status_code == 200


def test_who_asks_too_often_waits_alone(store, encoder, home) -> None:
    """The fourth question at once is 429; another credential is not slowed; a second later it goes on."""
    key_store, path = home
    _, other = issue_credential(key_store, Role.READER, "agent", ["acme"])
    with serving(store, encoder, key_store, Quota(1, 3)) as service:
        assert [post(service, token(path)).status_code for _ in range(4)] == [200, 200, 200, 429]
        assert post(service, token(other)).status_code == 200
        with (
            asking(service.url, path) as remote,
            pytest.raises(OverQuota, match="1 questions"),
        ):
            remote.recall("acme", QUESTION, **WHO)
        service.now_ms += 1_000
        assert post(service, token(path)).status_code == 200


def test_nothing_is_shown_that_the_broker_does_not_have(store, encoder, home) -> None:
    """The recall's event was not acknowledged: 503, Retry-After, and no entry in the body."""
    key_store, path = home
    with serving(store, encoder, key_store) as service:
        service.told.fails = True
        response = post(service, token(path))
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        assert NOTES["reports"] not in response.text
        with asking(service.url, path) as remote, pytest.raises(StoreUnavailable):
            remote.recall("acme", QUESTION, **WHO)


@pytest.mark.parametrize(("error", "status"), [(StoreUnavailable("gone"), 503), (BrokerUnavailable("gone"), 503),
                                               (RuntimeError("a secret"), 500)])  # fmt: skip
def test_a_store_or_log_that_is_gone_is_said_and_never_quoted(store, encoder, home, error, status, monkeypatch) -> None:
    """What failed inside is a code; its words, which may hold anything, stay inside."""
    key_store, path = home

    def fail(*_args, **_more):
        raise error

    monkeypatch.setattr(store, "search", fail)
    with serving(store, encoder, key_store) as service:
        response = post(service, token(path))
        assert response.status_code == response.json()["status"] == status
        assert service.counted("recalls_total", status=str(status)) == 1
        assert "secret" not in response.text
        assert "gone" not in response.text


def test_what_is_withheld_is_counted_by_reason(store, encoder, home) -> None:
    """A planted object is in the answer's counts and in the metric that pages somebody."""
    key_store, path = home
    from tests.stores.build import STRANGER

    vector = vector_from_bytes(vector_to_bytes(encoder.encode([QUESTION])[0]))
    store.upsert([entry("acme", "obey", vector, ring=STRANGER, event_id="planted")])
    with serving(store, encoder, key_store) as service:
        assert post(service, token(path)).json()["withheld"] == {"forged": 1}
        assert service.counted("recall_withheld_total", reason="forged") == 1
        shown = httpx.get(service.url + "/metrics", trust_env=False, timeout=HANG_S).text
    assert 'memsluice_recall_withheld_total{reason="forged"} 1.0' in shown


def test_health_says_what_is_missing(store, encoder, home) -> None:
    """Alive as long as it answers; ready as long as nothing that it needs is gone."""
    key_store, _ = home
    with serving(store, encoder, key_store) as service:
        assert httpx.get(service.url + "/livez", trust_env=False, timeout=HANG_S).json() == {"ok": True}
        assert httpx.get(service.url + "/readyz", trust_env=False, timeout=HANG_S).status_code == 200
        service.missing.append("the broker does not answer")
        response = httpx.get(service.url + "/readyz", trust_env=False, timeout=HANG_S)
    assert (response.status_code, response.json()["problems"]) == (503, ["the broker does not answer"])


def test_the_openapi_document_describes_it(store, encoder, home) -> None:
    """A client can be generated: path, request, answer, problems."""
    key_store, _ = home
    with serving(store, encoder, key_store) as service:
        document = httpx.get(service.url + "/openapi.json", trust_env=False, timeout=HANG_S).json()
    operation = document["paths"][PATH]["post"]
    assert {"200", "400", "401", "403", "413", "429", "503"} <= operation["responses"].keys()
    assert "RecallRequest" in json.dumps(operation["requestBody"])
    assert {"bearer"} <= {scheme.get("scheme") for scheme in document["components"]["securitySchemes"].values()}


def test_an_answer_that_is_cut_off_is_no_answer(home) -> None:
    """Fewer lines than were given, half a line, or a page of a proxy: RecallFailed, and never a shorter answer."""
    _, path = home
    last = {"event_id": "r", "as_data": False, "incomplete": False, "withheld": {}, "entries_given": 1}
    for body in (json.dumps(last).encode(), b"", b"<html>", json.dumps(last).encode()[:-9]):
        transport = httpx.MockTransport(lambda _request, body=body: httpx.Response(200, content=body))
        with asking("http://gate", path, transport) as remote, pytest.raises(RecallFailed):
            remote.recall("acme", QUESTION, **WHO)


def test_problems_become_the_errors_of_the_recaller(home) -> None:
    """What a service says is raised as what a recaller in the process would raise."""
    _, path = home
    said = [
        (400, {"code": "malformed", "detail": "d", "field": "k"}, MalformedEvent),
        (400, {"code": "limit_exceeded", "detail": "d"}, LimitExceeded),
        (400, {"code": "too_many_entries", "detail": "d", "field": "ids"}, ScopeTooLarge),
        (401, {"code": "unknown_key", "detail": "d"}, NotPermitted),
        (503, {"code": "store_unavailable", "detail": "d"}, StoreUnavailable),
        (502, {}, RecallFailed),
    ]
    for status, problem, kind in said:
        transport = httpx.MockTransport(lambda _r, s=status, p=problem: httpx.Response(s, json=p))
        with asking("http://gate", path, transport) as remote, pytest.raises(kind):
            remote.recall("acme", QUESTION, tier_max=Tier.EXTERNAL_WEB, **WHO)
    with asking("http://127.0.0.1:9", path) as nobody, pytest.raises(StoreUnavailable):
        nobody.recall("acme", QUESTION, **WHO)


class _Session:
    """Stands for an agent's session whose earlier event failed, or is not acknowledged."""

    def __init__(self, left: int, failure: Exception | None) -> None:
        self.left, self.failure = left, failure

    def flush(self, _seconds: float) -> int:
        """Return how many wait still."""
        return self.left


@pytest.mark.parametrize("session", [_Session(2, None), _Session(0, RuntimeError())])
def test_a_recall_keeps_its_place_or_is_not_asked(home, session) -> None:
    """What was called earlier is acknowledged first; otherwise the answer would come before what taints it."""
    _, path = home
    with RemoteRecaller("http://127.0.0.1:9", path) as remote, pytest.raises(EarlierFailed):
        remote.recall_in(session, QUESTION)
