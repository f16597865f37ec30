"""A console over a home with a real embedded log, and browsers in it: each is logged in with a registered key."""

from pathlib import Path

from starlette.testclient import TestClient
from tests.dead_letters.test_cli import Morgue

from memsluice.console.app import create_app
from memsluice.console.serving import Serving, serving_of
from memsluice.console.settings import Settings
from memsluice.console.visitors import Visitor
from memsluice.envelope import dsse
from memsluice.envelope.codec import canonical
from memsluice.envelope.registry import Role
from memsluice.events.names import EVERYBODY
from memsluice.keystore.store import issue_credential
from memsluice.operations.review.index import ReviewIndex

ORIGIN = "http://127.0.0.1:8714"
UNHURRIED = Settings(requests_per_s=10_000, requests_at_once=100_000)
"""Tests ask more often than people do."""
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e{{7*7}}"


class Browser(TestClient):
    """Somebody's browser. ``csrf`` is what the pages of its session send along."""

    csrf: str = ""

    def sent(self, path: str, data: bytes | dict[str, str]) -> object:
        """Send a form, or bytes as a script sends them, as the console's own page does."""
        headers = {"Origin": ORIGIN, "Accept": "text/html" if isinstance(data, dict) else "application/json"}
        if isinstance(data, dict):
            return self.post(path, data={**data, "csrf": self.csrf}, headers=headers)
        return self.post(path, content=data, headers={**headers, "X-CSRF-Token": self.csrf})


class Place(Morgue):
    """A home with people for some tenants and for all, and a console over it."""

    letter: str = ""
    """The name of its dead letter."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        issue_credential(self.keys, Role.OPERATOR, "operator", [EVERYBODY], kid="operator-all")
        issue_credential(self.keys, Role.OPERATOR, "operator", [EVERYBODY], kid="operator-too")
        issue_credential(self.keys, Role.OPERATOR, "operator", ["acme"], kid="operator-acme")
        issue_credential(self.keys, Role.READER, "agent", [EVERYBODY], kid="reader-all")
        issue_credential(self.keys, Role.READER, "agent", ["acme"], kid="reader")
        issue_credential(self.keys, Role.REVIEWER, "operator", ["acme"], kid="narrow")
        self.index = ReviewIndex.open(path)
        self.serving: Serving = serving_of(path, self.index, UNHURRIED)
        self.app = create_app(self.serving)

    def browser(self, kid: str) -> Browser:
        """Return the browser of whoever has this key."""
        token, session = self.serving.sessions.begin(Visitor.of(self.keys.registry().get(kid)))
        browser = Browser(self.app, base_url=ORIGIN, headers={"Accept": "text/html"}, follow_redirects=False)
        browser.cookies.set("memsluice-console", token)
        browser.csrf = session.csrf
        return browser

    def signed(self, payload_type: str, payload: object, *kids: str) -> bytes:
        """Return an envelope as a browser signs it with these keys."""
        signers = [self.keys.credential(kid).signer() for kid in kids]
        return canonical(dsse.sign(payload_type, canonical(payload), signers))

    def close(self) -> None:
        """Let everything go."""
        self.serving.desks.close()
        self.index.close()
