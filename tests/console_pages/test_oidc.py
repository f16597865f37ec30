"""Logging in at an identity provider, over HTTP, with tokens that it signs: who comes in as what, and what does not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.console_pages.place import ORIGIN, Browser, Place
from tests.console_pages.provider import CLIENT, SECRET, OpenId, providing
from tests.patience import HANG_S

from memsluice.console import oidc
from memsluice.console.app import create_app
from memsluice.console.serving import serving_of
from memsluice.console.settings import Settings
from memsluice.errors import ConfigError

ANA = {"email": "ana@example.org", "email_verified": True, "groups": ["desk", "staff"]}
BO = {"email": "bo@example.org", "email_verified": True, "groups": ["staff"]}


class Firm:
    """A console whose people log in at a provider: those of the group desk review acme, the rest of the staff read."""

    def __init__(self, place: Place, provider: OpenId) -> None:
        self.place, self.provider = place, provider
        (place.home.path / "oidc.secret").write_text(SECRET)
        (place.home.path / "console.toml").write_text(
            f'[oidc]\nissuer = "{provider.issuer}"\nclient_id = "{CLIENT}"\nsecret_file = "oidc.secret"\n\n'
            '[[oidc.people]]\nclaim = "groups"\nvalue = "desk"\nrole = "reviewer"\ntenants = ["acme"]\n\n'
            '[[oidc.people]]\nclaim = "groups"\nvalue = "staff"\nrole = "reader"\ntenants = ["*"]\n'
        )
        self.serving = serving_of(place.home.path, place.index, Settings.read(place.home.path))
        self.app = create_app(self.serving)

    def browser(self) -> Browser:
        """Return a browser that is not logged in."""
        return Browser(self.app, base_url=ORIGIN, headers={"Accept": "text/html"}, follow_redirects=False)

    def there_and_back(self, browser: Browser, person: dict[str, Any], where: str = "/held") -> str:
        """Go to the provider as somebody; return the path by which one comes back."""
        self.provider.person = person
        sent = browser.get("/login/oidc", params={"next": where})
        assert sent.status_code == 303, sent.text
        back = httpx.get(sent.headers["location"], timeout=HANG_S).headers["location"]
        assert back.startswith(f"{ORIGIN}/login/oidc/callback?")
        return back.removeprefix(ORIGIN)


@pytest.fixture
def firm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Firm]:
    """A console of one's own with a provider."""
    monkeypatch.setattr(oidc, "ANSWERS_WITHIN_S", HANG_S)
    made = Place(tmp_path)
    with providing() as provider:
        yield Firm(made, provider)
    made.close()


def test_claims_make_role_and_tenants(firm: Firm) -> None:
    """A group of the provider's is a role here, for the tenants that the settings name, under the person's own name."""
    browser = firm.browser()
    assert f">Log in with {firm.provider.issuer}</a>" in browser.get("/login").text
    answer = browser.get(firm.there_and_back(browser, ANA))
    assert answer.status_code == 200
    assert '<meta http-equiv="refresh" content="0;url=/held">' in answer.text
    page = browser.get("/").text
    assert "ana@example.org" in page
    assert ">reviewer<" in page
    other = firm.browser()
    other.get(firm.there_and_back(other, BO))
    assert ">reader<" in other.get("/").text


def test_the_sessions_cookie_is_strict_and_that_of_the_login_is_gone(firm: Firm) -> None:
    """The cookie that outlives a visit to another site says no more than which login it was, and goes when it ends."""
    browser = firm.browser()
    begun = browser.get("/login/oidc").headers["set-cookie"]
    assert "SameSite=lax" in begun
    assert "Path=/login/oidc" in begun
    answer = browser.get(firm.there_and_back(browser, ANA))
    cookies = answer.headers.get_list("set-cookie")
    assert any("memsluice-console=" in one and "SameSite=strict" in one for one in cookies)
    assert any('memsluice-console-login=""' in one for one in cookies)


def test_a_login_ends_in_the_browser_in_which_it_began_and_once(firm: Firm) -> None:
    """Nobody is logged in as another one by a link, and what comes back counts once."""
    browser = firm.browser()
    back = firm.there_and_back(browser, ANA)
    assert firm.browser().get(back).status_code == 400
    back = firm.there_and_back(browser, ANA)
    assert browser.get(back).status_code == 200
    assert firm.browser().get(back).status_code == 400


