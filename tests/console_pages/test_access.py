"""Who comes into the console, for how long, and what he sees: decided by the registry, on the server, every time."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.console_pages.place import ORIGIN, Browser, Place

from memsluice.clock import wall_ms
from memsluice.console.app import create_app
from memsluice.console.logins import VALID_MS, signed_bytes
from memsluice.console.serving import Serving, serving_of
from memsluice.console.sessions import OF_ONE_MAX, SESSIONS_MAX, Sessions
from memsluice.console.settings import Settings
from memsluice.console.visitors import Sight, Visitor
from memsluice.envelope.keys import KeyState
from memsluice.envelope.registry import Credential, Registry, Role
from memsluice.events.models import Action
from memsluice.keystore.store import issue_credential
from memsluice.operations.review.index import ReviewIndex

CHALLENGE = re.compile('data-challenge="([^"]+)"')


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_ms = wall_ms()

    def __call__(self) -> int:
        """Return the time."""
        return self.now_ms


class Door:
    """A console of one's own, whose clock a test sets, and whose keys it may revoke."""

    def __init__(self, path: Path) -> None:
        self.place = Place(path)
        self.clock = Clock()
        self.index = ReviewIndex.open(path, clock=self.clock)
        self.serving: Serving = serving_of(path, self.index, Settings(), clock=self.clock)
        self.app = create_app(self.serving)

    def browser(self) -> Browser:
        """Return a browser that is not logged in."""
        return Browser(self.app, base_url=ORIGIN, headers={"Accept": "text/html"}, follow_redirects=False)

    def login(self, browser: Browser, kid: str, *, origin: str = ORIGIN, challenge: str = "", key: str = "") -> int:
        """Log a browser in as a key (signing with another one where it is named); return the status of the answer."""
        challenge = challenge or CHALLENGE.search(browser.get("/login").text)[1]
        made = self.place.keys.credential(key or kid).signer().sign(signed_bytes(origin, kid, challenge))
        sent = {"kid": kid, "challenge": challenge, "signature": base64.b64encode(made).decode()}
        return int(browser.post("/login", json=sent, headers={"Origin": ORIGIN}).status_code)


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    """A console of one's own."""
    made = Door(tmp_path)
    yield made
    made.index.close()
    made.place.close()


def test_a_registered_key_logs_in_and_the_cookie_is_for_this_server_alone(door: Door) -> None:
    """Who signs the challenge comes in; the cookie is out of scripts' reach, and goes along to no other site."""
    browser = door.browser()
    assert browser.get("/held").headers["location"] == "/login?next=%2Fheld"
    challenge = CHALLENGE.search(browser.get("/login").text)[1]
    made = door.place.keys.credential("narrow").signer().sign(signed_bytes(ORIGIN, "narrow", challenge))
    sent = {"kid": "narrow", "challenge": challenge, "signature": base64.b64encode(made).decode()}
    answer = browser.post("/login", json=sent, headers={"Origin": ORIGIN})
    assert (answer.status_code, answer.json()) == (200, {"name": "narrow", "role": "reviewer"})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "narrow" in browser.get("/").text


def test_under_https_the_cookie_is_bound_to_the_host(door: Door) -> None:
    """Behind TLS the cookie is Secure and of a name that a browser takes from this host alone."""
    serving = serving_of(door.place.home.path, door.index, Settings(url="https://desk.example.org"), clock=door.clock)
    door.app, origin = create_app(serving), "https://desk.example.org"
    browser = Browser(door.app, base_url=origin, headers={"Accept": "text/html"}, follow_redirects=False)
    challenge = CHALLENGE.search(browser.get("/login").text)[1]
    made = door.place.keys.credential("narrow").signer().sign(signed_bytes(origin, "narrow", challenge))
    sent = {"kid": "narrow", "challenge": challenge, "signature": base64.b64encode(made).decode()}
    answer = browser.post("/login", json=sent, headers={"Origin": origin})
    assert answer.headers["set-cookie"].startswith("__Host-memsluice-console=")
    assert "Secure" in answer.headers["set-cookie"]
    assert answer.headers["strict-transport-security"]


@pytest.mark.parametrize("role", ["producer", "runtime"])
def test_keys_of_agents_do_not_come_in(door: Door, role: str) -> None:
    """A producer's or a runtime's key is in the registry, and is no person's."""
    kid = issue_credential(door.place.keys, Role(role), "agent", ["acme"], kid=f"a-{role}")[0].kid
    assert door.login(door.browser(), kid) == 403


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"kid": "nobody", "key": "narrow"}, 403),
        ({"kid": "operator-all", "key": "narrow"}, 403),
        ({"kid": "narrow", "origin": "http://elsewhere.example"}, 403),
        ({"kid": "narrow", "challenge": "1.x.y"}, 400),
    ],
)
def test_nothing_but_the_keys_own_signature_over_this_challenge_logs_in(door: Door, change: dict, status: int) -> None:
    """An unknown key, another one's signature, one that another site asked for, and a made-up challenge are refused."""
    browser = door.browser()
    assert door.login(browser, **change) == status
    assert browser.get("/held").status_code == 303


def test_a_challenge_is_good_once_and_for_two_minutes(door: Door) -> None:
    """Whoever reads a login on its way can do nothing with it."""
    browser = door.browser()
    challenge = door.serving.logins.challenge()
    assert door.login(browser, "narrow", challenge=challenge) == 200
    assert door.login(door.browser(), "narrow", challenge=challenge) == 400
    late = door.serving.logins.challenge()
    door.clock.now_ms += VALID_MS
    assert door.login(door.browser(), "narrow", challenge=late) == 403


