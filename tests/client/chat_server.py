"""A chat endpoint on this machine that notes what it is asked and answers as it is told."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.patience import HANG_S


class _Handler(BaseHTTPRequestHandler):
    server: "Endpoint"

    def do_POST(self) -> None:
        """Note the request, and answer it."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, dict(self.headers), json.loads(body)))
        self.server.hold.wait(HANG_S)
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(self.server.answer) + self.server.missing))
        with suppress(ConnectionError):  # who asked has read as much as it takes, or has given up
            self.end_headers()
            self.wfile.write(self.server.answer)

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


class Endpoint(ThreadingHTTPServer):
    """A chat endpoint that notes what it was asked and answers what it was told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.status, self.headers, self.answer, self.missing = 200, dict[str, str](), b"", 0
        self.hold = threading.Event()
        self.hold.set()

    @property
    def url(self) -> str:
        """The endpoint's address."""
        return f"http://127.0.0.1:{self.server_port}/v1/chat/completions"

    def says(self, content: Any, **more: Any) -> None:
        """Answer with a completion of this content, and what else is told."""
        said = {"choices": [{"message": {"role": "assistant", "content": content}}], **more}
        self.answer = json.dumps(said).encode()


@contextmanager
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator["Endpoint"]:
    """Give a running endpoint that no proxy stands before."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.hold.set()
        server.shutdown()
        thread.join()