@pytest.mark.parametrize(
    "lies",
    [
        {"nonce": "another"},
        {"aud": "another"},
        {"aud": [CLIENT, "another"], "azp": "another"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"key": rsa.generate_private_key(public_exponent=65537, key_size=2048)},
        {"key": "x" * 32, "alg": "HS256"},
        {"key": None, "alg": "none"},
    ],
)
def test_a_token_that_proves_something_else_lets_nobody_in(firm: Firm, lies: dict[str, Any]) -> None:
    """A token of another login, client, issuer, time or key, or with no key at all, is refused."""
    browser = firm.browser()
    firm.provider.lies = lies
    answer = browser.get(firm.there_and_back(browser, ANA))
    assert answer.status_code == 403
    assert browser.get("/").status_code == 303


@pytest.mark.parametrize(
    "person",
    [{**ANA, "groups": ["other"]}, {**ANA, "email_verified": False}, {"groups": ["desk"]}, {**ANA, "email": "*"}],
)
def test_whom_the_settings_do_not_name_does_not_come_in(firm: Firm, person: dict[str, Any]) -> None:
    """Somebody whom the provider knows and no rule names, who has no name, or an address that nobody verified."""
    browser = firm.browser()
    assert browser.get(firm.there_and_back(browser, person)).status_code == 403
    assert browser.get("/").status_code == 303


def test_a_provider_that_is_away_or_another_one_is_said(firm: Firm) -> None:
    """Where the provider does not answer, or says that it is another one, nobody goes there, and keys still log in."""
    firm.provider.lies = {"issuer": "https://evil.example"}
    assert "oidc.issuer" in firm.browser().get("/login/oidc").text
    firm.provider.lies = {"token_endpoint": "http://evil.example/token"}
    browser = firm.browser()
    assert browser.get(firm.there_and_back(browser, ANA)).status_code == 502
    firm.provider.lies = {}
    away = Settings.checked(
        {"oidc": {"issuer": "http://127.0.0.1:9", "client_id": "x",
                  "people": [{"claim": "sub", "value": "1", "role": "reader", "tenants": ["*"]}]}}, "test",
    )  # fmt: skip
    firm.app = create_app(serving_of(firm.place.home.path, firm.place.index, away))
    answer = firm.browser().get("/login/oidc")
    assert answer.status_code == 503
    assert "does not answer" in answer.text
    assert firm.browser().get("/login").status_code == 200


def test_what_a_link_asks_of_the_provider_is_hidden_from_who_looks_on(firm: Firm) -> None:
    """The address that the browser is sent to has state, nonce and the digest of the verifier, and nothing besides."""
    asked = parse_qs(urlsplit(firm.browser().get("/login/oidc").headers["location"]).query)
    assert set(asked) == {
        "response_type", "client_id", "redirect_uri", "scope", "state", "nonce", "code_challenge",
        "code_challenge_method",
    }  # fmt: skip
    assert asked["code_challenge_method"] == ["S256"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("url = 5", "url: "),
        ('ulr = "https://desk.example.org"', "ulr: "),
        ("idle_minutes = 0", "idle_minutes: "),
        ('url = "https://desk.example.org/path"', "url: "),
        ("[oidc]", "oidc.issuer: "),
        ("=", "is no TOML"),
        ('[oidc]\nissuer = "x"\nclient_id = "x"\n[[oidc.people]]\nclaim = "c"\nvalue = "v"\nrole = "root"\n'
         'tenants = ["*"]', "oidc.people.0.role: "),
    ],
)  # fmt: skip
def test_settings_that_are_not_valid_name_the_field(tmp_path: Path, text: str, said: str) -> None:
    """A slip in console.toml stops the start, with the field's name and what is wrong with it."""
    (tmp_path / "console.toml").write_text(text)
    with pytest.raises(ConfigError, match="console") as error:
        Settings.read(tmp_path)
    assert said in str(error.value)


def test_a_provider_in_the_clear_is_refused(firm: Firm) -> None:
    """Tokens travel encrypted: http is for a provider on this machine alone."""
    people = [{"claim": "sub", "value": "1", "role": "reader", "tenants": ["*"]}]
    settings = Settings.checked({"oidc": {"issuer": "http://id.example", "client_id": "x", "people": people}}, "test")
    with pytest.raises(ConfigError, match="https"):
        serving_of(firm.place.home.path, firm.place.index, settings)
