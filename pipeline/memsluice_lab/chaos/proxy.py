"""Toxiproxy between workers and servers: slow, cut and torn connections, without root.

A worker reaches a server through it by a connection file of its own (``MEMSLUICE_CONNECTION_FILE``). Kafka tells its
clients an address for each partition, so it gets a second listener whose told address is the proxy's.
"""

import contextlib
import os
import subprocess
import tempfile
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from memsluice.deployment.connection import Connection
from memsluice.deployment.layout import Layout
from memsluice.deployment.paths import FILE_VARIABLE, cache_dir, write_private
from memsluice.devstack.ports import LOOPBACK, pick
from memsluice.errors import StackError
from memsluice_lab.chaos.following import wait
from memsluice_lab.chaos.nemesis import KAFKA, Nemesis
from memsluice_lab.figures.bed import Bed

VERSION: Final = "v2.5.0"
MODULE: Final = "github.com/Shopify/toxiproxy/v2/cmd/server"
BUILD_S_MAX = 600
STARTED_S_MAX = 20
ANSWER_S = 10
ROUTES = ("kafka", "weaviate", "weaviate-grpc")


def installed(cache: Path | None = None) -> Path:
    """Return the server's binary, built by Go into the cache where it is not there yet. Raises StackError."""
    target = cache_dir(cache) / f"toxiproxy-{VERSION}" / "toxiproxy-server"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        variables = {**os.environ, "GOBIN": scratch, "CGO_ENABLED": "0", "GOFLAGS": ""}
        command = ["nice", "go", "install", "-trimpath", f"{MODULE}@{VERSION}"]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=BUILD_S_MAX, check=False)
        if done.returncode != 0:
            raise StackError(f"toxiproxy could not be built: {done.stderr.strip()[-500:]}")
        (Path(scratch) / "server").replace(target)
    return target


@dataclass(slots=True)
class Proxy:
    """A running toxiproxy with a route to each server of a stack."""

    process: subprocess.Popen[bytes]
    ports: Mapping[str, int]
    environment: Mapping[str, str] = field(default_factory=dict)
    """For workers that are to go through it."""

    def slow(self, route: str, latency_ms: int, jitter_ms: int = 0) -> None:
        """Let every answer take so much longer."""
        self._toxic(route, "latency", {"latency": latency_ms, "jitter": jitter_ms})

    def swallow(self, route: str) -> None:
        """Let connections stay open, and nothing come through."""
        self._toxic(route, "timeout", {"timeout": 0})

    def tear(self, route: str) -> None:
        """End every connection with a reset, new ones too."""
        self._toxic(route, "reset_peer", {"timeout": 0})

    def cut(self, route: str) -> None:
        """Refuse connections, and end those that there are: the server is gone."""
        self._ask("POST", f"/proxies/{route}", {"enabled": False})

    def heal(self) -> None:
        """Let everything through again."""
        self._ask("POST", "/reset", {})

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(ANSWER_S)

    def _toxic(self, route: str, kind: str, attributes: Mapping[str, int]) -> None:
        said = {"name": kind, "type": kind, "stream": "downstream", "toxicity": 1.0, "attributes": dict(attributes)}
        self._ask("POST", f"/proxies/{route}/toxics", said)

    def _ask(self, method: str, path: str, said: Mapping[str, Any]) -> bytes:
        request = urllib.request.Request(
            f"http://{LOOPBACK}:{self.ports['control']}{path}",
            data=orjson.dumps(said),
            method=method,
            headers={"Content-Type": "application/json", "User-Agent": "memsluice"},
        )
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:  # noqa: S310 - our own child, on loopback
            body: bytes = answer.read()
            return body


def between(bed: Bed, nemesis: Nemesis, *, broker: bool = True) -> Proxy:
    """Put a proxy before both servers of a bed, or before the store alone. Raises StackError.

    Kafka is started anew, because it has to tell its clients another address.
    """
    ports = pick(("control", "listener", *ROUTES), {})
    binary = installed()
    log = Layout(bed.home).log("toxiproxy")
    with log.open("ab") as file:
        os.fchmod(file.fileno(), 0o600)  # as every log of a home
        process = subprocess.Popen(
            [str(binary), "-host", LOOPBACK, "-port", str(ports["control"])],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    proxied = Connection.model_validate(
        {
            **bed.connection.with_secrets(),
            "bootstrap": f"{LOOPBACK}:{ports['kafka']}" if broker else bed.connection.bootstrap,
            "weaviate_http_port": ports["weaviate"],
            "weaviate_grpc_port": ports["weaviate-grpc"],
        }
    )
    path = bed.home / "proxied.json"
    proxied.save(path)
    proxy = Proxy(process, ports, {FILE_VARIABLE: str(path)})
    upstream = {
        "weaviate": bed.connection.weaviate_http_port,
        "weaviate-grpc": bed.connection.weaviate_grpc_port,
        **({"kafka": ports["listener"]} if broker else {}),
    }
    if not wait(lambda: _routed(proxy, upstream), STARTED_S_MAX):
        proxy.close()
        raise StackError(f"toxiproxy did not answer within {STARTED_S_MAX} s; see {log}")
    if broker:
        _listen(Layout(bed.home), ports)
        nemesis.kill_server(KAFKA)
    return proxy


def _routed(proxy: Proxy, upstream: Mapping[str, int]) -> bool:
    with contextlib.suppress(OSError):
        for route, port in upstream.items():
            listen = f"{LOOPBACK}:{proxy.ports[route]}"
            proxy._ask("POST", "/proxies", {"name": route, "listen": listen, "upstream": f"{LOOPBACK}:{port}"})
        return True
    return False


def _listen(layout: Layout, ports: Mapping[str, int]) -> None:
    """Give the broker a listener that tells clients the proxy's address; it counts from its next start on."""
    path = layout.config / "kafka.properties"
    more = {
        "listeners": f",PROXY://{LOOPBACK}:{ports['listener']}",
        "advertised.listeners": f",PROXY://{LOOPBACK}:{ports['kafka']}",
        "listener.security.protocol.map": ",PROXY:SASL_PLAINTEXT",
    }
    lines = []
    for line in path.read_text().splitlines():
        name = line.partition("=")[0]
        lines.append(line + more.get(name, ""))
        if name.startswith("listener.name.broker."):
            lines.append(line.replace("listener.name.broker.", "listener.name.proxy."))
    write_private(path, "\n".join(lines) + "\n")
