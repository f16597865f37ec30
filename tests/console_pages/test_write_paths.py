"""What a hostile visitor sends to the paths that take something: nothing of it fails a page, and nothing is done."""

import re
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.routing import Route
from tests.console_pages.place import ORIGIN, Browser, Place
from tests.stages import holding

from memsluice.clock import wall_ms
from memsluice.console import orders, proposals
from memsluice.console.security import STRANGERS_BYTES_MAX
from memsluice.events.models import Action, Command
from memsluice.events.names import EVERYBODY
from memsluice.operations.commands.answers import Bookmark
from memsluice.operations.commands.signing import sign
from memsluice.operations.held.commands import decision
from memsluice.operations.policies.commands import activation
from memsluice.operations.review.query import HeldQuery
from memsluice.topics.names import COMMANDS, EVENTS

UNSIGNED: dict[str, Any] = {"payload": "e30=", "payloadType": "application/vnd.memory.command.v1+json"}
FORGED = {**UNSIGNED, "signatures": [{"keyid": "operator-all", "sig": "AAAA"}]}
LISTS = (
    None, [], [FORGED] * 101, [None, 1, [], {}], [UNSIGNED, {**UNSIGNED, "signatures": []}, FORGED],
    [{**UNSIGNED, "signatures": [None]}, {**FORGED, "payload": "é"}, {**FORGED, "payload": 7}],
    [{**FORGED, "payloadType": None}, {**FORGED, "signatures": [{"keyid": "é", "sig": "é"}]}],
    [{**FORGED, "signatures": [{"keyid": ["operator-all"], "sig": {}}]}],
)  # fmt: skip
NAME = {"tenant": "acme", "target": "held", "offset": 0}
ENTRIES = (
    None, [None], [{}], [{**NAME, "offset": True}], [{**NAME, "offset": 2**63}], [{**NAME, "offset": -(2**62)}],
    [{**NAME, "tenant": "\x00"}], [{**NAME, "target": "x" * 10_000}], [NAME] * 101,
)  # fmt: skip
LOGINS = (
    {"kid": "narrow", "challenge": "", "signature": ""}, {"kid": "narrow", "challenge": "1.a.b", "signature": "é"},
    {"kid": "\u202e", "challenge": "é", "signature": "AA=="}, {"kid": ["narrow"], "challenge": {}, "signature": 3},
)  # fmt: skip
SENT: dict[str, tuple[Any, ...]] = {
    "/commands": tuple({"envelopes": one} for one in LISTS),
    "/held/sealed": tuple({"entries": one} for one in ENTRIES),
    "/held/differences": tuple({"entries": one} for one in ENTRIES),
    "/login": LOGINS,
    "/login/key": tuple({"public": one} for one in (None, "é" * 44, "=" * 44, "A" * 44, "A" * 43 + "=")),
    "/proposals": tuple({"envelope": one} for one in (None, [], FORGED, {**FORGED, "payload": "é"})),
    "/step-up": ({"batch": "é" * 64, "count": 2}, {"batch": "", "count": -1}, {"batch": "0" * 64, "count": 2**63}),
    "/step-up/register": (
        {"credential": {}, "kid": "operator-all", "signature": "é"}, {"credential": {"id": []}, "kid": "é",
         "signature": "AAAA"}, {"credential": 1, "kid": 1, "signature": 1},
    ),
    "/proposals/{name}/withdraw": ({"kid": None, "signature": "é"},),
    "/dead-letters/replays": (FORGED, UNSIGNED, {**FORGED, "payload": "é"}),
    "/partitions/orders": (FORGED, UNSIGNED, {**FORGED, "payload": "é"}),
}  # fmt: skip
ANY = (
    *map(orjson.dumps, (None, True, "é", [None], {}, {"": None})), b"", b"\xff\xfe", b"{", b"[" * 3_000, b"NaN",
)  # fmt: skip


def test_no_body_fails_a_page_or_does_anything(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever JSON or bytes come to whatever path that takes something: they are refused in words, as the sender's
    own fault, nothing is published, and no page failed."""
    log = [len(place.records(topic)) for topic in (COMMANDS, EVENTS)]
    browser, wrong = place.browser("operator-all"), []
    headers = {"Origin": ORIGIN, "Accept": "application/json", "X-CSRF-Token": browser.csrf}
    taken = [one.path for one in place.app.routes if isinstance(one, Route) and "POST" in (one.methods or ())]
    assert {*SENT} <= {*taken}
    for path in sorted({*taken} - {"/logout", "/health/checks"}):
        address = re.sub(r"\{[^}]+\}", "0" * 32, path)
        for sent in (*map(orjson.dumps, SENT.get(path, ())), *ANY):
            answer = browser.post(address, content=sent, headers=headers)
            items = answer.json().get("items", ()) if answer.headers["content-type"] == "application/json" else ()
            if answer.status_code >= 500 or any(one["came"] != "not sent" for one in items):
                wrong.append((path, sent[:90], answer.text[:200]))
    assert wrong == []
    assert "a page failed" not in capsys.readouterr().out
    assert [len(place.records(topic)) for topic in (COMMANDS, EVENTS)] == log


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_a_form_of_another_site_is_no_command(place: Place, kind: str) -> None:
    """What a foreign page can have a browser send, with the cookie and without a script's headers, changes nothing."""
    browser = place.browser("narrow")
    for path in ("/commands", "/held/sealed", "/proposals", "/step-up/options", "/logout"):
        body = b'{"envelopes": [], "csrf": "' + browser.csrf.encode() + b'"}'
        for origin in ("https://evil.example", "null"):
            answer = browser.post(path, content=body, headers={"Content-Type": kind, "Origin": origin})
            assert answer.status_code == 403, path
        answer = browser.post(path, content=body, headers={"Content-Type": kind, "Origin": ORIGIN})
        assert answer.status_code == 403, "the token of a page comes as its form's field, or in the header"
    assert browser.get("/").status_code == 200


def test_a_stranger_sends_little(place: Place) -> None:
    """Who is not logged in, as anybody may be, has a small body taken at most: many of them fill no memory."""
    stranger = Browser(place.app, base_url=ORIGIN, headers={"Origin": ORIGIN})
    for path in ("/login", "/login/key"):
        assert stranger.post(path, content=b"x" * (STRANGERS_BYTES_MAX + 1)).status_code == 413
        assert stranger.post(path, content=b"x" * STRANGERS_BYTES_MAX).status_code == 400


def test_nobody_waits_for_ever(place: Place) -> None:
    """A wait that is no number would never be over: it is refused before a thread of the server begins it."""
    command = Command.model_validate({
        "id": "c-unanswered", "tenant": "acme", "time": datetime.now(UTC), "action": "note", "target": "held",
        "digest": "0" * 64, "expires_at": datetime.now(UTC), "reason": "later",
    })  # fmt: skip
    orders.remembered(place.serving).add([orders.Published(command, "nowhere", (Bookmark(0, 0),))])
    browser = place.browser("narrow")
    for text in ("nan", "-nan", "x", ""):
        assert browser.get(f"/commands/c-unanswered?wait={text}").status_code == 400, text
    assert browser.get("/commands/c-unanswered?wait=-inf").json()["came"] == "no answer"


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Place]:
    """A place of one's own, where something is decided."""
    made = Place(tmp_path)
    yield made
    made.close()


