"""The HTTP endpoint of a worker: ``/metrics`` for Prometheus, ``/livez`` and ``/readyz`` for whoever restarts it.

Served by a thread of its own, so that it answers while the worker's event loop is busy, and says so when that is stuck.
It listens on the loopback interface by default; nothing it returns is content or a secret.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from socketserver import ThreadingMixIn
from threading import BoundedSemaphore, Lock, Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import orjson
from prometheus_client import make_wsgi_app

from memsluice.errors import ConfigError
from memsluice.runtimes.kafka.progress import StageProgress
from memsluice.telemetry import registry
from memsluice.telemetry.health import Health, StageProblem
from memsluice.telemetry.meters import Meters

LOOPBACK = "127.0.0.1"
CONNECTIONS_MAX = 32
CLIENT_S = 5.0
"""How long a client may take to say what it wants, and for each piece of the answer."""


class _Server(ThreadingMixIn, WSGIServer):
    """A thread a connection, of which there are so many at most; whoever comes when all are taken is sent away."""

    daemon_threads = True
    request_queue_size = 16

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._free = BoundedSemaphore(CONNECTIONS_MAX)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self._free.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and free the place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, or took too long, is no news."""


class _Silent(WSGIRequestHandler):
    timeout = CLIENT_S

    def log_message(self, *_: Any) -> None:
        """A scrape every few seconds is no news."""


class Endpoint:
    """Serves one worker's metrics and health until the process ends. ``catch_up`` is called before each scrape."""

    def __init__(
        self,
        meters: Meters,
        health: Health,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        now_ms: Callable[[], int],
        catch_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._meters = meters
        self._health = health
        self._now_ms = now_ms
        self._catch_up = catch_up
        self._lock = Lock()  # health is written by the event loop and read by the server's threads
        self._metrics: Any = make_wsgi_app(meters.collectors)
        meters.set(registry.STARTED, now_ms() / 1_000)
        try:
            self._server = make_server(host, port, self._serve, server_class=_Server, handler_class=_Silent)
        except OSError as error:
            raise ConfigError(f"no endpoint on {host}:{port}: {error.strerror}") from None
        self.port: int = self._server.server_port
        Thread(target=self._server.serve_forever, name="telemetry", daemon=True).start()

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()

    def report(self, stages: Sequence[StageProgress]) -> None:
        """Take in a worker's progress (its ``on_progress``)."""
        with self._lock:
            self._health.report(stages, time.monotonic())
        now_ms = self._now_ms()
        for stage in stages:
            age_s = 0.0 if stage.oldest_ms is None else max(0.0, (now_ms - stage.oldest_ms) / 1_000)
            self._meters.set(registry.OLDEST_SECONDS, age_s, stage.stage)
            if stage.waiting is not None:
                since_ms = now_ms if stage.waiting_since_ms is None else stage.waiting_since_ms
                self._meters.set(registry.OVERFLOW_OLDEST_SECONDS, max(0.0, (now_ms - since_ms) / 1_000))
        self._meters.partitions(stages)

    def _serve(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            self._catch_up()
            return self._metrics(environ, start)  # type: ignore[no-any-return]
        checks = {"/livez": self._health.not_alive, "/readyz": self._health.not_ready}
        if path not in checks:
            start("404 Not Found", [("Content-Type", "text/plain")])
            return [b"there are /metrics, /livez and /readyz\n"]
        with self._lock:
            found = checks[path](time.monotonic())
        start("503 Service Unavailable" if found else "200 OK", [("Content-Type", "application/json")])
        return [_answer(found)]


def _answer(found: Sequence[StageProblem]) -> bytes:
    problems = [{"stage": finding.stage, "problem": finding.problem} for finding in found]
    return orjson.dumps({"ok": not found, "problems": problems}) + b"\n"
