"""A real trace backend, Jaeger all-in-one, and a real OpenTelemetry Collector before it.

Both are built from the Go module proxy by jaeger/go.mod and jaeger/go.sum.
"""

import json
import os
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.patience import HANG_S, until

from memsluice.deployment.paths import cache_dir
from memsluice.devstack.ports import pick

MODULE = Path(__file__).parent / "jaeger"
PACKAGES = {"jaeger": "github.com/jaegertracing/jaeger/cmd/all-in-one", "collector": "./collector"}
VERSION = "v1.76.0"
CONFIGURATION = Path(__file__).parents[2] / "deploy" / "otel" / "collector.yaml"
STARTS_MAX = 3
SERVERS = {
    "otlp": "collector.otlp.http",
    "query": "query.http-server",
    "otlp-grpc": "collector.otlp.grpc",
    "query-grpc": "query.grpc-server",
    "collector": "collector.http-server",
    "collector-grpc": "collector.grpc-server",
    "admin": "admin.http",
}


def build(name: str) -> Path:
    """Return a binary, one of PACKAGES, built where the cache has none (minutes)."""
    target = cache_dir() / f"jaeger-{VERSION}" / name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=target.parent) as scratch:
            made = Path(scratch) / name
            command = ["nice", "go", "build", "-trimpath", "-o", str(made), PACKAGES[name]]
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
            with urllib.request.urlopen(f"{self._query}/api/traces/{trace_id}", timeout=HANG_S) as answer:  # noqa: S310
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
            with urllib.request.urlopen(f"{self._query}/api/services", timeout=60) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def running() -> Iterator[Backend]:
    """Give a Jaeger on free loopback ports, with an empty memory."""
    for _ in range(STARTS_MAX):
        ports = pick(tuple(SERVERS), {})
        options = [f"--{option}.host-port=127.0.0.1:{ports[name]}" for name, option in SERVERS.items()]
        command = [str(build("jaeger")), *options, "--memory.max-traces=1000", "--log-level=error"]
        with _process(command, {}, Backend(ports).ready) as answers:
            if answers:
                yield Backend(ports)
                return
    raise AssertionError(f"Jaeger ended at once, {STARTS_MAX} times")


@contextmanager
def collector(to: str, decision_wait: str) -> Iterator[str]:
    """Give the endpoint of a collector with the configuration that is shipped, which sends on to ``to``."""
    command = [str(build("collector")), "--config", str(CONFIGURATION)]
    for _ in range(STARTS_MAX):
        (port,) = pick(("otlp",), {}).values()
        named = {"OTLP_LISTEN": f"127.0.0.1:{port}", "TRACE_BACKEND": to, "DECISION_WAIT": decision_wait}
        with _process(command, named, partial(_listens, port)) as answers:
            if answers:
                yield f"http://127.0.0.1:{port}"
                return
    raise AssertionError(f"the collector ended at once, {STARTS_MAX} times")


@contextmanager
def _process(command: list[str], named: dict[str, str], answers: Callable[[], bool]) -> Iterator[bool]:
    """Run a server; give whether it answers, or has ended: another process may have taken a port meanwhile."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env={**os.environ, **named}, **quiet)  # type: ignore[call-overload]
    try:
        until(lambda: process.poll() is not None or answers(), f"{command[0]} answers")
        yield process.poll() is None
    finally:
        process.terminate()
        process.wait(HANG_S)


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