def test_a_revoked_key_ends_its_sessions_at_the_next_request(door: Door) -> None:
    """A key that falls while its owner is logged in lets him see nothing more, and logs nobody in."""
    browser = door.browser()
    assert door.login(browser, "narrow") == 200
    assert browser.get("/held").status_code == 200
    keys = door.place.keys
    with keys.locked():
        keys.save_keyring(keys.load_keyring().retire("narrow", KeyState.REVOKED))
    assert browser.get("/held").status_code == 303
    assert browser.get("/events", headers={"Accept": "text/event-stream"}).status_code == 401
    assert door.login(door.browser(), "narrow") == 403


def test_a_role_or_tenant_that_the_registry_changes_counts_at_once(door: Door) -> None:
    """A session holds no right: a reviewer who is made a reader of another tenant sees what that one sees."""
    door.place.write(event_id="held")
    with door.serving.desk() as desk:
        door.index.feed(desk)
    browser = door.browser()
    assert door.login(browser, "narrow") == 200
    assert 'class="content"' in browser.get("/held/entries/acme/held").text
    keys = door.place.keys
    with keys.locked():
        changed = (
            keys.load_registry().get("narrow").model_copy(update={"role": Role.READER, "channel": "agent", "tier": 3})
        )
        keys.save_registry(keys.load_registry().with_credential(changed))
    assert 'class="content"' not in browser.get("/held/entries/acme/held").text
    with keys.locked():
        keys.save_registry(keys.load_registry().with_credential(changed.model_copy(update={"tenants": ("globex",)})))
    assert browser.get("/held/entries/acme/held").status_code == 404


def test_sessions_end_when_idle_when_old_and_when_their_owner_leaves(door: Door) -> None:
    """Half an hour without a request, eight hours in all, or a click: then one logs in again."""
    browser = door.browser()
    assert door.login(browser, "narrow") == 200
    door.clock.now_ms += 30 * 60_000
    assert browser.get("/").status_code == 303
    assert door.login(browser, "narrow") == 200
    for _ in range(24):
        assert browser.get("/").status_code == 200
        door.clock.now_ms += 20 * 60_000
    assert browser.get("/").status_code == 303
    assert door.login(browser, "narrow") == 200
    csrf = re.search('name="csrf" content="([^"]+)"', browser.get("/").text)[1]
    browser.csrf = csrf
    assert browser.sent("/logout", {}).status_code == 303
    assert browser.get("/").status_code == 303


def test_a_restart_asks_everybody_to_log_in_again(door: Door) -> None:
    """Sessions are in memory alone: nobody who reads the home finds one."""
    browser = door.browser()
    assert door.login(browser, "narrow") == 200
    token = browser.cookies["memsluice-console"]
    assert not [
        file for file in door.place.home.path.rglob("*") if file.is_file() and token.encode() in file.read_bytes()
    ]
    again = Browser(
        create_app(serving_of(door.place.home.path, door.index, Settings())), base_url=ORIGIN,
        headers={"Accept": "text/html"}, cookies={"memsluice-console": token}, follow_redirects=False,
    )  # fmt: skip
    assert again.get("/").status_code == 303


def test_sessions_are_bounded_in_all_and_for_each() -> None:
    """A visitor who logs in again and again ends his own oldest session; beyond the bound the oldest of all ends."""
    sessions = Sessions(Clock())
    narrow = Visitor("narrow", Role.REVIEWER, None)
    tokens = [sessions.begin(narrow)[0] for _ in range(OF_ONE_MAX + 1)]
    assert [sessions.find(one) is None for one in tokens] == [True, *[False] * OF_ONE_MAX]
    first = sessions.begin(Visitor("first", Role.READER, None))[0]
    for number in range(SESSIONS_MAX):
        sessions.begin(Visitor(f"v{number}", Role.READER, None))
    assert sessions.find(first) is None


def test_roles_see_more_in_order() -> None:
    """A reader sees no content, a reviewer no dead letters, an operator all; what each may order is the gate's own."""
    roles = (Role.READER, Role.REVIEWER, Role.OPERATOR)
    sights = [{one for one in Sight if Visitor("x", role, None).sees(one)} for role in roles]
    assert sights == [{Sight.METADATA}, {Sight.METADATA, Sight.CONTENT}, set(Sight)]
    assert Visitor("x", Role.REVIEWER, None).may(Action.RELEASE)
    assert not Visitor("x", Role.OPERATOR, None).may(Action.RELEASE)
    assert Visitor("x", Role.OPERATOR, None).may(Action.ACTIVATE)
    assert not Visitor("x", Role.READER, None).may(Action.RELEASE)


def test_a_key_is_his_who_came_in_with_it_or_whom_the_registry_names() -> None:
    """Nobody sends what another one signed: a visitor of a provider has the keys that have his name, and no other."""
    entry = Credential(
        kid="k", role=Role.REVIEWER, channel="operator", tier=1, tenants=("acme",), principals=("ana@example.org",)
    )
    registry = Registry([entry, entry.model_copy(update={"kid": "wide", "principals": ("*",)})])
    ana = Visitor("ana@example.org", Role.REVIEWER, None)
    assert [ana.owns(kid, registry) for kid in ("k", "wide", "none")] == [True, False, False]
    assert not Visitor("bo@example.org", Role.REVIEWER, None).owns("k", registry)
    assert not Visitor("ana@example.org", Role.OPERATOR, None).owns("k", registry)
    assert [Visitor("k", Role.REVIEWER, None, "k").owns(kid, registry) for kid in ("k", "wide")] == [True, False]
