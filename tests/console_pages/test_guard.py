"""What stands before every page, and on every answer."""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.routing import Mount, Route
from tests.console_pages.place import HOSTILE, ORIGIN, Browser, Place
from tests.console_pages.test_access import Clock

from memsluice.cli import console as command
from memsluice.cli.http_service import configured
from memsluice.console.app import create_app
from memsluice.console.security import BODY_BYTES_MAX, OPEN
from memsluice.console.serving import serving_of
from memsluice.console.settings import Settings
from memsluice.console.visitors import Visitor
from memsluice.envelope.registry import Role
from memsluice.errors import ConfigError

TEMPLATES = Path(__file__).parents[2] / "pipeline/memsluice/console/templates"
STATIC = TEMPLATES.parent / "static"


def test_every_answer_forbids_foreign_script_frames_and_caches(place: Place) -> None:
    """Pages, problems, redirects and files carry the policy: no script but ours, and none may make HTML of text."""
    browser = place.browser("narrow")
    stranger = Browser(place.app, base_url=ORIGIN, follow_redirects=False)
    for answer in (browser.get("/"), browser.get("/nowhere"), stranger.get("/"), stranger.get("/static/console.css")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"


def test_no_page_has_script_or_style_of_its_own() -> None:
    """What the policy would stop is in no template: no inline script, handler or style, nothing from elsewhere."""
    own = r'<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc="/static/)|"javascript:|https?://|\|safe'
    inline = re.compile(own, re.IGNORECASE)
    found = {file.name: inline.findall(file.read_text()) for file in sorted(TEMPLATES.glob("*.html"))}
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_no_script_turns_text_into_html() -> None:
    """The scripts build elements and set text: none names a sink that Trusted Types guards, or evaluates anything."""
    sinks = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|eval\(|new Function|srcdoc")
    found = {file.name: sinks.findall(file.read_text()) for file in sorted(STATIC.glob("*.js"))}
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_one_clock_that_is_given_tells_every_page_the_time() -> None:
    """Sessions, limits and commands go by one clock: no file of the console but the one that is given it asks the
    machine's, or makes up an id that nothing can say beforehand."""
    asks = re.compile(r"wall_ms|datetime\.now|time\.time\(|uuid4")
    files = [file for file in sorted(TEMPLATES.parent.rglob("*.py")) if file.name != "serving.py"]
    assert len(files) > 30
    assert {file.name: found for file in files if (found := asks.findall(file.read_text()))} == {}


def test_every_page_asks_who_looks(place: Place) -> None:
    """Of all routes, those alone answer a stranger that are for logging in; every other is behind the guard."""
    stranger = Browser(place.app, base_url=ORIGIN, follow_redirects=False)
    routes = [one for one in place.app.routes if isinstance(one, Route)]
    assert len(routes) > 10
    for route in routes:
        path = re.sub(r"\{[^}]+\}", "x", route.path)
        for method in (route.methods or set()) - {"HEAD"}:
            answer = stranger.request(method, path, headers={"Origin": ORIGIN, "Accept": "application/json"})
            assert (answer.status_code == 401) == (route.path not in OPEN), (method, path)
    assert [one.path for one in place.app.routes if isinstance(one, Mount)] == ["/static"]


@pytest.mark.parametrize("host", ["desk.evil.example", "127.0.0.1:99", "localhost.evil.example:8714", ""])
def test_it_answers_to_its_own_name_alone(place: Place, host: str) -> None:
    """A name that was bent to this address (DNS rebinding) is told that this is another console."""
    answer = place.browser("narrow").get("/", headers={"Host": host})
    assert answer.status_code == 421
    assert "narrow" not in answer.text


@pytest.mark.parametrize("origin", [None, "null", "https://evil.example", "http://localhost:8714", ORIGIN + "1"])
def test_another_sites_page_changes_nothing(place: Place, origin: str | None) -> None:
    """Without the console's own origin nothing is taken, whatever token comes with it."""
    browser = place.browser("narrow")
    headers = {} if origin is None else {"Origin": origin}
    for path in ("/logout", "/commands", "/login"):
        answer = browser.post(path, content=b"{}", headers={**headers, "X-CSRF-Token": browser.csrf})
        assert answer.status_code == 403, path
    assert browser.get("/").status_code == 200


@pytest.mark.parametrize("token", ["", "x", "\u00e9"])
def test_nothing_is_taken_without_the_sessions_own_token(place: Place, token: str) -> None:
    """Of a page of the right origin that does not know the session's token nothing is taken; nor of another's token."""
    browser, other = place.browser("narrow"), place.browser("operator-all")
    for sent in (token, other.csrf):
        answer = browser.post(
            "/logout", headers={"Origin": ORIGIN, "X-CSRF-Token": sent.encode()}, data={"csrf": "wrong"}
        )
        assert answer.status_code == 403
    assert browser.get("/").status_code == 200


def test_what_is_sent_and_where_to_is_bounded(place: Place) -> None:
    """A body or an address beyond its bound is refused before any page sees it."""
    browser = place.browser("narrow")
    headers = {"Origin": ORIGIN, "X-CSRF-Token": browser.csrf}
    assert browser.post("/logout", content=b"x" * (BODY_BYTES_MAX + 1), headers=headers).status_code == 413
    assert browser.get("/held", params={"q": "x" * 9_000}).status_code == 414
    assert browser.get("/held").status_code == 200


def test_who_asks_too_often_waits_and_others_do_not(place: Place, tmp_path: Path) -> None:
    """Beyond its quota a visitor is told to wait; a second later he is heard again, and nobody else waited."""
    clock = Clock()
    serving = serving_of(place.home.path, place.index, Settings(requests_per_s=1, requests_at_once=5), clock=clock)
    app = create_app(serving)

    def browser(kid: str, address: str) -> Browser:
        made = Browser(
            app, base_url=ORIGIN, headers={"Accept": "text/html"}, follow_redirects=False, client=(address, 1)
        )
        made.cookies.set("memsluice-console", serving.sessions.begin(Visitor(kid, Role.READER, None))[0])
        return made

    one, other = browser("one", "10.0.0.1"), browser("other", "10.0.0.2")
    answers = [one.get("/").status_code for _ in range(7)]
    assert answers == [200] * 5 + [429] * 2
    assert other.get("/").status_code == 200
    clock.now_ms += 1_000
    assert one.get("/").status_code == 200


def test_behind_a_proxy_that_is_named_each_person_has_an_address(place: Place, tmp_path: Path) -> None:
    """Whom a trusted proxy names counts as who asks; whoever is no trusted proxy is believed no name."""
    settings = Settings.checked(
        {"requests_per_s": 1, "requests_at_once": 2, "trusted_proxies": ["10.1.0.0/16", "fd00::1"]}, "test"
    )
    serving = serving_of(place.home.path, place.index, settings, clock=Clock())
    config = configured(
        create_app(serving), "127.0.0.1", 0, 10, None, None, "off", trusted_proxies=settings.trusted_proxies
    )
    config.load()

    def asked(peer: str, said: str) -> int:
        browser = Browser(config.loaded_app, base_url=ORIGIN, client=(peer, 1))
        return browser.get("/livez", headers={"X-Forwarded-For": said}).status_code

    for peer in ("10.1.2.3", "fd00::1"):
        ana, bo = f"{peer[-1]}:a", f"{peer[-1]}:b"
        assert [asked(peer, ana) for _ in range(3)] == [200, 200, 429]
        assert asked(peer, f"made-up, {bo}") == 200
    assert [asked("192.0.2.1", f"192.0.2.{number}") for number in (7, 8, 9)] == [200, 200, 429]


def test_the_command_has_its_server_trust_whom_the_settings_name(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What console.toml says of proxies is what requests are served by; another address or a name stops the start."""
    told: dict[str, object] = {}

    @contextmanager
    def server(*_: object, **options: object) -> Iterator[Callable[[], None]]:
        told.update(options)
        yield lambda: None

    monkeypatch.setattr(command, "server", server)
    monkeypatch.setattr(command.log, "structure_libraries", lambda: None)  # or this process's logs went elsewhere
    file = tmp_path / "console.toml"
    for text, trusted in (("", ()), ('trusted_proxies = ["10.1.2.3", "10.1.0.0/16"]', ("10.1.2.3", "10.1.0.0/16"))):
        file.write_text(text)
        command.console(home=tmp_path)
        assert told["trusted_proxies"] == trusted
    for wrong in ("*", "proxy.example", "10.1.2.3/8"):
        file.write_text(f'trusted_proxies = ["{wrong}"]')
        with pytest.raises(ConfigError, match=r"trusted_proxies: .*name addresses, such as"):
            command.console(home=tmp_path)


@pytest.mark.parametrize(
    ("where", "goes"),
    [
        ("/held?q=state:any", "/held?q=state:any"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/held\r\nX: y", "/"),
        ("/login", "/"),
    ],
)
def test_after_logging_in_one_goes_to_a_page_of_the_console(place: Place, where: str, goes: str) -> None:
    """Where somebody wanted to go is followed within the console alone."""
    answer = place.browser("narrow").get("/login", params={"next": where})
    assert (answer.status_code, answer.headers["location"]) == (303, goes.replace(" ", "%20"))


def test_a_page_that_fails_says_so_and_logs_its_place_alone(
    place: Place,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A defect is answered with a number, under which the log has kind and place, and never what was asked or held."""
    browser = place.browser("narrow")

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"about {HOSTILE}")

    monkeypatch.setattr(place.index, "counts", broken)
    with caplog.at_level(logging.DEBUG):
        answer = browser.get("/held", params={"q": "tenant:secret-tenant"})
    assert answer.status_code == 500
    number = re.search("more under ([0-9a-f]{8})", answer.text)[1]
    log = logged(caplog) + "".join(capsys.readouterr())
    assert number in log
    assert "onerror" not in answer.text + log
    assert "secret-tenant" not in log


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """Return what the server logged; what its client here logs is the client's."""
    return "\n".join(one.getMessage() for one in caplog.records if not one.name.startswith("httpx"))


def test_what_is_shown_is_in_no_address_and_no_log(
    place: Place, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every link of the pages of held writes names identifiers; no content is in one, and reading logs none."""
    browser = place.browser("operator-all")
    with place.serving.desk() as desk:
        place.index.feed(desk)
    with caplog.at_level(logging.DEBUG):
        pages = [browser.get(path).text for path in ("/held", "/held/entries", "/held/entries/acme/hostile")]
    for text in pages:
        assert "Ignore all previous" in text
        links = re.findall('(?:href|src|action|content)="([^"]*)"', text)
        assert not [one for one in links if "ignore" in one.lower() or "previous" in one.lower()]
    assert "previous instructions" not in logged(caplog) + "".join(capsys.readouterr())
