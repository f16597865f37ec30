"""A console that is served to browsers from this process, and people in browsers of their own who come to it."""

import shutil
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette

from memsluice.clock import wall_ms
from memsluice.console.app import create_app
from memsluice.console.serving import Serving, opened
from memsluice.console.settings import Settings
from memsluice.envelope.registry import Credential, Role
from memsluice.errors import StackError
from memsluice.events.names import EVERYBODY
from memsluice.keystore.enrolment import enrol, public_from_text
from memsluice.keystore.store import KeyStore

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Response

SETTINGS = {"requests_per_s": 1_000, "requests_at_once": 10_000}
"""A walk through all pages asks more often than a person does."""
NAMES = ("chromium-headless-shell", "chromium")
SENT_MS = 120_000
_SEND = """([path, fields]) => {
  const form = document.createElement("form");
  [form.method, form.action] = ["post", path];
  fields.push(["csrf", document.querySelector("meta[name=csrf]").content]);
  for (const [name, value] of fields) {
    const field = document.createElement("textarea");
    [field.name, field.value] = [name, value];
    form.append(field);
  }
  document.body.append(form);
  form.submit();
}"""


@dataclass(frozen=True, slots=True)
class Desk:
    """A console at ``url``, and what it stands on."""

    serving: Serving
    app: Starlette
    url: str

    def feed(self) -> None:
        """Have the index take in what the topics hold, as the console's own feeding does a moment later."""
        with self.serving.desk() as desk:
            self.serving.index.feed(desk)


@contextmanager
def served(home: Path) -> Iterator[Desk]:
    """Serve the console of a home on a port of this machine."""
    with opened(home, Settings.checked(SETTINGS, "desk")) as serving:
        app = create_app(serving)
        with listening(app) as url:
            yield Desk(serving, app, url)


@contextmanager
def listening(app: Any, host: str = "127.0.0.1") -> Iterator[str]:
    """Serve an application from this process, and give its address."""
    import uvicorn

    with socket.create_server((host, 0)) as place:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
        thread = threading.Thread(target=server.run, args=([place],), daemon=True)
        thread.start()
        try:
            yield f"http://{host}:{place.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def chromium() -> "Iterator[Browser]":
    """Give the browser of this machine. Raises StackError where there is none, or nothing that drives it."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise StackError("there is no Chromium on this machine: scripts/install-chromium installs one")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise StackError("Playwright, which drives the browser, is a tool of development: make install") from None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def person(browser: "Browser", desk: Desk, name: str, role: Role, **options: Any) -> "tuple[BrowserContext, Page]":
    """Give a browser of somebody for all tenants, who made a key in it, had it enrolled, and logged in."""
    context = browser.new_context(**options)
    page = context.new_page()
    enrolled(page, desk.url, desk.serving.keys, name, role, (EVERYBODY,))
    enter(page, desk.url)
    return context, page


def enrolled(page: "Page", url: str, keys: KeyStore, name: str, role: Role, tenants: tuple[str, ...]) -> Credential:
    """Have a browser make a key on the login page of a console, and register it; return its credential."""
    page.goto(f"{url}/login")
    page.click("#make-key")
    page.locator("#fingerprint").wait_for()
    public = public_from_text(page.locator("#public").inner_text())
    return enrol(keys, role, public, name, tenants, wall_ms())


def enter(page: "Page", url: str) -> None:
    """Log in with the key of the browser, from the login page."""
    page.click("#enter")
    page.wait_for_url(f"{url}/")


def send(page: "Page", url: str, path: str, fields: Sequence[tuple[str, str]]) -> "Response | None":
    """Send a form to a page, as a page of the console's own does, and return what answered."""
    page.goto(f"{url}/keys")
    with page.expect_navigation(timeout=SENT_MS) as going:
        page.evaluate(_SEND, [path, [list(one) for one in fields]])
    return going.value
