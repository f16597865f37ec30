"""What the commands of the HTTP services share: where they listen, that nothing goes in the clear, how they stop."""

import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memsluice.errors import ConfigError, InvalidArgument
from memsluice.escaping import visible

if TYPE_CHECKING:
    import uvicorn

    from memsluice.telemetry.meters import Meters

LOOPBACK = ("127.0.0.1", "::1", "localhost")
HOST_CHARS_MAX = 80
STOP_S = 8
"""How long requests in work may go on once the service is told to stop."""
Host = Annotated[str, typer.Option(help="Interface to listen on.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 is any free one.")]
AtOnce = Annotated[
    int, typer.Option("--connections", min=1, max=10_000, help="Connections at most; beyond, the answer is 503.")
]
Certificate = Annotated[
    Path | None, typer.Option("--tls-certificate", dir_okay=False, exists=True, help="PEM file for HTTPS.")
]
TlsKey = Annotated[
    Path | None, typer.Option("--tls-key", dir_okay=False, exists=True, help="PEM file of its private key.")
]
Plain = Annotated[
    bool, typer.Option("--plain", help="Serve HTTP on other interfaces than loopback: TLS ends in front of it.")
]


def check_encrypted(host: str, certificate: Path | None, key: Path | None, *, plain: bool) -> None:
    """Raise InvalidArgument where memory and tokens would travel in the clear by a slip."""
    if (certificate is None) != (key is None):
        raise InvalidArgument("--tls-certificate and --tls-key go together")
    if certificate is None and host not in LOOPBACK and not plain:
        raise InvalidArgument(
            f"to listen on {visible(host, HOST_CHARS_MAX)} would serve memory and tokens unencrypted: give "
            "--tls-certificate and --tls-key, or --plain where TLS ends in front of it"
        )


@contextmanager
def server(
    name: str,
    application: Any,
    host: str,
    port: int,
    at_once: int,
    certificate: Path | None,
    key: Path | None,
    *,
    path: str = "",
    lifespan: Literal["on", "off"] = "off",
    trusted_proxies: Sequence[str] = (),
) -> Iterator[Any]:
    """Give what runs a service until SIGTERM, once it listens; say where. Raises ConfigError where it cannot."""
    import uvicorn

    config = configured(application, host, port, at_once, certificate, key, lifespan, trusted_proxies)
    with _listening(name, host, port) as listening:
        scheme = "http" if certificate is None else "https"
        where = f"[{host}]" if ":" in host else host
        typer.echo(f"{name}: {scheme}://{where}:{listening.getsockname()[1]}{path}", err=True)
        signal.signal(signal.SIGTERM, _ended)
        yield lambda: uvicorn.Server(config).run([listening])


def configured(
    application: Any, host: str, port: int, at_once: int, certificate: Path | None, key: Path | None,
    lifespan: Literal["on", "off"], trusted_proxies: Sequence[str],
) -> "uvicorn.Config":  # fmt: skip
    """Return how a service is served; it believes ``trusted_proxies`` who asks, or without any a proxy on loopback."""
    import uvicorn

    return uvicorn.Config(
        application, host, port, log_config=None, access_log=False, lifespan=lifespan, server_header=False,
        limit_concurrency=at_once, timeout_graceful_shutdown=STOP_S, timeout_keep_alive=30,
        ssl_certfile=None if certificate is None else str(certificate),
        ssl_keyfile=None if key is None else str(key),
        forwarded_allow_ips=list(trusted_proxies) or None,
    )  # fmt: skip


def _ended(*_: object) -> None:
    """Do nothing: uvicorn, which stops at a SIGTERM in order, raises it once more when it has."""


def _listening(name: str, host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        where = f"{visible(host, HOST_CHARS_MAX)}:{port}"
        raise ConfigError(f"the {name} cannot listen on {where}: {error.strerror or error}") from None


@contextmanager
def tracing(service: str, meters: "Meters") -> Iterator[None]:
    """Export spans over OTLP/HTTP where OpenTelemetry's variables name an endpoint."""
    from opentelemetry import trace

    from memsluice.telemetry import registry
    from memsluice.telemetry.tracing import provider

    def lost(why: str, spans: int) -> None:
        meters.add(registry.SPANS_LOST, why, amount=spans)

    exporting = provider(service, socket.gethostname(), lost)
    if exporting is None:
        yield
        return
    from memsluice.telemetry.exporting import close

    trace.set_tracer_provider(exporting)
    try:
        yield
    finally:
        close(exporting)
