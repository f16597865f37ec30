"""A real trace backend: Jaeger all-in-one, built from the Go module proxy by go.mod and go.sum beside this file."""

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

from memsluice.paths import cache_dir
from memsluice.stack.ports import pick

MODULE = Path(__file__).parent / "jaeger"
PACKAGE = "github.com/jaegertracing/jaeger/cmd/all-in-one"
VERSION = "v1.76.0"
HANG_S = 60.0
"""Guards against hangs only."""
SERVERS = {
    "otlp": "collector.otlp.http",
    "query": "query.http-server",
    "otlp-grpc": "collector.otlp.grpc",
    "query-grpc": "query.grpc-server",
    "collector": "collector.http-server",
    "collector-grpc": "collector.grpc-server",
    "admin": "admin.http",
}


def build() -> Path:
    """Return Jaeger's binary, built where the cache has none (minutes)."""
    target = cache_dir() / f"jaeger-{VERSION}" / "jaeger"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=target.parent) as scratch:
            made = Path(scratch) / "jaeger"
            command = ["nice", "go", "build", "-trimpath", "-o", str(made), PACKAGE]
            subprocess.run(command, cwd=MODULE, check=True, env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": ""})
            made.rename(target)
    return target


@dataclass(frozen=True)
class Backend:
    """A running Jaeger."""

    ports: dict[str, int]

    @property
    def endpoint(self) -> str:
        """What OTEL_EXPORTER_OTLP_ENDPOINT has to be."""
        return f"http://127.0.0.1:{self.ports['otlp']}"

    def spans(self, trace_id: str) -> list[dict[str, Any]]:
        """Return a trace's spans as the query API has them, with their tags as a mapping."""
        try:
            with urllib.request.urlopen(f"{self._query}/api/traces/{trace_id}", timeout=10) as answer:  # noqa: S310
                (trace,) = json.loads(answer.read())["data"]
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            return []  # nothing of it yet
        found: list[dict[str, Any]] = trace["spans"]
        for span in found:
            span["said"] = {tag["key"]: tag["value"] for tag in span["tags"]}
        return found

    @property
    def _query(self) -> str:
        return f"http://127.0.0.1:{self.ports['query']}"

    def ready(self) -> bool:
        """Say whether the query API answers."""
        try:
            with urllib.request.urlopen(f"{self._query}/api/services", timeout=5) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except OSError:
            return False


def until(done: Callable[[], Any], what: str) -> Any:
    """Poll until ``done`` returns something true, and return it."""
    deadline = monotonic() + HANG_S
    while not (found := done()):
        assert monotonic() < deadline, f"did not happen within {HANG_S:.0f} s: {what}"
        sleep(0.2)
    return found


@contextmanager
def running() -> Iterator[Backend]:
    """Give a Jaeger on free loopback ports, with an empty memory."""
    ports = pick(tuple(SERVERS), {})
    options = [f"--{option}.host-port=127.0.0.1:{ports[name]}" for name, option in SERVERS.items()]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([str(build()), *options, "--memory.max-traces=1000", "--log-level=error"], **quiet)  # type: ignore[call-overload]
    try:
        backend = Backend(ports)
        until(backend.ready, "Jaeger answers")
        yield backend
    finally:
        process.terminate()
        process.wait(HANG_S)