def sends(browser: Browser, *envelopes: dict[str, Any]) -> list[dict[str, Any]]:
    """Bring envelopes as the desk does, and return what became of each."""
    answer: Any = browser.sent("/commands", orjson.dumps({"envelopes": list(envelopes)}))
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


def signed(place: Place, action: Action, kid: str = "narrow") -> dict[str, Any]:
    """Return the envelope of a command about the held write as it stands now, signed by a key."""
    with place.serving.desk() as desk:
        place.index.feed(desk)
        (row,) = place.index.page(HeldQuery.parse("state:any"), tenants=None, limit=10).rows
        command = decision(place.index.opened(desk, row), action, str(uuid.uuid4()), datetime.now(UTC))
    return sign(command, [place.keys.credential(kid)], wall_ms()).envelope


def state(place: Place) -> str:
    """Return what became of the held write."""
    with place.serving.desk() as desk:
        place.index.feed(desk)
    (row,) = place.index.page(HeldQuery.parse("state:any"), tenants=None, limit=10).rows
    return str(row.state.value)


def test_an_order_counts_once_and_for_who_signed_it(office: Place) -> None:
    """A rejection that was taken back is not carried out again by whoever recorded it, in one request or in another,
    nor by a session of somebody else; and of two tabs that decide at one moment one is obeyed."""
    office.write(event_id="w-1")
    browser, other = office.browser("narrow"), office.browser("operator-all")
    reject = signed(office, Action.REJECT)
    assert [one["came"] for one in sends(other, reject)] == ["not sent"]
    assert [one["came"] for one in sends(browser, reject, reject)] == ["done", "done"]
    assert len(office.records(COMMANDS)) == 2
    assert [one["came"] for one in sends(browser, signed(office, Action.REOPEN))] == ["done"]
    assert [one["came"] for one in sends(office.browser("narrow"), reject)] == ["conflict"]
    assert state(office) == "pending"
    tabs = [(office.browser("narrow"), signed(office, action)) for action in (Action.RELEASE, Action.REJECT)]
    with ThreadPoolExecutor() as pool:
        came = [one["came"] for (one,) in pool.map(lambda tab: sends(*tab), tabs)]
    assert sorted(came) == ["conflict", "done"]
    assert state(office) == ("released" if came[0] == "done" else "rejected")


def test_what_is_proposed_for_every_tenant_is_for_who_sees_all(office: Place) -> None:
    """Its policy has what is said of each tenant: an operator of one alone finds no such proposal and no answer to it,
    is offered none, and brings no command for all, not even one that a key of all signed."""
    office.write("The early train leaves at seven.")
    made = activation(holding.text(), EVERYBODY, "c-all", datetime.now(UTC))
    envelope = sign(made, [office.keys.credential("operator-all")], wall_ms()).envelope
    answer: Any = office.browser("operator-all").sent("/proposals", orjson.dumps({"envelope": envelope}))
    path = answer.json()["path"]
    assert office.browser("operator-too").get(path).status_code == 200
    narrow = office.browser("operator-acme")
    assert narrow.get(path).status_code == 404
    assert path not in narrow.get("/proposals").text
    published = orders.Published(made, "somewhere", (Bookmark(0, 0),))
    orders.remembered(office.serving).add([published])
    assert narrow.get("/commands/c-all").status_code == 404
    assert office.browser("operator-all").get("/commands/c-all").status_code == 200


def test_nobody_takes_the_place_of_all_proposals(office: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """One key has a bounded number of proposals that wait: another person's are taken all the same."""
    monkeypatch.setattr(proposals, "OF_ONE_MAX", 2)

    def proposed(kid: str) -> str:
        made = activation(holding.text(), "acme", str(uuid.uuid4()), datetime.now(UTC))
        envelope = sign(made, [office.keys.credential(kid)], wall_ms()).envelope
        answer: Any = office.browser(kid).sent("/proposals", orjson.dumps({"envelope": envelope}))
        return str(answer.json().get("detail", ""))

    assert [proposed("operator-acme") for _ in range(2)] == ["", ""]
    assert "2 proposals of yours wait already" in proposed("operator-acme")
    assert proposed("operator-all") == ""
