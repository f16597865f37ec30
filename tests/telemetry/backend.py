"""A real trace backend, and a real collector before it: Jaeger, which is both, built from the Go module proxy.

go.mod and go.sum beside this file say what is built. Jaeger is a distribution of the OpenTelemetry Collector: the same
binary is the one or the other by its configuration.
"""

import json
import os
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

from memsluice.paths import cache_dir
from memsluice.stack.ports import pick

MODULE = Path(__file__).parent / "jaeger"
PACKAGE = "github.com/jaegertracing/jaeger/cmd/jaeger"
COLLECTOR = Path(__file__).parents[2] / "deploy" / "otel" / "collector.yaml"
VERSION = "v1.76.0"
HANG_S = 60.0
"""Guards against hangs only."""


def build() -> Path:
    """Return the binary, built where the cache has none (minutes)."""
    target = cache_dir() / f"jaeger-{VERSION}" / "collector"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=target.parent) as scratch:
            made = Path(scratch) / "collector"
            command = ["nice", "go", "build", "-trimpath", "-o", str(made), PACKAGE]
            subprocess.run(command, cwd=MODULE, check=True, env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": ""})
            made.rename(target)
    return target


@dataclass(frozen=True)
class Backend:
    """A running Jaeger. ``endpoint`` is what OTEL_EXPORTER_OTLP_ENDPOINT has to be."""

    endpoint: str
    query: str

    def spans(self, trace_id: str) -> list[dict[str, Any]]:
        """Return a trace's spans as the query API has them, with their tags as a mapping."""
        try:
            with urllib.request.urlopen(f"{self.query}/api/traces/{trace_id}", timeout=10) as answer:  # noqa: S310
                (trace,) = json.loads(answer.read())["data"]
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            return []  # nothing of it yet
        found: list[dict[str, Any]] = trace["spans"]
        for span in found:
            span["said"] = {tag["key"]: tag["value"] for tag in span["tags"]}
        return found

    def ready(self) -> bool:
        """Say whether the query API answers."""
        try:
            with urllib.request.urlopen(f"{self.query}/api/services", timeout=5) as answer:  # noqa: S310
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
    ports = pick(("OTLP", "QUERY", "QUERY_GRPC"), {})
    found = Backend(f"http://127.0.0.1:{ports['OTLP']}", f"http://127.0.0.1:{ports['QUERY']}")
    with _process(MODULE / "backend.yaml", {name: str(port) for name, port in ports.items()}):
        until(found.ready, "Jaeger answers")
        yield found


@contextmanager
def collector(to: str, decision_wait: str) -> Iterator[str]:
    """Give the endpoint of a collector with the configuration that is shipped, which sends on to ``to``."""
    (port,) = pick(("OTLP",), {}).values()
    named = {"OTLP_LISTEN": f"127.0.0.1:{port}", "TRACE_BACKEND": to, "DECISION_WAIT": decision_wait}
    with _process(COLLECTOR, named):
        until(lambda: _listens(port), "the collector listens")
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _process(config: Path, named: Mapping[str, str]) -> Iterator[None]:
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([str(build()), "--config", str(config)], env={**os.environ, **named}, **quiet)  # type: ignore[call-overload]
    try:
        yield
    finally:
        process.terminate()
        process.wait(HANG_S)


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
