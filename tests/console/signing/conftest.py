"""A real Chromium, and a page of the console's own files for what needs no console."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from tests.console.signing.node import STATIC
from tests.console.signing.rig import Rig, console

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
TYPES = {".js": "text/javascript", ".css": "text/css"}


class Plain(BaseHTTPRequestHandler):
    """Serves the console's static files, and at ``/`` a page that the test chose."""

    text = "<!doctype html><html lang=en><title>Blank</title><body></body></html>"

    def do_GET(self) -> None:
        """Answer with a file, or the page."""
        file = STATIC / self.path.partition("?")[0].removeprefix("/static/")
        found = self.path.startswith("/static/") and file.is_file()
        body = file.read_bytes() if found else type(self).text.encode()
        self.send_response(200)
        self.send_header("Content-Type", TYPES.get(file.suffix, "") if found else "text/html; charset=utf-8")
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="session")
def plain() -> Iterator[str]:
    """Give the address of a server of the static files."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Plain)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def blank(chromium: Browser, plain: str) -> Iterator[Page]:
    """Give an empty page of a profile of its own, under the policy of the console."""
    with chromium.new_context() as context:
        page = context.new_page()
        page.goto(plain)
        yield page


@pytest.fixture
def rig(chromium: Browser, tmp_path_factory) -> Iterator[Rig]:
    """Give a console of a new home."""
    with console(chromium, tmp_path_factory.mktemp("home")) as made:
        yield made
